"""fp16: a gradient that overflows is skipped and halves the loss scale; training goes on, and the scale grows again."""
from __future__ import annotations

import torch

from tests.ppo.combinations import Combination, learner_of
from tests.ppo.learners import without_updates
from wavedash.policy.evaluation import OutputGradients
from wavedash.ppo import loss_scale
from wavedash.ppo.learner import Learner

TOO_HIGH = 2.0**40


def fp16_learner(memory: str = "none", epochs: int = 1) -> Learner:
    """Two gradient steps an epoch."""
    return learner_of(Combination(memory, "discrete", False, False, "fp16"), ppo={"epochs": epochs, "minibatch_size": 16})


def everything(learner: Learner) -> dict[str, torch.Tensor]:
    optimizer = learner.updater.optimizer
    return {"parameters": optimizer.parameters.clone(), **{name: x.clone() for name, x in optimizer.state_dict().items()}}


def test_an_overflow_is_skipped_and_halves_the_scale_until_gradients_fit():
    learner = fp16_learner()
    learner.iterate()
    updater, before = learner.updater, everything(learner)
    updater.scale.value.fill_(TOO_HIGH)
    tables = []
    for halvings in range(2, 60, 2):
        tables.append(updater.update(learner.buffer))
        if tables[-1]["applied"].any():
            break
        assert float(updater.scale.value) == TOO_HIGH / 2**halvings
        assert all(torch.equal(x, before[name]) for name, x in everything(learner).items())
    assert len(tables) > 2 and torch.isfinite(tables[-1].values[-1]).all()
    assert not torch.equal(updater.optimizer.parameters, before["parameters"])


def test_training_goes_on_and_a_scale_tried_too_high_is_not_reported_as_trouble(caplog):
    learner, steps = fp16_learner(epochs=20), 40
    learner.updater.scale.value.fill_(TOO_HIGH)
    first, second = (learner.iterate().metrics for _ in range(2))
    assert first["optim/scale_overflows"] > 5 > second["optim/scale_overflows"]
    assert all(f["optim/gradient_steps"] == steps - f["optim/scale_overflows"] > 0 for f in (first, second))
    assert first["optim/skipped"] == second["optim/skipped"] == 0 and caplog.text == ""
    assert learner.updater.optimizer.parameters.isfinite().all()


def test_the_scale_grows_again_after_enough_finite_gradients(monkeypatch):
    monkeypatch.setattr(loss_scale, "PATIENCE", 3)
    learner = fp16_learner("gru")
    learner.updater.scale.value.fill_(64.0)
    scales = []
    for _ in range(5):
        learner.iterate()
        scales.append((float(learner.updater.scale.value), int(learner.updater.scale.finite_steps)))
    assert scales == [(64.0, 2), (128.0, 1), (256.0, 0), (256.0, 2), (512.0, 1)]


def test_the_size_of_the_scale_changes_no_step():
    """Gradients are scaled up and down again by powers of two: the weights are the same, up to what fp16 drops."""
    runs = []
    for scale in (2.0**6, 2.0**13):
        learner = fp16_learner("lstm")
        learner.updater.scale.value.fill_(scale)
        learner.iterate()
        runs.append(learner.updater.optimizer.parameters.clone())
    torch.testing.assert_close(runs[0], runs[1], rtol=0, atol=2e-3)


def test_gradients_too_small_for_fp16_arrive_because_they_are_raised():
    """The loss is 1e-7: unscaled, fp16 rounds most of its gradient to zero. Scaled, it is that of full precision."""
    @torch.no_grad()
    def gradient(precision: str, scale: float | None) -> torch.Tensor:
        learner = learner_of(Combination("none", "discrete", False, False, precision), policy={"hidden": [16, 16]})
        without_updates(learner).iterate()
        batch = learner.updater.experience_of(learner.buffer).all
        new = learner.policy.evaluate(batch.obs, batch.action)
        gradients = OutputGradients(*(torch.full_like(x, 1e-7) for x in new[:3]))
        if scale is not None:
            learner.updater.scale.value.fill_(scale)
            gradients = gradients.scaled(learner.updater.scale.value)
        learner.updater.optimizer.zero_grad()
        new.backward(gradients)
        return learner.updater.optimizer.gradient / (scale or 1.0)

    exact = gradient("fp32", None)
    raised, lost = ((gradient("fp16", scale) - exact).norm() / exact.norm() for scale in (2.0**13, 1.0))
    assert raised < 0.01 < 0.1 < lost
