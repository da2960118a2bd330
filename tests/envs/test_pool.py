"""WorkerPool without faults: worker processes return what one process returns."""
from __future__ import annotations

import multiprocessing
from functools import partial

import gymnasium
import pytest
import torch

from tests.envs.toy_envs import Counter, DictObs, Fault, Succeeds, Teams, TellsTorch
from tests.envs.traces import random_actions, record, same
from wavedash.envs.errors import EnvError
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.pool import WorkerPool

ZEROS = torch.zeros(6, dtype=torch.int64)


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "groups"), [(1, 1), (2, 2), (3, 1), (3, 2)])
def test_trajectories_and_states_equal_those_of_one_process(pool, workers, groups):
    make = partial(gymnasium.make, "CartPole-v1")
    here, there = LocalVecEnv(make, 6), pool(make, 6, workers, groups)
    assert torch.equal(here.reset(seed=5), there.reset(seed=5))
    actions = random_actions(here, 120, 1)
    assert same(record(here, actions[:40]), record(there, actions[:40]))
    state = here.save_state()
    assert all(torch.equal(x, there.save_state()[key]) for key, x in state.items())
    # Each goes on from the other's state, after having played something else.
    record(here, actions[60:90])
    record(there, actions[70:100])
    assert torch.equal(there.load_state(state), here.load_state(state))
    assert same(record(here, actions[40:]), record(there, actions[40:]))
    assert there.health == {"dropped_episodes": 0, "worker_restarts": 0}


@pytest.mark.slow
@pytest.mark.parametrize("make", [DictObs, Teams, Succeeds])
def test_other_environments_equal_those_of_one_process(pool, make):
    here, there = LocalVecEnv(make, 4), pool(make, 4, 2)
    here.reset(seed=0), there.reset(seed=0)
    actions = random_actions(here, 30, 0)
    assert same(record(here, actions), record(there, actions))
    assert here.step(actions[0]).metrics.keys() == there.step(actions[0]).metrics.keys()


def test_shards_step_on_their_own(pool):
    """Shard 0 takes ten steps while shard 1 takes one; each equals the rows of an undivided run."""
    here, there = LocalVecEnv(Counter, 6), pool(Counter, 6, 3, groups=2)
    assert there.groups == (slice(0, 2), slice(2, 6))
    here.reset(seed=2), there.reset(seed=2)
    expected = record(here, [ZEROS] * 10)
    there.send(1, ZEROS[2:])
    for t in range(10):
        there.send(0, ZEROS[:2])
        answers = dict([there.recv() for _ in range(2 if t == 0 else 1)])
        assert torch.equal(answers[0].obs, expected[t]["obs"][:2])
        assert torch.equal(answers[0].final_obs, expected[t]["final"][:2])
        if t == 0:
            assert torch.equal(answers[1].obs, expected[0]["obs"][2:])
            assert torch.equal(answers[1].reward, expected[0]["reward"][2:])


@pytest.mark.slow
def test_the_faster_shard_is_received_first(pool, tmp_path):
    there = pool(partial(Fault, "sleeps", at=1, times=1, folder=str(tmp_path)), 2, 2, groups=2)
    there.reset(seed=0)
    there.send(0, ZEROS[:1])
    while not list(tmp_path.iterdir()):  # wait until shard 0 sleeps
        pass
    there.send(1, ZEROS[:1])
    assert there.recv()[0] == 1


def test_observations_are_views_of_shared_memory(pool):
    there = pool(Counter, 6, 2, groups=2)
    obs = there.reset(seed=0)
    there.send(1, ZEROS[3:])
    assert there.recv()[1].obs.data_ptr() == obs[3:].data_ptr()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_steps_are_copies_that_the_next_step_leaves_alone(pool):
    here, there = LocalVecEnv(DictObs, 6), pool(DictObs, 6, 2, device="cuda")
    local = LocalVecEnv(DictObs, 6, device="cuda")
    for env in (here, there, local):
        env.reset(seed=0)
    expected = record(here, [ZEROS] * 30)
    for env in (there, local):
        steps = [env.step(ZEROS.cuda()) for _ in range(30)]
        for step, want in zip(steps, expected, strict=True):
            assert step.obs["flat"].device.type == step.reward.device.type == "cuda"
            assert torch.equal(step.obs["flat"].cpu(), want["obs.flat"])
            assert torch.equal(step.final_obs["flat"].cpu(), want["final.flat"])
            assert torch.equal(step.reward.cpu(), want["reward"])
            assert (step.final_obs is step.obs) == (not (step.terminated | step.truncated).any())


def test_workers_do_not_import_torch_and_use_one_thread(pool):
    assert pool(TellsTorch, 2, 2).reset(seed=0).tolist() == [[0.0, 1.0, 0.0]] * 2


def test_a_factory_that_cannot_be_sent_is_refused_with_the_fix():
    with pytest.raises(EnvError, match="top level of a module"):
        WorkerPool(lambda: Counter(), 2, 1)


def test_more_workers_than_environments_are_refused():
    with pytest.raises(EnvError, match="every worker an environment"):
        WorkerPool(Counter, 2, 3)


def test_send_and_recv_out_of_turn_are_refused(pool):
    there = pool(Counter, 6, 2, groups=2)
    there.reset(seed=0)
    with pytest.raises(EnvError, match=r"recv\(\) without send"):
        there.recv()
    there.send(0, ZEROS[:3])
    with pytest.raises(EnvError, match="still stepping"):
        there.send(0, ZEROS[:3])
    with pytest.raises(EnvError, match="in the middle of a step"):
        there.save_state()


def test_close_twice_leaves_no_process(pool):
    there = pool(Counter, 4, 2)
    there.close()
    there.close()
    assert not [p for p in multiprocessing.active_children() if "worker" in p.name]
