"""Milestones of a run are members of its league that never leave, also if the run is killed between the two writes."""
from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import prepared
from tests.league.leagues import ending, saved, trained
from tests.runs.test_live import Asking, Doing, events, folder_of
from wavedash.config_file import load_config
from wavedash.league.players import find_entrant
from wavedash.league.pool import Pool
from wavedash.runs.folder import RunFolder
from wavedash.training import resume, train

pytestmark = pytest.mark.slow

FEW = ("total_steps=2500", "opponents.pool=2", "opponents.snapshot_every=300", "checkpoint.keep=1")
EVERY = (*FEW, "milestones.every=600", "opponents.prune_above=0", "opponents.prune_games=1")
ORDERED = 6
"""The iteration after which a milestone is ordered"""


def of_milestones(state: dict[str, Any]) -> list[int]:
    return [member["step"] for member in state["members"] if member["milestone"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("whole"), *EVERY)


def test_they_stay_whatever_the_league_drops(whole):
    """The pool has two places, and a snapshot that ever lost a point leaves it."""
    listed, _ = RunFolder(whole).milestones.listed()
    steps = sorted(one.checkpoint.step for one in listed)
    assert [one.name for one in reversed(listed)] == ["600", "1200", "1800", "2400"]
    league = saved(whole)
    assert of_milestones(league) == steps
    assert len([member for member in league["members"] if not member["milestone"]]) <= 2
    assert len({member["name"] for member in league["members"]}) == len(league["members"])
    assert any(sum(member["total"]) for member in league["members"] if member["milestone"]), "they are played against"
    for number, one in enumerate(reversed(listed), 1):
        weights = one.checkpoint.load(["policy"])[0]["policy"]
        member = Pool(whole / "league").read(f"step-{one.checkpoint.step:012d}")
        assert weights.keys() == member.keys() and all(torch.equal(x, member[name]) for name, x in weights.items())
        assert of_milestones(saved(whole, one.checkpoint.path)) == steps[:number], "a milestone knows of itself"


INSTANTS = {
    "the policy is in the pool": ("wavedash.league.pool.Pool", "add", True),
    "the milestone is next": ("wavedash.runs.milestones.MilestoneStore", "save", False),
    "the milestone is written": ("wavedash.runs.milestones.MilestoneStore", "save", True),
}


def killed(root: Path, settings: Sequence[str], instant: str, step: int, listeners: str = "") -> Path:
    """A run whose process is killed at an instant of the first iteration that comes past a step."""
    owner, method, after = INSTANTS[instant]
    module, _, name = owner.rpartition(".")
    script = (f"import os, signal, tests.league.leagues as it, {module} as module\nfrom pathlib import Path\n"
              f"from tests.runs.test_live import Asking\n"
              f"call, learners = module.{name}.{method}, []\n"
              "class Watch(it.Listener):\n"
              "    def on_iteration(self, learner, report): learners[:] = [learner]\n"
              "def mortal(*args, **kwargs):\n"
              f"    fatal = bool(learners) and learners[0].steps >= {step}\n"
              f"    result = None if fatal and not {after} else call(*args, **kwargs)\n"
              "    if fatal: os.kill(os.getpid(), signal.SIGKILL)\n"
              "    return result\n"
              f"module.{name}.{method} = mortal\n"
              f"it.trained(Path({str(root)!r}), *{tuple(settings)}, listeners=(Watch(), {listeners}))")
    done = prepared.run(["-c", script], Path(__file__).parents[2])
    assert done.returncode == -9, done.stderr
    (run,) = root.glob("*/*/")
    return run


@pytest.mark.parametrize("instant", INSTANTS)
def test_killed_between_the_writes_it_goes_on_as_if_it_had_not(instant, whole, tmp_path):
    run = killed(tmp_path, EVERY, instant, 1200)
    resume(str(run))
    one, two = ending(whole), ending(run)
    for part in one:
        assert two[part] == one[part], part
    assert sorted(path.name for path in (run / "milestones").iterdir()) == ["1200", "1800", "2400", "600"]


def test_a_version_that_is_kept_by_order_joins_at_once_and_stays_after_a_kill(tmp_path):
    """The copy of the folder, taken two iterations later, is what a kill leaves."""
    copied = tmp_path / "killed" / "run"
    killing = Doing(lambda learner: shutil.copytree(folder_of(learner), copied), ORDERED + 2)
    run = trained(tmp_path / "ordered", *FEW, listeners=(
        Asking("milestone=4th", at=ORDERED - 2), Asking("milestone=first-goals", at=ORDERED), killing))
    (one,), _ = RunFolder(run).milestones.listed()
    assert one.name == f"{one.checkpoint.step}-first-goals" and one.facts()["iteration"] == ORDERED
    assert of_milestones(saved(run)) == [one.checkpoint.step] == of_milestones(saved(run, one.checkpoint.path))
    assert [(row["key"], row["argument"]) for row in events(run)] == [("milestone", "4th"), ("milestone", "first-goals")]
    assert "refused" in events(run)[0], "it has taken nobody in either"
    resume(str(copied))
    first, second = ending(run), ending(copied)
    for part in first:
        assert second[part] == first[part], part


@pytest.mark.parametrize("instant", ["the policy is in the pool", "the milestone is next"])
def test_killed_while_it_obeys_there_is_no_half_member(instant, tmp_path):
    """Before the checkpoint nothing was ordered; after it the version is a member. The order itself is not repeated."""
    run = killed(tmp_path / "killed", FEW, instant, 800, f"Asking('milestone', at={ORDERED})")
    resume(str(run))
    assert len(of_milestones(saved(run))) == (instant == "the milestone is next")
    assert not (run / "milestones").exists() or list((run / "milestones").iterdir()) == []
    if instant == "the policy is in the pool":
        plain = trained(tmp_path / "plain", *FEW)
        assert ending(plain) == ending(run)


def test_milestones_of_any_run_are_players_opponents_and_beginnings(whole, tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    found, by_name = (find_entrant(name) for name in (str(whole / "milestones" / "1200"), f"{whole}@1200"))
    step = RunFolder(whole).milestones.find("1200").step
    assert found.name == by_name.name == f"rocket-1v1@{step}"
    other = trained(tmp_path / "other", "total_steps=500", f"opponents.members=['{whole}@1200', {whole}/milestones/600]")
    guests = {member["sha256"] for member in saved(other)["members"] if member["guest"]}
    pool = Pool(whole / "league")
    assert guests == {pool.sha256(f"step-{RunFolder(whole).milestones.find(name).step:012d}") for name in ("600", "1200")}
    config = load_config(str(whole / "config.yaml"))
    settings = [f"policy.hidden={list(config.policy.hidden)}", "env.count=4", "ppo.rollout_steps=8", "ppo.minibatch_size=64",
                "total_steps=64", "device=cpu", "report.console=off", "report.tensorboard=false"]
    assert train("rocket-1v1", *settings, f"init={whole}@1200") == 0
    (begun,) = (tmp_path / "runs").glob("*/*/log.txt")
    assert f"milestones/1200 after {step:,} steps" in begun.read_text().replace("\\", "/")
    assert json.loads((whole / "milestones" / "1200" / "milestone.json").read_text())["steps"] == step
