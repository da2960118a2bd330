"""Rewards and endings as kernels: what each pays, decides and remembers is what its class says, bit for bit, but a step of all
of them is one launch instead of some twenty operations on tensors for each.

The costliest of those that lanes use have one. `RewardKernels` and `EndingKernels` say how the others could.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import warp as wp
from torch import Tensor

from wavedash.rocket.constants import BACK_WALL_Y, BALL_MAX_SPEED
from wavedash.rocket.endings import Recovered
from wavedash.rocket.parts import Part
from wavedash.rocket.rewards.ball import TouchTowardGoal
from wavedash.rocket.rewards.measures import ball_to_goal, ball_to_goal_divisor, distance_to_ball, goal_backs
from wavedash.rocket.rewards.mechanics import AerialDistance, FlipReset, Recovery
from wavedash.rocket.sim.package import log_if_compiling
from wavedash.rocket.sim.seen import Flags, Seen, flip_left, is_alive, is_on_roof, is_touching, others_touch, seen_of, up_axis
from wavedash.rocket.state import Events, GameState

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

Floats = wp.array2d(dtype=wp.float32)


@wp.struct
class Known:
    """What is computed before the launch, by the operations of the classes: lengths of vectors round otherwise on some CPUs."""

    distance: Floats
    """[E, C]: `distance_to_ball`"""
    way: wp.array2d(dtype=wp.vec3)
    """[E, C]: `ball_to_goal`"""
    divisor: Floats
    """[E, C]: its length, at least 1"""
    moved: wp.array(dtype=wp.float32)
    """[E]: how far the ball has moved in the step"""


@wp.struct
class RecoveryData:
    """The row of `Recovery` in the result, -1: it is not there; what it remembers, and its options."""

    row: int
    turtled: Flags


@wp.func
def recovery(seen: Seen, m: RecoveryData, e: int, c: int) -> float:
    roof, wheels, was_turtled = is_on_roof(seen, e, c), seen.on_ground[e, c], m.turtled[e, c]
    paid = wp.where(wheels and was_turtled, 1.0, 0.0) - wp.where(roof and not was_turtled, 1.0, 0.0)
    m.turtled[e, c] = (was_turtled or roof) and is_alive(seen, e, c) and not wheels  # last: Warp reads `was_turtled` when used
    return paid


@wp.struct
class FlipResetData:
    """The same of `FlipReset`."""

    row: int
    reach: float
    min_height: float


@wp.func
def flip_reset(seen: Seen, m: FlipResetData, distance: float, e: int, c: int) -> float:
    way = seen.ball[e] - seen.position[e, c]
    below_wheels = wp.dot(up_axis(seen, e, c), way) < -0.7 * distance and distance < m.reach
    has = flip_left(seen.flipped[e, c], seen.double_jumped[e, c], seen.air_time[e, c])
    had = flip_left(seen.flipped_before[e, c], seen.double_jumped_before[e, c], seen.air_time_before[e, c])
    return wp.where(has and not had and below_wheels and seen.position[e, c][2] > m.min_height, 1.0, 0.0)


@wp.struct
class AerialDistanceData:
    """The same of `AerialDistance`."""

    row: int
    carries: Flags
    carried: Floats
    min_height: float


@wp.func
def aerial_distance(seen: Seen, m: AerialDistanceData, moved: float, e: int, c: int) -> float:
    touch, carries, carried = is_touching(seen, e, c), m.carries[e, c], m.carried[e, c] + moved
    height = seen.position[e, c][2] - m.min_height
    flies = height > 0.0 and not seen.on_ground[e, c]
    paid = wp.where(touch and flies, 1.0, 0.0) * wp.where(carries, carried, height) / wp.static(BACK_WALL_Y)
    m.carries[e, c] = (carries or touch) and flies and (touch or not others_touch(seen, e, c))
    m.carried[e, c] = wp.where(touch, 0.0, carried)
    return paid


@wp.struct
class TouchTowardGoalData:
    """The same of `TouchTowardGoal` with its usual power of 2."""

    row: int


@wp.func
def touch_toward_goal(seen: Seen, way: wp.vec3, divisor: float, e: int, c: int) -> float:
    change = wp.dot(seen.ball_velocity[e] - seen.ball_velocity_before[e], way) / divisor / wp.static(BALL_MAX_SPEED)
    return wp.where(seen.touches[e, c] > 0, 1.0, 0.0) * wp.sign(change) * (change * change)


@wp.struct
class AllRewards:
    """All rewards that are computed together."""

    seen: Seen
    known: Known
    out: wp.array3d(dtype=wp.float32)
    """[K, E, C]"""
    recovery: RecoveryData
    flip_reset: FlipResetData
    aerial_distance: AerialDistanceData
    touch_toward_goal: TouchTowardGoalData


@wp.kernel
def pay(all: AllRewards):
    """One thread per arena. All rewards are one launch with one argument: on a CPU each launch, and each argument of it, costs
    more than the reward itself."""
    e = wp.tid()
    for c in range(all.seen.team.shape[1]):
        if all.recovery.row >= 0:
            all.out[all.recovery.row, e, c] = recovery(all.seen, all.recovery, e, c)
        if all.flip_reset.row >= 0:
            all.out[all.flip_reset.row, e, c] = flip_reset(all.seen, all.flip_reset, all.known.distance[e, c], e, c)
        if all.aerial_distance.row >= 0:
            all.out[all.aerial_distance.row, e, c] = aerial_distance(all.seen, all.aerial_distance, all.known.moved[e], e, c)
        if all.touch_toward_goal.row >= 0:
            all.out[all.touch_toward_goal.row, e, c] = touch_toward_goal(all.seen, all.known.way[e, c],
                                                                         all.known.divisor[e, c], e, c)


@wp.struct
class RecoveredData:
    """What `Recovered` sees, remembers and decides."""

    seen: Seen
    down: Flags
    out: wp.array2d(dtype=wp.bool)
    """[1, E]"""


@wp.kernel
def recovered(m: RecoveredData):
    """One thread per arena, because all of its cars have to be on their wheels."""
    e = wp.tid()
    before, now = bool(False), bool(False)
    for c in range(m.seen.team.shape[1]):
        was_down = m.down[e, c]
        is_down = (was_down or is_on_roof(m.seen, e, c)) and is_alive(m.seen, e, c) and not m.seen.on_ground[e, c]
        before = before or was_down
        now = now or is_down
        m.down[e, c] = is_down
    m.out[0, e] = before and not now


def _moved(state: GameState, previous: GameState, out: Tensor) -> None:
    torch.linalg.vector_norm(state.ball.position - previous.ball.position, dim=-1, out=out)


class Form(NamedTuple):
    """How a reward is computed by the kernel."""

    name: str
    """The field of `AllRewards`"""
    memory: tuple[str, ...] = ()
    """The buffers that the reward remembers in"""
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """The fields of `Known` that it reads"""


REWARDS: dict[type[Part], Form] = {
    Recovery: Form("recovery", memory=("turtled",)),
    FlipReset: Form("flip_reset", options=("reach", "min_height"), needs=("distance",)),
    AerialDistance: Form("aerial_distance", memory=("carries", "carried"), options=("min_height",), needs=("moved",)),
    TouchTowardGoal: Form("touch_toward_goal", needs=("way", "divisor")),
}
"""By class. A class derived from one of these may pay for something else, so it has no kernel."""


class RewardKernels:
    """Those of `rewards` that have a kernel, over the state to which they are bound."""

    def __init__(self, rewards: Mapping[str, Part], state: GameState) -> None:
        self.state, self.previous, self.device = state, None, state.device
        first = {type(each): name for name, each in reversed(rewards.items())}  # the kernel has room for one of each class
        self.mine = {name: each for name, each in rewards.items() if _has_kernel(each) and first[type(each)] == name}
        self.out = torch.zeros(len(self.mine), *state.shape, device=state.device)
        self.paid = dict(zip(self.mine, self.out.unbind(0), strict=True))
        self.needs = {need for each in self.mine.values() for need in REWARDS[type(each)].needs}
        shapes = {"distance": state.shape, "way": (*state.shape, 3), "divisor": state.shape, "moved": (state.arenas,)}
        self.known = {name: torch.zeros(shape, device=state.device) for name, shape in shapes.items()}
        if self.needs & {"way", "divisor"}:
            self.goals = goal_backs(state)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Mapping[str, Tensor]:
        """Returns what they pay by name, in tensors that the next call overwrites. Nothing, if it is another state."""
        if state is not self.state or not self.mine:
            return {}
        if previous is not self.previous:
            self._record(previous)
        if "distance" in self.needs:
            self.known["distance"].copy_(distance_to_ball(state))
        if "way" in self.needs:
            self.known["way"].copy_(ball_to_goal(self.goals, state))
            self.known["divisor"].copy_(ball_to_goal_divisor(self.goals, state))
        if "moved" in self.needs:
            _moved(state, previous, self.known["moved"])
        self.launch.launch(_stream(self.device))
        return self.paid

    def _record(self, previous: GameState) -> None:
        found: Any = AllRewards()
        found.seen, found.out = seen_of(self.state, previous), wp.from_torch(self.out)
        for name, x in self.known.items():
            setattr(found.known, name, wp.from_torch(x, dtype=wp.vec3) if name == "way" else wp.from_torch(x))
        for form in REWARDS.values():
            getattr(found, form.name).row = -1
        for row, each in enumerate(self.mine.values()):
            form = REWARDS[type(each)]
            data = getattr(found, form.name)
            data.row = row
            for name in form.memory:
                setattr(data, name, wp.from_torch(getattr(each, name)))
            for name in form.options:
                setattr(data, name, getattr(each, name))
        self.previous, self.launch = previous, _recorded(pay, found, self.state)


class EndingKernels:
    """Those of `endings` that have a kernel, over the state to which they are bound."""

    def __init__(self, endings: Mapping[str, Part], state: GameState) -> None:
        self.state, self.previous, self.device = state, None, state.device
        self.mine = {name: each for name, each in endings.items() if type(each) is Recovered}
        self.happened = {name: torch.zeros(1, state.arenas, dtype=torch.bool, device=state.device) for name in self.mine}
        self.found = {name: x.squeeze(0) for name, x in self.happened.items()}

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Mapping[str, Tensor]:
        """Whether they end episodes by name, in tensors that the next call overwrites. Nothing, if it is another state."""
        if state is not self.state or not self.mine:
            return {}
        if previous is not self.previous:
            self._record(previous)
        for launch in self.launches:
            launch.launch(_stream(self.device))
        return self.found

    def _record(self, previous: GameState) -> None:
        self.previous, self.launches = previous, []
        for name, each in self.mine.items():
            data: Any = RecoveredData()
            data.seen, data.out = seen_of(self.state, previous), wp.from_torch(self.happened[name])
            data.down = wp.from_torch(each.down)
            self.launches.append(_recorded(recovered, data, self.state))


def _has_kernel(reward: Part) -> bool:
    return type(reward) in REWARDS and getattr(reward, "power", 2.0) == 2.0


def _recorded(kernel: Any, argument: Any, state: GameState) -> Any:
    """A launch over all arenas."""
    with log_if_compiling(f"{state.device}"):
        device = wp.device_from_torch(state.device)
        return wp.launch(kernel, dim=state.arenas, inputs=[argument], device=device, record_cmd=True)


def _stream(device: torch.device) -> torch.cuda.Stream | None:
    """Torch's stream will do: Warp reads nothing but its handle."""
    return torch.cuda.current_stream(device) if device.type == "cuda" else None
