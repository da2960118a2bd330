"""A small script as people write it for rlgym-ppo, with our import: `python rlgym_v2_example.py`."""


def build_env():
    import numpy as np
    from rlgym.api import RLGym
    from rlgym.rocket_league import common_values
    from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
    from rlgym.rocket_league.done_conditions import GoalCondition, NoTouchTimeoutCondition
    from rlgym.rocket_league.obs_builders import DefaultObs
    from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward
    from rlgym.rocket_league.sim import RocketSimEngine
    from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

    from wavedash.compat.rlgym_ppo.util import RLGymV2GymWrapper

    positions = np.asarray([1 / common_values.SIDE_WALL_X, 1 / common_values.BACK_NET_Y, 1 / common_values.CEILING_Z])
    env = RLGym(
        state_mutator=MutatorSequence(FixedTeamSizeMutator(blue_size=1, orange_size=1), KickoffMutator()),
        obs_builder=DefaultObs(zero_padding=None, pos_coef=positions, ang_coef=1 / np.pi,
                               lin_vel_coef=1 / common_values.CAR_MAX_SPEED, ang_vel_coef=1 / common_values.CAR_MAX_ANG_VEL),
        action_parser=RepeatAction(LookupTableAction(), repeats=8),
        reward_fn=CombinedReward((GoalReward(), 10), (TouchReward(), 0.1)),
        transition_engine=RocketSimEngine(),
        termination_cond=GoalCondition(),
        truncation_cond=NoTouchTimeoutCondition(timeout_seconds=1),
    )
    return RLGymV2GymWrapper(env)


if __name__ == "__main__":
    from wavedash.compat.rlgym_ppo import Learner

    n_proc = 2
    learner = Learner(build_env,
                      n_proc=n_proc,
                      min_inference_size=max(1, round(n_proc * 0.9)),
                      metrics_logger=None,
                      policy_layer_sizes=(32, 32),
                      critic_layer_sizes=(32, 32),
                      ppo_batch_size=200,
                      ts_per_iteration=200,
                      exp_buffer_size=600,
                      ppo_minibatch_size=100,
                      ppo_ent_coef=0.001,
                      ppo_epochs=1,
                      standardize_returns=True,
                      standardize_obs=False,
                      save_every_ts=400,
                      timestep_limit=1_000,
                      log_to_wandb=False)
    learner.learn()
