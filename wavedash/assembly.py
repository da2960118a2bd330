"""Environment, policy and learner of a run, made from its configuration, fresh or from a checkpoint."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.curriculum.curriculum import Curriculum
from wavedash.curriculum.plan import Plan
from wavedash.curriculum.state import saved_phase
from wavedash.distill.begin import begin_as_teacher
from wavedash.distill.loss import DistillLoss
from wavedash.distill.source import TeacherCopy, find_teacher
from wavedash.distill.teacher import Teacher, check_fits
from wavedash.envs.kinds import Spaces, kind_of
from wavedash.envs.make import make_env
from wavedash.envs.vec_env import VecEnv
from wavedash.imitate.prior import FadingPrior, Prior, PriorLoss, find_prior
from wavedash.imitate.source import imitation
from wavedash.memory.choice import explained_shortage, resolved
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner import PRECISIONS, Learner
from wavedash.ppo.listener import Listener
from wavedash.ppo.loss import Loss
from wavedash.ppo.rank_state import StateTensors
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.preflight import usable_device
from wavedash.runs.compatible import changes, check_compatible
from wavedash.runs.content import reading
from wavedash.runs.find import Found
from wavedash.runs.policy_copy import FoundPolicy
from wavedash.seeding import stream_seed
from wavedash.threads import decide_threads, give_torch

if TYPE_CHECKING:
    from wavedash.league.league import League
    from wavedash.league.seating import Guest

RankState = tuple[Path, RunConfig, StateTensors, dict[str, Any]]
"""The state from which a rank goes on: run folder, configuration, tensors, plain values"""


@contextmanager
def restored(saved: RankState, ranks: Ranks = ALONE, found: Found | None = None,
             listeners: Sequence[Listener] = (), trust: bool = False,
             again: bool = False) -> Iterator[tuple[Learner, Curriculum]]:
    """Does what `assembled` does, and loads the state that was saved. The curriculum holds the configuration of the run.
    `again`: the run goes on with other environments, as planned."""
    run, config, tensors, state = saved
    with reading(None if found is None else found.checkpoint):
        curriculum = Curriculum(config, saved_phase(state))
    # The first iteration has the settings of step 0, whatever was measured before it.
    settings = curriculum.settings(state["steps"] if state["iteration"] else 0)
    guests, guides = find_guests(settings, run, trust), find_guides(settings, run, ranks, trust)
    with assembled(settings, ranks, listeners, guests, decided=True, guides=guides) as learner:
        changed = [] if found is None else changes(load_config(str(found.config)), config).values()
        with reading(None if found is None else found.checkpoint):
            check_compatible(state["fingerprint"], learner.fingerprint(), changed)
            learner.load_state(tensors, state, planned=again)
        yield learner, curriculum


@contextmanager
def assembled(config: RunConfig, ranks: Ranks = ALONE, listeners: Sequence[Listener] = (),
              guests: Sequence[Guest] | None = None, decided: bool = False, guides: Guides | None = None) -> Iterator[Learner]:
    """Makes environment, policy and learner as configured, of a configuration with phases as the first one has it; the
    environment is closed at the end. `guests` are the opponents from elsewhere, and `guides` the frozen policies that the loss
    needs, if they were looked up already. The learner's configuration has numbers instead of `auto`; what the machine decides
    of a new run is left as it is if it is `decided`."""
    config = Plan(config).stages()[0]
    device = prepare_torch(config, ranks)
    ranks.set_device(device)
    config = resolved(config, device, ranks, decided)
    league = None if config.opponents is None else _league(config, device, ranks, guests)
    guides = find_guides(config, ranks=ranks) if guides is None else guides
    own: list[Listener] = [] if league is None else [league]
    with explained_shortage(config, device):
        env, loss, told = _sources(config, device, ranks, league, guides)
        try:
            yield Learner(env, _student(env, config, guides.teacher), config, [*listeners, *own, *told], ranks, loss)
        finally:
            env.close()


def _sources(config: RunConfig, device: torch.device, ranks: Ranks, league: League | None,
             guides: Guides) -> tuple[VecEnv, Loss | None, list[Listener]]:
    """Makes what rollouts are collected from, the loss (None: PPO's) and the listeners that belong to it."""
    if config.imitate is not None:
        return imitation(config, device, ranks)
    env = make_env(config.env, device, None if league is None else league.seating.line_up)
    try:
        if guides.teacher is not None:
            return env, _distillation(config, guides.teacher, env), [TeacherCopy(guides.teacher)]
        if guides.prior is not None:
            loss = PriorLoss(Prior(_frozen(config, guides.prior, env)), config.ppo, device)
            return env, loss, [FadingPrior(guides.prior, loss)]
        return env, None, []
    except BaseException:
        env.close()
        raise


class Guides(NamedTuple):
    """Frozen policies that the loss of a run needs."""

    teacher: FoundPolicy | None = None
    prior: FoundPolicy | None = None


def find_guides(config: RunConfig, run: Path | None = None, ranks: Ranks = ALONE, trust: bool = False) -> Guides:
    """Reads the frozen policies that a configuration asks for; in a run that is resumed, their copies in its folder `run`."""
    return Guides(find_teacher(config, run, ranks, trust), find_prior(config, run, ranks, trust))


def find_guests(config: RunConfig, run: Path | None, trust: bool) -> list[Guest] | None:
    """Looks up the opponents from elsewhere that a run names. Rocket League is imported only where a run needs it."""
    if config.opponents is None:
        return None
    from wavedash.league.league import FOLDER
    from wavedash.league.seating import invited

    return invited(config, None if run is None else run / FOLDER, trust)


def _league(config: RunConfig, device: torch.device, ranks: Ranks, guests: Sequence[Guest] | None) -> League:
    """Makes the listener that decides who plays against the policy, and the slots that they play in."""
    from wavedash.league.league import League
    from wavedash.league.seating import Seating

    policy = make_policy(kind_of(config.env).spaces(config.env, device), config)
    policy.precision = PRECISIONS.get(config.precision)
    guests = (find_guests(config, None, trust=False) or []) if guests is None else guests
    return League(Seating(config, policy, guests, ranks.rank), config)


def _distillation(config: RunConfig, teacher: FoundPolicy, env: VecEnv) -> DistillLoss:
    """Makes the loss of a run that learns from a teacher. UserError: the teacher does not fit the environment."""
    assert config.distill is not None
    check_fits(teacher.policy, Spaces(env.observation_space, env.action_space), teacher.asked)
    return DistillLoss(Teacher(_frozen(config, teacher, env)), config.distill, config.ppo)


def _student(env: VecEnv, config: RunConfig, teacher: FoundPolicy | None) -> ActorCritic:
    """Makes the policy that learns. UserError: it is to begin as a teacher that it is not like."""
    policy = make_policy(env, config)
    if teacher is not None and config.distill is not None and config.distill.begin_as_teacher:
        begin_as_teacher(policy, teacher.policy, teacher.asked)
    return policy


def _frozen(config: RunConfig, found: FoundPolicy, env: VecEnv) -> ActorCritic:
    """Returns a policy that says what it would do in the environment of the run, with the run's precision."""
    policy = found.policy.to(env.device)
    policy.precision = PRECISIONS.get(config.precision)
    return policy


def prepare_torch(config: RunConfig, ranks: Ranks = ALONE) -> torch.device:
    """Returns the device, after setting torch up for it."""
    device = usable_device(config, ranks)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # CUDA graphs and NCCL use the current one
    decide_threads(config.threads, ranks.local_size)
    give_torch(1)  # large matrices get more when they are computed
    if config.deterministic or torch.are_deterministic_algorithms_enabled():  # the call imports torch's compiler: 1.6 seconds
        torch.use_deterministic_algorithms(config.deterministic)
    return device


def make_policy(env: VecEnv | Spaces, config: RunConfig) -> ActorCritic:
    """Makes the policy with initial weights that follow from the seed."""
    give_torch(1)  # with more threads the same seed gives orthogonal weights whose last bits differ
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(config.seed, "weights"))
        normalize_obs = config.ppo.obs_clip if config.ppo.normalize_obs else None
        return ActorCritic(env.observation_space, env.action_space, config.policy, normalize_obs)
