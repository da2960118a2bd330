"""The measures see in steps of 8 ticks what happens in both simulators tick by tick."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from wavedash.rocket import starts
from wavedash.rocket.geometry import rotation
from wavedash.rocket.measures import AirDribble, Dribble, FlipReset, JumpChallenge, Turtle, Wall
from wavedash.rocket.parts import Measure, Start
from wavedash.rocket.rewards.measures import length, to_ball
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.state import BOOST, CONTROLS, JUMP, PITCH, ROLL, THROTTLE, GameState

TICKS, ARENAS = 8, 32
Drive = Callable[[float, GameState, Tensor], None]


@pytest.fixture(scope="module", params=["warp", "rocketsim"])
def simulator(request: pytest.FixtureRequest) -> Iterator[Simulator]:
    """Building arenas takes longer than playing in them, so they are built once."""
    made: Simulator
    if request.param == "warp":
        from wavedash.rocket.sim.simulator import WarpSimulator

        made = WarpSimulator(ARENAS, 1, 1)
    else:
        pytest.importorskip("RocketSim")
        from wavedash.rocket.rocketsim.simulator import RocketSimSimulator

        made = RocketSimSimulator(ARENAS, 1, 1)
    yield made
    made.close()


class Seen:
    """What happened in a game: outcomes of the measure, and the state and touches of every tick."""

    def __init__(self) -> None:
        self.said: list[Tensor] = []
        self.ticks: list[GameState] = []

    @property
    def successes(self) -> Tensor:
        """[E, C]: how many attempts of each car succeeded."""
        return torch.stack([said == 1 for said in self.said]).sum(0)

    @property
    def failures(self) -> Tensor:
        return torch.stack([said == 0 for said in self.said]).sum(0)

    def each(self, what: Callable[[GameState], Tensor]) -> Tensor:
        """[T, ...]: something about every tick."""
        return torch.stack([what(state) for state in self.ticks])


def kickoff(simulator: Simulator) -> None:
    start = starts.Kickoff()
    start.bind(simulator.state)
    start.write(simulator.state, torch.Generator().manual_seed(0))


def written(simulator: Simulator, start: Start, seed: int = 0) -> None:
    """Writes random beginnings."""
    kickoff(simulator)
    start.bind(simulator.state)
    start.write(simulator.state, torch.Generator().manual_seed(seed))


def watch(simulator: Simulator, measure: Measure, drive: Drive, seconds: float) -> Seen:
    """Plays from the written state."""
    state, everywhere, seen = simulator.state, torch.ones(ARENAS, dtype=torch.bool), Seen()
    simulator.place(everywhere)
    measure.bind(state)
    measure.begin(state, everywhere)
    controls = torch.zeros(ARENAS, state.seats, len(CONTROLS))
    for step in range(round(seconds * 120 / TICKS)):
        controls.zero_()
        drive(step * TICKS / 120, state, controls)
        before = state.clone()
        for _ in range(TICKS):
            simulator.step(controls, 1)
            seen.ticks.append(state.clone())
        now = state.clone()
        now.events.touches.copy_(sum(tick.events.touches for tick in seen.ticks[-TICKS:]))
        outcome = measure(now, before, now.events)
        seen.said.append(torch.where(outcome.over, outcome.success.int(), -1))
    return seen


def first(happens: Tensor) -> Tensor:
    """[...]: the first tick in which something [T, ...] happens, T if it does not."""
    ticks = torch.arange(len(happens)).view(-1, *[1] * (happens.dim() - 1))
    return torch.where(happens, ticks, len(happens)).amin(0)


def hit_ball(state: GameState) -> Tensor:
    return state.events.touches > 0


def test_cars_that_jump_off_their_roof_recover_and_the_others_do_not(simulator: Simulator) -> None:
    written(simulator, starts.Turtle())

    def drive(time: float, state: GameState, controls: Tensor) -> None:
        controls[::2, :, JUMP] = float(0.5 < time < 0.6)

    seen = watch(simulator, Turtle(), drive, 4.5)
    jumped = torch.arange(ARENAS).unsqueeze(-1).expand(ARENAS, 2) % 2 == 0
    assert torch.equal(seen.successes, jumped.long()) and torch.equal(seen.failures, (~jumped).long())
    wheels = first(seen.each(lambda state: state.cars.on_ground))[jumped]
    steps = first(torch.stack(seen.said) == 1)[jumped]
    assert (steps == wheels // TICKS).all(), "it says so in the step in which three wheels touch"


def test_a_ball_that_stays_off_the_floor_for_two_seconds_was_dribbled(simulator: Simulator) -> None:
    """Cars keep below the ball; in every second arena they brake after 0.8 s."""
    written(simulator, starts.Dribble())

    def drive(time: float, state: GameState, controls: Tensor) -> None:
        forward = state.cars.forward
        ahead = (to_ball(state) * forward).sum(-1)
        faster = ((state.ball.velocity.unsqueeze(1) - state.cars.velocity) * forward).sum(-1)
        controls[..., THROTTLE] = ((ahead - 15) / 30 + faster / 100).clamp(-1, 1)
        if time > 0.8:
            controls[1::2, :, THROTTLE] = -1

    seen = watch(simulator, Dribble(), drive, 4.0)
    carried, dropped = (x.sum(-1) for x in (seen.successes, seen.failures))
    fell = first(seen.each(lambda state: state.ball.position[:, 2] < 110))
    assert carried.sum() >= 10 and dropped.sum() >= 10 and (carried + dropped <= 1).all()
    assert (fell[carried > 0] > 240).all() and (fell[dropped > 0] < 240).all()
    assert not carried[1::2].any()


def test_hits_in_the_air_are_counted_as_they_happen(simulator: Simulator) -> None:
    """Cars that have the ball on their nose boost."""
    written(simulator, starts.AirDribble())

    def drive(time: float, state: GameState, controls: Tensor) -> None:
        controls[..., BOOST] = 1

    seen = watch(simulator, AirDribble(), drive, 2.5)
    hits = seen.each(hit_ball)
    down = seen.each(lambda state: state.cars.on_ground | (state.cars.position[..., 2] < 250))
    low = seen.each(lambda state: state.ball.position[:, 2:] < 250)
    until = first(down | low)
    sure = maybe = 0
    for arena in range(ARENAS):
        for seat in range(2):
            ticks = hits[: int(until[arena, seat]), arena, seat].nonzero().flatten().tolist()
            at_least, at_most = count(ticks, 24 + TICKS), count(ticks, 24 - TICKS)
            sure, maybe = sure + (at_least >= 3), maybe + (at_most >= 3)
            succeeded = bool(seen.successes[arena, seat])
            assert succeeded or at_least < 3
            assert not succeeded or at_most >= 3
    assert 10 <= sure <= maybe < 2 * ARENAS


def count(ticks: list[int], apart: int) -> int:
    """How many of these ticks follow the one before that counted at least so much later."""
    counted: list[int] = []
    for tick in ticks:
        if not counted or tick - counted[-1] >= apart:
            counted.append(tick)
    return len(counted)


RESETS = torch.tensor([
    # from above (1) or below (-1), speed (uu/s), seconds to the flip, x (uu), pitch, roll, speed along x
    [1.0, 217, 0.35, 57, 1, 0, -55], [1, 231, 0.32, -27, 1, 0, 275], [1, 482, 0.3, 17, -1, 0, 241],
    [1, 158, 0.26, -9, 1, 1, -181],
    [-1, 450, 0.14, 22, -1, -1, -340], [-1, 770, 0.29, 37, -1, 1, 144], [-1, 622, 0.16, -25, -1, 0, -31],
    [-1, 491, 0.27, 48, -1, 0, 50],
])
"""Ways to meet a resting ball with the wheels after which the flip may hit it, found by trying at random"""


def test_flips_after_a_reset_count_if_they_hit_the_ball(simulator: Simulator) -> None:
    """Cars without a flip meet a ball in the air with their wheels, from above or upside down from below; later they flip at
    it, flip the other way, flip too late, or do not flip."""
    kickoff(simulator)
    ball, cars = simulator.state.ball, simulator.state.cars
    side, speed, wait, x, pitch, roll, along = RESETS.repeat(4, 1).unbind(-1)
    wait = wait + torch.tensor([0.0, 0.0, 0.4, 9.0]).repeat_interleave(8)
    pitch = pitch * torch.tensor([1.0, -1.0, 1.0, 1.0]).repeat_interleave(8)
    nothing = torch.zeros(ARENAS)
    ball.position.copy_(torch.tensor([0.0, 0.0, 1200.0]))
    cars.position[:, 0] = torch.stack([x, nothing, 1200 + 150 * side], -1)
    cars.velocity[:, 0] = torch.stack([along, nothing, -side * speed], -1)
    cars.rotation[:, 0] = rotation(nothing, 0.0, torch.where(side > 0, 0.0, math.pi))
    for name, value in (("on_ground", False), ("wheel_contact", False), ("has_jumped", True), ("has_flipped", True),
                        ("air_time", 2.0), ("air_time_since_jump", 1.8), ("flip_time", 1.0)):
        getattr(cars, name)[:, 0] = value
    regained = torch.full((ARENAS,), math.inf)

    def drive(time: float, state: GameState, controls: Tensor) -> None:
        regained.copy_(torch.where(~state.cars.has_flipped[:, 0] & regained.isinf(), time, regained))
        flips = ((time >= regained + wait) & (time < regained + wait + 0.1)).float()
        controls[:, 0, JUMP], controls[:, 0, PITCH], controls[:, 0, ROLL] = flips, flips * pitch, flips * roll

    seen = watch(simulator, FlipReset(), drive, 2.0)
    has_flipped, hits = seen.each(lambda state: state.cars.has_flipped[:, 0]), seen.each(hit_ball)[..., 0]
    reset = first(~has_flipped)
    after = torch.arange(len(hits)).unsqueeze(-1)
    flip = first(has_flipped & (after > reset))
    step_ends = (flip // TICKS * TICKS + TICKS - 1).clamp(max=len(hits) - 1)
    seen_flip = has_flipped.gather(0, step_ends.unsqueeze(0))[0]  # not one that the ball gave back within the same step
    used = (hits & (after >= flip) & (after <= flip + 78)).any(0) & seen_flip
    assert torch.equal(seen.successes[:, 0] > 0, used), "tick by tick"
    flipped_in_vain = (flip < len(hits) - 90) & ~used & seen_flip
    landed = seen.each(lambda state: state.cars.on_ground[:, 0] & (state.cars.position[:, 0, 2] < 100)).any(0)
    assert torch.equal(seen.failures[:, 0] > 0, flipped_in_vain | (landed & ~used))
    assert used.sum() >= 3 and flipped_in_vain.sum() >= 3 and (flip == len(hits)).sum() >= 3
    assert not seen.successes[:, 1].any() and not seen.failures[:, 1].any()


def test_of_two_cars_that_jump_at_the_ball_one_wins(simulator: Simulator) -> None:
    """Cars drive at the ball, jump shortly before they meet, and jump again."""
    written(simulator, starts.JumpChallenge())
    speed = length(simulator.state.cars.velocity)

    def drive(time: float, state: GameState, controls: Tensor) -> None:
        left = length(to_ball(state)[..., :2]) / speed
        controls[..., THROTTLE] = ((speed - length(state.cars.velocity)) / 50).clamp(-1, 1)
        controls[..., JUMP] = ((left < 0.65) & ((left > 0.4) | (left < 0.33))).float()

    seen = watch(simulator, JumpChallenge(), drive, 3.0)
    hits = seen.each(lambda state: hit_ball(state) & ~state.cars.on_ground)
    ball = seen.each(lambda state: state.ball.position[:, 1])
    decided = (seen.successes + seen.failures).sum(-1)
    won, clear = 0, 0
    for arena in range(ARENAS):
        blue, orange = (hits[:, arena, seat].nonzero().flatten() for seat in range(2))
        if not len(blue) or not len(orange):
            assert decided[arena] == 0, "a car alone challenges nobody"
            continue
        closest = int((blue.unsqueeze(-1) - orange).abs().min())
        if closest <= 24 - TICKS:
            clear += 1
            assert decided[arena] >= 2, "both have tried"
        if decided[arena] == 2:
            won += int(seen.successes[arena].sum())
            step = int(first(torch.stack(seen.said)[:, arena].amax(-1) >= 0))
            moved = ball[(step + 1) * TICKS - 1, arena] - ball[(step + 1) * TICKS - 5, arena]
            if seen.successes[arena].sum() == 1:
                assert (moved > 0) == bool(seen.successes[arena, 0]), "the ball goes to the loser's side"
            else:
                assert not seen.successes[arena].any() and moved.abs() < 4 * 200 / 120 + 0.1, "not both can win"
    assert clear >= 10 and won >= 5


def test_wall_balls_that_are_hit_toward_the_goal_get_there(simulator: Simulator) -> None:
    """Cars boost up the wall at the ball; in every second arena they jump off when they are close."""
    written(simulator, starts.Wall())

    def drive(time: float, state: GameState, controls: Tensor) -> None:
        controls[..., THROTTLE] = controls[..., BOOST] = 1
        controls[::2, :, JUMP] = (length(to_ball(state)) < 250)[::2].float()

    seen = watch(simulator, Wall(), drive, 3.0)
    hit = seen.each(hit_ball).any(0)
    assert not (seen.successes + seen.failures)[~hit].any(), "only cars that hit the ball have tried"
    assert seen.successes.sum() >= 2 and seen.failures.sum() >= 2
    said, ball = torch.stack(seen.said), seen.each(lambda state: state.ball.position)
    for arena, seat in seen.successes.nonzero().tolist():
        tick = (int(first(said[:, arena, seat] == 1)) + 1) * TICKS - 1
        here, later = ball[tick, arena], ball[min(tick + 60, len(ball) - 1), arena]
        goal = torch.tensor([0.0, 5120.0 if simulator.state.cars.team[arena, seat] == 0 else -5120.0])
        assert length(later[:2] - goal) < length(here[:2] - goal) - 200
        assert later[0].abs() < here[0].abs()
