"""Gradients of plain feed-forward policies, written out.

On a CPU a policy of two 64-unit networks spends most of an update in autograd's bookkeeping, not in arithmetic. The chain rule
of an MLP is a dozen lines, so here it is; a test holds it against autograd. Everything else (memory, images, state-dependent
deviations, accelerators) goes through autograd.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wavedash.policy.distributions import Categorical, Gaussian
from wavedash.policy.evaluation import Evaluation, Slopes
from wavedash.policy.heads import LOG_STD_RANGE, DiscreteHead, GaussianHead
from wavedash.policy.mlp import ACTIVATIONS, MLP

if TYPE_CHECKING:
    from wavedash.policy.actor_critic import ActorCritic

ACTIVATION_SLOPES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "tanh": torch.ops.aten.tanh_backward.default,
    "relu": lambda slope, out: torch.ops.aten.threshold_backward.default(slope, out, 0.0),
}
"""(slope, activation's output) -> slope before the activation"""


class Layer:
    """y = x W^T + b and the way back. Holds the parameters: looking them up in a module costs as much as using them."""

    def __init__(self, module: nn.Linear):
        self.weight, self.bias = module.weight, module.bias

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def back(self, x: Tensor, slope: Tensor) -> Tensor:
        """Adds to the gradients; returns the slope in x."""
        self.gradients_only(x, slope)
        return slope @ self.weight

    def gradients_only(self, x: Tensor, slope: Tensor) -> None:
        assert self.weight.grad is not None and self.bias.grad is not None
        self.weight.grad.addmm_(slope.t(), x)
        self.bias.grad.add_(slope.sum(0))


class Body:
    """An MLP's hidden layers."""

    def __init__(self, module: MLP):
        self.layers = [Layer(layer) for layer in module.layers]  # type: ignore[arg-type]
        self.activation, self.activation_slope = ACTIVATIONS[module.activation], ACTIVATION_SLOPES[module.activation]

    def forward(self, x: Tensor) -> list[Tensor]:
        """The trail: the input and every layer's output."""
        trail = [x]
        for layer in self.layers:
            trail.append(self.activation(layer.forward(trail[-1])))
        return trail

    def back(self, trail: list[Tensor], slope: Tensor) -> None:
        for index in range(len(self.layers) - 1, 0, -1):
            slope = self.activation_slope(slope, trail[index + 1])
            slope = self.layers[index].back(trail[index], slope)
        if self.layers:
            self.layers[0].gradients_only(trail[0], self.activation_slope(slope, trail[1]))


class ExplicitPolicy:
    """Evaluates stored steps of a feed-forward policy without autograd."""

    @staticmethod
    def fits(policy: ActorCritic) -> bool:
        head = policy.head
        simple_head = isinstance(head, DiscreteHead) or (type(head) is GaussianHead and head.state_log_std is None)
        simple_trunks = all(trunk.is_plain and trunk.body.activation in ACTIVATION_SLOPES for trunk in policy.trunks.values())
        frozen = any(not p.requires_grad for name, p in policy.named_parameters() if name != "actor.head.log_std")
        on_cpu = next(policy.parameters()).device.type == "cpu"
        plain = policy.precision is None and policy._judge == policy.judge
        return plain and on_cpu and simple_head and simple_trunks and not frozen

    def __init__(self, policy: ActorCritic):
        self.head = policy.head
        trunks = policy.trunks
        self.actor_encoders, self.actor = trunks["actor"].encoders, Body(trunks["actor"].body)
        self.critic_encoders, self.critic = None, None
        if "critic" in trunks:
            self.critic_encoders, self.critic = trunks["critic"].encoders, Body(trunks["critic"].body)
        self.output = Layer(self.head.logits if isinstance(self.head, DiscreteHead) else self.head.mean)
        self.value = Layer(policy.critic["head"])  # type: ignore[arg-type]

    def evaluate(self, sensed: Mapping[str, Tensor], action: Tensor, mask: Tensor | None) -> Evaluation:
        """As `ActorCritic.evaluate`; to be called without grad mode."""
        trail = critic_trail = self.actor.forward(self.actor_encoders(sensed))
        if self.critic is not None and self.critic_encoders is not None:
            critic_trail = self.critic.forward(self.critic_encoders(sensed))
        value = self.value.forward(critic_trail[-1]).squeeze(-1)
        output = self.output.forward(trail[-1])
        if isinstance(self.head, DiscreteHead):
            log_prob, entropy, output_slope = _categorical(output, action, mask)
        else:
            log_prob, entropy, output_slope = _gaussian(output, self.head.log_std, action)

        def pull_back(slopes: Slopes) -> None:
            slope = self.output.back(trail[-1], output_slope(slopes))
            value_slope = self.value.back(critic_trail[-1], slopes.value.unsqueeze(-1))
            if self.critic is None:
                self.actor.back(trail, slope + value_slope)
            else:
                self.actor.back(trail, slope)
                self.critic.back(critic_trail, value_slope)

        return Evaluation(log_prob, entropy, value, pull_back)


OutputSlope = Callable[[Slopes], Tensor]


def _categorical(logits: Tensor, action: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, OutputSlope]:
    distribution = Categorical(logits, mask)
    log_probs, probs, chosen = distribution.log_probs, distribution.log_probs.exp(), action.unsqueeze(-1)
    entropy = -(probs * log_probs).sum(-1, keepdim=True)

    def output_slope(slopes: Slopes) -> Tensor:
        # d log p_a / d logit_j = [j = a] - p_j;   d H / d logit_j = -p_j * (log p_j + H)
        pull = slopes.log_prob.unsqueeze(-1)
        both = torch.addcmul(pull, slopes.entropy.unsqueeze(-1), log_probs + entropy)
        return both.mul_(probs).neg_().scatter_add_(-1, chosen, pull)

    return log_probs.gather(-1, chosen).squeeze(-1), entropy.squeeze(-1), output_slope


def _gaussian(mean: Tensor, raw_log_std: Tensor, action: Tensor) -> tuple[Tensor, Tensor, OutputSlope]:
    log_std = raw_log_std.clamp(*LOG_STD_RANGE)
    distribution = Gaussian(mean, log_std)

    def output_slope(slopes: Slopes) -> Tensor:
        # With z = (a - mean) / std:   d log p / d mean = z / std;   d log p / d log std = z^2 - 1;   d H / d log std = 1
        std_inverse = (-log_std).exp()
        z = (action - mean) * std_inverse
        pull = slopes.log_prob.unsqueeze(-1)
        if raw_log_std.grad is not None:
            moved = (pull * (z.square() - 1.0)).sum(0) + slopes.entropy.sum()
            raw_log_std.grad.add_(moved.masked_fill(raw_log_std != log_std, 0.0))
        return pull * z * std_inverse

    return distribution.log_prob(action), distribution.entropy(), output_slope
