"""The contacts of a car's body with the field."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import warp as wp
from numpy.typing import NDArray

from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.sim.arena import Arena, Triangle, load_arena
from wavedash.rocket.sim.box_triangle import Meeting, box_meets_triangle
from wavedash.rocket.sim.car_arena import MOST_CAR_CONTACTS, CarTouch, car_touches_arena
from wavedash.rocket.sim.contacts import Contact
from wavedash.rocket.sim.manifold import with_point
from wavedash.rocket.sim.shapes import CarShape, car_shapes

Array = NDArray[np.float64]
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
HALF = np.array([58.0, 41.0, 17.0])
FAR = 1e6

wp.set_module_options({"enable_backward": False})


@wp.kernel(enable_backward=False)
def meet(half: wp.vec3, triangles: wp.array(dtype=Triangle), most: float, meetings: wp.array(dtype=Meeting)):
    i = wp.tid()
    meetings[i] = box_meets_triangle(half, triangles[i], most)


@wp.kernel(enable_backward=False)
def gather(offered: wp.array2d(dtype=Contact), room: int, contacts: wp.array2d(dtype=Contact), counts: wp.array(dtype=int)):
    i = wp.tid()
    count = int(0)
    for k in range(offered.shape[1]):
        count = with_point(contacts, i, 0, count, room, offered[i, k])
    counts[i] = count


@wp.kernel(enable_backward=False)
def find(
    arena: Arena,
    shapes: wp.array(dtype=CarShape),
    hitbox: wp.array(dtype=int),
    position: wp.array(dtype=wp.vec3),
    rotation: wp.array(dtype=wp.mat33),
    contacts: wp.array2d(dtype=Contact),
    counts: wp.array(dtype=int),
    touches: wp.array(dtype=CarTouch),
):
    i = wp.tid()
    count, touch = car_touches_arena(arena, shapes[hitbox[i]], 1, position[i], rotation[i], contacts, i, 0)
    counts[i] = count
    touches[i] = touch


def touch_arena(position: Array, rotation: Array, hitbox: Any = 0) -> tuple[Any, Any, Any]:
    """Contacts, their numbers and what the cars know of them."""
    cars = len(position)
    contacts = wp.zeros((cars, MOST_CAR_CONTACTS), dtype=Contact, device="cpu")
    counts, touches = wp.zeros(cars, dtype=int, device="cpu"), wp.zeros(cars, dtype=CarTouch, device="cpu")
    inputs = [
        wp.array(np.broadcast_to(hitbox, cars).astype(np.int32), dtype=int, device="cpu"),
        wp.array(position.astype(np.float32), dtype=wp.vec3, device="cpu"),
        wp.array(rotation.astype(np.float32), dtype=wp.mat33, device="cpu"),
    ]
    wp.launch(find, cars, [load_arena("cpu"), car_shapes("cpu"), *inputs, contacts, counts, touches], device="cpu")
    return contacts.numpy(), counts.numpy(), touches.numpy()


def meetings_of(triangles: Array, most: float = FAR) -> Any:
    """Of the box HALF with triangles [n, 3, 3]."""
    rows = np.zeros(len(triangles), Triangle.numpy_dtype())
    rows["a"], rows["b"], rows["c"] = triangles.swapaxes(0, 1)
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    rows["normal"] = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    rows["offset"] = (rows["normal"] * triangles[:, 0]).sum(axis=1)
    meetings = wp.zeros(len(rows), dtype=Meeting, device="cpu")
    inputs = [wp.vec3(*HALF), wp.array(rows, dtype=Triangle, device="cpu"), most]
    wp.launch(meet, len(rows), [*inputs, meetings], device="cpu")
    return meetings.numpy()


def rotations(rng: np.random.Generator, count: int) -> Array:
    q = rng.normal(size=(count, 3, 3))
    q = np.linalg.qr(q)[0]
    return q * np.linalg.det(q)[:, None, None]


def random_triangles(rng: np.random.Generator, count: int, size: float, away: float) -> Array:
    middle = rng.normal(size=(count, 1, 3))
    return middle / np.linalg.norm(middle, axis=2, keepdims=True) * away + rng.normal(size=(count, 3, 3)) * size


def least_point(points: Array) -> Array:
    """The point of the convex hull of some points that is nearest to the origin (Wolfe 1976)."""
    active, weights = [int(np.argmin((points**2).sum(axis=1)))], np.array([1.0])
    for _ in range(100):
        nearest: Array = weights @ points[active]
        candidate = int(np.argmin(points @ nearest))
        if candidate in active or nearest @ nearest - points[candidate] @ nearest <= 1e-10:
            break
        active, weights = [*active, candidate], np.append(weights, 0.0)
        while True:
            chosen, ones = points[active], np.ones((len(active), 1))
            system = np.block([[chosen @ chosen.T, ones], [ones.T, np.zeros((1, 1))]])
            flat = np.linalg.lstsq(system, np.append(np.zeros(len(active)), 1.0), rcond=None)[0][:-1]
            if (flat > 0).all():
                weights = flat
                break
            share = np.where(flat <= 0, weights / np.maximum(weights - flat, 1e-30), np.inf)
            leaving = int(np.argmin(share))
            weights = np.delete(weights + min(share[leaving], 1.0) * (flat - weights), leaving)
            active = active[:leaving] + active[leaving + 1:]
    return nearest


def differences(triangle: Array) -> Array:
    """All corners of the box less all of a triangle: their hull holds the origin if and only if the two overlap. [24, 3]"""
    return ((CORNERS * HALF)[:, None] - triangle[None]).reshape(-1, 3)


@pytest.mark.parametrize(("size", "away"), [(50.0, 70.0), (50.0, 110.0), (1000.0, 500.0)])
def test_apart_a_box_and_a_triangle_are_as_far_as_their_hulls(size: float, away: float) -> None:
    """Against the point of least norm of the hull of all differences, in float64."""
    triangles = random_triangles(np.random.default_rng(0), 400, size, away)
    least = np.array([least_point(differences(triangle)) for triangle in triangles])
    distance = np.linalg.norm(least, axis=1)
    apart = distance > 0.1
    assert apart.sum() > 100
    found = meetings_of(triangles)[apart]
    least, distance = least[apart], distance[apart]
    assert np.abs(found["distance"] - distance).max() < 2e-2
    lean = 1 - (found["normal"] * least).sum(axis=1) / distance
    assert np.quantile(lean, 0.99) < 1e-4
    assert (np.abs(found["point"]) <= HALF + 1e-3).all()


@pytest.mark.parametrize("size", [50.0, 1000.0])
def test_an_overlap_is_the_shortest_way_out(size: float) -> None:
    """The box moved by the depth along the normal is clear; no other direction is shorter."""
    rng = np.random.default_rng(1)
    triangles = random_triangles(rng, 300, size, 30.0)
    directions = rng.normal(size=(20_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    found, overlaps = meetings_of(triangles), 0
    for triangle, meeting in zip(triangles, found, strict=True):
        if meeting["distance"] > -0.1:
            continue
        overlaps += 1
        corners, normal, depth = differences(triangle), meeting["normal"].astype(float), -float(meeting["distance"])
        assert abs(-(corners @ normal).min() - depth) < 5e-3
        assert -(corners @ directions.T).min(axis=0).max() > depth - 5e-3
        on_triangle = meeting["point"] + normal * depth
        assert np.linalg.norm(least_point(triangle - on_triangle)) < 0.02  # the point of contact lies on both
        assert (np.abs(meeting["point"]) <= HALF + 1e-3).all()
    assert overlaps > 100
