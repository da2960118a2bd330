"""What the peers of `wavedash bench rocket` run: RLGym's own environment, and two trainers on top of it.

    python rocket_peers.py CONTESTANT SIZES        (SIZES: the fields of `Sizes`, as JSON)

It imports nothing of Wavedash, because a peer may need another Python environment. Every contestant prints a mark, the number
of agent steps so far, again and again, and ends by itself.
"""
from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

MARK = "agent steps:"


@dataclass(frozen=True)
class Sizes:
    """Sizes of a contest, equal for all trainers except the numbers of arenas and processes, which suit each of them."""

    arenas: int
    processes: int
    """Processes of environments; the peers have one arena in each."""
    steps: int
    """Agent steps of an iteration."""
    epochs: int
    minibatch: int
    hidden: list[int]
    """Sizes of the layers of the actor, and of the critic."""
    threads: int
    """Threads of torch while it learns. While it collects it has one, because environments need the cores."""
    marks: int
    """Marks that a contestant prints: one after every iteration."""
    tick_skip: int = 8
    no_touch: float = 30.0
    time_out: float = 300.0
    goal: float = 10.0
    touch: float = 0.1
    simulator: Literal["warp", "rocketsim"] = "warp"
    """The simulator of our contestants."""


def say(steps: int) -> None:
    print(MARK, steps, flush=True)


def step_on(step: Callable[[], int], marks: int) -> None:
    """Print a mark about every second. `step` does some agent steps and returns how many."""
    done = 0
    for _ in range(marks):
        began = perf_counter()
        while perf_counter() - began < 1.0:
            done += step()
        say(done)


def rlgym_env(sizes: Sizes) -> Any:
    """RLGym's 1v1 from kick-offs, with `DefaultObs`, the lookup table, and rewards for goals and touches."""
    from rlgym.api import RLGym
    from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
    from rlgym.rocket_league.done_conditions import AnyCondition, GoalCondition, NoTouchTimeoutCondition, TimeoutCondition
    from rlgym.rocket_league.obs_builders import DefaultObs
    from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward
    from rlgym.rocket_league.sim import RocketSimEngine
    from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

    return RLGym(
        state_mutator=MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator()),
        obs_builder=DefaultObs(zero_padding=None),
        action_parser=RepeatAction(LookupTableAction(), sizes.tick_skip),
        reward_fn=CombinedReward((GoalReward(), sizes.goal), (TouchReward(), sizes.touch)),
        transition_engine=RocketSimEngine(),
        termination_cond=GoalCondition(),
        truncation_cond=AnyCondition(NoTouchTimeoutCondition(sizes.no_touch), TimeoutCondition(sizes.time_out)),
    )


def step_rlgym(sizes: Sizes) -> None:
    import numpy as np

    env, dice = rlgym_env(sizes), np.random.default_rng(0)
    env.reset()

    def step() -> int:
        _, _, terminated, truncated = env.step({agent: dice.integers(90, size=1) for agent in env.agents})
        if any(terminated.values()) or any(truncated.values()):
            env.reset()
        return len(terminated)

    step_on(step, sizes.marks)


def train_rlgym_learn(sizes: Sizes) -> None:
    import numpy as np
    import torch
    from rlgym_learn import (
        BaseConfigModel,
        LearningCoordinator,
        LearningCoordinatorConfigModel,
        ProcessConfigModel,
        SerdeTypesModel,
    )
    from rlgym_learn.pyany_serde import NumpySerdeConfig, PyAnySerdeType
    from rlgym_learn_algos.ppo import (
        BasicCritic,
        DiscreteFF,
        ExperienceBufferConfigModel,
        GAETrajectoryProcessor,
        GAETrajectoryProcessorConfigModel,
        NumpyExperienceBuffer,
        PPOAgentController,
        PPOAgentControllerConfigModel,
        PPOLearnerConfigModel,
        SeparateActorCritic,
        experience_buffer,
    )

    class Marked(PPOAgentController):  # type: ignore[misc, unused-ignore]
        def _learn(self) -> None:
            torch.set_num_threads(sizes.threads)
            super()._learn()
            torch.set_num_threads(1)
            say(self.cumulative_timesteps)

    class Unpinned(experience_buffer.TensorCircularBuffer):  # type: ignore[misc, unused-ignore]
        """Their buffer without page-locked memory, which a machine without a GPU does not have."""

        def __init__(self, capacity: int, device: Any, pin_memory: bool, forced_dtype: Any) -> None:
            super().__init__(capacity, device, False, forced_dtype)

    def networks(obs_space: Any, action_space: Any, dtype: Any, device: Any, name: Any) -> Any:
        layers = tuple(sizes.hidden)
        return SeparateActorCritic(DiscreteFF(obs_space[1], action_space[1], layers, dtype, device),
                                   BasicCritic(obs_space[1], layers, dtype, device))

    def optimizers(both: Any, options: Any, name: Any) -> list[Any]:
        return [torch.optim.Adam(both.actor.parameters(), **options["actor"]),
                torch.optim.Adam(both.critic.parameters(), **options["critic"])]

    torch.set_num_threads(1)
    experience_buffer.TensorCircularBuffer = Unpinned
    space = PyAnySerdeType.TUPLE((PyAnySerdeType.STRING(), PyAnySerdeType.INT()))
    config = LearningCoordinatorConfigModel(
        base_config=BaseConfigModel(
            serde_types=SerdeTypesModel(
                agent_id_serde_type=PyAnySerdeType.STRING(), reward_serde_type=PyAnySerdeType.FLOAT(),
                obs_serde_type=PyAnySerdeType.NUMPY(
                    np.float64, NumpySerdeConfig.STATIC((92,), allocation_pool_warning_size=None)),  # a warning costs seconds
                action_serde_type=PyAnySerdeType.NUMPY(np.int64, NumpySerdeConfig.STATIC((1,))),
                obs_space_serde_type=space, action_space_serde_type=space,
            ),
            timestep_limit=sizes.marks * (sizes.steps + 2 * sizes.processes),
        ),
        process_config=ProcessConfigModel(n_proc=sizes.processes),
        agent_controller_config=PPOAgentControllerConfigModel(
            timesteps_per_iteration=sizes.steps, save_every_ts=10**12,
            learner_config=PPOLearnerConfigModel(n_epochs=sizes.epochs, batch_size=sizes.minibatch, device="cpu"),
            experience_buffer_config=ExperienceBufferConfigModel(
                max_size=sizes.steps,
                trajectory_processor_config=GAETrajectoryProcessorConfigModel(standardize_rewards=False, reward_clip=None),
            ),
        ),
    )
    coordinator = LearningCoordinator(
        env_create_function=EnvFactory(sizes), config=config,
        agent_controller=Marked(networks, optimizers, NumpyExperienceBuffer(GAETrajectoryProcessor())),
    )
    coordinator.start()


def train_rlgym_ppo(sizes: Sizes) -> None:
    import torch
    from rlgym_ppo import Learner, learner

    class NoKeyboard:
        """Replaces their reader of the keyboard, which needs a terminal."""

        def kbhit(self) -> bool:
            return False

    torch.set_num_threads(1)
    learner.KBHit = NoKeyboard
    whole = Learner(
        EnvFactory(sizes, wrapped=True), n_proc=sizes.processes, min_inference_size=max(1, round(0.9 * sizes.processes)),
        timestep_limit=sizes.marks * sizes.steps, exp_buffer_size=sizes.steps, ts_per_iteration=sizes.steps,
        policy_layer_sizes=sizes.hidden, critic_layer_sizes=sizes.hidden, ppo_epochs=sizes.epochs,
        ppo_batch_size=sizes.minibatch, standardize_returns=False, standardize_obs=False, save_every_ts=10**12,
        checkpoint_load_folder=None, device="cpu",
    )
    add, update = whole.add_new_experience, whole.ppo_learner.learn

    def add_marked(experience: Any) -> None:
        torch.set_num_threads(sizes.threads)
        add(experience)

    def update_marked(experience: Any) -> Any:
        report = update(experience)
        torch.set_num_threads(1)
        say(whole.agent.cumulative_timesteps)
        return report

    whole.add_new_experience, whole.ppo_learner.learn = add_marked, update_marked
    whole.learn()


@dataclass(frozen=True)
class EnvFactory:
    """Makes the environment of a process of a peer.

    The process gets the lowest priority, so that the learner runs first: rlgym-learn 2.0.0 loses an answer that comes before it
    listens, and then waits five seconds.
    """

    sizes: Sizes
    wrapped: bool = False
    """Whether it has the interface that rlgym-ppo takes."""

    def __call__(self) -> Any:
        if hasattr(os, "SCHED_IDLE"):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        env = rlgym_env(self.sizes)
        if not self.wrapped:
            return env
        from rlgym_ppo.util import RLGymV2GymWrapper

        return RLGymV2GymWrapper(env)


CONTESTANTS = {contestant.__name__: contestant for contestant in (step_rlgym, train_rlgym_learn, train_rlgym_ppo)}

if __name__ == "__main__":
    CONTESTANTS[sys.argv[1]](Sizes(**json.loads(sys.argv[2])))
