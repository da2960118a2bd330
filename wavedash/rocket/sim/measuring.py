"""The shipped measures as one kernel: what each decides and remembers is what its class in `rocket/measures` says, but a step
of all of them is one launch instead of thirty operations on tensors for each.

Arithmetic is in the order of the classes and without fused operations, so that decisions are theirs bit for bit.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import warp as wp

from wavedash.rocket.constants import BACK_WALL_Y, SIDE_WALL_X, TICK_RATE
from wavedash.rocket.measures.air_dribble import AirDribble
from wavedash.rocket.measures.dribble import LOW, UPRIGHT, Dribble
from wavedash.rocket.measures.flip_reset import NONE, FlipReset
from wavedash.rocket.measures.jump_challenge import NEVER, JumpChallenge
from wavedash.rocket.measures.turtle import Turtle
from wavedash.rocket.measures.wall import Wall
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.sim.package import log_if_compiling
from wavedash.rocket.sim.seen import (
    Flags,
    Numbers,
    Seen,
    attack,
    flip_left,
    is_alive,
    is_on_roof,
    is_touching,
    others_touch,
    seen_of,
    stands,
    wheels_at_ball,
)
from wavedash.rocket.state import GameState
from wavedash.tasks.part import Parts

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class Outcomes:
    """[M, E, C]: what each measure says about a step."""

    over: wp.array3d(dtype=wp.bool)
    success: wp.array3d(dtype=wp.bool)
    ticks: wp.array3d(dtype=wp.int32)


@wp.struct
class TurtleData:
    """The row of `Turtle` in the outcomes, -1: it is not there; what it remembers, and its options."""

    row: int
    down: Flags
    missed: Flags
    since: Numbers
    limit: int


@wp.func
def turtle(seen: Seen, m: TurtleData, out: Outcomes, e: int, c: int):
    wheels, alive = seen.on_ground[e, c], is_alive(seen, e, c)
    was_down, was_missed, passed = m.down[e, c], m.missed[e, c], seen.clock[e] - m.since[e, c]
    late = passed > m.limit
    decided = was_down and not was_missed and alive and (late or wheels)
    out.over[m.row, e, c] = decided
    out.success[m.row, e, c] = decided and wheels and not late
    out.ticks[m.row, e, c] = passed

    roof = is_on_roof(seen, e, c)
    if roof and not was_down:
        m.since[e, c] = seen.clock[e]
    is_down = (was_down or roof) and not wheels and alive
    m.down[e, c] = is_down
    m.missed[e, c] = (was_missed or decided) and is_down


@wp.struct
class WallData:
    """The same of `Wall`."""

    row: int
    open: Flags
    last: Numbers
    near: float
    min_height: float
    width: float
    square_speed: float
    patience: int


@wp.func
def at_wall(ball: wp.vec3, near: float, min_height: float) -> bool:
    return wp.abs(ball[0]) >= near and ball[2] >= min_height


@wp.func
def on_course(seen: Seen, e: int, c: int, width: float, square_speed: float) -> bool:
    ball, velocity, ahead = seen.ball[e], seen.ball_velocity[e], attack(seen, e, c)
    way, approach = wp.static(BACK_WALL_Y) - ahead * ball[1], ahead * velocity[1]
    fast = velocity[0] * velocity[0] + velocity[1] * velocity[1] >= square_speed
    return fast and approach > 0.0 and wp.abs(ball[0] * approach + velocity[0] * way) <= width * approach


@wp.func
def wall(seen: Seen, m: WallData, out: Outcomes, e: int, c: int):
    touch, was_open, clock = is_touching(seen, e, c), m.open[e, c], seen.clock[e]
    there = at_wall(seen.ball[e], m.near, m.min_height) or at_wall(seen.ball_before[e], m.near, m.min_height)
    tried = was_open or (touch and there)
    succeeded = tried and touch and on_course(seen, e, c, m.width, m.square_speed)
    idle = not touch and clock - m.last[e, c] > m.patience
    decided = succeeded or (was_open and (others_touch(seen, e, c) or idle))
    out.over[m.row, e, c] = decided
    out.success[m.row, e, c] = succeeded
    m.open[e, c] = tried and not decided
    if touch:
        m.last[e, c] = clock


@wp.struct
class AirDribbleData:
    """The same of `AirDribble`."""

    row: int
    count: Numbers
    done: Flags
    last: Numbers
    hits: int
    least: int
    apart: int
    patience: int
    min_height: float


@wp.func
def air_dribble(seen: Seen, m: AirDribbleData, out: Outcomes, e: int, c: int):
    clock, hits_before, was_done = seen.clock[e], m.count[e, c], m.done[e, c]
    touch, ago, exists = is_touching(seen, e, c), clock - m.last[e, c], hits_before > 0
    high = seen.position[e, c][2] > m.min_height and seen.ball[e][2] > m.min_height
    flies = high and is_alive(seen, e, c) and not stands(seen, e, c)
    goes_on = exists and flies and not others_touch(seen, e, c) and ago <= m.patience
    counts = touch and flies and (not goes_on or ago >= m.apart)
    hits_now = wp.where(goes_on, hits_before, 0) + wp.where(counts, 1, 0)
    failed = exists and not goes_on and not was_done and hits_before >= m.least
    succeeded = goes_on and counts and not was_done and hits_now >= m.hits
    out.over[m.row, e, c] = failed or succeeded
    out.success[m.row, e, c] = succeeded
    m.done[e, c] = goes_on and (was_done or succeeded)
    m.count[e, c] = hits_now
    if counts:
        m.last[e, c] = clock


@wp.struct
class FlipResetData:
    """The same of `FlipReset`."""

    row: int
    open: Flags
    flip: Numbers
    within: int
    min_height: float


@wp.func
def flip_reset(seen: Seen, m: FlipResetData, out: Outcomes, e: int, c: int):
    clock, was_open, alive = seen.clock[e], m.open[e, c], is_alive(seen, e, c)
    has = flip_left(seen.flipped[e, c], seen.double_jumped[e, c], seen.air_time[e, c])
    had = flip_left(seen.flipped_before[e, c], seen.double_jumped_before[e, c], seen.air_time_before[e, c])
    gained = has and not had and wheels_at_ball(seen, e, c) and seen.position[e, c][2] > m.min_height and alive
    began = m.flip[e, c]
    if was_open and seen.flipped[e, c] and began == wp.static(NONE):
        began = int(wp.rint(float(clock) - seen.flip_time[e, c] * wp.static(float(TICK_RATE))))
    used, tick = began != wp.static(NONE), seen.hit_tick[e, c]
    hit = is_touching(seen, e, c) and tick >= began and tick - began <= m.within
    succeeded = was_open and used and hit
    lost = gained or stands(seen, e, c) or not alive or seen.double_jumped[e, c] or (used and clock - began > m.within)
    decided = succeeded or (was_open and lost)
    out.over[m.row, e, c] = decided
    out.success[m.row, e, c] = succeeded
    if gained or decided:
        began = wp.static(NONE)
    m.flip[e, c] = began
    m.open[e, c] = gained or (was_open and not decided)


@wp.struct
class JumpChallengeData:
    """The same of `JumpChallenge`."""

    row: int
    open: Flags
    last: Numbers
    met: Numbers
    together: int
    after: int
    min_height: float
    min_speed: float


@wp.func
def jump_challenge(seen: Seen, m: JumpChallengeData, out: Outcomes, e: int):
    """It is computed for a whole arena, because cars ask for the hits of their opponents."""
    clock, seats = seen.clock[e], seen.team.shape[1]
    latest_blue, latest_orange = int(wp.static(NEVER)), int(wp.static(NEVER))
    for c in range(seats):
        if is_touching(seen, e, c) and not stands(seen, e, c) and seen.ball[e][2] > m.min_height:
            m.last[e, c] = clock
        if seen.team[e, c] == 0:
            latest_blue = wp.max(latest_blue, m.last[e, c])
        if seen.team[e, c] == 1:
            latest_orange = wp.max(latest_orange, m.last[e, c])
    for c in range(seats):
        mine, theirs = m.last[e, c], wp.where(seen.team[e, c] == 0, latest_orange, latest_blue)
        first, second = wp.min(mine, theirs), wp.max(mine, theirs)
        meets = second == clock and second - first <= m.together
        if meets:
            m.met[e, c] = clock
        opened = m.open[e, c] or meets
        decided = opened and (clock - m.met[e, c] >= m.after or seen.goal[e] >= 0)
        won = decided and attack(seen, e, c) * seen.ball_velocity[e][1] >= m.min_speed
        out.over[m.row, e, c] = decided
        out.success[m.row, e, c] = won
        m.open[e, c] = opened and not decided
        if decided:
            m.last[e, c] = wp.static(NEVER)


@wp.struct
class DribbleData:
    """The same of `Dribble`."""

    row: int
    open: Flags
    done: Flags
    since: Numbers
    last: Numbers
    seconds: int
    least: int
    grace: int
    reach: float
    max_height: float


@wp.func
def carries(seen: Seen, e: int, c: int, reach: float, max_height: float) -> bool:
    way = seen.ball[e] - seen.position[e, c]
    above = way[2] >= wp.static(LOW) and way[2] <= max_height and wp.sqrt(way[0] * way[0] + way[1] * way[1]) <= reach
    return above and is_alive(seen, e, c) and seen.on_ground[e, c] and seen.rotation[e, c][2, 2] >= wp.static(UPRIGHT)


@wp.func
def dribble(seen: Seen, m: DribbleData, out: Outcomes, e: int, c: int):
    clock, was_open, was_done, contested = seen.clock[e], m.open[e, c], m.done[e, c], others_touch(seen, e, c)
    carried = carries(seen, e, c, m.reach, m.max_height)
    goes_on = was_open and not contested and (carried or clock - m.last[e, c] <= m.grace)
    begins = carried and is_touching(seen, e, c) and not contested and not goes_on
    failed = was_open and not goes_on and not was_done and m.last[e, c] - m.since[e, c] >= m.least
    succeeded = goes_on and carried and not was_done and clock - m.since[e, c] >= m.seconds
    out.over[m.row, e, c] = failed or succeeded
    out.success[m.row, e, c] = succeeded
    m.done[e, c] = goes_on and (was_done or succeeded)
    m.open[e, c] = goes_on or begins
    if begins:
        m.since[e, c] = clock
    if carried:
        m.last[e, c] = clock


@wp.struct
class All:
    """All measures that are computed together."""

    seen: Seen
    out: Outcomes
    turtle: TurtleData
    wall: WallData
    air_dribble: AirDribbleData
    flip_reset: FlipResetData
    jump_challenge: JumpChallengeData
    dribble: DribbleData


@wp.kernel
def measure(all: All):
    """One thread per arena. All measures are one launch with one argument: on a CPU each launch, and each argument of it, costs
    more than the measure itself."""
    e = wp.tid()
    for c in range(all.seen.team.shape[1]):
        if all.turtle.row >= 0:
            turtle(all.seen, all.turtle, all.out, e, c)
        if all.wall.row >= 0:
            wall(all.seen, all.wall, all.out, e, c)
        if all.air_dribble.row >= 0:
            air_dribble(all.seen, all.air_dribble, all.out, e, c)
        if all.flip_reset.row >= 0:
            flip_reset(all.seen, all.flip_reset, all.out, e, c)
        if all.dribble.row >= 0:
            dribble(all.seen, all.dribble, all.out, e, c)
    if all.jump_challenge.row >= 0:
        jump_challenge(all.seen, all.jump_challenge, all.out, e)


class Form(NamedTuple):
    """How a measure is computed by the kernel."""

    name: str
    """The field of `All`"""
    data: Any
    """The struct of that field"""
    memory: tuple[str, ...]
    """The buffers that the measure remembers in"""
    options: Callable[[Any], dict[str, float]]


def _options(*names: str) -> Callable[[Any], dict[str, float]]:
    return lambda measure: {name: getattr(measure, name) for name in names}


KERNELS: dict[type[Measure], Form] = {
    Turtle: Form("turtle", TurtleData, ("down", "missed", "since"), _options("limit")),
    Wall: Form("wall", WallData, ("open", "last"),
               lambda m: {"near": SIDE_WALL_X - m.reach, "square_speed": m.min_speed**2,
                          **_options("min_height", "width", "patience")(m)}),
    AirDribble: Form("air_dribble", AirDribbleData, ("count", "done", "last"),
                     _options("hits", "least", "apart", "patience", "min_height")),
    FlipReset: Form("flip_reset", FlipResetData, ("open", "flip"), _options("within", "min_height")),
    JumpChallenge: Form("jump_challenge", JumpChallengeData, ("open", "last", "met"),
                        _options("together", "after", "min_height", "min_speed")),
    Dribble: Form("dribble", DribbleData, ("open", "done", "since", "last"),
                  _options("seconds", "least", "grace", "reach", "max_height")),
}


class MeasuringKernels:
    """Those of `measures` that have a kernel, over the memory of a state and of the state before the step."""

    def __init__(self, measures: Parts[Measure], state: GameState, previous: GameState) -> None:
        self.device = state.device
        first = {type(each): name for name, each in reversed(measures.items())}  # the kernel has room for one of each class
        mine = {name: each for name, each in measures.items() if type(each) in KERNELS and first[type(each)] == name}
        shape = len(mine), *state.shape
        self.over, self.success = (torch.zeros(shape, dtype=torch.bool, device=self.device) for _ in range(2))
        """[M, E, C]: all outcomes of the last step, in the order of the measures"""
        ticks = torch.zeros(shape, dtype=torch.int32, device=self.device)
        self.outcomes = {name: Outcome(self.over[row], self.success[row], ticks[row] if each.timed else None)
                         for row, (name, each) in enumerate(mine.items())}
        """The same by name"""
        self.launch: Any = None
        """Records nothing where there is no measure, or no arena: a lane may have a share of 0"""
        if mine and state.arenas:
            with log_if_compiling(f"{self.device}"):
                self.launch = wp.launch(measure, dim=state.arenas, device=wp.device_from_torch(self.device), record_cmd=True,
                                        inputs=[self._all(mine, seen_of(state, previous), ticks)])

    def __call__(self) -> Mapping[str, Outcome]:
        """The outcomes of a step, which the next call overwrites."""
        if self.launch is not None:  # torch's stream will do: Warp reads nothing but its handle
            self.launch.launch(torch.cuda.current_stream(self.device) if self.device.type == "cuda" else None)
        return self.outcomes

    def _all(self, measures: Mapping[str, Measure], seen: Any, ticks: torch.Tensor) -> Any:
        found: Any = All()
        found.seen, found.out.over, found.out.success, found.out.ticks = (
            seen, *map(wp.from_torch, (self.over, self.success, ticks)))
        for form in KERNELS.values():
            getattr(found, form.name).row = -1
        for row, each in enumerate(measures.values()):
            form = KERNELS[type(each)]
            data = getattr(found, form.name)
            data.row = row
            for name in form.memory:
                setattr(data, name, wp.from_torch(getattr(each, name)))
            for name, value in form.options(each).items():
                setattr(data, name, value)
        return found
