"""Gradients that are not finite are skipped with a warning; several iterations without a finite one end the run."""
from __future__ import annotations

import logging

from wavedash.errors import UserError

log = logging.getLogger(__name__)

MOST_DEAD_UPDATES = 5
"""After so many iterations in a row without one finite gradient the run ends: it will not recover by itself."""


class DivergedError(UserError):
    """No gradient has been finite for several iterations."""


class DivergenceWatch:
    """Counts iterations in a row in which no gradient step was applied."""

    def __init__(self) -> None:
        self.dead_updates = 0

    def watch(self, applied: int, skipped: int, iteration: int, steps: int) -> None:
        """Is told how many gradient steps of an iteration were applied, and how many were skipped because they were not finite.
        DivergedError: it has happened too often."""
        if skipped:
            log.warning(
                "%d gradient step(s) of iteration %d were not finite and were skipped; weights are unharmed. "
                "If this repeats, lower ppo.learning_rate or look for huge rewards or observations.", skipped, iteration,
            )
        self.dead_updates = self.dead_updates + 1 if skipped and not applied else 0
        if self.dead_updates >= MOST_DEAD_UPDATES:
            raise DivergedError(
                f"no finite gradient in the last {self.dead_updates} iterations (step {steps}). The weights are those of "
                "the last good update. Look for huge rewards and observations, lower ppo.learning_rate or ppo.max_grad_norm, "
                "or set ppo.normalize_obs=true and ppo.normalize_reward=true; then resume."
            )
