"""Typed configuration: one model per section, every option with what it does and what happens when it is raised.

This file must import without torch, so that a mistake in a file is answered at once. Reading YAML, presets and
overrides into these models is in `config_file.py`.
"""
from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wavedash.envs.kinds import kind_of

Positive = Annotated[int, Field(gt=0)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Field(ge=0.0)]


class Section(BaseModel):
    """A section of the configuration. Unknown keys and wrong types are refused; the docstring of an attribute documents it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


Named = str | dict[str, dict[str, Any]]
"""A part by name (`kickoff`, or `my_module:MyClass`), or with options: `{no_touch: {seconds: 10}}`."""


class RocketConfig(Section):
    """A Rocket League task: cars, observation, actions, rewards, and how episodes begin and end."""

    simulator: Literal["warp", "rocketsim"] = "warp"
    """The physics. warp: ours, on all cores of a CPU, or on a GPU, where thousands of arenas (`env.count`) cost little more
    than hundreds. rocketsim: the community's C++ simulator, which ours follows, on as many cores as `env.workers`."""
    blue: Annotated[int, Field(ge=0, le=4)] = 1
    """Cars of team blue. All cars learn; each is a row."""
    orange: Annotated[int, Field(ge=0, le=4)] = 1
    """Cars of team orange."""
    hitbox: Literal["octane", "dominus", "plank", "breakout", "hybrid", "merc"] = "octane"
    """The body of all cars."""
    observation: Named = "advanced_obs_plus"
    """What a car sees: advanced_obs_plus, default_obs (RLGym's), or your own."""
    action: Named = "lookup_table"
    """How a car acts: lookup_table (90 choices), multi_discrete, continuous, or your own."""
    rewards: dict[str, float | dict[str, Any]] = {"goal": 10.0, "touch": 1.0}
    """What is rewarded, by name with a weight (`goal: 10`) or with options (`boost_pickup: {weight: 0.5, small: 0.2}`)."""
    reward_mode: Literal["dense", "sparse", "hybrid"] = "dense"
    """dense pays everything, sparse events only, hybrid events in full and the rest times `dense_scale`."""
    dense_scale: NonNegative = 0.1
    """hybrid: the factor of rewards that are not events."""
    team_spirit: Fraction = 0.0
    """0 pays each car what it earned, 1 the mean of its team. Raise it as team play begins to matter."""
    zero_sum: bool | Fraction = False
    """Subtract what the opponents earned on average. A number from 0 (false) to 1 (true) subtracts that share of it. A reward
    may have its own: `goal: {weight: 10, zero_sum: 1}`, which is best for goals, demos and boost; what cars earn for their
    approach to the ball would cancel out."""
    starts: dict[str, float | dict[str, Any]] = {"kickoff": 1.0}
    """How episodes begin, by name with a weight, or with options (`random: {weight: 2, ...}`)."""
    endings: dict[str, dict[str, Any]] = {"goal": {}, "no_touch": {"seconds": 30}, "time_out": {"seconds": 300}}
    """When episodes end, by name with options (`{}`: none)."""
    measures: list[Named] = []
    """Mechanics whose success is measured, by name or with options (`[turtle, {dribble: {seconds: 3}}]`): turtle, wall,
    air_dribble, flip_reset, jump_challenge, dribble, or your own. More: more metrics, and a little more time per step."""

    @model_validator(mode="after")
    def _somebody(self) -> RocketConfig:
        if self.blue + self.orange == 0:
            raise ValueError("env.rocket needs at least one car: set blue or orange")
        return self


class EnvConfig(Section):
    """Which environment, how many copies, where they run."""

    id: str | None = None
    """A Gymnasium id such as `CartPole-v1`."""
    factory: str | None = None
    """Your own environment instead of `id`: an import path `package.module:callable`, or `/folder/script.py:callable`, that
    returns a `gymnasium.Env`, an `rlgym.api.RLGym`, or an environment for rlgym-ppo; or, called once with the arguments `count`
    and `device`, a whole `VecEnv`. It may also name a subclass of `wavedash.envs.kinds.Kind`."""
    rocket: RocketConfig | None = None
    """Rocket League instead of `id`; `count` is then the number of arenas."""
    kwargs: dict[str, Any] = {}
    """Passed to the environment's constructor or factory; the options of a `Kind`."""
    wrappers: list[Named] = []
    """Gymnasium wrappers around each environment, the first one inside: names of gymnasium.wrappers, or import paths
    `module:Class`, with options as `{TimeLimit: {max_episode_steps: 200}}`."""
    frame_stack: Positive = 1
    """Latest observations that the policy sees together: vectors side by side, pictures as more channels. More: longer motion
    is visible, observations are larger. 1: only the newest."""
    count: Positive = 8
    """Environments stepped side by side (by each process, where torchrun starts several). More: larger rollouts, better use of
    vectorised inference, staler data per update."""
    workers: Annotated[int, Field(ge=0)] = 0
    """Worker processes; 0 steps all environments in the learner's process, which is fastest when a step takes microseconds. The
    simulator `warp` needs none: it uses all cores by itself."""
    groups: Positive = 2
    """With workers, or the simulator `warp` on a CPU: shards, one of which steps while the policy acts for another. More: less
    waiting for slow workers, smaller batches."""
    worker_timeout: Annotated[float, Field(gt=0)] = 10.0
    """Seconds without a sign of life after which a worker counts as hung and is restarted. Raise it for very slow steps."""

    @property
    def title(self) -> str:
        """The environment's name, for people."""
        return kind_of(self).describe(self)

    @model_validator(mode="after")
    def _goes_together(self) -> EnvConfig:
        kind_of(self).check(self)
        if wrong := [named for named in self.wrappers if isinstance(named, dict) and len(named) != 1]:
            raise ValueError(f"env.wrappers: each entry is one wrapper, a name or {{name: options}}, not {wrong[0]}")
        if self.workers and self.groups > self.workers:
            raise ValueError(f"env.groups={self.groups} needs at least as many env.workers (got {self.workers})")
        if self.workers > self.count:
            raise ValueError(f"env.workers={self.workers} leaves workers without an environment: env.count is {self.count}")
        return self


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
    minibatch_size: Positive = 64
    """Samples per gradient step (split evenly: 1,000 samples by 300 make four of 250), with several processes from each of
    them. Larger: faster, smoother."""
    keep_samples: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """The share of the samples that an update learns from: those with the largest advantages, positive or negative, after their
    normalisation over the whole batch (of sequences, those with the largest one inside; with several processes, of the samples
    of each). Less: fewer gradient steps, each on samples that teach more; critic and entropy bonus see these samples only.
    Inactive samples, such as cars that opponents drive, are left out first: where they are a tenth of all, 0.9 saves their
    time and changes nothing else."""
    accumulate: Positive = 1
    """Splits each minibatch into this many pieces whose gradients are summed: same result, less memory."""
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
    """How far an action's probability may move per update before its gradient is cut."""
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


class OpponentsConfig(Section):
    """The league of a run: in a share of the arenas the policy plays against others than its newest self."""

    share: Annotated[float, Field(gt=0, le=1)] = 0.2
    """The share of arenas in which one team is an opponent. More: forgets less of how to beat its past, learns from fewer
    cars, because nothing is learned from an opponent's."""
    slots: Positive = 8
    """Different opponents at the same time. Each has as many arenas as any other; they are inferred in one call. More: more
    variety, smaller batches for each."""
    members: list[str] = []
    """Opponents from elsewhere beside snapshots of this run: scripts (`chaser`), a class of your own as `module:Class`, a run,
    a checkpoint or a folder with a policy. Those with the networks and the task of this run take turns with its snapshots; all
    others get one slot for each script and for each kind of network."""
    snapshot_every: Positive = 25_000_000
    """Steps after which the policy is frozen as another opponent. After so many steps, a game counts half as much in the win
    rates. More: opponents differ more from each other."""
    pool: Annotated[int, Field(ge=2)] = 32
    """The most snapshots that are kept; they are thinned so that they span the whole run. More: a closer record of the past,
    more disk."""
    refresh_every: Positive = 20
    """Iterations after which it is drawn anew who has which slot. More: longer series of games against the same opponents."""
    strategy: Literal["uniform", "recent", "rating", "target_win_rate", "pfsp"] = "pfsp"
    """Whom to play against. uniform: all alike; recent: newer ones more often; rating: those of about the policy's rating;
    target_win_rate: those that it beats in about a `target` share of the games; pfsp: by the win rate x, either x (1 - x), or
    (1 - x)^power, the hardest most often."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """Above 1 the strategy's preferences are evened out, below 1 they are sharpened."""
    decay: Annotated[float, Field(gt=0, le=1)] = 0.8
    """recent: how likely an opponent is compared with the next newer one. Higher: older ones more often."""
    window: Annotated[float, Field(gt=0)] = 200.0
    """rating: an opponent so many Elo points away is 0.6 times as likely as an equal one. Higher: a wider choice."""
    target: Fraction = 0.6
    """target_win_rate: the share of points against the opponents that are preferred. Higher: easier ones."""
    width: Annotated[float, Field(gt=0)] = 0.15
    """target_win_rate: an opponent whose share is so far off is 0.6 times as likely. Higher: a wider choice."""
    power: NonNegative | None = None
    """pfsp: the power of (1 - x)^power; x (1 - x) when not set. Higher: the hardest opponents more often."""
    deterministic: bool = False
    """Opponents take their most likely action instead of sampling as in training."""
    prune_above: Fraction = 0.98
    """A snapshot is dropped once the policy takes more than this share of the points from it. Lower: fewer easy games, and a
    pool that forgets the early run. 1: none is dropped."""
    prune_games: Positive = 500
    """The fewest recent games before a snapshot is dropped. More: fewer mistakes."""


class RatingConfig(Section):
    """Rating while training: now and then the policy plays a panel of players that never change. Every game is a row of
    `games.csv` in the run folder. The training itself is the same with and without it, bit for bit."""

    every: Positive = 1_000_000
    """Steps between ratings. The last one is at the end of the run, unless that is shorter than this. More: fewer points of the
    curve, less time."""
    panel: list[str] = ["chaser", "defender"]
    """The players, as after `wavedash match`: scripts, a run, a checkpoint, a folder with a policy, `module:Class`. The chaser
    must be one of them: by definition it has 1000 Elo points, which makes ratings of all runs comparable. A player that always
    loses, or always wins, tells little: add trained policies as the bot gets better."""
    snapshots: bool = True
    """With opponents: play also against the oldest and the newest snapshot of the run's league."""
    games: Annotated[int, Field(ge=2)] = 32
    """Games against each of them, half of them as blue. Four times as many: half the uncertainty, up to four times the time on
    a CPU, little more on a GPU."""
    seconds: Annotated[float, Field(gt=0)] = 60.0
    """A game without a goal ends as a draw after so many seconds. More: fewer draws, more time."""
    reference: list[str] = ["shipped"]
    """Games between players of the panel that count for the rating too, so that it is known better. shipped: those of the
    scripts, the champions and other fixed players that come with the package (games of 60 seconds); else the path of a
    games.csv. More: narrower intervals. []: only the games of this run."""
    simulator: Literal["warp", "rocketsim"] | None = None
    """The simulator that is played in; the one of the training when not set."""
    most: Annotated[float, Field(gt=0, le=1)] = 0.03
    """The largest share of the run's time that ratings may take. Where they would take more, the steps between them become
    more than `every`; the last rating is played in any case. 1: no limit."""

    @model_validator(mode="after")
    def _anchored(self) -> RatingConfig:
        if "chaser" not in [name.lower() for name in self.panel]:
            raise ValueError("rating.panel needs chaser, whose 1000 points fix the scale of all ratings")
        return self


class CheckpointConfig(Section):
    """What is kept of a run."""

    every: Positive = 100_000
    """Steps between checkpoints. More often: less lost by a crash, more disk writes."""
    keep: Positive = 5
    """How many of the newest checkpoints stay."""
    spaced_every: Positive | None = None
    """Steps between checkpoints that are kept for ever, evenly over the run; off when not set."""
    best_by: Literal["return", "rating"] = "return"
    """What `best` is chosen by. return: the mean return of recent episodes, which says little where the policy plays against
    itself. rating: the lower end of the rating's 95 % interval, so that luck in a few games does not count; only states that
    were rated (see `rating`) are considered."""
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
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Precision of the networks' arithmetic; weights and optimiser stay fp32. bf16 is faster on GPUs with tensor cores; fp16 is
    for older ones, with a loss scale that adapts itself."""
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
    opponents: OpponentsConfig | None = None
    """Opponents other than the newest self, for env.rocket with two teams; none when not set. `opponents={}`: the defaults."""
    rating: RatingConfig | None = None
    """Ratings while training, for env.rocket with two equal teams; none when not set. `rating={}`: with the defaults."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    milestones: MilestonesConfig | None = None
    """Versions that are kept for ever; none when not set. `milestones={}`: one every 10 million steps."""
    report: ReportConfig = ReportConfig()

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
    def _somebody_to_play_against(self) -> RunConfig:
        if self.opponents is not None:
            kind_of(self.env).check_opponents(self.env)
        return self

    @model_validator(mode="after")
    def _rated(self) -> RunConfig:
        if self.rating is not None:
            kind_of(self.env).check_rating(self.env)
        elif self.checkpoint.best_by == "rating":
            raise ValueError("checkpoint.best_by=rating needs ratings: add `rating: {}`, or leave best_by at return")
        return self
