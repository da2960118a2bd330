"""The shipped measures in a plain formulation, without leaving out or sharing any work: the reference of the fast ones."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import BACK_WALL_Y, FLIP_WINDOW, SIDE_WALL_X, TICK_RATE
from wavedash.rocket.measures.common import at_least, in_ticks
from wavedash.rocket.parts import Measure, Outcome
from wavedash.rocket.state import Cars, Events, GameState

WHEEL_REACH, WHEEL_SIDE, LOW, UPRIGHT, NONE, NEVER = 200.0, -0.7, 100.0, 0.9, -1, -(2**20)


def dot(a: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.vecdot(a, b)


def length(vector: Tensor) -> Tensor:
    return torch.linalg.vector_norm(vector, dim=-1)


def to_ball(state: GameState) -> Tensor:
    return state.ball.position.unsqueeze(1) - state.cars.position


def flip_left(cars: Cars) -> Tensor:
    return ~(cars.has_flipped | cars.has_double_jumped) & (cars.air_time_since_jump < FLIP_WINDOW)


def on_roof(cars: Cars) -> Tensor:
    return cars.has_contact & ~cars.on_ground & (dot(cars.up, cars.contact_normal) < -0.5)


def touches(state: GameState, events: Events) -> Tensor:
    return (events.touches > 0) & state.cars.present


def others(touch: Tensor) -> Tensor:
    return touch.sum(-1, keepdim=True) - touch.int() > 0


def wheels_at_ball(state: GameState) -> Tensor:
    way = to_ball(state)
    distance = length(way)
    return (dot(state.cars.up, way) < WHEEL_SIDE * distance) & (distance < WHEEL_REACH)


def stands(state: GameState) -> Tensor:
    return state.cars.on_ground & ~wheels_at_ball(state)


def attack(cars: Cars) -> Tensor:
    return torch.where(cars.team == 0, 1.0, -1.0)


class Turtle(Measure):

    timed = True
    down: Tensor
    missed: Tensor
    since: Tensor

    def __init__(self, window: float = 3.0) -> None:
        self.limit = in_ticks("window", window)

    def bind(self, state: GameState) -> None:
        self.register_buffer("down", torch.zeros_like(state.cars.present))
        self.register_buffer("missed", torch.zeros_like(state.cars.present))
        self.register_buffer("since", torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        begins = arenas.unsqueeze(-1)
        self.down.copy_(torch.where(begins, on_roof(state.cars), self.down))
        self.missed.logical_and_(~begins)
        self.since.copy_(torch.where(begins, state.clock.unsqueeze(-1), self.since))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        cars, clock = state.cars, state.clock.unsqueeze(-1)
        ticks = clock - self.since
        late, wheels = ticks > self.limit, cars.on_ground
        over = self.down & ~self.missed & cars.alive & (late | wheels)
        success = over & wheels & ~late

        roof = on_roof(cars)
        self.since.copy_(torch.where(roof & ~self.down, clock, self.since))
        self.missed.logical_or_(over)
        self.down.logical_or_(roof).logical_and_(~wheels & cars.alive)
        self.missed.logical_and_(self.down)
        return Outcome(over, success, ticks)


class Wall(Measure):

    open: Tensor
    last: Tensor

    def __init__(self, reach: float = 250.0, min_height: float = 300.0, width: float = 1800.0, min_speed: float = 800.0,
                 patience: float = 0.5) -> None:
        self.reach, self.min_height = at_least("reach", reach, 0.0), at_least("min_height", min_height, 0.0)
        self.width, self.min_speed = at_least("width", width, 0.0), at_least("min_speed", min_speed, 0.0)
        self.patience = in_ticks("patience", patience)

    def bind(self, state: GameState) -> None:
        self.register_buffer("open", torch.zeros_like(state.cars.present))
        self.register_buffer("last", torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.open.logical_and_(~arenas.unsqueeze(-1))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        touch, clock = touches(state, events), state.clock.unsqueeze(-1)
        at_wall = (self._at_wall(state) | self._at_wall(previous)).unsqueeze(-1)
        tried = self.open | (touch & at_wall)
        success = tried & touch & self._on_course(state)
        idle = ~touch & (clock - self.last > self.patience)
        over = success | (self.open & (others(touch) | idle))
        self.open.copy_(tried & ~over)
        self.last.copy_(torch.where(touch, clock, self.last))
        return Outcome(over, success)

    def _at_wall(self, state: GameState) -> Tensor:
        """[E] bool"""
        position = state.ball.position
        return (position[:, 0].abs() >= SIDE_WALL_X - self.reach) & (position[:, 2] >= self.min_height)

    def _on_course(self, state: GameState) -> Tensor:
        """[E, C] bool: the ball moves toward the goal that the car attacks."""
        x, y, _ = state.ball.position.unsqueeze(1).unbind(-1)  # [E, 1]
        along_x, along_y, _ = state.ball.velocity.unsqueeze(1).unbind(-1)
        ahead = attack(state.cars)
        way, approach = BACK_WALL_Y - ahead * y, ahead * along_y
        fast = along_x.square() + along_y.square() >= self.min_speed**2
        return fast & (approach > 0) & ((x * approach + along_x * way).abs() <= self.width * approach)


class AirDribble(Measure):

    count: Tensor
    done: Tensor
    last: Tensor

    def __init__(self, hits: int = 3, least: int = 2, apart: float = 0.2, patience: float = 1.0,
                 min_height: float = 250.0) -> None:
        self.hits, self.least = at_least("hits", hits, 2), at_least("least", least, 1)
        self.apart, self.patience = in_ticks("apart", apart), in_ticks("patience", patience)
        self.min_height = at_least("min_height", min_height, 0.0)

    def bind(self, state: GameState) -> None:
        self.register_buffer("done", torch.zeros_like(state.cars.present))
        for name in ("count", "last"):
            self.register_buffer(name, torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.count.mul_(~arenas.unsqueeze(-1))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        touch, clock, flies = touches(state, events), state.clock.unsqueeze(-1), self._flies(state)
        ago = clock - self.last
        exists = self.count > 0
        goes_on = exists & flies & ~others(touch) & (ago <= self.patience)
        counts = touch & flies & (~goes_on | (ago >= self.apart))
        count = self.count * goes_on + counts
        failure = exists & ~goes_on & ~self.done & (self.count >= self.least)
        success = goes_on & counts & ~self.done & (count >= self.hits)

        self.done.copy_(goes_on & (self.done | success))
        self.count.copy_(count)
        self.last.copy_(torch.where(counts, clock, self.last))
        return Outcome(failure | success, success)

    def _flies(self, state: GameState) -> Tensor:
        """[E, C] bool: car and ball are in the air."""
        high = (state.cars.position[..., 2] > self.min_height) & (state.ball.position[:, 2:] > self.min_height)
        return high & state.cars.alive & ~stands(state)


class FlipReset(Measure):

    open: Tensor
    flip: Tensor

    def __init__(self, within: float = 0.65, min_height: float = 250.0) -> None:
        self.within, self.min_height = in_ticks("within", within), at_least("min_height", min_height, 0.0)

    def bind(self, state: GameState) -> None:
        self.register_buffer("open", torch.zeros_like(state.cars.present))
        self.register_buffer("flip", torch.full_like(state.cars.team, NONE))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.open.logical_and_(~arenas.unsqueeze(-1))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        cars, clock = state.cars, state.clock.unsqueeze(-1)
        high = cars.position[..., 2] > self.min_height
        gained = flip_left(cars) & ~flip_left(previous.cars) & wheels_at_ball(state) & high & cars.alive

        flips = self.open & cars.has_flipped & (self.flip == NONE)
        began = (clock - cars.flip_time * TICK_RATE).round().int()  # `flip_time` is one tick after the first tick of a flip
        flip = torch.where(flips, began, self.flip)
        used = flip != NONE
        hit = touches(state, events) & (cars.ball_hit_tick >= flip) & (cars.ball_hit_tick - flip <= self.within)
        success = self.open & used & hit
        lost = gained | stands(state) | ~cars.alive | cars.has_double_jumped | (used & (clock - flip > self.within))
        over = success | (self.open & lost)

        self.flip.copy_(torch.where(gained | over, NONE, flip))
        self.open.copy_(gained | (self.open & ~over))
        return Outcome(over, success)


class JumpChallenge(Measure):

    open: Tensor
    last: Tensor
    met: Tensor

    def __init__(self, together: float = 0.2, after: float = 0.3, min_height: float = 150.0, min_speed: float = 200.0) -> None:
        self.together, self.after = in_ticks("together", together), in_ticks("after", after)
        self.min_height, self.min_speed = at_least("min_height", min_height, 0.0), at_least("min_speed", min_speed, 0.0)

    def bind(self, state: GameState) -> None:
        self.register_buffer("open", torch.zeros_like(state.cars.present))
        self.register_buffer("last", torch.full_like(state.cars.team, NEVER))
        self.register_buffer("met", torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.open.logical_and_(~arenas.unsqueeze(-1))
        self.last.masked_fill_(arenas.unsqueeze(-1), NEVER)

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        cars, clock = state.cars, state.clock.unsqueeze(-1)
        high = state.ball.position[:, 2:] > self.min_height
        self.last.copy_(torch.where(touches(state, events) & ~stands(state) & high, clock, self.last))
        theirs = torch.where(cars.team == 0, self._latest(cars.team == 1), self._latest(cars.team == 0))
        first, second = torch.minimum(self.last, theirs), torch.maximum(self.last, theirs)
        meet = (second == clock) & (second - first <= self.together)

        met = torch.where(meet, clock, self.met)
        opened = self.open | meet
        over = opened & ((clock - met >= self.after) | (state.game.goal >= 0).unsqueeze(-1))
        success = over & (attack(cars) * state.ball.velocity[:, 1:2] >= self.min_speed)
        self.met.copy_(met)
        self.open.copy_(opened & ~over)
        self.last.masked_fill_(over, NEVER)
        return Outcome(over, success)

    def _latest(self, team: Tensor) -> Tensor:
        """[E, 1]: the clock of the last hit in the air of the cars in `team` [E, C]."""
        return torch.where(team, self.last, NEVER).amax(-1, keepdim=True)


class Dribble(Measure):

    open: Tensor
    done: Tensor
    since: Tensor
    last: Tensor

    def __init__(self, seconds: float = 2.0, least: float = 0.3, grace: float = 0.2, reach: float = 110.0,
                 max_height: float = 220.0) -> None:
        self.seconds, self.least, self.grace = in_ticks("seconds", seconds), in_ticks("least", least), in_ticks("grace", grace)
        self.reach, self.max_height = at_least("reach", reach, 0.0), at_least("max_height", max_height, LOW)

    def bind(self, state: GameState) -> None:
        for name in ("open", "done"):
            self.register_buffer(name, torch.zeros_like(state.cars.present))
        for name in ("since", "last"):
            self.register_buffer(name, torch.zeros_like(state.cars.team))

    def begin(self, state: GameState, arenas: Tensor) -> None:
        self.open.logical_and_(~arenas.unsqueeze(-1))

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Outcome:
        touch, clock, carries = touches(state, events), state.clock.unsqueeze(-1), self._carries(state)
        contested = others(touch)
        goes_on = self.open & ~contested & (carries | (clock - self.last <= self.grace))
        begins = carries & touch & ~contested & ~goes_on
        failure = self.open & ~goes_on & ~self.done & (self.last - self.since >= self.least)
        success = goes_on & carries & ~self.done & (clock - self.since >= self.seconds)

        self.done.copy_(goes_on & (self.done | success))
        self.open.copy_(goes_on | begins)
        self.since.copy_(torch.where(begins, clock, self.since))
        self.last.copy_(torch.where(carries, clock, self.last))
        return Outcome(failure | success, success)

    def _carries(self, state: GameState) -> Tensor:
        """[E, C] bool"""
        cars, way = state.cars, to_ball(state)
        above = (way[..., 2] >= LOW) & (way[..., 2] <= self.max_height) & (length(way[..., :2]) <= self.reach)
        return above & cars.alive & cars.on_ground & (cars.up[..., 2] >= UPRIGHT)
