"""AdvancedObsPlus: everything a car can know, as its team sees the field and as its driver sees it.

Work memory holds one row per number and one column per car, so that every operation runs over long contiguous rows; the
observation is a selection of these rows, turned over at the end. All views are made once, in `bind`: on a CPU, a step of few
arenas costs mostly the number of calls. Views are plain attributes; the memory that they look at is declared in buffers.
"""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.constants import BACK_WALL_Y, BIG_PAD_SECONDS, FLIP_WINDOW, GOAL_HEIGHT, PADS
from wavedash.rocket.observations.advanced_rows import BODY, INNER, MOTION, PRESENT, TURNS, UNIT, WHEELS, Rows
from wavedash.rocket.observations.columns import Columns
from wavedash.rocket.observations.near_pads import NearPads
from wavedash.rocket.observations.seating import Seating, check_team_size
from wavedash.rocket.parts import Observation
from wavedash.rocket.state import GameState


class AdvancedObsPlus(Observation):
    """Own car, ball, all other cars, goals and boost pads: in the field's coordinates as the own team sees it (+y is always
    toward the other goal), and in the car's own (forward, right, up), where a ball on the left always looks the same.
    Numbers are about -1 to 1: 1 is 5120 uu, 2300 uu/s, 5.5 radians/s, 100 boost, 10 s of a pad's timer.

    In order (`names` tells the name of every number):
    - own car: position, forward, up, velocity, angular velocity; the last two in its own frame too; speed and spin; boost;
      has_flip and other flags; which wheels touch; timers of boost, handbrake, jump, flip and respawn
    - ball: position, velocity, spin; position and velocity relative to the car, in both frames; distance and speeds
    - goals, the other one first: place in the car's frame; distances to the car and to the ball
    - other cars, team first, in seat order: present, position, forward, up, velocity, angular velocity; relative position and
      velocity in the own frame, distance; boost and flags. Places without a car are zeros.
    - pads nearest to the car and to the ball: place in the car's frame, distance, big, timer; then all 34 timers
    - the controls that the car chose last

    frames: how many steps it sees, the newest first. 1 is right for policies with memory; 2 to 4 can help those without.
    team_size: places per team, so that the same policy plays 1v1 up to this size; fewer make the network smaller.
    pads: how many near the car, and how many near the ball. timers: whether all 34 timers are seen.
    """

    table: Tensor
    own: Tensor
    rows: Tensor
    kept: Tensor
    both_out: Tensor
    gathered: Tensor
    fresh: Tensor
    """[E, 1, 1, 1]: an episode began since the last observation"""
    history: Tensor
    """[E, C, frames, numbers]: the latest frames, the newest first; where only one is seen, none"""

    def __init__(self, frames: int = 1, team_size: int = 3, pads: int = 4, timers: bool = True):
        if frames < 1 or not 0 <= pads <= len(PADS):
            raise UserError(f"AdvancedObsPlus needs frames of at least 1 and pads of 0 to {len(PADS)}, got {frames} and {pads}")
        self.frames, self.team_size, self.pads = frames, team_size, pads
        self.layout = Rows(team_size, pads)
        self.seen = self.layout.seen(timers)

    def size(self, seats: int) -> int:
        check_team_size(seats, self.team_size, "team_size")
        return self.frames * len(self.seen)

    def names(self, seats: int) -> list[str]:
        """A name for every number, such as `ball.relative_position.local.forward`; `@1` is that of one step earlier."""
        check_team_size(seats, self.team_size, "team_size")
        return [f"{name}@{age}" if age else name for age in range(self.frames) for name in self.seen]

    def bind(self, state: GameState) -> None:
        check_team_size(state.seats, self.team_size, "team_size")
        self._lay_out_tables(state)
        self._lay_out_rows(state)
        device = state.memory.device
        goals = [[0.0, 0.0], [BACK_WALL_Y, -BACK_WALL_Y], [GOAL_HEIGHT / 2, GOAL_HEIGHT / 2]]
        self.goals = (torch.tensor(goals, device=device) / UNIT)[..., None, None]
        pads = [[pad.x for pad in PADS], [pad.y for pad in PADS], [pad.z for pad in PADS], [pad.big * UNIT for pad in PADS]]
        self.pad_facts = torch.tensor(pads, device=device) / UNIT
        self.near_pads = NearPads(self.pads, UNIT, device)
        self.turns = torch.tensor([[1.0, turn] for turn in TURNS], device=device)  # [motion, teams]
        self.zero = torch.zeros((), device=device)
        if self.frames > 1:
            self.register_buffer("fresh", torch.ones(state.arenas, 1, 1, 1, dtype=torch.bool, device=device))
            self.register_buffer("history", torch.zeros(*state.shape, self.frames, len(self.seen), device=device))

    def _lay_out_tables(self, state: GameState) -> None:
        """Where rows are gathered from: an arena's cars, nobody, its ball; and what a car knows of itself alone."""
        E, C, device = state.arenas, state.seats, state.memory.device
        self.seating = Seating(C, self.team_size, device, ball=True)
        self.first_row = torch.arange(E, device=device).unsqueeze(-1) * (C + 2)
        table = torch.zeros(E, C + 2, len(BODY), device=device)
        table[:, self.seating.ball, PRESENT] = 1.0
        self.register_buffer("table", table.flatten(0, 1), persistent=False)
        self.car_moves = table[:, :C, :PRESENT]
        self.car_flags = table[:, :C, PRESENT:].view(E, C, -1, 4)  # whole words of flags; the last of them is the next
        self.car_has_flip = table[:, :C, -1]
        self.ball_moves = table[:, self.seating.ball, : len(MOTION)]
        self.move_scale = torch.tensor([scale for _, scale in BODY[:PRESENT]], device=device)
        self.ball_scale = self.move_scale[: len(MOTION)]
        own = torch.zeros(E, C, len(INNER) + len(WHEELS) + 8, device=device)
        self.register_buffer("own", own, persistent=False)
        self.own_table = own.flatten(0, 1).t()
        self.timers, self.wheels, self.previous = own.split_with_sizes([len(INNER), len(WHEELS), 8], -1)
        self.timer_scale = torch.tensor([scale for _, scale in INNER], device=device)

        self.moves_of_cars = Columns(state, "cars", "position", "boost")
        self.flags_of_cars = Columns(state, "cars", "present", "has_contact")
        self.timers_of_cars = Columns(state, "cars", "boost_time", "demo_timer")
        self.moves_of_ball = Columns(state, "ball", "position", "angular_velocity")

    def _lay_out_rows(self, state: GameState) -> None:
        """The work memory, and the views of it that `build` reads and writes."""
        cars, device = state.arenas * state.seats, state.memory.device
        blocks = self.layout.worked_out()
        names = [name for block in blocks.values() for name in block]
        self.keep = torch.tensor([names.index(name) for name in self.seen], device=device)
        self.register_buffer("rows", torch.zeros(len(names), cars, device=device), persistent=False)
        self.register_buffer("kept", torch.zeros(len(self.keep), cars, device=device), persistent=False)
        self.register_buffer("both_out", torch.zeros(2, cars, len(self.keep), device=device), persistent=False)
        self.frames_out = self.both_out.unbind(0)
        shape = cars * len(self.layout.bodies), len(BODY)
        self.register_buffer("gathered", torch.zeros(shape, device=device), persistent=False)
        sizes = [len(block) for block in blocks.values()]
        (bodies, self.inner, vectors, local, self.length, self.near_big, self.near_timer,
         self.pad_timer) = self.rows.split_with_sizes(sizes)
        self.pad_timer_by_arena = self.pad_timer.view(-1, state.arenas, state.seats)

        self.bodies = bodies.view(len(BODY), -1)
        body = bodies.view(len(BODY), -1, cars)
        self.motion = body[: len(MOTION)]
        self.axes = body[3:12, 0].view(3, 3, 1, cars).unbind(0)  # of the own car, along x, y, z
        self.position = body[:3, :1]
        self.own_and_ball_position = body[:3, :2].unsqueeze(1)
        self.own_and_ball_xy = body[:2, :2].flatten(1)
        self.own_and_ball_moves = body[12:18].view(2, 3, -1, cars)[:, :, :2]
        course = body[:24].view(2, 12, -1, cars)[:, :3]  # [position and velocity, xyz, bodies, cars]
        self.own_course, self.other_courses = course[:, :, :1], course[:, :, 1:]
        self.other_exists = body[PRESENT, 1:]

        others = 2 * len(self.layout.bodies[1:])
        vector = vectors.view(3, -1, cars)
        moves, relative, goals, self.to_pads = vector.split_with_sizes([4, others, 4, 2 * self.pads], 1)
        self.to_goals = goals.view(3, 2, 2, cars)
        self.moves = moves.view(3, 2, 2, cars).transpose(0, 1)
        self.relative = relative.view(3, 2, -1, cars).transpose(0, 1)
        self.vector = vector.unbind(0)
        self.local = local.view(3, -1, cars)

    def begin(self, state: GameState, arenas: Tensor) -> None:
        if self.frames > 1:
            self.fresh |= arenas.view(-1, 1, 1, 1)

    def build(self, state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        """[E, C, size], in memory that the call after the next writes again."""
        self._gather_bodies(state)
        self._gather_own(state, controls)
        self._relate()
        self._find_pads(state)
        self._look_from_inside()
        torch.index_select(self.rows, 0, self.keep, out=self.kept)
        self.frames_out = self.frames_out[::-1]
        frame = self.frames_out[0].copy_(self.kept.t()).view(state.arenas, state.seats, -1)
        return frame if self.frames == 1 else self._stacked(frame, stepped)

    def _gather_bodies(self, state: GameState) -> None:
        """Who is seen where, in the perspective of the own team."""
        cars = state.cars
        torch.mul(self.moves_of_cars(state), self.move_scale, out=self.car_moves)
        torch.mul(self.moves_of_ball(state), self.ball_scale, out=self.ball_moves)
        self.car_flags.copy_(self.flags_of_cars(state))
        no_flip = cars.on_ground | cars.has_flipped | cars.has_double_jumped
        torch.gt(cars.air_time_since_jump < FLIP_WINDOW, no_flip, out=self.car_has_flip)
        places = self.seating(cars) + self.first_row  # [bodies, E, C]
        self.bodies.copy_(torch.index_select(self.table, 0, places.flatten(), out=self.gathered).t())
        self.motion.mul_(self.turns.index_select(1, cars.team.flatten()).unsqueeze(1))

    def _gather_own(self, state: GameState, controls: Tensor) -> None:
        torch.mul(self.timers_of_cars(state), self.timer_scale, out=self.timers).clamp_(max=1.0)
        self.wheels.copy_(state.cars.wheel_contact)
        self.previous.copy_(controls)
        torch.where(state.cars.present.flatten(), self.own_table, self.zero, out=self.inner)

    def _relate(self) -> None:
        """Vectors from the car to the others and the goals; to a place without a car it is zero."""
        self.moves.copy_(self.own_and_ball_moves)
        torch.addcmul(self.other_courses, self.other_exists, self.own_course, value=-1, out=self.relative)
        torch.sub(self.goals, self.own_and_ball_position, out=self.to_goals)

    def _find_pads(self, state: GameState) -> None:
        timers = (state.pads.timer * (1 / BIG_PAD_SECONDS)).t().unsqueeze(-1)  # [34, E, 1]
        torch.where(state.cars.team == 1, timers.flip(0), timers, out=self.pad_timer_by_arena)
        near = self.near_pads(self.own_and_ball_xy).view(self.near_timer.shape)
        facts = self.pad_facts.index_select(1, near.flatten()).view(4, *near.shape)
        torch.sub(facts[:3], self.position, out=self.to_pads)
        self.near_big.copy_(facts[3])
        torch.gather(self.pad_timer, 0, near, out=self.near_timer)

    def _look_from_inside(self) -> None:
        """All vectors in the car's frame, and their lengths."""
        x, y, z = self.vector
        along_x, along_y, along_z = self.axes
        torch.mul(along_x, x, out=self.local).addcmul_(along_y, y).addcmul_(along_z, z)
        torch.mul(x, x, out=self.length).addcmul_(y, y).addcmul_(z, z).sqrt_()

    def _stacked(self, frame: Tensor, stepped: bool) -> Tensor:
        """The newest frame before the last ones; where an episode begins, only this one."""
        newest = frame.unsqueeze(2)
        frames = torch.cat([newest, self.history[:, :, :-1]], 2) if stepped else self.history
        frames = torch.where(self.fresh, newest, frames)
        self.history.copy_(frames)
        self.fresh.zero_()
        return frames.flatten(2)
