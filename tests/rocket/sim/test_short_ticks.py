"""The shorter tick of a car that flies or drives alone equals the tick of a car in contact, and rotation is exact."""
from __future__ import annotations

import numpy as np
import torch
import warp as wp

from tests.rocket.sim.poses import SHAPES, rotations
from tests.roundings import FUNCTION, assert_within, gamma, unit
from wavedash.rocket.sim.classes import AT_ARENA, DRIVING, FLYING, IN_CONTACT, NEAR_MESH
from wavedash.rocket.sim.collision.arena import LOW_X, LOW_Y, LOW_Z, baked_arena, cell_of, is_over_open_floor
from wavedash.rocket.sim.collision.arena_contacts import find_car_contacts, solve_car_contacts
from wavedash.rocket.sim.collision.bake import CELL, GRID_SHAPE, REACH
from wavedash.rocket.sim.collision.bodies import rotated
from wavedash.rocket.sim.collision.broad_phase import classify_car, find_close_bodies, find_mesh_in_reach
from wavedash.rocket.sim.collision.mesh_reach import CAR_REACH, MESH_REACH_WORDS, no_mesh_in_reach, store_mesh_reach
from wavedash.rocket.sim.constants import ARENA_CEILING_Z, ARENA_WALL_X, SUSPENSION_TRAVEL
from wavedash.rocket.sim.kernels.lanes import one_lane
from wavedash.rocket.sim.kernels.memory import Arenas, Model
from wavedash.rocket.sim.mechanics.car import step_car_in_contact, step_driving_car, step_flying_car
from wavedash.rocket.sim.simulator import WarpSimulator

ARENAS = 512


@wp.kernel(enable_backward=False)
def locate(position: wp.array(dtype=wp.vec3), cell: wp.array(dtype=wp.int32), middle: wp.array(dtype=wp.bool)):
    i = wp.tid()
    cell[i] = cell_of(position[i])
    middle[i] = is_over_open_floor(position[i])


@wp.kernel(enable_backward=False)
def turn(rotation: wp.array(dtype=wp.mat33), spin: wp.array(dtype=wp.vec3), ticks: int):
    i = wp.tid()
    now = rotation[i]
    for _ in range(ticks):
        now = rotated(now, spin[i])
    rotation[i] = now


@wp.kernel(enable_backward=False, module="unique")
def tick_of_the_cars(model: Model, arenas: Arenas, short_tick: bool, classes: wp.array2d(dtype=wp.int32)):
    """One tick of all cars, each by its class, or all as cars in contact."""
    e = wp.tid()
    lanes = one_lane(e)
    find_close_bodies(model, arenas, e, lanes)
    for c in range(arenas.seats):
        car_class = classify_car(model, arenas, e, c, False, lanes)
        if car_class == NEAR_MESH:
            car_class = find_mesh_in_reach(model, arenas, e, c, False, lanes)
        classes[e, c] = car_class
        if car_class != IN_CONTACT and not short_tick:
            car_class = IN_CONTACT
            store_mesh_reach(arenas.mesh_reach, e, c * MESH_REACH_WORDS, no_mesh_in_reach())
        if car_class == FLYING:
            step_flying_car(model, arenas, e, c, False, lanes)
        elif car_class == DRIVING:
            step_driving_car(model, arenas, e, c, False, lanes)
        elif step_car_in_contact(model, arenas, e, c, False, lanes) == AT_ARENA:
            find_car_contacts(model, arenas, e, c, False, lanes)
            solve_car_contacts(model, arenas, e, c, False, lanes)


def located(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cells of points, and whether they are in the middle of the arena."""
    outputs = [wp.zeros(len(points), dtype=wp.int32, device="cpu"), wp.zeros(len(points), dtype=wp.bool, device="cpu")]
    wp.launch(locate, len(points), inputs=[wp.array(points.astype(np.float32), dtype=wp.vec3, device="cpu")], outputs=outputs,
              device="cpu")
    return outputs[0].numpy(), outputs[1].numpy()


def test_in_the_middle_there_is_nothing_but_the_floor():
    """For every cell the point deepest in the middle is tried: if it is outside, all of the cell is."""
    low = np.stack(np.meshgrid(*(np.arange(cells) for cells in GRID_SHAPE), indexing="ij"), -1).reshape(-1, 3) * CELL
    low = low + np.array([LOW_X, LOW_Y, LOW_Z])
    deepest = np.clip(0.0, low + 0.01, low + CELL - 0.01)
    deepest[:, 2] = low[:, 2] + 0.01
    cells, middle = located(deepest)
    assert (np.diff(baked_arena().first)[cells[middle]] == 0).all()
    assert middle.mean() > 0.5, "it is most of the grid"
    points = deepest[middle]
    assert (ARENA_CEILING_Z - points[:, 2] - CELL > REACH).all() and (ARENA_WALL_X - np.abs(points[:, 0]) - CELL > REACH).all()


def test_no_part_of_a_car_is_farther_than_the_search_radius():
    for shape in SHAPES:
        corner = np.linalg.norm(np.abs(shape["center"]) + shape["half"])
        assert corner + 0.02 * (np.linalg.norm(shape["half"]) + np.linalg.norm(shape["center"])) < min(REACH, CAR_REACH)
        for end in ("front", "back"):
            x, y, z = shape[f"{end}_wheel"]
            reach = shape[f"{end}_length"] + SUSPENSION_TRAVEL + shape[f"{end}_radius"]
            assert max(np.linalg.norm([x, y, z]), np.linalg.norm([x, y, z - reach])) < CAR_REACH


def scattered(seed: int) -> WarpSimulator:
    """Cars are over the floor in any pose and motion, the ball is far away, and the other car is sometimes near a wall."""
    sim, generator = WarpSimulator(ARENAS, 1, 1, threads=1), torch.Generator().manual_seed(seed)
    state = sim.state
    state.ball.position[:] = torch.tensor([0.0, 0.0, 1500.0])
    place = torch.rand(ARENAS, 2, 3, generator=generator) * torch.tensor([4000.0, 1500.0, 250.0])
    place[:, 0, 1] += 500.0
    place[:, 1, 1] = -500.0 - place[:, 1, 1]
    state.cars.position.copy_(place + torch.tensor([0.0, 0.0, 5.0]))
    upright = torch.rand(ARENAS, 2, generator=generator) < 0.5
    state.cars.position[..., 2][upright] = 17.0
    turns = torch.from_numpy(rotations(2 * ARENAS, np.random.default_rng(seed)).astype(np.float32)).view(ARENAS, 2, 3, 3)
    state.cars.rotation.copy_(torch.where(upright[..., None, None], state.cars.rotation, turns))
    state.cars.velocity.copy_(torch.randn(ARENAS, 2, 3, generator=generator) * 700.0)
    state.cars.velocity[..., 2][upright] = 0.0
    state.cars.angular_velocity.copy_(torch.randn(ARENAS, 2, 3, generator=generator))
    state.cars.boost.fill_(50.0)
    sim.place(torch.ones(ARENAS, dtype=torch.bool))
    return sim


def test_the_short_tick_of_a_car_alone_is_the_tick_of_a_car_in_contact():
    sims = [scattered(3), scattered(3)]
    generator = torch.Generator().manual_seed(1)
    classes, seen = wp.zeros((ARENAS, 2), dtype=wp.int32, device="cpu"), torch.zeros(3, dtype=torch.int64)
    grounded = lying = 0
    for _ in range(40):
        controls = torch.rand(ARENAS, 2, 8, generator=generator) * 2 - 1
        for sim, short in zip(sims, (True, False), strict=True):
            partition = sim._partitions[0]
            sim._memory.controls.copy_(controls)
            wp.launch(tick_of_the_cars, ARENAS, inputs=[partition.model, partition.arenas, short, classes], device="cpu")
            seen += torch.bincount(wp.to_torch(classes).flatten(), minlength=3) if short else 0
        ours, theirs = (sim.state for sim in sims)
        for name in ("position", "rotation", "velocity", "angular_velocity", "boost", "contact_normal"):
            # One tick of some hundred operations is compiled twice: 168 roundings of the result, and two units in the last
            # place of a position at 4,096 uu, from which suspension and contacts follow.
            bound = gamma(168) * getattr(theirs.cars, name).abs() + 4 * 4096 * unit()
            assert_within(getattr(ours.cars, name), getattr(theirs.cars, name), bound, name)
        for name in ("on_ground", "has_contact", "has_jumped", "wheel_contact", "is_flipping"):
            unlike = getattr(ours.cars, name) != getattr(theirs.cars, name)
            assert unlike.float().mean() < 1e-3, f"{name}: rounding explains fewer differences"
        grounded += int(ours.cars.on_ground.sum())
        lying += int(ours.cars.has_contact.sum())
        sims[0].load(sims[1].save())
    assert (seen > 1_000).all() and grounded > 3_000 and lying > 1_000, "they fly, drive, are in contact, and lie on the floor"


def test_rotating_is_exact_and_stays_a_rotation():
    rng = np.random.default_rng(0)
    start, spin = rotations(500, rng), rng.normal(size=(500, 3)) * np.geomspace(1e-4, 60.0, 500)[:, None]
    # One tick rounds the start, sine and cosine, then sums of three products. Over a thousand ticks the angle adds up.
    for ticks, error in ((1, gamma(4 + 2 * FUNCTION)), (1000, gamma(336))):
        matrices = wp.array(start.astype(np.float32), dtype=wp.mat33, device="cpu")
        wp.launch(turn, 500, inputs=[matrices, wp.array(spin.astype(np.float32), dtype=wp.vec3, device="cpu"), ticks],
                  device="cpu")
        rate = np.minimum(np.linalg.norm(spin, axis=1), np.pi / 4 * 120)[:, None, None]
        x, y, z = (spin / np.linalg.norm(spin, axis=1, keepdims=True)).T
        zero = np.zeros_like(x)
        cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(-1, 3, 3)
        angle = (rate / 120.0) * ticks
        exact = (np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross) @ start
        off = np.abs(matrices.numpy() - exact).max(axis=(1, 2))
        assert off.max() < error * (1 + ticks * float(rate.max()) / 120.0)
        assert np.abs(matrices.numpy() @ np.swapaxes(matrices.numpy(), 1, 2) - np.eye(3)).max() < gamma(17)
