"""What scripts replace or set on a Learner while it runs counts, or is refused."""
from __future__ import annotations

import copy
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import LambdaLR

from tests.compat.gym_envs import Looks, Match, two_players
from tests.compat.learners import SMALL, small_learner
from wavedash.compat.rlgym_ppo import Learner, MetricsLogger
from wavedash.compat.rlgym_ppo import learner as learner_module
from wavedash.compat.rlgym_ppo.batched_agents import BatchedAgentManager
from wavedash.compat.rlgym_ppo.ppo import DiscreteFF, PPOLearner
from wavedash.errors import UserError

pytestmark = pytest.mark.slow

PLAIN = {"standardize_obs": False, "standardize_returns": False}


def test_a_users_own_save_is_called_whenever_one_is_due_and_at_the_end(tmp_path):
    """Scripts that write more into the folder assign it; it finds there what the save before it wrote."""
    saved = []
    with small_learner(tmp_path, timestep_limit=160, save_every_ts=80, add_unix_timestamp=False, **PLAIN) as learner:
        original = learner.save

        def save(cumulative_timesteps):
            original(cumulative_timesteps)
            book = Path(learner.checkpoints_save_folder) / str(cumulative_timesteps) / "BOOK_KEEPING_VARS.json"
            book.write_text(json.dumps({**json.loads(book.read_text()), "curriculum": 3}))
            saved.append(cumulative_timesteps)

        learner.save = save
        learner.timestep_limit = 200
        learner.learn()
    assert saved == [80, 160, 200]
    assert json.loads((tmp_path / "bot" / "200" / "BOOK_KEEPING_VARS.json").read_text())["curriculum"] == 3


def test_methods_of_a_subclass_are_called(tmp_path):
    calls = []

    class Mine(Learner):
        def save(self, cumulative_timesteps):
            calls.append(("save", cumulative_timesteps))

        def load(self, *args, **options):
            calls.append(("load", args[0]))

        def cleanup(self):
            calls.append(("cleanup", None))
            super().cleanup()

    Mine(two_players, **{**SMALL, "timestep_limit": 40}, checkpoints_save_folder=str(tmp_path / "bot"), **PLAIN).learn()
    assert calls == [("load", "latest"), ("save", 40), ("cleanup", None)]
    assert not (tmp_path / "bot").exists(), "nothing is saved that `save` does not save"


def test_a_save_that_fails_ends_the_run_and_says_why(tmp_path):
    with small_learner(tmp_path, **PLAIN) as learner:
        learner.save = lambda steps: 1 / 0
        with pytest.raises(ZeroDivisionError):
            learner.learn()


def test_saving_by_hand_after_the_training(tmp_path):
    """rlgym-ppo saves nothing when the limit is reached, so scripts do it themselves, when the processes have ended."""
    with small_learner(tmp_path, add_unix_timestamp=False, timestep_limit=80, **PLAIN) as learner:
        learner.learn()
        learner.save(learner.agent.cumulative_timesteps)
    with small_learner(tmp_path, add_unix_timestamp=False, timestep_limit=120, **PLAIN) as learner:
        learner._learn()
        learner.save(learner.agent.cumulative_timesteps)
        if type(learner.agent) is BatchedAgentManager:
            learner.agent.cleanup()
        learner.experience_buffer.clear()
    assert sorted(os.listdir(tmp_path / "bot"), key=int) == ["40", "80", "120"]


class Schedule(MetricsLogger):
    """It makes one change per iteration, through the Learner that scripts give it."""

    def __init__(self, *changes):
        self.changes, self.learner, self.seen = list(changes), None, []

    def _collect_metrics(self, game_state):
        return []

    def report_metrics(self, collected_metrics, wandb_run, cumulative_timesteps):
        self.seen.append((cumulative_timesteps, len(collected_metrics)))
        if self.changes:
            self.changes.pop(0)(self.learner)


def lines_of(learner):
    return [json.loads(line) for line in (learner.run_folder / "metrics.jsonl").read_text().splitlines()]


def test_settings_that_are_set_while_it_runs_count_from_the_next_iteration_on(tmp_path):
    def change(learner):
        learner.ppo_learner.ent_coef, learner.ppo_learner.clip_range = 0.5, 0.1
        learner.ppo_learner.n_epochs, learner.ppo_learner.batch_size, learner.ppo_learner.mini_batch_size = 3, 20, 10
        for group in learner.ppo_learner.policy_optimizer.param_groups:
            group["lr"] = 1e-3
        learner.gae_gamma, learner.gae_lambda = 0.5, 0.25
        learner.timestep_limit = 160

    logger = Schedule(change)
    with small_learner(tmp_path, metrics_logger=logger, timestep_limit=120, **PLAIN) as learner:
        logger.learner = learner
        learner.learn()
        ppo = learner._learner.config.ppo
        assert (ppo.gamma, ppo.gae_lambda, ppo.epochs, ppo.minibatch_size, ppo.accumulate) == (0.5, 0.25, 3, 20, 2)
        rates = learner._learner.updater.optimizer.rates
        assert (float(rates["actor"]), float(rates["critic"])) == pytest.approx((1e-3, 3e-4))
        assert learner._learner.tracker.gamma == 0.5
    lines = lines_of(learner)
    assert [line["optim/clip_range"] for line in lines] == [0.2, 0.1, 0.1, 0.1]
    assert [line["optim/entropy_coef"] for line in lines] == [0.005, 0.5, 0.5, 0.5]
    assert [line["optim/gradient_steps"] for line in lines] == [2, 6, 6, 6]
    assert logger.seen == [(40, 20), (80, 20), (120, 20), (160, 20)]


def test_a_scheduler_of_torch_sets_the_learning_rate(tmp_path):
    """It may also set it to zero."""
    schedulers: list[LambdaLR] = []
    logger = Schedule(*[lambda learner: schedulers[0].step()] * 3)
    with small_learner(tmp_path, metrics_logger=logger, timestep_limit=160, **PLAIN) as learner:
        logger.learner = learner
        schedulers.append(LambdaLR(learner.ppo_learner.value_optimizer, lambda n: (1.0, 0.5, 0.0, 0.0)[n]))
        seen = []
        apply = learner._live.apply

        def watched_apply() -> None:
            apply()
            seen.append(learner._learner.updater.optimizer.base_rates["critic"])

        learner._live.apply = watched_apply
        learner.learn()
    assert seen == pytest.approx([3e-4, 1.5e-4, 0.0, 0.0, 0.0])


def refused(learner):
    """An object, what a script may set on it, and the message that refuses it."""
    ppo, agent = learner.ppo_learner, learner.agent
    return [
        (learner, "ts_per_epoch", 80, r"changed to 80 .* Learner\(..., ts_per_iteration=80\)"),
        (learner, "standardize_returns", True, "standardize_returns was changed"),
        (learner, "add_new_experience", lambda experience: None, "add_new_experience was replaced"),
        (ppo, "learn", lambda buffer: {}, "PPOLearner.learn was replaced"),
        (agent, "collect_timesteps", lambda n: None, "collect_timesteps was replaced"),
        (agent, "policy", torch.nn.DataParallel(agent.policy), "by a DataParallel"),
        (ppo, "value_net", torch.nn.Linear(3, 1), "by a Linear, which would not be trained"),
        (ppo, "value_optimizer", torch.optim.SGD([torch.zeros(1)], 1.0), "by a SGD"),
        (ppo, "ent_coef", math.nan, "entropy_coef"),
        (ppo, "mini_batch_size", 7, "must be a multiple of ppo_minibatch_size=7"),
    ]


def test_what_would_not_count_is_refused(tmp_path):
    with small_learner(tmp_path, **PLAIN) as learner:
        for part, name, value, message in refused(learner):
            before = getattr(part, name)
            setattr(part, name, value)
            with pytest.raises(UserError, match=message):
                learner._live.apply()
            setattr(part, name, before)
        learner._live.apply()
        learner.ts_per_epoch = 80
        with pytest.raises(UserError, match="ts_per_iteration was changed"):
            learner.learn()


def test_training_loops_of_scripts_are_refused_with_what_to_do(tmp_path):
    with small_learner(tmp_path, **PLAIN) as learner:
        for call in (lambda: learner.agent.collect_timesteps(50), lambda: learner.ppo_learner.learn(learner.experience_buffer),
                     learner.ppo_learner.policy_optimizer.step, lambda: BatchedAgentManager(None)):
            with pytest.raises(UserError, match=r"learner\.learn\(\)"):
                call()


def test_an_override_of_report_metrics_gets_the_format_of_rlgym_ppo(tmp_path):
    """A step has one float32 vector with the number of axes, their sizes and the numbers of every metric."""
    seen = []

    class Raw(Looks):
        def report_metrics(self, collected_metrics, wandb_run, cumulative_timesteps):
            seen.extend(collected_metrics)

    with small_learner(tmp_path, lambda: Match(2, length=4), metrics_logger=Raw(), timestep_limit=40, **PLAIN) as learner:
        learner.learn()
    assert len(seen) == 20 and all(vector.dtype == np.float32 and vector.shape == (13,) for vector in seen)
    assert [vector[[0, 2, 3, 4, 11, 12]].tolist() for vector in seen[:2]] == [[0, 2, 2, 3, 0, 1], [0, 2, 2, 3, 0, 2]]
    assert seen[2][5:11].tolist() == [3] * 6


def test_a_logger_that_knows_the_learner_does_not_hinder_a_worker_that_is_started_again(tmp_path):
    """It was sent to the workers before it had the learner; sent again with the learner it could not be pickled."""
    class Dies(Match):
        def step(self, actions):
            if not os.path.exists(marker):
                Path(marker).touch()
                os._exit(3)
            return super().step(actions)

    marker = str(tmp_path / "died")
    logger = Schedule()
    with small_learner(tmp_path, lambda: Dies(2), metrics_logger=logger, **PLAIN) as learner:
        logger.learner = learner
        learner.learn()
        assert learner.agent.cumulative_timesteps >= 120 and learner._env.health["worker_restarts"] == 1


def test_scripts_read_and_set_what_they_know(tmp_path):
    with small_learner(tmp_path) as learner:
        assert isinstance(learner.ppo_learner, PPOLearner) and type(learner.agent) is BatchedAgentManager
        assert isinstance(learner.ppo_learner.policy, DiscreteFF) and learner.ppo_learner.policy is learner.agent.policy
        assert (learner.epoch, learner.ts_per_epoch, learner.timestep_limit, learner.save_every_ts) == (0, 40, 120, 40)
        assert (learner.gae_gamma, learner.gae_lambda, learner.ppo_learner.n_epochs) == (0.99, 0.95, 2)
        assert learner.return_stats.count == 0 and learner.return_stats.std.tolist() == [1.0]
        learner.learn()
        assert learner.timestep_limit == learner.agent.cumulative_timesteps == 120 and learner.epoch == 2
        moments = learner._learner.return_moments
        assert learner.return_stats.count == 120
        assert learner.return_stats.std[0] == pytest.approx(float(moments.var.sqrt()), rel=1e-6)
        learner.return_stats.from_json({"mean": [2.0], "var": [400.0], "shape": [1], "count": 101})
        assert float(moments.scale) == pytest.approx(0.5) and learner.return_stats.to_json()["var"] == [pytest.approx(400.0)]
        assert learner.agent.obs_stats.mean.shape == (3,)
        learner.agent.cumulative_timesteps, learner.agent.average_reward, learner.epoch = 7, 1.5, 3
        learner.ppo_learner.cumulative_model_updates = 1000
        assert (learner._learner.steps, learner._learner.iteration, learner.agent.average_reward) == (7, 3, 1.5)
        assert learner.ppo_learner.cumulative_model_updates == 1000


def test_weights_that_are_loaded_into_the_networks_are_those_that_act(tmp_path):
    with small_learner(tmp_path, **PLAIN) as learner:
        policy = learner.ppo_learner.policy
        assert list(policy.state_dict()) == [f"model.{n}.{part}" for n in (0, 2, 4) for part in ("weight", "bias")]
        alone = DiscreteFF(3, 5, (16, 8), "cpu")
        torch.nn.init.normal_(alone.model[-2].weight)
        policy.load_state_dict(alone.state_dict())
        obs = torch.randn(30, 3)
        with torch.no_grad():
            distribution, _ = learner._learner.policy(obs)
            torch.testing.assert_close(distribution.log_probs.exp(), alone(obs))
        frozen = copy.deepcopy(policy)
        learner.learn()
        torch.testing.assert_close(frozen(obs), alone(obs))
        assert not torch.allclose(policy(obs), alone(obs)), "the copy does not change, the network learns"

        learner.ppo_learner.save_to(tmp_path / "by hand")
        player = PPOLearner(3, 5, policy_type=0, policy_layer_sizes=(16, 8), critic_layer_sizes=(12,), batch_size=1, n_epochs=1,
                            continuous_var_range=(0.1, 1.0), policy_lr=1.0, critic_lr=1.0, clip_range=0.2, ent_coef=0.0,
                            mini_batch_size=1, device="cpu")
        player.load_from(tmp_path / "by hand")
        torch.testing.assert_close(player.policy(obs), policy(obs))
        torch.testing.assert_close(player.value_net(obs), learner.ppo_learner.value_net(obs))
        updates, before = learner.ppo_learner.cumulative_model_updates, learner._learner.updater.optimizer.exp_avg.clone()
        learner._learner.updater.optimizer.exp_avg.zero_()
        learner.ppo_learner.load_from(tmp_path / "by hand")
        torch.testing.assert_close(learner._learner.updater.optimizer.exp_avg, before)
        assert learner.ppo_learner.cumulative_model_updates == updates == 6
        with pytest.raises(UserError, match=r"PPO_POLICY.pt is not there"):
            learner.ppo_learner.load_from(tmp_path / "nowhere")


def test_keys_save_pause_and_stop(tmp_path, monkeypatch):
    """They come from `KBHit`, which scripts replace where there is no keyboard."""
    class Keyboard:
        keys = ["", "c", "p", " ", "q"]  # noqa: RUF012
        normal = False

        def kbhit(self):
            return bool(self.keys) and (self.keys[0] != "" or self.keys.pop(0) is None)

        def getch(self):
            return self.keys.pop(0)

        def set_normal_term(self):
            Keyboard.normal = True

    monkeypatch.setattr(learner_module, "KBHit", Keyboard)
    with small_learner(tmp_path, timestep_limit=4000, save_every_ts=10_000, add_unix_timestamp=False, **PLAIN) as learner:
        learner.learn()
    assert Keyboard.keys == [] and Keyboard.normal
    assert learner.agent.cumulative_timesteps == 160 and sorted(os.listdir(tmp_path / "bot"), key=int) == ["80", "160"]


def test_empty_seats_are_no_timesteps(tmp_path):
    """There are one to three players, two on average: an iteration has about as many steps of agents as asked for."""
    with small_learner(tmp_path, lambda: Match(1, 3), n_proc=2, ts_per_iteration=1200, exp_buffer_size=1200, ppo_batch_size=600,
                       timestep_limit=3000, save_every_ts=10_000, **PLAIN) as learner:
        rows = learner._env.num_rows
        learner.learn()
    lines = lines_of(learner)
    assert rows == 6 and all(1100 < line["rollout/steps"] < 1300 for line in lines)
    assert all(line["optim/gradient_steps"] == 4 for line in lines), "2 epochs of 2 batches"
