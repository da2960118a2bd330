"""VecEnv: the only contract between environments and the learner.

A VecEnv is a batch of environments seen as rows; a row is one agent. One call steps all rows, and nothing in the returned
`Step` may force a host copy or a host sync.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import torch
from torch import Tensor

from wavedash.envs.errors import EnvError as EnvError
from wavedash.envs.headline import Headline

Obs = Tensor | dict[str, Tensor]


class Step(NamedTuple):
    """What one step of N rows returns. Tensors may be views that the next step of the same rows overwrites."""

    obs: Obs
    """[N, ...]: the observation that the next action is chosen by, after any automatic reset."""
    reward: Tensor
    """[N] float32."""
    terminated: Tensor
    """[N] bool: the episode really ended; its future is worth nothing."""
    truncated: Tensor
    """[N] bool: the episode was cut off; its future is worth V(final_obs)."""
    final_obs: Obs
    """The last observation of the episode where it ended, elsewhere equal to obs. It is the same object as `obs` when no row
    ended, so that the collector knows that without a host sync."""
    active: Tensor
    """[N] bool: this transition is trained on. False for an empty seat, a frozen opponent, the reset row of next-step
    autoreset, and a row whose episode was dropped. Observation and reward of an inactive row may be anything, even NaN; its
    memory and running return start afresh."""
    metrics: dict[str, Tensor]
    """The environment's own metrics, [N] or scalar, on the device. Those named `episode/...` count where an episode ended,
    those named `attempt/...` where they are not NaN: where an attempt was decided. With lanes, all of them count where they are
    not NaN: a lane need not have the metrics of another."""
    lane: Tensor | None = None
    """[N] int64, where the environment has lanes (`VecEnv.lanes`): the lane in which the step was made, before any automatic
    reset. 0 is the main task, n the n-th lane."""


class VecEnv(ABC):
    """N rows that step together, or in shards that overlap with inference (`send` one shard while actions of another are
    computed)."""

    num_rows: int
    observation_space: gymnasium.Space[Any]
    """The space of one row: Box or Dict of Box."""
    action_space: gymnasium.Space[Any]
    """The space of one row: Discrete, MultiDiscrete, MultiBinary or Box."""
    source_space: gymnasium.Space[Any] | None = None
    """The space of observations as the environment gives them, where Discrete and MultiDiscrete ones became one-hot: a trained
    policy then takes either form."""
    device: torch.device = torch.device("cpu")
    rewarding: bool = True
    """Whether rewards say anything; where they do not, reports leave them out."""
    capturable: bool = False
    """Whether `step` may be captured in a CUDA graph: its state stays in the same tensors, and it never syncs with the host."""

    @property
    def groups(self) -> tuple[slice, ...]:
        """The rows of each shard (option `env.groups`). Shards step independently of each other, rows of one shard together."""
        return (slice(0, self.num_rows),)

    @property
    def lanes(self) -> Sequence[str]:
        """The names of lanes: tasks that a part of the rows have beside the main one. All rows are learned from alike; metrics
        and episodes of lanes are counted apart, as `lane/<name>/...`."""
        return ()

    @property
    def health(self) -> dict[str, int]:
        """Counters of trouble since the start (worker restarts, dropped episodes), read by reports once an iteration."""
        return {}

    @property
    def tasks(self) -> Sequence[Any]:
        """The tasks of the environments (`wavedash.tasks.task.Task`), one for each shard. A listener changes their settings
        here during a run. Empty where an environment is not made of parts."""
        return ()

    @property
    def generators(self) -> Sequence[torch.Generator]:
        """The random streams that `step` draws from. A CUDA graph that captures `step` must know them."""
        return ()

    @property
    def headlines(self) -> Sequence[Headline]:
        """The metrics that consoles and evaluations show, the most important first. The others are in the files of a run all
        the same."""
        return ()

    @property
    def fault(self) -> Tensor | None:
        """A flag on the device that stays set once something went wrong which only this environment can explain, such as which
        of its rewards was NaN. It is read with the metrics at the end of an iteration. None: nothing is watched."""
        return None

    def explain_fault(self) -> str | None:
        """Say what went wrong, where and when. Called when `fault` is set or a reward was not finite; it may sync with the
        host. None: nothing went wrong, and the flag has been cleared."""
        return None

    def name_row(self, row: int) -> str:
        """The name of a row in messages."""
        return f"row {row}"

    @abstractmethod
    def reset(self, seed: int | None = None) -> Obs:
        """Start an episode in every row. The same seed gives the same episodes, whatever the number of workers."""

    def prepare(self) -> None:  # noqa: B027 (optional)
        """Called before every rollout, outside of any CUDA graph: the place for what `step` needs but cannot do while it is
        captured, such as drawing random numbers on the host. Code that steps an environment itself calls it now and then."""

    @abstractmethod
    def step(self, action: Tensor) -> Step:
        """Step all rows once; rows whose episode ended have been reset when this returns."""

    def send(self, group: int, action: Tensor) -> None:
        """Start a step of one shard and return at once."""
        self._sent = action

    def recv(self) -> tuple[int, Step]:
        """Wait for any shard whose step was sent; returns its index and the `Step` of its rows."""
        return 0, self.step(self._sent)

    def save_state(self) -> dict[str, Tensor]:
        """Everything needed to go on exactly from here, as plain tensors. Empty where an environment cannot save its state."""
        return {}

    def keep_state(self) -> Callable[[], dict[str, Tensor]]:
        """Called before every rollout: remembers the current state and returns a function that gives it, as `save_state` would
        have. The function is called only when the rollout fails, perhaps in the middle of a step, and not after the next
        `keep_state`. There must be no host sync. An environment with a large state overrides it with something cheaper than a
        copy."""
        state = {name: x.clone() for name, x in self.save_state().items()}
        return lambda: state

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        """Go on from `save_state`; returns the current observation of every row."""
        raise EnvError(f"{type(self).__name__} cannot restore a saved state: its episodes start afresh on resume")

    def close(self) -> None:  # noqa: B027 (optional)
        """Release processes and memory. Safe to call twice."""
