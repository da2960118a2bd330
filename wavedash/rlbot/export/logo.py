"""A bot's picture: a car's chevrons on a gradient whose colour follows from the bot's name, as PNG without a library."""
from __future__ import annotations

import struct
import zlib
from colorsys import hls_to_rgb

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 400, 300
"""What RLBot's GUI expects"""


def logo(name: str) -> bytes:
    """The picture of a bot of this name, as the bytes of a PNG."""
    hue = zlib.crc32(name.encode()) / 2**32
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float64)
    dark, light = (np.array(hls_to_rgb(hue, lightness, 0.6)) * 255 for lightness in (0.18, 0.45))
    picture = dark + (light - dark) * ((x + y) / (WIDTH + HEIGHT))[..., None]
    for start in (90.0, 160.0, 230.0):
        edge = x - start - 0.5 * np.minimum(y - 60, 240 - y)
        inside = (edge >= 0) & (edge < 36) & (y >= 60) & (y < 240)
        picture[inside] = 255 - (255 - light) * 0.15
    return _png(picture.round().astype(np.uint8))


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Pixels [height, width, 3] as a PNG, whose rows begin with a zero: no filter."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1).tobytes()
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
