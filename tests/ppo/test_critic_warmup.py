"""`ppo.critic_warmup`: in the first iterations only the critic learns, and PPO begins after them."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from tests.ppo.learners import identity_learner, run_config
from wavedash.ppo.learner import Learner
from wavedash.ppo.update import GRAD_NORM

SETTINGS = {"rollout_steps": 8, "epochs": 2, "minibatch_size": 32, "learning_rate": 3e-3, "weight_decay": 0.1}
STEPS_AN_ITERATION = 4  # 2 epochs of 64 samples in minibatches of 32
WARMUP = 2


def learner_with(kind: str, warmup: int = WARMUP, run: dict[str, Any] | None = None, **ppo: Any) -> Learner:
    return identity_learner(kind, {**SETTINGS, "critic_warmup": warmup, **ppo}, **(run or {}))


def weights(learner: Learner, part: str) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in learner.policy.state_dict().items() if name.startswith(part)}


def equal(a: dict[str, Tensor], b: dict[str, Tensor]) -> list[bool]:
    return [torch.equal(x, b[name]) for name, x in a.items()]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("kind", ["discrete", "gaussian"])
def test_the_actor_stays_bit_for_bit_while_the_critic_learns(kind: str, precision: str) -> None:
    """Weight decay would move the actor if its gradients were zero and it was stepped all the same."""
    learner = learner_with(kind, run={"precision": precision})
    actor, critic = weights(learner, "actor"), weights(learner, "critic")
    for _ in range(WARMUP):
        learner.iterate()
    assert all(equal(actor, weights(learner, "actor")))
    assert not any(equal(critic, weights(learner, "critic")))
    optimizer = learner.updater.optimizer
    assert [optimizer.steps[name].item() for name in ("actor", "critic")] == [0.0, WARMUP * STEPS_AN_ITERATION]
    own = optimizer.parts["actor"]
    assert not own[2][0].any() and not own[3][0].any(), "its moments are fresh"
    learner.iterate()
    assert not any(equal(actor, weights(learner, "actor"))), "PPO begins"
    assert optimizer.steps["actor"].item() == STEPS_AN_ITERATION


def test_without_warmup_the_actor_moves_at_once() -> None:
    """This is the control of the test above."""
    learner = learner_with("discrete", warmup=0)
    actor = weights(learner, "actor")
    learner.iterate()
    assert not any(equal(actor, weights(learner, "actor")))


def test_the_norm_that_is_clipped_is_that_of_the_critic_alone() -> None:
    """A huge or broken gradient of the actor must not keep the critic from learning."""
    learner = learner_with("discrete", warmup=1)
    optimizer = learner.updater.optimizer
    learner.updater.freeze_actor(True)
    gradient, critic = optimizer.gradient, optimizer.parts["critic"][1][0]
    gradient.fill_(torch.nan)
    critic.fill_(1.0)
    before = critic.numel() ** 0.5  # the norm of so many ones
    norm, applied = optimizer.step()
    assert norm.item() == pytest.approx(before, rel=1e-6) and applied
    assert learner.policy.state_dict()["actor.head.logits.weight"].isfinite().all()


def test_gradients_of_the_update_are_those_of_the_critic(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, norms = learner_with("discrete", warmup=1), []
    step = learner.updater.optimizer.step

    def watched(skip: Tensor | None = None) -> tuple[Tensor, Tensor]:
        norms.append(torch.linalg.vector_norm(learner.updater.optimizer.parts["critic"][1][0]).item())
        return step(skip)

    monkeypatch.setattr(learner.updater.optimizer, "step", watched)
    first, second = learner.iterate().metrics, learner.iterate().metrics
    mean = [sum(norms[k * STEPS_AN_ITERATION : (k + 1) * STEPS_AN_ITERATION]) / STEPS_AN_ITERATION for k in (0, 1)]
    assert first[GRAD_NORM] == pytest.approx(mean[0], rel=1e-5)
    assert second[GRAD_NORM] > mean[1] * (1 + 1e-4), "the control: later the actor's gradient is in it"


def test_a_learning_rate_that_follows_kl_does_not_rise_while_nothing_moves() -> None:
    learner = learner_with("discrete", schedule={"kind": "kl", "target_kl": 0.01})
    for _ in range(WARMUP):
        assert learner.iterate().metrics["policy/kl"] == pytest.approx(0.0, abs=1e-6)
    assert learner.schedule.multiplier == 1.0
    without = learner_with("discrete", warmup=0, learning_rate=1e-9, schedule={"kind": "kl", "target_kl": 0.01})
    without.iterate()
    assert without.schedule.multiplier > 1.0, "the control: an update that moves nothing raises it"


def test_one_trunk_for_both_cannot_be_warmed_up() -> None:
    with pytest.raises(ValidationError, match=r"ppo.critic_warmup=3 needs policy.shared=false"):
        run_config({"critic_warmup": 3}, {"shared": True})
