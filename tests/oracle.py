"""Slow and simple references in float64: advantages episode by episode, PPO's loss sample by sample, AdamW by its formula.

Nothing here is shared with `wavedash.ppo` or `wavedash.policy`: networks are rebuilt from the names of their weights,
distributions are torch's own, gradients are autograd's of the textbook formula.
"""
from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

ACTIVATIONS = {"tanh": nn.Tanh(), "relu": nn.ReLU(), "elu": nn.ELU(), "silu": nn.SiLU()}


# --- advantages ------------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """Consecutive transitions of one row in one episode, and the value to bootstrap from."""

    row: int
    times: list[int]
    future: float


def cut_into_pieces(value, last_value, final_value, terminated, truncated, active) -> list[Piece]:
    """Every stretch of transitions, cut where an episode ends, where a row is inactive and where the rollout ends."""
    steps, rows = np.shape(value)
    pieces = []
    for n in range(rows):
        times: list[int] = []
        for t in range(steps):
            if not active[t][n]:
                continue
            times.append(t)
            after = float(value[t + 1][n]) if t + 1 < steps else float(last_value[n])
            done = terminated[t][n] or truncated[t][n]
            if done or t + 1 == steps or not active[t + 1][n]:
                future = after
                if truncated[t][n]:
                    future = float(final_value[t][n])
                if terminated[t][n]:
                    future = 0.0
                pieces.append(Piece(n, times, future))
                times = []
    return pieces


def gae_by_episode(reward, value, last_value, final_value, terminated, truncated, active, gamma, gae_lambda) -> np.ndarray:
    """A_t = sum over l of (gamma * lambda)^l * delta_{t+l}, written out for each piece. [T, N]"""
    advantage = np.zeros(np.shape(value))
    for row, times, future in cut_into_pieces(value, last_value, final_value, terminated, truncated, active):
        values = [float(value[t][row]) for t in times] + [future]
        deltas = [float(reward[t][row]) + gamma * values[i + 1] - values[i] for i, t in enumerate(times)]
        for i, t in enumerate(times):
            advantage[t, row] = sum((gamma * gae_lambda) ** (k - i) * deltas[k] for k in range(i, len(times)))
    return advantage


# --- the policy ------------------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """Log-probability, entropy and value of stored steps, [B] each."""

    log_prob: Tensor
    entropy: Tensor
    value: Tensor


class Textbook:
    """The networks of an `ActorCritic`, rebuilt in float64 from its weights."""

    def __init__(self, policy, sizes: list[int] | None):
        """`sizes` are those of the discrete choices, or None for continuous actions."""
        self.sizes, self.activation = sizes, ACTIVATIONS[policy.config.activation]
        self.distribution, self.floor = policy.config.distribution, policy.config.action_floor
        self.weights = {name: p.detach().double().clone() for name, p in policy.named_parameters()}
        self.trained = [name for name, p in policy.named_parameters() if p.requires_grad]
        for name in self.trained:
            self.weights[name].requires_grad_()

    def at(self, weights: dict[str, Tensor]) -> Textbook:
        """The same networks with other weights."""
        other = copy(self)
        other.weights = {name: x.detach().double().requires_grad_(name in self.trained) for name, x in weights.items()}
        return other

    def _layer(self, name: str, x: Tensor) -> Tensor:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _body(self, name: str, x: Tensor) -> Tensor:
        depth = 0
        while f"{name}.layers.{depth}.weight" in self.weights:
            x = self.activation(self._norm(f"{name}.norms.{depth}", self._layer(f"{name}.layers.{depth}", x)))
            depth += 1
        return x

    def _norm(self, name: str, x: Tensor) -> Tensor:
        """LayerNorm, where the policy has it: mean 0 and variance 1 over the units of each sample, then gain and shift."""
        if f"{name}.weight" not in self.weights:
            return x
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def say(self, obs: Tensor, action: Tensor, mask: Tensor | None) -> Said:
        x = obs.double()
        features = self._body("actor.trunk.body", x)
        own_body = any(name.startswith("critic.trunk.body") for name in self.weights)
        value = self._layer("critic.head", self._body("critic.trunk.body" if own_body else "actor.trunk.body", x))[:, 0]
        if self.sizes is None:
            return Said(*self._continuous(features, action.double()), value)
        logits = self._layer("actor.head.logits", features)
        if mask is not None:
            logits = logits.masked_fill(mask == 0, -torch.inf)
        log_prob, entropy = torch.zeros(len(x)).double(), torch.zeros(len(x)).double()
        for k, part in enumerate(logits.split(self.sizes, -1)):
            choice = self._choice(part)
            log_prob = log_prob + choice.log_prob(action.reshape(len(x), -1)[:, k])
            entropy = entropy + choice.entropy()
        return Said(log_prob, entropy, value)

    def _choice(self, logits: Tensor) -> torch.distributions.Categorical:
        """The choice with these logits, or with a share of a uniform choice among the allowed actions mixed into it."""
        if not self.floor:
            return torch.distributions.Categorical(logits=logits)
        allowed = (logits > -torch.inf).double()
        uniform = allowed / allowed.sum(-1, keepdim=True)
        return torch.distributions.Categorical(probs=(1 - self.floor) * logits.softmax(-1) + self.floor * uniform)

    def _continuous(self, features: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Log-density and entropy in units where the range of an action is [-1, 1], sums over dimensions."""
        if self.distribution == "beta":
            alpha, beta = (1 + nn.functional.softplus(self._layer("actor.head.shape", features))).chunk(2, -1)
            unit = torch.distributions.Beta(alpha, beta)  # it is on (0, 1), half as wide and twice as dense
            return (unit.log_prob(action) - math.log(2)).sum(-1), (unit.entropy() + math.log(2)).sum(-1)
        log_std = self.weights["actor.head.log_std"]
        if "actor.head.state_log_std.weight" in self.weights:
            log_std = log_std + self._layer("actor.head.state_log_std", features)
        normal = torch.distributions.Normal(self._layer("actor.head.mean", features), log_std.clamp(-10, 2).exp())
        if self.distribution == "gaussian":
            return normal.log_prob(action).sum(-1), normal.entropy().sum(-1)
        log_prob = normal.log_prob(action) - log_tanh_derivative(action)
        return log_prob.sum(-1), (normal.entropy() + expected_log_tanh_derivative(normal.loc, normal.scale)).sum(-1)


def log_tanh_derivative(x: Tensor) -> Tensor:
    return torch.distributions.TanhTransform().log_abs_det_jacobian(x, x.tanh())


def expected_log_tanh_derivative(mean: Tensor, std: Tensor) -> Tensor:
    """E[log d tanh(x) / dx] of a normal x, by the trapezoid rule over ten deviations."""
    z = torch.linspace(-10, 10, 2001).double()
    density = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return torch.trapezoid(density * log_tanh_derivative(mean.unsqueeze(-1) + std.unsqueeze(-1) * z), z)


# --- the loss --------------------------------------------------------------------------------------------------------


@dataclass
class Samples:
    """The samples that the rollout stored, [B, ...] each."""

    obs: Tensor
    mask: Tensor | None
    action: Tensor
    log_prob: Tensor
    value: Tensor
    advantage: Tensor
    returns: Tensor
    active: Tensor

    def take(self, index: Tensor) -> Samples:
        return Samples(**{name: None if x is None else x[index] for name, x in vars(self).items()})


class Terms(NamedTuple):
    """Terms of the loss, as means over the valid samples."""

    policy: float
    value: float
    entropy: float
    kl: float
    clipped: float


def terms_by_loop(said: Said, samples: Samples, advantage: Tensor, clip_range: float, value_clip: float | None) -> Terms:
    """The terms of the loss, one sample at a time in Python floats."""
    columns = (samples.active, advantage, samples.log_prob, samples.value, samples.returns, *said)
    rows = []
    for active, a, old_log_prob, old_value, target, log_prob, entropy, new_value in zip(
        *(x.detach().tolist() for x in columns), strict=True
    ):
        if not active:
            continue
        log_ratio = log_prob - old_log_prob
        ratio = math.exp(log_ratio)
        policy = -min(ratio * a, min(max(ratio, 1 - clip_range), 1 + clip_range) * a)
        value = (new_value - target) ** 2
        if value_clip is not None:
            near = old_value + min(max(new_value - old_value, -value_clip), value_clip)
            value = max(value, (near - target) ** 2)
        rows.append((policy, value, entropy, ratio - 1 - log_ratio, float(abs(ratio - 1) > clip_range)))
    return Terms(*(sum(column) / len(rows) for column in zip(*rows, strict=True)))


def normalized_by_numpy(advantage: Tensor, active: Tensor) -> Tensor:
    valid = advantage.double().numpy()[active.numpy()]
    return (advantage.double() - valid.mean()) / (valid.std() + 1e-8)


def textbook_terms(said: Said, samples: Samples, advantage: Tensor, clip_range: float, value_clip: float | None) -> Tensor:
    """The same terms for all samples at once, with gradients: the formula of Schulman et al. 2017 with the value clip of
    OpenAI's baselines. It returns [5] means over the valid samples."""
    log_ratio = said.log_prob - samples.log_prob.double()
    ratio = log_ratio.exp()
    policy = -torch.min(ratio * advantage, ratio.clamp(1 - clip_range, 1 + clip_range) * advantage)
    value = (said.value - samples.returns.double()) ** 2
    if value_clip is not None:
        old = samples.value.double()
        near = old + (said.value - old).clamp(-value_clip, value_clip)
        value = torch.max(value, (near - samples.returns.double()) ** 2)
    clipped = ((ratio - 1).abs() > clip_range).double()
    return torch.stack([policy, value, said.entropy, ratio - 1 - log_ratio, clipped])[:, samples.active].mean(-1)


# --- the optimiser and the whole update ------------------------------------------------------------------------------


class AdamW:
    """Loshchilov & Hutter 2019, Algorithm 2, in numpy."""

    def __init__(self, rate: float, betas=(0.9, 0.999), eps: float = 1e-5, decay: float = 0.0):
        self.rate, self.betas, self.eps, self.decay = rate, betas, eps, decay
        self.t, self.m, self.v = 0, 0.0, 0.0

    def set(self, t: int, m: np.ndarray, v: np.ndarray) -> AdamW:
        """Puts the optimiser after `t` steps, with these moments."""
        self.t, self.m, self.v = t, m, v
        return self

    def step(self, weights: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        beta1, beta2 = self.betas
        self.t += 1
        self.m = beta1 * self.m + (1 - beta1) * gradient
        self.v = beta2 * self.v + (1 - beta2) * gradient**2
        m_hat, v_hat = self.m / (1 - beta1**self.t), self.v / (1 - beta2**self.t)
        return weights - self.rate * (m_hat / (np.sqrt(v_hat) + self.eps) + self.decay * weights)


class GradientStep(NamedTuple):
    terms: Terms
    gradient: dict[str, np.ndarray]


def normalized_minibatches(samples: Samples, config, order: Tensor) -> list[tuple[Samples, Tensor]]:
    """The minibatches of an epoch that visits samples in this `order`, each with its normalised advantages."""
    advantage = samples.advantage.double()
    if config.normalize_advantage == "batch":
        advantage = normalized_by_numpy(advantage, samples.active)
    parts = [(samples.take(index), advantage[index]) for index in split_evenly(order, config.minibatch_size)]
    if config.normalize_advantage == "minibatch":
        parts = [(part, normalized_by_numpy(own, part.active)) for part, own in parts]
    return parts


def split_evenly(order: Tensor, size: int) -> list[Tensor]:
    """The fewest parts of at most `size` each, the longer ones first."""
    parts = math.ceil(len(order) / size)
    bounds = [0]
    for k in range(parts):
        bounds.append(bounds[-1] + len(order) // parts + (k < len(order) % parts))
    return [order[a:b] for a, b in pairwise(bounds)]


def loss_and_gradient(textbook: Textbook, samples: Samples, advantage: Tensor, config) -> tuple[Tensor, dict[str, Tensor]]:
    """The [5] terms of a minibatch, and the gradient of the loss made of them."""
    terms = textbook_terms(textbook.say(samples.obs, samples.action, samples.mask), samples, advantage, config.clip_range,
                           config.value_clip)
    loss = terms[0] + config.value_coef * terms[1] - config.entropy_coef * terms[2]
    parameters = [textbook.weights[name] for name in textbook.trained]
    slopes = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return terms.detach(), dict(zip(textbook.trained, slopes, strict=True))


def step_by_formula(textbook: Textbook, samples: Samples, advantage: Tensor, config) -> GradientStep:
    """Terms and gradient of one minibatch. The terms come from two references, which must agree."""
    with torch.no_grad():
        said = textbook.say(samples.obs, samples.action, samples.mask)
    by_loop = terms_by_loop(said, samples, advantage, config.clip_range, config.value_clip)
    terms, gradient = loss_and_gradient(textbook, samples, advantage, config)
    for one, other in zip(by_loop, terms.tolist(), strict=True):
        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12), "the two references disagree"
    return GradientStep(by_loop, {name: g.numpy() for name, g in gradient.items()})
