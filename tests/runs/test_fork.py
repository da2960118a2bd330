"""A run that goes on from a milestone of another: it is the run that would have come of it, and the other stays as it is."""
from __future__ import annotations

import hashlib
import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import wavedash
from tests.league.leagues import Stop, ending, trained
from tests.runs.test_live import Asking, events
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.evaluate.own_task import evaluate
from wavedash.league.games import GamesFile
from wavedash.ppo.listener import Listener
from wavedash.runs import links
from wavedash.runs.find import Fork, find_run, runs_under
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.fork import fork, origin_of
from wavedash.runs.links import LinkError
from wavedash.training import resume, train

pytestmark = pytest.mark.slow

TINY = ("total_steps=160", "env.count=4", "ppo.rollout_steps=8", "ppo.epochs=2", "ppo.minibatch_size=16", "policy.hidden=[8]",
        "report.console=off", "report.tensorboard=false", "device=cpu", "threads=1", "checkpoint.every=32", "checkpoint.keep=1",
        "milestones.every=64")
"""An iteration is 32 steps: milestones 64 and 128."""


@pytest.fixture(autouse=True)
def runs_here(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))


def runs(root: Path) -> list[Path]:
    """The folders of all runs, the oldest first."""
    return sorted(root.glob("*/*/"), key=lambda path: path.stat().st_ctime_ns)


def new_run(root: Path, *arguments: str, listeners: tuple[Listener, ...] = ()) -> Path:
    before = runs(root)
    assert train(*arguments, listeners=listeners) == 0
    (made,) = set(runs(root)) - set(before)
    return made


def forked_from(run: Path, milestone: str, *overrides: str) -> Path:
    before = runs(run.parent.parent)
    assert resume(str(run), *overrides, milestone=milestone) == 0
    (made,) = set(runs(run.parent.parent)) - set(before)
    return made


def content(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def final(run: Path) -> dict[str, bytes]:
    (folder,) = run.glob("final/step-*")
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def metrics(run: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    timed = ("time/", "health/", "rating/seconds")
    return [{name: x for name, x in line.items() if not name.startswith(timed)} for line in lines]


def test_it_is_the_run_that_would_have_come_of_it_with_the_settings_of_that_time(tmp_path):
    """The run learns with another rate after the milestone. What goes on from the milestone equals a run that never did."""
    straight = new_run(tmp_path, "cartpole", *TINY)
    run = new_run(tmp_path, "cartpole", *TINY, listeners=(Stop(after=3),))
    assert resume(str(run), "ppo.learning_rate=0.01") == 0
    assert final(run) != final(straight), "the other rate must make a difference"
    before = content(run)
    made = forked_from(run, "64")
    assert content(run) == before, "the run itself stays as it is"
    assert final(made) == final(straight) and metrics(made) == metrics(straight)
    assert [line["steps"] for line in metrics(made)] == [32, 64, 96, 128, 160]
    assert load_config(str(made / "config.yaml")) == load_config(str(straight / "config.yaml"))
    assert [path.name for path in (made / "milestones").iterdir()] == ["128"], "and it has milestones of its own"
    assert origin_of(RunFolder(made)) == {"run": f"cartpole/{run.name}", "milestone": "64", "steps": 64}
    assert made.parent == run.parent and str(tmp_path) not in (made / "forked.json").read_text()


def test_settings_can_change_and_the_next_resume_goes_on_with_the_new_run(tmp_path):
    run = new_run(tmp_path, "cartpole", *TINY, "report.tensorboard=true")
    made = forked_from(run, "64", "total_steps=96", "ppo.learning_rate=0.01")
    assert load_config(str(made / "config.yaml")).ppo.learning_rate == 0.01
    assert resume(str(made), "total_steps=128") == 0
    assert [line["steps"] for line in metrics(made)] == [32, 64, 96, 128]
    curves = EventAccumulator(str(made / "tb")).Reload()
    assert [event.step for event in curves.Scalars("rollout/reward")] == [32, 64, 96, 128], "each step once"
    assert find_run(tmp_path).run.path == made
    with pytest.raises(UserError, match="seed was 0, now 1"):
        resume(str(run), "seed=1", milestone="64")
    assert len(runs(tmp_path)) == 2, "a start that failed leaves no folder"


def test_changes_until_the_milestone_go_with_it(tmp_path):
    """A change before the milestone, one at its very step after it was saved, one later; and a row that is torn."""
    asking = (Asking("ppo.clip_range=0.1", at=1), Asking("ppo.learning_rate=0.01", at=2), Asking("ppo.epochs=1", at=3),
              Asking("ppo.nothing=1", at=1))
    run = new_run(tmp_path, "cartpole", *TINY, listeners=asking)
    assert [(row["key"], row["step"]) for row in events(run)] == [
        ("ppo.clip_range", 32), ("ppo.nothing", 32), ("ppo.learning_rate", 64), ("ppo.epochs", 96)]
    with open(run / "events.jsonl", "a") as file:
        file.write('{"time": "20')
    before = content(run)
    made = forked_from(run, "64")
    assert content(run) == before
    assert events(made) == events_of(run)[:2]
    config = load_config(str(made / "config.yaml"))
    assert (config.ppo.clip_range, config.ppo.learning_rate) == (0.1, load_config("cartpole").ppo.learning_rate)
    assert [row.get("live/changes") for row in metrics(made)] == [None, 1, 1, 1, 1]
    plain = new_run(tmp_path, "cartpole", *TINY)
    assert not (forked_from(plain, "64") / "events.jsonl").exists()


def events_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()[:4]]


def test_a_milestone_by_its_path_can_be_played_resumed_and_begun_with(tmp_path):
    run = new_run(tmp_path, "cartpole", *TINY)
    path = run / "milestones" / "64"
    before = content(run)
    assert wavedash.load_policy(path) is not None
    assert "64" in str(evaluate(str(path), episodes=2).checkpoint)
    begun = new_run(tmp_path, "cartpole", *TINY, f"init={path}", "total_steps=32")
    assert load_config(str(begun / "config.yaml")).init == str(path)
    assert resume(str(path), "total_steps=96") == 0
    assert len(runs(tmp_path)) == 3 and content(run) == before
    copy = Path(shutil.copytree(path, tmp_path / "kept" / "x" / "mine"))
    shutil.rmtree(run)
    assert evaluate(str(copy), episodes=2) is not None, "it is whole without its run"


def test_a_finished_milestone_says_what_to_raise(tmp_path):
    run = new_run(tmp_path, "cartpole", *TINY, "total_steps=128")
    with pytest.raises(UserError, match=r"milestones.128 is finished \(128 steps\). To go on, raise total_steps: .*=256"):
        resume(str(run), milestone="128")
    with pytest.raises(UserError, match=r"milestones.128 is finished .* raise total_steps: .*=256"):
        resume(str(run), "total_steps=100", milestone="128")  # twice that would not be enough
    with pytest.raises(UserError, match=r"no milestone 90; the nearest are 64 \(64 steps\), 128 \(128 steps\)"):
        resume(str(run), milestone="90")
    assert runs(tmp_path) == [run]


def test_until_it_has_begun_it_is_no_run_and_a_full_disk_leaves_nothing(tmp_path):
    run = new_run(tmp_path, "cartpole", *TINY)
    found = find_run(run, "64")
    assert isinstance(found, Fork)
    config = load_config(str(found.config))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, old[1]))
    try:
        with pytest.raises(UserError, match="File too large"):
            fork(found, config)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert runs(tmp_path) == [run]
    made = fork(found, config)  # a kill before its configuration was written would leave it so
    assert [other.path for other in runs_under(tmp_path)] == [run]
    made.record_start(config)  # and one before its first checkpoint, so
    assert made.newest().step == 64 and find_run(made.path).run.path == made.path
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").symlink_to(tmp_path)
    with pytest.raises(LinkError):
        fork(found, config)


@pytest.mark.parametrize("instant", ["links are looked for", "it is copied"])
def test_what_the_other_run_removes_from_its_league_meanwhile_is_left_out(tmp_path, monkeypatch, instant):
    """A league removes policies that no checkpoint names. Here it does so at the worst instant."""
    run = new_run(tmp_path, "cartpole", *TINY)
    found = find_run(run, "64")
    opponents = load_config("rocket-1v1", ["opponents={}"]).opponents
    config = load_config(str(found.config)).model_copy(update={"opponents": opponents})
    stays, goes = (run / "league" / f"step-{step:012d}" for step in (1, 2))
    for policy in (stays, goes):
        shutil.copytree(run / "milestones" / "64", policy)

    def collected(call, at):
        def removing(argument, *others):
            if goes.exists() and at(argument):
                shutil.rmtree(goes)
            return call(argument, *others)
        return removing

    if instant == "it is copied":
        monkeypatch.setattr(shutil, "copytree", collected(shutil.copytree, lambda source: source == goes))
    else:  # the folder has been listed already, and the entry before this one is looked at
        number = stays.stat().st_ino
        monkeypatch.setattr(links, "is_link", collected(links.is_link, lambda facts: facts.st_ino == number))
    made = fork(found, config)
    assert not goes.exists(), "it must have been removed"
    assert [path.name for path in (made.path / "league").iterdir()] == [stays.name]
    assert content(made.path / "league" / stays.name) == content(stays)


def test_league_and_games_go_back_too_while_the_run_goes_on(tmp_path):
    """The pool has only two places and one regular checkpoint is kept: what the milestone needs is there because it names it.
    The other run is locked, as it is while it trains."""
    rated = ("rating={every: 700, games: 2, seconds: 1, most: 1}", "opponents.pool=2", "opponents.snapshot_every=300",
             "checkpoint.keep=1", "checkpoint.every=300", "milestones.every=1000")
    run = trained(tmp_path, *rated, "total_steps=2600")
    assert sorted(path.name for path in (run / "milestones").iterdir()) == ["1000", "2000"]
    games = GamesFile(run / "games.csv").read()
    before = content(run)
    with RunFolder(run).locked():
        made = forked_from(run, "1000")
    del before[".lock"]
    after = content(run)
    assert {name: after[name] for name in before} == before
    one, other = ({**ending(path), "metrics": metrics(path)} for path in (made, run))
    assert one == other
    assert [(game.step, game.blue, game.orange, game.blue_goals) for game in GamesFile(made / "games.csv").read()] == [
        (game.step, game.blue, game.orange, game.blue_goals) for game in games]
    facts = [json.loads((run / "milestones" / name / "milestone.json").read_text()) for name in ("1000", "2000")]
    assert all(one["rating"]["elo"] is not None and one["rating"]["steps"] <= one["steps"] for one in facts)
    again = json.loads((made / "milestones" / "2000" / "milestone.json").read_text())
    assert {**again, "time": facts[1]["time"]} == facts[1], "the rating of before the milestone is known to the new run"
    with pytest.raises(RunError, match="is being trained by"), RunFolder(run).locked():
        resume(str(run), "total_steps=3000")
