"""The pool: how snapshots are thinned, what stays on disk, and what happens when the disk is full or files are damaged."""
from __future__ import annotations

import copy
import random
import shutil
import time
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.runs.stand_in import forked
from wavedash.assembly import make_policy
from wavedash.config_file import load_config
from wavedash.envs.spaces import space_to_json
from wavedash.errors import UserError
from wavedash.league.players import find_player
from wavedash.league.pool import Pool, thinned
from wavedash.loading import load_run
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rocket.kind import RocketKind
from wavedash.runs.checkpoint import CheckpointError
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.trust import UntrustedError, run_config

resource = pytest.importorskip("resource")

SMALL = load_config("rocket-1v1", ["policy.hidden=[8]"])


@pytest.fixture(scope="module")
def policy() -> ActorCritic:
    return make_policy(RocketKind().spaces(SMALL.env, torch.device("cpu")), SMALL)


def state_of(policy: ActorCritic, steps: int) -> dict[str, object]:
    return {"steps": steps, "fingerprint": {
        "observation_space": space_to_json(policy.observation_space), "action_space": space_to_json(policy.action_space),
        "policy": policy.config.model_dump(mode="json"), "normalize_obs": None}}


def add(pool: Pool, policy: ActorCritic, steps: int) -> str:
    return pool.add(f"step-{steps:012d}", SMALL, policy.state_dict(), state_of(policy, steps))


# --- thinning --------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=80), st.integers(2, 12))
def test_a_thinned_pool_is_bounded_and_spans_the_whole_history(gaps, most):
    """Snapshots come one by one, and the pool is thinned each time, as in a run."""
    history, pool = [0], [0]
    for gap in gaps:
        history.append(history[-1] + gap)
        pool = [[*pool, history[-1]][i] for i in thinned([*pool, history[-1]], most)]
        assert len(pool) == min(most, len(history))
        assert pool[0] == 0 and pool[-1] == history[-1]
        assert pool == sorted(set(pool)) and set(pool) <= set(history)
        longest = max(later - earlier for earlier, later in pairwise(pool))
        assert longest <= max(max(gaps), 2 * history[-1] / (most - 1))


def test_keeping_the_newest_alone_would_not_span_the_history():
    """The control of the property above: it does not hold for the usual rule, a window of the newest snapshots."""
    window = [0, *range(92, 101)]
    longest = max(later - earlier for earlier, later in pairwise(window))
    assert longest > max(1, 2 * 100 / (len(window) - 1))


# --- on disk ---------------------------------------------------------------------------------------------------------


def test_a_member_can_be_loaded_and_played_with(tmp_path, policy):
    pool = Pool(tmp_path / "league")
    name = add(pool, policy, 1000)
    run = load_run(tmp_path / "league" / name)
    assert run.source.step == 1000 and run.config.opponents is None
    for key, x in policy.state_dict().items():
        assert torch.equal(run.policy.policy.state_dict()[key], x)
        assert torch.equal(pool.read(name)[key], x)
    assert "step-000000001000" in str(find_player(str(tmp_path / "league" / name)))


def test_a_snapshot_of_a_task_with_code_of_this_user_needs_no_trust(tmp_path, policy, monkeypatch):
    """Its configuration names code of the task, which is signed; opponents of its run are not part of it."""
    own = load_config("rocket-1v1", ["env.rocket.rewards={'mine:Reward': 1}", "opponents.members=['mine:Bot']"])
    name = Pool(tmp_path).add("step-1", own, policy.state_dict(), state_of(policy, 1))
    assert run_config(tmp_path / name / "config.yaml").env == own.env
    monkeypatch.setenv("WAVEDASH_HOME", str(tmp_path / "somebody else"))
    with pytest.raises(UntrustedError, match="mine:Reward") as raised:
        run_config(tmp_path / name / "config.yaml")
    assert "mine:Bot" not in str(raised.value)


def test_a_name_that_is_taken_is_not_written_over(tmp_path, policy):
    pool, other = Pool(tmp_path), copy.deepcopy(policy)
    with torch.no_grad():
        next(other.parameters()).add_(1.0)
    first, second = add(pool, policy, 5), add(pool, other, 5)
    assert (first, second) == ("step-000000000005", "step-000000000005.2")
    assert (add(pool, policy, 5), add(pool, other, 5)) == (first, second), "what is there already is not written again"
    assert pool.names() == [first, second]


def test_only_what_nobody_names_is_removed(tmp_path, policy):
    pool = Pool(tmp_path)
    names = [add(pool, policy, steps) for steps in (1, 2, 3)]
    (tmp_path / "results.csv").write_text("step,member,won,drawn,lost\n")
    (tmp_path / ".tmp-step-000000000004").mkdir()
    pool.collect(names[::2])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.csv", names[0], names[2]]


def test_missing_and_damaged_members_are_named_with_the_next_step(tmp_path, policy):
    pool = Pool(tmp_path)
    names = [add(pool, policy, steps) for steps in (1, 2, 3, 4)]
    known = {name: pool.sha256(name) for name in names}
    pool.check(known)
    shutil.rmtree(tmp_path / names[0])
    weights = tmp_path / names[1] / "policy.safetensors"
    torn = bytearray(weights.read_bytes())
    torn[-1] ^= 1  # safetensors itself loads a flipped bit without an error
    weights.write_bytes(torn)
    (tmp_path / names[2] / "policy.safetensors").write_bytes(torn[: len(torn) // 2])
    with pytest.raises(UserError, match="Copy it again") as raised:
        pool.check(known)
    assert f"{names[0]} is missing" in str(raised.value) and names[3] not in str(raised.value)
    assert all(f"{name} is damaged" in str(raised.value) for name in names[1:3])
    with pytest.raises(CheckpointError):
        pool.read(names[2])


def test_on_a_full_disk_nothing_is_added_and_nothing_is_lost(tmp_path, policy):
    pool = Pool(tmp_path)
    first = add(pool, policy, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(CheckpointError, match="Make room"):
            add(pool, policy, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == [first]
    pool.check({first: pool.sha256(first)})
    assert add(pool, policy, 2) == "step-000000000002"


def test_kills_leave_whole_members_or_none(tmp_path, policy):
    """A process adds members and removes them again, and is killed at random instants."""
    clock, stray = random.Random(0), 0

    def body(tell):
        pool = Pool(tmp_path)
        for steps in range(10**6):
            tell(add(pool, policy, steps % 7))
            pool.collect([])

    for _ in range(20):
        with forked(body) as child:
            child.line()
            time.sleep(clock.uniform(0, 0.02))
            child.kill()
            assert child.wait() == -9
        stray += len(list(tmp_path.glob(".tmp-*")))
        for path in tmp_path.glob("step-*"):
            assert PolicyFolder.is_one(path)
            assert {name: x.shape for name, x in Pool(tmp_path).read(path.name).items()} \
                == {name: x.shape for name, x in policy.state_dict().items()}
    assert stray, "some kills must have hit a write"
    Pool(tmp_path).collect([])
    assert list(tmp_path.iterdir()) == []
