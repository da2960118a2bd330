"""WarpSimulator in RocketEnv: its state is saved exactly, threads change nothing, there is no host sync, and no noise."""
from __future__ import annotations

import builtins
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from threading import Event

import pytest
import torch

from tests.ppo.test_host_reads import as_on_a_gpu, watched_reads
from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.test_env import ends_after, random_actions, simulated, trajectory
from wavedash.assembly import make_policy
from wavedash.config_file import ConfigError, load_config
from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.shard import ROLLOUTS
from wavedash.rocket.sim import package
from wavedash.rocket.sim.simulator import WarpSimulator
from wavedash.rocket.starts import Random
from wavedash.rocket.task import Task
from wavedash.runs.find import resolve_checkpoint
from wavedash.training import resume, train


def played(arenas: int = 24, **options) -> WarpSimulator:
    """A simulator some steps after random starts: cars are on wheels, on walls and in the air, and shots are under way."""
    sim = WarpSimulator(arenas, 1, 1, **options)
    start = Random()
    start.bind(sim.state)
    start.write(sim.state, torch.Generator().manual_seed(0))
    sim.place(torch.ones(arenas, dtype=torch.bool))
    for controls in random_controls(sim, 12, seed=1):
        sim.step(controls, ticks=8, delay=1)
    return sim


def random_controls(sim: WarpSimulator, steps: int, seed: int) -> torch.Tensor:
    return torch.rand(steps, *sim.state.cars.team.shape, 8, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def records(sim: WarpSimulator, steps: int = 40) -> torch.Tensor:
    """The records of the next steps, [steps, E, R]."""
    seen = []
    for controls in random_controls(sim, steps, seed=2):
        sim.step(controls, ticks=8, delay=1)
        seen.append(sim.state.memory.clone())
    return torch.stack(seen)


def test_a_saved_simulator_goes_on_to_the_bit():
    sim = played()
    saved = sim.save()
    expected = records(sim)
    sim.load(saved)
    assert torch.equal(records(sim), expected)
    other = WarpSimulator(24, 1, 1)
    other.load(saved)
    assert torch.equal(records(other), expected), "it goes on in another simulator too"


def test_the_records_alone_would_not_go_on_exactly():
    """The control: wheels keep their suspension state, which the records do not hold."""
    sim = played()
    saved = sim.save()
    expected = records(sim)
    sim.load({**saved, "cars": torch.zeros_like(saved["cars"])})
    assert not torch.equal(records(sim), expected)


def test_the_number_of_threads_changes_nothing():
    one, many = played(threads=1), played(threads=3)
    assert torch.equal(records(one), records(many))
    assert (one.state.game.tick > 0).all(), "no arena was left out"


@pytest.mark.parametrize("threads", [1, 2])
def test_send_returns_while_arenas_step(threads):
    """It does with one thread as well: of two cores a run leaves one to the policy."""
    sim, go_on, began = WarpSimulator(4, 1, 1, threads=threads), Event(), Event()
    for partition in sim._partitions:
        partition.step = partial(step_when_told, began, go_on, partition.step)
    sim.send(torch.zeros(4, 2, 8), ticks=8)
    assert began.wait(60) and sim.state.game.tick.eq(0).all()
    go_on.set()
    sim.recv()
    assert sim.state.game.tick.eq(8).all()


def step_when_told(began: Event, go_on: Event, step: Callable[..., None], *how: int) -> None:
    began.set()
    assert go_on.wait(10), "send waited for the step"
    step(*how)


def test_simulators_that_step_at_the_same_time_do_not_affect_each_other():
    alone = [played(threads=1), played(threads=2)]
    expected = [records(sim) for sim in alone]
    sims = played(threads=1), played(threads=2)
    seen: tuple[list[torch.Tensor], ...] = ([], [])
    for controls in random_controls(sims[0], 40, seed=2):
        for sim in sims:
            sim.send(controls, ticks=8, delay=1)
        for sim, kept in zip(sims, seen, strict=True):
            sim.recv()
            kept.append(sim.state.memory.clone())
    for kept, memory in zip(seen, expected, strict=True):
        assert torch.equal(torch.stack(kept), memory)


def test_states_and_options_that_do_not_fit_are_refused():
    sim = WarpSimulator(2, 1, 1)
    saved = sim.save()
    for wrong in ({"records": saved["records"]}, WarpSimulator(3, 1, 1).save()):
        with pytest.raises(EnvError, match=r"another simulator: set env.rocket.simulator, env.count"):
            sim.load(wrong)
    with pytest.raises(EnvError, match="delay of 9 ticks"):
        sim.send(torch.zeros(2, 2, 8), ticks=8, delay=9)
    with pytest.raises(EnvError, match=r"names are octane, dominus"):
        WarpSimulator(1, 1, 1, hitboxes="octan")
    with pytest.raises(ConfigError, match=r"env.workers=2 is for env.rocket.simulator=rocketsim"):
        load_config("rocket-1v1", ["env.workers=2"])


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_seats_stay_empty(simulator):
    sizes = [(1, 1), (2, 1), (0, 2), (2, 2)]
    if simulator == "warp":
        sim = WarpSimulator(4, 2, 2, sizes=sizes)
    else:
        sim = pytest.importorskip("wavedash.rocket.rocketsim.simulator").RocketSimSimulator(4, 2, 2, sizes=sizes)
    config = load_config("rocket-2v2", [ends_after(3)]).env.rocket
    env = RocketEnv([sim], lambda: Task.configured(config))
    present = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 1, 1], [1, 1, 1, 1]], dtype=torch.bool)
    env.reset(0)
    for action in random_actions(env, 12):
        step = env.step(action)
        assert torch.equal(step.active, present.flatten()) and torch.equal(sim.state.cars.present, present)
        assert (step.reward[~step.active] == 0).all() and step.obs["obs"].isfinite().all()
    env.close()


# --- host syncs ------------------------------------------------------------------------------------------------------


def env_without_syncs(*overrides: str, **options: str) -> RocketEnv:
    """An environment on the CPU that avoids host syncs, as on a GPU."""
    env = simulated(*overrides, **options)
    for arenas in env._shards:
        arenas.on_host = False
    return env


FRAMES = "env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}"
DEFAULT = ("env.rocket.observation=default_obs", "env.rocket.action={multi_discrete: {sticky: 2}}")


@pytest.mark.slow
@pytest.mark.parametrize("task", [(), (FRAMES,), DEFAULT], ids=["preset", "frames", "default_obs"])
def test_a_step_without_host_syncs_equals_one_with_them(task):
    free, syncing = env_without_syncs(ends_after(4), *task), simulated(ends_after(4), *task)
    for env in (free, syncing):
        env.reset(5)
    shape = (60, free.num_rows, *free.action_space.shape)
    actions = torch.randint(0, 90 if not free.action_space.shape else 2, shape, generator=torch.Generator().manual_seed(0))
    ended = 0
    for action in actions:
        with NoHostSync():
            ours = free.step(action)
        theirs = syncing.step(action)
        ended += int(theirs.truncated.sum())
        for name in ("reward", "terminated", "truncated", "active"):
            assert torch.equal(getattr(ours, name), getattr(theirs, name)), name
        for name, x in theirs.obs.items():
            assert torch.equal(ours.obs[name], x) and torch.equal(ours.final_obs[name], theirs.final_obs[name])
        assert all(torch.equal(ours.metrics[name], x) for name, x in theirs.metrics.items())
    assert ended > 60, "episodes ended and began"
    with NoHostSync():
        free.prepare()


def test_a_host_sync_would_be_seen():
    env = simulated(ends_after(4))
    env.reset(0)
    with NoHostSync(), pytest.raises(AssertionError, match="reads a tensor on the host"):
        env.step(random_actions(env, 1)[0])


def test_an_iteration_in_these_arenas_reads_the_device_once():
    env = env_without_syncs(ends_after(4))
    config = load_config("rocket-1v1", ["env.count=3", "ppo.rollout_steps=8", "ppo.minibatch_size=16", "policy.hidden=[8]"])
    learner = as_on_a_gpu(Learner(env, make_policy(env, config), config))
    learner.start()
    for _ in range(2):
        with watched_reads() as counts:
            learner.iterate()
        assert dict(counts) == {"tolist": 1}


# --- beginnings ------------------------------------------------------------------------------------------------------


def beginnings(env: RocketEnv, steps: int) -> list[torch.Tensor]:
    """The first observations of the cars of every arena, from an environment in which every step ends all episodes."""
    return [torch.stack([x.clone() for x in env.step(action).obs["obs"].split(2)]) for action in random_actions(env, steps)]


EVERY_STEP = "env.rocket.endings={time_out: {seconds: 0.05}}"


def test_no_episode_begins_like_another_however_many_there_are(monkeypatch):
    monkeypatch.setattr("wavedash.rocket.shard.BEGINNINGS", 12)  # four for each arena, so that they are used up again and again
    env = simulated(EVERY_STEP, "env.rocket.starts={random: 1}")
    env.reset(0)
    seen = torch.cat(beginnings(env, 30)).flatten(1)
    assert len(seen.unique(dim=0)) == len(seen) == 90


def test_without_host_syncs_beginnings_are_written_anew_every_few_rollouts(monkeypatch):
    monkeypatch.setattr("wavedash.rocket.shard.BEGINNINGS", 12)
    env = env_without_syncs(EVERY_STEP, "env.rocket.starts={random: 1}")
    env.reset(0)
    env.prepare()
    first = beginnings(env, 6)
    assert torch.equal(first[4], first[0]) and torch.equal(first[5], first[1]), "after the last comes the first again"
    for _ in range(ROLLOUTS):
        env.prepare()
    seen = torch.cat([*first[:4], *beginnings(env, 4)]).flatten(1)
    assert len(seen.unique(dim=0)) == len(seen) == 24


def test_without_host_syncs_beginnings_last_for_so_many_rollouts_also_over_a_resume():
    """Whenever a run is resumed, its beginnings are written anew before the same rollouts."""
    env = env_without_syncs(EVERY_STEP, "env.rocket.starts={random: 1}")
    env.reset(0)
    fresh, states, stores = env._shards[0].fresh.memory, [], []
    for _ in range(2 * ROLLOUTS + 2):
        states.append({name: x.clone() for name, x in env.save_state().items()})
        env.prepare()
        stores.append(fresh.clone())
    new = [not torch.equal(before, after) for before, after in pairwise(stores)]
    assert [index + 1 for index, is_new in enumerate(new) if is_new] == [ROLLOUTS, 2 * ROLLOUTS]
    other = env_without_syncs(EVERY_STEP, "env.rocket.starts={random: 1}")
    other.reset(1)
    for index, state in enumerate(states[:ROLLOUTS + 1]):
        other.load_state(state)
        for store in stores[index:]:
            other.prepare()
            assert torch.equal(other._shards[0].fresh.memory, store)


def test_without_host_syncs_arenas_that_use_their_beginnings_up_are_saved_too(monkeypatch):
    monkeypatch.setattr("wavedash.rocket.shard.BEGINNINGS", 6)
    env, other = (env_without_syncs(EVERY_STEP, "env.rocket.starts={random: 1}") for _ in range(2))
    env.reset(0)
    other.reset(1)
    actions = random_actions(env, 10)
    trajectory(env, actions[:5])  # two beginnings for every arena, and five episodes
    other.load_state({name: x.clone() for name, x in env.save_state().items()})
    assert all(torch.equal(a, b) for a, b in zip(trajectory(env, actions[5:]), trajectory(other, actions[5:]), strict=True))


@pytest.mark.parametrize("prepared", [False, True])
def test_beginnings_are_part_of_the_saved_state(prepared):
    env, other = (env_without_syncs(EVERY_STEP, "env.rocket.starts={kickoff: 1, random: 1}") for _ in range(2))
    env.reset(3)
    actions = random_actions(env, 12)
    trajectory(env, actions[:5])
    saved = {name: x.clone() for name, x in env.save_state().items()}
    other.reset(4)
    other.load_state(saved)
    if prepared:
        env.prepare()
        other.prepare()
    assert all(torch.equal(a, b) for a, b in zip(trajectory(env, actions[5:]), trajectory(other, actions[5:]), strict=True))


# --- the package -----------------------------------------------------------------------------------------------------


def test_without_warp_the_error_says_how_to_install_it(monkeypatch):
    real = builtins.__import__

    def without_warp(name, *args, **kwargs):
        if name == "warp":
            raise ModuleNotFoundError("No module named 'warp'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_warp)
    with pytest.raises(UserError, match=r"pip install 'wavedash\[rocket\]'.*simulator=rocketsim"):
        package.start_warp()


def test_only_a_compilation_is_announced(monkeypatch, caplog):
    monkeypatch.setattr(package, "COMPILE_SECONDS", 0.05)
    with package.log_if_compiling("two cars"):
        pass
    time.sleep(0.1)
    assert caplog.text == ""
    with package.log_if_compiling("two cars"):
        time.sleep(0.2)
    (line,) = caplog.messages
    assert "compiling the simulator for two cars" in line and "once on this machine" in line and "warp" in line


@pytest.mark.slow
def test_importing_the_simulator_prints_nothing():
    done = subprocess.run([sys.executable, "-c", "import wavedash.rocket.sim.simulator"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- runs ------------------------------------------------------------------------------------------------------------

SMALL = ("env.count=8", "ppo.rollout_steps=8", "ppo.minibatch_size=64", "policy.hidden=[16]", "report.console=off",
         "report.tensorboard=false", "checkpoint.every=128", "checkpoint.keep=100", "env.rocket.endings.no_touch.seconds=1")


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(tmp_path, monkeypatch):
    ends = []
    for name, stops in (("whole", [1024]), ("stopped", [384, 640, 1024])):
        monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / name))
        assert train("rocket-1v1", *SMALL, f"total_steps={stops[0]}") == 0
        for stop in stops[1:]:
            assert resume(str(tmp_path / name / "rocket-1v1"), f"total_steps={stop}") == 0
        tensors, state = resolve_checkpoint(tmp_path / name / "rocket-1v1/final").load()
        assert state["steps"] == 1024 and state["episodes"] > 16
        ends.append({f"{group}.{name}": x for group, part in tensors.items() for name, x in part.items()})
    assert ends[0].keys() == ends[1].keys() and any(name.startswith("env.0.simulator.cars") for name in ends[0])
    assert [name for name, x in ends[0].items() if not torch.equal(x, ends[1][name])] == []


@pytest.mark.slow
@pytest.mark.parametrize("simulators", [("rocketsim", "warp"), ("warp", "rocketsim")], ids=" to ".join)
def test_a_run_that_changes_its_simulator_goes_on_with_fresh_arenas(tmp_path, monkeypatch, caplog, simulators):
    pytest.importorskip("RocketSim")
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    first, second = (f"env.rocket.simulator={simulator}" for simulator in simulators)
    assert train("rocket-1v1", *SMALL, "env.groups=1", "total_steps=128", first) == 0
    assert resume(str(tmp_path / "rocket-1v1"), "total_steps=256", second) == 0
    assert "another simulator" in caplog.text and "the run goes on from fresh ones" in caplog.text
