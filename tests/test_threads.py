"""One module decides how many threads compute: what it depends on, and that everything that computes obeys it."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from wavedash import threads
from wavedash.assembly import assembled
from wavedash.config_file import load_config
from wavedash.evaluate.own_task import evaluate
from wavedash.policy.actor_critic import ActorCritic
from wavedash.training import train

ROOT = Path(__file__).parents[1]
LARGE = ["policy.hidden=[512,512]", "ppo.minibatch_size=512", "ppo.rollout_steps=64", "ppo.epochs=1",
         "report.tensorboard=false"]
"""Its minibatches keep several threads busy; the observations of 8 environments do not."""


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    for name in ("_threads", "_processes", "_torch_limit", "_given_to_torch"):
        monkeypatch.setattr(threads, name, getattr(threads, name))
    yield
    torch.set_num_threads(before)


def told_by_a_process(code: str, **environ: str) -> list[int]:
    """The numbers that a fresh interpreter prints, in which no number of threads was set yet."""
    env = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", f"from wavedash.threads import *\n{code}"], text=True, capture_output=True,
                          env={**env, "PYTHONPATH": str(ROOT), **environ}, check=True)
    return [int(word) for word in done.stdout.split()]


BOTH = "print(cores(), compute_threads())"


@pytest.mark.slow
def test_omp_num_threads_counts_if_the_option_is_not_set():
    allowed = threads.allowed_cores()
    assert told_by_a_process("print(cores())", OMP_NUM_THREADS="1") == [1]
    assert told_by_a_process("print(cores())", OMP_NUM_THREADS="2,1") == [min(2, allowed)]
    assert told_by_a_process("print(cores())", OMP_NUM_THREADS="1000") == [allowed], "it is a limit"
    assert told_by_a_process(f"decide_threads(3); {BOTH}", OMP_NUM_THREADS="1") == [3, 3], "the option counts instead"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux limits a process to some cores")
def test_a_process_that_may_use_one_core_has_one_thread():
    pinned = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); print(allowed_cores()); {BOTH}"
    assert told_by_a_process(pinned) == [1, 1, 1]


def test_processes_of_a_run_share_the_cores():
    cores = threads.allowed_cores()
    for processes, share in ((1, cores), (cores, 1), (2 * cores, 1)):
        threads.decide_threads(0, processes)
        assert threads.cores() == share


@pytest.mark.slow
def test_a_number_of_threads_that_a_program_set_in_torch_is_a_limit():
    cores = threads.allowed_cores()
    told = "import torch; torch.set_num_threads(1); print(compute_threads()); give_torch(1); print(compute_threads())"
    assert told_by_a_process(told) == [1, 1]
    own = f"import torch; torch.set_num_threads({cores}); give_torch(1); print(torch.get_num_threads(), compute_threads())"
    assert told_by_a_process(own) == [1, cores], "what torch was given here is no limit"


@pytest.mark.parametrize(("files", "cores"), [
    ({"cpu.max": "150000 100000\n"}, 2), ({"cpu.max": "max 100000\n"}, None), ({}, None),
    ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
    ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
])
def test_the_limit_of_a_container_is_read(tmp_path, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert threads._container_cores(tmp_path) == cores


# --- everything obeys it ---------------------------------------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch):
    """The number of torch's threads whenever a policy acts, and the threads that an update runs in."""
    acting, learning = [], []
    act, evaluate = ActorCritic.act, ActorCritic.evaluate

    def watched_act(self, *args, **kwargs):
        acting.append(torch.get_num_threads())
        return act(self, *args, **kwargs)

    def watched_evaluate(self, *args, **kwargs):
        learning.append((threading.current_thread(), torch.get_num_threads()))
        return evaluate(self, *args, **kwargs)

    monkeypatch.setattr(ActorCritic, "act", watched_act)
    monkeypatch.setattr(ActorCritic, "evaluate", watched_evaluate)
    return acting, learning


@pytest.mark.parametrize("option", ["threads=2", "threads=0"])
def test_threads_of_collection_depend_on_the_rows_and_those_of_the_update_on_the_minibatch(seen, option, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    torch.set_num_threads(2)
    acting, learning = seen
    with assembled(load_config("cartpole", [*LARGE, option, "ppo.normalize_obs=true", "device=cpu"])) as learner:
        learner.start()
        assert len(acting) == 64 and set(acting) == {1}, "calibration: a few rows at a time keep one thread busy"
        learner.iterate()
    assert len(acting) == 128 and set(acting) == {1}
    assert {number for _, number in learning} == {1}, "a piece of a minibatch has one thread"
    assert threads.compute_threads() == 2


def test_many_rows_at_once_have_all_threads(seen):
    acting, _ = seen
    changes = ["policy.hidden=[512,512]", "env.count=256", "ppo.rollout_steps=2", "ppo.minibatch_size=64", "threads=2",
               "device=cpu"]
    with assembled(load_config("cartpole", changes)) as learner:
        learner.start()
        learner.iterate()
    assert acting == [2, 2]


def test_with_one_thread_everything_runs_in_the_callers(seen):
    """This is the control of the tests above: without helpers the caller learns all pieces."""
    _, learning = seen
    with assembled(load_config("cartpole", [*LARGE, "threads=1", "device=cpu"])) as learner:
        learner.start()
        learner.iterate()
    assert {thread for thread, _ in learning} == {threading.main_thread()} and len(learning) > 1


def test_evaluation_obeys_the_same_limit(seen, tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    train("cartpole", *LARGE, "total_steps=512", "threads=2", "report.console=off", "device=cpu")
    acting, _ = seen
    acting.clear()
    torch.set_num_threads(4)
    evaluate(tmp_path / "cartpole", episodes=2)
    assert set(acting) == {1} and threads.cores() == 2
