"""The contacts of a car's body with the field."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import warp as wp
from numpy.typing import NDArray

from tests.rocket.sim.poses import structs
from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.rocketsim.package import rocketsim
from wavedash.rocket.sim.collision.arena import ArenaGeometry, Triangle, load_arena
from wavedash.rocket.sim.collision.arena_solver import (
    ARENA_CONSTRAINT_WORDS,
    ArenaConstraint,
    make_arena_constraint,
    solve_arena_contacts,
    store_arena_constraint,
)
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.box_triangle import ClosestPoints, closest_box_triangle
from wavedash.rocket.sim.collision.car_arena import MAX_CAR_CONTACTS, ArenaTouch, add_car_contacts
from wavedash.rocket.sim.collision.contacts import Contact, TriangleTouch
from wavedash.rocket.sim.collision.manifold import add_to_manifold
from wavedash.rocket.sim.collision.mesh_reach import MAX_CANDIDATES
from wavedash.rocket.sim.collision.shapes import CarShape, car_shapes
from wavedash.rocket.sim.collision.solver import Constraint, make_constraint, solve_contacts
from wavedash.rocket.sim.kernels.lanes import one_lane
from wavedash.rocket.sim.kernels.struct_io import stride_of

Array = NDArray[np.float64]
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
HALF = np.array([58.0, 41.0, 17.0])
FAR = 1e6

wp.set_module_options({"enable_backward": False})


@wp.kernel(enable_backward=False)
def meet(half: wp.vec3, triangles: wp.array(dtype=Triangle), most: float, meetings: wp.array(dtype=ClosestPoints)):
    i = wp.tid()
    meetings[i] = closest_box_triangle(half, triangles[i], most)


@wp.kernel(enable_backward=False)
def gather(offered: wp.array2d(dtype=Contact), room: int, contacts: wp.array2d(dtype=Contact), counts: wp.array(dtype=int)):
    i = wp.tid()
    count = int(0)
    for k in range(offered.shape[1]):
        count = add_to_manifold(contacts, i, 0, count, room, offered[i, k])
    counts[i] = count


@wp.kernel(enable_backward=False)
def find(
    arena: ArenaGeometry,
    shapes: wp.array(dtype=CarShape),
    hitbox: wp.array(dtype=int),
    position: wp.array(dtype=wp.vec3),
    rotation: wp.array(dtype=wp.mat33),
    contacts: wp.array2d(dtype=Contact),
    counts: wp.array(dtype=int),
    touches: wp.array(dtype=ArenaTouch),
    listed: wp.array2d(dtype=int),
    found: wp.array(dtype=TriangleTouch),
):
    i = wp.tid()
    count, touch = add_car_contacts(arena, shapes[hitbox[i]], position[i], rotation[i], contacts, i, 0, one_lane(i), listed,
                                     found)
    counts[i] = count
    touches[i] = touch


def room(cars: int) -> list[Any]:
    """Buffers for so many threads."""
    return [wp.zeros((cars, MAX_CANDIDATES), dtype=int, device="cpu"), wp.zeros(cars, dtype=TriangleTouch, device="cpu")]


def touch_arena(position: Array, rotation: Array, hitbox: Any = 0) -> tuple[Any, Any, Any]:
    """The contacts, how many there are, and the contact state of the cars."""
    cars = len(position)
    contacts = wp.zeros((cars, MAX_CAR_CONTACTS), dtype=Contact, device="cpu")
    counts, touches = wp.zeros(cars, dtype=int, device="cpu"), wp.zeros(cars, dtype=ArenaTouch, device="cpu")
    inputs = [
        wp.array(np.broadcast_to(hitbox, cars).astype(np.int32), dtype=int, device="cpu"),
        wp.array(position.astype(np.float32), dtype=wp.vec3, device="cpu"),
        wp.array(rotation.astype(np.float32), dtype=wp.mat33, device="cpu"),
    ]
    wp.launch(find, cars, [load_arena("cpu"), car_shapes("cpu"), *inputs, contacts, counts, touches, *room(cars)],
              device="cpu")
    return contacts.numpy(), counts.numpy(), touches.numpy()


def meetings_of(triangles: Array, most: float = FAR) -> Any:
    """The closest points of the box HALF and triangles [n, 3, 3]."""
    rows = structs(Triangle, len(triangles))
    rows["a"], rows["b"], rows["c"] = triangles.swapaxes(0, 1)
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    rows["normal"] = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    rows["offset"] = (rows["normal"] * triangles[:, 0]).sum(axis=1)
    meetings = wp.zeros(len(rows), dtype=ClosestPoints, device="cpu")
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
    """All corners of the box minus all of a triangle, [24, 3]: their hull contains the origin exactly if the two overlap."""
    return ((CORNERS * HALF)[:, None] - triangle[None]).reshape(-1, 3)


@pytest.mark.parametrize(("size", "away"), [(50.0, 70.0), (50.0, 110.0), (1000.0, 500.0)])
def test_the_distance_of_a_box_and_a_triangle_is_that_of_their_hulls(size: float, away: float) -> None:
    """The reference is the point of least norm in the hull of all differences, in float64."""
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
    """After moving the box by the depth along the normal the two are apart; no other direction is shorter."""
    rng = np.random.default_rng(1)
    triangles = random_triangles(rng, 150, size, 30.0)
    inside = rng.uniform(-HALF, HALF, (150, 3)) - np.einsum("nk,nkd->nd", rng.dirichlet(np.ones(3), 150), triangles)
    triangles += inside[:, None]  # a random point of each triangle is now a random point of the box
    directions = rng.normal(size=(4_000, 3))
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


def kept_points(points: list[tuple[float, Array]]) -> list[int]:
    """Bullet's rule in plain Python: the indices of the points (distance, place) of a list that are kept."""
    kept: list[int] = []
    for number, (distance, place) in enumerate(points):
        if len(kept) < 4:
            kept.append(number)
            continue
        depths = [points[k][0] for k in kept]
        protected = int(np.argmin(depths)) if min(depths) < distance else None
        areas = []
        for gone in range(4):
            i, j, k = (points[other][1] for other in kept[:gone] + kept[gone + 1:])
            areas.append(0.0 if gone == protected else float((np.cross(place - i, k - j) ** 2).sum()))
        kept[int(np.argmax(areas))] = number
    return kept


def test_the_fifth_point_replaces_the_one_that_adds_least_area() -> None:
    rng = np.random.default_rng(2)
    offered = structs(Contact, 200, 9)
    offered["arm_a"], offered["distance"] = rng.normal(size=(200, 9, 3)) * 50, rng.normal(size=(200, 9))
    offered["a"] = np.arange(9)  # the index of each contact
    contacts, counts = wp.zeros((200, 8), dtype=Contact, device="cpu"), wp.zeros(200, dtype=int, device="cpu")
    wp.launch(gather, 200, [wp.array(offered, dtype=Contact, device="cpu"), 8, contacts, counts], device="cpu")
    assert (counts.numpy() == 4).all()
    for row, kept in zip(offered, contacts.numpy()["a"], strict=True):
        assert list(kept[:4]) == kept_points([(float(p["distance"]), p["arm_a"].astype(float)) for p in row])
    wp.launch(gather, 200, [wp.array(offered, dtype=Contact, device="cpu"), 3, contacts, counts], device="cpu")
    assert (counts.numpy() == 3).all()


PLANES = [((0.0, 0.0, 1.0), 0.0), ((0.0, 0.0, -1.0), -2048.0), ((1.0, 0.0, 0.0), -4096.0), ((-1.0, 0.0, 0.0), -4096.0)]


@pytest.mark.parametrize("hitbox", range(len(HITBOXES)))
@pytest.mark.parametrize(("normal", "offset"), PLANES)
def test_a_plane_is_touched_at_the_lowest_corner(normal: tuple[float, float, float], offset: float, hitbox: int) -> None:
    """Bullet subtracts 2 uu from a half size and adds a tenth of the smallest, at most 2 uu. It adds 2 % of the radius."""
    rng = np.random.default_rng(3)
    cars, n = 300, np.array(normal)
    rotation = rotations(rng, cars)
    half = np.array(HITBOXES[hitbox].size) / 2
    half, middle = half - 2 + min(2.0, 0.1 * half.min()), np.array(HITBOXES[hitbox].offset)
    corners = (middle + CORNERS * half) @ rotation.swapaxes(1, 2)  # [cars, 8, 3]
    place = rng.uniform([-2500, -2500, 800], [2500, 2500, 1200], (cars, 3))  # where walls and curves are far
    lowest = (corners @ n).argmin(axis=1)
    arm = corners[np.arange(cars), lowest]
    distance = rng.uniform(-8, 4, cars)
    place += ((offset + distance) - (place + arm) @ n)[:, None] * n
    contacts, counts, touches = touch_arena(place, rotation, hitbox)
    touching = distance < 0.02 * (np.linalg.norm(half) + np.linalg.norm(middle))
    clear = np.abs(distance - 0.02 * (np.linalg.norm(half) + np.linalg.norm(middle))) > 1e-2
    assert touching.any() and not touching.all()
    assert (counts == touching)[clear].all() and (touches["touches"] == touching)[clear].all()
    found = contacts[touching & clear, 0]
    assert np.abs(found["arm_a"] - arm[touching & clear]).max() < 2e-3
    assert np.abs(found["distance"] - distance[touching & clear]).max() < 2e-3
    assert (found["normal"] == n).all() and (touches["normal"][touching & clear] == n).all()
    assert (found["friction"] == np.float32(0.3)).all() and (found["restitution"] == np.float32(0.3)).all()


def near_walls(rng: np.random.Generator, cars: int) -> tuple[Array, Array]:
    """Poses with centres near the arena's curved parts, goals and posts."""
    place = np.concatenate([
        rng.uniform([3500, 4200, 20], [3700, 4500, 2000], (cars // 4, 3)),
        rng.uniform([1000, 4900, 20], [2500, 5110, 1200], (cars // 4, 3)),
        rng.uniform([700, 5000, 20], [1000, 5200, 700], (cars // 4, 3)),
        rng.uniform([3800, -2500, 20], [4050, 2500, 250], (cars // 4, 3)),
    ])
    return place, rotations(rng, len(place))


def test_a_mirrored_car_touches_the_mirrored_field_alike() -> None:
    place, rotation = near_walls(np.random.default_rng(4), 2000)
    contacts, counts, _ = touch_arena(place, rotation)
    for mirror in (np.array([-1.0, 1.0, 1.0]), np.array([1.0, -1.0, 1.0])):
        turned = mirror[:, None] * rotation * np.array([1.0, -1.0, 1.0])  # the box itself is the same in a mirror
        others, other_counts, _ = touch_arena(place * mirror, turned)
        assert np.mean(counts == other_counts) > 0.99
        same = (counts == other_counts) & (counts > 0)
        assert same.sum() > 300
        deepest = contacts[same]["distance"].argmin(axis=1), others[same]["distance"].argmin(axis=1)
        rows = np.arange(same.sum())
        one, other = contacts[same][rows, deepest[0]], others[same][rows, deepest[1]]
        assert np.quantile(np.abs(one["distance"] - other["distance"]), 0.99) < 1e-2
        assert np.quantile(np.abs(one["normal"] * mirror - other["normal"]), 0.98) < 1e-2


class RocketSimCar:
    """A single car in an arena of RocketSim."""

    def __init__(self) -> None:
        self.rs = rocketsim()
        self.arena = self.rs.Arena(self.rs.GameMode.SOCCAR)
        self.car = self.arena.add_car(self.rs.Team.BLUE, self.rs.CarConfig(0))
        self.arena.step(2)  # its first tick takes twice as long

    def step(self, place: Array, rotation: Array, velocity: Array, spin: Array) -> Any:
        """The state after one tick."""
        ball, state, vec = self.arena.ball.get_state(), self.rs.CarState(), lambda v: self.rs.Vec(*map(float, v))
        ball.pos = vec((0, -4000, 1000))
        self.arena.ball.set_state(ball)
        state.pos, state.vel, state.ang_vel = vec(place), vec(velocity), vec(spin)
        state.rot_mat = self.rs.RotMat(*(vec(column) for column in rotation.T))
        self.car.set_state(state)
        self.arena.step(1)
        return self.car.get_state()


def numbers(v: Any) -> Array:
    return np.array([v.x, v.y, v.z])


@wp.kernel(enable_backward=False)
def collide(
    arena: ArenaGeometry,
    shapes: wp.array(dtype=CarShape),
    cars: wp.array(dtype=Body),
    contacts: wp.array2d(dtype=Contact),
    rows: wp.array2d(dtype=Constraint),
    wall_rows: wp.array2d(dtype=int),
    listed: wp.array2d(dtype=int),
    found: wp.array(dtype=TriangleTouch),
    by_itself: bool,
):
    i = wp.tid()
    bodies = wp.zeros(shape=(1,), dtype=Body)
    bodies[0] = cars[i]
    bodies[0].inverse_inertia = shapes[0].inverse_inertia
    count, _ = add_car_contacts(arena, shapes[0], cars[i].position, cars[i].rotation, contacts, i, 0, one_lane(i), listed,
                                 found)
    for k in range(count):
        rows[i, k] = make_constraint(contacts[i, k], bodies[0], bodies[0])
        store_arena_constraint(wall_rows, i, k * ARENA_CONSTRAINT_WORDS, make_arena_constraint(contacts[i, k], bodies[0]))
    if by_itself:
        cars[i] = solve_arena_contacts(wall_rows, i, 0, count, bodies[0])
    else:
        solve_contacts(rows, i, 0, count, bodies)
        cars[i] = bodies[0]


def test_walls_throw_a_car_back_as_in_rocketsim() -> None:
    """After one tick from the same state these agree: whether walls are touched, the normal of the last one, and the new
    velocity and spin. The same car high in the air shows what else acts on it."""
    rng = np.random.default_rng(5)
    place, rotation = near_walls(rng, 8000)
    velocity, spin = rng.normal(size=place.shape) * 150, rng.normal(size=place.shape)
    touches = touch_arena(place, rotation)[2]
    real, free = RocketSimCar(), RocketSimCar()
    after = [real.step(*state) for state in zip(place, rotation, velocity, spin, strict=True)]
    middle = np.array([0.0, 0.0, 1000.0])
    above = [free.step(middle, *state) for state in zip(rotation, velocity, spin, strict=True)]
    touching = np.array([state.has_world_contact for state in after])
    assert np.mean(touches["touches"] == touching) > 0.999
    normal = np.array([numbers(state.world_contact_normal) for state in after])
    assert np.quantile(np.abs(normal - touches["normal"])[touching].max(axis=1), 0.97) < 1e-2

    cars = structs(Body, len(place))
    cars["position"], cars["rotation"], cars["velocity"], cars["spin"] = place, rotation, velocity, spin
    cars["inverse_mass"] = 1 / 180
    free_velocity, free_spin = (np.array([numbers(getattr(state, name)) for state in above]) for name in ("vel", "ang_vel"))
    cars["forced_velocity"], cars["forced_spin"] = free_velocity - velocity, free_spin - spin
    bodies, same = wp.array(cars, dtype=Body, device="cpu"), wp.array(cars, dtype=Body, device="cpu")
    contacts = wp.zeros((len(cars), MAX_CAR_CONTACTS), dtype=Contact, device="cpu")
    rows = wp.zeros((len(cars), MAX_CAR_CONTACTS), dtype=Constraint, device="cpu")
    wall_rows = wp.zeros((len(cars), MAX_CAR_CONTACTS * stride_of(ArenaConstraint)), dtype=wp.int32, device="cpu")
    for solved, by_itself in ((bodies, True), (same, False)):
        inputs = [load_arena("cpu"), car_shapes("cpu"), solved, contacts, rows, wall_rows, *room(len(cars)), by_itself]
        wp.launch(collide, len(cars), inputs, device="cpu")
    for name in ("delta_velocity", "delta_spin", "push_velocity", "turn_velocity"):
        np.testing.assert_allclose(bodies.numpy()[name], same.numpy()[name], rtol=1e-4, atol=1e-3)
    change = np.array([numbers(state.vel) for state in after]) - free_velocity
    turn = np.array([numbers(state.ang_vel) for state in after])
    hit = touching & (np.linalg.norm(change, axis=1) > 10) & ~np.array([any(state.wheels_with_contact) for state in after])
    hit &= contacts.numpy()["distance"].min(axis=1) > -19  # no deeper than the fastest car gets in a tick
    assert hit.sum() > 150
    error = np.linalg.norm(bodies.numpy()["delta_velocity"] - change, axis=1)[hit] / np.linalg.norm(change, axis=1)[hit]
    assert np.median(error) < 1e-3 and np.quantile(error, 0.9) < 2e-2
    expected = free_spin + bodies.numpy()["delta_spin"]
    expected *= np.minimum(1.0, 5.5 / np.linalg.norm(expected, axis=1, keepdims=True))
    wrong = np.linalg.norm(expected - turn, axis=1)[hit] / np.linalg.norm(turn - free_spin, axis=1)[hit]
    assert np.median(wrong) < 1e-3 and np.quantile(wrong, 0.9) < 2e-2


def test_rocketsim_remembers_no_contacts() -> None:
    """A car that tumbles over the floor, and one placed there that has touched nothing, move alike in the next tick."""
    rng = np.random.default_rng(6)
    real, other, touching = RocketSimCar(), RocketSimCar(), 0
    for rotation in rotations(rng, 10):
        real.step(np.array([0.0, 0.0, 110.0]), rotation, np.append(rng.normal(size=2) * 300, -500.0), rng.normal(size=3))
        for _ in range(100):
            state = real.car.get_state()
            other.step(np.array([0.0, 0.0, 1000.0]), np.eye(3), np.zeros(3), np.zeros(3))
            other.car.set_state(state)
            real.arena.step(1)
            other.arena.step(1)
            state, fresh = real.car.get_state(), other.car.get_state()
            if state.has_world_contact and not any(state.wheels_with_contact):
                touching += 1
                assert np.abs(numbers(state.vel) - numbers(fresh.vel)).max() < 1e-2
                assert np.abs(numbers(state.ang_vel) - numbers(fresh.ang_vel)).max() < 1e-4
    assert touching > 30
