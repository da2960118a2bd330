"""A rollout evaluated again with unchanged weights has the log-probabilities it was collected with: the ratio is one."""
from __future__ import annotations

import pytest
import torch

from tests.ppo.learners import ACTIONS, FEATURES, identity_learner, learner_over, run_config, without_updates
from tests.roundings import FUNCTION, assert_within, gamma
from tests.toy_vec_envs import TapeEnv
from wavedash.envs.obs import map_obs
from wavedash.ppo.learner import Learner
from wavedash.ppo.rollout import Rollout

T = 16
CLOSE = 8 * gamma(FEATURES + 16 + 5 * FUNCTION)
"""The bound on the ratio: a batch of another size sums the inputs of each layer in another order, and numbers as large as 8 add
up to a log-probability."""


def furthest_ratio(learner: Learner, rollout: Rollout) -> float:
    with torch.no_grad():
        new = learner.policy.evaluate(map_obs(lambda x: x.flatten(0, 1), rollout.obs), rollout.action.flatten(0, 1))
    ratio = (new.log_prob - rollout.log_prob.flatten()).exp()
    assert_within(new.value, rollout.value.flatten(), CLOSE)
    return float((ratio - 1).abs().max())


@pytest.mark.parametrize("policy", [
    {"distribution": "tanh"}, {"distribution": "beta"}, {"distribution": "confined"}, {"std": "gsde"},
    {"std": "gsde", "gsde": {"expln": True, "sample_every": 5}}, {"std": "gsde", "distribution": "tanh"},
], ids=str)
def test_the_ratio_is_one_for_every_continuous_distribution(policy):
    learner = without_updates(identity_learner("gaussian", {"rollout_steps": T}, policy=policy))
    learner.iterate()
    assert furthest_ratio(learner, learner.rollout) < 10 * CLOSE


NORMALISERS = [{}, {"normalize_obs": True}, {"normalize_reward": True}, {"normalize_obs": True, "normalize_reward": True}]


@pytest.mark.parametrize("normalisers", NORMALISERS, ids=str)
@pytest.mark.parametrize(("kind", "masked"), [*((kind, False) for kind in ACTIONS), ("discrete", True), ("multi-binary", True)])
def test_the_ratio_is_one_for_the_newest_rollout_and_for_older_ones(kind, masked, normalisers):
    learner = without_updates(identity_learner(kind, {"rollout_steps": T, "buffer_rollouts": 3, **normalisers}, masked=masked))
    scales = [part.scale.clone() for part in learner.policy.normalizer.parts.values()] if learner.policy.normalizer else []
    for _ in range(4):
        learner.iterate()
        for slot in range(learner.buffer.filled):
            assert furthest_ratio(learner, learner.buffer.slot(slot)) < CLOSE
    moved = [part.scale for part in learner.policy.normalizer.parts.values()] if scales else []
    assert all((a != b).any() for a, b in zip(scales, moved, strict=True)), "a normaliser that never changes proves nothing"


@pytest.mark.parametrize("kind", ACTIONS)
def test_the_first_minibatch_of_every_update_sees_ratio_one(kind):
    ppo = {"rollout_steps": T, "epochs": 2, "minibatch_size": 64, "normalize_obs": True, "learning_rate": 0.01}
    learner = identity_learner(kind, ppo)
    first_kl, last_kl, update = [], [], learner.updater.update

    def watched(buffer):
        table = update(buffer)
        first_kl.append(float(table["policy/kl"][0].abs()))
        last_kl.append(float(table["policy/kl"][-1]))
        return table

    learner.updater.update = watched
    for _ in range(3):
        learner.iterate()
    assert max(first_kl) < gamma(16) and min(last_kl) > 1e-4


@pytest.mark.parametrize("memory", ["gru", "lstm"])
def test_the_first_minibatch_sees_ratio_one_with_memory_too(memory):
    """Hidden states are rebuilt from the start of each sequence, across ends of episodes and inactive rows."""
    ppo = {"rollout_steps": T, "epochs": 1, "minibatch_size": 10**6, "normalize_obs": True, "learning_rate": 0.01}
    policy = {"memory": {"kind": memory, "size": 8, "sequence": 4}}
    learner = identity_learner("discrete", ppo, inactive=0.2, policy=policy)
    with torch.no_grad():
        for p in learner.policy.parameters():
            p.add_(0.3 * torch.randn(p.shape))
    kls = [learner.iterate().metrics["policy/kl"] for _ in range(4)]
    assert max(kls) < gamma(16), "ratio - 1 - log ratio of ratios of 1, each rounded a few times"
    assert learner.rollout.done.any() and not learner.rollout.active.all()
    update = learner.updater.update

    def forgetful(buffer):
        for x in learner.rollout.memory.values():
            x.zero_()
        return update(buffer)

    learner.updater.update = forgetful  # the control: sequences that start from nothing
    assert learner.iterate().metrics["policy/kl"] > 1e-4


def drifting_env() -> TapeEnv:
    torch.manual_seed(0)
    obs = torch.randn(4 * T, 4, 3) + torch.linspace(0, 10, 4 * T).view(-1, 1, 1)
    return TapeEnv(obs, torch.randn(4 * T, 4))


@pytest.mark.parametrize("every_step", [False, True])
def test_a_normaliser_that_changes_with_every_step_would_be_seen(every_step):
    """The control is built here: statistics change at each step, and observations are normalised again for the update."""
    env = drifting_env()
    learner = without_updates(learner_over(env, run_config({"rollout_steps": T, "normalize_obs": True})))
    with torch.no_grad():
        learner.policy.head.logits.weight.mul_(100)  # the policy then depends on what it observes
    normalizer = learner.policy.normalizer
    if every_step:
        accumulate = normalizer.accumulate

        def accumulate_and_commit(*args) -> None:
            accumulate(*args)
            normalizer.commit()

        normalizer.accumulate = accumulate_and_commit
    collect, found = learner.collector.collect, []

    def watched(out: Rollout) -> torch.Tensor:
        last_value = collect(out)
        out.obs.copy_(normalizer(env.obs[env.played - T : env.played]))
        with torch.no_grad():
            new = learner.policy.evaluate(out.obs.flatten(0, 1), out.action.flatten())
        found.append(float(((new.log_prob - out.log_prob.flatten()).exp() - 1).abs().max()))
        return last_value

    learner.collector.collect = watched
    for _ in range(3):
        learner.iterate()
    assert (max(found) > 0.05) if every_step else (max(found) < CLOSE)
