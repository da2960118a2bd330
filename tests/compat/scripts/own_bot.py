"""A script for rlgym-ppo, as people write them, run as it is: it knows nothing of Wavedash. Small, so that it ends soon.

It looks for its newest checkpoint itself, keeps more in its book-keeping, anneals the entropy bonus from its logger, and uses
what it finds in the Learner afterwards.
"""
import json
import os

import numpy as np
from parts_of_bot import ROOM, Walk
from rlgym_ppo import Learner
from rlgym_ppo.ppo import DiscreteFF
from rlgym_ppo.util import KBHit, MetricsLogger, WelfordRunningStat

FOLDER = "data/checkpoints/bot"


def build_env():
    return Walk(ROOM)


class Anneal(MetricsLogger):
    learner = None

    def _collect_metrics(self, game_state):
        return [game_state.place, np.asarray([1.0, 2.0])]

    def report_metrics(self, collected_metrics, wandb_run, cumulative_timesteps):
        self.learner.ppo_learner.ent_coef *= 0.5
        print("METRICS", len(collected_metrics), collected_metrics[0].tolist()[-2:])


def newest():
    try:
        return os.path.join(FOLDER, str(max(os.listdir(FOLDER), key=lambda name: int(name))))
    except Exception:
        return None


if __name__ == "__main__":
    logger = Anneal()
    found = newest()
    print("FOUND", found)
    learner = Learner(build_env, metrics_logger=logger, n_proc=1, ts_per_iteration=50, ppo_batch_size=50, exp_buffer_size=50,
                      policy_layer_sizes=(16,), critic_layer_sizes=(16,), ppo_epochs=1, standardize_obs=False, device="cpu",
                      save_every_ts=100, checkpoints_save_folder=FOLDER, add_unix_timestamp=False,
                      checkpoint_load_folder=found, timestep_limit=150 if found is None else 300)
    logger.learner = learner
    original = learner.save

    def save(timesteps):
        original(timesteps)
        path = os.path.join(learner.checkpoints_save_folder, str(timesteps), "BOOK_KEEPING_VARS.json")
        with open(path) as file:
            book = json.load(file)
        with open(path, "w") as file:
            json.dump({**book, "curriculum": "corner"}, file)
        print("SAVED", timesteps)

    learner.save = save
    learner.learn()
    assert learner.agent.cumulative_timesteps >= learner.timestep_limit
    stats = WelfordRunningStat(1)
    stats.from_json(learner.return_stats.to_json())
    alone = DiscreteFF(2, 2, (16,), "cpu")
    alone.load_state_dict(learner.ppo_learner.policy.state_dict())
    print("TRAINED", learner.epoch, learner.ppo_learner.ent_coef, bool(stats.std[0] > 0), KBHit().kbhit())
