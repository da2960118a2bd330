"""Runs with phases, for real: what changes when, and that a run that is killed anywhere goes on bit for bit.

The reference of a phase is a run without phases that was stopped at the same step and resumed with the same settings.
"""
from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.runs import test_live
from tests.runs.test_live import TINY, Asking, Doing, LastWords, ending, equal, events, folder_of, in_folder, post, trained
from wavedash.config import RunConfig
from wavedash.config_file import load_config, smoke_overrides
from wavedash.curriculum.curriculum import Curriculum
from wavedash.errors import UserError
from wavedash.loading import load_run
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.preflight import check_setup
from wavedash.rocket.env import RocketEnv
from wavedash.runs import live_file
from wavedash.runs.changes import change
from wavedash.training import resume, train

pytestmark = pytest.mark.slow

CARTPOLE = (*test_live.CARTPOLE, "ppo.schedule.kind=constant")
ITERATION = 32
"""Steps of an iteration of CARTPOLE; the first rollout calibrates and counts as one, too."""
RATE = {"from": 1e-3, "to": 1e-4, "over": 4 * ITERATION}
PHASES = [
    {"name": "Ramp", "set": {"ppo.learning_rate": RATE, "ppo.entropy_coef": 0.05}, "until": {"steps": 3 * ITERATION}},
    {"name": "Careful", "set": {"ppo.clip_range": 0.05}, "until": {"metrics": {"recent/return": {"at_least": 0}},
                                                                  "iterations": 2}},
    {"name": "Last", "set": {"ppo.entropy_coef": {"from": 0.05, "to": 0.0, "over": 2 * ITERATION}, "ppo.gamma": 0.9}},
]


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))


def with_phases(folder: Path, settings: Sequence[str], phases: list[dict[str, Any]]) -> tuple[str, ...]:
    """The settings with phases, which are in a file."""
    file = folder / "phases.yaml"
    file.write_text(yaml.safe_dump({"base": settings[0], "phases": phases}))
    return str(file), *settings[1:]


def without_phases(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if not key.startswith("phase")} for row in rows]


def phases_of(run: Path) -> list[str]:
    """The phase of each iteration."""
    return [json.loads(line)["phase"].partition("-")[2] for line in (run / "metrics.jsonl").read_text().splitlines()]


class Killing(Listener):
    """Copies the folder of the run after each iteration, as a kill at that moment would leave it."""

    def __init__(self, copies: Path) -> None:
        self.copies = copies

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        shutil.copytree(folder_of(learner), self.copies / f"{report.iteration:03d}", ignore=shutil.ignore_patterns(".lock*"))


def test_a_run_goes_through_its_phases_and_says_so(tmp_path):
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, PHASES))
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["phase"] for row in rows] == ["Phase1-Ramp"] * 2 + ["Phase2-Careful"] * 2 + ["Phase3-Last"] * 3
    assert [row["phase/number"] for row in rows] == [1, 1, 2, 2, 3, 3, 3]
    assert [row["optim/clip_range"] for row in rows] == [0.2] * 2 + [0.05] * 5
    # The ramp of the first phase goes on in the others; an iteration is made with the value at its beginning.
    rates = [1e-3, *(max(1e-4, 1e-3 - 9e-4 * row["steps"] / RATE["over"]) for row in rows[:-1])]
    assert [row["optim/learning_rate"] for row in rows] == pytest.approx(rates)
    assert [row["optim/entropy_coef"] for row in rows] == pytest.approx([0.05] * 5 + [0.025, 0.0])
    assert [(row["key"], row["old"], row["new"], row["step"]) for row in events(run)] == [
        ("phase", "Ramp", "Careful", 3 * ITERATION), ("phase", "Careful", "Last", 5 * ITERATION)]
    assert events(run)[0]["by"] == f"steps {3 * ITERATION} ({3 * ITERATION})"
    assert load_run(run / "final").config.ppo.gamma == 0.9


def test_a_run_with_phases_stands_for_its_newest_checkpoint(tmp_path, monkeypatch):
    """Each phase pays for other things: the highest return may be that of the first."""
    settings = (*CARTPOLE, "checkpoint.best_window=1")
    run = trained(in_folder(tmp_path / "with", monkeypatch), with_phases(tmp_path, settings, PHASES))
    assert not (run / "best").exists()
    assert load_run(run).config.ppo.gamma == 0.9, "that of the last phase"
    assert (trained(in_folder(tmp_path / "without", monkeypatch), settings) / "best").exists()


def test_a_move_is_told_with_the_values_of_the_iteration_that_brought_it(tmp_path):
    """A rating that is measured for the first time may end a phase at once."""
    phases = [{"name": "Short", "until": {"metrics": {"recent/length": {"at_least": 0}}}}, {"name": "Last"}]
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, phases))
    (move,) = events(run)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (length,) = [row["recent/length"] for row in rows if row["steps"] == move["step"]]
    assert move["by"] == f"recent/length at least 0 ({length:.3g})"


def test_killed_after_any_iteration_it_goes_on_bit_for_bit(tmp_path):
    """In the middle of ramps, at the moves, and between them; the checkpoint is that of the iteration before."""
    copies = tmp_path / "copies"
    run = trained(tmp_path, (*with_phases(tmp_path, CARTPOLE, PHASES), "checkpoint.every=1"), Killing(copies))
    killed = sorted(copies.iterdir())[1:]  # the first has no checkpoint yet
    assert len(killed) == 6
    for copy in killed:
        assert resume(str(copy)) == 0
        assert equal(copy, run, marks=True), copy.name


def test_a_phase_equals_a_resume_with_the_same_settings(tmp_path, monkeypatch):
    """Also one that needs other environments: there the run goes on with another learner."""
    changes = ("ppo.clip_range=0.05", "env.count=8", "ppo.entropy_coef=0.1")
    values = {key: yaml.safe_load(value) for key, _, value in (change.partition("=") for change in changes)}
    phases = [{"name": "One", "until": {"steps": 4 * ITERATION}}, {"name": "Two", "set": values}]
    here = in_folder(tmp_path / "phases", monkeypatch)
    run = trained(here, with_phases(tmp_path, CARTPOLE, phases))

    here = in_folder(tmp_path / "resumed", monkeypatch)
    other = trained(here, CARTPOLE, Doing(lambda learner: learner.stop("here"), 3))
    resume(str(other), *changes)
    (mine, my_rows), (theirs, their_rows) = ending(run), ending(other)
    assert without_phases(my_rows) == their_rows
    assert [row["rollout/steps"] for row in my_rows] == [32, 32, 32, 64, 64]
    assert mine.keys() == theirs.keys() and all((x == theirs[name]).all() for name, x in mine.items())


def test_a_setting_that_is_changed_counts_until_a_phase_sets_it_also_after_a_kill(tmp_path):
    copies = tmp_path / "copies"
    settings = (*with_phases(tmp_path, CARTPOLE, PHASES), "checkpoint.every=1")
    asking = Asking("ppo.learning_rate=5e-4", "ppo.clip_range=0.15", "ppo.gamma=0.95", at=1)
    run = trained(tmp_path, settings, asking, Killing(copies))
    rows = ending(run)[1]
    assert [row["optim/clip_range"] for row in rows] == [0.2, 0.15, 0.05, 0.05, 0.05, 0.05, 0.05]
    assert [row["optim/learning_rate"] for row in rows] == [1e-3, *[5e-4] * 6], "instead of the ramp"
    recorded = load_config(str(run / "config.yaml"))
    assert recorded.phases[0].set["ppo.clip_range"] == 0.15 and recorded.ppo == load_config(settings[0], settings[1:]).ppo
    for copy in sorted(copies.iterdir())[2:]:
        resume(str(copy))
        assert equal(copy, run, marks=True), copy.name


@pytest.mark.parametrize(("order", "expected"), [
    ("phase=next", "Ramp Careful Careful Last Last Last Last"), ("phase=Last", "Ramp Last Last Last Last Last Last"),
    ("phase=1", "Ramp Ramp Ramp Ramp Careful Careful Last")])
def test_a_phase_can_be_ordered_by_hand_and_a_kill_right_after_it_loses_nothing(order, expected, tmp_path):
    copies, last = tmp_path / "copies", LastWords()
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, PHASES), Asking(order, at=1), Killing(copies), last)
    assert phases_of(run) == expected.split()
    assert last.answers[0].done and "since step 64" in last.answers[0].said
    (row,) = (row for row in events(run) if row["step"] == 64)
    assert row["key"] == "phase" and (row["old"], row["new"]) == ("Ramp", phases_of(run)[1])
    for copy in sorted(copies.iterdir())[1:]:
        resume(str(copy))
        assert equal(copy, run, marks=True), copy.name


@pytest.mark.parametrize(("order", "message"), [("phase=Nowhere", "no phase 'Nowhere'"), ("phase=back", "no phase 'back'")])
def test_a_wrong_phase_is_refused_and_nothing_changes(order, message, tmp_path, monkeypatch):
    last = LastWords()
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, PHASES), Asking(order, at=1), last)
    assert not last.answers[0].done and message in last.answers[0].said
    same = trained(in_folder(tmp_path / "same", monkeypatch), with_phases(tmp_path, CARTPOLE, PHASES))
    assert equal(run, same, marks=True)


def test_a_smoke_run_goes_through_phases_that_end_by_hand(tmp_path):
    """A mistake in a phase that somebody would order at night must show in the smoke run."""
    settings = with_phases(tmp_path, CARTPOLE, [{"name": "A"}, {"name": "B", "set": {"ppo.clip_range": 0.1}}, {"name": "C"}])
    run = trained(tmp_path, (*settings, *smoke_overrides(load_config(settings[0], settings[1:]))))
    assert list(dict.fromkeys(phases_of(run))) == ["A", "B", "C"]


def test_a_run_without_phases_says_that_it_has_none(tmp_path):
    last = LastWords()
    trained(tmp_path, CARTPOLE, Asking("phase=next"), last)
    assert not last.answers[0].done and "has no phases" in last.answers[0].said


def test_an_override_on_resume_counts_over_what_the_phase_sets(tmp_path):
    settings = with_phases(tmp_path, CARTPOLE, PHASES)
    run = trained(tmp_path, settings, Doing(lambda learner: learner.stop("here"), 3))
    resume(str(run), "ppo.clip_range=0.3", "ppo.entropy_coef=0.2")
    rows = ending(run)[1]
    assert [row["optim/clip_range"] for row in rows] == [0.2, 0.2, 0.05, 0.3, 0.3, 0.3, 0.3]
    assert rows[3]["optim/entropy_coef"] == 0.2
    assert rows[-1]["optim/entropy_coef"] == pytest.approx(0.0), "until the last phase sets it again"


def test_a_setting_of_a_part_that_only_phases_have_counts_on_resume_as_it_does_in_the_running_run(tmp_path, monkeypatch):
    """The settings of the whole run have neither the lane nor opponents: there is nothing in them that could be changed."""
    phases = [{"name": "A", "set": {"env.rocket.lanes.turtle": {"share": 0.25, "most": 0.5, "starts": {"turtle": 1.0}}}}]
    settings = with_phases(tmp_path, (*test_live.ROCKET, "env.count=8", "total_steps=2048"), phases)
    change = "env.rocket.lanes.turtle.share=0.5"
    asked = trained(in_folder(tmp_path / "asked", monkeypatch), settings, Asking(change))
    resumed = trained(in_folder(tmp_path / "resumed", monkeypatch), settings, Doing(lambda learner: learner.stop("here")))
    for wrong, said in {"turtle.shares": "phase 'A': unknown key .*did you mean 'env.rocket.lanes.turtle.share'",
                        "turtel.share": "'env.rocket.lanes.turtel.starts' is missing"}.items():
        with pytest.raises(UserError, match=said):
            resume(str(resumed), f"env.rocket.lanes.{wrong}=0.5")
    resume(str(resumed), change)
    assert equal(asked, resumed)
    shares = [row["lane/turtle/share"] for row in ending(resumed)[1]]
    assert shares[0] == 0.25 and shares[-1] == 0.5
    assert load_config(str(resumed / "config.yaml")).env.rocket.lanes == {}


def test_a_resume_with_fewer_phases_goes_on_in_the_last_one(tmp_path):
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, PHASES), Doing(lambda learner: learner.stop("here"), 5))
    resume(str(run), f"phases={json.dumps([{'name': 'Only', 'set': {'ppo.clip_range': 0.4}}])}")
    assert phases_of(run)[-2:] == ["Only", "Only"]
    assert ending(run)[1][-1]["optim/clip_range"] == 0.4


def test_an_override_that_a_phase_sets_is_warned_of(tmp_path, caplog):
    trained(tmp_path, (*with_phases(tmp_path, CARTPOLE, PHASES), "ppo.clip_range=0.3"))
    assert "ppo.clip_range does not count from phase Careful on" in caplog.text


def test_a_ramp_of_what_cannot_change_while_a_run_runs_is_refused_before_the_first_iteration(tmp_path):
    phases = [{"name": "A", "set": {"ppo.value_coef": {"from": 1.0, "to": 0.5, "over": 10}}}]
    with pytest.raises(UserError, match=r"phase 'A': ppo.value_coef cannot be a ramp"):
        train(*with_phases(tmp_path, CARTPOLE, phases))
    assert not (tmp_path / "runs").exists(), "and before there is a run folder"


def test_a_metric_that_nobody_measures_is_warned_of_with_the_nearest_name(tmp_path, caplog):
    phases = [{"name": "A", "until": {"metrics": {"recent/retrun": {"at_least": 1}}}}, {"name": "B"}]
    settings = with_phases(tmp_path, ("cartpole", *TINY, "total_steps=1700", "checkpoint.every=10000"), phases)
    trained(tmp_path, settings)
    assert "waits for recent/retrun at least 1" in caplog.text and "did you mean recent/return?" in caplog.text


def test_milestones_lie_in_the_folder_of_their_phase(tmp_path):
    settings = (*with_phases(tmp_path, CARTPOLE, PHASES), "milestones.every=64")
    run = trained(tmp_path, settings)
    found = sorted(str(path.parent.relative_to(run / "milestones")) for path in run.glob("milestones/**/manifest.json"))
    assert found == ["Phase1-Ramp/64", "Phase2-Careful/128", "Phase3-Last/192", "Phase3-Last/256"]
    fork = sorted(run.parent.iterdir())
    resume(str(run), milestone="128")
    (new,) = set(run.parent.iterdir()) - set(fork)
    assert equal(new, run, marks=True), "a run that goes on from a milestone is in its phase"


def test_settings_are_computed_only_where_they_move(tmp_path):
    """A run without ramps costs nothing between moves."""
    asked: list[int] = []

    class Counting(Listener):
        def on_start(self, learner: Learner) -> None:
            (curriculum,) = (listener for listener in learner.listeners if isinstance(listener, Curriculum))
            settings = curriculum.settings

            def counted(steps: int) -> RunConfig:
                asked.append(steps)
                return settings(steps)

            curriculum.settings = counted

    phases = [{"name": "A", "until": {"steps": 3 * ITERATION}}, {"name": "B", "set": {"ppo.clip_range": 0.1}}]
    trained(tmp_path, with_phases(tmp_path, CARTPOLE, phases), Counting())
    assert asked == [0, 2 * ITERATION, 3 * ITERATION], "at the start, after the first iteration, and at the move"


class Cooling(Listener):
    """Changes a setting by itself, after one iteration."""

    def between_iterations(self, learner: Learner) -> None:
        if learner.iteration == 2:
            change(learner, {"ppo.gae_lambda": 0.5})


@pytest.mark.parametrize("phases", [[], PHASES])
def test_what_a_listener_has_changed_stays_changed(phases, tmp_path):
    """In runs without phases, and beside ramps and moves."""
    seen: list[float] = []
    watching = Doing(lambda learner: seen.append(learner.config.ppo.gae_lambda), at=7)
    trained(tmp_path, with_phases(tmp_path, CARTPOLE, phases), Cooling(), watching)
    assert seen == [0.5]


COUNTS = [{"name": "One", "until": {"steps": 100_000}}, {"name": "Two", "set": {"env.count": 8}}]
"""The second phase needs other environments."""


def test_a_ramp_ends_where_it_is_set_to_the_value_that_it_has(tmp_path):
    last = LastWords()
    asking = Doing(lambda learner: post(folder_of(learner), f"ppo.learning_rate={learner.config.ppo.learning_rate!r}"), at=3)
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, PHASES), asking, last)
    rates = [row["optim/learning_rate"] for row in ending(run)[1]]
    assert rates[1] > rates[2] == rates[-1] > RATE["to"]
    assert [answer.said.splitlines()[-1] for answer in last.answers] == [f"from step {4 * ITERATION} on"]


def test_a_setting_that_is_changed_together_with_a_move_counts_and_the_move_happens(tmp_path):
    asking = Asking("phase=next", at=2), Asking("ppo.clip_range=0.1", at=2)
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, COUNTS), *asking)
    rows = ending(run)[1]
    assert [row["rollout/steps"] for row in rows] == [32, 32, 64, 64, 64]
    assert [row["optim/clip_range"] for row in rows] == [0.2, 0.2, 0.1, 0.1, 0.1]


def test_a_stop_that_is_ordered_with_a_move_stops(tmp_path):
    settings = with_phases(tmp_path, CARTPOLE, COUNTS)
    run = trained(tmp_path, settings, Asking("phase=next", "stop", at=2))
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 2
    resume(str(run))
    assert [row["rollout/steps"] for row in ending(run)[1]] == [32, 32, 64, 64, 64]


def test_what_is_asked_while_the_run_changes_its_environments_is_done(tmp_path, monkeypatch):
    class Late(Listener):
        """Asks by a command and by the file when the first learner has ended, and the second has not begun."""

        def __init__(self) -> None:
            self.asked = False

        def on_stop(self, learner: Learner, error: BaseException | None) -> None:
            if not self.asked:
                self.asked = True
                post(folder_of(learner), "milestone=late")
                (folder_of(learner) / live_file.NAME).write_text("ppo.clip_range: 0.1")

    monkeypatch.setattr(live_file, "SETTLED", 0.0)
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, COUNTS), Late(), Asking("phase=next", at=2))
    assert [(row["key"], row.get("argument")) for row in events(run)] == [
        ("phase", None), ("milestone", "late"), ("ppo.clip_range", None)]


def test_numbers_that_are_set_are_not_those_of_another_phase(tmp_path):
    phases = [{"name": "One", "until": {"steps": 3 * ITERATION}}, {"name": "Two", "set": {"env.count": 2}}]
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, phases))
    assert [row["rollout/steps"] for row in ending(run)[1]] == [32, 32, *[16] * 10]
    assert load_config(str(run / "config.yaml")).env.count == 4


def test_what_a_phase_sets_is_not_chosen_for_phases_that_leave_it_to_auto(tmp_path, monkeypatch):
    auto = (*CARTPOLE, "env.count=auto", "ppo.minibatch_size=auto", "total_steps=64")
    phases = [{"name": "One", "until": {"steps": 1}}, {"name": "Two", "set": {"env.count": 1, "ppo.minibatch_size": 4}}]
    recorded = [load_config(str(trained(in_folder(tmp_path / name, monkeypatch), settings) / "config.yaml"))
                for name, settings in (("without", auto), ("with", with_phases(tmp_path, auto, phases)))]
    assert recorded[0].env.count == recorded[1].env.count > 1
    assert recorded[0].ppo.minibatch_size == recorded[1].ppo.minibatch_size > 4


def test_total_steps_are_those_of_the_whole_run(tmp_path):
    run = trained(tmp_path, with_phases(tmp_path, CARTPOLE, PHASES), Asking("total_steps=160", at=1))
    assert load_config(str(run / "config.yaml")).total_steps == 160 and len(ending(run)[1]) == 4
    with pytest.raises(UserError, match="phases may set what is in env, ppo, opponents, rating"):
        train(*with_phases(tmp_path, CARTPOLE, [{"name": "A", "set": {"total_steps": 5}}]))


def test_a_changed_setting_says_until_when_it_counts(tmp_path):
    last = LastWords()
    trained(tmp_path, with_phases(tmp_path, CARTPOLE, PHASES), Asking("ppo.clip_range=0.15", "ppo.gae_lambda=0.9", at=1), last)
    clip, gae, _ = last.answers[0].said.splitlines()
    assert clip.endswith("(until phase Careful, which sets it)") and "until" not in gae


def test_a_fork_from_a_phase_with_opponents_keeps_the_league(tmp_path):
    phases = [{"name": "Alone", "until": {"steps": 60}}, {"name": "Against", "set": {"opponents": {"share": 0.5, "slots": 2}}}]
    league = [word for word in test_live.LEAGUE if not word.startswith("opponents.")]
    settings = (*with_phases(tmp_path, league, phases), "milestones.every=100")
    run = trained(tmp_path, settings)
    before = set(run.parent.iterdir())
    resume(str(run), milestone="100")
    (new,) = set(run.parent.iterdir()) - before
    assert (new / "league" / "results.csv").exists()
    assert equal(new, run, marks=True)


class Opposed(Listener):
    """The share of opponents after each iteration, and of cars that they drive."""

    def __init__(self) -> None:
        self.shares: list[float] = []
        self.driven: list[float] = []

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        assert learner.config.opponents is not None and isinstance(learner.env, RocketEnv)
        (task,) = learner.env.tasks
        self.shares.append(learner.config.opponents.share)
        self.driven.append(1.0 - float(task.line_up.of_policy().float().mean()))


def test_the_share_of_opponents_may_be_a_ramp(tmp_path):
    """Half of the cars of an arena are an opponent's where there is one."""
    ramp = {"from": 0.0, "to": 0.5, "over": 192}
    settings = with_phases(tmp_path, test_live.ROOMY, [{"name": "Growing", "set": {"opponents.share": ramp}}])
    seen = Opposed()
    trained(tmp_path, settings, seen)
    assert seen.shares[0] < 0.25 < seen.shares[-1] == 0.5 and seen.shares == sorted(seen.shares)
    assert seen.driven[0] == 0.0 and seen.driven[-1] == 0.25


@pytest.mark.parametrize(("phases", "message"), [
    ([{"name": "A", "until": {"steps": 1}}, {"name": "B", "set": {"ppo.normalize_obs": True}}], "phase 'B': one policy plays"),
    ([{"name": "A", "set": {"policy.hidden": [4]}}], "phases may set what is in"),
    ([{"name": "A", "set": {"ppo.epochs": {"from": 1, "to": 4, "over": 30_000}}}], "phase 'A': ppo.epochs"),
    ([{"name": "A", "until": {"rating": 5}}, {"name": "B"}], "phase 'A': it waits for a rating"),
    ([{"name": "A", "until": {"win_rate": {"chasr": 0.5}}}, {"name": "B"}], "phase 'A': it waits for win_rate of 'chasr'"),
    ([{"name": "next"}], "cannot be named 'next'"),
    ([{"name": "A", "until": {"steps": 1}}, {"name": "a"}], "two phases are named"),
])
def test_mistakes_of_later_phases_are_found_before_a_run_begins(phases, message, tmp_path):
    with pytest.raises(UserError, match=message):
        train(*with_phases(tmp_path, CARTPOLE, phases))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("until", "message"), [
    ({"success": {"turtl": 0.5}}, "did you mean 'turtle'"), ({"success": {"turtle/wal": 0.5}}, "did you mean 'turtle/wall'"),
    ({"win_rate": {"chaserr": 0.5}}, "did you mean 'chaser'"), ({"win_rate": {"newst": 0.5}}, "did you mean 'newest'")])
def test_conditions_of_a_rocket_league_run_are_checked_by_name(until, message, tmp_path):
    phases = [{"name": "A", "set": {"opponents": {"share": 0.5, "slots": 1}}, "until": until}, {"name": "B"}]
    file = tmp_path / "phases.yaml"
    lane = {"share": 0.25, "starts": {"turtle": 1}, "measures": ["wall"]}
    rocket = {"measures": ["turtle"], "lanes": {"turtle": lane}}
    file.write_text(yaml.safe_dump({"base": "rocket-1v1", "env": {"rocket": rocket}, "phases": phases}))
    with pytest.raises(UserError, match=message):
        check_setup(load_config(str(file)))
