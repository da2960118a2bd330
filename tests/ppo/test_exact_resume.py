"""2N iterations equal N, a save, a load into fresh objects and N more: weights, moments and metrics, bit for bit."""
from __future__ import annotations

import json
import random
from typing import Any

import pytest
import torch

from tests.ppo.learners import identity_learner, learner_over
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.ppo.learner import Learner

ITERATIONS = 6
NORMALISED = {"normalize_obs": True, "normalize_reward": True}
RECIPES: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete": ("discrete", {}),
    "discrete, normalised": ("discrete", NORMALISED),
    "gaussian, normalised, buffer": ("gaussian", {**NORMALISED, "buffer_rollouts": 3}),
    "gaussian, clip and entropy schedules": ("gaussian", {
        "entropy_coef": 0.02, "entropy_schedule": {"kind": "cosine"}, "clip_schedule": {"kind": "linear"}, **NORMALISED}),
    "gaussian, kl schedule": ("gaussian", {"schedule": {"kind": "kl", "target_kl": 1e-3}}),
    "multi-discrete, buffer, linear": ("multi-discrete", {"buffer_rollouts": 4, "schedule": {"kind": "linear"}}),
    "discrete, the critic first": ("discrete", {"critic_warmup": 3, "weight_decay": 0.01, **NORMALISED}),
    "multi-binary, two rates": ("multi-binary", {"critic_learning_rate": 1e-3, "weight_decay": 0.01, "target_kl": 0.02}),
}


def fresh(recipe: str, started: bool) -> Learner:
    kind, ppo = RECIPES[recipe]
    settings = {"rollout_steps": 8, "epochs": 2, "minibatch_size": 30, "learning_rate": 3e-3, **ppo}
    masked = kind == "multi-discrete"
    return identity_learner(kind, settings, inactive=0.2, masked=masked, started=started, total_steps=500, seed=7)


def saved(learner: Learner) -> tuple[dict[str, dict[str, torch.Tensor]], dict[str, Any]]:
    """The state as a checkpoint holds it: tensors are copied, the rest goes through JSON."""
    tensors, plain = learner.state()
    copied = {name: {key: x.clone() for key, x in group.items()} for name, group in tensors.items()}
    return copied, json.loads(json.dumps(plain))


def everything(learner: Learner) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    tensors, plain = saved(learner)
    return {f"{name}/{key}": x for name, group in tensors.items() for key, x in group.items()}, plain


def differences(a: Learner, b: Learner) -> set[str]:
    (a_tensors, a_plain), (b_tensors, b_plain) = everything(a), everything(b)
    assert a_tensors.keys() == b_tensors.keys()
    unequal = {name for name, x in a_tensors.items() if not torch.equal(x, b_tensors[name])}
    same_text = json.dumps(a_plain, sort_keys=True) == json.dumps(b_plain, sort_keys=True)
    return unequal | (set() if same_text else {"plain"})


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_resumed_run_is_the_run_that_never_stopped(recipe):
    whole = fresh(recipe, started=True)
    metrics = [whole.iterate().metrics for _ in range(ITERATIONS)]
    for stop in [0, *random.Random(0).sample(range(1, ITERATIONS), 2)]:
        first = fresh(recipe, started=True)
        for _ in range(stop):
            first.iterate()
        state = saved(first)
        for _ in range(2):
            first.iterate()  # what the old process still does must not reach the saved state
        second = fresh(recipe, started=False)
        second.load_state(*state)
        second.start()
        resumed = [second.iterate().metrics for _ in range(ITERATIONS - stop)]
        assert resumed == metrics[stop:]
        assert differences(whole, second) == set()


@pytest.mark.parametrize("lost", ["actions", "minibatches", "moments", "normaliser", "environments", "buffer", "schedule"])
def test_each_part_of_the_state_is_needed(lost):
    recipe = "gaussian, kl schedule" if lost == "schedule" else "gaussian, normalised, buffer"
    whole = fresh(recipe, started=True)
    for _ in range(3):
        whole.iterate()
    tensors, plain = saved(whole)
    blank, blank_plain = saved(fresh(recipe, started=True))
    if lost == "actions":
        tensors["learner"]["actions.0"] = blank["learner"]["actions.0"]
    elif lost == "minibatches":
        tensors["optimizer"]["minibatches"] = blank["optimizer"]["minibatches"]
    elif lost == "moments":
        tensors["optimizer"] = {**blank["optimizer"], "minibatches": tensors["optimizer"]["minibatches"]}
    elif lost == "normaliser":
        tensors["policy"] |= {name: x for name, x in blank["policy"].items() if name.startswith("normalizer")}
    elif lost == "environments":
        tensors["env"] = blank["env"]
    elif lost == "buffer":
        del tensors["buffer"]
    else:
        assert plain["schedule"] != blank_plain["schedule"]
        plain["schedule"] = blank_plain["schedule"]
    second = fresh(recipe, started=False)
    second.load_state(tensors, plain)
    second.start()
    whole.iterate()
    second.iterate()
    assert "policy/actor.head.mean.weight" in differences(whole, second)


@pytest.mark.parametrize("preset", ["cartpole", "pendulum"])
def test_gymnasium_environments_resume_in_the_middle_of_their_episodes(preset):
    config = load_config(preset, ["ppo.rollout_steps=20", "env.count=3", "ppo.normalize_obs=true", "ppo.epochs=2"])

    def begin(started: bool) -> Learner:
        return learner_over(make_env(config.env), config, started)

    whole, first, second = begin(True), begin(True), begin(False)
    metrics = [whole.iterate().metrics for _ in range(6)]
    for _ in range(3):
        first.iterate()
    second.load_state(*saved(first))
    second.start()
    assert [second.iterate().metrics for _ in range(3)] == metrics[3:]
    assert differences(whole, second) == set()


def test_an_environment_that_cannot_be_restored_goes_on_from_fresh_episodes(caplog):
    whole = fresh("discrete, normalised", started=True)
    whole.iterate()
    tensors, plain = saved(whole)
    del tensors["env"]
    second = fresh("discrete, normalised", started=False)
    second.load_state(tensors, plain)
    second.start()
    report = second.iterate()
    assert report.iteration == 2 and report.steps > whole.steps and "fresh ones" in caplog.text
    assert len(second.collector.shards) == 1


@pytest.mark.parametrize("recipe", ["discrete, normalised", "gaussian, normalised, buffer", "gaussian, kl schedule"])
def test_a_run_of_a_gpu_goes_on_on_a_cpu_with_all_but_its_episodes_and_random_streams(recipe, caplog):
    """The streams of a GPU are 16 bytes each, in the optimiser, the collector and the environments."""
    whole = fresh(recipe, started=True)
    for _ in range(3):
        whole.iterate()
    tensors, plain = saved(whole)
    philox = torch.arange(16, dtype=torch.uint8)
    tensors["optimizer"]["minibatches"] = philox
    streams = [name for name in tensors["learner"] if name.startswith("actions.")]
    assert streams
    for name in streams:
        tensors["learner"][name] = philox
    second = fresh(recipe, started=False)
    second.load_state(tensors, plain)
    second.start()
    assert "the checkpoint was saved on a GPU, whose random streams cannot go on on a CPU" in caplog.text
    unlike = differences(whole, second) - {"plain", "optimizer/minibatches"}
    assert {name.split("/")[0] for name in unlike} <= {"learner", "env", "buffer"}
    assert not any("return_moments" in name for name in unlike)
    assert (second.iteration, second.schedule.multiplier) == (whole.iteration, whole.schedule.multiplier)
    assert second.iterate().iteration == 4 and second.steps > whole.steps


def test_loading_into_a_learner_that_has_trained_replaces_all_of_its_state():
    whole, second = fresh("discrete", started=True), fresh("discrete", started=True)
    for _ in range(2):
        whole.iterate()
        second.iterate()
    state = saved(whole)
    second.iterate()
    second.load_state(*state)
    assert whole.iterate().metrics == second.iterate().metrics
