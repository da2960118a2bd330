"""Options of a whole run: what is kept, what is reported, and all sections together."""
from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from wavedash.config.curriculum import PhaseConfig
from wavedash.config.debug import DebugConfig
from wavedash.config.distill import DistillConfig
from wavedash.config.env import EnvConfig
from wavedash.config.imitate import ImitateConfig, PriorConfig
from wavedash.config.league import OpponentsConfig, RatingConfig
from wavedash.config.policy import PolicyConfig
from wavedash.config.ppo import PPOConfig
from wavedash.config.recordings import RecordingsConfig
from wavedash.config.section import AUTO, Positive, Section
from wavedash.envs.kinds import kind_of


class CheckpointConfig(Section):
    """What is kept of a run."""

    every: Positive = 100_000
    """Steps between checkpoints. More often: less lost by a crash, more disk writes."""
    keep: Positive = 5
    """How many of the newest checkpoints stay."""
    spaced_every: Positive | None = None
    """Steps between checkpoints that are kept for ever, evenly over the run; off when not set."""
    best_by: Literal["return", "rating", "newest"] = "return"
    """What `best` is chosen by. return: the mean return of recent episodes, which says little where the policy plays against
    itself; in a run that imitates, the loss on the episodes that are held out; in one with phases, whose returns are sums of
    other things in each, as newest. rating: the lower end of the rating's 95 % interval, so that luck in a few games does not
    count; only states that were rated (see `rating`) are considered, and of several team sizes those of the newest one. newest:
    no `best` is kept, and a run stands for its newest checkpoint; for tasks that get harder while a policy gets better, as
    terrain with levels does, where the highest return is that of the easiest moment."""
    best_window: Positive = 100
    """Episodes over which the mean return is taken, for `best` and the console."""


class MilestonesConfig(Section):
    """Versions of a run that are kept for ever: whole checkpoints by name (`40M`) in `milestones/` of the run folder, each with
    its settings. `wavedash milestones` lists them."""

    every: Positive = 10_000_000
    """Steps between milestones. More often: more versions to go back to, and more of the disk."""


class ReportConfig(Section):
    """Where metrics go. `metrics.jsonl` in the run folder is always written."""

    console: Literal["auto", "live", "plain", "off"] = "auto"
    """auto: live tables in a terminal, plain lines every few seconds elsewhere."""
    tensorboard: bool = True
    """Write TensorBoard event files into the run folder."""
    wandb: bool = False
    """Also send metrics to Weights & Biases, from a process of its own."""
    wandb_project: str = "wavedash"
    """The Weights & Biases project that the run appears in."""


class RunConfig(Section):
    """A whole run: what `wavedash train` reads."""

    name: str = "run"
    """The run's folder is made under `runs/<name>/`."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Drives every random stream."""
    total_steps: Positive = 1_000_000
    """Agent steps until the run is finished, those of all processes together."""
    init: str | None = None
    """The policy to begin with instead of random weights: `champion`, a run, a checkpoint, or a folder with a policy. Weights
    and observation statistics come from there; optimiser and reward scale begin anew. Observations, actions and networks must
    be the same; what differs is refused by its name. See also `ppo.critic_warmup`."""
    device: str = "auto"
    """auto: the first CUDA device (with several processes, one for each), else the CPU. Or `cpu`, `cuda`, `cuda:1`."""
    threads: Annotated[int, Field(ge=0)] = 0
    """The most CPU threads of networks and of our simulator; small networks take one. More: faster while there are cores
    for them; results of an update do not depend on it. 0: as many as cores that the process may use, and no more than
    OMP_NUM_THREADS (which torchrun sets to 1). Any other number counts instead of OMP_NUM_THREADS."""
    precision: Literal["fp32", "bf16", "fp16", "auto"] = "fp32"
    """Precision of the networks' arithmetic; weights and optimiser stay fp32. bf16 is faster on GPUs with tensor cores; fp16 is
    for older ones, with a loss scale that adapts itself. auto: bf16 on a GPU of compute capability 8.0 or more (RTX 30 and
    later), fp16 on one of 7.0 or more (V100, RTX 20), else fp32; chosen when the run begins."""
    compile: bool = False
    """Fuse the networks with torch.compile (needs a C++ compiler or Triton, and a minute). Falls back with a warning."""
    graphs: bool = True
    """On CUDA: capture the update of a minibatch (and the collection, where the environment allows it) in a CUDA graph, which
    saves the cost of launching each operation. Falls back with a warning."""
    deterministic: bool = False
    """Refuse operations whose result varies between equal runs (slower on a GPU; a CPU run is always repeatable)."""
    env: EnvConfig
    policy: PolicyConfig = PolicyConfig()
    ppo: PPOConfig = PPOConfig()
    distill: DistillConfig | None = None
    """A teacher to learn from instead of from rewards; none when not set: the run learns by PPO."""
    imitate: ImitateConfig | None = None
    """Demonstrations to learn from instead of from rewards; none when not set."""
    prior: PriorConfig | None = None
    """A term that holds the policy near to the one that it began with; none when not set. `prior={}`: with the defaults."""
    opponents: OpponentsConfig | None = None
    """Opponents other than the newest self, for env.rocket with two teams; none when not set. `opponents={}`: the defaults."""
    rating: RatingConfig | None = None
    """Ratings while training, for env.rocket with two equal teams; none when not set. `rating={}`: with the defaults."""
    phases: list[PhaseConfig] = []
    """Phases of the run, in order: each changes settings, and says when the next one begins. None: the settings stay."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    milestones: MilestonesConfig | None = None
    """Versions that are kept for ever; none when not set. `milestones={}`: one every 10 million steps."""
    recordings: RecordingsConfig | None = None
    """Highlights of the training as recordings, for env.rocket; none when not set. `recordings={}`: with the defaults."""
    report: ReportConfig = ReportConfig()
    debug: DebugConfig = DebugConfig()

    @property
    def undecided(self) -> list[str]:
        """The options that say `auto`; `wavedash.memory.choice.resolved` decides them."""
        auto = {"env.count": self.env.count == AUTO, "ppo.minibatch_size": self.ppo.minibatch_size == AUTO,
                "precision": self.precision == "auto"}
        return [name for name, undecided in auto.items() if undecided]

    @property
    def best_by(self) -> Literal["return", "rating", "newest", "held_out"]:
        """Says what `best` is chosen by: demonstrations have no return, and those of different phases cannot be compared."""
        by = self.checkpoint.best_by
        if by != "return":
            return by
        return "held_out" if self.imitate is not None else "newest" if self.phases else "return"

    @model_validator(mode="after")
    def _whole_sequences(self) -> RunConfig:
        memory, steps = self.policy.memory, self.ppo.rollout_steps
        if memory.kind != "none" and steps % memory.sequence:
            raise ValueError(f"ppo.rollout_steps={steps} must be a multiple of policy.memory.sequence={memory.sequence}")
        return self

    @model_validator(mode="after")
    def _own_critic(self) -> RunConfig:
        if self.ppo.critic_warmup and self.policy.shared:
            raise ValueError(f"ppo.critic_warmup={self.ppo.critic_warmup} needs policy.shared=false: with one trunk for both, "
                             "what the critic learns changes the actor")
        return self

    @model_validator(mode="after")
    def _learns_without_rewards(self) -> RunConfig:
        if self.distill is None and self.imitate is None:
            return self
        how = "learns from a teacher (distill)" if self.imitate is None else "learns from demonstrations (imitate)"
        ppo = self.ppo
        refused = {
            "ppo.target_kl": ppo.target_kl is not None, "ppo.schedule.kind=kl": ppo.schedule.kind == "kl",
            "ppo.keep_samples": ppo.keep_samples < 1.0, "compile": self.compile,
            "ppo.critic_warmup": ppo.critic_warmup > 0 and not (self.distill is not None and self.distill.critic),
            "prior": self.prior is not None,
            "distill": self.imitate is not None and self.distill is not None,
            "opponents": self.imitate is not None and self.opponents is not None,
            "phases": self.imitate is not None and bool(self.phases),
        }
        why = {
            "ppo.target_kl": "no KL is measured; leave it at null",
            "ppo.schedule.kind=kl": "no KL is measured; use constant, linear or cosine",
            "ppo.keep_samples": "samples are not ranked by advantages; leave it at 1.0",
            "compile": "only PPO's networks are compiled; leave it at false",
            "ppo.critic_warmup": "no critic is trained; leave it at 0" + ", or set distill.critic=true" * bool(self.distill),
            "prior": "it is a term of PPO's loss; begin PPO from the result, with init=RUN",
            "distill": "it has a teacher beside them; set one of the two",
            "opponents": "no game is played; set opponents=null",
            "phases": "nothing of the environment is played that could change; set phases=[]",
        }
        for option in [option for option, wrong in refused.items() if wrong]:
            raise ValueError(f"{option} is not for a run that {how}: {why[option]}")
        return self

    @model_validator(mode="after")
    def _begins_once(self) -> RunConfig:
        if self.init is not None and self.distill is not None and self.distill.begin_as_teacher:
            raise ValueError("init and distill.begin_as_teacher both say what the student begins with: set one of them to null "
                             "or false")
        return self

    @model_validator(mode="after")
    def _begins_with_its_prior(self) -> RunConfig:
        if self.prior is not None and self.init is None:
            raise ValueError("prior holds the policy near to the one that it begins with: name that one (init=RUN), or set "
                             "prior=null")
        return self

    @model_validator(mode="after")
    def _somebody_to_play_against(self) -> RunConfig:
        if self.opponents is not None:
            kind_of(self.env).check_opponents(self.env)
        return self

    @model_validator(mode="after")
    def _rated(self) -> RunConfig:
        if self.rating is not None:
            kind_of(self.env).check_rating(self.env, self.rating.size)
        elif self.checkpoint.best_by == "rating":
            raise ValueError("checkpoint.best_by=rating needs ratings: add `rating: {}`, or leave best_by at return")
        return self
