"""Advice names the stage that takes most of an iteration, the reason, and settings that would make it shorter."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from wavedash.config import RunConfig
from wavedash.envs.kinds import kind_of

ROUND_TRIP = 0.4e-3
"""Seconds that a step needs to go to worker processes and back: an estimate for two slow cores"""
OVERHEAD_BOUND = 0.3
"""Below this share of the device's speed in large matrix products, overhead costs more than arithmetic."""
TOO_SMALL_FOR_A_GPU = 0.01
SAME_SAMPLES = "(divide ppo.rollout_steps by 4 to learn from as many samples as now)"


@dataclass(frozen=True)
class Facts:
    """The measurements that advice is based on."""

    config: RunConfig
    share: Mapping[str, float]
    """The share of each part (env, inference, gae, update, other) in the time of an iteration"""
    step_seconds: float
    """Seconds of one step of all rows in the environment alone"""
    efficiency: Mapping[str, float]
    """The arithmetic of inference and update as a share of what the device could do in that time"""
    rows: int
    """The number of rows that the policy acts for in one call"""
    samples: int
    """The number of samples that an update learns from"""
    cores: int
    threads: int
    cuda: bool = False
    capturable: bool = False
    """Whether the environment lives on the GPU, and collection can be a CUDA graph"""
    gpu_busy: float | None = None
    busy_cores: float = 1.0
    """The number of cores that the learner's process kept busy"""


class Suggestion(NamedTuple):
    """Settings to try, as on the command line."""

    settings: str
    why: str


@dataclass(frozen=True)
class Advice:
    """The bottleneck of an iteration, and what to do about it, the best suggestion first."""

    bottleneck: str
    because: str
    suggestions: list[Suggestion]

    def __str__(self) -> str:
        return f"bottleneck: {self.bottleneck}, because {self.because}"


def advise(facts: Facts) -> Advice:
    bottleneck = max(facts.share, key=facts.share.__getitem__)
    suggestions, because = RULES[bottleneck]
    reason = f"it takes {facts.share[bottleneck]:.0%} of an iteration: {because(facts)}"
    if facts.gpu_busy is not None:
        reason += f"; the GPU computes {facts.gpu_busy:.0%} of the time"
    if not facts.cuda and facts.share["env"] < 0.5 and facts.busy_cores < 0.7:  # it had nothing to wait for
        reason += f"; the learner had {facts.busy_cores:.2f} of a core, so other programs slow it down"
    return Advice(bottleneck, reason, list(suggestions(facts)))


def _env(facts: Facts) -> Iterator[Suggestion]:
    env, cores = facts.config.env, facts.cores
    if facts.capturable:
        yield from _capture_collection(facts)
        yield Suggestion(f"env.count={2 * env.count}", "a kernel costs little more for more rows, until the GPU is full")
        return
    if not kind_of(env).takes_workers(env):
        return  # it uses all cores already, or cannot use workers
    wanted = min(cores, env.count)
    if env.workers < wanted and (env.workers or _workers_pay(facts.step_seconds, wanted)):
        yield Suggestion(_on_cores(facts, wanted), f"environments step on {wanted} cores while the policy acts for others")
    elif env.workers == 0 and cores > 1 and _workers_pay(4 * facts.step_seconds, min(cores, 4 * env.count)):
        yield Suggestion(f"env.count={4 * env.count} {_on_cores(facts, min(cores, 4 * env.count))}",
                         f"a step is too short to be worth a trip to a worker; for so many rows it is {SAME_SAMPLES}")
    elif 0 < env.workers == env.count < cores:
        yield Suggestion(f"env.count={cores} env.workers={cores}", f"{cores - env.workers} core(s) have nothing to step")
    elif env.workers and facts.step_seconds < 4 * ROUND_TRIP:
        yield Suggestion(f"env.count={2 * env.count}", "a trip to the workers and back costs the same for more rows")
    if env.workers > 1 and env.groups == 1 and facts.share["inference"] > 0.1:
        yield Suggestion("env.groups=2", "one half steps while the policy acts for the other")


def _on_cores(facts: Facts, workers: int) -> str:
    groups = f" env.groups={workers}" if facts.config.env.groups > workers else ""
    return f"env.workers={workers}{groups}"


def _workers_pay(step_seconds: float, workers: int) -> bool:
    return workers > 1 and step_seconds / workers + ROUND_TRIP < 0.9 * step_seconds


def _inference(facts: Facts) -> Iterator[Suggestion]:
    yield from _capture_collection(facts)
    if facts.efficiency["inference"] < OVERHEAD_BOUND:
        yield Suggestion(f"env.count={4 * facts.config.env.count}",
                         f"a call of the policy costs little more for more rows than {facts.rows} {SAME_SAMPLES}")
        yield from _off_the_gpu(facts, "inference")
    else:
        yield from _faster_arithmetic(facts)


def _update(facts: Facts) -> Iterator[Suggestion]:
    config = facts.config
    if facts.cuda and not config.graphs:
        yield Suggestion("graphs=true", "a minibatch is one CUDA graph, without the cost of launching each operation")
    size = config.ppo.minibatch_size
    if facts.efficiency["update"] < OVERHEAD_BOUND:
        if size < facts.samples:
            yield Suggestion(f"ppo.minibatch_size={min(4 * size, facts.samples)}",
                             "fewer and larger gradient steps; watch that it learns as well")
        else:
            yield Suggestion(f"env.count={2 * config.env.count} ppo.minibatch_size={2 * size}",
                             "a gradient step costs little more for more samples; watch that it learns as well")
        yield from _off_the_gpu(facts, "update")
    else:
        yield from _faster_arithmetic(facts)
    if facts.cuda and not config.compile and config.policy.memory.kind == "none":
        yield Suggestion("compile=true", "operations are fused, after a minute of compiling")
    if config.ppo.epochs > 1:
        yield Suggestion(f"ppo.epochs={config.ppo.epochs // 2}", "half the work for each sample; it may need more samples")


def _gae(facts: Facts) -> Iterator[Suggestion]:
    yield from _capture_collection(facts)
    steps, count, length = facts.config.ppo.rollout_steps, facts.config.env.count, facts.config.policy.memory
    if steps % 2 == 0 and (length.kind == "none" or (steps // 2) % length.sequence == 0):
        yield Suggestion(f"env.count={2 * count} ppo.rollout_steps={steps // 2}",
                         "it goes through a rollout step by step, whatever the number of rows")


def _other(facts: Facts) -> Iterator[Suggestion]:
    steps = facts.config.ppo.rollout_steps
    yield Suggestion(f"ppo.rollout_steps={2 * steps}", "metrics are read and reported once an iteration, however long it is")


def _capture_collection(facts: Facts) -> Iterator[Suggestion]:
    if facts.cuda and facts.capturable and not facts.config.graphs:
        yield Suggestion("graphs=true", "collection is one CUDA graph, without the cost of launching each operation")


def _faster_arithmetic(facts: Facts) -> Iterator[Suggestion]:
    if facts.cuda and facts.config.precision == "fp32":
        yield Suggestion("precision=bf16", "tensor cores compute several times as fast")
    if not facts.cuda and facts.threads < facts.cores:
        yield Suggestion(f"threads={facts.cores}", f"matrix products are large enough for {facts.cores} cores")


def _off_the_gpu(facts: Facts, stage: str) -> Iterator[Suggestion]:
    if facts.cuda and not facts.capturable and facts.efficiency[stage] < TOO_SMALL_FOR_A_GPU:
        yield Suggestion("device=cpu", "launching so little work costs more than doing it on the CPU")


def _why_env(facts: Facts) -> str:
    where = f"by {facts.config.env.workers} worker(s)" if facts.config.env.workers else "in the learner's process"
    if facts.capturable:
        where = "on the GPU"
    return f"a step of all rows takes {1e3 * facts.step_seconds:.2g} ms {where}"


def _why_inference(facts: Facts) -> str:
    return f"calls for {facts.rows} rows each, at {_speed(facts.efficiency['inference'])}"


def _why_update(facts: Facts) -> str:
    ppo = facts.config.ppo
    size = min(ppo.minibatch_size, facts.samples)
    steps = ppo.epochs * -(-facts.samples // size)
    return f"{steps} gradient step(s) of {size} samples, at {_speed(facts.efficiency['update'])}"


def _speed(efficiency: float) -> str:
    bound = ", so overhead counts and not arithmetic" if efficiency < OVERHEAD_BOUND else ", so arithmetic counts"
    return f"{efficiency:.1%} of the device's speed in large matrix products{bound}"


Rule = tuple[Callable[[Facts], Iterator[Suggestion]], Callable[[Facts], str]]
RULES: dict[str, Rule] = {
    "env": (_env, _why_env),
    "inference": (_inference, _why_inference),
    "gae": (_gae, lambda facts: f"{facts.config.ppo.rollout_steps} steps, one after the other"),
    "update": (_update, _why_update),
    "other": (_other, lambda facts: "reading metrics, schedules and whatever surrounds the stages"),
}
