"""The geometry of the arena against brute force over all of its triangles, and the ball's bounces against RocketSim."""
from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tests.rocket.sim.poses import SHAPES, bodies, rotations, to_warp, turned, warp_shapes
from wavedash.errors import UserError
from wavedash.rocket.constants import BALL_RADIUS, GRAVITY
from wavedash.rocket.rocketsim.package import collision_meshes, rocketsim
from wavedash.rocket.sim.collision import arena as field
from wavedash.rocket.sim.collision.arena import (
    ArenaGeometry,
    aabb_query,
    baked_arena,
    cell_of,
    load_arena,
    may_overlap,
    ray_hits_planes,
)
from wavedash.rocket.sim.collision.bake import BOUNDARY, REACH, Baked
from wavedash.rocket.sim.collision.baked_file import BAKED_FILE
from wavedash.rocket.sim.collision.ball_arena import MAX_BALL_CONTACTS, add_ball_contacts
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.contacts import Contact, TriangleTouch
from wavedash.rocket.sim.collision.mesh_reach import MAX_CANDIDATES, mesh_in_reach
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.collision.wheel_rays import OtherBodies, WheelHits, cast_wheel_rays
from wavedash.rocket.sim.kernels.lanes import one_lane
from wavedash.rocket.sim.kernels.records import BallRecord
from wavedash.rocket.sim.kernels.struct_io import stride_of

PLANES = [((0, 0, 1), 0.0), ((0, 0, -1), -2048.0), ((1, 0, 0), -4096.0), ((-1, 0, 0), -4096.0)]
PIECES = {880: "corner", 983: "end", 126: "side ramp", 16: "ceiling curve"}
"""The four kinds of mesh of the arena by their number of triangles."""
DT = 1.0 / 120.0
TOUCH = 0.02 * (BALL_RADIUS + 4.0)
"""Bullet's contact distance in uu: 2 % of the radius of a ball that RocketSim makes 4 uu larger than it is."""


@wp.kernel(enable_backward=False)
def cast(
    arena: ArenaGeometry, shapes: wp.array(dtype=CarShape), others: OtherBodies, hitbox: wp.array(dtype=wp.int32),
    cars: wp.array(dtype=Body), wheels: wp.array(dtype=WheelHits), listed: wp.array2d(dtype=wp.int32),
):
    i = wp.tid()
    reach = mesh_in_reach(arena, shapes[hitbox[i]], cars[i].position, cars[i].rotation, one_lane(i), listed)
    wheels[i] = cast_wheel_rays(0, cars[i], shapes[hitbox[i]], arena, reach, others, True)


@wp.kernel(enable_backward=False)
def cast_at_planes(
    source: wp.array(dtype=wp.vec3), target: wp.array(dtype=wp.vec3),
    hit: wp.array(dtype=wp.int32), fraction: wp.array(dtype=wp.float32), normal: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    hit_i, fraction_i, normal_i = ray_hits_planes(source[i], target[i])
    hit[i] = hit_i
    fraction[i] = fraction_i
    normal[i] = normal_i


@wp.kernel(enable_backward=False)
def locate(position: wp.array(dtype=wp.vec3), cell: wp.array(dtype=wp.int32)):
    i = wp.tid()
    cell[i] = cell_of(position[i])


@wp.kernel(enable_backward=False)
def ask(
    arena: ArenaGeometry, item: int, low: wp.array(dtype=wp.vec3), high: wp.array(dtype=wp.vec3), near: wp.array(dtype=wp.bool)
):
    i = wp.tid()
    near[i] = may_overlap(arena.boxes, item, aabb_query(low[i], high[i]))


@wp.kernel(enable_backward=False)
def touch(
    arena: ArenaGeometry, position: wp.array(dtype=wp.vec3),
    contacts: wp.array2d(dtype=Contact), count: wp.array(dtype=wp.int32), normals: wp.array(dtype=wp.vec3),
    found: wp.array(dtype=TriangleTouch),
):
    i = wp.tid()
    count_i, touch_i = add_ball_contacts(arena, position[i], contacts, i, 0, one_lane(i), found)
    count[i] = count_i
    normals[i] = touch_i.normals


def vectors(values: np.ndarray) -> wp.array:
    return wp.array(values.astype(np.float32), dtype=wp.vec3, device="cpu")


def launch(kernel, inputs: list, outputs: list) -> list[np.ndarray]:
    wp.launch(kernel, len(inputs[-1]), inputs=inputs, outputs=outputs, device="cpu")
    return [array.numpy() for array in outputs]


def touches(position: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contacts [balls, room], how many of them count, and the sums of their normals."""
    outputs = [wp.zeros((len(position), MAX_BALL_CONTACTS), dtype=Contact, device="cpu"),
               wp.zeros(len(position), dtype=wp.int32, device="cpu"), wp.zeros(len(position), dtype=wp.vec3, device="cpu"),
               wp.zeros(len(position), dtype=TriangleTouch, device="cpu")]
    contacts, count, normals, _ = launch(touch, [load_arena("cpu"), vectors(position)], outputs)
    return contacts, count, normals.astype(np.float64)


@pytest.fixture(scope="module")
def baked() -> Baked:
    return baked_arena()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def near_surface(baked: Baked, rng: np.random.Generator, count: int, low: float, high: float, which=slice(None)) -> np.ndarray:
    """Points that are `low` to `high` uu away from random places of some triangles, toward the inside of the arena."""
    corners, normals = baked.corners[which].astype(np.float64), baked.normals[which].astype(np.float64)
    t = rng.integers(len(corners), size=count)
    on = (corners[t] * rng.dirichlet([1, 1, 1], count)[..., None]).sum(axis=1)
    inwards = np.sign(((np.array([0.0, 0.0, 500.0]) - on * [1.0, 1.0, 0.5]) * normals[t]).sum(axis=1))
    return (on + normals[t] * (inwards * rng.uniform(low, high, count))[:, None]).astype(np.float32).astype(np.float64)


def in_box(baked: Baked, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Indices of the triangles whose own boxes overlap a box."""
    return np.flatnonzero(((baked.corners.min(axis=1) < high) & (baked.corners.max(axis=1) > low)).all(axis=1))


def nearest(corners: np.ndarray, point: np.ndarray) -> np.ndarray:
    """The point of each triangle nearest to one point: its projection if that is inside, else the nearest on the sides."""
    a, b, c = corners.swapaxes(0, 1)
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    foot = point - ((point - a) * normal).sum(axis=1, keepdims=True) * normal
    inside, feet = np.ones(len(a), bool), []
    for start, end in ((a, b), (b, c), (c, a)):
        inside &= (np.cross(end - start, foot - start) * normal).sum(axis=1) >= 0
        along = end - start
        share = ((point - start) * along).sum(axis=1) / (along**2).sum(axis=1)
        feet.append(start + np.clip(share, 0, 1)[:, None] * along)
    sides = np.stack(feet)
    best = np.linalg.norm(sides - point, axis=2).argmin(axis=0)
    return np.where(inside[:, None], foot, sides[best, np.arange(len(a))])


def test_the_baked_arena_has_all_triangles_of_the_files(baked: Baked) -> None:
    files = sorted((collision_meshes() / "soccar").glob("*.cmf"))
    read = []
    for number, file in enumerate(files):
        data = np.fromfile(file, np.int32)
        positions = data[2 + 3 * data[0]:].view(np.float32).reshape(-1, 3)
        corners = positions[data[2:2 + 3 * data[0]]].reshape(-1, 9) * np.float32(50)
        read.append(np.column_stack([np.full(len(corners), number, np.float32), corners]))
    expected = np.concatenate(read)
    found = np.column_stack([baked.mesh.astype(np.float32), baked.corners.reshape(-1, 9)])
    assert len(found) == 8020
    assert np.array_equal(expected[np.lexsort(expected.T)], found[np.lexsort(found.T)])
    assert (np.diff(baked.mesh) >= 0).all()


def test_edge_angles_are_the_angles_between_neighbours(baked: Baked) -> None:
    """Turning a triangle's normal by the angle of an edge gives the normal across it; both sides agree on the angle."""
    corners, normals = baked.corners.astype(np.float64), baked.normals.astype(np.float64)
    edges: dict[tuple, list[tuple[int, int]]] = {}
    for t, mesh in enumerate(baked.mesh):
        for k in range(3):
            ends = sorted(map(tuple, np.round(corners[t, [k, (k + 1) % 3]], 2)))
            edges.setdefault((mesh, *ends), []).append((t, k))
    pairs = [pair for pair in edges.values() if len(pair) == 2]
    assert len(pairs) > 11_000
    worst = 0.0
    for (s, j), (t, k) in pairs:
        if BOUNDARY in (baked.angles[s, j], baked.angles[t, k]):
            continue
        assert abs(baked.angles[s, j] - baked.angles[t, k]) < 1e-3
        angle = baked.angles[s, j]
        axis = corners[s, j] - corners[s, (j + 1) % 3]
        axis /= np.linalg.norm(axis)
        turned = normals[s] * np.cos(angle) + np.cross(axis, normals[s]) * np.sin(angle)
        worst = max(worst, np.linalg.norm(turned - normals[t]))
    assert worst < 0.011  # angles up to 0.01 rad count as flat


def test_a_cell_lists_every_triangle_in_reach_of_a_point_in_it(baked: Baked, rng: np.random.Generator) -> None:
    anywhere = rng.uniform((-4096, -6016, 0), (4096, 6016, 2048), (30, 3))
    points = np.concatenate([near_surface(baked, rng, 90, 0.0, 150.0), anywhere])
    points[:, 2] = np.clip(points[:, 2], 0.0, 2047.9)
    points[:, 0] = np.clip(points[:, 0], -4095.9, 4095.9)
    cells, = launch(locate, [vectors(points)], [wp.zeros(len(points), dtype=wp.int32, device="cpu")])
    listed = 0
    for point, cell in zip(points, cells, strict=True):
        items = baked.items[baked.first[cell]:baked.first[cell + 1]]
        assert (np.diff(items) > 0).all()
        distance = np.linalg.norm(nearest(baked.corners.astype(np.float64), point) - point, axis=1)
        assert set(np.flatnonzero(distance < REACH)) <= set(items)
        assert (distance[items] < REACH + 64.0 * np.sqrt(3.0)).all()
        listed += len(items)
    assert listed > 1000


def test_places_outside_the_grid_have_the_cell_at_its_border(baked: Baked) -> None:
    outside = np.array([(-9000, 0, 100), (9000, 0, 100), (0, -9000, 100), (0, 9000, 100), (0, 0, -500), (0, 0, 9000.0)])
    border = np.clip(outside, (-4095, -6015, 1), (4095, 6015, 2047))
    cells, = launch(locate, [vectors(np.concatenate([outside, border]))], [wp.zeros(12, dtype=wp.int32, device="cpu")])
    assert np.array_equal(cells[:6], cells[6:])
    assert cells.min() >= 0 and cells.max() < len(baked.first) - 1


def test_no_triangle_that_a_box_overlaps_is_ruled_out_and_few_others_are_not(baked: Baked, rng: np.random.Generator) -> None:
    for item in rng.integers(len(baked.items), size=30):
        corners = baked.corners[baked.items[item]].astype(np.float64)
        middle = corners.mean(axis=0) + rng.normal(size=(2000, 3)) * 120
        size = rng.uniform(1, 150, (2000, 3))
        low, high = (middle - size).astype(np.float32), (middle + size).astype(np.float32)
        apart = np.maximum(corners.min(axis=0) - high, low - corners.max(axis=0)).max(axis=1)
        inputs = [load_arena("cpu"), int(item), vectors(low), vectors(high)]
        near = launch(ask, inputs, [wp.zeros(2000, dtype=wp.bool, device="cpu")])[0]
        assert near[apart <= 0].all() and 100 < near.sum() < 1900
        assert not near[apart > 0.5].any(), "all is rounded to quarters"


def brute_force_ray(baked: Baked, source: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray, float]:
    """The fraction of the ray at the first wall (1: none), its normal, and the ray's distance from all sides of triangles."""
    close = in_box(baked, np.minimum(source, target), np.maximum(source, target))
    a, b, c = baked.corners[close].astype(np.float64).swapaxes(0, 1)
    normals, way = baked.normals[close].astype(np.float64), target - source
    closest, normal, clear = 1.0, np.zeros(3), np.inf
    for direction, offset in PLANES:
        height, end = np.dot(direction, source) - offset, np.dot(direction, target) - offset
        if height * end < 0 and height / (height - end) < closest:
            closest, normal = height / (height - end), np.array(direction) * np.sign(height)
    height, end = (normals * (source - a)).sum(axis=1), (normals * (target - a)).sum(axis=1)
    for t in np.flatnonzero(height * end < 0):
        fraction = height[t] / (height[t] - end[t])
        point = source + fraction * way
        sides = [np.dot(np.cross(q - p, point - p), normals[t]) / np.linalg.norm(q - p)
                 for p, q in ((a[t], b[t]), (b[t], c[t]), (c[t], a[t]))]
        clear = min(clear, abs(min(sides)))
        if min(sides) >= 0 and fraction < closest:
            closest, normal = fraction, normals[t] * np.sign(height[t])
    return closest, normal, clear


def wheel_rays(hitbox: np.ndarray, position: np.ndarray, rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of the rays of cars' wheels, [cars, 4, 3]: down from the front right, front left and back mounts."""
    shape = SHAPES[hitbox]
    mounts = np.stack([shape["front_wheel"], shape["front_wheel"], shape["back_wheel"], shape["back_wheel"]], 1).astype(float)
    mounts[:, 1::2, 1] *= -1
    length, radius = (np.stack([shape[f"{end}_{name}"] for end in ("front", "front", "back", "back")], 1)
                      for name in ("length", "radius"))
    source = position[:, None] + turned(rotation[:, None], mounts)
    return source, source - rotation[:, None, :, 2] * (length + radius + 12.0 - 2.5)[..., None]


def nobody_else() -> OtherBodies:
    """There is no other car, and the ball is far away."""
    others, far = OtherBodies(), np.full((1, stride_of(BallRecord)), 1e6, np.float32)
    others.words = to_warp(far.view(np.int32), wp.int32)
    return others


@pytest.mark.slow
def test_wheels_stand_on_what_brute_force_hits(baked: Baked, rng: np.random.Generator) -> None:
    over_floor = rng.uniform((-4000, -5000, 0), (4000, 5000, 60), (50, 3))
    position = np.concatenate([near_surface(baked, rng, 250, 0.0, 50.0), over_floor])
    cars, hitbox = len(position), rng.integers(0, 6, len(position)).astype(np.int32)
    rotation = rotations(cars, rng)
    poses = to_warp(bodies(position, rotation), Body)
    inputs = [load_arena("cpu"), warp_shapes(), nobody_else(), to_warp(hitbox, wp.int32), poses]
    outputs = [wp.zeros(cars, dtype=WheelHits, device="cpu"), wp.zeros((cars, MAX_CANDIDATES), dtype=wp.int32, device="cpu")]
    wheels, _ = launch(cast, inputs, outputs)
    ground, fraction, normal = wheels["ground"], wheels["fraction"], wheels["normal"]
    source, target = wheel_rays(hitbox, position, rotation)
    compared = 0
    for i in np.ndindex(cars, 4):
        expected, expected_normal, clear = brute_force_ray(baked, source[i], target[i])
        if clear < 0.05:
            continue  # the ray passes a side so closely that rounding decides
        compared += 1
        assert ground[i] == (expected < 1.0)
        depth = abs((target[i] - source[i]) @ expected_normal)
        assert abs(fraction[i] - expected) * depth < 5e-3  # uu along the normal
        assert np.abs(normal[i] - expected_normal).max() < 1e-4
    assert compared > 1000
    assert 300 < ground.sum() < 900


def test_a_ray_that_stays_behind_a_plane_does_not_hit_it() -> None:
    source = np.array([(0, 0, -5), (0, 0, -5), (0, 0, 5), (4100, 0, 500), (0, 0, 2040.0)])
    target = np.array([(0, 0, -50), (0, 0, 40), (0, 0, -40), (4090, 0, 500), (0, 0, 2060.0)])
    outputs = [wp.zeros(5, dtype=dtype, device="cpu") for dtype in (wp.int32, wp.float32, wp.vec3)]
    hit, fraction, normal = launch(cast_at_planes, [vectors(source), vectors(target)], outputs)
    assert hit.tolist() == [0, 1, 1, 1, 1]
    assert np.allclose(fraction[1:], [1 / 9, 1 / 9, 0.4, 0.4])
    assert np.array_equal(normal[1:], [(0, 0, -1), (0, 0, 1), (1, 0, 0), (0, 0, -1)])


def brute_force_touches(baked: Baked, position: np.ndarray) -> list[tuple[int, np.ndarray, float]]:
    """(mesh or -1 for a plane, vector from the ball's centre to its surface, distance) of everything that the ball touches."""
    found = [(-1, -BALL_RADIUS * np.array(normal, float), np.dot(normal, position) - offset - BALL_RADIUS)
             for normal, offset in PLANES]
    close = in_box(baked, position - BALL_RADIUS - 5.0, position + BALL_RADIUS + 5.0)
    away = nearest(baked.corners[close].astype(np.float64), position) - position
    distance = np.linalg.norm(away, axis=1)
    found += [(int(mesh), arm / d * BALL_RADIUS, d - BALL_RADIUS)
              for mesh, arm, d in zip(baked.mesh[close], away, distance, strict=True)]
    return [contact for contact in found if contact[2] < TOUCH + 2e-3]


@pytest.mark.slow
def test_the_ball_touches_what_brute_force_finds_but_four_points_of_a_mesh(baked: Baked, rng: np.random.Generator) -> None:
    position = near_surface(baked, rng, 600, BALL_RADIUS - 8.0, BALL_RADIUS + 2.5)
    contacts, count, normals = touches(position)
    crowded, meshes, deepest_kept = 0, 0, 0
    for i, p in enumerate(position):
        expected = brute_force_touches(baked, p)
        if any(abs(distance - TOUCH) < 2e-3 for *_, distance in expected):
            continue  # rounding decides
        per_mesh = {mesh: [c for c in expected if c[0] == mesh] for mesh in {c[0] for c in expected}}
        most = {mesh: len(points) if mesh == -1 else min(4, len(points)) for mesh, points in per_mesh.items()}
        assert count[i] == sum(most.values())
        mine = contacts[i][:count[i]]
        assert np.allclose(mine["normal"].sum(axis=0), normals[i], atol=1e-5)
        assert mine["push_only"].all() and (mine["a"] == 0).all() and (mine["b"] == -1).all()
        for contact in mine:  # every one is real
            assert min(np.abs(arm - contact["arm_a"]).max() + abs(d - contact["distance"]) for _, arm, d in expected) < 0.02
        for points in per_mesh.values():
            meshes += 1
            deepest_kept += np.abs(mine["distance"] - min(d for *_, d in points)).min() < 5e-3
        crowded += max(most.values(), default=0) < max(map(len, per_mesh.values()), default=0)
    assert crowded > 100
    assert deepest_kept / meshes > 0.98  # it is dropped only if four others lie in one place


def test_mirrored_balls_touch_mirrored_walls(baked: Baked, rng: np.random.Generator) -> None:
    """This holds if no mesh has more points than it may keep; which ones it keeps depends on the order of its triangles."""
    position = near_surface(baked, rng, 300, BALL_RADIUS - 5.0, BALL_RADIUS + 1.0)
    touched = [[mesh for mesh, *_ in brute_force_touches(baked, p) if mesh >= 0] for p in position]
    position = position[[len(meshes) == 0 or np.bincount(meshes).max() <= 4 for meshes in touched]]
    _, count, normals = touches(position)
    assert len(position) > 80 and (count > 0).mean() > 0.9
    for mirror in ((-1, 1, 1), (1, -1, 1), (-1, -1, 1)):
        _, mirrored_count, mirrored = touches(position * mirror)
        off = np.abs(mirrored * mirror / mirrored_count[:, None] - normals / count[:, None]).max(axis=1)
        assert np.median(off) < 1e-5
        assert (off < 1e-3).mean() > 0.9


def after_bounce(velocity: np.ndarray, spin: np.ndarray, mean_normal: np.ndarray) -> np.ndarray:
    """Velocity of a ball one tick later: ten iterations of normal and friction impulses at one contact with this normal
    (shorter than 1)."""
    mass, inertia, arm = 30.0, 0.4 * 30.0 * BALL_RADIUS**2, -mean_normal * BALL_RADIUS
    velocity = velocity * 0.97**DT
    fallen = velocity - np.array([0.0, 0.0, GRAVITY * DT])
    approach = mean_normal @ velocity
    bounce = 0.6 * max(0.0, -approach) if abs(approach) > 10.0 else 0.0
    at_contact = fallen + np.cross(spin, arm)
    slide = at_contact - mean_normal * (mean_normal @ at_contact)
    slide /= np.linalg.norm(slide)
    lever = np.cross(arm, slide)
    slide_mass = 1.0 / (1.0 / mass + lever @ lever / inertia)
    change, spin_change, pressed, rubbed = np.zeros(3), np.zeros(3), 0.0, 0.0
    for _ in range(10):
        before, pressed = pressed, max(0.0, pressed + mass * (bounce - mean_normal @ (fallen + change)))
        change += mean_normal * (pressed - before) / mass
        wanted = rubbed - slide_mass * (slide @ (fallen + change) + lever @ (spin + spin_change))
        before, rubbed = rubbed, np.clip(wanted, -0.35 * pressed, 0.35 * pressed)
        change += slide * (rubbed - before) / mass
        spin_change += lever * (rubbed - before) / inertia
    return fallen + change


def regions(baked: Baked) -> dict[str, np.ndarray]:
    """The triangles that belong to each part of the arena."""
    piece = np.array([PIECES[(baked.mesh == mesh).sum()] for mesh in baked.mesh])
    y = np.abs(baked.normals[:, 1])
    in_goal = np.abs(baked.corners[:, :, 1]).mean(axis=1) > 5130
    middle = np.abs(baked.corners.mean(axis=1))
    frame = (piece == "end") & (baked.angles < -0.02).any(axis=1) & (middle[:, 0] < 1000) & (middle[:, 2] < 750) & ~in_goal
    return {
        "corner": piece == "corner",
        "side ramp": piece == "side ramp",
        "ceiling curve": piece == "ceiling curve",
        "back wall": (piece == "end") & ~in_goal & (y > 0.999) & ~frame,
        "end curves": (piece == "end") & ~in_goal & (y <= 0.999) & ~frame,
        "goal": in_goal,
        "goal frame": frame,
    }


@pytest.mark.parametrize(("region", "rounding"), [
    ("corner", 0.01), ("side ramp", 0.015), ("ceiling curve", 0.01), ("back wall", 0.01), ("end curves", 0.02), ("goal", 0.02),
    ("goal frame", 0.12),
])
def test_the_ball_bounces_as_in_rocketsim(region: str, rounding: float, baked: Baked, rng: np.random.Generator) -> None:
    """The change of velocity in one tick agrees. Where many triangles meet, rounding decides which four points of a mesh count:
    `rounding` is the share of bounces in which that may change the result."""
    position = near_surface(baked, rng, 1000, BALL_RADIUS - 8.0, BALL_RADIUS + 3.0, regions(baked)[region])
    x, y = np.abs(position[:, 0]), np.abs(position[:, 1])
    z = position[:, 2]
    position = position[(z > 85) & (z < 1962) & (x < 4010) & ((y < 5035) | (x < 800)) & (x + y < 7940)]
    contacts, count, normals = touches(position)
    deepest = np.where(np.arange(MAX_BALL_CONTACTS) < count[:, None], contacts["distance"], np.inf).min(axis=1)
    chosen = np.flatnonzero(deepest > -12.0)[:400]
    assert (count[chosen] > 0).sum() >= 100
    sim = rocketsim()
    game = sim.Arena(sim.GameMode.SOCCAR)
    errors = []
    for i in chosen:
        mean = normals[i] / max(1, count[i])
        velocity = rng.normal(size=3) * 800.0 - mean * 1200.0
        velocity, spin = (v.astype(np.float32).astype(np.float64) for v in (velocity, rng.normal(size=3)))
        state = game.ball.get_state()
        state.pos, state.vel, state.ang_vel = sim.Vec(*position[i]), sim.Vec(*velocity), sim.Vec(*spin)
        game.ball.set_state(state)
        game.step(1)
        after = np.array(game.ball.get_state().vel.as_tuple())
        errors.append(np.linalg.norm(after_bounce(velocity, spin, mean) - after) / max(1.0, np.linalg.norm(after - velocity)))
    assert np.median(errors) < 1e-4
    assert np.mean(np.array(errors) > 1e-3) <= rounding


@pytest.mark.slow
def test_a_damaged_cache_is_baked_anew_and_gives_the_same(baked: Baked, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    file = field.cache_file(sorted((collision_meshes() / "soccar").glob("*.cmf")))
    assert tmp_path in file.parents
    file.parent.mkdir()
    file.write_bytes(b"half a fi")
    fresh = baked_arena.__wrapped__()
    monkeypatch.setenv(BAKED_FILE, str(file))
    again = baked_arena.__wrapped__()
    for name, array in baked._asdict().items():
        assert np.array_equal(getattr(fresh, name), array) and np.array_equal(getattr(again, name), array)


def test_a_wrong_baked_file_is_named(tmp_path, monkeypatch) -> None:
    wrong = tmp_path / "arena.npz"
    wrong.write_bytes(b"not a zip")
    monkeypatch.setenv(BAKED_FILE, str(wrong))
    with pytest.raises(UserError, match=r"arena\.npz is not a baked arena"):
        baked_arena.__wrapped__()
