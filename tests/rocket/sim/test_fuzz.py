"""No state, however wild, and no controls make the simulator leave the rules of the game; no arena changes another.

A million steps of one tick start from random states: bodies overlap, are in walls and outside, at any speed, with any flags and
timers, and a third of the arenas have impossible numbers. After every step each arena is possible in the game.
"""
from __future__ import annotations

import logging
from dataclasses import fields
from math import prod

import pytest
import torch
from torch import Tensor

from tests.rocket.test_env import ends_after, simulated
from wavedash.assembly import make_policy
from wavedash.config_file import load_config
from wavedash.ppo.learner import Learner
from wavedash.rocket.constants import BALL_RADIUS, HITBOXES
from wavedash.rocket.sim.kernels.struct_io import words_of
from wavedash.rocket.sim.mechanics.scoring import ScoringMemory
from wavedash.rocket.sim.simulator import WarpSimulator
from wavedash.rocket.starts import Random
from wavedash.rocket.state import GameState

pytestmark = pytest.mark.slow

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
CPU, IN_PARTS, GPU = {"threads": 1}, {"by_stage": True}, {"device": "cuda"}
BOXES = [box.name for box in HITBOXES]
NONSENSE = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e9, -1e9, 3e38])
SEATED = ("team", "hitbox", "present")
"""Fields of a car that cannot change."""


class Dice:
    def __init__(self, seed: int):
        self.generator = torch.Generator().manual_seed(seed)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=self.generator)

    def chance(self, share: float, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator) < share

    def number(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high + 1, shape, generator=self.generator)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)


# --- wild states -----------------------------------------------------------------------------------------------------


def scatter(state: GameState, dice: Dice) -> None:
    """Everything is random, and possible in the game or nearly so. It is the same for the same dice."""
    ball, cars, pads, each = state.ball, state.cars, state.pads, state.cars.team.shape
    for part in (ball, cars, pads):
        for field in fields(part):
            x = getattr(part, field.name)
            if field.name not in SEATED:
                x.copy_(dice.chance(0.5, *x.shape) if x.dtype == torch.bool else dice.number(-1, state.seats - 1, *x.shape)
                        if x.dtype == torch.int32 else dice.uniform(0, 1, *x.shape) * dice.chance(0.7, *x.shape))
    cars.is_demoed.logical_and_(dice.chance(0.3, *each))
    cars.boost.mul_(100)
    for name in ("controls", "flip_torque", "auto_flip_torque", "contact_normal"):
        getattr(cars, name).mul_(2).sub_(1)
    for part in (ball, cars):
        shape = part.position.shape
        part.position.copy_(anywhere(dice, *shape[:-1]))
        part.rotation.copy_(rotations(dice.normal(*shape[:-1], 4)))
        part.velocity.copy_(dice.normal(*shape) * 10 ** dice.uniform(1.0, 3.5, *shape[:-1], 1))
        part.angular_velocity.copy_(dice.normal(*shape) * 10 ** dice.uniform(-1.0, 1.3, *shape[:-1], 1))
    low = dice.chance(0.3, state.arenas)
    ball.position[:, 2].copy_(torch.where(low, dice.uniform(0, 150, state.arenas), ball.position[:, 2]))
    heap = dice.chance(0.3, *each) | dice.chance(0.1, state.arenas, 1)  # cars in the ball and in each other
    cars.position.copy_(torch.where(heap.unsqueeze(-1), ball.position.unsqueeze(1) + dice.normal(*each, 3) * 60, cars.position))
    state.game.tick.copy_(dice.number(-5, 10**6, state.arenas))


def anywhere(dice: Dice, *shape: int) -> Tensor:
    """Places within the walls, which may be in the cut-off corners."""
    return dice.uniform(-1, 1, *shape, 3) * torch.tensor([4050.0, 5070.0, 990.0]) + torch.tensor([0.0, 0.0, 1000.0])


def rotations(q: Tensor) -> Tensor:
    """Rotations of quaternions of any length."""
    w, x, y, z = torch.nn.functional.normalize(q, dim=-1).unbind(-1)
    rows = (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y))
    return torch.stack(rows, -1).unflatten(-1, (3, 3))


def float_words(state: GameState) -> tuple[Tensor, Tensor]:
    """Offsets [W] in words of the floats of a record, and the seats of their cars (-1: no car)."""
    places = [(offset // 4 + seat * stride // 4 + i, seat if stride else -1)
              for part, _, dtype, shape, offset, stride in GameState.layout(state.seats) if dtype == torch.float32
              for seat in range(state.seats if stride else 1) for i in range(prod(shape))]
    words, seats = torch.tensor(places, device=state.memory.device).unbind(-1)
    return words, seats


def numbers_of(state: GameState) -> tuple[Tensor, Tensor]:
    """The numbers [E, W], and which of them count: not those of empty seats."""
    words, seat = float_words(state)
    present = torch.nn.functional.pad(state.cars.present, (0, 1), value=True)
    return state.memory.view(torch.float32).index_select(1, words), present.index_select(1, seat % (state.seats + 1))


def spoil(state: GameState, dice: Dice) -> Tensor:
    """Writes impossible numbers into a third of the arenas, and returns which arenas [E]."""
    words, _ = float_words(state)
    numbers, real = numbers_of(state)
    one = torch.arange(len(words)) == dice.number(0, len(words) - 1, state.arenas, 1)
    many = dice.chance(0.2, state.arenas, 1) & dice.chance(0.2, *real.shape)
    wrong = (one | many) & real & dice.chance(1 / 3, state.arenas, 1)
    nonsense = NONSENSE[dice.number(0, len(NONSENSE) - 1, *real.shape)]
    state.memory.view(torch.float32)[:, words] = torch.where(wrong, nonsense, numbers)
    return wrong.any(-1)


def wild_controls(dice: Dice, *shape: int) -> Tensor:
    controls = dice.uniform(-1.5, 1.5, *shape, 8)
    wild = NONSENSE[dice.number(0, len(NONSENSE) - 1, *shape, 8)]
    return torch.where(dice.chance(0.02, *shape, 8), wild, controls)


# --- the rules of the game -------------------------------------------------------------------------------------------


def inside(position: Tensor, beyond: float) -> Tensor:
    """Whether places are in the field or a goal, or at most `beyond` outside."""
    x, y, z = position[..., 0].abs(), position[..., 1].abs(), position[..., 2]
    above = z > -beyond
    field = (x < 4096 + beyond) & (y < 5120 + beyond) & (x + y < 8064 + beyond * 1.4143) & (z < 2044 + beyond)
    goal = (x < 893 + beyond) & (y < 6000 + beyond) & (z < 643 + beyond)
    return above & (field | goal)


def of_the_game(state: GameState, beyond: float = 50.0) -> Tensor:
    """Which arenas [E] are possible in the game. Demolished cars do not move, so their speed may be that before the caps."""
    ball, cars = state.ball, state.cars
    numbers, real = numbers_of(state)
    fine = (numbers.isfinite() | ~real).all(-1)
    position, velocity, spin, rotation = (
        torch.cat([getattr(ball, name).unsqueeze(1), getattr(cars, name)], 1)  # [E, 1 + C, ...]
        for name in ("position", "velocity", "angular_velocity", "rotation"))
    here, moves = (torch.nn.functional.pad(x, (1, 0), value=True) for x in (cars.present, cars.alive))
    of_ball = torch.arange(1 + state.seats, device=spin.device) == 0
    x, y, z = rotation.unbind(-1)
    skew = (torch.linalg.cross(x, y) - z).norm(dim=-1) + (x.norm(dim=-1) - 1).abs() + (y.norm(dim=-1) - 1).abs()
    capped = velocity.norm(dim=-1) < torch.where(of_ball, 6000.1, 2300.1)
    capped &= spin.norm(dim=-1) < torch.where(of_ball, 6.001, 5.501)
    fine &= (inside(position, beyond) & (skew < 0.02) & (capped | ~moves) | ~here).all(-1)
    fine &= ((cars.boost >= 0) & (cars.boost <= 100) | ~cars.present).all(-1)
    fine &= ((cars.controls.abs() <= 1).all(-1) | ~cars.alive).all(-1)
    fine &= ((state.pads.timer >= 0) & (state.pads.locked_car < state.seats)).all(-1)
    return fine & (ball.last_touch >= -1) & (ball.last_touch < state.seats) & (state.game.goal < 2)


def placed(sim: WarpSimulator) -> WarpSimulator:
    sim.place(torch.ones(sim.state.arenas, dtype=torch.bool, device=sim.device))
    return sim


def random_play(arenas: int, blue: int, orange: int, seed: int = 0, **options) -> WarpSimulator:
    """Cars are in the air and on the floor, as an episode may begin."""
    sim = WarpSimulator(arenas, blue, orange, **{"threads": 1, **options})
    start, state = Random(), sim.state.to("cpu")
    start.bind(state)
    start.write(state, torch.Generator().manual_seed(seed))
    sim.state.copy_(state)
    return placed(sim)


# --- impossible states -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("boxes", "where"), [
    (BOXES[:2], CPU), (BOXES[2:4], CPU), (BOXES[4:], CPU), (BOXES, CPU), (BOXES[:2], IN_PARTS),
    pytest.param(BOXES[:2], GPU, marks=NO_GPU), pytest.param(BOXES, GPU, marks=NO_GPU),
], ids="-".join)
def test_after_any_of_a_million_wild_steps_arenas_are_possible_in_the_game(boxes, where, caplog):
    caplog.set_level(logging.ERROR)
    seats = len(boxes) // 2
    arenas, states, ticks = (5000, 3, 20) if seats == 1 else (2001, 3, 17)
    if where is IN_PARTS:
        arenas, states = 1000, 1
    sizes = None if seats == 1 else [(3, 3), (3, 2), (1, 3)] * (arenas // 3)
    sim = WarpSimulator(arenas, seats, seats, hitboxes=boxes, sizes=sizes, **where)
    dice, state = Dice(seats), sim.state.to("cpu").clone()
    for _ in range(states):
        scatter(state, dice)
        spoilt, counted = spoil(state, dice), count_of(sim)
        sim.state.copy_(state)
        placed(sim)
        for tick in range(ticks):
            sim.step(wild_controls(dice, arenas, 2 * seats).to(sim.device), ticks=1, delay=tick % 2)
            assert of_the_game(sim.state).all() and torch.equal(sim.state.cars.present.cpu(), state.cars.present)
            if tick == 0:
                assert count_of(sim) - counted >= spoilt.sum() > arenas / 5
    live_on(sim)


def count_of(sim: WarpSimulator) -> int:
    """The current count, also on a GPU, where reading it syncs."""
    sim.health  # noqa: B018 (reading it updates the count)
    if sim.device.type == "cuda":
        torch.cuda.synchronize()
    return sim.health["bad_arenas"]


def live_on(sim: WarpSimulator) -> None:
    """Every car drives, jumps or flies on, or comes nearer to its respawn."""
    cars = sim.state.cars
    before, waits, moved = cars.position.clone(), cars.demo_timer.clone(), torch.zeros_like(cars.boost)
    controls = torch.zeros(*moved.shape, 8, device=sim.device)
    for step in range(6):
        controls[..., 0], controls[..., 5], controls[..., 6] = 1.0, step % 3 == 0, 1.0
        sim.step(controls, ticks=8)
        moved = torch.maximum(moved, (cars.position - before).norm(dim=-1))
    assert ((moved > 1) | (cars.is_demoed & ((cars.demo_timer < waits - 0.3) | (cars.demo_timer > 2))) | ~cars.present).all()


def kicked_off(arenas: int, **options) -> WarpSimulator:
    """All arenas are like the one of a simulator with a single arena."""
    sim = WarpSimulator(arenas, 1, 1, **options)
    sim.state.memory.copy_(WarpSimulator(1, 1, 1, **options).state.memory)
    return placed(sim)


@pytest.mark.parametrize("where", [CPU, IN_PARTS, pytest.param(GPU, marks=NO_GPU)], ids="-".join)
def test_every_impossible_number_is_noticed_and_the_arena_begins_again(where, caplog):
    caplog.set_level(logging.ERROR)
    words, _ = float_words(GameState.empty(1, 2))
    arenas = len(words) * len(NONSENSE)
    sim = random_play(arenas, 1, 1, **where)
    sim.state.game.tick.fill_(500)
    sim.state.game.score.fill_(2)
    controls = Dice(1).uniform(-1, 1, arenas, 2, 8).to(sim.device)
    sim.step(controls, ticks=8)
    assert count_of(sim) == 0
    numbers = sim.state.memory.view(torch.float32)
    numbers[torch.arange(arenas), words.repeat_interleave(len(NONSENSE))] = NONSENSE.repeat(len(words)).to(sim.device)
    sim.step(controls, ticks=8)
    assert count_of(sim) == arenas
    new = kicked_off(arenas, **where)
    new.state.game.tick.fill_(508)
    new.state.game.score.fill_(2)
    new.step(controls, ticks=8)
    assert torch.equal(sim.state.memory, new.state.memory), "the arena is as a new one, except for clock and score"


def test_an_arena_that_begins_again_remembers_nothing():
    sim = random_play(20, 1, 1)
    for controls in Dice(2).uniform(-1, 1, 10, 20, 2, 8):
        sim.step(controls, ticks=8)
    saved = sim.save()
    sim.load({**saved, "matches": torch.ones_like(saved["matches"])})
    sim.state.ball.position[::2] = torch.nan
    sim.step(controls, ticks=0)
    kept = sim.save()
    matches = kept["matches"][:, : words_of(ScoringMemory)]
    assert not kept["cars"][::2].any() and not matches[::2].any()
    assert kept["cars"][1::2].any() and matches[1::2].all()


@pytest.mark.parametrize(("name", "value"), [
    ("ball.last_touch", 2), ("cars.contact_car", -7), ("pads.locked_car", 2**31 - 1), ("cars.hitbox", 77), ("cars.team", -1),
])
def test_every_integer_that_is_an_index_is_checked(name, value):
    sim = random_play(50, 1, 1)
    part, field = name.split(".")
    getattr(getattr(sim.state, part), field)[7] = value
    sim.step(torch.zeros(50, 2, 8), ticks=8)
    new = kicked_off(1)
    new.step(torch.zeros(1, 2, 8), ticks=8)
    assert sim.health == {"bad_arenas": 1} and torch.equal(sim.state.memory[7], new.state.memory[0])


PLACES = [
    ((4060, 0, 30), (4160, 0, 500)), ((0, 0, 2040), (0, 0, 2100)), ((0, 0, 10), (0, 0, -60)),
    ((2000, -5100, 900), (2000, -5180, 900)), ((0, 5950, 100), (0, 6100, 100)), ((850, 5900, 600), (1000, 5900, 100)),
    ((0, -5900, 600), (0, -5900, 800)), ((-3600, 4400, 900), (-3800, 4400, 900)), ((3500, -4500, 20), (3800, -4900, 20)),
]
"""Places in the field or a goal, and places outside."""


@pytest.mark.parametrize("body", ["ball", "cars"])
def test_bodies_outside_of_the_field_come_back(body):
    sim = kicked_off(2 * len(PLACES))
    place = getattr(sim.state, body).position.view(2 * len(PLACES), -1, 3)
    place[:, 0] = torch.tensor(PLACES, dtype=torch.float32).flatten(0, 1)
    before = sim.state.memory.clone()
    sim.step(torch.zeros(2 * len(PLACES), 2, 8), ticks=0)
    assert sim.health == {"bad_arenas": len(PLACES)}
    inside, outside = sim.state.memory.unflatten(0, (-1, 2)).unbind(1)
    assert torch.equal(inside, before[::2]) and (outside == kicked_off(1).state.memory).all()


TURNED = {
    "larger": torch.eye(3) * 1.02, "mirrored": -torch.eye(3), "nothing": torch.zeros(3, 3), "flat": torch.ones(3, 3),
    "skewed": torch.tensor([[1.0, 0.02, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    "squeezed": torch.diag(torch.tensor([1, 1, 0.98])),
}


@pytest.mark.parametrize("turned", TURNED.values(), ids=TURNED)
def test_a_matrix_that_is_no_rotation_is_noticed(turned):
    sim = random_play(2, 1, 1)
    sim.state.cars.rotation[0, 1] = turned
    sim.state.ball.rotation[1] = turned
    sim.step(torch.zeros(2, 2, 8), ticks=1)
    assert sim.health == {"bad_arenas": 2}


def test_a_ball_that_went_through_a_wall_is_no_goal():
    sim = kicked_off(2)
    sim.state.game.score.copy_(torch.tensor([[1, 2], [1, 2]]))
    sim.state.ball.position[0] = torch.tensor([2000.0, 5165.0, 900.0])
    sim.state.ball.position[1] = torch.tensor([0.0, 5165.0, 300.0])
    sim.state.ball.velocity[:, 1] = 6000.0
    sim.state.cars.ball_hit_tick.fill_(0)
    sim.step(torch.zeros(2, 2, 8), ticks=8)
    assert sim.state.game.goal.tolist() == [-1, 0] and sim.state.game.score.tolist() == [[1, 2], [2, 2]]
    assert sim.state.events.goal.tolist() == [[False, False], [True, False]] and sim.health == {"bad_arenas": 1}


def test_states_at_the_limits_are_left_alone():
    """These are the limits themselves, a negative zero, and speeds that the next tick caps."""
    sim = kicked_off(8)
    cars = sim.state.cars
    cars.boost[0, 0], cars.boost[1, 0], cars.boost[2, 0], cars.handbrake[3, 0] = 0.0, -0.0, 100.0, 1.0
    cars.velocity[4, 0, 0], sim.state.ball.velocity[5, 1], cars.controls[6, 0, 0], cars.hitbox[7, 0] = 5000.0, -9000.0, -1.0, 5
    before = sim.state.memory.clone()
    sim.step(torch.zeros(8, 2, 8), ticks=0)
    assert sim.health == {"bad_arenas": 0} and torch.equal(sim.state.memory, before)


def test_an_empty_seat_may_hold_anything_and_stays_empty():
    sim = random_play(2, 2, 2, sizes=[(1, 2), (2, 2)])
    for field in fields(sim.state.cars):
        x = getattr(sim.state.cars, field.name)
        if field.name not in SEATED:
            x[0, 1] = {torch.float32: torch.nan, torch.int32: 99, torch.bool: True}[x.dtype]
    sim.state.cars.demo_timer[0, 1] = 0.01  # a car would respawn now
    sim.step(torch.full((2, 4, 8), 0.5), ticks=8)
    assert sim.health == {"bad_arenas": 0}
    sim.state.ball.position[0] = torch.nan
    sim.step(torch.full((2, 4, 8), 0.5), ticks=8)
    assert sim.health == {"bad_arenas": 1} and sim.state.cars.present.tolist() == [[True, False, True, True], [True] * 4]


def test_controls_that_are_not_finite_count_as_zero():
    wild, tame = random_play(500, 1, 1), random_play(500, 1, 1)
    dice = Dice(3)
    for _ in range(30):
        controls = wild_controls(dice, 500, 2)
        wild.step(controls, ticks=8, delay=1)
        tame.step(torch.where(controls.isfinite(), controls, 0).clamp(-1, 1), ticks=8, delay=1)
    assert torch.equal(wild.state.memory, tame.state.memory) and wild.health == {"bad_arenas": 0}


# --- the report ------------------------------------------------------------------------------------------------------


def spoil_the_next_step(simulator: WarpSimulator, arenas: int) -> None:
    """Imitates a fault of the simulation itself: the state at the beginning of the step was still good."""
    send = simulator.send

    def spoilt(*arguments) -> None:
        simulator.state.ball.velocity[:arenas] = torch.nan
        simulator.send = send
        send(*arguments)

    simulator.send = spoilt


def test_an_iteration_with_bad_arenas_logs_them_once(caplog):
    env = simulated(ends_after(4))
    config = load_config("rocket-1v1", ["env.count=3", "ppo.rollout_steps=8", "ppo.minibatch_size=16", "policy.hidden=[8]"])
    learner = Learner(env, make_policy(env, config), config)
    learner.start()
    seen = []
    for spoilt in (0, 2, 0, 1):
        spoil_the_next_step(env._shards[0].simulator, spoilt)
        caplog.clear()
        seen.append((learner.iterate().metrics["health/bad_arenas"], [line for line in caplog.messages if "kick-off" in line]))
        assert learner.updater.optimizer.parameters.isfinite().all()
    assert [count for count, _ in seen] == [0, 2, 2, 3]
    assert [len(lines) for _, lines in seen] == [0, 1, 0, 1]
    assert seen[1][1][0].startswith("2 arena(s)") and "1 arena(s)" in seen[3][1][0] and "3 since the start" in seen[3][1][0]


# --- a minute of play ------------------------------------------------------------------------------------------------


def chase(sim: WarpSimulator, dice: Dice) -> Tensor:
    """Cars drive at the ball with full boost and sometimes jump: there are hits, walls, demolitions and pinches."""
    state = sim.state
    away = state.ball.position.unsqueeze(1) - state.cars.position
    ahead, right, up = (state.cars.rotation.mT @ away.unsqueeze(-1)).squeeze(-1).unbind(-1)
    controls = torch.zeros(*ahead.shape, 8)
    controls[..., 0] = controls[..., 6] = 1.0
    controls[..., 1] = controls[..., 3] = torch.atan2(right, ahead)
    controls[..., 2] = torch.atan2(up, ahead)
    controls[..., 5] = dice.chance(0.1, *ahead.shape)
    state.cars.boost.clamp_(min=30.0)
    return controls.clamp(-1, 1)


@pytest.mark.parametrize(("arenas", "seats"), [(80, 1), (12, 3)])
@pytest.mark.parametrize("how", ["random", "held", "chase"])
def test_in_a_minute_of_play_nothing_leaves_the_field(arenas, seats, how):
    sim = random_play(arenas, seats, seats, seed=5, hitboxes=(BOXES * 2)[: 2 * seats] if seats == 3 else "octane")
    dice, start = Dice(6), sim.state.clone()
    touches = goals = 0
    for step in range(60 * 15):
        if how == "chase":
            controls = chase(sim, dice)
        elif step % (1 if how == "random" else 15) == 0:
            controls = dice.uniform(-1, 1, arenas, 2 * seats, 8)
        sim.step(controls, ticks=8, delay=1)
        touches, goals = touches + sim.state.events.touches.sum(), goals + (sim.state.game.goal >= 0).sum()
        assert of_the_game(sim.state, beyond=25.0).all()
        assert inside(sim.state.ball.position, 40 - BALL_RADIUS).all(), "the ball does not sink into walls either"
        scored = sim.state.game.goal >= 0
        sim.state.copy_(start, scored)
        sim.place(scored)
    assert sim.health == {"bad_arenas": 0} and touches > 0 and (goals > 0 or how != "chase")


def test_a_ball_by_itself_gains_no_energy():
    """Only being pushed out of an overlap may lift it, by less than a third of a uu."""
    sim, dice = WarpSimulator(1000, 1, 1, threads=1), Dice(7)
    ball = sim.state.ball
    sim.state.cars.is_demoed.fill_(True)
    sim.state.cars.demo_timer.fill_(1000.0)
    ball.position.copy_(dice.uniform(-1, 1, 1000, 3) * torch.tensor([3000.0, 4500.0, 800.0]) + torch.tensor([0.0, 0.0, 1000.0]))
    ball.velocity.copy_(torch.nn.functional.normalize(dice.normal(1000, 3), dim=-1) * dice.uniform(0, 6000, 1000, 1))
    ball.angular_velocity.copy_(torch.nn.functional.normalize(dice.normal(1000, 3), dim=-1) * 6)

    def energy() -> Tensor:
        spinning = 0.4 * BALL_RADIUS**2 * ball.angular_velocity.square().sum(-1)
        return (ball.velocity.square().sum(-1) + spinning) / 2 + 650 * ball.position[:, 2]

    first = before = energy()
    for _ in range(900):
        sim.step(torch.zeros(1000, 2, 8), ticks=1)
        now = energy()
        assert (now - before).max() < 650 / 3
        before = now
    assert (before < first * 0.5).float().mean() > 0.9, "bounces and drag take energy"


# --- determinism -----------------------------------------------------------------------------------------------------


def crowded(arenas: int, seats: int, **options) -> WarpSimulator:
    """Wild states, and heaps of cars on the floor, turned alike, with the ball in them: they have the most contacts."""
    sim, dice = WarpSimulator(arenas, seats, seats, **options), Dice(8)
    state = sim.state.to("cpu").clone()
    scatter(state, dice)
    ball, cars, heap = state.ball, state.cars, torch.arange(arenas) % 4 > 0
    ball.position[heap, 2] = 91.0
    cars.position[heap] = ball.position[heap].unsqueeze(1) * torch.tensor([1.0, 1.0, 0.0])
    cars.position[heap] += dice.uniform(10, 50, *cars.position[heap].shape)
    yaw = dice.normal(arenas, 1, 4) * torch.tensor([1.0, 0.0, 0.0, 1.0])
    cars.rotation[heap] = rotations(yaw).expand_as(cars.rotation)[heap]
    cars.is_demoed[heap] = False
    sim.state.copy_(state)
    return placed(sim)


def games(sim: WarpSimulator, controls: Tensor) -> Tensor:
    """The records after every step, [steps, E, R]."""
    seen = []
    for x in controls:
        sim.step(x, ticks=4, delay=1)
        seen.append(sim.state.memory.clone())
    return torch.stack(seen)


@pytest.mark.parametrize("seats", [1, 3])
def test_the_same_states_and_controls_give_the_same_games(seats):
    controls = Dice(10).uniform(-1, 1, 25, 120, 2 * seats, 8)
    first = games(crowded(120, seats, threads=1), controls)
    for options in (CPU, {"threads": 2}, IN_PARTS):
        assert torch.equal(first, games(crowded(120, seats, **options), controls)), options


@pytest.mark.parametrize("where", [CPU, IN_PARTS, pytest.param(GPU, marks=NO_GPU)], ids="-".join)
@pytest.mark.parametrize("seats", [1, 3])
def test_an_arena_depends_neither_on_its_index_nor_on_its_neighbours(seats, where):
    sim = crowded(120, seats, **where)
    saved, controls = sim.save(), Dice(10).uniform(-1, 1, 25, 120, 2 * seats, 8).to(sim.device)
    expected = games(sim, controls)
    order = torch.randperm(120, generator=Dice(11).generator)
    sim.load({name: x[order.to(sim.device)] for name, x in saved.items()})
    assert torch.equal(games(sim, controls[:, order]), expected[:, order])
    sim.load(saved)
    others = torch.arange(120) % 3 == 1
    sim.state.memory[others] = -1
    sim.state.cars.hitbox[others] = 0
    sim.state.cars.present[others] = True
    controls[:, others] = torch.nan
    assert torch.equal(games(sim, controls)[:, ~others], expected[:, ~others])


def test_a_respawned_car_collides_from_the_next_tick_on():
    """Otherwise the order in which cars are computed would matter, which varies on a GPU. The other car hovers over it."""
    sim = kicked_off(2)
    cars, game = sim.state.cars, sim.state.game
    for arena, (back, waits) in enumerate([(0, 1), (1, 0)]):
        game.tick[arena] = 3 - back  # it comes back at the first of the four places
        cars.is_demoed[arena, back] = True
        cars.demo_timer[arena, back] = 0.001
        cars.position[arena, waits] = torch.tensor([-2304.0, -4608.0 if back == 0 else 4608.0, 96.0])
        cars.rotation[arena, waits] = torch.eye(3)
    placed(sim)
    stands = []
    for _ in range(2):
        sim.step(torch.zeros(2, 2, 8), ticks=1)
        assert cars.alive.all() and (cars.position[:, 0, :2] - cars.position[:, 1, :2]).abs().max() < 1
        stands.append([bool(cars.wheel_contact[0, 1].any()), bool(cars.wheel_contact[1, 0].any())])
    assert stands == [[False, False], [True, True]]
