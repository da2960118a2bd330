"""In a match every player infers its own cars alone: each car gets the controls that the whole policy would have given it."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.league.test_frozen_policies import KINDS as FROZEN
from tests.league.whole_policy import WholePolicy
from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.test_line_up import arenas
from wavedash.assembly import make_policy
from wavedash.config import RocketConfig
from wavedash.config_file import load_config
from wavedash.envs.kinds import kind_of
from wavedash.evaluate import matches
from wavedash.evaluate.matches import Match, arenas_of
from wavedash.league.frozen import FrozenPolicy
from wavedash.league.teams import Team
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rocket.driver import Pace
from wavedash.rocket.line_up import Duel
from wavedash.rocket.parts import Player
from wavedash.rocket.players import Chaser, Idle
from wavedash.rocket.state import GameState

WIDE = "env.rocket.observation={advanced_obs_plus: {team_size: 3}}"
KINDS = {**FROZEN, "wide": ("policy.hidden=[8]", "policy.memory={kind: lstm, size: 4}", WIDE)}


def network(kind: str, seed: int) -> ActorCritic:
    """A policy with clear preferences, in which the critic has as large weights as the actor."""
    config = load_config("rocket-1v1", [*KINDS[kind], f"seed={seed}"])
    policy = make_policy(kind_of(config.env).spaces(config.env, torch.device("cpu")), config)
    with torch.no_grad():
        for name, x in policy.head.state_dict().items():
            x.mul_(1000.0 if name.endswith("weight") else 1.0)
    return policy


def task_of(kind: str) -> RocketConfig:
    rocket = load_config("rocket-1v1", KINDS[kind]).env.rocket
    assert rocket is not None
    return rocket


def player(kind: str, seed: int, whole: bool = False) -> Player:
    """A frozen policy, or its reference. With gSDE it explores: both draw the same noise for every car."""
    policy, deterministic = network(kind, seed), kind != "gsde"
    if whole:
        return WholePolicy(policy, task_of(kind), deterministic, seed)
    return FrozenPolicy(policy, task_of(kind), f"{kind} {seed}", deterministic, seed)


class Compared(Duel):
    """Beside the players, references of them see the same games: for every step, the controls of both are noted."""

    crossed = False
    """The control: each player is told that the cars of the other are its own"""

    def __init__(self, pace: Pace, *players: Player, reference: list[Player]) -> None:
        super().__init__(pace, *players)
        self.reference = (Duel(pace, *reference),)
        self.noted: list[tuple[Tensor, Tensor]] = []

    def bind(self, state: GameState) -> None:
        super().bind(state)
        self.reference[0].bind(state)
        if self.crossed:
            first, second = self.players
            first.rows, second.rows = second.rows, first.rows

    def begin(self, state: GameState, mask: Tensor) -> None:
        super().begin(state, mask)
        self.reference[0].begin(state, mask)

    def drive(self, parsed: Tensor, chosen: Tensor) -> Tensor:
        controls = super().drive(parsed, chosen)
        self.noted.append((controls.clone(), self.reference[0].drive(parsed, chosen)))
        return controls


def differences(monkeypatch: pytest.MonkeyPatch, ours: list[Player], theirs: list[Player], size: int = 1,
                simulator: str = "warp", steps: int = 70) -> Tensor:
    """[steps, E, C]: how far the controls of players and references are apart, in games of a second."""
    monkeypatch.setattr(matches, "Duel", lambda pace, *players: Compared(pace, *players, reference=theirs))
    match = Match(arenas_of(size, simulator), ours[0], ours[1:], games=6, limit=1.0)
    match.env.reset(1)
    for _ in range(steps):
        match.env.step(match._nothing)
    line_up = match.line_up
    assert isinstance(line_up, Compared) and int(line_up.games.min()) > 1, "memory was cleared"
    mine, reference = (torch.stack(x) for x in zip(*line_up.noted, strict=True))
    match.close()
    assert len(reference.flatten(0, 2).unique(dim=0)) > 3, "they do not always do the same"
    return (mine - reference).abs().amax(-1)


def assert_the_same(apart: Tensor) -> None:
    """The bound is that of continuous controls: sums of 150 products of numbers below 10, in a row of weights of length 10.
    Where choices are discrete, rounding may decide one of thousands."""
    assert (apart > 5e-3).float().mean() < 2e-3


@pytest.mark.parametrize("crossed", [False, True], ids=["", "control"])
@pytest.mark.parametrize("kinds", ["plain plain", "gru gru", "plain gru", "gru slow", "plain sticks", "sticks gsde"])
def test_each_car_gets_the_controls_of_the_whole_policy(monkeypatch, kinds, crossed):
    """Each policy has the observation, the action parser, the ticks and the delay of its own task. In the control each infers
    the cars of the other."""
    monkeypatch.setattr(Compared, "crossed", crossed)
    ours, theirs = ([player(kind, seed, whole) for seed, kind in enumerate(kinds.split(), 1)] for whole in (False, True))
    apart = differences(monkeypatch, ours, theirs)
    if crossed:
        assert (apart > 0.1).float().mean() > 0.2
    else:
        assert_the_same(apart)


@pytest.mark.parametrize(("kinds", "shown"), [("gru gru plain gru", [True, True, False, True]), ("slow slow", [True, True]),
                                              ("plain slow", [True, False]), ("slow plain", [False, False])])
def test_players_of_one_task_and_pace_are_shown_what_the_first_one_sees(kinds, shown):
    """Only the first of them observes."""
    def build(state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        raise AssertionError("it observes by itself")

    players = [player(kind, seed) for seed, kind in enumerate(kinds.split())]
    match = Match(arenas_of(1), players[0], players[1:], games=2)
    assert [one in match.line_up.viewers for one in players] == shown
    match.env.reset(0)
    for one, is_shown in zip(players[1:], shown[1:], strict=True):
        assert isinstance(one, FrozenPolicy)
        one.observation.build = build
        if is_shown:
            match.env.step(match._nothing)
        else:
            with pytest.raises(AssertionError, match="by itself"):
                match.env.step(match._nothing)
            break
    match.close()


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
@pytest.mark.parametrize("size", [2, 3])
def test_in_teams_of_several_cars_too_and_in_either_simulator(monkeypatch, size, simulator):
    """Against two others, each in arenas of its own, one of which is a team with a player for each car."""
    ours, theirs = (
        [player("wide", 1, whole), player("threes", 2, whole),
         Team([player("wide", 3, whole), Chaser(), player("threes", 4, whole)][:size])] for whole in (False, True))
    assert_the_same(differences(monkeypatch, ours, theirs, size, simulator, steps=30))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_car_is_told_to_exactly_the_player_that_drives_it(size):
    """The rows that players get are those of the seats, in every episode."""
    class Told(Idle):
        def take_slots(self, rows: Tensor) -> None:
            self.rows = rows

    state, players = arenas(12, 2 * size), [Told() for _ in range(4)]
    duel = Duel(Pace(8, 1), *players)
    duel.bind(state)
    for _ in range(3):
        duel.begin(state, torch.arange(12) % 3 > 0)
        duel.begin(state, torch.ones(12, dtype=torch.bool))
        told = torch.zeros(12 * 2 * size, dtype=torch.int64)
        for number, one in enumerate(players, 1):
            first = duel.arenas_of(number).start * 2 * size
            assert one.rows.shape == (1, (12 if number == 1 else 4) * size), "half of the cars in its arenas"
            told[first + one.rows.flatten()] += number
        assert torch.equal(told.view(12, -1), duel.seats)
    duel.rest(torch.arange(12) >= 5)
    for number, one in enumerate(players, 1):
        arena = duel.arenas_of(number).start + one.rows.flatten() // (2 * size)
        assert len(arena) == {1: 5, 2: 4, 3: 1, 4: 0}[number] * size and (arena < 5).all(), "those that rest are nobody's"
    duel.rest(torch.zeros(12, dtype=torch.bool))
    assert players[0].rows.shape == (1, 12 * size)
    members = [Told() for _ in range(size)]
    team = Team(members)
    team.bind(state)
    team.take_slots(players[0].rows)
    for seat, member in enumerate(members):
        assert set(member.rows.flatten().tolist()) == {row for row in players[0].rows.flatten().tolist() if row % size == seat}


@pytest.mark.parametrize("kind", ["wide", "gsde", "sticks"])
def test_a_step_of_a_match_has_no_host_sync_in_its_players(kind):
    """Also of a team: on a GPU a step is captured in a CUDA graph."""
    state = arenas(4, 4 if kind == "wide" else 2)
    first = Team([player("wide", 1), player("threes", 2)]) if kind == "wide" else player(kind, 1)
    duel = Duel(Pace(8, 1), first, player(kind, 3))
    duel.bind(state)
    nothing = torch.zeros(*state.shape, 8)
    with NoHostSync():
        duel.begin(state, torch.arange(4) % 2 == 0)
        for _ in range(2):
            controls = duel.drive(nothing, nothing)
    duel.rest(torch.ones(4, dtype=torch.bool))
    assert duel.drive(nothing, nothing).shape == controls.shape, "also if there is nobody to drive for"
