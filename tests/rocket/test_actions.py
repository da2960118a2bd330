"""Action parsers: RLGym's table, masks that hold on RocketSim, sticky buttons, and the coverage check."""
from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from rlgym.rocket_league.action_parsers import LookupTableAction
from torch import Tensor

from tests import prepared
from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.random_states import random_state
from wavedash.errors import UserError
from wavedash.policy.distributions import MultiCategorical
from wavedash.rocket.actions import Continuous, LookupTable, MultiDiscrete
from wavedash.rocket.actions.coverage import Coverage, show_coverage
from wavedash.rocket.actions.parser import Parser
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.state import CONTROLS, GameState

PARSERS = [LookupTable, MultiDiscrete, Continuous]
NOT_COMPARED = ("controls", "handbrake")
"""Fields of the state after a step that may differ: the controls, and the handbrake, which has no effect in the air."""


def bound(parser: Parser, state: GameState) -> Any:
    parser.bind(state)
    parser.begin(state, torch.ones(state.arenas, dtype=torch.bool))
    return parser


def some_actions(parser: Parser, state: GameState, seed: int = 0) -> Tensor:
    parser.space.seed(seed)
    drawn = torch.stack([torch.as_tensor(parser.space.sample()) for _ in range(state.arenas * state.seats)])
    return drawn.view(state.arenas, state.seats, *parser.space.shape)


# Controls


def test_the_table_is_rlgyms_row_by_row():
    assert torch.equal(torch.tensor(LookupTable().rows()), torch.tensor(LookupTableAction.make_lookup_table()).float())


def test_the_table_is_looked_up():
    state = random_state(45, 1, 1, seed=0)
    parser = bound(LookupTable(), state)
    assert torch.equal(parser.parse(torch.arange(90).view(45, 2), state).view(90, 8), torch.tensor(parser.rows()))


@pytest.mark.parametrize(("options", "action", "controls"), [
    ({}, [0, 2, 1, 2, 1, 0, 1], [-1, 1, 0, 1, 1, 1, 0, 1]),
    ({"shared_yaw": False}, [2, 0, 1, 2, 0, 0, 1, 0], [1, -1, 0, 1, -1, 0, 1, 0]),
    ({"bins": 5}, [1, 3, 2, 4, 1, 1, 1], [-0.5, 0.5, 0, 0.5, 1, 1, 1, 1]),
])
def test_the_choices_of_multi_discrete_are_controls(options, action, controls):
    state = random_state(1, 1, 0, seed=0)
    parser = bound(MultiDiscrete(**options), state)
    assert len(parser.space.nvec) == len(action)
    assert parser.parse(torch.tensor(action).view(1, 1, -1), state).flatten().tolist() == controls


def test_continuous_controls_are_clipped_and_buttons_pressed_above_zero():
    state = random_state(1, 1, 0, seed=0)
    action = torch.tensor([[[0.25, -3.0, 1.5, -1.0, 0.0, 0.01, 0.0, -0.5]]])
    before = action.clone()
    controls = bound(Continuous(), state).parse(action, state)
    assert controls.flatten().tolist() == [0.25, -1.0, 1.0, -1.0, 0.0, 1.0, 0.0, 0.0]
    assert torch.equal(action, before), "the policy's action is learned from, and must not change"


@pytest.mark.parametrize("kind", PARSERS)
def test_all_controls_are_within_their_range(kind):
    state = random_state(50, 2, 2, seed=1)
    parser = bound(kind(), state)
    controls = parser.parse(some_actions(parser, state), state)
    assert controls.shape == (50, 4, 8) and controls.dtype == torch.float32
    assert controls.abs().max() <= 1
    assert ((controls[..., 5:] == 0) | (controls[..., 5:] == 1)).all()


def test_buttons_stick_until_the_episode_ends():
    state = random_state(2, 1, 0, seed=0)
    parser = bound(MultiDiscrete(sticky=2), state)
    let_go = [1, 1, 1, 1, 0, 0, 0]
    jump, boost = [*let_go[:4], 1, 0, 0], [*let_go[:4], 0, 1, 0]
    pressed = []
    for chosen in (jump, let_go, boost, let_go, let_go, let_go):
        if len(pressed) == 2:
            parser.begin(state, torch.tensor([False, True]))
        pressed.append(parser.parse(torch.tensor(chosen).expand(2, 1, 7), state)[:, 0, 5:].clone())
    jumps, boosts, handbrakes = torch.stack(pressed).unbind(-1)
    assert jumps[:, 0].tolist() == [1, 1, 1, 0, 0, 0]
    assert jumps[:, 1].tolist() == [1, 1, 0, 0, 0, 0], "the second arena began anew"
    assert boosts.t().tolist() == [[0, 0, 1, 1, 1, 0]] * 2
    assert not handbrakes.any()


def test_without_sticky_buttons_nothing_is_remembered():
    state = random_state(4, 1, 1, seed=0)
    parser = bound(LookupTable(), state)
    actions = some_actions(parser, state)
    first = parser.parse(actions, state)
    parser.parse(some_actions(parser, state, seed=1), state)
    assert torch.equal(parser.parse(actions, state), first)


@pytest.mark.parametrize("options", [{"ticks": 0}, {"delay": 9}, {"delay": -1}, {"sticky": -1}])
@pytest.mark.parametrize("kind", PARSERS)
def test_impossible_options_are_refused(kind, options):
    with pytest.raises(UserError, match="needs ticks of at least 1, delay of 0 to ticks and sticky of at least 0, got"):
        kind(**options)


@pytest.mark.parametrize("kind", [*PARSERS, lambda: LookupTable(sticky=1)])
def test_a_parser_has_no_host_sync(kind):
    state = random_state(4, 2, 2, seed=0)
    parser = kind()
    actions = some_actions(parser, state)
    parser.bind(state)
    with NoHostSync():
        parser.begin(state, state.cars.present[:, 0])
        parser.mask(state)
        parser.parse(actions, state)


# Masks


@pytest.mark.parametrize("kind", [LookupTable, MultiDiscrete])
def test_doing_nothing_is_never_masked(kind):
    state = random_state(300, 3, 3, seed=2, empty=0.3)
    parser = bound(kind(), state)
    mask = parser.mask(state)
    if kind is LookupTable:
        assert mask[..., parser.rows().index([0.0] * 8)].all()
        assert mask[~state.cars.present].sum(-1).eq(1).all(), "an empty seat has no choice"
    else:
        neutral = torch.tensor([False, True, False] * 4 + [True, False] * 3)
        assert mask[..., neutral].all()
        assert torch.equal(mask[~state.cars.present], neutral.expand_as(mask[~state.cars.present]))


@pytest.mark.parametrize("kind", [LookupTable, MultiDiscrete])
def test_masks_are_the_same_for_both_teams(kind):
    state = random_state(100, 2, 3, seed=3)
    assert torch.equal(bound(kind(), state).mask(state), bound(kind(), state.mirrored()).mask(state.mirrored()))


@pytest.mark.parametrize("kind", [LookupTable, MultiDiscrete])
def test_masks_can_be_switched_off(kind):
    state = random_state(2, 1, 1, seed=0)
    assert bound(kind(masked=False), state).mask(state) is None


def test_masks_of_multi_discrete_have_the_layout_of_the_policy():
    state = random_state(60, 1, 1, seed=4, empty=0)
    parser = bound(MultiDiscrete(), state)
    mask = parser.mask(state)
    sizes = parser.space.nvec.tolist()
    chosen = MultiCategorical(torch.zeros(60, 2, sum(sizes)), MultiCategorical.layout(sizes), mask).sample()
    controls = parser.parse(chosen, state)
    empty = state.cars.boost == 0
    assert empty.any() and not controls[..., CONTROLS.index("boost")][empty].any()
    assert controls[..., CONTROLS.index("boost")].any() and controls[..., CONTROLS.index("jump")].any()


def played_states(steps: int, seed: int) -> GameState:
    """States of RocketSim games in which random actions are held for a while: cars drive, jump, flip and fall."""
    generator = torch.Generator().manual_seed(seed)
    simulator = RocketSimSimulator(6, 1, 1)
    simulator.state.cars.boost[:2] = 0
    simulator.place(torch.ones(6, dtype=torch.bool))
    parser = bound(LookupTable(), simulator.state)
    action, records = torch.zeros(6, 2, dtype=torch.long), []
    for _ in range(steps):
        draw = torch.randint(90, (6, 2), generator=generator)
        action = torch.where(torch.rand(6, 2, generator=generator) < 0.5, draw, action)
        simulator.step(parser.parse(action, simulator.state), parser.ticks, parser.delay)
        records.append(simulator.state.memory.clone())
    simulator.close()
    return GameState.over(torch.cat(records[5:]), 2)


class Laboratory:
    """Plays one step from the same state with many different controls."""

    def __init__(self, games: GameState):
        self.games, self.simulator = games, RocketSimSimulator(30, 1, 1)

    def outcomes(self, moment: int, controls: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The first car [n, numbers] after controls [n, 8], its handbrake, and whether the same wheels touch as before."""
        parts = [self._outcomes(self.games.memory[moment], some) for some in controls.split(30)]
        after, handbrake, touches = (torch.cat(part) for part in zip(*parts, strict=True))
        return after, handbrake, touches == self.games.cars.wheel_contact[moment, 0].any()

    def _outcomes(self, record: Tensor, controls: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        simulator = self.simulator
        cars = simulator.state.cars
        simulator.state.memory.copy_(record.expand_as(simulator.state.memory))
        simulator.place(torch.ones(30, dtype=torch.bool))
        simulator.step(torch.stack([controls, cars.controls[:, 1]], 1), ticks=8, delay=1)
        fields = [field[:, 0].reshape(30, -1).float() for name, field in vars(cars).items() if name not in NOT_COMPARED]
        return torch.cat(fields, 1), cars.handbrake[:, :1].clone(), cars.wheel_contact[:, 0].any(-1)


@pytest.fixture(scope="module")
def laboratory() -> Iterator[Laboratory]:
    laboratory = Laboratory(played_states(steps=35, seed=0))
    yield laboratory
    laboratory.simulator.close()


@pytest.mark.slow
def test_a_masked_row_does_what_an_allowed_one_does_and_allowed_ones_differ(laboratory):
    games = laboratory.games
    parser = bound(LookupTable(), games)
    rows, mask = torch.tensor(parser.rows()), parser.mask(games)[:, 0]
    compared = torch.zeros(90, dtype=torch.long)
    offered = different = 0
    for moment in range(0, games.arenas, 3):
        after, handbrake, still = laboratory.outcomes(moment, rows)
        same = (after.unsqueeze(1) == after[mask[moment]]).all(-1).any(-1)
        assert (same | ~still)[~mask[moment]].all(), rows[~mask[moment] & ~same & still]
        compared += ~mask[moment] & still

        wheels = int(games.cars.wheel_contact[moment, 0].sum())
        if wheels in (0, 4) and not games.cars.is_flipping[moment, 0]:  # else some could land, and are kept for that
            offered += int(mask[moment].sum())
            different += len(torch.cat([after, handbrake], 1)[mask[moment]].unique(dim=0))
    with_twin = rows[:, [2, 4, 5]].any(1) | ((rows[:, 6] == 1) & (rows[:, 0] == 1))
    assert torch.equal(compared > 0, with_twin), "all rows with pitch, roll, jump or boost were masked at some moment"
    assert different > 0.97 * offered > 1000, "the masks find nearly all duplicates"


def test_masked_choices_of_multi_discrete_do_nothing(laboratory):
    games = laboratory.games
    parser = bound(MultiDiscrete(), games)
    sizes, masks = parser.space.nvec.tolist(), parser.mask(games)[:, 0]
    neutral = torch.tensor([n // 2 if n > 2 else 0 for n in sizes])
    generator, checked = torch.Generator().manual_seed(1), 0
    for moment in range(1, games.arenas, 6):
        chosen = torch.stack([torch.randint(n, (45,), generator=generator) for n in sizes], 1)
        offered = torch.stack([mask[chosen[:, i]] for i, mask in enumerate(masks[moment].split(sizes))], 1)
        twins = torch.stack([chosen, torch.where(offered, chosen, neutral)])
        after, _, still = laboratory.outcomes(moment, parser.controls(twins).flatten(0, 1))
        same = (after[:45] == after[45:]).all(-1)
        assert (same | ~still[:45] | ~still[45:]).all()
        checked += int((~offered).any(1).sum())
    assert checked > 100


def one_car(**fields: float | list[float]) -> GameState:
    """A car in the air with boost and a flip, and no button pressed, except as `fields` say."""
    state = GameState.empty(1, 1)
    for name, value in {"present": True, "boost": 50, **fields}.items():
        getattr(state.cars, name)[0, 0] = torch.tensor(value)
    return state


WHEELS = {"wheel_contact": True, "on_ground": True}
HELD = {"controls": [0.0, 0, 0, 0, 0, 1, 0, 0]}
RISING = {**HELD, "is_jumping": True, "has_jumped": True}
FLIP = {"has_flipped": True, "is_flipping": True, "flip_time": 0.3, "flip_torque": [0.0, 1.0, 0.0], "has_jumped": True}
SIDE_FLIP = {**FLIP, "flip_torque": [1.0, 0.0, 0.0]}
FLIPPED = {**FLIP, "is_flipping": False}
STALL = {**FLIP, "flip_torque": [0.0, 0.0, 0.0]}
GROUND = lambda c: not (c["pitch"] or c["roll"] or c["jump"])  # noqa: E731


@pytest.mark.parametrize(("situation", "offered"), [
    pytest.param({}, lambda c: True, id="in the air with a flip: everything"),
    pytest.param(HELD, lambda c: not c["jump"], id="with the jump button still held: no jump"),
    pytest.param(RISING, lambda c: True, id="while rising, to go on holding"),
    pytest.param({"air_time_since_jump": 1.3, "has_jumped": True}, lambda c: not c["jump"], id="too late for a flip"),
    pytest.param({"has_double_jumped": True}, lambda c: not c["jump"], id="after a double jump"),
    pytest.param({"has_flipped": True, "flip_time": 2.0, "has_contact": True}, lambda c: True, id="on the roof"),
    pytest.param(WHEELS, lambda c: c["jump"] or GROUND(c), id="on wheels: pitch and roll only with a jump"),
    pytest.param({**WHEELS, **HELD}, GROUND, id="on wheels with jump held"),
    pytest.param({**WHEELS, **RISING}, lambda c: True, id="about to leave the ground"),
    pytest.param({"wheel_contact": [True, True, True, False], "on_ground": True}, lambda c: True, id="on three wheels"),
    pytest.param({"boost": 0}, lambda c: not (c["boost"] and GROUND(c)), id="boost that would be throttle"),
    pytest.param(FLIP, lambda c: not c["jump"] and (GROUND(c) or c["pitch"] == 1), id="in a front flip: pull back to cancel"),
    pytest.param(SIDE_FLIP, GROUND, id="in a side flip: nothing cancels it"),
    pytest.param(STALL, lambda c: not c["jump"], id="in a stall"),
    pytest.param({**FLIP, "flip_time": 0.6}, lambda c: not c["jump"], id="in a flip that ends before the action does"),
    pytest.param({**FLIPPED, "flip_time": 0.7}, lambda c: not (c["jump"] or c["pitch"]), id="pitch is locked"),
    pytest.param({**FLIPPED, "flip_time": 0.9}, lambda c: not c["jump"], id="pitch is free again soon"),
    pytest.param({"is_demoed": True, "demo_timer": 0.1}, lambda c: not any(c.values()), id="demolished"),
    pytest.param({"is_demoed": True, "demo_timer": 0.05}, lambda c: True, id="back before the action ends"),
    pytest.param({"present": False}, lambda c: not any(c.values()), id="an empty seat"),
])
def test_the_rows_that_a_situation_allows(situation, offered):
    state = one_car(**situation)
    parser = bound(LookupTable(), state)
    expected = [bool(offered(dict(zip(CONTROLS, row, strict=True)))) for row in parser.rows()]
    assert parser.mask(state).flatten().tolist() == expected


def test_a_button_that_may_have_been_released_since_masks_nothing():
    state = one_car(**HELD)
    assert bound(LookupTable(ticks=1, delay=1), state).mask(state).all(), "the last choice is not in force yet"


class FewRows(LookupTable):
    """A user's own table: nothing, throttle, boost, throttle and pitch, roll, jump and handbrake."""

    def rows(self):
        return [[0.0] * 8, [1.0, 0, 0, 0, 0, 0, 0, 0], [1.0, 0, 0, 0, 0, 0, 1.0, 0], [1.0, 0, 1.0, 0, 0, 0, 0, 0],
                [0, 0, 0, 0, -1.0, 0, 0, 0], [0, 0, 0, 0, 0, 1.0, 0, 1.0]]


@pytest.mark.parametrize(("situation", "offered"), [
    ({}, [True, True, True, True, True, True]), (WHEELS, [True, True, True, False, False, True]),
    ({"boost": 0, "has_double_jumped": True}, [True, True, False, True, True, False]),
    ({**WHEELS, **HELD}, [True, True, True, False, False, True]),  # as there is no other row with the handbrake
])
def test_masks_of_a_users_own_table_follow_from_its_rows(situation, offered):
    state = one_car(**situation)
    assert bound(FewRows(), state).mask(state).flatten().tolist() == offered


# Coverage


class OnlyLeft(Parser):
    """A parser with a mistake."""

    space = gymnasium.spaces.Discrete(3)

    def controls(self, action: Tensor) -> Tensor:
        controls = torch.zeros(*action.shape, 8)
        controls[..., 0] = 1.0
        controls[..., 1] = -(action > 0).float()
        controls[..., 6] = 2.0
        return controls


class Flat(Parser):
    """It returns another number of controls than eight."""

    space = gymnasium.spaces.Discrete(3)

    def controls(self, action: Tensor) -> Tensor:
        return action.float()


def wavedash(*words: str) -> subprocess.CompletedProcess[str]:
    return prepared.run(["-m", "wavedash", *words], Path(__file__).parents[2])


@pytest.mark.slow
def test_the_command_shows_the_table():
    done = wavedash("rocket", "actions")
    assert done.returncode == 0
    shown = {words[0]: words[1:] for line in done.stdout.splitlines() if (words := line.replace("│", " ").split())}
    assert shown["steer"] == shown["pitch"] == shown["roll"] == ["24", "(27%)", "42", "(47%)", "24", "(27%)"]
    assert "turning on the ground: 48; turning in the air: 80 (pitch 48, yaw 48, roll 48)" in done.stdout
    assert "with jump: 18; with boost: 39; with handbrake: 28" in done.stdout
    assert "distinct: 90; without any control: number 8" in done.stdout
    assert "warning" not in done.stdout


@pytest.mark.slow
def test_the_command_warns_of_what_is_wrong_with_ones_own_parser():
    done = wavedash("rocket", "actions", "--parser", "tests.rocket.test_actions:OnlyLeft", "ticks=4")
    assert done.returncode == 0
    warned = [line.removeprefix("warning: ") for line in done.stdout.splitlines() if line.startswith("warning: ")]
    assert warned == [
        "some controls are outside -1 to 1, or NaN", "some buttons are neither 0 nor 1", "throttle never goes back",
        "steer never goes right", "pitch is never used", "yaw is never used", "roll is never used", "jump is never pressed",
        "boost is never let go", "handbrake is never pressed",
        "there is no combination without any control, so the car can never just roll or fall",
        "1 combinations are duplicates of others",
    ]


@pytest.mark.parametrize(("parser", "options", "message"), [
    ("lookup", [], "there is no action 'lookup'; did you mean 'lookup_table'?"),
    ("multi_discrete", ["bins=4"], "MultiDiscrete needs bins of 3, 5, 7, ... so that one of them is the middle, got 4"),
    ("multi_discrete", ["bin=5"], "action 'multi_discrete' has no option 'bin'; did you mean 'bins'?"),
    ("tests.rocket.test_actions:Flat", [], "for 3 arenas with one car; it must be [E, C, 8]"),
])
def test_what_cannot_be_shown_is_refused_with_the_reason(parser, options, message):
    with pytest.raises(UserError) as refused:
        show_coverage(parser, options)
    assert message in str(refused.value)


@pytest.mark.parametrize(("parser", "combinations", "warnings"), [
    (MultiDiscrete(), 648, []), (MultiDiscrete(shared_yaw=False), 1944, []), (Continuous(), 6561, []),
    (FewRows(), 6, ["throttle never goes back", "steer is never used", "pitch never goes down", "yaw is never used",
                    "roll never goes right"]),
])
def test_coverage_counts_combinations_and_warns_of_missing_controls(parser, combinations, warnings):
    coverage = Coverage.of(parser)
    assert len(coverage.controls) == combinations
    assert coverage.warnings() == warnings


def test_coverage_warns_of_unbalanced_sides():
    class Leaning(FewRows):
        def rows(self):
            return [[0.0] * 8, *([0.0, side] + [0.0] * 6 for side in (-1, -0.5, 1))]

    assert "steer is unbalanced: 2 left, 1 right" in Coverage.of(Leaning()).warnings()
