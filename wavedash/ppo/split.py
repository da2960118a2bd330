"""A split says how many samples of a minibatch are computed at once.

The loss of a minibatch is a weighted sum over samples, so the gradients of its parts add up to its own: the same but for the
order of additions. Parts need less memory. A whole iteration is computed with one split, and the split is saved, because a run
that is resumed must round as it would have.
"""
from __future__ import annotations

from wavedash.config import PPOConfig
from wavedash.errors import UserError


class Split:
    """The options `accumulate` and `microbatch_size`, and what was found to fit into the memory."""

    def __init__(self, config: PPOConfig) -> None:
        self.config = config
        self.fitting: int | None = None
        """The most samples at once since memory was too small for more; None: it never was"""

    def change(self, config: PPOConfig) -> None:
        """Takes over other options. Another `microbatch_size` counts instead of what was found."""
        if config.microbatch_size != self.config.microbatch_size:
            self.fitting = None
        self.config = config

    def at_once(self, minibatch: int) -> int:
        """The most samples of such a minibatch that are computed at once."""
        limits = [limit for limit in (self.config.microbatch_size, self.fitting) if limit is not None]
        return min([-(-minibatch // self.config.accumulate), *limits])

    def parts(self, size: int, length: int = 1) -> int:
        """The number of parts of a minibatch of so many samples, or of sequences of this length, which stay whole."""
        return max(self.config.accumulate, -(-size // max(1, self.at_once(size * length) // length)))

    def halve(self, minibatch: int, length: int = 1) -> int:
        """Computes half as many samples at once from now on, and returns how many. UserError: nothing is left to split."""
        before = self.at_once(minibatch)
        if before < 2 * length:
            what = "one sample" if length == 1 else f"one sequence of {length} steps (policy.memory.sequence)"
            raise UserError(f"the update does not fit into the memory of the device even where {what} is computed at once: "
                            "close other programs that use it, or set fewer environments (env.count), a smaller "
                            "ppo.rollout_steps or smaller networks (policy.hidden)")
        self.fitting = before // 2
        return self.fitting

    def state(self) -> list[int | None] | None:
        """Returns what was found, with the option that it was found under; None: nothing was."""
        return None if self.fitting is None else [self.config.microbatch_size, self.fitting]

    def load(self, state: list[int | None] | None) -> None:
        """Goes on with what was found, unless `microbatch_size` has another value now."""
        configured, fitting = state or (None, None)
        self.fitting = fitting if configured == self.config.microbatch_size else None
