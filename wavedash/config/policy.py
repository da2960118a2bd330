"""Options of the networks."""
from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from wavedash.config.section import Positive, Section


class EncoderConfig(Section):
    """How one key of a dictionary observation (or the only one, `obs`) is turned into features."""

    kind: Literal["auto", "flat", "mlp", "conv"] = "auto"
    """auto: conv for pictures and depth maps, mlp where `hidden` is set, else the numbers as they are."""
    hidden: list[Positive] = []
    """mlp: sizes of the layers that this key passes before it meets the others."""
    channels: list[Positive] = []
    """conv: channels of the 3x3 layers, each of which halves the picture; by default as many as make it about 4 wide."""
    features: Positive = 128
    """conv: size of the result. More: finer detail, more to learn."""


class MemoryConfig(Section):
    """What the policy remembers."""

    kind: Literal["none", "gru", "lstm"] = "none"
    """gru is the smaller and usually as good; lstm keeps a second, longer-lived state."""
    size: Positive = 64
    """Units. More: remembers more, learns slower."""
    layers: Positive = 1
    """Recurrent layers on top of each other."""
    sequence: Positive = 16
    """Steps through which gradients flow back (truncated BPTT); it divides ppo.rollout_steps. Longer: links distant events."""


class GSDEConfig(Section):
    """Generalised state-dependent exploration (`std: gsde`): noise that is a function of what the policy sees."""

    sample_every: Positive | None = None
    """Steps after which a row's noise matrix is drawn anew, counted from the beginning of a rollout; not set: at the
    beginning of each rollout only. More steps: smoother motion, fewer different tries. RL-Zoo calls it `sde_sample_freq`."""
    expln: bool = False
    """Let the deviations of the noise matrix grow like a logarithm above 1 instead of exponentially."""


class PolicyConfig(Section):
    """The networks: encoders, then memory, then hidden layers, then heads."""

    encoders: dict[str, EncoderConfig] = {}
    """Encoders by key of a dictionary observation; keys that are not named get what suits their shape."""
    actor_keys: list[str] | None = None
    """The keys that the actor sees; all when not set."""
    critic_keys: list[str] | None = None
    """The keys that the critic sees; it may know more than the actor. All when not set."""
    memory: MemoryConfig = MemoryConfig()
    hidden: list[Positive] = [64, 64]
    """Sizes of the actor's hidden layers."""
    critic_hidden: list[Positive] | None = None
    """Sizes of the critic's hidden layers; the same as the actor's when not set."""
    shared: bool = False
    """One trunk for actor and critic (of size `hidden`). It saves compute; the two losses then train the same features."""
    activation: Literal["tanh", "relu", "elu", "silu", "gelu"] = "tanh"
    """Between hidden layers. tanh is the safest for small control tasks, relu, silu or gelu for wide networks."""
    layer_norm: bool = False
    """LayerNorm in every hidden layer of actor and critic, after its weights and before its activation; encoders have none. It
    keeps the scale of wide and deep networks, which may then learn at higher rates; a step costs a little more."""
    orthogonal: bool = True
    """Begin with orthogonal weights, zero biases and a small last layer of the actor, as is usual for PPO. false: with torch's
    own initialisation, whose first policy depends more on the observation."""
    action_floor: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Discrete actions: the share of a uniform choice among the allowed actions in the policy, so that none dies out (jumping,
    say); of several choices, in each. 0.02 with 90 actions: each has at least 0.0002. Higher explores more, and a policy that
    is sampled plays worse by that share of random actions. Its most probable action stays the same."""
    distribution: Literal["gaussian", "tanh", "beta", "confined"] = "gaussian"
    """Continuous actions: a normal that is clipped, a normal squashed by tanh, a Beta, or a normal that is clipped and whose
    mean and deviation are confined to the action range and to `std_range` (all but the first need bounds)."""
    std: Literal["fixed", "learned", "state", "gsde"] = "learned"
    """Continuous actions: standard deviation fixed, one learned value per dimension, an output of the network, or gsde: smooth
    noise that depends on the state by a random matrix (see `gsde`), for gaussian and tanh. gsde suits robots, and tasks where
    a jitter about the mean gets nowhere."""
    initial_std: Annotated[float, Field(gt=0)] = 1.0
    """Standard deviation at the start, in units where the action range is [-1, 1]; with gsde of each weight of the noise
    matrix. Higher explores more. For gaussian, tanh."""
    gsde: GSDEConfig = GSDEConfig()
    std_range: tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]] = (0.1, 1.0)
    """confined: the least and the greatest standard deviation, outputs of the network. Higher explores more."""

    @model_validator(mode="after")
    def _one_view(self) -> PolicyConfig:
        if self.shared and self.actor_keys != self.critic_keys:
            raise ValueError("policy.shared=true needs equal actor_keys and critic_keys: one trunk sees one thing")
        if self.std == "gsde" and self.distribution not in ("gaussian", "tanh"):
            raise ValueError(f"policy.std=gsde needs policy.distribution=gaussian or tanh, not {self.distribution}: the noise "
                             "is added to the mean of a normal")
        return self
