"""Where a run is in its phases: what is saved with every checkpoint."""
from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wavedash.ppo.listeners import NAME as LISTENERS

log = logging.getLogger(__name__)

SAVED_AS = "curriculum"
NonNegative = Annotated[int, Field(ge=0)]


class PhaseState(BaseModel):
    """The phase of a run and its progress."""

    model_config = ConfigDict(extra="forbid")

    number: NonNegative = 0
    """The phase, counted from 0"""
    name: str = ""
    """Its name, by which it is found again if phases were added or removed; empty: not known"""
    began: list[int] = [0]
    """The steps of the run when each phase up to this one began"""
    held: NonNegative = 0
    """Iterations in a row in which the conditions to move on held"""
    known: dict[str, float] = {}
    """The last values of the metrics in these conditions, since the phase began"""

    @model_validator(mode="after")
    def _whole(self) -> PhaseState:
        if len(self.began) != self.number + 1:
            raise ValueError(f"phase {self.number + 1} has {len(self.began)} beginnings")
        return self

    def moved(self, number: int, steps: int) -> PhaseState:
        """The state after a move to a phase, forward or back. Phases that are passed over begin now, too: their ramps run."""
        kept = self.began[:number]
        return PhaseState(number=number, began=[*kept, *[steps] * (number + 1 - len(kept))])

    def among(self, names: Sequence[str]) -> PhaseState:
        """The same state in a run whose phases have these names now: a resumed run may have more or fewer. A phase keeps the
        step at which it began; one that was inserted before it counts as passed over then."""
        if not names:
            return PhaseState()
        number = names.index(self.name) if self.name in names else min(self.number, len(names) - 1)
        if self.name and self.name not in names:
            log.warning("the run was in the phase %s, which it has no more: it goes on in %s", self.name, names[number])
        if number == self.number:
            return self.model_copy(update={"name": names[number]})
        same = min(number, self.number)
        began = [*self.began[:same], *[self.began[-1]] * (number + 1 - same)]
        return PhaseState(number=number, name=names[number], began=began)


def saved_phase(state: Mapping[str, Any]) -> PhaseState:
    """The phase that the plain values of a checkpoint tell. A run that had no phases begins with the first one now."""
    saved = state.get(LISTENERS, {}).get(SAVED_AS)
    return PhaseState(began=[state.get("steps", 0)]) if saved is None else PhaseState.model_validate(saved)
