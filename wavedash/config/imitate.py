"""Options of imitation: a policy learns from demonstrations, and PPO goes on near to what was learned."""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wavedash.config.section import NonNegative, Positive, Section


class ImitateConfig(Section):
    """Learning from a file of demonstrations instead of from rewards (behaviour cloning): the policy learns to do what was done
    there. No environment is played; `total_steps` counts samples, so one pass over a file is as many steps as it has samples
    that are not held out. `env.count` is at how many places of the file it is read at the same time."""

    data: str
    """The file of demonstrations (docs/imitation.md): observations and actions of this environment, or game states of Rocket
    League, from which the task's own observations and actions are made. A resumed run needs the same content, at any path."""
    held_out: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """The share of the episodes that is not learned from, drawn by the seed; all cars of a game together, and of imported
    replays whole ones where there are enough. On these, loss and accuracy are measured, and `best` is the state with the least
    loss there. More: measured more precisely, less to learn from. 0: nothing is held out, and there is no `best`."""
    every: Positive = 100_000
    """Steps between two measurements on the episodes that are held out. Less: `best` is chosen from more states, which takes
    more time."""


class PriorConfig(Section):
    """A term of PPO's loss that holds the policy near to the one that it began with (`init`), such as a clone of human play:
    coef * KL(prior || policy), summed over choices (as in kickstarting, Schmitt et al. 2018). The prior is frozen, has a memory
    of its own, and is copied into the run folder."""

    coef: NonNegative = 0.1
    """Weight of the term at the beginning, per nat. Higher: what was cloned is kept longer, and rewards change less."""
    fade: Positive = 10_000_000
    """Steps over which the weight falls to exactly 0, linearly; from then on the run is PPO alone, and the prior costs nothing.
    More: what was cloned is kept longer."""
