"""Runs with several team sizes: opponents, ratings, evaluation, and what happens to them when a run is resumed."""
from __future__ import annotations

import csv
import itertools
import json
import random
from pathlib import Path

import pytest
import torch

from tests import prepared
from tests.league.leagues import TINY, Stop, ending, policy_folder, saved, trained
from wavedash.champions.pack import _check_task
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.evaluate.against import play_against
from wavedash.evaluate.own_task import evaluate
from wavedash.league.games import GamesFile
from wavedash.league.ladder import read_ladder
from wavedash.league.match import Terms
from wavedash.league.players import find_entrant
from wavedash.league.ratings import Results, rate
from wavedash.loading import load_run
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.preflight import check_run
from wavedash.training import resume

pytestmark = pytest.mark.slow

PLACES = "env.rocket.observation={advanced_obs_plus: {team_size: 3}}"
SIZES = ("env.rocket.sizes={1v1: 0.5, 2v2: 0.5}", PLACES, "rating=null")
WHOLE = (*SIZES, "total_steps=3000", "opponents.members=[chaser]", "policy.memory={kind: gru, size: 4, sequence: 4}",
         "opponents.most=0.5", "opponents.share=0.5", "env.rocket.starts={save: 1, dribble: 1}")


class Watch(Listener):
    """Counts games by size of the teams before the league does."""

    def __init__(self) -> None:
        self.games = [0, 0]

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        for size, task in enumerate(learner.env.tasks):
            self.games[size] += int(task.line_up.results.sum())


class Rows(Listener):
    """Keeps how many rows the learner has."""

    def on_start(self, learner: Learner) -> None:
        self.rows = learner.env.num_rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Watch]:
    watch = Watch()
    return trained(tmp_path_factory.mktemp("whole"), *WHOLE, listeners=(watch,)), watch


def told(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


# --- opponents -------------------------------------------------------------------------------------------------------


def test_a_run_that_is_killed_and_resumed_is_the_one_that_was_not(whole, tmp_path):
    iterations, seconds = random.randint(6, 12), random.uniform(0.0, 0.06)
    script = (f"import tests.league.leagues as it; from pathlib import Path\n"
              f"it.trained(Path({str(tmp_path)!r}), *{WHOLE}, listeners=(it.KillSoon({iterations}, {seconds}),))")
    done = prepared.run(["-c", script], Path(__file__).parents[2])
    assert done.returncode == -9, done.stderr
    (run,) = tmp_path.glob("*/*/")
    assert list(run.glob("checkpoints/step-*")) and not list(run.glob("final/*"))
    assert resume(str(run)) == 0
    one, two = ending(whole[0]), ending(run)
    for part in one:
        assert two[part] == one[part], (part, iterations, seconds)


def test_games_of_all_sizes_are_credited(whole):
    run, watch = whole
    assert min(watch.games) > 4 and sum(line["league/games"] for line in told(run)) == sum(watch.games)
    with (run / "league" / "results.csv").open() as file:
        reported = sum(int(row[outcome]) for row in csv.DictReader(file) for outcome in ("won", "drawn", "lost"))
    assert reported + sum(sum(member["unreported"]) for member in saved(run)["members"]) == sum(watch.games)


def test_metrics_of_sizes_are_parts_of_the_whole(whole):
    """The mean over all cars lies between those of the sizes."""
    for line in told(whole[0]):
        for name in ("goals", "touches"):
            parts = [line[f"env/size/{size}/per_minute/{name}"] for size in ("1v1", "2v2")]
            assert min(parts) * (1 - 1e-6) <= line[f"env/per_minute/{name}"] <= max(parts) * (1 + 1e-6)
    touches = [[line[f"env/size/{size}/per_minute/touches"] for size in ("1v1", "2v2")] for line in told(whole[0])]
    assert any(one != two for one, two in touches)


def test_sizes_change_on_resume_with_opponents_ratings_and_memory(tmp_path, caplog):
    rated = "rating={every: 300, games: 2, seconds: 1, most: 1}"
    run = trained(tmp_path, *WHOLE, rated, "total_steps=600")
    for total, sizes, rows in ((1200, "{2v2: 1.0}", 48), (1800, "{1v1: 1, 3v3: 2, 2v2: 1}", 54), (2400, "{3v3: 1.0}", 72),
                               (3000, "null", 24)):
        caplog.clear()
        members, seen = {member["name"] for member in saved(run)["members"]}, Rows()
        assert resume(str(run), f"total_steps={total}", f"env.rocket.sizes={sizes}", listeners=[seen]) == 0
        assert seen.rows == rows
        assert "unfinished episodes are dropped and the run goes on from fresh ones" in caplog.text
        assert members & {member["name"] for member in saved(run)["members"] if not member["guest"]}, "the league goes on"
    games = GamesFile(run / "games.csv").read()
    assert [size for size, _ in itertools.groupby(game.size for game in games)] == [2, 3, 1], "the largest each time"
    assert all(line["optim/update_size"] > 0 for line in told(run)[1:])


def test_a_guest_that_cannot_play_the_largest_size_is_refused_by_name(tmp_path):
    theirs = policy_folder(tmp_path / "their bot", "policy.hidden=[4]")
    for refuses in (lambda: trained(tmp_path / "runs", *SIZES, f"opponents.members=[{theirs}]"),
                    lambda: check_run(load_config("rocket-1v1", [*TINY, *SIZES, f"opponents.members=[{theirs}]"]))):
        with pytest.raises(UserError, match=f"^{theirs} cannot play Rocket League 2v2, its observation has no room"):
            refuses()


def test_too_few_arenas_of_one_size_are_found_by_the_check_too():
    with pytest.raises(UserError, match=r"each of the 3 slots for opponents needs an arena .*a group has 2.*team size"):
        check_run(load_config("rocket-1v1", [*TINY, *SIZES, "env.rocket.sizes={1v1: 10, 2v2: 2}"]))
    check_run(load_config("rocket-1v1", [*TINY, *SIZES]))


def test_rocketsim_and_its_workers_play_several_sizes(tmp_path):
    run = trained(tmp_path, *SIZES, "env.rocket.simulator=rocketsim", "env.workers=3", "total_steps=900", "env.count=6",
                  listeners=(Stop(4),))
    assert resume(str(run)) == 0
    assert sum(line["league/games"] for line in told(run)) > 0 and told(run)[-1]["health/worker_restarts"] == 0


# --- ratings, matches, evaluation ------------------------------------------------------------------------------------


def test_a_run_is_rated_in_one_size_and_only_its_games_count(tmp_path):
    rated = "rating={every: 500, games: 4, seconds: 4, most: 1, size: 1v1, reference: []}"
    run = trained(tmp_path, *SIZES, rated, "total_steps=1000", "opponents=null")
    assert resume(str(run), "total_steps=2000", "rating.size=null") == 0
    games = GamesFile(run / "games.csv").read()
    assert {game.size for game in games} == {1, 2} and games[0].size == 1 and games[-1].size == 2
    last = [line for line in told(run) if "rating/elo" in line][-1]
    own = rate(Results.of([game for game in games if game.size == 2]))[f"rocket-1v1@{games[-1].step}"]
    assert last["rating/elo"] == pytest.approx(own.value)
    with pytest.raises(UserError, match=r"no common ratings of games in 1v1 and 2v2.*--size 2"):
        read_ladder([run / "games.csv"])
    for size in (1, 2):
        assert {game.size for game in read_ladder([run / "games.csv"], size=size).games} == {size}
    with pytest.raises(UserError, match="holds no games in 3v3: those that were played are in 1v1 and 2v2"):
        read_ladder([run / "games.csv"], size=3)


def test_a_size_that_the_policy_has_no_room_for_cannot_be_rated():
    narrow = [*TINY, "env.rocket.observation={advanced_obs_plus: {team_size: 1}}", "rating={size: 2v2}", "opponents=null"]
    with pytest.raises(UserError, match=r"env\.rocket\.observation has no room for 2v2.*team_size: 2"):
        check_run(load_config("rocket-1v1", narrow))
    check_run(load_config("rocket-1v1", [*TINY, PLACES, "rating={size: 2v2}", "opponents=null"]))


def test_a_trained_run_is_evaluated_and_shown_in_its_sizes(whole):
    run, _ = whole
    assert len(evaluate(run, episodes=4).returns) == 2 * 2 + 2 * 4, "all cars of two arenas of each size"
    assert len(evaluate(run, episodes=1).returns) == 4, "one arena: that of the larger teams"
    score = play_against(run, "idle", games=2).scores["warp"]
    assert score.games == 2
    entrant = find_entrant(str(run))
    assert Terms().for_entrants([entrant], None).size == 2, "the largest"
    env = load_run(run).make_env(1)
    assert env.num_rows == 4
    env.close()
    with pytest.raises(UserError, match="was trained in 1v1 and 2v2, so it cannot be the champion of 3v3"):
        _check_task(load_run(run).config, "3v3", run)
    _check_task(load_run(run).config, "2v2", run)


# --- several processes -----------------------------------------------------------------------------------------------


def test_two_processes_play_several_sizes_and_others_after_a_resume(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    root = Path(__file__).parents[2]

    def ran(*words: str) -> str:
        return prepared.run_ranks(["-m", "wavedash", *words], root)

    ran("train", "rocket-1v1", *TINY, *WHOLE, "total_steps=1200")
    (run,) = tmp_path.glob("*/*/")
    said = ran("resume", str(run), "total_steps=2400", "env.rocket.sizes={2v2: 0.5, 3v3: 0.5}")
    assert "fresh ones" in said + (run / "log.txt").read_text()
    lines = told(run)
    assert "env/size/3v3/per_minute/goals" in lines[-1] and "env/size/1v1/per_minute/goals" not in lines[-1]
    assert torch.isfinite(torch.tensor([line["policy/entropy"] for line in lines if "policy/entropy" in line])).all()
