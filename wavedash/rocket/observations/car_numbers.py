"""CarNumbers: works out every number of `names.py` for all cars at once.

Its memory holds one row per number and one column per car, so that every operation runs over long contiguous rows. All views of
it are made once: on a CPU, a step of few arenas costs mostly the number of calls. Views are plain attributes; the memory under
them is declared in buffers.
"""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.rocket.constants import BACK_WALL_Y, BIG_PAD_SECONDS, FLIP_WINDOW, GOAL_HEIGHT, PADS
from wavedash.rocket.observations.columns import Columns
from wavedash.rocket.observations.names import BODY, INNER, MOTION, PRESENT, TURNS, UNIT, WHEELS, Names
from wavedash.rocket.observations.near_pads import NearPads
from wavedash.rocket.observations.seating import Seating
from wavedash.rocket.state import CONTROLS, GameState
from wavedash.tasks.direct import DirectModule


class CarNumbers(DirectModule):
    """`rows` [numbers, E * C], in the order of `names` and then of `more`, whose rows somebody else writes."""

    rows: Tensor
    more: Tensor
    table: Tensor
    own: Tensor
    gathered: Tensor

    def __init__(self, names: Names, more: int, state: GameState):
        super().__init__()
        self.names = names
        self._lay_out_tables(state)
        self._lay_out_rows(state, more)
        device = state.memory.device
        goals = [[0.0, 0.0], [BACK_WALL_Y, -BACK_WALL_Y], [GOAL_HEIGHT / 2, GOAL_HEIGHT / 2]]
        self.goals = (torch.tensor(goals, device=device) / UNIT)[..., None, None]
        facts = [[pad.x for pad in PADS], [pad.y for pad in PADS], [pad.z for pad in PADS], [pad.big * UNIT for pad in PADS]]
        self.pad_facts = torch.tensor(facts, device=device) / UNIT
        self.near_pads = NearPads(names.pads, UNIT, device)
        self.turns = torch.tensor([[1.0, turn] for turn in TURNS], device=device)  # [motion, teams]
        self.zero = torch.zeros((), device=device)

    def _lay_out_tables(self, state: GameState) -> None:
        """Where rows are gathered from: an arena's cars, an empty place, its ball; and what only the own car knows."""
        E, C, device = state.arenas, state.seats, state.memory.device
        self.seating = Seating(C, self.names.team_size, device, ball=True)
        self.first_row = torch.arange(E, device=device).unsqueeze(-1) * (C + 2)
        table = torch.zeros(E, C + 2, len(BODY), device=device)
        table[:, self.seating.ball, PRESENT] = 1.0
        self.register_buffer("table", table.flatten(0, 1), persistent=False)
        self.car_moves = table[:, :C, :PRESENT]
        self.car_flags = table[:, :C, PRESENT:].view(E, C, -1, 4)  # whole words of flags; `has_flip` overwrites the padding
        self.car_has_flip = table[:, :C, -1]
        self.ball_moves = table[:, self.seating.ball, : len(MOTION)]
        self.move_scale = torch.tensor([scale for _, scale in BODY[:PRESENT]], device=device)
        self.ball_scale = self.move_scale[: len(MOTION)]
        sizes = [len(INNER), len(WHEELS), len(CONTROLS)]
        own = torch.zeros(E, C, sum(sizes), device=device)
        self.register_buffer("own", own, persistent=False)
        self.own_table = own.flatten(0, 1).t()
        self.timers, self.wheels, self.previous = own.split_with_sizes(sizes, -1)
        self.timer_scale = torch.tensor([scale for _, scale in INNER], device=device)

        self.moves_of_cars = Columns(state, "cars", "position", "boost")
        self.flags_of_cars = Columns(state, "cars", "present", "has_contact")
        self.timers_of_cars = Columns(state, "cars", "boost_time", "demo_timer")
        self.moves_of_ball = Columns(state, "ball", "position", "angular_velocity")

    def _lay_out_rows(self, state: GameState, more: int) -> None:
        """The rows, and the views of them that are read and written."""
        cars, device = state.arenas * state.seats, state.memory.device
        sizes = [*map(len, self.names.blocks.values()), more]
        self.register_buffer("rows", torch.zeros(sum(sizes), cars, device=device), persistent=False)
        shape = cars * len(self.names.bodies), len(BODY)
        self.register_buffer("gathered", torch.zeros(shape, device=device), persistent=False)
        (bodies, self.inner, vectors, local, self.length, self.near_big, self.near_timer, self.pad_timer,
         self.more) = self.rows.split_with_sizes(sizes)
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

        others = 2 * len(self.names.bodies[1:])
        vector = vectors.view(3, -1, cars)
        moves, relative, goals, self.to_pads = vector.split_with_sizes([4, others, 4, len(self.names.near_pads)], 1)
        self.to_goals = goals.view(3, 2, 2, cars)
        self.moves = moves.view(3, 2, 2, cars).transpose(0, 1)
        self.relative = relative.view(3, 2, -1, cars).transpose(0, 1)
        self.vector = vector.unbind(0)
        self.local = local.view(3, -1, cars)

    def update(self, state: GameState, controls: Tensor) -> None:
        """Write all rows but `more`."""
        self._gather_bodies(state)
        self._gather_own(state, controls)
        self._relate()
        self._find_pads(state)
        self._turn_into_car_frame()

    def _gather_bodies(self, state: GameState) -> None:
        """Put every body into its place, in the perspective of the own team."""
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
        """Vectors from the car to the other bodies and to the goals. A vector to an empty place is zero."""
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

    def _turn_into_car_frame(self) -> None:
        """All vectors in the car's frame, and their lengths."""
        x, y, z = self.vector
        along_x, along_y, along_z = self.axes
        torch.mul(along_x, x, out=self.local).addcmul_(along_y, y).addcmul_(along_z, z)
        torch.mul(x, x, out=self.length).addcmul_(y, y).addcmul_(z, z).sqrt_()
