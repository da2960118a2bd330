"""LayerNorm in the hidden layers, against the formula in float64, through the whole update."""
from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.oracle import Textbook
from tests.policy.test_compiled import needs_compiler
from tests.policy.test_explicit import assert_same
from tests.ppo.combinations import CLOSE, Combination, Watched, differences, learner_of, saved_and_loaded
from tests.ppo.learners import trained_policy
from tests.ppo.test_update import check_update
from wavedash.policy.compiled import Compiled
from wavedash.policy.mlp import MLP
from wavedash.runs import compatible

NORM: dict[str, Any] = {"layer_norm": True}


@pytest.mark.parametrize(("kind", "masked", "policy"), [
    ("discrete", True, {"hidden": [7, 5]}), ("gaussian", False, {"shared": True, "activation": "silu"}),
    ("gaussian", False, {"std": "state", "critic_hidden": [8, 8], "activation": "relu"}),
], ids=["discrete", "shared", "through autograd"])
def test_an_update_with_layer_norm_is_the_textbooks(kind, masked, policy):
    check_update(kind, masked, 0.3, policy={**policy, **NORM}, minibatch_size=25)


@pytest.mark.parametrize("mistake", ["none at all", "after the activation", "no gain"])
def test_a_layer_norm_elsewhere_would_be_seen(mistake, monkeypatch):
    norm = Textbook._norm
    if mistake == "none at all":
        monkeypatch.setattr(Textbook, "_norm", lambda self, name, x: x)
    elif mistake == "no gain":
        monkeypatch.setattr(Textbook, "_norm", lambda self, name, x: norm(self, name, x) / self.weights[f"{name}.weight"])
    else:
        def after(self: Textbook, name: str, x: torch.Tensor) -> torch.Tensor:
            return norm(self, f"{name}.norms.0", self.activation(self._layer(f"{name}.layers.0", x)))
        monkeypatch.setattr(Textbook, "_body", after)
    with pytest.raises(AssertionError):
        check_update("discrete", False, 0.3, policy=NORM)


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "silu", "gelu"])
@pytest.mark.parametrize("hidden", [[7], [7, 5, 6]])
def test_gradients_by_hand_equal_autograds(hidden, activation):
    for shared in (False, True):
        assert_same(trained_policy("discrete", True, hidden=hidden, shared=shared, activation=activation, **NORM), "discrete",
                    True)


def test_without_hidden_layers_it_changes_nothing():
    assert_same(trained_policy("discrete", hidden=[], **NORM), "discrete", False)


def test_layers_begin_as_they_do_without_it_and_the_norms_change_nothing_but_scale():
    made = []
    for layer_norm in (False, True):
        torch.manual_seed(0)
        made.append(MLP(6, [8, 8], "tanh", layer_norm))
    plain, normed = (dict(mlp.named_parameters()) for mlp in made)
    assert all(torch.equal(x, normed[name]) for name, x in plain.items())
    new = {name: x for name, x in normed.items() if name not in plain}
    assert sorted(new) == [f"norms.{k}.{part}" for k in (0, 1) for part in ("bias", "weight")]
    assert all(bool((x == (1.0 if name.endswith("weight") else 0.0)).all()) for name, x in new.items())


def test_checkpoints_from_before_the_option_fit_a_policy_without_it_only():
    plain, normed = (learner_of(Combination("none", "discrete", False, False, "fp32"), policy={"layer_norm": option})
                     for option in (False, True))
    then = plain.fingerprint()
    del then["policy"]["layer_norm"]
    assert compatible.differences(then, plain.fingerprint()) == []
    assert compatible.differences(then, normed.fingerprint()) == ["policy.layer_norm: saved False, now True"]


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.slow),
                                       pytest.param("fp16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("memory", ["none", "gru"])
def test_the_ratio_is_one_and_a_resume_is_exact(memory, precision, tmp_path):
    combo = Combination(memory, "discrete", True, False, precision)
    run = Watched(learner_of(combo, policy=NORM))
    run.learner.iterate()
    second = learner_of(combo, started=False, policy=NORM)
    second.load_state(*saved_and_loaded(run.learner, tmp_path))
    assert run.learner.iterate().metrics == second.iterate().metrics
    assert differences(run.learner, second) == set()
    assert max(x.ratio for x in run.before) < CLOSE < 0.01 * min(x.ratio for x in run.after)


@pytest.mark.slow
@needs_compiler
def test_a_compiled_policy_with_layer_norm_says_the_same():
    combo = Combination("none", "discrete", True, False, "fp32")
    run = Watched(learner_of(combo, policy=NORM, ppo={"minibatch_size": 10**6}, compile=True))
    run.learner.iterate()
    run.learner.iterate()
    compiled = run.learner.policy._evaluate_outputs
    assert isinstance(compiled, Compiled) and compiled.compiled is not None
    assert max(x.ratio for x in run.before) < CLOSE
