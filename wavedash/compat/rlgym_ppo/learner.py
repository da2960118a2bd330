"""Learner with rlgym-ppo's constructor, methods and attributes, on our learner.

Its run folder is one of ours: checkpoints, metrics, curves and log are where `wavedash` looks for them.
"""
from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from wavedash import report
from wavedash.compat.rlgym_ppo.checkpoint_import import import_checkpoint
from wavedash.compat.rlgym_ppo.folders import POLICY_FILE, checkpoint_in, latest_checkpoint
from wavedash.compat.rlgym_ppo.maker import EnvMaker
from wavedash.compat.rlgym_ppo.report import RecordingRun, Reporter
from wavedash.compat.rlgym_ppo.settings import DEFAULT_FOLDER, check, run_config
from wavedash.compat.rlgym_ppo.views import AgentView, PPOLearnerView
from wavedash.compat.rlgym_ppo.wandb_run import WandbRun, saved_identity
from wavedash.envs.pool import WorkerPool
from wavedash.envs.row_spec import RowSpec
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner as PPOLearner
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.compatible import check_compatible
from wavedash.runs.crash import SkippedUpdates
from wavedash.runs.folder import RunFolder
from wavedash.runs.interrupt import Interrupts
from wavedash.runs.saver import Saver
from wavedash.training import make_policy, prepare_torch

log = logging.getLogger(__name__)


class Learner:
    """`Learner(build_env, n_proc=..., ppo_batch_size=..., ts_per_iteration=...).learn()`; docs/rlgym.md has every argument."""

    def __init__(
        self,
        env_create_function: Callable[[], Any],
        metrics_logger: Any = None,
        n_proc: int = 8,
        min_inference_size: int = 80,
        render: bool = False,
        render_delay: float = 0,
        timestep_limit: int = 5_000_000_000,
        exp_buffer_size: int = 100000,
        ts_per_iteration: int = 50000,
        standardize_returns: bool = True,
        standardize_obs: bool = True,
        max_returns_per_stats_increment: int = 150,
        steps_per_obs_stats_increment: int = 5,
        policy_layer_sizes: Sequence[int] = (256, 256, 256),
        critic_layer_sizes: Sequence[int] = (256, 256, 256),
        continuous_var_range: tuple[float, float] = (0.1, 1.0),
        ppo_epochs: int = 10,
        ppo_batch_size: int = 50000,
        ppo_minibatch_size: int | None = None,
        ppo_ent_coef: float = 0.005,
        ppo_clip_range: float = 0.2,
        gae_lambda: float = 0.95,
        gae_gamma: float = 0.99,
        policy_lr: float = 3e-4,
        critic_lr: float = 3e-4,
        log_to_wandb: bool = False,
        load_wandb: bool = True,
        wandb_run: Any = None,
        wandb_project_name: str | None = None,
        wandb_group_name: str | None = None,
        wandb_run_name: str | None = None,
        checkpoints_save_folder: str | None = None,
        add_unix_timestamp: bool = True,
        checkpoint_load_folder: str | None = "latest",
        save_every_ts: int = 1_000_000,
        instance_launch_delay: float | None = None,
        random_seed: int = 123,
        n_checkpoints_to_keep: int = 5,
        shm_buffer_size: int = 8192,
        device: str = "auto",
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name != "self"}
        check(arguments, inspect.signature(Learner).parameters)
        maker = EnvMaker(env_create_function, metrics_logger, keep=ts_per_iteration)
        settings = run_config(arguments, RowSpec.probe(maker))
        self.config = {name: value for name, value in arguments.items()
                       if name not in ("env_create_function", "metrics_logger", "wandb_run")}
        self.metrics_logger = metrics_logger
        self._base_folder, self._stamped = Path(checkpoints_save_folder or DEFAULT_FOLDER), add_unix_timestamp
        stamp = f"-{time.time_ns()}" if add_unix_timestamp else ""
        self.checkpoints_save_folder = f"{self._base_folder}{stamp}"

        torch_device = prepare_torch(settings)
        self.device = str(torch_device)
        self._env = WorkerPool(maker, n_proc, n_proc, settings.env.groups, worker_timeout=settings.env.worker_timeout,
                               device=torch_device)
        try:
            self._learner = PPOLearner(self._env, make_policy(self._env, settings), settings)
            self.wandb_run, self._finished = wandb_run, False
            self._reporter = Reporter(metrics_logger, RecordingRun(wandb_run))
            self.ppo_learner = PPOLearnerView(self._learner, self.update_learning_rate)
            self.agent = AgentView(self._learner, self.ppo_learner.policy, self._reporter)
            self.experience_buffer = self._learner.buffer
            self._wandb_identity: dict[str, str] = {}
            if checkpoint_load_folder is not None:
                self.load(checkpoint_load_folder, load_wandb and log_to_wandb)
            if log_to_wandb and wandb_run is None:
                new = {"project": wandb_project_name or "rlgym-ppo", "group": wandb_group_name or "unnamed-runs",
                       "name": wandb_run_name or "rlgym-ppo-run"}
                self.wandb_run = WandbRun(settings, Path(self.checkpoints_save_folder), {**new, **self._wandb_identity})
                self._reporter.run.run = self.wandb_run
        except BaseException:
            self._env.close()
            raise

    def learn(self) -> None:
        """Until `timestep_limit`, or Ctrl-C: then the iteration is finished and saved. After an error all is saved, too, and
        the error is raised."""
        settings, run = self._learner.config, self._run
        own = [self.wandb_run] if isinstance(self.wandb_run, WandbRun) else []
        self._reporter.listeners = [*report.listeners(settings, run.path), *own, SkippedUpdates(run.crash),
                                    Saver(run, settings.checkpoint)]
        self._learner.listeners = [self._reporter]
        try:
            with run.locked(), Interrupts(self._learner):
                self._learner.learn()
        finally:
            self.cleanup()

    def save(self, cumulative_timesteps: int) -> None:
        """A checkpoint of what has been learned up to now, under this number."""
        learner = self._learner
        tensors, state = learner.state()
        if not learner.collector.groups:
            tensors.pop("env", None)  # there are no episodes to go on with
        store = self._run.store("checkpoints", learner.config.checkpoint.keep)
        path = store.save(cumulative_timesteps, tensors, state, {"iteration": learner.iteration, "figures": {}})
        print(f"saved {path}", flush=True)

    def load(self, folder_path: str, load_wandb: bool, new_policy_lr: float | None = None,
             new_critic_lr: float | None = None) -> bool | None:
        """From "latest", a checkpoint or a run, of ours or of rlgym-ppo. Tells whether its run at Weights & Biases goes on;
        None if nothing has been saved yet."""
        if folder_path == "latest":
            found = latest_checkpoint(self._base_folder, self._stamped)
            if found is None:
                return None
        else:
            found = checkpoint_in(Path(folder_path))
            if found is None:
                raise UserError(f"{folder_path} holds no checkpoint: name a run, or a checkpoint in it; None starts afresh")
        identity = saved_identity(found, self._load_checkpoint(found))
        self.update_learning_rate(new_policy_lr, new_critic_lr)
        print(f"going on from {found}, step {self._learner.steps:,}", flush=True)
        self._wandb_identity = identity if load_wandb and identity else {}
        return bool(self._wandb_identity)

    def _load_checkpoint(self, found: Path) -> Mapping[str, Any]:
        """Returns what rlgym-ppo has written down, if it is one of its own."""
        if (found / POLICY_FILE).is_file():
            book = import_checkpoint(found, self._learner)
            self._reporter.average_reward = book.average_reward
            return book.written
        tensors, state = Checkpoint.open(found).load()
        check_compatible(state["fingerprint"], self._learner.fingerprint())
        self._learner.load_state(tensors, state)
        self._env.notes()  # of the steps that led back to where the run was
        self._reporter.average_reward = self._learner.recent.figures().get("recent/return")
        return {}

    def update_learning_rate(self, new_policy_lr: float | None = None, new_critic_lr: float | None = None) -> None:
        """From the next iteration on."""
        learner, ppo = self._learner, self._learner.config.ppo
        changed = {name: rate for name, rate in (("learning_rate", new_policy_lr), ("critic_learning_rate", new_critic_lr))
                   if rate is not None}
        learner.config = learner.config.model_copy(update={"ppo": ppo.model_copy(update=changed)})
        groups = {"learning_rate": "actor", "critic_learning_rate": "critic"}
        learner.updater.optimizer.base_rates.update({groups[name]: rate for name, rate in changed.items()})

    def add_new_experience(self, experience: Any) -> NoReturn:
        """Refused."""
        raise UserError("experience cannot be added from outside: advantages need the value of what follows each step, which "
                        "the collector knows. Let the environment play what is to be learned from")

    def cleanup(self) -> None:
        """Ends the worker processes and the run at Weights & Biases. Safe to call twice."""
        self._env.close()
        if self.wandb_run is not None and not self._finished:
            self.wandb_run.finish()
        self._finished = True

    @cached_property
    def _run(self) -> RunFolder:
        """Made when there is something to put into it."""
        run = RunFolder(self.checkpoints_save_folder)
        try:
            (run.path / "checkpoints").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make {run.path}: {error.strerror}; set checkpoints_save_folder to a folder that can be "
                            "written") from error
        run.record_start(self._learner.config)
        return run
