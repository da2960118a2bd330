"""The run at Weights & Biases that scripts get as `wandb_run`. The client has a process of its own, see `report/wandb.py`."""
from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from wavedash.compat.rlgym_ppo.report import numbers_of
from wavedash.ppo.listener import IterationReport
from wavedash.report.wandb import Wandb

if TYPE_CHECKING:
    from wavedash.config import RunConfig
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

IDENTITY = "wandb.json"
"""A file in the run folder that identifies the run at Weights & Biases, for when training goes on from one of its
checkpoints"""
NAMES = ("id", "entity", "project", "group", "name")


class WandbRun(Wandb):
    """Sends the numbers that are given to `log`; pictures and tables need a `wandb_run` of your own."""

    def __init__(self, config: RunConfig, folder: Path, identity: Mapping[str, str]) -> None:
        super().__init__(config, folder)
        self.settings |= identity
        self._learner: Learner | None = None
        self._warned = False

    @property
    def id(self) -> str:
        return str(self.settings["id"])

    @property
    def project(self) -> Any:
        return self.settings["project"]

    @property
    def group(self) -> Any:
        return self.settings.get("group")

    @property
    def entity(self) -> Any:
        return self.settings.get("entity")

    @property
    def name(self) -> Any:
        return self.settings["name"]

    @property
    def config(self) -> Any:
        return self.settings["config"]

    def log(self, data: Mapping[str, Any]) -> None:
        numbers = numbers_of(data)
        if len(numbers) < len(data) and not self._warned:
            self._warned = True
            log.warning("only numbers are sent to Weights & Biases, not %s: pass a run of your own, wandb_run=wandb.init(...)",
                        ", ".join(name for name in data if name not in numbers))
        self.outbox.put(json.dumps({"steps": self._learner.steps if self._learner else 0, **numbers}))

    def finish(self) -> None:
        """Does nothing: the run is finished at the end of the training."""

    def writing_into(self, folder: Path) -> Self:
        """Sets the folder of the run, once there is one."""
        self.folder = folder
        self.settings["dir"] = str(folder)
        return self

    def on_start(self, learner: Learner) -> None:
        identity = {name: self.settings[name] for name in NAMES if name in self.settings}
        (self.folder / IDENTITY).write_text(json.dumps(identity), encoding="utf-8")
        self._learner = learner
        super().on_start(learner)

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        """Does nothing: the Reporter calls `log`."""


def saved_identity(checkpoint: Path, book: Mapping[str, Any]) -> dict[str, str] | None:
    """Returns the identity of the run of a checkpoint, which is our own, or rlgym-ppo's with its book-keeping."""
    if "wandb_run_id" in book:
        theirs = {"id": "wandb_run_id", "entity": "wandb_entity", "project": "wandb_project", "group": "wandb_group"}
        return {name: str(book[key]) for name, key in theirs.items() if book.get(key)}
    try:
        found = json.loads((checkpoint.absolute().parent.parent / IDENTITY).read_text(encoding="utf-8"))
        return {name: str(found[name]) for name in NAMES if name in found}
    except (OSError, ValueError, TypeError):
        return None


def identity_to_save(run: Any) -> dict[str, Any]:
    """Returns what rlgym-ppo saves about a run at Weights & Biases, our own or the script's."""
    if getattr(run, "id", None) is None:
        return {}
    config: Any = getattr(run, "config", None)
    names = {f"wandb_{name}": getattr(run, name, None) for name in ("project", "entity", "group")}
    return {"wandb_run_id": run.id, **names, "wandb_config": config.as_dict() if hasattr(config, "as_dict") else config}
