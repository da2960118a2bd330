"""Random bodies for the tests of contacts, as numpy arrays with the layout of Warp's structs."""
from typing import Any

import numpy as np
import warp as wp

from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.shapes import CarShape, car_shapes

SHAPES = car_shapes("cpu").numpy()


def structs(kind: Any, *shape: int) -> np.ndarray:
    """Zeroed structs of Warp; `kind` is the class that `wp.struct` decorates."""
    return np.zeros(shape, kind.numpy_dtype())


def rotations(n: int, dice: np.random.Generator) -> np.ndarray:
    """Rotations [n, 3, 3] that are uniform over all rotations."""
    w, x, y, z = np.moveaxis(unit_vectors((n, 4), dice), 1, 0)
    return np.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], 1).reshape(n, 3, 3)


def unit_vectors(shape: tuple[int, ...], dice: np.random.Generator) -> np.ndarray:
    v = dice.normal(size=shape)
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def bodies(position: np.ndarray, rotation: np.ndarray, velocity: np.ndarray | float = 0.0) -> np.ndarray:
    """Structs `Body`, of the shape of the positions without their last axis."""
    result = structs(Body, *position.shape[:-1])
    result["position"], result["rotation"], result["velocity"] = position, rotation, velocity
    return result


def turned(rotation: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vectors [..., 3] turned by rotations [..., 3, 3]."""
    return np.einsum("...ij,...j->...i", rotation, vector)


def to_warp(values: np.ndarray, dtype: type) -> wp.array:
    return wp.array(values, dtype=dtype, device="cpu")


def warp_shapes() -> wp.array:
    return wp.array(SHAPES, dtype=CarShape, device="cpu")
