"""Matches between players: goals are counted for the right side, and a player that does nothing useful loses."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from wavedash.cli import app
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.evaluate.against import AgainstResult, play_against
from wavedash.evaluate.matches import SECONDS, Match
from wavedash.evaluate.results import Score
from wavedash.rocket import names
from wavedash.rocket.constants import BOOST_START, KICKOFF_SPAWNS
from wavedash.rocket.parts import Player, ScriptedPlayer, Start
from wavedash.rocket.players import Chaser, Idle, Random
from wavedash.rocket.state import GameState
from wavedash.training import train


def match(simulator: str, first: Player, second: Player, games: int, *overrides: str, own_starts: bool = False) -> Match:
    config = load_config("rocket-1v1", [f"env.rocket.simulator={simulator}", *overrides]).env
    return Match(config, first, second, games, own_starts)


# The better player wins


@pytest.mark.slow
@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
@pytest.mark.parametrize("first", [Idle, Random])
def test_a_chaser_beats_idle_and_random_players(simulator, first):
    """An untrained policy plays at random: a match that it could win would measure nothing."""
    duel = match(simulator, first(), Chaser(), 24)
    score = duel.play(seed=1)
    duel.close()
    assert score.games == 24
    assert score.goal_share.interval[1] < 0.5
    assert score.opponent_touches > 5.0 > 5.0 * score.touches


@pytest.mark.slow
def test_between_equal_players_neither_side_wins():
    """Random against random scores hardly any goals, and both touch the ball equally rarely."""
    score = match("warp", Random(seed=1), Random(seed=2), 16).play(seed=1)
    assert score.goalless >= 14
    assert score.touches < 1.0 and score.opponent_touches < 1.0


def test_two_idle_players_score_no_goal():
    score = match("warp", Idle(), Idle(), 4).play(seed=1)
    assert score == Score(games=4, scored=0, conceded=0, touches=0.0, opponent_touches=0.0, minutes=4 * SECONDS / 60)
    assert score.goalless == 4 and score.goal_share.interval == (0.0, 1.0)


def test_a_match_of_series_has_whole_series_and_counts_every_game():
    """The ball flies into the orange goal in every game: two thirds of a second each."""
    config = load_config("rocket-1v1", ["env.rocket.starts={'tests.rocket.test_series:IntoTheGoal': 1}"]).env
    one, several = (Match(config, Idle(), Idle(), 10, own_starts=True, series=series) for series in (1, 3))
    assert (one.arenas, one.rounds) == (10, 1) and (several.arenas, several.rounds) == (4, 3), "12 games are whole series"
    (games,), (plain,) = (duel.play_all(seed=1) for duel in (several, one))
    assert games.score.games == 12 and (games.score.scored, games.score.conceded) == (6, 6)
    assert {game.seconds for game in games.played} == {game.seconds for game in plain.played}
    assert [game.side for game in games.played] == [0] * 3 + [1] * 3 + [0] * 3 + [1] * 3
    for duel in (one, several):
        duel.close()


# Which side a goal counts for


class Shots(Start):
    """The ball flies into a goal at once, over the cars, or lies still: `ends` has one word for each arena in turn, the team
    that is scored against, or none."""

    def __init__(self, ends: str) -> None:
        self.speed = torch.tensor([{"blue": -4000.0, "orange": 4000.0, "none": 0.0}[end] for end in ends.split()])

    def write(self, state: GameState, generator: torch.Generator) -> None:
        state.ball.position.copy_(torch.tensor([800.0, 0.0, 300.0]))
        state.ball.velocity[:, 1].copy_(self.speed.repeat(state.arenas // len(self.speed)))


@pytest.mark.parametrize(("ends", "scored", "conceded"), [
    ("orange orange", 4, 4), ("blue blue", 4, 4),  # the first player is blue in the first arena of a pair
    ("orange blue", 8, 0), ("blue orange", 0, 8),
    ("orange none none none", 2, 0), ("none none none orange", 0, 2),
])
def test_a_goal_is_counted_for_the_side_that_scored_it(ends, scored, conceded):
    """Each arena plays one game, however short: those with a goal would have had time for twenty."""
    shots = f"env.rocket.starts={{'tests.evaluate.test_matches:Shots': {{ends: {ends}}}}}"
    score = match("warp", Idle(), Idle(), 8, shots, own_starts=True).play(seed=1)
    assert (score.games, score.scored, score.conceded) == (8, scored, conceded)
    assert score.goalless == 8 - scored - conceded


class Honks(ScriptedPlayer):
    """It only honks, so that its controls can be recognised."""

    def controls(self, state: GameState) -> Tensor:
        return torch.full((state.arenas, state.seats, 8), 0.5)


def test_each_player_drives_its_own_cars_alone():
    duel = match("rocketsim", Idle(), Honks(), 4, "env.rocket.blue=2", "env.rocket.orange=2",
                 "env.rocket.observation={advanced_obs_plus: {team_size: 2}}")
    duel.env.reset(0)
    duel.env.step(torch.zeros(16, dtype=torch.int64))
    controls = torch.cat([duel.env.state_of(arena).cars.controls for arena in range(4)])
    told = duel.env._shards[0].controls
    for arena in range(4):
        for seat in range(4):
            is_first = (seat >= 2) == (arena % 2 == 1)
            assert (controls[arena, seat] == (0.0 if is_first else 0.5)).all()
            assert (told[arena, seat] == (0.0 if is_first else 0.5)).all(), "the last action that a car observes"
    duel.close()


class Forgetful(Idle):
    """It notes in which arenas an episode began."""

    def bind(self, state: GameState) -> None:
        self.forgotten: list[Tensor] = []

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.forgotten.append(mask.clone())


@pytest.mark.slow
def test_memory_is_reset_where_a_game_ends_and_nowhere_else():
    shot = "env.rocket.starts={'tests.evaluate.test_matches:Shots': {ends: orange none none none}}"
    first, second = Forgetful(), Forgetful()
    match("warp", first, second, 4, shot, own_starts=True).play(1)
    for forgotten in (first.forgotten, second.forgotten):
        assert forgotten[0].all() and len(forgotten[0]) == 4
        assert torch.stack(forgotten[1:-1]).any(0).tolist() == [True, False, False, False]
        assert forgotten[-1][1:].all(), "the other games ran out of time"


# Starts


@pytest.mark.slow
def test_both_simulators_begin_from_the_same_kickoffs_of_which_none_is_a_copy():
    states = []
    for simulator in ("warp", "rocketsim"):
        duel = match(simulator, Idle(), Idle(), 64)
        duel.env.reset(5)
        states.append(duel.env._shards[0].state.clone())
        duel.close()
    ours, theirs = states
    for name in ("position", "rotation", "velocity", "boost"):
        torch.testing.assert_close(getattr(ours.cars, name), getattr(theirs.cars, name), rtol=0, atol=1e-3)
    torch.testing.assert_close(ours.ball.position, theirs.ball.position, rtol=0, atol=1e-3)
    place = ours.cars.position[:, 0, :2]
    off = (place.unsqueeze(1) - torch.tensor(KICKOFF_SPAWNS)[:, :2]).norm(dim=-1)  # [E, spots]
    assert off.min(-1).values.max() < 30.0 * 2**0.5 and len(off.argmin(-1).unique()) == 5
    assert torch.allclose(ours.cars.boost, torch.tensor(BOOST_START)) and not ours.cars.velocity.any()
    assert len({tuple(x) for x in place.tolist()}) == 64


# The command


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A policy with memory that has learned nothing."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train("rocket-1v1", "total_steps=64", "env.count=4", "policy.hidden=[8]", "policy.memory={kind: gru, size: 8}",
                     "ppo.rollout_steps=16", "ppo.minibatch_size=64", "report.console=off") == 0
    return root


@pytest.mark.slow
def test_by_default_a_policy_plays_in_the_simulator_of_its_training_and_the_same_games_again(run):
    first, again = (play_against(run, "chaser", games=2) for _ in range(2))
    assert list(first.scores) == ["warp"]
    assert first == again


@pytest.mark.slow
def test_a_policy_that_has_learned_nothing_loses_against_a_chaser(run):
    result = play_against(run, "chaser", "rocketsim", games=48, deterministic=False)
    assert result.scores["rocketsim"].goal_share.interval[1] < 0.5


@pytest.mark.parametrize(("arguments", "words"), [
    (["--against", "chasr"], "did you mean 'chaser'"),
    (["--against", "wavedash.rocket.rewards:Goal"], "derived from wavedash.rocket.parts.Player"),
    (["--against", "nowhere/at/all"], "there is no player 'nowhere/at/all'. A player is one of chaser, defender"),
    (["--against", "random", "--random"], "--against random"),
    (["--simulator", "warp"], "go with --against"),
    (["--starts", "task"], "go with --against"),
])
def test_mistakes_are_named(run, arguments, words):
    with pytest.raises(UserError, match=words):
        app(["eval", str(run), *arguments], standalone_mode=False)


def test_only_rocket_league_has_opponents(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    assert train("cartpole", "total_steps=64", "env.count=2", "ppo.rollout_steps=32", "report.console=off") == 0
    with pytest.raises(UserError, match="was trained in CartPole-v1"):
        play_against(tmp_path, "chaser")


@pytest.mark.slow
def test_a_policy_that_never_observed_an_opponent_is_refused_in_a_duel(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    assert train("rocket-touch", "total_steps=64", "env.count=4", "ppo.rollout_steps=16", "ppo.minibatch_size=64",
                 "env.rocket.observation={default_obs: {zero_padding: null}}", "env.rocket.simulator=rocketsim",
                 "report.console=off") == 0
    with pytest.raises(UserError, match="cannot play Rocket League 1v1"):
        play_against(tmp_path, "chaser")


def score(scored: int, conceded: int) -> Score:
    return Score(100, scored, conceded, touches=3.0, opponent_touches=4.0, minutes=50.0)


@pytest.mark.parametrize(("first", "second", "verdict"), [
    ((30, 30), (33, 27), "difference      +5.0 points (95 % interval -12.5 to +22.1): within noise"),
    ((40, 10), (10, 40), "difference      -60.0 points (95 % interval -72.4 to -41.6): more than noise"),
    ((10, 40), (40, 10), "difference      +60.0 points (95 % interval +41.6 to +72.4): more than noise"),
    ((5, 5), (0, 0), "difference      undefined: no goals were scored"),
])
def test_the_verdict_follows_the_interval_of_the_difference(first, second, verdict):
    scores = {"warp": score(*first), "rocketsim": score(*second)}
    result = AgainstResult(Path("run"), "chaser", True, False, scores)
    assert str(result).splitlines()[-1] == verdict


@pytest.mark.slow
def test_docs_evaluate_can_be_followed(run, tmp_path, monkeypatch, capsys):
    """The player of the page plays, its commands run (with fewer games), and its table has the lines that are printed."""
    page = (Path(__file__).parents[2] / "docs" / "evaluate.md").read_text(encoding="utf-8")
    own_player, own_code = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "my_players.py").write_text(own_player)
    monkeypatch.syspath_prepend(str(tmp_path))
    commands = [text.split() for text in re.findall(r"^wavedash (eval .*--against.*)$", page, re.MULTILINE)]
    (_, _, *both), (_, _, *another), (_, _, *own) = commands
    app(["eval", str(run), *both, "--games", "3"], standalone_mode=False)
    table = capsys.readouterr().out.splitlines()
    assert table[3].split() == ["warp", "rocketsim"], "the one that it was trained in comes first"
    assert table[4].split() == ["games", "4", "4"], "equally many from both sides"
    app(["eval", str(run), *own, "--games", "2", "--starts", "task"], standalone_mode=False)
    assert "against         my_players:GoesHome, from the task's starts" in capsys.readouterr().out
    assert another[:2] == ["--against", "runs/rocket-1v1-gpu"]
    app(["eval", str(run), "--against", str(run), *another[2:], "--games", "2"], standalone_mode=False)
    assert f"against         {run}, from kick-offs" in capsys.readouterr().out
    exec(own_code.replace("runs/rocket-1v1", str(run)), {})
    assert capsys.readouterr().out.endswith("Rocket League 1v1\n")
    shown = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    assert [line[:16] for line in shown.splitlines()] == [line[:16] for line in table]
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(names.shipped("player"))
