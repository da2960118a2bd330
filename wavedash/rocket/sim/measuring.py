"""The shipped measures as kernels, one thread per car: what each decides and remembers is what its class in `rocket/measures`
says, but a step of it is one launch instead of thirty operations on tensors.

Arithmetic is in the order of the classes and without fused operations, so that decisions are theirs bit for bit.
"""
from __future__ import annotations

from collections.abc import Mapping

import torch
import warp as wp

from wavedash.rocket.constants import BACK_WALL_Y, FLIP_WINDOW, SIDE_WALL_X, TICK_RATE
from wavedash.rocket.measures.air_dribble import AirDribble
from wavedash.rocket.measures.common import WHEEL_REACH, WHEEL_SIDE
from wavedash.rocket.measures.dribble import LOW, UPRIGHT, Dribble
from wavedash.rocket.measures.flip_reset import NONE, FlipReset
from wavedash.rocket.measures.jump_challenge import NEVER, JumpChallenge
from wavedash.rocket.measures.turtle import Turtle
from wavedash.rocket.measures.wall import Wall
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.sim.package import log_if_compiling
from wavedash.rocket.state import GameState
from wavedash.tasks.part import Parts

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

Flags = wp.array2d(dtype=wp.bool)
Numbers = wp.array2d(dtype=wp.int32)


@wp.struct
class Seen:
    """What measures see of a step: views of the game state [E, C], and of that before the step."""

    clock: wp.array(dtype=wp.int32)
    goal: wp.array(dtype=wp.int32)
    ball: wp.array(dtype=wp.vec3)
    ball_velocity: wp.array(dtype=wp.vec3)
    ball_before: wp.array(dtype=wp.vec3)
    position: wp.array2d(dtype=wp.vec3)
    rotation: wp.array2d(dtype=wp.mat33)
    contact_normal: wp.array2d(dtype=wp.vec3)
    air_time: wp.array2d(dtype=wp.float32)
    """Seconds since the jump ended"""
    air_time_before: wp.array2d(dtype=wp.float32)
    flip_time: wp.array2d(dtype=wp.float32)
    team: wp.array2d(dtype=wp.int32)
    hit_tick: wp.array2d(dtype=wp.int32)
    touches: wp.array2d(dtype=wp.int32)
    present: wp.array2d(dtype=wp.bool)
    demolished: wp.array2d(dtype=wp.bool)
    on_ground: wp.array2d(dtype=wp.bool)
    has_contact: wp.array2d(dtype=wp.bool)
    flipped: wp.array2d(dtype=wp.bool)
    flipped_before: wp.array2d(dtype=wp.bool)
    double_jumped: wp.array2d(dtype=wp.bool)
    double_jumped_before: wp.array2d(dtype=wp.bool)


@wp.func
def is_alive(seen: Seen, e: int, c: int) -> bool:
    return seen.present[e, c] and not seen.demolished[e, c]


@wp.func
def is_touching(seen: Seen, e: int, c: int) -> bool:
    return seen.touches[e, c] > 0 and seen.present[e, c]


@wp.func
def others_touch(seen: Seen, e: int, c: int) -> bool:
    found = bool(False)
    for other in range(seen.team.shape[1]):
        if other != c and is_touching(seen, e, other):
            found = True
    return found


@wp.func
def up_axis(seen: Seen, e: int, c: int) -> wp.vec3:
    rotation = seen.rotation[e, c]
    return wp.vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])


@wp.func
def wheels_at_ball(seen: Seen, e: int, c: int) -> bool:
    way = seen.ball[e] - seen.position[e, c]
    distance = wp.length(way)
    return wp.dot(up_axis(seen, e, c), way) < wp.static(WHEEL_SIDE) * distance and distance < wp.static(WHEEL_REACH)


@wp.func
def stands(seen: Seen, e: int, c: int) -> bool:
    return seen.on_ground[e, c] and not wheels_at_ball(seen, e, c)


@wp.func
def attack(seen: Seen, e: int, c: int) -> float:
    return wp.where(seen.team[e, c] == 0, 1.0, -1.0)


@wp.kernel
def turtle(seen: Seen, down: Flags, missed: Flags, since: Numbers, limit: int, over: Flags, success: Flags, ticks: Numbers):
    e, c = wp.tid()
    wheels, alive = seen.on_ground[e, c], is_alive(seen, e, c)
    was_down, was_missed, passed = down[e, c], missed[e, c], seen.clock[e] - since[e, c]
    late = passed > limit
    decided = was_down and not was_missed and alive and (late or wheels)
    over[e, c] = decided
    success[e, c] = decided and wheels and not late
    ticks[e, c] = passed

    roof = seen.has_contact[e, c] and not wheels and wp.dot(up_axis(seen, e, c), seen.contact_normal[e, c]) < -0.5
    if roof and not was_down:
        since[e, c] = seen.clock[e]
    is_down = (was_down or roof) and not wheels and alive
    down[e, c] = is_down
    missed[e, c] = (was_missed or decided) and is_down


@wp.func
def at_wall(ball: wp.vec3, near: float, min_height: float) -> bool:
    return wp.abs(ball[0]) >= near and ball[2] >= min_height


@wp.func
def on_course(seen: Seen, e: int, c: int, width: float, square_speed: float) -> bool:
    ball, velocity, ahead = seen.ball[e], seen.ball_velocity[e], attack(seen, e, c)
    way, approach = wp.static(BACK_WALL_Y) - ahead * ball[1], ahead * velocity[1]
    fast = velocity[0] * velocity[0] + velocity[1] * velocity[1] >= square_speed
    return fast and approach > 0.0 and wp.abs(ball[0] * approach + velocity[0] * way) <= width * approach


@wp.kernel
def wall(seen: Seen, open: Flags, last: Numbers, near: float, min_height: float, width: float, square_speed: float,
         patience: int, over: Flags, success: Flags, ticks: Numbers):
    e, c = wp.tid()
    touch, was_open, clock = is_touching(seen, e, c), open[e, c], seen.clock[e]
    there = at_wall(seen.ball[e], near, min_height) or at_wall(seen.ball_before[e], near, min_height)
    tried = was_open or (touch and there)
    succeeded = tried and touch and on_course(seen, e, c, width, square_speed)
    idle = not touch and clock - last[e, c] > patience
    decided = succeeded or (was_open and (others_touch(seen, e, c) or idle))
    over[e, c] = decided
    success[e, c] = succeeded
    open[e, c] = tried and not decided
    if touch:
        last[e, c] = clock


@wp.kernel
def air_dribble(seen: Seen, count: Numbers, done: Flags, last: Numbers, hits: int, least: int, apart: int, patience: int,
                min_height: float, over: Flags, success: Flags, ticks: Numbers):
    e, c = wp.tid()
    clock, hits_before, was_done = seen.clock[e], count[e, c], done[e, c]
    touch, ago, exists = is_touching(seen, e, c), clock - last[e, c], hits_before > 0
    high = seen.position[e, c][2] > min_height and seen.ball[e][2] > min_height
    flies = high and is_alive(seen, e, c) and not stands(seen, e, c)
    goes_on = exists and flies and not others_touch(seen, e, c) and ago <= patience
    counts = touch and flies and (not goes_on or ago >= apart)
    hits_now = wp.where(goes_on, hits_before, 0) + wp.where(counts, 1, 0)
    failed = exists and not goes_on and not was_done and hits_before >= least
    succeeded = goes_on and counts and not was_done and hits_now >= hits
    over[e, c] = failed or succeeded
    success[e, c] = succeeded
    done[e, c] = goes_on and (was_done or succeeded)
    count[e, c] = hits_now
    if counts:
        last[e, c] = clock


@wp.func
def flip_left(flipped: bool, double_jumped: bool, air_time: float) -> bool:
    return not (flipped or double_jumped) and air_time < wp.static(FLIP_WINDOW)


@wp.kernel
def flip_reset(seen: Seen, open: Flags, flip: Numbers, within: int, min_height: float, over: Flags, success: Flags,
               ticks: Numbers):
    e, c = wp.tid()
    clock, was_open, alive = seen.clock[e], open[e, c], is_alive(seen, e, c)
    has = flip_left(seen.flipped[e, c], seen.double_jumped[e, c], seen.air_time[e, c])
    had = flip_left(seen.flipped_before[e, c], seen.double_jumped_before[e, c], seen.air_time_before[e, c])
    gained = has and not had and wheels_at_ball(seen, e, c) and seen.position[e, c][2] > min_height and alive
    began = flip[e, c]
    if was_open and seen.flipped[e, c] and began == wp.static(NONE):
        began = int(wp.rint(float(clock) - seen.flip_time[e, c] * wp.static(float(TICK_RATE))))
    used, tick = began != wp.static(NONE), seen.hit_tick[e, c]
    hit = is_touching(seen, e, c) and tick >= began and tick - began <= within
    succeeded = was_open and used and hit
    lost = gained or stands(seen, e, c) or not alive or seen.double_jumped[e, c] or (used and clock - began > within)
    decided = succeeded or (was_open and lost)
    over[e, c] = decided
    success[e, c] = succeeded
    if gained or decided:
        began = wp.static(NONE)
    flip[e, c] = began
    open[e, c] = gained or (was_open and not decided)


@wp.kernel
def jump_challenge(seen: Seen, open: Flags, last: Numbers, met: Numbers, together: int, after: int, min_height: float,
                   min_speed: float, over: Flags, success: Flags, ticks: Numbers):
    """One thread per arena, because cars ask for the hits of their opponents."""
    e = wp.tid()
    clock, seats = seen.clock[e], seen.team.shape[1]
    latest_blue, latest_orange = int(wp.static(NEVER)), int(wp.static(NEVER))
    for c in range(seats):
        if is_touching(seen, e, c) and not stands(seen, e, c) and seen.ball[e][2] > min_height:
            last[e, c] = clock
        if seen.team[e, c] == 0:
            latest_blue = wp.max(latest_blue, last[e, c])
        if seen.team[e, c] == 1:
            latest_orange = wp.max(latest_orange, last[e, c])
    for c in range(seats):
        mine, theirs = last[e, c], wp.where(seen.team[e, c] == 0, latest_orange, latest_blue)
        first, second = wp.min(mine, theirs), wp.max(mine, theirs)
        meets = second == clock and second - first <= together
        if meets:
            met[e, c] = clock
        opened = open[e, c] or meets
        decided = opened and (clock - met[e, c] >= after or seen.goal[e] >= 0)
        won = decided and attack(seen, e, c) * seen.ball_velocity[e][1] >= min_speed
        over[e, c] = decided
        success[e, c] = won
        open[e, c] = opened and not decided
        if decided:
            last[e, c] = wp.static(NEVER)


@wp.func
def carries(seen: Seen, e: int, c: int, reach: float, max_height: float) -> bool:
    way = seen.ball[e] - seen.position[e, c]
    above = way[2] >= wp.static(LOW) and way[2] <= max_height and wp.sqrt(way[0] * way[0] + way[1] * way[1]) <= reach
    return above and is_alive(seen, e, c) and seen.on_ground[e, c] and seen.rotation[e, c][2, 2] >= wp.static(UPRIGHT)


@wp.kernel
def dribble(seen: Seen, open: Flags, done: Flags, since: Numbers, last: Numbers, seconds: int, least: int, grace: int,
            reach: float, max_height: float, over: Flags, success: Flags, ticks: Numbers):
    e, c = wp.tid()
    clock, was_open, was_done, contested = seen.clock[e], open[e, c], done[e, c], others_touch(seen, e, c)
    carried = carries(seen, e, c, reach, max_height)
    goes_on = was_open and not contested and (carried or clock - last[e, c] <= grace)
    begins = carried and is_touching(seen, e, c) and not contested and not goes_on
    failed = was_open and not goes_on and not was_done and last[e, c] - since[e, c] >= least
    succeeded = goes_on and carried and not was_done and clock - since[e, c] >= seconds
    over[e, c] = failed or succeeded
    success[e, c] = succeeded
    done[e, c] = goes_on and (was_done or succeeded)
    open[e, c] = goes_on or begins
    if begins:
        since[e, c] = clock
    if carried:
        last[e, c] = clock


KERNELS = {
    Turtle: (turtle, ("down", "missed", "since"), lambda m: (m.limit,)),
    Wall: (wall, ("open", "last"), lambda m: (SIDE_WALL_X - m.reach, m.min_height, m.width, m.min_speed**2, m.patience)),
    AirDribble: (air_dribble, ("count", "done", "last"), lambda m: (m.hits, m.least, m.apart, m.patience, m.min_height)),
    FlipReset: (flip_reset, ("open", "flip"), lambda m: (m.within, m.min_height)),
    JumpChallenge: (jump_challenge, ("open", "last", "met"), lambda m: (m.together, m.after, m.min_height, m.min_speed)),
    Dribble: (dribble, ("open", "done", "since", "last"), lambda m: (m.seconds, m.least, m.grace, m.reach, m.max_height)),
}
"""By class: the kernel, the buffers that the measure remembers in, and its options, in the order of the kernel's arguments"""


class MeasuringKernels:
    """Those of `measures` that have a kernel, over the memory of a state and of the state before the step."""

    def __init__(self, measures: Parts[Measure], state: GameState, previous: GameState) -> None:
        self.device = state.device
        self.outcomes: dict[str, Outcome] = {}
        """The outcomes of the last step"""
        self.launches = []
        seen = _seen(state, previous)
        with log_if_compiling(f"{self.device}"):
            for name, measure in measures.items():
                if type(measure) in KERNELS:
                    over, success = (torch.zeros(state.shape, dtype=torch.bool, device=state.device) for _ in range(2))
                    ticks = torch.zeros(state.shape, dtype=torch.int32, device=state.device)
                    self.outcomes[name] = Outcome(over, success, ticks if measure.timed else None)
                    self.launches.append(_launch(measure, seen, over, success, ticks))

    def __call__(self) -> Mapping[str, Outcome]:
        """The outcomes of a step, which the next call overwrites."""
        stream = torch.cuda.current_stream(self.device) if self.device.type == "cuda" else None
        for launch in self.launches:
            launch.launch(stream)  # torch's stream will do: Warp reads nothing but its handle
        return self.outcomes


def _launch(measure: Measure, seen: Seen, *out: torch.Tensor):
    kernel, memory, options = KERNELS[type(measure)]
    remembered = [getattr(measure, name) for name in memory]
    threads = out[0].shape[:1] if kernel is jump_challenge else tuple(out[0].shape)
    return wp.launch(kernel, dim=threads, inputs=[seen, *map(wp.from_torch, remembered), *options(measure),
                                                  *map(wp.from_torch, out)],
                     device=wp.device_from_torch(out[0].device), record_cmd=True)


def _seen(state: GameState, previous: GameState) -> Seen:
    cars, before, seen = state.cars, previous.cars, Seen()
    plain = {"clock": state.game.tick, "goal": state.game.goal, "air_time": cars.air_time_since_jump,
             "air_time_before": before.air_time_since_jump, "flip_time": cars.flip_time, "team": cars.team,
             "hit_tick": cars.ball_hit_tick, "touches": state.events.touches, "present": cars.present,
             "demolished": cars.is_demoed, "on_ground": cars.on_ground, "has_contact": cars.has_contact,
             "flipped": cars.has_flipped, "flipped_before": before.has_flipped, "double_jumped": cars.has_double_jumped,
             "double_jumped_before": before.has_double_jumped}
    vectors = {"ball": state.ball.position, "ball_velocity": state.ball.velocity, "ball_before": previous.ball.position,
               "position": cars.position, "contact_normal": cars.contact_normal}
    for name, x in plain.items():
        setattr(seen, name, wp.from_torch(x))
    for name, x in vectors.items():
        setattr(seen, name, wp.from_torch(x, dtype=wp.vec3))
    seen.rotation = wp.from_torch(cars.rotation, dtype=wp.mat33)
    return seen
