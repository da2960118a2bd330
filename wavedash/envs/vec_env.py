"""VecEnv: the only contract between worlds and the learner.

A world is a batch of rows. A row is one agent. One call steps all rows; nothing in the returned `Step` may force a
host copy or a wait for the device.
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
    """After any automatic reset: what the next action sees. [N, ...]"""
    reward: Tensor
    """[N] float32"""
    terminated: Tensor
    """[N] bool: the episode really ended; its future is worth nothing."""
    truncated: Tensor
    """[N] bool: the episode was cut off; its future is worth V(final_obs)."""
    final_obs: Obs
    """The last observation of the episode where it ended, elsewhere equal to obs. The very same object as `obs` when no row
    ended, so that the collector can tell without looking at the data."""
    active: Tensor
    """[N] bool: this transition is trained on. False for an empty seat, a frozen opponent, the reset row of next-step
    autoreset, and a row whose episode was dropped. What an inactive row sees and is paid may be anything, NaN too; its memory
    and running return start afresh."""
    metrics: dict[str, Tensor]
    """Figures of the world, [N] or scalar, on the device. Names that start with `episode/` count where an episode ended."""


class VecEnv(ABC):
    """N rows that step together, or in groups that overlap with inference (`send` one group while another is computed)."""

    num_rows: int
    observation_space: gymnasium.Space[Any]
    """Of one row. Box or Dict of Box."""
    action_space: gymnasium.Space[Any]
    """Of one row. Discrete, MultiDiscrete, MultiBinary or Box."""
    source_space: gymnasium.Space[Any] | None = None
    """Of the observations as the environment gives them, where choices among them (Discrete, MultiDiscrete) became one-hot:
    a trained policy then takes either form."""
    device: torch.device = torch.device("cpu")
    capturable: bool = False
    """Whether `step` may be recorded in a CUDA graph: its state stays in the same tensors, whose content it never looks at."""

    @property
    def groups(self) -> tuple[slice, ...]:
        """The rows of each group. Groups are stepped independently of each other; rows of one group together."""
        return (slice(0, self.num_rows),)

    @property
    def health(self) -> dict[str, int]:
        """Counters of trouble since the start (worker restarts, dropped episodes), read by reports once an iteration."""
        return {}

    @property
    def tasks(self) -> Sequence[Any]:
        """The tasks that it is played by (`wavedash.tasks.task.Task`), one for each of its groups: a listener changes their
        settings there during a run. Empty where an environment is not made of parts."""
        return ()

    @property
    def generators(self) -> Sequence[torch.Generator]:
        """The random streams that `step` draws from where it is captured in a CUDA graph, which must know them."""
        return ()

    @property
    def headlines(self) -> Sequence[Headline]:
        """The metrics of its steps that say what this environment is about, the most important first: consoles and evaluations
        show them. The others are in the files of a run all the same."""
        return ()

    @property
    def fault(self) -> Tensor | None:
        """A flag on the device, set for good once something went wrong that only this environment can put into words, such as
        which of its rewards was NaN. Read with everything else at the end of an iteration; None: it watches for nothing."""
        return None

    def explain_fault(self) -> str | None:
        """What went wrong, where and when. Called when `fault` is set or a reward was not finite; it may wait for the device.
        None (then the flag is taken back): nothing did."""
        return None

    def name_row(self, row: int) -> str:
        """For messages."""
        return f"row {row}"

    @abstractmethod
    def reset(self, seed: int | None = None) -> Obs:
        """Start an episode in every row. The same seed gives the same episodes, whatever the number of workers."""

    def prepare(self) -> None:  # noqa: B027 (optional)
        """Called before every rollout, outside of any recording: the place for what `step` needs but must not do itself where
        it is recorded, such as drawing random numbers. Who steps a world by hand on a GPU calls it now and then."""

    @abstractmethod
    def step(self, action: Tensor) -> Step:
        """Step all rows once; rows whose episode ended have been reset when this returns."""

    def send(self, group: int, action: Tensor) -> None:
        """Start a step of one group and return at once."""
        self._sent = action

    def recv(self) -> tuple[int, Step]:
        """Wait for any group whose step was sent; returns its index and its rows' `Step`."""
        return 0, self.step(self._sent)

    def save_state(self) -> dict[str, Tensor]:
        """Everything needed to go on exactly from here, as plain tensors. Empty where a world cannot tell."""
        return {}

    def keep_state(self) -> Callable[[], dict[str, Tensor]]:
        """Called before every rollout: remembers the state of now and returns what gives it, as `save_state` would have. It is
        asked for only when the rollout does not end well, perhaps in the middle of a step, and not after the next call. On a
        GPU without a host sync. A world whose state is large overrides it with something cheaper than a copy."""
        state = {name: x.clone() for name, x in self.save_state().items()}
        return lambda: state

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        """Go on from `save_state`; returns the current observation of every row."""
        raise EnvError(f"{type(self).__name__} cannot restore a saved state: its episodes start afresh on resume")

    def close(self) -> None:  # noqa: B027 (optional)
        """Release processes and memory. Safe to call twice."""
