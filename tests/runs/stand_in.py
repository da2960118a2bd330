"""Shared by the tests of runs: a small real learner with the learner's interface, and processes that can be killed."""
from __future__ import annotations

import copy
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import torch

from wavedash.config import EnvConfig, RunConfig
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.runs.folder import RunFolder


class StandInLearner:
    """It fits a line with AdamW on random batches. Its weights, moments and random stream show any inexact resume."""

    def __init__(self, listeners: list[Listener], total_steps: int = 100, steps_per_iteration: int = 10):
        torch.manual_seed(0)
        self.model = torch.nn.ModuleDict({"actor": torch.nn.Linear(4, 8), "critic": torch.nn.Linear(8, 1)})
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.generator = torch.Generator().manual_seed(1)
        self.listeners, self.total_steps, self.steps_per_iteration = listeners, total_steps, steps_per_iteration
        self.steps = self.iteration = 0
        self.phase: str | None = None
        self.stop_reason: str | None = None
        self.interruptible = False
        self.beginning = None
        self.broken_off = False
        self.returns: dict[int, tuple[float, float]] = {}
        self.during: Callable[[StandInLearner], None] = lambda learner: None

    def learn(self) -> None:
        error: BaseException | None = None
        try:
            for listener in self.listeners:
                listener.on_start(self)
            self.interruptible = True
            while self.steps < self.total_steps and self.stop_reason is None:
                self.beginning = copy.deepcopy(self.state())
                report = self.iterate()
                for listener in self.listeners:
                    listener.on_iteration(self, report)
            self.interruptible = False
        except BaseException as raised:
            self.interruptible = False
            error, self.broken_off = raised, True
            self.steps, self.iteration = (self.beginning[1][name] for name in ("steps", "iteration"))
            raise
        finally:
            for listener in self.listeners:
                listener.on_stop(self, error)

    def iterate(self) -> IterationReport:
        self.steps += self.steps_per_iteration
        self.during(self)
        x = torch.randn(32, 4, generator=self.generator)
        loss = (self.model["critic"](self.model["actor"](x)).squeeze(-1) - x.sum(-1)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.iteration += 1
        metrics = {"loss/value": loss.item()}
        if self.iteration in self.returns:
            metrics["recent/return"], metrics["recent/count"] = self.returns[self.iteration]
        return IterationReport(self.iteration, self.steps, self.total_steps, 0, metrics, {})

    def stop(self, reason: str) -> None:
        self.stop_reason = reason

    def state(self):
        """The current state, or that at the beginning of an interrupted iteration, as the learner has it."""
        if self.broken_off:
            return self.beginning
        moments = self.optimizer.state_dict()["state"]
        tensors = {
            "policy": self.model.state_dict(),
            "optimizer": {f"{key}.{name}": x for key, entry in moments.items() for name, x in entry.items()},
            "learner": {"generator": self.generator.get_state()},
        }
        return tensors, {"steps": self.steps, "iteration": self.iteration, "fingerprint": {"policy": "4-8-1"}}

    def load_state(self, tensors, state) -> None:
        self.model.load_state_dict(tensors["policy"])
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for key, x in tensors["optimizer"].items():
            index, name = key.split(".", 1)
            moments.setdefault(int(index), {})[name] = x
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        self.generator.set_state(tensors["learner"]["generator"])
        self.steps, self.iteration = state["steps"], state["iteration"]

    def weights(self) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in self.model.parameters()])


def make_run(root: Path, name: str = "toy", total_steps: int = 100, **checkpoint: int | None) -> tuple[RunFolder, RunConfig]:
    config = RunConfig.model_validate({"name": name, "total_steps": total_steps, "env": EnvConfig(id="Toy-v0"),
                                       "checkpoint": {"every": 20, **checkpoint}})
    run = RunFolder.create(name, root)
    run.record_start(config)
    return run, config


class Child:
    """A forked process, whose messages are read line by line."""

    def __init__(self, pid: int, pipe: int):
        self.pid = pid
        self._pipe = os.fdopen(pipe, "r", encoding="utf-8")

    def line(self) -> str:
        return self._pipe.readline().strip()

    def rest(self) -> list[str]:
        """The complete lines: a process may be killed in the middle of one."""
        return [line.strip() for line in self._pipe.read().splitlines(keepends=True) if line.endswith("\n")]

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """The exit code, or minus the signal for a killed process."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@contextmanager
def forked(body: Callable[[Callable[[object], None]], int | None]) -> Iterator[Child]:
    """Runs `body(tell)` in a process of its own that has torch loaded already: thirty of them take a second, not a minute."""
    import_module("torch._dynamo")  # an optimizer's first step imports it, for 0.7 s: here once, not in every process
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.close(read)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # ignored where the tests run in the background
                signal.signal(number, signal.SIG_DFL)
            torch.set_num_threads(1)
            code = body(lambda what: os.write(write, f"{what}\n".encode()) and None) or 0
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    child = Child(pid, read)
    try:
        yield child
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        child._pipe.close()
