"""WorkerPool with real faults: workers are killed, stopped, stuck or raise. Training goes on, or ends with the reason."""
from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import psutil
import pytest
import torch

from tests.envs.toy_envs import Counter, Fault, dies_in
from wavedash.envs.batch import episode_seed
from wavedash.envs.errors import EnvError
from wavedash.envs.factory import EnvFactory
from wavedash.envs.local import LocalVecEnv

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals are how POSIX does it")]
ZEROS = torch.zeros(6, dtype=torch.int64)


def worker_pids(env):
    return [worker.pid for worker in env._supervisor.workers]


def play(env, steps):
    for _ in range(steps):
        env.step(torch.zeros(env.num_rows, dtype=torch.int64))


def assert_dropped(step, rows, others, env, healthy):
    """`rows` of the step are no transition; `others` equal those of the same run without a fault."""
    assert step.active[rows].tolist() == [False] * 3
    assert step.truncated[rows].tolist() == [True] * 3
    assert step.terminated[rows].tolist() == [False] * 3
    assert step.reward[rows].tolist() == [0.0] * 3
    assert torch.equal(step.final_obs[rows], step.obs[rows])
    assert step.active[others].all()
    expected = healthy.step(ZEROS)
    for name in ("obs", "final_obs", "reward"):
        assert torch.equal(getattr(step, name)[others], getattr(expected, name)[others])
    assert env.health == {"worker_restarts": 1, "dropped_episodes": 3}


def new_episode(seed, envs, episode):
    reference = Counter()
    return torch.stack([torch.from_numpy(reference.reset(seed=episode_seed(seed, i, episode))[0]).float() for i in envs])


@pytest.mark.parametrize(("sign", "moment"), [(signal.SIGKILL, "idle"), (signal.SIGKILL, "stepping"), (signal.SIGSTOP, "idle")])
def test_a_lost_worker_is_replaced_and_only_its_rows_are_dropped(pool, sign, moment, caplog):
    env, healthy = pool(Counter, 6, 2, groups=1, worker_timeout=2.0), LocalVecEnv(Counter, 6)
    env.reset(seed=1), healthy.reset(seed=1)
    victim = worker_pids(env)[1]
    if moment == "idle":
        os.kill(victim, sign)
        env.send(0, ZEROS)
    else:
        os.kill(victim, signal.SIGSTOP)  # so that the step is surely under way when it is killed
        env.send(0, ZEROS)
        os.kill(victim, sign)
    began = time.monotonic()
    _, step = env.recv()
    assert time.monotonic() - began < 15
    assert_dropped(step, slice(3, 6), slice(0, 3), env, healthy)
    assert torch.equal(step.obs[3:], new_episode(1, range(3, 6), 1)), "the next episodes by index, from their first observation"
    assert not psutil.pid_exists(victim)
    assert "started again" in caplog.text
    # The run goes on, and its state is still exact.
    for _ in range(20):
        assert env.step(ZEROS).active.all()
    healthy.load_state(env.save_state())
    assert torch.equal(env.step(ZEROS).obs, healthy.step(ZEROS).obs)


def test_a_worker_that_dies_while_another_shard_steps_is_replaced(pool):
    env = pool(Counter, 6, 2, groups=2)
    env.reset(seed=1)
    os.kill(worker_pids(env)[1], signal.SIGKILL)
    for _ in range(200):  # its death is noticed and it is replaced while only shard 0 steps
        env.send(0, ZEROS[:3])
        assert env.recv()[0] == 0
        time.sleep(0.01)
    assert env.health["worker_restarts"] == 1
    env.send(1, ZEROS[3:])
    _, step = env.recv()
    assert not step.active.any()
    assert torch.equal(step.obs, new_episode(1, range(3, 6), 1))
    env.send(1, ZEROS[3:])
    assert env.recv()[1].active.all()


def test_a_step_that_never_returns_is_noticed_and_its_stack_is_shown(pool, tmp_path, caplog):
    env = pool(partial(Fault, "sleeps", times=1, folder=str(tmp_path)), 2, 2, worker_timeout=2.0)
    env.reset(seed=1)
    env.step(ZEROS[:2])
    began = time.monotonic()
    step = env.step(ZEROS[:2])
    assert time.monotonic() - began < 15
    assert sorted(step.active.tolist()) == [False, True]
    hung = f"{step.active.tolist().index(False)}, episode 0"
    assert re.search(rf"hung: no sign of life .* It was in environment {hung} .*, step 2: step\(\)", caplog.text)
    assert "toy_envs.py" in caplog.text
    for _ in range(20):
        assert env.step(ZEROS[:2]).active.all()


def test_a_slow_worker_is_not_taken_for_a_hung_one(pool):
    """Four environments take half a second each: together longer than the time limit, but each gives a sign of life."""
    env = pool(partial(Sleepy, 0.5), 4, 1, worker_timeout=1.5)
    env.reset(seed=0)
    assert env.step(ZEROS[:4]).active.all()
    assert env.health["worker_restarts"] == 0


class Sleepy(Counter):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def step(self, action):
        time.sleep(self.seconds)
        return super().step(action)


@pytest.mark.parametrize("kind", ["raises", "nan obs"])
def test_an_environment_that_fails_once_costs_an_episode(pool, kind, tmp_path, caplog):
    env = pool(partial(Fault, kind, times=1, folder=str(tmp_path)), 2, 2)
    env.reset(seed=1)
    inactive = sum(int((~env.step(ZEROS[:2]).active).sum()) for _ in range(30))
    assert inactive == 1
    assert env.health == {"worker_restarts": 1, "dropped_episodes": 1}
    assert {"raises": "wheel fell off", "nan obs": "observation[1] is nan"}[kind] in caplog.text


def test_an_environment_that_always_fails_ends_the_run_with_its_traceback(pool):
    env = pool(partial(Fault, "raises"), 2, 2)
    env.reset(seed=1)
    pids = worker_pids(env)
    with pytest.raises(EnvError, match=r"(?s)worker \d .*Traceback.*in step.*wheel fell off.*3 times within a minute"):
        play(env, 30)
    assert env.health["worker_restarts"] >= 2
    assert not any(psutil.pid_exists(pid) for pid in pids + worker_pids(env)), "no process is left"


def test_a_worker_that_cannot_start_ends_the_run_at_once(pool):
    with pytest.raises(EnvError, match=r"(?s)Traceback.*no licence for this simulator"):
        pool(partial(Fault, "constructor raises in a worker"), 2, 2)


DEATHS = {
    "segfault": "was killed by SIGSEGV in ",
    "os._exit": "ended by itself with exit code 3 in ",
    "sys.exit": "raised SystemExit: 3",
    "kill": "was killed by SIGKILL (often the system's answer to too little memory) in ",
    "stop": "It was in ",
}


@pytest.mark.parametrize("way", DEATHS)
def test_a_worker_that_is_gone_is_named_with_the_step_that_it_was_in(pool, way, caplog):
    """An environment ends or stops its process, in an episode and step that follow from its seed and actions alone."""
    env = pool(EnvFactory("tests.envs.toy_envs:Dies", {"way": way}, imported=True), 6, 2, groups=2, worker_timeout=2.0)
    healthy, draw = LocalVecEnv(Counter, 6), np.random.default_rng(3)
    env.reset(seed=1)
    obs = healthy.reset(seed=1)
    episodes, taken = np.zeros(6, int), [[] for _ in range(6)]
    for _ in range(200):
        action = draw.integers(5, size=6)
        doomed = [i for i, (start, steps, _) in enumerate(obs.tolist()) if dies_in(start, steps, action[i])]
        for i in range(6):
            taken[i].append(int(action[i]))
        env.step(torch.from_numpy(action))
        if doomed:
            break
        step = healthy.step(torch.from_numpy(action))
        obs = step.obs
        for i in np.flatnonzero(step.terminated):
            episodes[i] += 1
            taken[i] = []
    victim = doomed[0]
    assert episodes[victim] > 0, "a later episode, so that its number and seed say something"
    seed = episode_seed(1, victim, episodes[victim])
    moment = f"environment {victim}, episode {episodes[victim]} (seed {seed}), step {len(taken[victim])}: step()"
    assert moment in caplog.text
    assert DEATHS[way] + (moment if DEATHS[way].endswith(" in ") else "") in caplog.text
    assert "toy_envs.py" in caplog.text or way != "segfault", "a crash shows its stack"
    if way in ("segfault", "os._exit", "kill"):
        ended = subprocess.run([sys.executable, "-c", recipe(caplog.text)], capture_output=True)
        assert ended.returncode == {"segfault": -signal.SIGSEGV, "os._exit": 3, "kill": -signal.SIGKILL}[way], ended.stderr
        # The control: the step before it is harmless, so the recipe dies in that step and in no other.
        spared = re.sub(r"for action in (.*):", r"for action in (\1)[:-1]:", recipe(caplog.text))
        assert subprocess.run([sys.executable, "-c", spared]).returncode == 0


def recipe(text):
    """The lines of Python in a message."""
    lines = text.partition("To see it again:\n")[2].splitlines()
    return "\n".join(line[4:] for line in lines[: next(i for i, line in enumerate(lines) if not line.startswith("    "))])


def test_the_actions_of_a_long_episode_are_kept_in_a_file(pool, caplog, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    env = pool(EnvFactory("tests.envs.toy_envs:Walks", {"at": 300}, imported=True), 2, 1)
    env.reset(seed=1)
    actions = torch.from_numpy(np.random.default_rng(0).integers(5, size=(300, 2)))
    for action in actions:
        env.step(action)
    (file,) = tmp_path.glob("*.npy")
    assert np.load(file).tolist() == actions[:, 0].tolist()
    ended = subprocess.run([sys.executable, "-c", recipe(caplog.text)])
    assert ended.returncode == 3


def test_a_worker_that_dies_between_two_steps_is_not_blamed_on_an_environment(pool, caplog):
    env = pool(Counter, 6, 2)
    env.reset(seed=1)
    env.step(ZEROS)
    os.kill(worker_pids(env)[0], signal.SIGKILL)
    env.step(ZEROS)
    assert re.search(r"worker 0 \(environments 0 to 2\) was killed .* between two steps, in no environment", caplog.text)


@pytest.mark.parametrize(("way", "says"), [
    ("making", r"while it was making environment 1"),
    ("reset", rf"environment 1, episode 0 \(seed {episode_seed(1, 1, 0)}\), step 0: reset\(\)"),
])
def test_a_worker_that_dies_before_its_first_step_says_where(pool, way, says, caplog, tmp_path):
    try:
        pool(partial(DiesEarly, way, str(tmp_path / "once")), 3, 1).reset(seed=1)
        told = caplog.text
    except EnvError as error:  # one that never came up is not tried again
        told = str(error)
    assert re.search(rf"worker 0 .*exit code 3 .*{says}", told)


class DiesEarly(Counter):
    """The second one that a worker process makes ends the process, once."""

    made = 0

    def __init__(self, way, file):
        super().__init__()
        DiesEarly.made += 1
        self.number, self.way, self.file = DiesEarly.made, way, file
        self.end("making")

    def end(self, where):
        inside = multiprocessing.parent_process() is not None
        if inside and self.way == where and self.number == 2 and not os.path.exists(self.file):
            open(self.file, "x").close()
            os._exit(3)

    def reset(self, **options):
        self.end("reset")
        return super().reset(**options)


def test_a_worker_that_dies_while_episodes_are_replayed_tells_the_actions_so_far(pool, caplog, tmp_path):
    """Environment 1 is resumed at step 9 and dies in step 5 of its saved actions; environment 0 has another length."""
    actions = [torch.from_numpy(np.random.default_rng(i).integers(5, size=length)) for i, length in enumerate((3, 9))]
    env = pool(EnvFactory("tests.envs.toy_envs:Walks", {"at": 5, "file": str(tmp_path / "once")}, imported=True), 2, 1)
    env.reset(seed=1)
    state = env.save_state() | {"length": torch.tensor([3, 9]), "action": torch.cat(actions)}
    env.load_state(state)
    assert f"environment 1, episode 0 (seed {episode_seed(1, 1, 0)}), step 5: step()" in caplog.text
    assert f"np.array({actions[1][:5].tolist()}, np.int64)" in caplog.text
