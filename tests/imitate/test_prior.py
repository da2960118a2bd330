"""The term that holds PPO near to a prior: its value and gradient against torch's, how it fades, and PPO without it."""
from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributions as D
from torch import Tensor

from tests.distill.students import GRU, LSTM, ROWS, SMALL, teacher_of
from tests.ppo.combinations import ACTIONS
from tests.ppo.learners import learner_over, run_config
from tests.ppo.test_exact_resume import differences, saved
from tests.roundings import FUNCTION, assert_rounded
from tests.toy_vec_envs import ScrambledEnv
from wavedash.config import PriorConfig
from wavedash.imitate.prior import DIVERGENCE, LABEL, WEIGHT, FadingPrior, Prior, PriorLoss, weight_at
from wavedash.policy.distributions import Beta, Categorical, Gaussian, MultiCategorical, TanhGaussian
from wavedash.policy.divergence import divergence, numbers_of
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport
from wavedash.ppo.ppo_loss import PPOLoss
from wavedash.runs.changes import change
from wavedash.runs.policy_copy import FoundPolicy

ITERATIONS = 6
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete, masked": ("discrete", {"masked": True}),
    "discrete, gru": ("discrete", {"memory": GRU}),
    "multi-discrete, lstm": ("multi-discrete", {"memory": LSTM}),
    "gaussian": ("gaussian", {}),
    "tanh, gru": ("tanh", {"memory": GRU}),
    "beta": ("beta", {}),
    "gsde": ("gsde", {}),
}


def learner_of(name: str, prior: dict[str, Any] | None, started: bool = True, **changes: Any) -> Learner:
    """PPO beside a prior with other weights; without options of a prior it is PPO's alone."""
    action, options = LEARNERS[name]
    memory, masked = options.get("memory"), options.get("masked", False)
    config = run_config({**SMALL, "learning_rate": 1e-3, **changes.pop("ppo", {})},
                        {**ACTIONS[action][1], "memory": memory or {}, "actor_keys": ["joints", "truth"]},
                        prior=prior, init=None if prior is None else "somewhere", seed=4, **changes)
    env = ScrambledEnv(ACTIONS[action][0], rows=ROWS, masked=masked, senses=True)
    if prior is None:
        return learner_over(env, config, started)
    policy = teacher_of(action, memory, masked=masked)
    loss = PriorLoss(Prior(policy), config.ppo)
    found = FoundPolicy("somewhere", Path("somewhere"), 0, policy, {}, None, False)
    learner = learner_over(env, config, started, loss=loss, listeners=[FadingPrior(found, loss)])
    if started:
        learner.listeners.start(learner)
    return learner


def iterate(learner: Learner) -> dict[str, float]:
    """An iteration with what listeners add."""
    reports: list[IterationReport] = []
    report = learner.iterate()
    for listener in learner.listeners:
        report = report.with_metrics(listener.on_iteration(learner, report) or {})
    reports.append(report)
    return dict(report.metrics)


def made(kind: str, generator: torch.Generator, rows: int) -> tuple[Any, list[Tensor]]:
    """A distribution, and the numbers that it is made of."""
    sizes = {"discrete": [5], "multi-discrete": [9]}.get(kind, [3, 3])
    drawn = [torch.randn(rows, size, generator=generator).requires_grad_() for size in sizes]
    if kind == "discrete":
        return Categorical(*drawn), drawn
    if kind == "multi-discrete":
        return MultiCategorical(drawn[0], MultiCategorical.layout([3, 2, 4])), drawn
    if kind == "beta":
        return Beta(*(1 + x.exp() for x in drawn)), drawn
    return (Gaussian(*drawn) if kind == "gaussian" else TanhGaussian(drawn[0], drawn[1], TanhGaussian.quadrature())), drawn


def by_torch(kind: str, numbers: list[Tensor]) -> Any:
    """The same by torch.distributions, of float64 numbers."""
    if kind == "discrete":
        return [D.Categorical(logits=numbers[0])]
    if kind == "multi-discrete":
        return [D.Categorical(logits=part) for part in numbers[0].split([3, 2, 4], -1)]
    if kind == "beta":
        return [D.Independent(D.Beta(*(1 + x.exp() for x in numbers)), 1)]
    return [D.Independent(D.Normal(numbers[0], numbers[1].exp()), 1)]


@pytest.mark.parametrize("kind", ["discrete", "multi-discrete", "gaussian", "tanh", "beta"])
def test_the_divergence_and_its_gradient_are_torchs(kind: str) -> None:
    generator = torch.Generator().manual_seed(1)
    (prior, before), (now, drawn) = (made(kind, generator, 40) for _ in range(2))
    found = divergence(numbers_of(prior).detach(), now)
    exact = [x.detach().double().requires_grad_() for x in drawn]
    pairs = zip(by_torch(kind, [x.detach().double() for x in before]), by_torch(kind, exact), strict=True)
    expected = sum(D.kl_divergence(a, b) for a, b in pairs)
    assert (found > 0).all() and isinstance(expected, Tensor)
    roundings, size = 40 + 12 * FUNCTION, 40.0  # lgamma and digamma of numbers up to 20, which nearly cancel
    assert_rounded(found.detach(), expected.detach(), roundings, expected.detach() + size)
    for p, q in zip(torch.autograd.grad(found.sum(), drawn), torch.autograd.grad(expected.sum(), exact), strict=True):
        assert_rounded(p, q, roundings, q.abs() + size)
    itself = divergence(numbers_of(now).detach(), now).detach()
    assert_rounded(itself, torch.zeros(40), roundings, torch.full((40,), size), what="of itself")
    nothing = divergence(torch.zeros_like(numbers_of(prior)), now)
    assert nothing.isfinite().all(), "labels of inactive steps are zeros"


@pytest.mark.parametrize("name", LEARNERS)
def test_the_gradient_is_ppos_and_that_of_the_term(name: str) -> None:
    whole = {"epochs": 1, "minibatch_size": 1000, "max_grad_norm": None}
    learner = learner_of(name, {"coef": 0.7, "fade": 10**6}, ppo=whole)
    rollout = learner.buffer.next_slot()
    learner.complete(rollout, learner.collector.collect(rollout))
    policy, length = copy.deepcopy(learner.policy), learner.policy.sequence_length

    def like_it(x: Tensor) -> Tensor:
        return x.flatten(0, 1) if length is None else torch.cat(x.split(length), 1)

    assert isinstance(rollout.obs, dict)
    obs = {key: like_it(x) for key, x in rollout.obs.items()}
    memory = None if length is None else {part: x.flatten(0, 1) for part, x in rollout.memory.items()}
    distribution, _ = policy(obs, memory, None if length is None else like_it(rollout.fresh))
    active = like_it(rollout.active)
    assert not active.all(), "there are steps that do not count"
    term = divergence(like_it(rollout.labels[LABEL]), distribution)[active].mean()
    (0.7 * term).backward()
    table = learner.updater.update(learner.buffer)
    found = learner.updater.optimizer.gradient.clone()
    alone = learner_of(name, None, ppo=whole)
    alone.policy.load_state_dict(policy.state_dict())
    alone.buffer.next_slot()
    for key, x in alone.buffer.all.tensors().items():
        x.copy_(learner.buffer.all.tensors()[key])
    alone.updater.update(alone.buffer)
    roundings = 200 + 40 * FUNCTION
    assert_rounded(table[DIVERGENCE][0], term.detach(), roundings, torch.full((), 16.0))
    assert term.item() > 1e-3
    for (part, p), q, r in zip(learner.policy.named_parameters(), policy.named_parameters(), alone.policy.named_parameters(),
                               strict=True):
        if p.requires_grad:
            extra = torch.zeros_like(p) if q[1].grad is None else q[1].grad
            assert_rounded(p.grad, r[1].grad + extra, roundings, 16 * torch.ones(()), what=part)
    assert found.any()


def test_the_weight_falls_linearly_to_exactly_nothing() -> None:
    options = PriorConfig(coef=0.2, fade=1000)
    assert [weight_at(options, steps) for steps in (0, 250, 500)] == pytest.approx([0.2, 0.15, 0.1])
    assert [weight_at(options, steps) for steps in (1000, 5000)] == [0.0, 0.0]
    options = PriorConfig(coef=0.2, fade=150)
    learner, found, steps = learner_of("discrete, gru", options.model_dump()), [], []
    for _ in range(5):
        found.append(iterate(learner))
        steps.append(learner.steps)
    assert [report[WEIGHT] for report in found] == [weight_at(options, x) for x in steps]
    faded = [report[WEIGHT] == 0.0 for report in found]
    assert faded[-1] and not faded[0]
    # The report after the one that says 0 was learned without the term.
    assert [DIVERGENCE in report for report in found] == [True, *(not over for over in faded[:-1])]


@pytest.mark.parametrize("name", LEARNERS)
def test_without_weight_it_is_ppo_bit_for_bit(name: str) -> None:
    plain, held, near = learner_of(name, None), learner_of(name, {"coef": 0.0}), learner_of(name, {"coef": 0.5, "fade": 10**6})
    for _ in range(3):
        reports = [iterate(learner) for learner in (plain, held, near)]
    assert reports[1].pop(WEIGHT) == 0.0
    assert reports[0] == reports[1]
    weights = [learner.updater.optimizer.parameters for learner in (plain, held, near)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_once_faded_it_goes_on_as_ppo_does() -> None:
    """From the state in which the weight reached 0, PPO alone learns the same, bit for bit."""
    held = learner_of("tanh, gru", {"coef": 0.5, "fade": 60})
    while iterate(held)[WEIGHT] > 0.0:
        pass
    alone = learner_of("tanh, gru", None, started=False)
    tensors, plain = saved(held)
    tensors["learner"] = {key: x for key, x in tensors["learner"].items() if not key.startswith("labels.")}
    alone.load_state(tensors, plain)
    alone.start()
    for _ in range(3):
        held.iterate(), alone.iterate()
    assert torch.equal(held.updater.optimizer.parameters, alone.updater.optimizer.parameters)


def test_a_policy_is_held_near_to_its_prior() -> None:
    """With a heavy weight it comes near to a prior that it is not; by PPO alone it does not."""
    far = {}
    for name, coef in (("held", 3.0), ("free", 1e-9)):
        learner = learner_of("multi-discrete, lstm", {"coef": coef, "fade": 10**9}, ppo={"learning_rate": 3e-3})
        reports = [iterate(learner)[DIVERGENCE] for _ in range(40)]
        far[name] = reports[-1] / reports[0]
    assert far["held"] < 0.6 < far["free"]


@pytest.mark.parametrize("name", ["discrete, gru", "beta"])
@pytest.mark.parametrize("fade", [150, 10**6])
def test_a_resumed_run_is_the_one_that_never_stopped(name: str, fade: int) -> None:
    prior = {"coef": 0.3, "fade": fade}
    whole = learner_of(name, prior)
    metrics = [iterate(whole) for _ in range(ITERATIONS)]
    for stop in (2, 5):
        first = learner_of(name, prior)
        for _ in range(stop):
            iterate(first)
        state = saved(first)
        second = learner_of(name, prior, started=False)
        second.load_state(*state)
        second.listeners.start(second)
        second.start()
        assert [iterate(second) for _ in range(ITERATIONS - stop)] == metrics[stop:]
        assert differences(whole, second) == set()


@pytest.mark.parametrize("fade", [40, 10**6], ids=["faded before", "not faded"])
def test_a_change_while_it_runs_is_that_of_a_resumed_run(fade: int) -> None:
    """Also a prior that was not asked any more is asked again."""
    live = learner_of("discrete, gru", {"coef": 0.3, "fade": fade})
    for _ in range(3):
        before = iterate(live)[WEIGHT]
    assert (before == 0.0) == (fade == 40)
    state = saved(live)
    change(live, {"prior.coef": 0.6, "prior.fade": 5000})
    resumed = learner_of("discrete, gru", {"coef": 0.6, "fade": 5000}, started=False)
    resumed.load_state(*state)
    resumed.listeners.start(resumed)
    resumed.start()
    for _ in range(3):
        found, expected = iterate(live), iterate(resumed)
        assert found == expected and found[DIVERGENCE] > 0
        assert found[WEIGHT] == weight_at(PriorConfig(coef=0.6, fade=5000), live.steps) > 0.5
    assert differences(live, resumed) == set()


def test_ppo_knows_nothing_of_it() -> None:
    assert PPOLoss.labeller is None and DIVERGENCE not in PPOLoss.terms and not PPOLoss.autograd
