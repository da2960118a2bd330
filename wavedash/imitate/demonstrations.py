"""The file format of demonstrations: what somebody saw and did, as one `.safetensors` file.

Reading maps the file into memory and runs nothing of it. There are two kinds. `samples` holds observations and actions of
one environment: `obs` [N, ...] or `obs.KEY` [N, ...], `action` [N, ...] as the environment received it, and perhaps `mask`
[N, actions] and `known` [N], whether the action is known. `states` holds game states of Rocket League from which each run makes
observations of its own: the arrays of `save_frames` over N moments, `controls` [N, C, 8] that each car chose at this moment,
and `known` [N, C], whether they are known, and perhaps `recording` [N] int32, from which recorded game each moment is: where
there are enough, whole recordings are held out.

Both have `episode` [N] int32: rows of one episode follow each other, in the order of time.
"""
from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.runs.durable import prepare_file

FORMAT, VERSION = "wavedash-demonstrations", "1"
CONTROLS = 8
"""Numbers of a car's controls: throttle, steer, pitch, yaw, roll, jump, boost, handbrake"""
AT_ONCE = 1 << 22
"""Numbers that are checked at once: a file may be larger than the memory"""
Kind = Literal["samples", "states"]


@dataclass(frozen=True)
class Demonstrations:
    """The content of a file. Tensors are views of the mapped file: they must not be written to."""

    path: Path
    kind: Kind
    metadata: dict[str, str]
    tensors: dict[str, Tensor]

    @property
    def count(self) -> int:
        """Samples or moments."""
        return len(self.tensors["episode"])

    @property
    def ticks(self) -> int:
        """states: physics ticks from one moment to the next."""
        return int(self.metadata["ticks"])

    def begins(self) -> Tensor:
        """[N] bool: the first row of each episode."""
        return episode_begins(self.tensors["episode"])


def episode_begins(episode: Tensor) -> Tensor:
    """[N] bool: where another number begins."""
    begins = torch.ones(len(episode), dtype=torch.bool, device=episode.device)
    begins[1:] = episode[1:] != episode[:-1]
    return begins


def write_samples(path: str | Path, obs: Tensor | Mapping[str, Tensor], action: Tensor, episode: Tensor,
                  mask: Tensor | None = None, metadata: Mapping[str, str] | None = None, known: Tensor | None = None) -> None:
    """Writes observations and actions of one environment; actions that are not `known` [N] are not learned. UserError: they do
    not go together."""
    parts = {f"obs.{key}": x for key, x in obs.items()} if isinstance(obs, Mapping) else {"obs": obs}
    tensors = {**parts, "action": action, "episode": episode.to(torch.int32)}
    if mask is not None:
        tensors["mask"] = mask.bool()
    if known is not None:
        tensors["known"] = known.bool()
    _write(Path(path), "samples", tensors, metadata or {})


def write_states(path: str | Path, frames: Mapping[str, Tensor], controls: Tensor, known: Tensor, episode: Tensor, ticks: int,
                 metadata: Mapping[str, str] | None = None, recording: Tensor | None = None) -> None:
    """Writes game states with controls. `frames` are the arrays of `wavedash.rocket.starts.frames.frame_arrays`; `recording`
    [N] numbers the games that episodes are from. UserError: they do not go together."""
    tensors = {**frames, "controls": controls.float(), "known": known.bool(), "episode": episode.to(torch.int32)}
    if recording is not None:
        tensors["recording"] = recording.to(torch.int32)
    _write(Path(path), "states", tensors, {**(metadata or {}), "ticks": str(ticks)})


def read(path: str | Path, kind: Kind | None = None) -> Demonstrations:
    """Reads and checks a file. UserError: it cannot be read, is damaged, or holds numbers that cannot be learned from; with
    `kind`, also if it is of another kind."""
    from safetensors import safe_open

    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file of demonstrations; write one with write_samples or write_states of "
                        "wavedash.imitate.demonstrations")
    try:
        with safe_open(path, "pt") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dictionary)
    except Exception as error:  # safetensors raises several kinds of exceptions
        raise UserError(f"{path} cannot be read as .safetensors: {error}. Copy or record it again") from error
    if metadata.get("format") != FORMAT:
        raise UserError(f"{path} holds no demonstrations: its metadata has no format={FORMAT}")
    if metadata.get("version") != VERSION:
        raise UserError(f"{path} has version {metadata.get('version')} of the format, and this program reads version "
                        f"{VERSION}: record it again, or update wavedash")
    found = metadata.get("kind")
    if found not in ("samples", "states"):
        raise UserError(f"{path} holds demonstrations of the unknown kind {found!r}: samples and states are known")
    if kind is not None and found != kind:
        raise UserError(f"{path} holds {found}, but {kind} are needed here")
    _check(path, found, tensors, metadata)
    return Demonstrations(path, found, metadata, tensors)


def prepare(path: Path) -> None:
    """Says what prevents a file of demonstrations, before anything is played for it. UserError: it cannot be written."""
    if path.suffix != ".safetensors":
        raise UserError(f"{path}: demonstrations are stored as .safetensors; choose this ending")
    prepare_file(path)


def _write(path: Path, kind: Kind, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    from safetensors.torch import save_file

    prepare(path)
    stored = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
    described = {**metadata, "format": FORMAT, "version": VERSION, "kind": kind}
    _check(path, kind, stored, described)
    part = path.with_name(f".{path.name}.part")
    try:
        save_file(stored, part, described)
        os.replace(part, path)
    except Exception as error:  # a full disk is no OSError here
        with suppress(OSError):
            part.unlink()  # a partial file would only take space
        raise UserError(f"cannot write {path}: {error}. Make room, or name another file") from error


def _check(path: Path, kind: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Raises UserError for the first thing that is wrong."""
    required = ("action", "episode") if kind == "samples" else ("controls", "known", "episode")
    if missing := [name for name in required if name not in tensors]:
        raise UserError(f"{path} holds no {', '.join(missing)}; demonstrations of the kind {kind} need {', '.join(required)}")
    if kind == "samples" and not any(name == "obs" or name.startswith("obs.") for name in tensors):
        raise UserError(f"{path} holds no obs and no obs.KEY; demonstrations of the kind samples need observations")
    episode = tensors["episode"]
    if episode.dim() != 1 or episode.dtype != torch.int32:
        raise UserError(f"{path}: episode must be int32 [N], is {episode.dtype} {list(episode.shape)}")
    if not len(episode):
        raise UserError(f"{path} is empty: it holds no {'samples' if kind == 'samples' else 'moments'}")
    for name, x in tensors.items():
        if x.dim() == 0 or len(x) != len(episode):
            raise UserError(f"{path}: {name} must have {len(episode):,} rows as episode has, its shape is {list(x.shape)}")
        if x.is_floating_point():
            _check_finite(path, name, x)
    if kind == "states":
        _check_states(path, tensors, metadata)


def _check_states(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    controls, known = tensors["controls"], tensors["known"]
    if controls.dim() != 3 or controls.shape[2] != CONTROLS or controls.dtype != torch.float32:
        raise UserError(f"{path}: controls must be float32 [N, cars, {CONTROLS}], is {controls.dtype} {list(controls.shape)}")
    if known.dtype != torch.bool or known.shape != controls.shape[:2]:
        raise UserError(f"{path}: known must be bool {list(controls.shape[:2])}, is {known.dtype} {list(known.shape)}")
    if "recording" in tensors and (tensors["recording"].dim() != 1 or tensors["recording"].dtype != torch.int32):
        found = tensors["recording"]
        raise UserError(f"{path}: recording must be int32 [N], is {found.dtype} {list(found.shape)}")
    ticks = metadata.get("ticks", "")
    if not ticks.isdigit() or int(ticks) < 1:
        raise UserError(f"{path}: its metadata must say how many ticks are between two moments (ticks=8), but says {ticks!r}")


def _check_finite(path: Path, name: str, x: Tensor) -> None:
    rows = max(1, AT_ONCE // max(1, x[0].numel()))
    for first in range(0, len(x), rows):
        finite = x[first : first + rows].isfinite().flatten(1).all(-1) if x.dim() > 1 else x[first : first + rows].isfinite()
        if not bool(finite.all()):
            raise UserError(f"{path}: {name} holds NaN or infinity in row {first + int((~finite).int().argmax()):,}: leave "
                            "such rows out when the file is written")
