"""Options of the algorithm."""
from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from wavedash.config.section import AutoPositive, Fraction, NonNegative, Positive, Section


class DecayConfig(Section):
    """How a number of the loss moves over the run."""

    kind: Literal["constant", "linear", "cosine"] = "constant"
    """constant; linear or cosine: from the full value to `floor` of it at the end of the run."""
    floor: Fraction = 0.1
    """linear, cosine: the share of the value that is left at the end of the run."""


class ScheduleConfig(Section):
    """How the learning rate moves over the run."""

    kind: Literal["constant", "linear", "cosine", "kl"] = "constant"
    """constant; linear or cosine: from the full rate to `floor` of it at the end of the run; kl: moved to hold `target_kl`."""
    floor: Fraction = 0.1
    """linear, cosine: the share of the learning rate that is left at the end of the run."""
    target_kl: Annotated[float, Field(gt=0)] = 0.01
    """kl: the rate falls when an update moves the policy more than twice this, rises when it moves less than half of this."""
    factor: Annotated[float, Field(gt=1)] = 1.5
    """kl: how much the rate changes at once."""
    bounds: tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]] = (0.03, 30.0)
    """kl: lowest and highest multiple of the learning rate."""


class PPOConfig(Section):
    """The algorithm."""

    rollout_steps: Positive = 256
    """Steps of every row in one rollout. More: better advantage estimates, staler data."""
    epochs: Positive = 10
    """Passes over the data per update. More: better sample efficiency until the policy moves too far (watch KL)."""
    minibatch_size: AutoPositive = 64
    """Samples per gradient step (split evenly: 1,000 samples by 300 make four of 250), with several processes from each of
    them. Larger: faster, smoother. auto: 16,384 on a GPU and 2,048 on a CPU, less where an epoch would have fewer than eight;
    chosen when the run begins."""
    keep_samples: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """The share of the samples that an update learns from: those with the largest advantages, positive or negative, after their
    normalisation over the whole batch (of sequences, those with the largest one inside; with several processes, of the samples
    of each). Less: fewer gradient steps, each on samples that teach more; critic and entropy bonus see these samples only.
    Inactive samples, such as cars that opponents drive, are left out first: where they are a tenth of all, 0.9 saves their
    time and changes nothing else."""
    accumulate: Positive = 1
    """Splits each minibatch into this many pieces whose gradients are summed: same result, less memory."""
    microbatch_size: Positive | None = None
    """The most samples that are computed at once; the gradients of the parts of a minibatch are summed. Less: less memory, the
    same result but for rounding, slower below some thousands on a GPU. Not set: a whole minibatch; on a GPU, parts of it when
    it does not fit into the memory."""
    buffer_rollouts: Positive = 1
    """FIFO buffer: how many of the latest rollouts an update learns from. More reuse of samples, older data."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """What makes steps of gradients. muon moves all directions of a hidden layer equally far, at the same learning rate; heads
    and biases keep adamw. Each step costs some products of whole matrices: much on a CPU, little on a GPU."""
    learning_rate: Annotated[float, Field(gt=0)] = 3e-4
    """Step size of AdamW. Higher learns faster until it becomes unstable."""
    critic_learning_rate: Annotated[float, Field(gt=0)] | None = None
    """Separate step size for the critic; the actor's when not set."""
    schedule: ScheduleConfig = ScheduleConfig()
    """How the learning rate moves over the run."""
    critic_warmup: Annotated[int, Field(ge=0)] = 0
    """Iterations at the beginning of the run in which only the critic learns. It is for a policy from `init`, whose critic may
    know other rewards, or another scale of them. More: advantages are better before the actor moves, which begins later."""
    weight_decay: NonNegative = 0.0
    """AdamW weight decay. Higher pulls the weights harder toward zero."""
    adam_betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    """AdamW's memory of gradients and of their squares. Higher: smoother, slower to react."""
    adam_eps: Annotated[float, Field(gt=0)] = 1e-5
    """Keeps AdamW's steps small where gradients are tiny. Higher: more cautious there."""
    gamma: Fraction = 0.99
    """Discount: the horizon is about 1 / (1 - gamma) steps."""
    gamma_end: Annotated[float, Field(ge=0.0, lt=1.0)] | None = None
    """The discount at the end of the run: from `gamma` to it, the horizon grows (or shrinks) by the same factor in equal parts
    of `total_steps`. Raised: first what pays soon is learned, then what pays late. Not set: `gamma` stays."""
    gae_lambda: Fraction = 0.95
    """Advantage estimation: 1 is unbiased and noisy, 0 trusts the critic alone."""
    clip_range: Annotated[float, Field(gt=0)] = 0.2
    """How far an action's probability may move per update before its gradient is cut. Higher: larger steps of the policy, which
    may become unstable."""
    clip_schedule: DecayConfig = DecayConfig()
    """How the clip range moves over the run."""
    value_clip: Annotated[float, Field(gt=0)] | None = None
    """Limits how far a value may move per update. Off by default: published ablations found no benefit."""
    value_coef: NonNegative = 0.5
    """Weight of the value loss."""
    entropy_coef: NonNegative = 0.0
    """Weight of the entropy bonus, per nat. Higher keeps exploring longer."""
    entropy_schedule: DecayConfig = DecayConfig()
    """How the weight of the entropy bonus moves over the run."""
    normalize_advantage: Literal["batch", "minibatch", "off"] = "batch"
    """Scale advantages to mean 0, deviation 1 over the whole batch or each minibatch."""
    max_grad_norm: Annotated[float, Field(gt=0)] | None = 0.5
    """Gradients longer than this are scaled down to it."""
    target_kl: Annotated[float, Field(gt=0)] | None = None
    """Early stop: once a minibatch's approximate KL exceeds this, the rest of the update is skipped."""
    normalize_obs: bool = False
    """Scale observations by their running mean and deviation (first rollout: calibration only, no update)."""
    obs_clip: Annotated[float, Field(gt=0)] = 10.0
    """Normalised observations are clipped to plus or minus this."""
    normalize_reward: bool = False
    """Divide rewards by the running deviation of the discounted return."""
    reward_clip: Annotated[float, Field(gt=0)] = 10.0
    """Normalised rewards are clipped to plus or minus this."""

    @model_validator(mode="after")
    def _finite_horizon(self) -> PPOConfig:
        if self.gamma_end is not None and self.gamma == 1.0:
            raise ValueError("ppo.gamma_end needs ppo.gamma below 1: from an endless horizon there is no way to a finite one")
        return self
