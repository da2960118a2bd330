"""Other files that may come from somebody else, for `crafted.py`: configurations, links in a run folder, baked arenas."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.test_config import nested_aliases
from wavedash.config_file import dump_config, load_config
from wavedash.evaluate.own_task import evaluate
from wavedash.rocket.sim.collision.arena import baked_arena
from wavedash.rocket.sim.collision.bake import Baked
from wavedash.rocket.sim.collision.baked_file import read_baked, write_baked
from wavedash.training import resume, train

Action = Callable[[Path], Any]
Change = Callable[[np.ndarray], np.ndarray]


def names_code(*overrides: str) -> Action:
    """The configuration was changed by somebody else."""
    def action(run: Path) -> Any:
        (run / "config.yaml").write_text(dump_config(load_config(str(run / "config.yaml"), overrides)))
        return evaluate(run, episodes=1)
    return action


def link(name: str) -> Action:
    def action(run: Path) -> Any:
        outside = run.parent / f"{run.name}-outside"
        outside.write_text("precious")
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(outside)
        try:
            return resume(str(run), "total_steps=96")
        finally:
            assert outside.read_text() == "precious"
    return action


def yaml(text: str) -> Action:
    def action(run: Path) -> Any:
        (run / "my.yaml").write_text(text)
        return train(str(run / "my.yaml"))
    return action


def arena(name: str, change: Change) -> Action:
    def action(run: Path) -> Any:
        baked: Baked = baked_arena()
        write_baked(baked._replace(**{name: change(getattr(baked, name).copy())}), run / "arena.npz")
        return read_baked(run / "arena.npz")
    return action


def put(value: float) -> Change:
    def change(array: np.ndarray) -> np.ndarray:
        array.reshape(-1)[array.size // 2] = value
        return array
    return change


FACTORY = ("env.id=null", "env.factory=subprocess:call", "env.kwargs={args: [echo, hello]}")
FILES: list[tuple[str, str, str, Action]] = [
    ("config.yaml", "a factory", "eval", names_code(*FACTORY)),
    ("config.yaml", "an id with a module", "eval", names_code("env.id=evil:Env-v0")),
    ("config.yaml", "a wrapper", "eval", names_code("env.wrappers=['evil:Wrapper']")),
    ("config.yaml", "a reward", "eval", names_code("env.id=null", "env.rocket={rewards: {'evil:Reward': 1.0}}")),
    *(("link", name, "resume", link(name)) for name in ("metrics.jsonl", "log.txt", ".lock", "checkpoints/.tmp-x")),
    ("YAML", "nested aliases", "train", yaml(nested_aliases(12))),
    ("YAML", "an alias inside of itself", "train", yaml("env: &a {id: CartPole-v1, kwargs: *a}\n")),
    ("YAML", "200,000 brackets", "train", yaml("env: " + "[" * 200_000)),
    ("YAML", "ten million digits", "train", yaml("seed: " + "9" * 10**7)),
    ("arena", "first out of range", "load", arena("first", put(2**31 - 1))),
    ("arena", "first backwards", "load", arena("first", lambda x: x[::-1].copy())),
    ("arena", "items out of range", "load", arena("items", put(8020))),
    ("arena", "NaN in corners", "load", arena("corners", put(np.nan))),
    ("arena", "normals turned round", "load", arena("normals", np.negative)),
    ("arena", "a grid without walls", "load", arena("first", np.zeros_like)),
    ("arena", "another type", "load", arena("items", lambda x: x.astype(np.int64))),
]
