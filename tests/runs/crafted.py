"""Checkpoints with right checksums and wrong content: one thing in a good checkpoint is changed, and everything is signed
again.

    python -m tests.runs.crafted

prints what each command says to each of them, and its exit code.
"""
from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from wavedash.errors import UserError
from wavedash.evaluate.own_task import evaluate
from wavedash.export import export_policy
from wavedash.loading import load_policy
from wavedash.rocket.state import GameState
from wavedash.runs.checkpoint import Checkpoint, FileRecord, Manifest, Tensors
from wavedash.runs.find import find_run
from wavedash.runs.plain import to_json
from wavedash.training import resume, train

QUICK = ("total_steps=64", "env.count=2", "env.groups=1", "ppo.epochs=1", "ppo.minibatch_size=64", "policy.hidden=[8]",
         "checkpoint.every=32", "report.tensorboard=false", "report.console=off", "device=cpu", "threads=1")
ROCKET = (*QUICK, "ppo.rollout_steps=8")
RUNS = {
    "cartpole": ("cartpole", *QUICK, "ppo.rollout_steps=16", "ppo.buffer_rollouts=2"),
    "memory": ("cartpole-memory", *QUICK, "ppo.rollout_steps=16", "policy.memory.sequence=8", "policy.memory.size=8",
               "ppo.normalize_obs=true", "ppo.normalize_reward=true"),
    "warp": ("rocket-1v1", *ROCKET),
    "rocketsim": ("rocket-1v1", *ROCKET, "env.rocket.simulator=rocketsim"),
}
COMMANDS: dict[str, Callable[[Path], Any]] = {
    "resume": lambda run: resume(str(run), "total_steps=96"),
    "eval": lambda run: evaluate(run, episodes=1),
    "load_policy": load_policy,
    "export": lambda run: export_policy(run, "torchscript", episodes=1),
}
SEES = {"resume": {"policy", "optimizer", "learner", "env", "buffer", "state", "fingerprint", "manifest"}}
POLICY = {"policy", "fingerprint", "manifest"}
"""Parts of a checkpoint that the other commands read."""


@dataclass
class Content:
    """The whole content of a checkpoint, which a change edits."""

    tensors: Tensors
    state: Any
    metadata: Any


Change = Callable[[Content], Any]


@dataclass(frozen=True)
class Kind:
    """One way to be wrong. `part` is the part of the checkpoint that is wrong; it concerns commands that read this part."""

    run: str
    part: str
    name: str
    change: Change
    says: str
    """The message must name this."""

    def concerns(self, command: str) -> bool:
        return self.part in SEES.get(command, POLICY)


def put(group: str, name: str, make: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    def change(content: Content) -> None:
        content.tensors[group][name] = make(content.tensors[group][name].clone())
    return change


def first(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """The tensor gets this value as its first number."""
    def make(x: torch.Tensor) -> torch.Tensor:
        x.reshape(-1)[0] = value
        return x
    return make


def drop(group: str, name: str) -> Change:
    return lambda content: content.tensors[group].pop(name)


def rename(group: str, name: str) -> Change:
    def change(content: Content) -> None:
        content.tensors[group][f"{name}x"] = content.tensors[group].pop(name)
    return change


def add(group: str) -> Change:
    def change(content: Content) -> None:
        content.tensors[group]["extra"] = torch.zeros(3)
    return change


def state(key: str, value: Any) -> Change:
    """Sets a plain value by its dotted key; the value `...` removes it."""
    def change(content: Content) -> None:
        *path, last = key.split(".")
        target = content.state
        for name in path:
            target = target[name]
        if value is ...:
            del target[last]
        else:
            target[last] = value
    return change


def record(name: str, part: str, field: str, value: float) -> Change:
    def change(content: Content) -> None:
        memory = content.tensors["env"][f"0.{name}"] = content.tensors["env"][f"0.{name}"].clone()
        fields = getattr(GameState.over(memory, 2), part)
        target = getattr(fields, field)
        target = target.view(torch.uint8) if target.dtype == torch.bool else target
        target[(0,) * target.dim()] = value
    return change


WEIGHT = "actor.head.logits.weight"
GENERATOR = "actions.0"


def _policy_kinds(run: str) -> list[Kind]:
    return [
        Kind(run, "policy", "no policy", lambda c: c.tensors.pop("policy"), "policy.safetensors"),
        Kind(run, "policy", "a tensor less", drop("policy", WEIGHT), WEIGHT),
        Kind(run, "policy", "a tensor more", add("policy"), "extra"),
        Kind(run, "policy", "another name", rename("policy", WEIGHT), WEIGHT),
        Kind(run, "policy", "another shape", put("policy", WEIGHT, lambda x: x[:-1].clone()), WEIGHT),
        Kind(run, "policy", "one dimension less", put("policy", WEIGHT, lambda x: x.flatten()), WEIGHT),
        Kind(run, "policy", "float64", put("policy", WEIGHT, torch.Tensor.double), WEIGHT),
        Kind(run, "policy", "whole numbers", put("policy", WEIGHT, torch.Tensor.int), WEIGHT),
        Kind(run, "policy", "NaN", put("policy", WEIGHT, first(torch.nan)), WEIGHT),
        Kind(run, "policy", "infinity", put("policy", WEIGHT, first(torch.inf)), WEIGHT),
        Kind(run, "policy", "an empty group", lambda c: c.tensors["policy"].clear(), "policy.safetensors"),
    ]


def _optimizer_kinds(run: str) -> list[Kind]:
    return [
        Kind(run, "optimizer", "no optimiser", lambda c: c.tensors.pop("optimizer"), "optimizer.safetensors"),
        Kind(run, "optimizer", "no moment", drop("optimizer", "exp_avg"), "exp_avg"),
        Kind(run, "optimizer", "a short moment", put("optimizer", "exp_avg", lambda x: x[:-1].clone()), "exp_avg"),
        Kind(run, "optimizer", "a moment of float64", put("optimizer", "exp_avg", torch.Tensor.double), "exp_avg"),
        Kind(run, "optimizer", "NaN", put("optimizer", "exp_avg", first(torch.nan)), "exp_avg"),
        Kind(run, "optimizer", "a negative square", put("optimizer", "exp_avg_sq", first(-1.0)), "exp_avg_sq"),
        Kind(run, "optimizer", "negative steps", put("optimizer", "step.policy", first(-5.0)), "step.policy"),
        Kind(run, "optimizer", "another group", rename("optimizer", "step.policy"), "step.policy"),
        Kind(run, "optimizer", "a short generator", put("optimizer", "minibatches", lambda x: x[:-8].clone()), "minibatches"),
        Kind(run, "optimizer", "a generator of floats", put("optimizer", "minibatches", torch.Tensor.float), "minibatches"),
        Kind(run, "optimizer", "a generator of zeros", put("optimizer", "minibatches", torch.zeros_like), ""),
    ]


def _state_kinds(run: str) -> list[Kind]:
    values = [("steps", "64"), ("steps", -1), ("steps", 10**30), ("steps", 1.5), ("steps", None), ("steps", ...),
              ("steps", True), ("iteration", -3), ("iteration", []), ("episodes", "many"), ("dead_updates", -1),
              ("schedule", "fast"), ("schedule", float("nan")), ("schedule", -1.0), ("decays", []),
              ("decays", {"clip_range": "x"}), ("decays", {"unknown": 1.0}), ("split", [4]), ("split", [None, 0]),
              ("split", "half"), ("recent", "none"),
              ("recent", [[1.0]]), ("recent", [["a", "b", "c"]]), ("recent", [[float("nan"), 1.0, 1.0]]), ("recent", {"a": 1}),
              ("ranks", 0), ("ranks", "two"), ("buffer", [99, 99]), ("buffer", [1]),
              ("buffer", [-1, 0])]
    kinds = [Kind(run, "state", f"{key} = {_short(value)}", state(key, value), key) for key, value in values]
    spaces = [("fingerprint", ...), ("fingerprint", []), ("fingerprint.observation_space", ...),
              ("fingerprint.policy", "large"), ("fingerprint.observation_space", {"kind": "box"}),
              ("fingerprint.action_space.n", "two"), ("fingerprint.action_space.n", -2), ("fingerprint.action_space.n", 10**15),
              ("fingerprint.action_space.n", 7), ("fingerprint.action_space.kind", "hyperbox"),
              ("fingerprint.policy.hidden", ["wide"]), ("fingerprint.policy.hidden", [10**12]),
              ("fingerprint.policy.hidden", [9]), ("fingerprint.normalize_obs", "yes"),
              ("fingerprint.policy.unheard_of", 1)]
    kinds += [Kind(run, "fingerprint", f"{key} = {_short(value)}", state(key, value), "") for key, value in spaces]
    kinds += [
        Kind(run, "fingerprint", "state.json is a list", lambda c: setattr(c, "state", []), "state.json"),
        Kind(run, "fingerprint", "state.json is empty", lambda c: c.state.clear(), "state.json"),
        Kind(run, "manifest", "metrics are a list", lambda c: c.metadata.update(metrics=[1]), "metrics"),
        Kind(run, "manifest", "a metric is a word", lambda c: c.metadata.update(metrics={"recent/return": "high"}), "metrics"),
        Kind(run, "manifest", "iteration is a word", lambda c: c.metadata.update(iteration="last"), "iteration"),
    ]
    return kinds


def _host_kinds(run: str) -> list[Kind]:
    def env(name: str, make: Callable[[torch.Tensor], torch.Tensor], what: str) -> Kind:
        return Kind(run, "env", what, put("env", name, make), name)

    return [
        *(Kind(run, "env", f"no {name}", drop("env", name), name) for name in ("seed", "episode", "length", "action")),
        env("length", lambda x: x + 1, "lengths that do not add up"),
        env("length", first(-7), "a negative length"),
        env("length", torch.Tensor.float, "lengths of floats"),
        env("length", lambda x: x[None].clone(), "lengths with two dimensions"),
        env("length", first(10**9), "a length of a billion"),
        env("episode", first(-1), "a negative episode"),
        env("episode", first(2**62), "an episode beyond all"),
        env("episode", lambda x: x[:1].clone(), "an episode less"),
        env("seed", first(-1), "a negative seed"),
        env("seed", lambda x: x.repeat(2), "two seeds"),
        env("action", first(2), "an action that there is not"),
        env("action", first(-1), "a negative action"),
        env("action", torch.Tensor.float, "actions of floats"),
        env("action", lambda x: x[:-1].clone(), "an action less"),
    ]


def _learner_kinds(run: str) -> list[Kind]:
    return [
        Kind(run, "learner", "no learner", lambda c: c.tensors.pop("learner"), "running"),
        Kind(run, "learner", "no running sums", drop("learner", "running"), "running"),
        Kind(run, "learner", "NaN in running sums", put("learner", "running", first(torch.nan)), "running"),
        Kind(run, "learner", "running sums without lengths", put("learner", "running", lambda x: x[:, :2].clone()), "running"),
        Kind(run, "learner", "a short generator", put("learner", GENERATOR, lambda x: x[:100].clone()), GENERATOR),
        Kind(run, "learner", "a generator of floats", put("learner", GENERATOR, torch.Tensor.float), GENERATOR),
        Kind(run, "learner", "a generator of zeros", put("learner", GENERATOR, torch.zeros_like), ""),
    ]


def _buffer_kinds(run: str) -> list[Kind]:
    return [
        Kind(run, "buffer", "float64", put("buffer", "advantage", torch.Tensor.double), "advantage"),
        Kind(run, "buffer", "NaN", put("buffer", "advantage", first(torch.nan)), "advantage"),
        Kind(run, "buffer", "an action that there is not", put("buffer", "action", first(5)), "action"),
        Kind(run, "buffer", "active as numbers", put("buffer", "active", torch.Tensor.float), "active"),
    ]


def _memory_kinds(run: str) -> list[Kind]:
    memory, scale, mean = "memory.0.actor.h", "normalizer.parts.obs.scale", "normalizer.parts.obs.mean"
    deviation, returned = "return_moments.var", "return_moments.mean"
    return [
        Kind(run, "learner", "no memory", drop("learner", memory), memory),
        Kind(run, "learner", "memory of another size", put("learner", memory, lambda x: x[..., :-1].clone()), memory),
        Kind(run, "learner", "NaN in memory", put("learner", memory, first(torch.nan)), memory),
        Kind(run, "learner", "NaN in the returns' deviation", put("learner", deviation, first(torch.nan)), deviation),
        Kind(run, "learner", "no mean of returns", drop("learner", returned), returned),
        Kind(run, "policy", "NaN in the observations' scale", put("policy", scale, first(torch.nan)), scale),
        Kind(run, "policy", "no mean of observations", drop("policy", mean), mean),
    ]


STATES = (
    ("ball", "position", torch.nan), ("cars", "hitbox", 6), ("game", "goal", 2**30), ("cars", "velocity", torch.inf),
    ("cars", "rotation", 1e30), ("cars", "hitbox", -1), ("cars", "team", 9), ("cars", "contact_car", 2),
    ("ball", "last_touch", 1_000_000), ("pads", "locked_car", -2), ("pads", "timer", torch.nan), ("events", "demolished", 77),
    ("cars", "on_ground", 7), ("cars", "present", 255),
)


def _arena_kinds(run: str, all_of: str, some_of: str) -> list[Kind]:
    states = [(all_of, *state) for state in STATES] + [(some_of, *state) for state in STATES[:3]]
    return [
        *(Kind(run, "env", f"{name}: {part}.{field} = {value:g}", record(name, part, field, value), f"{part}.{field}")
          for name, part, field, value in states),
        Kind(run, "env", "records of floats", put("env", "0.simulator.records", lambda x: x.view(torch.float32)), "records"),
        Kind(run, "env", "beginnings used up twice", put("env", "0.used", first(10**6)), "used"),
        Kind(run, "env", "controls of float64", put("env", "0.controls", torch.Tensor.double), "controls"),
        Kind(run, "env", "NaN in controls", put("env", "0.controls", first(torch.nan)), "controls"),
        Kind(run, "env", "no generator", drop("env", "0.generator"), "generator"),
        Kind(run, "env", "a short generator", put("env", "0.generator", lambda x: x[:16].clone()), "generator"),
    ]


def _warp_kinds(run: str) -> list[Kind]:
    nan = first(float(torch.tensor(torch.nan).view(torch.int32)))
    return [
        Kind(run, "env", "NaN in axles", put("env", "0.simulator.cars", nan), "cars"),
        Kind(run, "env", "NaN in matches", put("env", "0.simulator.matches", nan), "matches"),
        Kind(run, "env", "NaN in the controls before", put("env", "0.simulator.before", first(torch.nan)), "before"),
        Kind(run, "env", "axles of int64", put("env", "0.simulator.cars", torch.Tensor.long), "cars"),
    ]


def _rocketsim_kinds(run: str) -> list[Kind]:
    def saved(name: str, make: Callable[[torch.Tensor], torch.Tensor], what: str) -> Kind:
        return Kind(run, "env", what, put("env", f"0.simulator.{name}", make), name)

    return [
        saved("timing", first(10**9), "a step of a billion ticks"),
        saved("timing", first(-1), "a step of less than no ticks"),
        saved("timing", lambda x: x.flip(-1), "a delay longer than the step"),
        saved("timing", torch.Tensor.float, "ticks of floats"),
        saved("controls", lambda x: x[:-1].clone(), "a step less"),
        saved("age", first(10**6), "a game older than all steps"),
        saved("age", first(-1), "a game that has not begun"),
        saved("controls", first(torch.nan), "NaN in the controls of a step"),
        saved("controls", lambda x: x[..., :7].clone(), "seven controls"),
        Kind(run, "env", "no controls", drop("env", "0.simulator.controls"), "controls"),
        Kind(run, "env", "no beginnings", drop("env", "0.simulator.beginnings"), "beginnings"),
    ]


def _short(value: object) -> str:
    text = "missing" if value is ... else repr(value)
    return text if len(text) < 30 else f"{text[:27]}..."


KINDS = [
    *_policy_kinds("cartpole"), *_optimizer_kinds("cartpole"), *_state_kinds("cartpole"), *_host_kinds("cartpole"),
    *_learner_kinds("cartpole"), *_buffer_kinds("cartpole"),
    *_policy_kinds("memory")[:6:2], *_memory_kinds("memory"),
    *_arena_kinds("warp", "simulator.records", "fresh"), *_warp_kinds("warp"),
    *_arena_kinds("rocketsim", "simulator.beginnings", "simulator.records"), *_rocketsim_kinds("rocketsim"),
]


def train_all(root: Path) -> dict[str, Path]:
    """Trains a small run of each kind with a single checkpoint."""
    before = os.environ.get("WAVEDASH_RUNS")
    os.environ["WAVEDASH_RUNS"] = str(root)
    try:
        return {name: _train(root / name, arguments) for name, arguments in RUNS.items()}
    finally:
        os.environ.pop("WAVEDASH_RUNS")
        if before is not None:
            os.environ["WAVEDASH_RUNS"] = before


def _train(root: Path, arguments: tuple[str, ...]) -> Path:
    train(*arguments, f"name={root.name}")
    run, newest = find_run(root)
    for store in ("checkpoints", "best", "spaced", "final"):
        for path in (run.path / store).glob("*") if (run.path / store).exists() else []:
            if path != newest.path:
                shutil.rmtree(path)
    return run.path


def craft(run: Path, target: Path, change: Change) -> Path:
    """A copy of a run whose checkpoint was changed and signed again."""
    shutil.copytree(run, target)
    checkpoint = Checkpoint.open(next((target / "checkpoints").iterdir()))
    content = Content(*checkpoint.load(), dict(checkpoint.metadata))
    change(content)
    files = {f"{group}.safetensors": save({name: x.contiguous() for name, x in part.items()})
             for group, part in content.tensors.items()}
    files["state.json"] = to_json(content.state).encode()
    shutil.rmtree(checkpoint.path)
    checkpoint.path.mkdir()
    for name, data in files.items():
        (checkpoint.path / name).write_bytes(data)
    records = {name: FileRecord(size=len(data), sha256=hashlib.sha256(data).hexdigest()) for name, data in files.items()}
    old = checkpoint.manifest
    manifest = Manifest.model_construct(format=old.format, step=old.step, saved_at=old.saved_at, files=records,
                                        metadata=content.metadata)
    (checkpoint.path / "manifest.json").write_bytes(manifest.to_bytes())
    return target


def run_command(command: str, run: Path) -> tuple[int, str]:
    """Exit code and message, as the command line has them."""
    return outcome(lambda: COMMANDS[command](run))


def outcome(action: Callable[[], Any]) -> tuple[int, str]:
    try:
        action()
    except UserError as error:
        return 2, str(error)
    except Exception:
        return 1, traceback.format_exc()
    return 0, "works"


def main() -> None:
    from tests.runs.crafted_files import FILES  # it uses this module

    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        runs = train_all(root / "runs")
        print(f"{'run':<10} {'in':<12} {'what is wrong':<45} {'command':<12} {'exit':>4}  message")
        for number, kind in enumerate(KINDS):
            for command in COMMANDS:
                if kind.concerns(command):
                    run = craft(runs[kind.run], root / f"{number}-{command}", kind.change)
                    result = run_command(command, next((run / "checkpoints").iterdir()))
                    _show(kind.run, kind.part, kind.name, command, result, run)
                    shutil.rmtree(run)
        for part, name, command, action in FILES:
            place = root / f"{part}-{name}".replace("/", "-").replace(" ", "-")
            shutil.copytree(runs["cartpole"], place)
            _show("", part, name, command, outcome(partial(action, place)), place)


def _show(run: str, part: str, name: str, command: str, result: tuple[int, str], place: Path) -> None:
    said = " ".join(result[1].replace(f"{place}/", "").split())
    print(f"{run:<10} {part:<12} {name:<45} {command:<12} {result[0]:>4}  {said[-500:]}", flush=True)


if __name__ == "__main__":
    main()
