"""Random but plausible states: cars drive, fly, ride walls, lie on their roofs, flip, are demolished, or are absent."""
from __future__ import annotations

import math

import torch
from torch import Tensor

from wavedash.rocket.constants import BALL_REST_Z, CAR_REST_Z, FLIP_SECONDS, FLIP_WINDOW, PADS, SIDE_WALL_X
from wavedash.rocket.geometry import rotation, vector
from wavedash.rocket.state import GameState


def random_state(
    arenas: int, blue: int, orange: int, seed: int, device: torch.device | str = "cpu", empty: float = 0.15,
) -> GameState:
    """The same seed gives the same states. A share `empty` of the seats is empty, but never the first of a team."""
    dice = Dice(arenas, blue + orange, seed)
    state = GameState.empty(arenas, blue + orange)
    state.clear_events()
    _place_ball(state, dice)
    _place_cars(state, dice, blue, empty)
    _drive(state, dice)
    _pads_and_game(state, dice)
    _events(state, dice)
    return state.to(device)


class Dice:
    """Random numbers [E, C] (per car) or [E] (per arena)."""

    def __init__(self, arenas: int, seats: int, seed: int):
        self.per_arena, self.per_car = (arenas,), (arenas, seats)
        self.generator = torch.Generator().manual_seed(seed)

    def uniform(self, low: float, high: float, shape: tuple[int, ...] | None = None) -> Tensor:
        return low + (high - low) * torch.rand(shape or self.per_car, generator=self.generator)

    def chance(self, share: float, shape: tuple[int, ...] | None = None) -> Tensor:
        return torch.rand(shape or self.per_car, generator=self.generator) < share

    def number(self, low: int, high: int, shape: tuple[int, ...] | None = None) -> Tensor:
        return torch.randint(low, high + 1, shape or self.per_car, generator=self.generator)

    def direction(self, shape: tuple[int, ...] | None = None) -> Tensor:
        return torch.nn.functional.normalize(torch.randn((*(shape or self.per_car), 3), generator=self.generator), dim=-1)

    def angles(self, shape: tuple[int, ...] | None = None) -> Tensor:
        return self.uniform(-math.pi, math.pi, shape)


def _place_ball(state: GameState, dice: Dice) -> None:
    ball, each = state.ball, dice.per_arena
    rolls = dice.chance(0.4, each)
    height = torch.where(rolls, torch.tensor(BALL_REST_Z), dice.uniform(BALL_REST_Z, 1900, each))
    ball.position.copy_(vector(dice.uniform(-3900, 3900, each), dice.uniform(-4900, 4900, each), height))
    ball.rotation.copy_(rotation(dice.angles(each), dice.angles(each) / 2, dice.angles(each)))
    ball.velocity.copy_(dice.direction(each) * dice.uniform(0, 4500, each).unsqueeze(-1))
    ball.velocity[:, 2].mul_(~rolls)
    ball.angular_velocity.copy_(dice.direction(each) * dice.uniform(0, 6, each).unsqueeze(-1))


def _place_cars(state: GameState, dice: Dice, blue: int, empty: float) -> None:
    cars = state.cars
    cars.team.copy_(torch.arange(state.seats) >= blue)
    cars.hitbox.copy_(dice.number(0, 5))
    cars.present.copy_(~dice.chance(empty))
    cars.present[:, [0, min(blue, state.seats - 1)]] = True

    place = dice.number(0, 9)  # 0-3 ground, 4 wall, 5 roof, 6-9 air
    ground, wall, roof, air = place < 4, place == 4, place == 5, place > 5
    height = torch.where(ground, torch.tensor(CAR_REST_Z), torch.where(roof, torch.tensor(50.0), dice.uniform(60, 1900)))
    x = torch.where(wall, SIDE_WALL_X - CAR_REST_Z, dice.uniform(-3800, 3800))
    cars.position.copy_(vector(x, dice.uniform(-4800, 4800), height))
    free = rotation(dice.angles(), dice.angles() / 2, dice.angles())
    flat = rotation(dice.angles())
    upside_down = rotation(dice.angles(), 0.0, dice.uniform(2.85, math.pi))
    on_wall = torch.linalg.matmul(  # the roof points to -x
        torch.tensor([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), rotation(dice.angles()))
    for where, turned in ((air, free), (ground, flat), (roof, upside_down), (wall, on_wall)):
        cars.rotation.copy_(torch.where(where[..., None, None], turned, cars.rotation))

    speed = torch.where(roof, dice.uniform(0, 300), dice.uniform(-1200, 2300)).unsqueeze(-1)
    drift = dice.direction() * dice.uniform(0, 1200).unsqueeze(-1) * air.unsqueeze(-1)
    velocity = cars.forward * speed + drift
    too_fast = (velocity.norm(dim=-1, keepdim=True) / 2300).clamp(min=1)
    cars.velocity.copy_(velocity / too_fast)
    cars.angular_velocity.copy_(torch.where(air.unsqueeze(-1), dice.direction() * dice.uniform(0, 5.5).unsqueeze(-1),
                                            cars.up * dice.uniform(-2, 2).unsqueeze(-1)))
    driving = ground | wall
    cars.wheel_contact.copy_(driving.unsqueeze(-1).expand(*driving.shape, 4))
    three = driving & dice.chance(0.1)
    cars.wheel_contact[..., 2].logical_and_(~three)
    cars.on_ground.copy_(driving)
    cars.has_contact.copy_(roof)
    cars.contact_normal[..., 2].copy_(roof)


def _drive(state: GameState, dice: Dice) -> None:
    """Writes boost, buttons, jumps, flips and demolitions, each consistent with the place of the car."""
    cars = state.cars
    nothing = torch.zeros(())
    cars.boost.copy_(torch.where(dice.chance(0.2), nothing, dice.uniform(0, 100)))
    boosting = dice.chance(0.3) & (cars.boost > 0)
    cars.boost_time.copy_(torch.where(boosting, dice.uniform(0.01, 1), nothing))
    fast = cars.velocity.norm(dim=-1) > 2200
    cars.is_supersonic.copy_(fast)
    cars.supersonic_time.copy_(torch.where(fast, dice.uniform(0.01, 2), nothing))
    cars.handbrake.copy_(torch.where(dice.chance(0.3), dice.uniform(0, 1), nothing))
    cars.controls[..., :5].copy_(dice.number(-1, 1, (*dice.per_car, 5)))
    cars.controls[..., 5:].copy_(dice.number(0, 1, (*dice.per_car, 3)))

    air = ~cars.on_ground & ~cars.has_contact
    jumped = air & dice.chance(0.7)
    rising = jumped & dice.chance(0.2)
    flipped = jumped & ~rising & dice.chance(0.4)
    doubled = jumped & ~rising & ~flipped & dice.chance(0.2)
    since_jump = torch.where(jumped & ~rising, dice.uniform(0.01, 2), nothing)
    cars.has_jumped.copy_(jumped)
    cars.is_jumping.copy_(rising)
    cars.jump_time.copy_(torch.where(jumped, torch.where(rising, dice.uniform(0, 0.2), since_jump + 0.2), nothing))
    cars.air_time_since_jump.copy_(since_jump)
    cars.air_time.copy_(torch.where(air, since_jump + dice.uniform(0, 1), nothing))
    cars.has_double_jumped.copy_(doubled)
    cars.has_flipped.copy_(flipped)
    cars.flip_time.copy_(torch.where(flipped, since_jump.clamp(max=FLIP_WINDOW) * dice.uniform(0, 1), nothing))
    cars.is_flipping.copy_(flipped & (cars.flip_time < FLIP_SECONDS))
    torque = torch.nn.functional.normalize(dice.number(-1, 1, (*dice.per_car, 2)).float(), dim=-1)
    cars.flip_torque[..., :2].copy_(torch.where(flipped.unsqueeze(-1), torque, nothing))

    demolished = dice.chance(0.1)
    cars.is_demoed.copy_(demolished)
    cars.demo_timer.copy_(torch.where(demolished, dice.uniform(0.01, 3), nothing))

    cars.contact_car.fill_(-1)
    hit = dice.chance(0.3)
    cars.ball_hit_tick.copy_(torch.where(hit, dice.number(0, 500), -1))
    cars.ball_hit_impulse_tick.copy_(cars.ball_hit_tick)
    cars.ball_hit_position.copy_(state.ball.position.unsqueeze(1).expand_as(cars.position) * hit.unsqueeze(-1))
    cars.ball_hit_offset.copy_(dice.direction() * 91 * hit.unsqueeze(-1))
    cars.ball_hit_impulse.copy_(dice.direction() * 500 * hit.unsqueeze(-1))


def _pads_and_game(state: GameState, dice: Dice) -> None:
    each = dice.per_arena
    pads = (*each, len(PADS))
    longest = torch.tensor([10.0 if pad.big else 4.0 for pad in PADS])
    state.pads.timer.copy_(dice.uniform(0, 1, pads) * longest * dice.chance(0.5, pads))
    state.pads.locked_car.fill_(-1)
    state.game.tick.copy_(dice.number(500, 5000, each))
    state.game.score.copy_(dice.number(0, 3, (*each, 2)))
    state.game.goal.copy_(torch.where(dice.chance(0.2, each), dice.number(0, 1, each), -1))


def _events(state: GameState, dice: Dice) -> None:
    events, cars, seats = state.events, state.cars, torch.arange(state.seats)
    acts = cars.alive
    events.touches.copy_(dice.number(1, 3) * (dice.chance(0.3) & acts))
    touched = events.touches > 0
    for name, share in (("bumped", 0.2), ("demolished", 0.1)):
        victim = dice.number(0, state.seats - 1)
        other = (victim != seats) & cars.present.gather(1, victim) & acts
        if name == "demolished":
            other &= cars.team.gather(1, victim) != cars.team
        getattr(events, name).copy_(torch.where(other & dice.chance(share), victim, -1))
    events.small_pads.copy_(dice.number(0, 2) * (dice.chance(0.2) & acts))
    events.big_pads.copy_(dice.chance(0.1) & acts)
    events.shot.copy_(touched & dice.chance(0.3))
    events.save.copy_(touched & ~events.shot & dice.chance(0.3))
    mine = cars.team == state.game.goal.unsqueeze(-1)
    scorer = mine & acts & (torch.cumsum(mine & acts, 1) == 1)
    events.goal.copy_(scorer)
    events.assist.copy_(mine & acts & ~scorer & dice.chance(0.5))
    last = torch.where(cars.present, seats, -1).amax(1)
    state.ball.last_touch.copy_(torch.where(dice.chance(0.8, dice.per_arena), last, -1))
