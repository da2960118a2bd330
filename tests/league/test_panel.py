"""Rating while training: the training does not notice it, its games are kept and resumed, and it takes its share of time."""
from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import prepared
from wavedash.config_file import dump_config, load_config
from wavedash.errors import UserError
from wavedash.evaluate.matches import Match, arenas_of
from wavedash.evaluate.results import MatchResult
from wavedash.league import panel
from wavedash.league.games import Game, GamesFile
from wavedash.league.panel import Budget, find_panel
from wavedash.league.ratings import Results, rate
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.preflight import check_run
from wavedash.rocket.players import Chaser, Defender, Idle
from wavedash.runs.find import resolve_checkpoint
from wavedash.runs.interrupt import SaveNow
from wavedash.runs.trust import UntrustedError
from wavedash.training import resume, train

STEPS = 128
"""Steps of an iteration; those of the first are not learned from"""
TASK = ("rocket-1v1", "env.count=4", "ppo.rollout_steps=16", "ppo.minibatch_size=64", "policy.hidden=[8]",
        "policy.memory={kind: gru, size: 8}", f"total_steps={6 * STEPS}", "report.console=off", "report.tensorboard=false",
        f"checkpoint.every={2 * STEPS}", "device=cpu")
RATING = f"rating={{every: {2 * STEPS}, games: 4, seconds: 6, panel: [chaser, random], most: 1}}"


def trained(root: Path, *overrides: str, listeners: tuple[Listener, ...] = ()) -> Path:
    """The folder of a run that has ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train(*TASK, *overrides, listeners=listeners) == 0
    return folder_in(root)


def folder_in(root: Path) -> Path:
    (folder,) = root.glob("*/*")
    return folder


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("rated"), RATING)


def games_of(run: Path) -> list[Game]:
    return [replace(game, time="") for game in GamesFile(run / "games.csv").read()]


def metrics_of(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def ratings_of(run: Path) -> list[dict[str, float]]:
    """All but how long they took."""
    return [{name: x for name, x in line.items() if name.startswith("rating/") and name != "rating/seconds"}
            for line in metrics_of(run)]


# The training does not notice it


class Threads(Listener):
    """It notes how many threads torch has after every iteration."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_iteration(self, learner: object, report: IterationReport) -> None:
        self.seen.append(torch.get_num_threads())


def test_a_run_with_a_panel_has_the_weights_of_one_without_bit_for_bit(rated, tmp_path):
    """Optimiser, random streams, arenas and memory are the same too."""
    plain, other = trained(tmp_path / "plain"), trained(tmp_path / "other", "seed=1")
    ours, theirs, control = (resolve_checkpoint(run / "final").load()[0] for run in (rated, plain, other))
    assert {file: set(tensors) for file, tensors in ours.items()} == {file: set(tensors) for file, tensors in theirs.items()}
    for file, tensors in ours.items():
        for name, x in tensors.items():
            assert torch.equal(x, theirs[file][name]), f"{name} of {file}"
    weights = "actor.head.logits.weight"
    assert not torch.equal(ours["policy"][weights], control["policy"][weights]), "the control"
    assert not (plain / "games.csv").exists()


def test_torch_has_as_many_threads_after_a_rating_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr(panel, "set_torch_threads", lambda rows, policy: torch.set_num_threads(3))
    before, after = Threads(), Threads()

    class Both(panel.Panel):
        def on_iteration(self, learner, report):
            before.on_iteration(learner, report)
            found = super().on_iteration(learner, report)
            after.on_iteration(learner, report)
            return found

    monkeypatch.setattr(panel, "Panel", Both)
    run = trained(tmp_path, RATING)
    assert len(games_of(run)) == 24 and before.seen == after.seen and 3 not in before.seen


# Games and metrics


def test_all_games_are_rows_with_versions_sides_and_seeds(rated):
    games = games_of(rated)
    versions = [f"rocket-1v1@{steps}" for steps in (256, 512, 768)]
    assert [(game.step, game.blue, game.orange) for game in games] == [
        (steps, *pair) for steps, version in zip((256, 512, 768), versions, strict=True) for other in ("chaser", "random")
        for pair in ((version, other), (other, version)) * 2]
    assert {(game.size, game.simulator) for game in games} == {(1, "warp")} and all(0 < game.seconds <= 6 for game in games)
    assert sum(game.blue_goals + game.orange_goals for game in games) > 2
    assert len({game.seed for game in games}) == 3, "every rating has other kick-offs"


def test_metrics_have_the_rating_of_the_iterations_that_were_rated(rated):
    found, games = ratings_of(rated), games_of(rated)
    assert [bool(line) for line in found] == [True, False, True, False, True]
    for count, line in ((8, found[0]), (16, found[2]), (24, found[4])):
        name = f"rocket-1v1@{games[count - 1].step}"
        expected = rate(Results.of(games[:count]))[name]
        assert [line[f"rating/{end}"] for end in ("elo", "low", "high")] == pytest.approx(list(expected[:3]))
        assert line["rating/size"] == 1
        for other in ("chaser", "random"):
            theirs = [game for game in games if name in (game.blue, game.orange) and other in (game.blue, game.orange)]
            goals = sum(game.blue_goals + game.orange_goals for game in theirs)
            scored = sum(game.blue_goals if game.blue == name else game.orange_goals for game in theirs)
            assert line.get(f"rating/goal_share_{other}") == (scored / goals if goals else None), "absent without goals"


KILLED = f"""
import os
from tests.league.test_panel import RATING, TASK
from wavedash.ppo.listener import Listener
from wavedash.training import train

class Killed(Listener):
    def on_iteration(self, learner, report):
        if report.steps == {5 * STEPS}:
            os._exit(9)

train(*TASK, RATING, "checkpoint.every={3 * STEPS}", listeners=[Killed()])
"""


@pytest.mark.slow
def test_a_run_that_was_killed_and_resumed_has_the_games_of_one_that_was_not(rated, tmp_path, monkeypatch):
    """It is killed at step 640; the last checkpoint is at 384, the last rating at 512, and a line was being written."""
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    root = Path(__file__).parents[2]
    killed = prepared.run(["-c", KILLED], root, {**os.environ, "PYTHONPATH": str(root)})
    assert killed.returncode == 9
    run = folder_in(tmp_path)
    assert games_of(run) == games_of(rated)[:16]
    with open(run / "games.csv", "a") as file:
        file.write("2026-11-16T15:04:05Z,640,rocket-1v1@6")
    assert resume(str(run)) == 0
    assert games_of(run) == games_of(rated)
    assert ratings_of(run) == ratings_of(rated)
    ours, theirs = (resolve_checkpoint(run / "final").load()[0]["policy"] for run in (run, rated))
    assert all(torch.equal(x, theirs[name]) for name, x in ours.items())


@pytest.mark.slow
def test_a_run_that_was_interrupted_in_the_middle_of_a_rating_plays_it_again(rated, tmp_path, monkeypatch):
    """The second Ctrl-C comes while the second rating is being played."""
    play, calls = Match.play_all, []

    def interrupted(match: Match, seed: int) -> list[MatchResult]:
        calls.append(seed)
        if len(calls) == 2:
            raise SaveNow
        return play(match, seed)

    monkeypatch.setattr(Match, "play_all", interrupted)
    run = trained(tmp_path, RATING)
    assert games_of(run) == games_of(rated)[:8]
    assert resume(str(run)) == 0
    assert games_of(run) == games_of(rated) and calls[1] == calls[2]


@pytest.mark.slow
def test_without_its_games_a_run_goes_on_and_begins_a_new_file(rated, tmp_path):
    run = tmp_path / rated.name
    shutil.copytree(rated, run)
    (run / "games.csv").unlink()
    assert resume(str(run), f"total_steps={8 * STEPS}") == 0
    assert {game.step for game in games_of(run)} == {8 * STEPS}


def test_the_best_checkpoint_can_be_the_one_with_the_best_rating(rated, tmp_path):
    run = trained(tmp_path, RATING, "checkpoint.best_by=rating")
    lows = {line["steps"]: line["rating/low"] for line in metrics_of(run) if "rating/low" in line}
    assert resolve_checkpoint(run / "best").step == max(lows, key=lambda steps: (lows[steps], -steps))


def test_a_rating_that_fails_does_not_end_the_run(tmp_path, caplog):
    class Disturbs(Listener):
        def on_iteration(self, learner: object, report: IterationReport) -> None:
            if report.steps == 3 * STEPS:
                file = folder_in(tmp_path) / "games.csv"
                file.unlink()
                file.mkdir()

    run = trained(tmp_path, RATING, listeners=(Disturbs(),))
    assert [line["health/failed_ratings"] for line in metrics_of(run)] == [0, 0, 0, 1, 1]
    assert "could not rate the policy at step 512: " in caplog.text
    assert [bool(line) for line in ratings_of(run)] == [True, False, False, False, False]


# With a league

LEAGUE = ("env.count=10", "total_steps=1000",
          f"opponents={{slots: 2, share: 0.4, snapshot_every: {2 * STEPS}, refresh_every: 1}}")


class Stops(Listener):
    def on_iteration(self, learner: Any, report: IterationReport) -> None:
        if report.steps > 600:
            learner.stop("enough")


@pytest.mark.slow
def test_with_a_league_the_oldest_and_the_newest_snapshot_are_in_the_panel(tmp_path, monkeypatch):
    """A run that was stopped and resumed has the same games, and weights as without ratings."""
    whole, unrated = trained(tmp_path / "whole", RATING, *LEAGUE), trained(tmp_path / "unrated", *LEAGUE)
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "halves"))
    halves = trained(tmp_path / "halves", RATING, *LEAGUE, listeners=(Stops(),))
    assert len(games_of(halves)) < len(games_of(whole))
    assert resume(str(halves)) == 0
    assert games_of(halves) == games_of(whole)
    weights = [resolve_checkpoint(run / "final").load()[0]["policy"] for run in (halves, whole, unrated)]
    assert all(torch.equal(weights[0][name], x) for other in weights[1:] for name, x in other.items())
    snapshots = sorted(int(path.name.partition("-")[2]) for path in (whole / "league").glob("step-*"))
    rated = sorted({game.step for game in games_of(whole)})
    assert len(rated) >= 3 and snapshots[0] == 0
    for step in rated:
        games = [game for game in games_of(whole) if game.step == step]
        newest = [snapshot for snapshot in snapshots if snapshot < step][-1]
        expected = {f"rocket-1v1@{steps}" for steps in (step, 0, newest)} | {"chaser", "random"}
        assert {game.blue for game in games} == {game.orange for game in games} == expected
        assert len(games) == 4 * 4
    assert any({"rating/elo"} < line.keys() for line in ratings_of(whole))


# How strong


@pytest.mark.slow
def test_stronger_players_are_rated_higher():
    """A defender beats a chaser, which beats one who does nothing, although it also scores own goals."""
    games = []
    for name, other, count in (("defender", Defender(), 128), ("idle", Idle(), 32)):
        match = Match(arenas_of(1), Chaser(), other, count)
        games += match.play_all(seed=1)[0].games("chaser", name)
        match.close()
    ratings = rate(Results.of(games))
    assert ratings["idle"].high < ratings["chaser"].value == 1000.0 < ratings["defender"].value


# Its share of time


def test_what_is_done_once_is_done_before_the_clock_starts(tmp_path, monkeypatch):
    happened = []

    def note(cls, name):
        original = getattr(cls, name)

        def noted(*args):
            happened.append(name)
            return original(*args)

        monkeypatch.setattr(cls, name, noted)

    for cls, name in ((Match, "warm_up"), (Budget, "start"), (Match, "play_all"), (Budget, "spend")):
        note(cls, name)
    run = trained(tmp_path, RATING)
    assert happened == ["warm_up", "start", *["play_all", "spend"] * 3]
    seconds = [line["rating/seconds"] for line in metrics_of(run) if "rating/elo" in line]
    assert len(seconds) == 3 and min(seconds) > 0.0


@pytest.mark.parametrize(("cost", "iteration"), [(2.0, 1.0), (0.001, 1.0), (5.0, 20.0)])
def test_ratings_take_no_more_than_their_share_of_the_time(monkeypatch, caplog, cost, iteration):
    now = 100.0
    monkeypatch.setattr(panel, "perf_counter", lambda: now)
    budget, ratings = Budget(0.03), 0
    budget.start()
    caplog.set_level("INFO")
    for _ in range(2000):
        now += iteration
        if budget.allows(1000):
            ratings += 1
            now += cost
            budget.spend(cost)
        assert ratings * cost <= max(cost, 0.03 * (now - 100.0)), "but for the first one, before which its cost is unknown"
    possible = min(2000, 0.03 * (now - 100.0) / cost)
    assert 0.9 * possible - 1 <= ratings <= possible + 1
    expected = [] if cost < 0.03 else [f"a rating takes {cost} s: to stay below 3 % of the run's time (rating.most), there is "
                                       f"one about every {cost / 0.03:.0f} s instead of every 1,000 steps"]
    assert caplog.messages == expected, "said once"


def test_the_end_of_a_rated_run_says_how_to_see_its_ratings(tmp_path, capsys):
    trained(tmp_path / "two words", RATING, "report.console=plain", f"total_steps={2 * STEPS}")
    last = capsys.readouterr().out.splitlines()[-1]
    folder = folder_in(tmp_path / "two words")
    assert last == (f'finished after 256 steps; see how it plays: wavedash eval "{folder}"; its ratings: '
                    f'wavedash ladder "{folder}"')


def test_a_run_that_is_shorter_than_the_steps_between_ratings_has_none(tmp_path):
    run = trained(tmp_path, "rating={every: 1000}")
    assert not (run / "games.csv").exists()


# Mistakes


@pytest.mark.parametrize(("preset", "overrides", "words"), [
    ("rocket-1v1", ["rating={panel: [defender]}"], "rating.panel needs chaser"),
    ("cartpole", ["checkpoint.best_by=rating"], "best_by=rating needs ratings: add `rating: {}`"),
    ("rocket-1v1", ["env.rocket.orange=0"], "env.rocket is 1v0: set rating.size .*, or turn it off with rating=null"),
    ("cartpole", ["rating={}"], "rating is for Rocket League tasks with two teams .* not for CartPole-v1"),
])
def test_settings_that_cannot_be_are_refused(preset, overrides, words):
    with pytest.raises(UserError, match=words):
        load_config(preset, overrides)


def test_players_are_looked_for_before_the_run_begins(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    wrong = "rating={panel: [chaser, defendr]}"
    with pytest.raises(UserError, match="there is no player 'defendr'; did you mean 'defender'"):
        train(*TASK, wrong)
    with pytest.raises(UserError, match="no player 'defendr'"):
        check_run(load_config(TASK[0], [*TASK[1:], wrong]))
    assert not list(tmp_path.iterdir())


def test_a_player_for_smaller_teams_is_refused_before_the_run_begins(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    with pytest.raises(UserError, match=r"champions.1v1 cannot play Rocket League 2v2, its observation has no room"):
        train("rocket-2v2", *TASK[1:], "rating={panel: [chaser, champion-1v1]}")
    assert not list(tmp_path.iterdir())


def test_a_player_that_is_named_twice_is_refused(rated):
    with pytest.raises(UserError, match="takes part twice"):
        find_panel(load_config("rocket-1v1", [f"rating.panel=[chaser, {rated / 'final'}, {rated / 'checkpoints'}]"]))


def test_another_run_of_the_same_name_is_not_taken_for_a_version_of_this_one(rated):
    for name, called in (("rocket-1v1", f"{rated.name}@768"), ("other", "rocket-1v1@768")):
        config = load_config("rocket-1v1", [f"name={name}", f"rating.panel=[chaser, {rated}]"])
        assert list(find_panel(config).values()) == ["chaser", called]


def test_the_champion_in_the_panel_is_the_one_for_the_size_of_the_teams():
    (_, champion) = find_panel(load_config("rocket-1v1", ["rating.panel=[chaser, champion]"])).values()
    assert champion.startswith("champion-1v1@")
    with pytest.raises(UserError, match="no champion for 2v2"):
        find_panel(load_config("rocket-2v2", ["rating.panel=[chaser, champion]"]))


def test_a_policy_of_somebody_else_that_names_code_is_in_the_panel_only_if_it_is_trusted(rated, tmp_path, monkeypatch):
    theirs = shutil.copytree(rated, tmp_path / "theirs")
    config = load_config(str(theirs / "config.yaml"), ["env.rocket.rewards={'evil:Reward': 1.0}"])
    (theirs / "config.yaml").write_text(dump_config(config))
    monkeypatch.setenv("WAVEDASH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    words = [*TASK, f"rating={{every: {STEPS}, games: 2, seconds: 1, panel: [chaser, {theirs}]}}", f"total_steps={2 * STEPS}"]
    with pytest.raises(UntrustedError, match="evil:Reward"):
        train(*words)
    assert train(*words, "name=mine", trust=True) == 0, "of its code, rewards are not needed to play"
    assert "rocket-1v1@768" in {game.orange for game in games_of(folder_in(tmp_path / "runs"))}


@pytest.mark.slow
def test_a_run_can_be_resumed_from_another_folder_with_the_players_that_its_panel_names(rated, tmp_path, monkeypatch):
    monkeypatch.chdir(rated.parent)
    rung = f"rating={{every: {2 * STEPS}, games: 2, seconds: 1, panel: [chaser, {rated.name}]}}"
    run = trained(tmp_path / "runs", rung, "name=other")
    monkeypatch.chdir(tmp_path)
    assert resume(str(run), f"total_steps={8 * STEPS}") == 0
    assert {game.blue for game in games_of(run)} >= {"chaser", "rocket-1v1@768", "other@1024"}
