"""Arguments that several commands share."""
from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer


class SimulatorName(StrEnum):
    """The choices of `--simulator`."""

    WARP = "warp"
    ROCKETSIM = "rocketsim"
    BOTH = "both"


class StartsName(StrEnum):
    """The choices of `--starts`."""

    KICKOFF = "kickoff"
    TASK = "task"


Source = Annotated[str, typer.Argument(metavar="PRESET|FILE", help="A preset such as cartpole, or a YAML file.")]
Overrides = Annotated[
    Optional[list[str]],  # noqa: UP045 (typer reads the annotation at run time)
    typer.Argument(metavar="KEY=VALUE", help="Options to change, such as ppo.learning_rate=1e-4."),
]
Deterministic = Annotated[
    bool, typer.Option("--deterministic/--stochastic", help="Take the likeliest action, or sample as in training.")
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code that somebody else's run folder names. Look at it before.")
]
Record = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="N|all", show_default=False, help="Keep so many games as recordings, which the page shows "
                                                           "(docs/recordings.md). Results stay the same."),
]
Recordings = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(metavar="FOLDER", show_default=False, help="With --record: where to. [default: recordings/ of the run, else "
                                                            "beside the runs]"),
]
