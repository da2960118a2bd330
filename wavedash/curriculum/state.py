"""Where a run is in its phases: what is saved with every checkpoint."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from wavedash.ppo.listeners import NAME as LISTENERS

SAVED_AS = "curriculum"
NonNegative = Annotated[int, Field(ge=0)]


class PhaseState(BaseModel):
    """The phase of a run and its progress."""

    model_config = ConfigDict(extra="forbid")

    number: NonNegative = 0
    """The phase, counted from 0"""
    began: list[int] = [0]
    """The steps of the run when each phase up to this one began"""
    held: NonNegative = 0
    """Iterations in a row in which the conditions to move on held"""
    known: dict[str, float] = {}
    """The last values of the metrics in these conditions, since the phase began"""

    def moved(self, number: int, steps: int) -> PhaseState:
        """The state after a move to a phase, forward or back. Phases that are passed over begin now, too: their ramps run."""
        kept = self.began[:number]
        return PhaseState(number=number, began=[*kept, *[steps] * (number + 1 - len(kept))])

    def within(self, phases: int) -> PhaseState:
        """The same state in a run that has so many phases now: a resumed run may have fewer."""
        last = max(phases, 1) - 1
        return self if self.number <= last else PhaseState(number=last, began=self.began[:last + 1])


def saved_phase(state: Mapping[str, Any]) -> PhaseState:
    """The phase that the plain values of a checkpoint tell; the first one where they tell none."""
    saved = state.get(LISTENERS, {}).get(SAVED_AS)
    return PhaseState() if saved is None else PhaseState.model_validate(saved)
