"""A Learner with rlgym-ppo's constructor, methods and attributes, on top of our learner.

It writes two folders: a run folder under `runs/`, like every other run, with exact checkpoints, metrics, curves and log, where
`wavedash` finds them; and `checkpoints_save_folder` with rlgym-ppo's own files, where scripts find them.
"""
from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from logging import LogRecord
from pathlib import Path
from typing import Any, NoReturn

from wavedash import report
from wavedash.assembly import make_policy, prepare_torch
from wavedash.compat.rlgym_ppo.batched_agents import BatchedAgentManager
from wavedash.compat.rlgym_ppo.checkpoint_export import book_keeping, checkpoint_files, write_folder
from wavedash.compat.rlgym_ppo.checkpoint_import import import_checkpoint
from wavedash.compat.rlgym_ppo.console import warnings_on_console
from wavedash.compat.rlgym_ppo.folders import checkpoint_in, latest_checkpoint, own_checkpoint
from wavedash.compat.rlgym_ppo.live import LiveSettings
from wavedash.compat.rlgym_ppo.maker import EnvMaker
from wavedash.compat.rlgym_ppo.ppo.ppo_learner import PPOLearner
from wavedash.compat.rlgym_ppo.probe import probe
from wavedash.compat.rlgym_ppo.rendering import Rendering
from wavedash.compat.rlgym_ppo.report import Reporter, TrackerRun
from wavedash.compat.rlgym_ppo.saving import Keys, ScriptSaver
from wavedash.compat.rlgym_ppo.settings import DEFAULT_FOLDER, check, run_config
from wavedash.compat.rlgym_ppo.statistics import MomentsStat
from wavedash.compat.rlgym_ppo.util import KBHit, WelfordRunningStat
from wavedash.compat.rlgym_ppo.wandb_run import WandbRun, identity_to_save, saved_identity
from wavedash.config import RunConfig
from wavedash.envs.pool import WorkerPool
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner as OurLearner
from wavedash.ppo.state_checks import check_counters
from wavedash.report.log_file import EarlyMessages
from wavedash.runs.checkpoint import Checkpoint
from wavedash.runs.compatible import check_compatible
from wavedash.runs.content import reading
from wavedash.runs.crash import SkippedUpdates
from wavedash.runs.folder import RunFolder
from wavedash.runs.interrupt import Interrupts
from wavedash.runs.saver import Saver
from wavedash.runs.store import CheckpointStore
from wavedash.runs.typed import typed


class Learner:
    """`Learner(build_env, n_proc=..., ppo_batch_size=..., ts_per_iteration=...).learn()`; docs/rlgym.md has every argument."""

    _early_messages: list[LogRecord]

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
        *,
        threads: int = 0,
    ) -> None:
        """`threads` is not rlgym-ppo's: it is the most CPU threads of the networks; 0 means OMP_NUM_THREADS,
        torch.set_num_threads, or all cores."""
        arguments = {name: value for name, value in locals().items() if name != "self"}
        check(arguments, inspect.signature(Learner).parameters)
        self._set_attributes(arguments)
        maker = EnvMaker(env_create_function, metrics_logger, int(ts_per_iteration),
                         Rendering(render_delay or 0.0) if render else None)
        self._spec, self._agents = probe(maker.for_env(1))
        settings = run_config(arguments, self._spec, self._agents)
        self._make_environments(maker, settings)
        try:
            self._make_learner(settings)
            if checkpoint_load_folder is not None:
                with EarlyMessages() as early:
                    self.load(checkpoint_load_folder, load_wandb and log_to_wandb)
                self._early_messages = early.records
            if log_to_wandb and wandb_run is None:
                self.wandb_run = self._make_wandb_run(settings)
        except BaseException:
            self._env.close()
            raise

    def _make_environments(self, maker: EnvMaker, settings: RunConfig) -> None:
        device = prepare_torch(settings)
        self.device = str(device)
        env = settings.env
        self._env = WorkerPool(maker, env.count, env.workers, env.groups, worker_timeout=env.worker_timeout, device=device)

    def _make_learner(self, settings: RunConfig) -> None:
        """Makes our learner, and the objects around it that scripts know."""
        given = self._arguments
        self.reporter = Reporter(self.metrics_logger, TrackerRun(self.wandb_run), self._env.notes)
        self._learner = OurLearner(self._env, make_policy(self._env, settings), settings, [self.reporter])
        batch_size = given["ppo_batch_size"]
        self.ppo_learner = PPOLearner.around(
            self._learner, device=self.device, batch_size=batch_size,
            mini_batch_size=given["ppo_minibatch_size"] or batch_size, n_epochs=given["ppo_epochs"],
            clip_range=given["ppo_clip_range"], ent_coef=given["ppo_ent_coef"])
        self.agent = BatchedAgentManager.around(self._learner, self.ppo_learner.policy, self.reporter, given["n_proc"])
        self.experience_buffer = self._learner.buffer
        self._live = LiveSettings(self)

    def _make_wandb_run(self, settings: RunConfig) -> WandbRun:
        """Makes a run at Weights & Biases, which goes on with the one of a loaded checkpoint."""
        given = self._arguments
        new = {"project": given["wandb_project_name"] or "rlgym-ppo", "group": given["wandb_group_name"] or "unnamed-runs",
               "name": given["wandb_run_name"] or "rlgym-ppo-run", "id": f"{self._base_folder.name}-{time.time_ns():x}"}
        return WandbRun(settings, Path(self.checkpoints_save_folder), {**new, **self._wandb_identity})

    def _set_attributes(self, given: dict[str, Any]) -> None:
        """Turns arguments into attributes under the names that scripts know. Those in live.py may be set later."""
        self._arguments = given
        self.config = {name: value for name, value in given.items()
                       if name not in ("env_create_function", "metrics_logger", "wandb_run")}
        self._base_folder = Path(given["checkpoints_save_folder"] or DEFAULT_FOLDER)
        stamp = f"-{time.time_ns()}" if given["add_unix_timestamp"] else ""
        self.checkpoints_save_folder = f"{self._base_folder}{stamp}"
        self.wandb_run, self._finished = given["wandb_run"], False
        self._wandb_identity: dict[str, str] = {}
        self._early_messages = []
        self.metrics_logger, self.timestep_limit = given["metrics_logger"], given["timestep_limit"]
        self.ts_per_epoch, self.exp_buffer_size = given["ts_per_iteration"], given["exp_buffer_size"]
        self.gae_gamma, self.gae_lambda = given["gae_gamma"], given["gae_lambda"]
        self.policy_lr, self.critic_lr = given["policy_lr"], given["critic_lr"]
        self.standardize_returns = given["standardize_returns"]
        self.max_returns_per_stats_increment = given["max_returns_per_stats_increment"]
        self.save_every_ts, self.n_checkpoints_to_keep = given["save_every_ts"], given["n_checkpoints_to_keep"]
        self.add_unix_timestamp = given["add_unix_timestamp"]
        self.ts_since_last_save = 0
        self._saving: Checkpoint | None = None
        self._resumed_run: RunFolder | None = None

    @property
    def epoch(self) -> int:
        """The number of iterations so far."""
        return self._learner.iteration

    @epoch.setter
    def epoch(self, number: int) -> None:
        self._learner.iteration = int(number)

    @property
    def return_stats(self) -> WelfordRunningStat:
        """The statistics of returns, by which rewards are scaled."""
        moments = self._learner.return_moments
        return WelfordRunningStat(1) if moments is None else MomentsStat(moments)

    @property
    def run_folder(self) -> Path:
        """The run folder, which the `wavedash` commands take."""
        return self._run.path

    def learn(self) -> None:
        """Trains until `timestep_limit`, or until Ctrl-C, which finishes the iteration and saves. After an error the run is
        saved too, and the error is raised."""
        try:
            self._learn()
        finally:
            self.cleanup()

    def _learn(self) -> None:
        """Trains without ending the worker processes."""
        with warnings_on_console():
            self._live.apply()
            settings, run = self._learner.config, self._run
            own = [self.wandb_run.writing_into(run.path)] if isinstance(self.wandb_run, WandbRun) else []
            saver = ScriptSaver(self, Saver(run, settings.checkpoint))
            reports = report.listeners(settings, run.path, self._early_messages)
            self._learner.listeners = [self.reporter, *reports, *own, SkippedUpdates(run.crash), Keys(self, saver, KBHit()),
                                       saver, self._live]
            print(f"training in {run.path}, see also: wavedash eval {typed(run.path)}", flush=True)
            if not self._learner.steps and self._learner.normalizers:
                print("measuring the scale of observations and returns first, over one iteration that nothing is learned from",
                      flush=True)
            with run.locked(), Interrupts(self._learner):
                self._learner.learn()

    def save(self, cumulative_timesteps: int) -> None:
        """Saves the current state: our own checkpoint, and rlgym-ppo's files in a folder of this number."""
        checkpoint = self._saving or self._save_own(int(cumulative_timesteps))
        tensors, state = checkpoint.load(["policy", "optimizer", "learner"])
        files = checkpoint_files(self._learner, tensors)
        book = {**book_keeping(tensors, state, self._learner), "policy_average_reward": self.agent.average_reward,
                "ts_since_last_save": self.ts_since_last_save, **identity_to_save(self.wandb_run)}
        target = Path(self.checkpoints_save_folder) / str(int(cumulative_timesteps))
        write_folder(target, checkpoint, files, book, self.n_checkpoints_to_keep)
        print(f"saved {target}", flush=True)

    def _save_own(self, number: int) -> Checkpoint:
        learner = self._learner
        tensors, state = learner.state()
        path = self.own_checkpoints.save(number, tensors, state, {"iteration": learner.iteration, "metrics": {}})
        return Checkpoint.open(path)

    @property
    def own_checkpoints(self) -> CheckpointStore:
        return self._run.store("checkpoints", self.n_checkpoints_to_keep)

    @contextmanager
    def saving(self, checkpoint: Checkpoint | None) -> Iterator[None]:
        """Tells `save` that our own checkpoint has just been written."""
        self._saving = checkpoint
        try:
            yield
        finally:
            self._saving = None

    def load(self, folder_path: str, load_wandb: bool, new_policy_lr: float | None = None,
             new_critic_lr: float | None = None) -> bool | None:
        """Goes on from "latest", a checkpoint or a run, our own or rlgym-ppo's. Returns whether its run at Weights & Biases
        goes on; None if nothing has been saved yet."""
        if folder_path == "latest":
            found = latest_checkpoint(self._base_folder, self.add_unix_timestamp)
            if found is None:
                return None
        else:
            found = checkpoint_in(Path(folder_path))
            if found is None:
                raise UserError(f"{folder_path} holds no checkpoint: name a run, or a checkpoint in it; None starts afresh")
        own = own_checkpoint(found)
        identity = saved_identity(own or found, self._import(found) if own is None else self._restore(own))
        if own is not None and found.parent.resolve() == Path(self.checkpoints_save_folder).resolve():
            self._resumed_run = RunFolder(own.parent.parent)
        self.update_learning_rate(new_policy_lr, new_critic_lr)
        print(f"going on from {found}, step {self._learner.steps:,}", flush=True)
        self._wandb_identity = identity if load_wandb and identity else {}
        return bool(self._wandb_identity)

    def _restore(self, found: Path) -> Mapping[str, Any]:
        """Goes on exactly from our own checkpoint."""
        checkpoint = Checkpoint.open(found)
        tensors, state = checkpoint.load()
        with reading(checkpoint):
            check_counters(state)
            check_compatible(state["fingerprint"], self._learner.fingerprint())
            self._learner.load_state(tensors, state)
        self._env.notes()  # drops metrics of the steps that restored the environments
        return {}

    def _import(self, folder: Path) -> Mapping[str, Any]:
        """Goes on from a checkpoint of rlgym-ppo; returns its book-keeping."""
        book = import_checkpoint(folder, self._learner)
        self.reporter.average_reward = book.average_reward
        return book.written

    def update_learning_rate(self, new_policy_lr: float | None = None, new_critic_lr: float | None = None) -> None:
        """Sets new rates, which take effect from the next iteration on."""
        if new_policy_lr is not None:
            self.policy_lr = new_policy_lr
            _set_rate(self.ppo_learner.policy_optimizer, new_policy_lr)
        if new_critic_lr is not None:
            self.critic_lr = new_critic_lr
            _set_rate(self.ppo_learner.value_optimizer, new_critic_lr)

    def change_settings(self, arguments: Mapping[str, Any]) -> None:
        """Changes these arguments from the next iteration on, as if they had been passed to the constructor. live.py says which
        can be changed."""
        self._arguments |= arguments
        self._learner.change(run_config(self._arguments, self._spec, self._agents))

    def add_new_experience(self, experience: Any) -> NoReturn:
        """Raises UserError."""
        raise UserError("experience cannot be added from outside: advantages need the value of what follows each step, which "
                        "the collector knows. Let the environment play what is to be learned from")

    def cleanup(self) -> None:
        """Ends the worker processes and the run at Weights & Biases. It may be called twice."""
        self._env.close()
        if self.wandb_run is not None and not self._finished:
            self.wandb_run.finish()
        self._finished = True

    @cached_property
    def _run(self) -> RunFolder:
        """The run folder, made when it is first needed. It is the earlier one if checkpoints go on in the same folder."""
        name = re.sub(r"[^A-Za-z0-9._-]", "-", self._learner.config.name).lstrip(".-") or "rlgym-ppo-run"
        run = self._resumed_run or RunFolder.create(name)
        run.record_start(self._learner.config)
        return run


def _set_rate(optimizer: Any, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
