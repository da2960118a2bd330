"""Milestones are versions of a run that are kept for ever, each a whole checkpoint under a name that says how far the run was.

    milestones/
      40M/                 of a run without phases; of one that has phases, Phase2-Scoring/40M/; with a label, 40M-aerials/
        manifest.json ...  a checkpoint like any other
        milestone.json     what is known of it: steps, time, phase, reward, return, entropy, KL, rating
        config.yaml        the settings that it was trained with, whatever the run has changed since
        signature.json     shows that this user started it, where the configuration names code; see trust.py

A run writes one every so many steps, and whenever a user orders it. A milestone is never replaced or pruned. If a run comes by
a name again it is one of two things. A run that was killed repeats the iterations since its last checkpoint: the milestone is
there already. A run that went back to an earlier checkpoint makes another version, which gets the name `40M.2`.
"""
from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from wavedash.config import RunConfig
from wavedash.config_file import dump_config
from wavedash.errors import UserError
from wavedash.runs.checkpoint import CONFIG, MILESTONES, Checkpoint, CheckpointError, Manifest, Tensors
from wavedash.runs.plain import to_json
from wavedash.runs.store import HIDDEN, CheckpointStore
from wavedash.runs.trust import SIGNATURE, signature_of
from wavedash.runs.typed import typed

FACTS = "milestone.json"
LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")
"""What a user may call a milestone besides: nothing that reads as a number of steps"""
NAME = re.compile(rf"(\d+(?:\.\d+)?M|\d+)(?:-({LABEL.pattern}))?(?:\.\d+)?")
"""The name of a milestone: the steps that it stands for (`40M`, `0.5M`, `4096`), its label if it has one (`40M-aerials`), and
`.2` if it is the second of this name"""
PHASE = re.compile(r"Phase\d+(-[\w .+-]+)?")
"""The name of the folder of a phase"""
TYPED = re.compile(r"(\d+(?:\.\d+)?)(k|m|b|)", re.IGNORECASE)
UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9}

HOW = "A run saves them if it is told to: milestones.every=10000000; or now: wavedash set RUN milestone"
"""How to get a milestone"""

log = logging.getLogger(__name__)


class MilestoneError(CheckpointError):
    """There is no such milestone; the message names the nearest ones."""


def name_of(steps: int) -> str:
    """Returns the name for this number of steps: in millions where two decimals are enough, else the number itself."""
    return str(steps) if steps % 10_000 else f"{Decimal(steps).scaleb(-6).normalize():f}M"


def read_steps(text: str) -> int | None:
    """Returns the number of steps that a user means by `40M`, `1.5B`, `500k`, `40000000` or `40,000,000`. None: it is no whole
    number of steps."""
    found = TYPED.fullmatch(text.strip().replace(",", "").replace("_", ""))
    steps = None if found is None else Decimal(found[1]) * UNITS[found[2].lower()]
    return None if steps is None or steps != int(steps) else int(steps)


def check_label(label: str | None) -> None:
    """Raises UserError unless a user may call a milestone so."""
    if label is not None and LABEL.fullmatch(label) is None:
        raise UserError(f"{label!r} cannot name a milestone: use up to 60 letters, digits, - and _, a letter first")


@dataclass(frozen=True)
class Milestone:
    """What is known of a milestone, from its manifest alone."""

    checkpoint: Checkpoint

    @property
    def name(self) -> str:
        return self.checkpoint.path.name

    @property
    def phase(self) -> str | None:
        """The folder of its phase; None in a run without phases."""
        parent = self.checkpoint.path.absolute().parent.name
        return None if parent == MILESTONES else parent

    @property
    def label(self) -> str | None:
        """Returns what its user called it."""
        found = NAME.fullmatch(self.name)
        return None if found is None else found[2]

    @property
    def full_name(self) -> str:
        """Its name with that of its phase, as a path in `milestones/`."""
        return self.name if self.phase is None else f"{self.phase}/{self.name}"

    @property
    def mark(self) -> int:
        """The steps that its name stands for. It was saved at the end of the iteration that came past them."""
        mark = _mark_of(self.checkpoint.path)
        return self.checkpoint.step if mark is None else mark

    def facts(self) -> dict[str, Any]:
        """Returns what `milestone.json` and `wavedash milestones --json` say of it. None: not known."""
        manifest, metrics = self.checkpoint.manifest, self.checkpoint.metrics
        rating = {name: _finite(value) for name, value in self.checkpoint.metadata.get("rating", {}).items()}
        return {"milestone": self.name, "phase": self.phase, "steps": manifest.step, "time": _time(manifest.saved_at),
                "iteration": self.checkpoint.metadata.get("iteration"),
                "mean_reward": _finite(metrics.get("rollout/reward")), "mean_return": _finite(metrics.get("recent/return")),
                "entropy": _finite(metrics.get("policy/entropy")), "kl": _finite(metrics.get("policy/kl")),
                "rating": rating or None}


class MilestoneStore(CheckpointStore):
    """A store whose checkpoints have names. Readers need the folder alone; a writer sets the other attributes."""

    def __init__(self, folder: str | Path, every: int = 1) -> None:
        """`every`: a milestone is named by the last multiple of so many steps."""
        super().__init__(folder, keep=None)
        self.every = every
        self.label: str | None = None
        """What the user calls the next one"""
        self.phase: str | None = None
        """The folder of the phase that the run is in, such as `Phase2-Scoring`; None in a run without phases"""
        self.config: RunConfig | None = None
        """The settings of the run as it goes on"""
        self.since: int | None = None
        """When the checkpoint was saved from which the run goes on (milliseconds since 1970). What was saved later belongs to
        iterations that the run repeats. None: the run repeats nothing."""
        self._last: list[Checkpoint] | None = None
        """The last one that was saved, if any; None: not looked for yet"""

    def save(self, step: int, tensors: Tensors, state: dict[str, Any], metadata: dict[str, Any]) -> Path:
        """Does what a store does, but a milestone that the run has written before it was killed stays as it is."""
        there = self._repeated(step)
        return super().save(step, tensors, state, metadata) if there is None else there.path

    @contextmanager
    def ordered(self, every: int, label: str | None) -> Iterator[None]:
        """Within it, what is saved is not one of the regular milestones: a user has ordered it."""
        kept = self.every, self.label, self.since
        self.every, self.label, self.since = every, label, None
        try:
            yield
        finally:
            self.every, self.label, self.since = kept

    def listed(self) -> tuple[list[Milestone], list[CheckpointError]]:
        """Returns the milestones by their manifests, the last saved first, and the errors of those that cannot be read."""
        checkpoints, broken = self._open_all()
        return [Milestone(checkpoint) for checkpoint in checkpoints], broken

    def find(self, name: str) -> Checkpoint:
        """Returns the milestone that a user means by the name of its folder (with or without that of its phase), by its label,
        by the steps that it stands for, or by its own number of steps. CheckpointError: there is none, or it is damaged."""
        known, broken = self.listed()
        for milestone in _called(name, known):
            milestone.checkpoint.verify()
            return milestone.checkpoint
        raise MilestoneError(self._unknown(name, read_steps(name), known, broken))

    def has(self, name: str) -> bool:
        """Whether there is a milestone that a user means by this name; it may be damaged."""
        return bool(_called(name, self.listed()[0]))

    def _unknown(self, name: str, steps: int | None, known: list[Milestone], broken: list[CheckpointError]) -> str:
        unread = "".join(f"\n  not readable: {error}" for error in broken)
        if not known:
            return (f"{self.folder.parent} has no milestones{unread or ' yet'}\n{HOW}")
        if steps is None:
            shown, what = known[:8], f"{name!r} names no milestone of {self.folder.parent} (40M, 1.5B or 40000000 would); there"
        else:
            shown = sorted(known, key=lambda one: (abs(one.mark - steps), -one.checkpoint.manifest.saved_at))[:2]
            what = f"{self.folder.parent} has no milestone {name}; the nearest"
        named = ", ".join(f"{one.name} ({one.checkpoint.step:,} steps)" for one in shown)
        is_or_are = "is" if len(shown) == 1 else "are"
        return f"{what} {is_or_are} {named}{unread}\n`wavedash milestones {typed(self.folder.parent)}` lists all of them"

    def _repeated(self, step: int) -> Checkpoint | None:
        """Returns the milestone of this step if the run has written it already, in iterations that it now repeats. A damaged
        one does not count."""
        if self.since is None:
            return None
        mark = self._mark(step)
        for checkpoint in self._open_all([path for path in self._paths() if _mark_of(path) == mark])[0]:
            if checkpoint.manifest.saved_at > self.since:
                try:
                    checkpoint.verify()
                    return checkpoint
                except CheckpointError as error:
                    log.warning("a milestone is saved once more: %s", error)
        return None

    def _mark(self, step: int) -> int:
        return step // self.every * self.every

    # --- what differs from other stores --------------------------------------------------------------------------------

    def _paths(self) -> list[Path]:
        """Returns milestones right in the folder, and in the folders of phases."""
        found = _folders(self.folder)
        phases = [path for path in found if PHASE.fullmatch(path.name)]
        return [path for path in (*found, *(path for phase in phases for path in _folders(phase)))
                if NAME.fullmatch(path.name)]

    def _path_of(self, step: int) -> Path:
        name = name_of(self._mark(step)) if self.label is None else f"{name_of(self._mark(step))}-{self.label}"
        return (self.folder if self.phase is None else self.folder / self.phase) / name

    def _files_beside(self, target: Path, step: int, saved_at: int, metadata: Mapping[str, Any]) -> Mapping[str, bytes]:
        described = Checkpoint(target, Manifest(step=step, saved_at=saved_at, files={}, metadata=dict(metadata)))
        files = {FACTS: to_json(Milestone(described).facts()).encode()}
        if self.config is not None:
            files[CONFIG] = dump_config(self.config).encode()
            if (signature := signature_of(self.config)) is not None:
                files[SIGNATURE] = signature
        return files

    def _earlier(self) -> list[Checkpoint]:
        """Returns the last milestone alone: none are removed, and there may be hundreds. They are read once, because no other
        process writes any."""
        if self._last is None:
            self._last = super()._earlier()[:1]
        return self._last

    def _finish(self, saved: Checkpoint, earlier: list[Checkpoint]) -> None:
        """Removes nothing."""
        self._last = [saved]


def _called(name: str, known: list[Milestone]) -> list[Milestone]:
    """Returns those that a user may mean by a name, the likeliest first."""
    steps = read_steps(name)
    by_name = [one for one in known
               if name.lower() in (one.name.lower(), one.full_name.lower(), (one.label or one.name).lower())]
    by_steps = [one for one in known if steps is not None and steps in (one.mark, one.checkpoint.step)]
    return [*by_name, *by_steps]


def _mark_of(path: Path) -> int | None:
    """Returns the steps that the name of a milestone's folder stands for."""
    found = NAME.fullmatch(path.name)
    return None if found is None else read_steps(found[1]) or 0


def _folders(path: Path) -> list[Path]:
    return [folder for folder in sorted(path.glob("*"))
            if not folder.name.startswith(HIDDEN) and folder.is_dir() and not folder.is_symlink()]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _time(milliseconds: int) -> str | None:
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):  # no time of this era: somebody else wrote it
        return None
