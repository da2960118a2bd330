"""`wavedash eval RUN`: how good a policy is, as its kind of environment measures it."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.loading import load_run


class Measured(ABC):
    """What an evaluation returns; `str()` is what `wavedash eval` prints."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """The same and more, as plain values for JSON."""

    @classmethod
    def side_by_side(cls, results: Mapping[str, Any]) -> str:
        """Returns what is printed for several results of this class, by the names of their runs; by default one after
        another."""
        return "\n\n".join(map(str, results.values()))


def measure(run: str | Path, episodes: int | None = None, deterministic: bool = True, seed: int = 1, trust: bool = False,
            progress: Callable[[float], None] | None = None, **options: Any) -> Measured:
    """Measures the policy of a run, on the device of the run, as its kind of environment does. `options` are those of the kind;
    one that is None was not given. `trust`: also run code that a run of another user names."""
    loaded = load_run(run, trust=trust).to_run_device()
    config = loaded.config.env
    kind, given = kind_of(config), {name: value for name, value in options.items() if value is not None}
    if refused := [name for name in given if name not in kind.eval_options]:
        takes = ", ".join(f"--{name}" for name in ("episodes", "stochastic", *kind.eval_options))
        raise UserError(f"--{refused[0]} is not for {kind.describe(config)} ({loaded.path}); its options are {takes}")
    return kind.evaluate(loaded, episodes, deterministic, seed, progress, **given)


def side_by_side(results: Mapping[str, Measured]) -> str:
    """Returns what `wavedash eval` prints for several runs, by name."""
    first = next(iter(results.values()))
    alike = len(results) > 1 and all(type(result) is type(first) for result in results.values())
    return (type(first) if alike else Measured).side_by_side(results)
