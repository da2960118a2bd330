"""A script that starts as soon as it is imported."""
from parts_of_bot import Walk
from rlgym_ppo import Learner


def build_env():
    return Walk(3)


Learner(build_env, n_proc=1, ts_per_iteration=20, ppo_batch_size=20, exp_buffer_size=20, policy_layer_sizes=(4,),
        critic_layer_sizes=(4,), ppo_epochs=1, standardize_obs=False, standardize_returns=False, device="cpu",
        timestep_limit=20).learn()
