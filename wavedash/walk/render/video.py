"""Videos as files: mp4 by PyAV, gif by Pillow; and the depth image of the robot beside the picture."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from wavedash.errors import UserError

INSTALL = "pip install 'wavedash[walk]'"
Bytes = npt.NDArray[np.uint8]

NEAR_TO_FAR = ((1.00, 0.95, 0.75), (0.99, 0.70, 0.40), (0.87, 0.36, 0.42), (0.55, 0.16, 0.51), (0.25, 0.07, 0.40),
               (0.04, 0.02, 0.12))
"""False colours of depth in equal steps, near is bright: after matplotlib's magma"""
PANEL = (24, 26, 30)
"""Colour around the depth image"""
MARGIN = 12


def false_colours(depth: Tensor, far: float) -> Tensor:
    """[rows, columns, 3] uint8 of a depth image [rows, columns]."""
    table = torch.tensor(NEAR_TO_FAR)
    at = (depth.detach().cpu().float() / far).nan_to_num(1.0).clamp(0, 1) * (len(table) - 1)
    below = at.floor().clamp(max=len(table) - 2).long()
    share = (at - below).unsqueeze(-1)
    return ((table[below] * (1 - share) + table[below + 1] * share) * 255).round().to(torch.uint8)


def beside(picture: Tensor, depth: Tensor, far: float) -> Tensor:
    """[rows, more columns, 3] uint8: the picture, and on its right the depth image in false colours, enlarged by a whole number
    as far as the height of the picture allows, at most to 55 % of its width."""
    rows, columns = picture.shape[:2]
    room = max(1, min((rows - 2 * MARGIN) // depth.shape[0], int(0.55 * columns) // depth.shape[1]))
    image = false_colours(depth, far).repeat_interleave(room, 0).repeat_interleave(room, 1)[:rows]
    panel = torch.tensor(PANEL, dtype=torch.uint8).expand(rows, image.shape[1] + 2 * MARGIN, 3).clone()
    top = (rows - image.shape[0]) // 2
    panel[top:top + image.shape[0], MARGIN:MARGIN + image.shape[1]] = image
    return torch.cat((picture.detach().cpu(), panel), 1)


def write_video(path: Path | str, frames: Iterable[Tensor], fps: float) -> Path:
    """Writes frames [rows, columns, 3] uint8 of the same size, `fps` of them per second, to a file that ends in .mp4 or .gif.
    Frames are taken one by one: a video of any length fits into memory (a gif keeps its frames compressed)."""
    path = Path(path)
    writers = {".mp4": _write_mp4, ".gif": _write_gif}
    if path.suffix.lower() not in writers:
        raise UserError(f"{path.name}: a video must end in .mp4 or .gif")
    arrays = _checked(frames)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writers[path.suffix.lower()](path, arrays, fps)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}; name another file") from error
    return path


def check_video(path: Path | str) -> None:
    """Raises UserError if such a video cannot be written: before a robot walks for minutes to be filmed."""
    suffix = Path(path).suffix.lower()
    if suffix == ".mp4":
        _av()
    elif suffix == ".gif":
        _pillow()
    else:
        raise UserError(f"{Path(path).name}: a video must end in .mp4 or .gif")


def _checked(frames: Iterable[Tensor]) -> Iterator[Bytes]:
    shape = None
    for number, frame in enumerate(frames):
        array = frame.detach().cpu().numpy()
        if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
            raise UserError(f"frame {number} of a video must be [rows, columns, 3] uint8, not {list(array.shape)} "
                            f"{array.dtype}")
        if shape is not None and array.shape != shape:
            raise UserError(f"frame {number} of a video is {list(array.shape)}, the others are {list(shape)}")
        shape = array.shape
        yield np.ascontiguousarray(array)
    if shape is None:
        raise UserError("a video needs one frame at least")


def _write_mp4(path: Path, frames: Iterator[Bytes], fps: float) -> None:
    from fractions import Fraction

    av, first = _av(), next(frames)
    rows, columns = (side - side % 2 for side in first.shape[:2])  # H.264 has no odd sizes
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
        stream.width, stream.height, stream.pix_fmt = columns, rows, "yuv420p"
        stream.options = {"crf": "20"}
        for array in _and_then(first, frames):
            image = av.VideoFrame.from_ndarray(np.ascontiguousarray(array[:rows, :columns]), format="rgb24")
            file.mux(stream.encode(image))
        file.mux(stream.encode())


def _write_gif(path: Path, frames: Iterator[Bytes], fps: float) -> None:
    image = _pillow()
    first = image.fromarray(next(frames))
    # A gif counts in hundredths of a second, and viewers slow down what is shorter than two of them.
    first.save(path, save_all=True, append_images=(image.fromarray(array) for array in frames),
               duration=max(20, round(100 / fps) * 10), loop=0)


def _and_then(first: Bytes, rest: Iterator[Bytes]) -> Iterator[Bytes]:
    yield first
    yield from rest


def _av() -> Any:
    try:
        import av
    except ImportError as error:
        raise UserError(f"PyAV, which writes mp4 files, is not installed ({error}). Install it with: {INSTALL}, or write a .gif"
                        ) from error
    return av


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise UserError(f"Pillow, which writes gif files, is not installed ({error}). Install it with: {INSTALL}") from error
    return Image
