"""Signals sent to real processes that train: one, two and three of them, during an iteration and during a save."""
from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

import pytest

from tests.runs.stand_in import StandInLearner, forked, make_run
from wavedash.runs.interrupt import Interrupts, SignalKeeper
from wavedash.runs.saver import Saver

pytestmark = pytest.mark.slow


def trainer(run, config, iteration_seconds: float, fsync_seconds: float = 0.0):
    """A training process that tells when an iteration begins and when a save begins, and exits as the command line does."""

    def body(tell):
        learner = StandInLearner([Saver(run, config.checkpoint)], total_steps=10**9)
        fsync = os.fsync

        def slow_fsync(handle):
            tell("saving")
            time.sleep(fsync_seconds)
            fsync(handle)

        os.fsync = slow_fsync

        def during(learner):
            tell(f"iterating {learner.steps}")
            until = time.monotonic() + iteration_seconds
            while time.monotonic() < until:
                time.sleep(0.001)

        learner.during = during
        with Interrupts(learner) as interrupts:
            learner.learn()
        return interrupts.exit_code

    return body


def wait_for(child, word: str) -> None:
    while not (line := child.line()).startswith(word):
        assert line


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_one_signal_finishes_the_iteration_and_saves(tmp_path, capfd, number, code):
    for delay in (0, 0.01, 0.02, 0.05):
        run, config = make_run(tmp_path, every=30)
        with forked(trainer(run, config, iteration_seconds=0.01)) as child:
            wait_for(child, "iterating 20")
            time.sleep(delay)
            child.kill(number)
            assert child.wait() == code
            last = [line for line in child.rest() if line.startswith("iterating")][-1:]
        assert not last or f"iterating {run.newest().step}" == last[0]
    assert "Ctrl-C again to save right now" in capfd.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_repeated_signal_changes_nothing(tmp_path, capfd, number, code):
    run, config = make_run(tmp_path)
    with forked(trainer(run, config, iteration_seconds=0.2)) as child:
        wait_for(child, "iterating")
        for _ in range(4):
            child.kill(number)
            time.sleep(0.02)
        assert child.wait() == code
    assert run.newest().step == 10
    assert capfd.readouterr().err.count("Stopping") == 1


def test_under_nohup_a_run_does_not_stop_when_its_terminal_is_closed(tmp_path):
    run, config = make_run(tmp_path)

    def body(tell):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return trainer(run, config, iteration_seconds=0.05)(tell)

    with forked(body) as child:
        wait_for(child, "iterating 10")
        child.kill(signal.SIGHUP)
        wait_for(child, "iterating 40")
        child.kill(signal.SIGTERM)
        assert child.wait() == 143


def test_two_signals_save_in_the_middle_of_a_long_iteration(tmp_path, capfd):
    run, config = make_run(tmp_path)
    with forked(trainer(run, config, iteration_seconds=60)) as child:
        wait_for(child, "iterating")
        began = time.monotonic()
        child.kill(signal.SIGINT)
        time.sleep(0.1)
        child.kill(signal.SIGINT)
        assert child.wait() == 130
        assert time.monotonic() - began < 5
    assert run.newest().step == 0  # the state at the beginning of that iteration
    run.newest().load()
    assert "Ctrl-C again leaves at once" in capfd.readouterr().err


def test_the_second_signal_does_not_interrupt_a_save(tmp_path, capfd):
    run, config = make_run(tmp_path, every=10)
    with forked(trainer(run, config, iteration_seconds=0, fsync_seconds=0.1)) as child:
        wait_for(child, "saving")
        child.kill(signal.SIGINT)
        time.sleep(0.05)
        child.kill(signal.SIGINT)
        assert child.wait() == 130
    assert run.newest().step == 10
    assert "Saving already" in capfd.readouterr().err


def test_three_signals_leave_at_once_even_from_a_save_that_hangs(tmp_path):
    run, config = make_run(tmp_path, every=10)
    with forked(trainer(run, config, iteration_seconds=0, fsync_seconds=60)) as child:
        wait_for(child, "saving")
        began = time.monotonic()
        for _ in range(3):
            child.kill(signal.SIGINT)
            time.sleep(0.1)
        assert child.wait() == 130
        assert time.monotonic() - began < 2
    assert run.newest() is None
    run.store("checkpoints").sweep()
    assert list((run.path / "checkpoints").iterdir()) == []


@pytest.mark.parametrize(("kept", "code"), [(True, 143), (False, -signal.SIGTERM)])
def test_a_handler_that_a_library_puts_in_place_below_python_is_replaced(tmp_path, kept, code):
    """Compiling kernels does this on a GPU; without the keeper the signal ends the process unsaved."""
    run, config = make_run(tmp_path, every=10**9)

    def body(tell):
        learner = StandInLearner([Saver(run, config.checkpoint)], total_steps=10**9)

        def during(learner):
            if learner.iteration == 0:
                ctypes.CDLL(None).signal(int(signal.SIGTERM), None)  # the handler of C, 0: SIG_DFL
            tell(f"iterating {learner.steps}")
            time.sleep(0.01)

        learner.during = during
        with Interrupts(learner) as interrupts:
            learner.listeners += [SignalKeeper(interrupts)] if kept else []
            learner.learn()
        return interrupts.exit_code

    with forked(body) as child:
        wait_for(child, "iterating 30")
        child.kill(signal.SIGTERM)
        assert child.wait() == code
    assert (run.store("checkpoints").latest() is not None) == kept


def test_old_handlers_are_restored_and_other_errors_pass_through():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    def body():
        with Interrupts(StandInLearner([])):
            assert signal.getsignal(signal.SIGINT) is not before[0]
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        body()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_in_another_thread_nothing_is_installed():
    seen = []

    def body():
        with Interrupts(StandInLearner([])) as interrupts:
            seen.append((signal.getsignal(signal.SIGINT), interrupts.exit_code))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert seen == [(before, 0)]
