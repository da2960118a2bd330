"""A file that WAVEDASH_ARENA names may come from anybody: whatever is in it, no kernel reads out of bounds or gets NaN."""
from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from wavedash.errors import UserError
from wavedash.rocket.sim.collision.arena import baked_arena
from wavedash.rocket.sim.collision.bake import BOUNDARY, Baked
from wavedash.rocket.sim.collision.baked_file import BAKED_FILE, check_baked, read_baked, write_baked


@pytest.fixture(scope="module")
def baked() -> Baked:
    return baked_arena()


def put(value):
    """Writes the value at a random place."""
    def change(array, rng):
        array.reshape(-1)[rng.integers(array.size)] = value
        return array
    return change


def whole(function):
    return lambda array, rng: function(array)


EVERY = {
    "another type": whole(lambda array: array.astype(np.float64 if array.dtype == np.float32 else np.int64)),
    "swapped bytes": whole(lambda array: array.astype(array.dtype.newbyteorder())),
    "empty": whole(lambda array: array[:0]),
    "one more dimension": whole(lambda array: array[None]),
    "a single number": whole(lambda array: array.reshape(-1)[0]),
    "shorter": whole(lambda array: array[:-1]),
    "longer": whole(lambda array: np.concatenate([array, array[-1:]])),
    "complex": whole(lambda array: array.astype(np.complex64)),
    "text": whole(lambda array: np.full(array.shape, "x")),
}
FLOATS = {f"{value}": put(value) for value in (np.nan, np.inf, -np.inf, 1e30, -1e30)}
INTEGERS = {f"{value}": put(value) for value in (-1, -(2**31), 2**31 - 1, 10**6)}
OWN = {
    "corners": {"flat": whole(lambda a: np.repeat(a[:, :1], 3, axis=1)), "moved": whole(lambda a: a + np.float32(300.0)),
                "all zero": whole(np.zeros_like)},
    "normals": {"all zero": whole(np.zeros_like), "turned": whole(np.negative), "too long": whole(lambda a: 2 * a)},
    "angles": {"beyond a half turn": put(3.5)},
    "mesh": {"unsorted": whole(lambda a: a[::-1].copy()), "16": put(16)},
    "first": {"all zero": whole(np.zeros_like), "backwards": whole(lambda a: a[::-1].copy()),
              "beyond": whole(lambda a: np.where(np.arange(len(a)) > len(a) // 2, a + 1, a)),
              "one list for all": whole(lambda a: np.where(np.arange(len(a)) == 0, 0, a[-1]))},
    "items": {"all zero": whole(np.zeros_like), "backwards": whole(lambda a: a[::-1].copy()), "8020": put(8020)},
}
CHANGES = [(name, kind, change) for name in Baked._fields
           for kinds in (EVERY, INTEGERS if name in ("mesh", "first", "items") else FLOATS, OWN[name])
           for kind, change in kinds.items()]


@pytest.mark.parametrize(("name", "change"), [pytest.param(name, change, id=f"{name}, {kind}")
                                              for name, kind, change in CHANGES])
def test_a_changed_field_is_refused_by_name(baked: Baked, name: str, change) -> None:
    rng = np.random.default_rng(0)
    wrong = baked._replace(**{name: change(getattr(baked, name).copy(), rng)})
    with pytest.raises(ValueError, match=r"corners|normals|angles|mesh|first|items"):
        check_baked(wrong)


@pytest.mark.slow
def test_random_words_are_refused_or_harmless(baked: Baked) -> None:
    """A file that passes has every index in range and every number finite, which is all that kernels rely on."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        name = rng.choice(Baked._fields)
        array = getattr(baked, name).copy()
        array.view(np.int32).reshape(-1)[rng.integers(array.size)] = rng.integers(-2**31, 2**31)
        changed = baked._replace(**{name: array})
        try:
            check_baked(changed)
        except ValueError:
            continue
        assert all(np.isfinite(part).all() for part in changed)
        assert changed.items.min() >= 0 and changed.items.max() < len(changed.mesh)
        assert changed.first.min() >= 0 and changed.first.max() <= len(changed.items)


def test_an_angle_at_a_border_is_right(baked: Baked) -> None:
    check_baked(baked._replace(angles=np.full_like(baked.angles, BOUNDARY)))


def bomb(file: Path) -> None:
    """Writes a file of a few KiB that unpacks to 65 MiB."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("corners.npy", bytes(65 * 2**20))


def without_first(file: Path) -> None:
    np.savez(file, corners=np.zeros((1, 3, 3), np.float32))


def objects(file: Path) -> None:
    np.savez(file, **dict.fromkeys(Baked._fields, np.array([object()])))


def plain_array(file: Path) -> None:
    data = io.BytesIO()
    np.save(data, np.zeros(3))
    file.write_bytes(data.getvalue())


def claims_too_much(file: Path) -> None:
    header = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 3, 3), }"
    with zipfile.ZipFile(file, "w") as archive:
        for name in Baked._fields:
            archive.writestr(f"{name}.npy", header.ljust(127) + b"\n")


@pytest.mark.parametrize("write", [bomb, without_first, objects, plain_array, claims_too_much, Path.touch, Path.mkdir, id,
                                   lambda file: file.write_bytes(b"PK\x03\x04" + bytes(100))])
def test_a_wrong_file_is_named_with_the_next_step(write, tmp_path, monkeypatch) -> None:
    file = tmp_path / "arena.npz"
    write(file)
    monkeypatch.setenv(BAKED_FILE, str(file))
    with pytest.raises(UserError, match=r"arena\.npz is not a baked arena .*Remove it.*WAVEDASH_ARENA.*unset"):
        baked_arena.__wrapped__()


def test_a_right_file_is_read_back(baked: Baked, tmp_path) -> None:
    write_baked(baked, tmp_path / "arena.npz")
    again = read_baked(tmp_path / "arena.npz")
    assert all(np.array_equal(a, b) for a, b in zip(again, baked, strict=True))
