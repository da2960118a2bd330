"""The card of a champion, card.yaml beside its weights: how it was trained. What it can do stands there too, in the words of
its game: wavedash/league/card.py, wavedash/walk/evaluate/card.py.

`wavedash champion pack` writes a card, `wavedash champion card` adds what was measured, `wavedash champion show` prints it.
"""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from wavedash.errors import UserError
from wavedash.runs.durable import replace_file
from wavedash.saved import first_problem
from wavedash.yaml_text import YamlError, read_yaml, write_yaml

CARD = "card.yaml"
Count = Annotated[int, Field(ge=0)]
Interval = Annotated[list[float], Field(min_length=2, max_length=2)]
"""The bounds of a 95 % interval"""


class Entry(BaseModel):
    """A part of a card, which never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Stage(Entry):
    """One run of the training; each but the first began with the policy of the one before."""

    command: str
    steps: Count
    gpu: str
    gpu_minutes: Annotated[float, Field(ge=0)]


class Card(Entry):
    """What is on every card."""

    name: str
    """The name of the champion and its steps, under which results have it"""
    mode: str
    """The size of its teams, or how it walks: the name of its folder"""
    parameters: Count
    """Weights of actor and critic together"""
    training: list[Stage]

    @property
    def steps(self) -> int:
        return sum(stage.steps for stage in self.training)

    @property
    def gpu_minutes(self) -> float:
        return sum(stage.gpu_minutes for stage in self.training)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """UserError: there is no card, or it holds something else."""
        path = folder / CARD
        try:
            values, _ = read_yaml(path.read_text(encoding="utf-8"))
            return cls.model_validate(values)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}; pack the champion again") from error
        except (YamlError, ValidationError) as error:
            wrong = first_problem(error) if isinstance(error, ValidationError) else error
            raise UserError(f"{path} is no card of a champion: {wrong}") from error

    def write(self, folder: Path) -> None:
        text = f"# {self.name}: written by `wavedash champion pack` and `wavedash champion card`\n"
        replace_file(folder / CARD, (text + write_yaml(self.model_dump())).encode())

    def head(self) -> list[str]:
        """The lines about its training."""
        on_gpu = f" in {self.gpu_minutes:.1f} GPU minutes" if self.gpu_minutes else ""
        lines = [f"{self.name}: {self.parameters:,} weights, trained for {self.steps:,} steps{on_gpu}"]
        for stage in self.training:
            where = f"{stage.gpu_minutes:g} minutes on {stage.gpu}" if stage.gpu_minutes else stage.gpu
            lines += [f"  {stage.command}", f"    {stage.steps:,} steps, {where}"]
        return lines


def read_stages(path: Path) -> list[Stage]:
    """Reads how a policy was trained: a YAML list with command, steps, gpu and gpu_minutes of each run, the first one first."""
    try:
        values, _ = read_yaml(path.read_text(encoding="utf-8"))
        stages = TypeAdapter(list[Stage]).validate_python(values)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (YamlError, ValidationError) as error:
        wrong = first_problem(error) if isinstance(error, ValidationError) else error.found[0][1]
        raise UserError(f"{path} does not say how the policy was trained: {wrong}. It is a list of runs, each with command, "
                        "steps, gpu and gpu_minutes") from error
    if not stages:
        raise UserError(f"{path} does not say how the policy was trained: the list is empty")
    return stages
