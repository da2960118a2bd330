"""The gradients of plain policies are written out here: flat observations, memory or none, hidden layers, the common heads.

On a CPU a policy of two 64-unit networks spends most of an update in autograd's bookkeeping, not in arithmetic. The chain rule
of an MLP takes a dozen lines; a test compares it with autograd. Everything else (images, state-dependent deviations,
accelerators) goes through autograd.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from wavedash.policy.distributions import Categorical, Gaussian
from wavedash.policy.evaluation import Evaluation, OutputGradients
from wavedash.policy.heads import LOG_STD_RANGE, DiscreteHead, GaussianHead
from wavedash.policy.memory import RECURRENCES, Memory, RecurrentLayer, State, recurrent_weights
from wavedash.policy.mlp import ACTIVATIONS, MLP, NORM_EPS
from wavedash.policy.recurrence import InputGradients
from wavedash.policy.trunk import memories_of, parts_of

if TYPE_CHECKING:
    from wavedash.policy.actor_critic import ActorCritic

ACTIVATION_GRADIENTS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "tanh": lambda gradient, _, out: torch.ops.aten.tanh_backward.default(gradient, out),
    "relu": lambda gradient, _, out: torch.ops.aten.threshold_backward.default(gradient, out, 0.0),
    "elu": lambda gradient, before, _: torch.ops.aten.elu_backward.default(gradient, 1.0, 1.0, 1.0, False, before),
    "silu": lambda gradient, before, _: torch.ops.aten.silu_backward.default(gradient, before),
    "gelu": lambda gradient, before, _: torch.ops.aten.gelu_backward.default(gradient, before),
}
"""Each takes the gradient after the activation, its input and its output, and returns the gradient before it."""


class Layer:
    """y = x W^T + b and its backward pass. It holds the parameters: to look them up in a module costs as much as to use
    them."""

    def __init__(self, weight: Tensor, bias: Tensor):
        self.weight, self.bias = weight, bias

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def backward(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Adds to the gradients of the parameters, and returns the gradient of x."""
        self.add_gradients(x, gradient)
        return gradient @ self.weight

    def add_gradients(self, x: Tensor, gradient: Tensor) -> None:
        """Adds to the gradients of the parameters only."""
        assert self.weight.grad is not None and self.bias.grad is not None
        self.weight.grad.addmm_(gradient.t(), x)
        self.bias.grad.add_(gradient.sum(0))


class Norm:
    """LayerNorm and its backward pass."""

    def __init__(self, gain: Tensor, shift: Tensor):
        self.gain, self.shift = gain, shift

    def forward(self, x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Returns the output, and the function that adds to the gradients of the parameters and returns the gradient of x."""
        shape = self.gain.shape
        out, mean, rstd = torch.ops.aten.native_layer_norm.default(x, shape, self.gain, self.shift, NORM_EPS)

        def backward(gradient: Tensor) -> Tensor:
            x_gradient, gain_gradient, shift_gradient = torch.ops.aten.native_layer_norm_backward.default(
                gradient, x, shape, mean, rstd, self.gain, self.shift, [True, True, True])
            assert self.gain.grad is not None and self.shift.grad is not None
            self.gain.grad.add_(gain_gradient)
            self.shift.grad.add_(shift_gradient)
            return x_gradient

        return out, backward


class Activations(NamedTuple):
    """What the backward pass through hidden layers needs."""

    before: list[Tensor]
    """What the activation of each layer was applied to"""
    after: list[Tensor]
    """The input, then the output of each layer after its activation"""
    norms: list[Callable[[Tensor], Tensor]]
    """The backward pass of each LayerNorm; empty without them"""


class HiddenLayers:
    """The hidden layers of an MLP."""

    def __init__(self, module: MLP):
        self.layers = [Layer(*weights) for weights in module.weights]
        self.norms = [Norm(*weights) for weights in module.norm_weights]
        self.activation, self.activation_gradient = ACTIVATIONS[module.activation], ACTIVATION_GRADIENTS[module.activation]

    def forward(self, x: Tensor) -> Activations:
        activations = Activations([], [x], [])
        for index, layer in enumerate(self.layers):
            before = layer.forward(activations.after[-1])
            if self.norms:
                before, norm_backward = self.norms[index].forward(before)
                activations.norms.append(norm_backward)
            activations.before.append(before)
            activations.after.append(self.activation(before))
        return activations

    def backward(self, activations: Activations, gradient: Tensor, through: bool) -> Tensor:
        """Adds to the gradients of the parameters, and returns the gradient of the input if `through` is set."""
        for index in range(len(self.layers) - 1, -1, -1):
            gradient = self.activation_gradient(gradient, activations.before[index], activations.after[index + 1])
            if activations.norms:
                gradient = activations.norms[index](gradient)
            if index or through:
                gradient = self.layers[index].backward(activations.after[index], gradient)
            else:
                self.layers[0].add_gradients(activations.after[0], gradient)
        return gradient


class Memories:
    """The recurrent layers of all trunks, computed as one batch."""

    def __init__(self, memories: Sequence[Memory]):
        self.recurrence, self.parts = RECURRENCES[memories[0].kind], memories[0].parts
        by_memory: list[list[RecurrentLayer]] = [list(memory.layers) for memory in memories]  # type: ignore[arg-type]
        self.layers = list(zip(*by_memory, strict=True))
        self.projections = [[Layer(layer.weight_in, layer.bias_in) for layer in layers] for layers in self.layers]

    def forward(
        self, features: Sequence[Tensor], states: Sequence[State], fresh: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], None]]:
        """Returns features [K, L, B, H] after the last layer of K trunks, and the function that backpropagates their
        gradients."""
        keep = (~fresh).to(features[0].dtype).unsqueeze(-1)
        passes: list[tuple[Sequence[Tensor], Callable[[Tensor], InputGradients]]] = []
        x: Sequence[Tensor] = features
        for index, (layers, projections) in enumerate(zip(self.layers, self.projections, strict=True)):
            inputs = torch.stack([projection.forward(f) for projection, f in zip(projections, x, strict=True)])
            start = torch.stack([torch.cat([state[part][:, index] for part in self.parts], -1) for state in states])
            weight, bias = recurrent_weights(layers)
            out, back = self.recurrence(inputs, keep, start, weight, bias)
            passes.append((x, back))
            x = out.unbind(0)

        def backward(gradient: Tensor) -> None:
            for index in range(len(passes) - 1, -1, -1):
                x, back = passes[index]
                input_gradients, weight_gradients, bias_gradients = back(gradient)
                flat = input_gradients.flatten(1, 2)
                for k, (layer, projection) in enumerate(zip(self.layers[index], self.projections[index], strict=True)):
                    assert layer.weight_rec.grad is not None and layer.bias_rec.grad is not None
                    layer.weight_rec.grad.add_(weight_gradients[k])
                    layer.bias_rec.grad.add_(bias_gradients[k])
                    projection.add_gradients(x[k].flatten(0, 1), flat[k])
                if index:
                    projections = self.projections[index]
                    gradient = torch.stack([g @ p.weight for g, p in zip(input_gradients, projections, strict=True)])

        return out, backward


class ExplicitPolicy:
    """Evaluates stored steps of a policy without autograd."""

    @staticmethod
    def fits(policy: ActorCritic) -> bool:
        """Whether the gradients of this policy are written out here."""
        head = policy.head
        simple_head = isinstance(head, DiscreteHead) or (type(head) is GaussianHead and head.state_log_std is None
                                                         and not (head.gsde and head.gsde.expln))
        plain_trunks = all(trunk.is_plain and trunk.body.activation in ACTIVATION_GRADIENTS
                           for trunk in policy.trunks.values())
        frozen = any(not p.requires_grad for name, p in policy.named_parameters() if name != "actor.head.log_std")
        on_cpu = next(policy.parameters()).device.type == "cpu"
        eager_float32 = policy.precision is None and not policy.compiled
        return eager_float32 and on_cpu and simple_head and plain_trunks and not frozen

    def __init__(self, policy: ActorCritic):
        self.head = policy.head
        self.encoders = [trunk.encoders for trunk in policy.trunks.values()]
        self.trunk_memories = memories_of(policy.trunks)
        self.memories = Memories(list(self.trunk_memories.values())) if self.trunk_memories else None
        self.bodies = [HiddenLayers(trunk.body) for trunk in policy.trunks.values()]
        output = self.head.logits if isinstance(self.head, DiscreteHead) else self.head.mean
        value = policy.critic["head"]
        self.output, self.value = Layer(output.weight, output.bias), Layer(value.weight, value.bias)  # type: ignore[arg-type]

    def evaluate(
        self, sensed: Mapping[str, Tensor], action: Tensor, mask: Tensor | None, memory: State | None, fresh: Tensor | None
    ) -> Evaluation:
        """Does what `ActorCritic.evaluate` does. It must be called with grad mode off."""
        features = [encoders(sensed) for encoders in self.encoders]
        if self.memories is not None:
            assert memory is not None and fresh is not None
            remembered, memory_backward = self.memories.forward(features, parts_of(memory, self.trunk_memories), fresh)
            features = list(remembered.flatten(1, 2))
            action, mask = action.flatten(0, 1), None if mask is None else mask.flatten(0, 1)
        passes = [body.forward(x) for body, x in zip(self.bodies, features, strict=True)]
        actor, critic = passes[0], passes[-1]
        value = self.value.forward(critic.after[-1]).squeeze(-1)
        output = self.output.forward(actor.after[-1])
        if isinstance(self.head, DiscreteHead):
            floor = self.head.floor
            log_prob, entropy, output_gradient = (_categorical_with_floor(output, action, mask, floor) if floor
                                                  else _categorical(output, action, mask))
        elif self.head.gsde is None:
            log_prob, entropy, output_gradient = _gaussian(output, self.head.log_std, action)
        else:
            log_prob, entropy, output_gradient = _gsde(output, self.head, actor.after[-1], action)

        def backward(gradients: OutputGradients) -> None:
            actor_gradient = self.output.backward(actor.after[-1], output_gradient(gradients))
            critic_gradient = self.value.backward(critic.after[-1], gradients.value.unsqueeze(-1))
            gradients_out = [actor_gradient + critic_gradient] if actor is critic else [actor_gradient, critic_gradient]
            through = self.memories is not None
            feature_gradients = [body.backward(activations, gradient, through)
                                 for body, activations, gradient in zip(self.bodies, passes, gradients_out, strict=True)]
            if through:
                memory_backward(torch.stack(feature_gradients).view_as(remembered))

        return Evaluation(log_prob, entropy, value, backward)


LogitGradient = Callable[[OutputGradients], Tensor]


def _categorical(logits: Tensor, action: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, LogitGradient]:
    distribution = Categorical(logits, mask)
    log_probs, probs, chosen = distribution.log_probs, distribution.probs, action.unsqueeze(-1)
    entropy = -(probs * log_probs).sum(-1, keepdim=True)

    def output_gradient(gradients: OutputGradients) -> Tensor:
        # d log p_a / d logit_j = [j = a] - p_j;   d H / d logit_j = -p_j * (log p_j + H)
        log_prob_gradient = gradients.log_prob.unsqueeze(-1)
        both = torch.addcmul(log_prob_gradient, gradients.entropy.unsqueeze(-1), log_probs + entropy)
        return both.mul_(probs).neg_().scatter_add_(-1, chosen, log_prob_gradient)

    return log_probs.gather(-1, chosen).squeeze(-1), entropy.squeeze(-1), output_gradient


def _categorical_with_floor(
    logits: Tensor, action: Tensor, mask: Tensor | None, floor: float
) -> tuple[Tensor, Tensor, LogitGradient]:
    distribution, own, chosen = Categorical(logits, mask, floor), Categorical(logits, mask).probs, action.unsqueeze(-1)
    log_probs = distribution.log_probs
    log_prob = log_probs.gather(-1, chosen)

    def output_gradient(gradients: OutputGradients) -> Tensor:
        # With p = (1 - f) s + f u, where s is the softmax and u uniform:
        # d log p_a / d logit_j = (1 - f) s_a / p_a * ([j = a] - s_j);   d H / d logit_j = -(1 - f) s_j * (log p_j - E_s[log p])
        learned_share = (1.0 - floor) * own.gather(-1, chosen) * (-log_prob).exp()
        log_prob_gradient = gradients.log_prob.unsqueeze(-1) * learned_share
        surprise = log_probs - (own * log_probs).sum(-1, keepdim=True)
        both = torch.addcmul(log_prob_gradient, (1.0 - floor) * gradients.entropy.unsqueeze(-1), surprise)
        return both.mul_(own).neg_().scatter_add_(-1, chosen, log_prob_gradient)

    return log_prob.squeeze(-1), distribution.entropy(), output_gradient


def _gaussian(mean: Tensor, raw_log_std: Tensor, action: Tensor) -> tuple[Tensor, Tensor, LogitGradient]:
    log_std = raw_log_std.clamp(*LOG_STD_RANGE)
    distribution = Gaussian(mean, log_std)

    def output_gradient(gradients: OutputGradients) -> Tensor:
        # With z = (a - mean) / std:   d log p / d mean = z / std;   d log p / d log std = z^2 - 1;   d H / d log std = 1
        std_inverse = (-log_std).exp()
        z = (action - mean) * std_inverse
        log_prob_gradient = gradients.log_prob.unsqueeze(-1)
        if raw_log_std.grad is not None:
            log_std_gradient = (log_prob_gradient * (z.square() - 1.0)).sum(0) + gradients.entropy.sum()
            raw_log_std.grad.add_(log_std_gradient.masked_fill(raw_log_std != log_std, 0.0))
        return log_prob_gradient * z * std_inverse

    return distribution.log_prob(action), distribution.entropy(), output_gradient


def _gsde(mean: Tensor, head: GaussianHead, features: Tensor, action: Tensor) -> tuple[Tensor, Tensor, LogitGradient]:
    log_std, raw = head._log_std(features), head.log_std
    distribution = Gaussian(mean, log_std)

    def output_gradient(gradients: OutputGradients) -> Tensor:
        # std_a^2 = sum over f of (h_f s_fa)^2, so that   d log std_a / d log s_fa = (h_f s_fa / std_a)^2
        std_inverse = (-log_std).exp()
        z = (action - mean) * std_inverse
        log_prob_gradient = gradients.log_prob.unsqueeze(-1)
        if raw.grad is not None:
            of_log_std = log_prob_gradient * (z.square() - 1.0) + gradients.entropy.unsqueeze(-1)
            log_std_gradient = (features.square().t() @ (of_log_std * std_inverse.square())) * head.noise_std().square()
            raw.grad.add_(log_std_gradient.masked_fill(raw != raw.clamp(*LOG_STD_RANGE), 0.0))
        return log_prob_gradient * z * std_inverse

    return distribution.log_prob(action), distribution.entropy(), output_gradient
