"""Observations: RLGym's against RLGym itself, AdvancedObsPlus against a plain reference; mirrors, empty seats and frames."""
from __future__ import annotations

import numpy as np
import pytest
import torch
from rlgym.rocket_league.action_parsers import LookupTableAction
from rlgym.rocket_league.obs_builders import DefaultObs as RLGymDefaultObs
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.random_states import random_state
from tests.rocket.rlgym_states import from_rlgym, to_rlgym
from wavedash.errors import UserError
from wavedash.rocket.constants import PADS
from wavedash.rocket.observations import AdvancedObsPlus, DefaultObs, ObservationByName
from wavedash.rocket.observations.names import Names
from wavedash.rocket.observations.near_pads import SQUARE, NearPads
from wavedash.rocket.parts import Observation
from wavedash.rocket.state import CONTROLS, GameState

KINDS = [DefaultObs, AdvancedObsPlus]


def some_controls(state: GameState, seed: int = 0) -> Tensor:
    return torch.randint(-1, 2, (state.arenas, state.seats, 8), generator=torch.Generator().manual_seed(seed)).float()


def seen(observation: Observation, state: GameState, controls: Tensor | None = None) -> Tensor:
    observation.bind(state)
    observation.begin(state, torch.ones(state.arenas, dtype=torch.bool))
    return observation.build(state, some_controls(state) if controls is None else controls).clone()


# RLGym's observation


def of_rlgym(state: GameState, **options) -> list[dict[int, np.ndarray]]:
    builder = RLGymDefaultObs(**options)
    games = [to_rlgym(state, arena) for arena in range(state.arenas)]
    return [builder.build_obs(list(game.cars), game, {}) for game in games]


COEFFICIENTS = {"pos_coef": 1 / 5000, "ang_coef": 0.3, "lin_vel_coef": 1 / 4000, "ang_vel_coef": 0.2, "pad_timer_coef": 0.5,
                "boost_coef": 0.25}


@pytest.mark.parametrize(("teams", "options"), [
    ((1, 1), {}), ((3, 3), {}), ((2, 1), {"zero_padding": 2}), ((1, 3), COEFFICIENTS), ((4, 4), {"zero_padding": 4}),
])
def test_default_obs_is_rlgyms(teams, options):
    state = random_state(60, teams[0], teams[1], seed=3)
    expected = of_rlgym(state, **options)
    ours = seen(DefaultObs(**options), state)
    assert ours.shape[-1] == DefaultObs(**options).size(state.seats)
    for arena, by_seat in enumerate(expected):
        for seat in range(state.seats):
            if seat in by_seat:
                np.testing.assert_allclose(ours[arena, seat], by_seat[seat], rtol=1e-6, atol=1e-9)
            else:
                assert not ours[arena, seat].any()


def test_default_obs_without_padding_is_rlgyms_and_then_zeros():
    state = random_state(40, 2, 2, seed=4)
    ours = seen(DefaultObs(zero_padding=None), state)
    for arena, by_seat in enumerate(of_rlgym(state, zero_padding=None)):
        for seat, expected in by_seat.items():
            np.testing.assert_allclose(ours[arena, seat, : len(expected)], expected, rtol=1e-6, atol=1e-9)
            assert not ours[arena, seat, len(expected):].any()


def test_default_obs_is_rlgyms_in_games_of_rocketsim():
    engine, builder, rng = RocketSimEngine(), RLGymDefaultObs(), np.random.default_rng(0)
    rows = LookupTableAction.make_lookup_table()
    base = engine.create_base_state()
    for mutator in (FixedTeamSizeMutator(2, 2), KickoffMutator()):
        mutator.apply(base, {})
    games = [engine.set_state(base, {})]
    for _ in range(250):
        chosen = {agent: rows[rng.integers(len(rows))][None].repeat(8, 0) for agent in engine.agents}
        games.append(engine.step(chosen, {}))
    ours = seen(DefaultObs(), from_rlgym(games))
    for arena, game in enumerate(games):
        expected = builder.build_obs(list(game.cars), game, {})
        for seat, agent in enumerate(game.cars):
            np.testing.assert_allclose(ours[arena, seat], expected[agent], rtol=1e-6, atol=1e-9)
    flying = [car for game in games for car in game.cars.values() if not car.on_ground]
    assert any(car.can_flip for car in flying) and any(car.is_flipping for car in flying), "there were flips in the games"


# AdvancedObsPlus, number by number


def reference(state: GameState, arena: int, seat: int, controls: Tensor, near: NearPads) -> dict[str, float]:
    """Every number by its name, for one car, computed as simply as possible."""
    if state.cars.team[arena, seat] == 1:
        state = state.mirrored()
    cars = state.cars
    numbers: dict[str, float] = {}

    def vector(name: str, value: np.ndarray) -> None:
        for axis, number in zip("xyz", value, strict=True):
            numbers[f"{name}.{axis}"] = number
        for axis, direction in zip(("forward", "right", "up"), np.asarray(cars.rotation[arena, seat]).T, strict=True):
            numbers[f"{name}.local.{axis}"] = direction @ value
        numbers[f"{name}.length"] = np.sqrt(value @ value)

    def body(name: str, source, index) -> tuple[np.ndarray, np.ndarray]:
        position, velocity = np.asarray(source.position[index]) / 5120, np.asarray(source.velocity[index]) / 2300
        vector(f"{name}.position", position)
        vector(f"{name}.velocity", velocity)
        vector(f"{name}.angular_velocity", np.asarray(source.angular_velocity[index]) / 5.5)
        vector(f"{name}.forward", np.asarray(source.rotation[index])[:, 0])
        vector(f"{name}.up", np.asarray(source.rotation[index])[:, 2])
        return position, velocity

    def car(name: str, i: int) -> tuple[np.ndarray, np.ndarray]:
        numbers[f"{name}.boost"] = float(cars.boost[arena, i]) / 100
        numbers[f"{name}.has_flip"] = float(cars.has_flip[arena, i])
        for flag in ("present", "on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping",
                     "is_auto_flipping", "is_supersonic", "is_demoed", "has_contact"):
            numbers[f"{name}.{flag}"] = float(getattr(cars, flag)[arena, i])
        return body(name, cars, (arena, i))

    place, velocity = car("own", seat)
    for timer, whole in {"boost_time": 0.1, "handbrake": 1, "air_time_since_jump": 1.25, "jump_time": 0.2, "flip_time": 0.95,
                         "demo_timer": 3}.items():
        numbers[f"own.{timer}"] = min(float(getattr(cars, timer)[arena, seat]) / whole, 1.0)
    vector("own.flip_torque", np.asarray(cars.flip_torque[arena, seat]))
    for wheel in range(4):
        numbers[f"own.wheel_contact.{wheel}"] = float(cars.wheel_contact[arena, seat, wheel])

    ball, ball_velocity = body("ball", state.ball, arena)
    vector("ball.relative_position", ball - place)
    vector("ball.relative_velocity", ball_velocity - velocity)
    for name, y in (("other_goal", 5120), ("own_goal", -5120)):
        goal = np.array([0, y, 642.775 / 2]) / 5120
        vector(f"{name}.from_car", goal - place)
        vector(f"{name}.from_ball", goal - ball)

    present = [i for i in range(state.seats) if cars.present[arena, i] and i != seat]
    same = [i for i in present if cars.team[arena, i] == cars.team[arena, seat]]
    for group, members in (("ally", same), ("opponent", [i for i in present if i not in same])):
        for number, i in enumerate(members, 1):
            their_place, their_velocity = car(f"{group}{number}", i)
            vector(f"{group}{number}.relative_position", their_place - place)
            vector(f"{group}{number}.relative_velocity", their_velocity - velocity)

    for what, at in (("car", place), ("ball", ball)):
        for number, pad in enumerate(near(torch.tensor(at[:2, None])).squeeze(-1).tolist(), 1):
            name = f"pad{number}_near_{what}"
            vector(f"{name}.from_car", np.array(PADS[pad][:3]) / 5120 - place)
            numbers[f"{name}.big"] = float(PADS[pad].big)
            numbers[f"{name}.timer"] = float(state.pads.timer[arena, pad]) / 10
    for pad in range(34):
        numbers[f"pad{pad}.timer"] = float(state.pads.timer[arena, pad]) / 10
    for i, control in enumerate(CONTROLS):
        numbers[f"previous.{control}"] = float(controls[arena, seat, i])
    return numbers


@pytest.mark.parametrize(("teams", "options"), [
    ((1, 1), {}), ((3, 3), {}), ((1, 1), {"team_size": 1, "pads": 2}), ((2, 1), {"team_size": 2, "timers": False, "pads": 0}),
])
def test_every_number_of_advanced_obs_is_what_its_name_says(teams, options):
    state = random_state(12, teams[0], teams[1], seed=5)
    controls, observation = some_controls(state), AdvancedObsPlus(**options)
    ours, names = seen(observation, state, controls), observation.names(state.seats)
    near = NearPads(observation.known.pads, 5120, torch.device("cpu"))
    for arena in range(state.arenas):
        for seat in range(state.seats):
            if state.cars.present[arena, seat]:
                absent = dict.fromkeys((name for name in names if name.startswith(("ally", "opponent"))), 0.0)
                expected = {**absent, **reference(state, arena, seat, controls, near)}
                wanted = [expected[name] for name in names]
                np.testing.assert_allclose(ours[arena, seat], wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("options", [{}, {"frames": 3}, {"team_size": 1, "pads": 0, "timers": False}])
def test_every_number_has_a_name_of_its_own(options):
    observation = AdvancedObsPlus(**options)
    names = observation.names(2)
    assert len(names) == observation.size(2) == len(set(names)) == seen(observation, random_state(2, 1, 1, 0)).shape[-1]


def test_numbers_are_of_the_order_of_one():
    ours = seen(AdvancedObsPlus(frames=2), random_state(200, 3, 3, seed=6))
    assert ours.abs().max() < 3.5
    assert ours.std() < 1


class AnyNumbers(ObservationByName):
    """Sees what it is told, and two numbers of its own."""

    more = ("own.half_boost", "seat")

    def __init__(self, sees: list[str], **options: int):
        super().__init__(**options)
        self.listed = sees

    def sees(self) -> list[str]:
        return self.listed

    def more_numbers(self, state: GameState) -> Tensor:
        seat = torch.arange(state.seats).expand(state.shape)
        return torch.stack([state.cars.boost / 200, seat], -1)


def test_any_selection_in_any_order_sees_the_same_numbers():
    state = random_state(20, 2, 2, seed=11)
    controls = some_controls(state)
    everything = list(Names(team_size=2, pads=3))
    order = torch.randperm(len(everything), generator=torch.Generator().manual_seed(1)).tolist()
    whole = seen(AnyNumbers(everything, team_size=2, pads=3), state, controls)
    mixed = seen(AnyNumbers([everything[i] for i in order], team_size=2, pads=3), state, controls)
    assert torch.equal(mixed, whole[..., order])
    few = ["ball.velocity.length", "opponent2.boost", "ball.velocity.length"]
    selected = seen(AnyNumbers(few, team_size=2, pads=3), state, controls)
    assert torch.equal(selected, whole[..., [everything.index(name) for name in few]])


def test_numbers_of_ones_own_stand_where_they_are_listed_and_are_zero_in_empty_seats():
    state = random_state(30, 3, 3, seed=12, empty=0.3)
    ours = seen(AnyNumbers(["seat", "own.boost", "own.half_boost"], frames=2), state)
    half, seat = state.cars.boost / 200, torch.arange(6).expand(30, 6)
    wanted = torch.stack([seat, state.cars.boost / 100, half], -1) * state.cars.present.unsqueeze(-1)
    torch.testing.assert_close(ours, torch.cat([wanted, wanted], -1))


@pytest.mark.parametrize(("sees", "message"), [
    (["ball.postion.x"], r"AnyNumbers sees 'ball.postion.x'.*did you mean ball.position.x"),
    (["ally3.boost"], "AnyNumbers sees 'ally3.boost'"),  # a team of three has two allies
])
def test_a_name_that_does_not_exist_is_refused_with_the_nearest(sees, message):
    with pytest.raises(UserError, match=message):
        seen(AnyNumbers(sees), random_state(2, 3, 3, seed=0))


def test_numbers_of_ones_own_of_a_wrong_shape_are_refused():
    class Wrong(AnyNumbers):
        def more_numbers(self, state: GameState) -> Tensor:
            return super().more_numbers(state)[..., :1]

    with pytest.raises(UserError, match=r"Wrong.more_numbers returned \[2, 2, 1\].*names 2 for every car.*\[2, 2, 2\]"):
        seen(Wrong(["seat"]), random_state(2, 1, 1, seed=0))


def test_the_listed_pads_are_the_nearest():
    places = (torch.rand(2, 500, generator=torch.Generator().manual_seed(0)) * 2 - 1) * torch.tensor([[4096.0], [5120.0]])
    pads = torch.tensor([pad[:2] for pad in PADS])
    listed = NearPads(4, 1.0, torch.device("cpu"))(places)
    assert all(len(set(column)) == 4 for column in listed.t().tolist())
    distance = (pads[listed] - places.t()).norm(dim=-1)  # [4, places]
    true = torch.cdist(places.t(), pads).sort(-1).values[:, :4].t()
    assert ((distance - true).abs() <= SQUARE * 2**0.5).all(), "within the diagonal of a square"
    assert ((distance - true).abs() < 1).float().mean() > 0.9


# What holds for all observations


@pytest.mark.parametrize("kind", KINDS)
def test_both_teams_observe_the_same_game(kind):
    state = random_state(50, 3, 2, seed=7)
    there = state.cars.present
    assert torch.equal(seen(kind(), state)[there], seen(kind(), state.mirrored())[there])


def test_a_mirror_that_forgets_the_pads_is_noticed():
    state = random_state(50, 1, 1, seed=7)
    mirrored = state.mirrored()
    mirrored.pads.timer.copy_(state.pads.timer)
    for kind in KINDS:
        assert not torch.equal(seen(kind(), state), seen(kind(), mirrored))


@pytest.mark.parametrize("kind", KINDS)
def test_empty_seats_do_not_matter(kind):
    state = random_state(50, 3, 3, seed=8, empty=0.4)
    poisoned = state.clone()
    for name, field in vars(poisoned.cars).items():
        if name not in ("present", "team") and field.dtype == torch.float32:
            field[~poisoned.cars.present] = torch.nan
    before, after = seen(kind(), state), seen(kind(), poisoned, some_controls(state))
    assert after.isfinite().all()
    assert torch.equal(before[state.cars.present], after[state.cars.present])


@pytest.mark.parametrize("kind", KINDS)
def test_a_duel_is_observed_alike_among_empty_seats(kind):
    duel = random_state(40, 1, 1, seed=9)
    wide = GameState.empty(40, 6)
    for part in ("ball", "pads", "game"):
        for name, field in vars(getattr(wide, part)).items():
            field.copy_(getattr(getattr(duel, part), name))
    wide.cars.team.copy_(torch.tensor([0, 0, 0, 1, 1, 1]))
    for name, field in vars(wide.cars).items():
        if name != "team":
            field[:, [1, 3]] = getattr(duel.cars, name)
    controls = torch.zeros(40, 6, 8)
    assert torch.equal(seen(kind(), wide, controls)[:, [1, 3]], seen(kind(), duel, torch.zeros(40, 2, 8)))


def test_frames_are_the_last_ones_of_the_same_episode():
    states = [random_state(5, 1, 1, seed) for seed in range(6)]
    begins = torch.rand(6, 5, generator=torch.Generator().manual_seed(0)) < 0.3
    begins[0] = True
    single, stacked = AdvancedObsPlus(), AdvancedObsPlus(frames=3)
    stacked.bind(states[0])
    episodes: list[list[Tensor]] = [[] for _ in range(5)]
    for state, begin in zip(states, begins, strict=True):
        frame = seen(single, state)
        stacked.begin(state, begin)
        ours = stacked.build(state, some_controls(state)).view(5, 2, 3, -1)
        for arena in range(5):
            episodes[arena] = [frame[arena], *([] if begin[arena] else episodes[arena])]
            wanted = (episodes[arena] + [episodes[arena][-1]] * 2)[:3]
            assert torch.equal(ours[arena], torch.stack(wanted, 1))


def test_an_observation_is_kept_until_the_build_after_the_next():
    observation, states = AdvancedObsPlus(), [random_state(5, 1, 1, seed) for seed in range(2)]
    observation.bind(states[0])
    first = observation.build(states[0], some_controls(states[0]))
    kept = first.clone()
    second = observation.build(states[1], some_controls(states[1]))
    assert torch.equal(first, kept) and not torch.equal(first, second)


@pytest.mark.parametrize("kind", [DefaultObs, AdvancedObsPlus, lambda: AdvancedObsPlus(frames=2)])
def test_an_observation_has_no_host_sync(kind):
    state, observation = random_state(4, 2, 2, seed=0), kind()
    controls = some_controls(state)
    observation.bind(state)
    with NoHostSync():
        observation.begin(state, state.cars.present[:, 0])
        observation.build(state, controls)


class Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **kwargs or {})


@pytest.mark.parametrize("teams", [(1, 1), (3, 3)])
def test_advanced_obs_makes_few_calls_for_any_number_of_cars(teams):
    state, observation = random_state(4, teams[0], teams[1], seed=0), AdvancedObsPlus()
    controls = some_controls(state)
    observation.bind(state)
    with Calls() as calls:
        observation.build(state, controls)
    assert calls.count < 80, "on a CPU with few arenas a step costs as much as its calls"


@pytest.mark.parametrize(("observation", "message"), [
    (AdvancedObsPlus(team_size=2), "6 seats do not fit into an observation with team_size=2"),
    (DefaultObs(zero_padding=1), "6 seats do not fit into an observation with zero_padding=1"),
])
def test_too_many_seats_are_refused(observation, message):
    with pytest.raises(UserError, match=message):
        observation.size(6)


def test_numbers_of_frames_and_pads_are_checked():
    with pytest.raises(UserError, match="frames of at least 1 and pads of 0 to 34, got 0 and 4"):
        AdvancedObsPlus(frames=0)
