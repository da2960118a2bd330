"""A run folder is deleted while its run goes on."""
from __future__ import annotations

import os
import shutil

import pytest

from tests.runs.stand_in import StandInLearner, make_run
from wavedash.config_file import load_config
from wavedash.ppo.listener import Listener
from wavedash.runs.find import find_run
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.saver import Saver


def gone_at(run, steps: int, then=lambda: None):
    def during(learner):
        if learner.steps == steps:
            shutil.rmtree(run.path)
            then()

    return during


def test_a_folder_that_was_deleted_during_the_run_is_made_anew_and_can_be_resumed(tmp_path, caplog):
    run, config = make_run(tmp_path, every=20)
    learner = StandInLearner([Saver(run, config.checkpoint)], total_steps=100)
    learner.during = gone_at(run, 50)
    learner.learn()
    assert "was deleted or moved away during the run" in caplog.text
    found, checkpoint = find_run(run.path)
    assert found.path == run.path.absolute() and checkpoint.step == 100
    assert run.finished() and load_config(str(run.config)) == config


def test_a_folder_that_was_deleted_after_the_last_save_is_saved_again_at_the_end(tmp_path):
    run, config = make_run(tmp_path, every=10)
    learner = StandInLearner([Saver(run, config.checkpoint)], total_steps=100)
    learner.during = lambda learner: learner.stop("test") if learner.steps == 50 else None

    class Deletes(Listener):
        def on_iteration(self, learner, report):
            if report.steps == 50:
                shutil.rmtree(run.path)

    learner.listeners.append(Deletes())
    learner.learn()
    assert run.newest().step == 50 and RunFolder.is_run(run.path)


def test_the_folder_that_was_made_anew_is_locked_anew(tmp_path):
    run, config = make_run(tmp_path, every=10)
    other, seen = RunFolder(run.path), []

    class Intruder(Listener):
        def on_iteration(self, learner, report):
            if report.steps >= 60:
                with pytest.raises(RunError, match=f"is being trained by process {os.getpid()}"), other.locked():
                    pass
                seen.append(report.steps)

    with run.locked():
        learner = StandInLearner([Saver(run, config.checkpoint), Intruder()], total_steps=100)
        learner.during = gone_at(run, 50)
        learner.learn()
    assert seen == [60, 70, 80, 90, 100]
    with other.locked():
        pass


def test_a_folder_that_cannot_be_made_anew_fails_the_run(tmp_path):
    run, config = make_run(tmp_path, every=1000)
    learner = StandInLearner([Saver(run, config.checkpoint)], total_steps=100)
    learner.during = gone_at(run, 50, then=lambda: run.path.write_text("in the way"))
    with pytest.raises(RunError, match=r"cannot make the run folder .* anew"):
        learner.learn()
