"""Contacts of two cars against plain geometry, and bumps and demolitions against plain Python and RocketSim."""
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import warp as wp

from tests.rocket.sim.poses import SHAPES, bodies, rotations, to_warp, turned, unit_vectors, warp_shapes
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.car_car import find_car_car_contacts
from wavedash.rocket.sim.collision.contacts import Contact
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.kernels.records import Car, EventRecord

MIRROR = np.diag([-1.0, 1.0, 1.0])
LEFT_RIGHT = np.diag([1.0, -1.0, 1.0])
"""Mirrors that leave a car's box unchanged."""


@wp.kernel(enable_backward=False)
def touch(
    a: int, b: int, all_cars: wp.array2d(dtype=Car), all_bodies: wp.array2d(dtype=Body), shapes: wp.array(dtype=CarShape),
    all_events: wp.array2d(dtype=EventRecord), contacts: wp.array2d(dtype=Contact), counts: wp.array(dtype=wp.int32),
):
    i = wp.tid()
    cars = wp.zeros(shape=(2,), dtype=Car)
    events = wp.zeros(shape=(2,), dtype=EventRecord)
    both = wp.zeros(shape=(3,), dtype=Body)
    for seat in range(2):
        cars[seat] = all_cars[i, seat]
        events[seat] = all_events[i, seat]
        both[1 + seat] = all_bodies[i, seat]
    counts[i] = find_car_car_contacts(contacts, i, 1, a, b, both, cars, shapes, events) - 1
    for seat in range(2):
        all_cars[i, seat] = cars[seat]
        all_events[i, seat] = events[seat]
        all_bodies[i, seat] = both[1 + seat]


@dataclass
class Touch:
    """The result for n pairs of cars: [n, 2] structs and contacts [n][up to 4]."""

    contacts: list[np.ndarray]
    cars: np.ndarray
    events: np.ndarray
    late: np.ndarray


def run(cars: np.ndarray, pair: np.ndarray, a: int = 1, b: int = 0, room: int = 5) -> Touch:
    n = len(cars)
    nothing = np.zeros((n, 2), EventRecord.numpy_dtype())
    nothing["bumped"], nothing["demolished"] = -1, -1
    after, moved, events = to_warp(cars, Car), to_warp(pair, Body), to_warp(nothing, EventRecord)
    contacts, counts = wp.zeros((n, room), dtype=Contact, device="cpu"), wp.zeros(n, dtype=wp.int32, device="cpu")
    wp.launch(touch, n, [a, b, after, moved, warp_shapes(), events, contacts, counts], device="cpu")
    found = [row[1:1 + count] for row, count in zip(contacts.numpy(), counts.numpy(), strict=True)]
    return Touch(found, after.numpy(), events.numpy(), moved.numpy()["late_velocity"])


def box_middles(cars: np.ndarray, pair: np.ndarray) -> np.ndarray:
    return pair["position"] + turned(pair["rotation"].astype(float), SHAPES["center"][cars["hitbox"]])


def overlaps(cars: np.ndarray, pair: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """The overlap [n, k] of the two boxes of each pair along directions [n, k, 3]; negative if they are apart."""
    half, rotation = SHAPES["half"][cars["hitbox"]], pair["rotation"].astype(float)
    middle = box_middles(cars, pair)
    width = np.einsum("nkx,nbxy->nkby", directions, rotation)
    between = np.einsum("nkx,nx->nk", directions, middle[:, 1] - middle[:, 0])
    return np.einsum("nkby,nby->nk", np.abs(width), half) - np.abs(between)


def axes(pair: np.ndarray) -> np.ndarray:
    """The directions of faces and of pairs of edges, which are enough to tell two boxes apart: [n, 15, 3]."""
    of_a, of_b = (np.swapaxes(pair["rotation"][:, seat], 1, 2).astype(float) for seat in (0, 1))
    edges = np.cross(of_a[:, :, None], of_b[:, None]).reshape(len(pair), 9, 3)
    length = np.linalg.norm(edges, axis=-1, keepdims=True)
    edges = np.where(length > 1e-6, edges / np.maximum(length, 1e-6), of_a[:, :1])
    return np.concatenate([of_a, of_b, edges], 1)


def scene(n: int, overlap: tuple[float, float], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of cars in the air that overlap by so much; a third of them are upright."""
    dice = np.random.default_rng(seed)
    cars = np.zeros((n, 2), Car.numpy_dtype())
    cars["hitbox"], cars["contact_car"] = dice.integers(0, 6, (n, 2)), -1
    rotation = rotations(2 * n, dice).reshape(n, 2, 3, 3)
    yaw, rotation[:n // 3] = dice.uniform(-np.pi, np.pi, (n // 3, 2)), np.eye(3)
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    rotation[:n // 3, :, :2, :2] = np.moveaxis(turn, (0, 1), (2, 3))
    way = unit_vectors((n, 3), dice)
    way[:n // 3, 2] *= 0.1
    pair = bodies(np.zeros((n, 2, 3)), rotation)
    pair["position"][:, 0] = dice.uniform([-800, -800, 500], [800, 800, 1500], (n, 3))
    wanted, near, far = dice.uniform(*overlap, n), np.full(n, 5.0), np.full(n, 300.0)
    for _ in range(30):
        distance = (near + far) / 2
        pair["position"][:, 1] = pair["position"][:, 0] + way * distance[:, None]
        apart = overlaps(cars, pair, axes(pair)).min(1) < wanted
        near, far = np.where(apart, near, distance), np.where(apart, distance, far)
    approach = np.array([1.0, -1.0])[None, :, None] * way[:, None] * dice.uniform(-300, 2000, (n, 1, 1))
    velocity = dice.normal(size=(n, 2, 3)) * 600 + approach
    pair["velocity"] = velocity * np.minimum(1, 2250 / np.linalg.norm(velocity, axis=2, keepdims=True))
    return cars, pair


def test_cars_touch_if_no_axis_separates_them_along_the_one_on_which_they_overlap_least() -> None:
    cars, pair = scene(600, (-6.0, 15.0))
    touches = run(cars, pair).contacts
    of_axes = overlaps(cars, pair, axes(pair))
    least = of_axes.min(1)
    clear = np.abs(least) > 0.01
    assert (np.array([len(found) > 0 for found in touches]) == (least > 0))[clear].all()
    assert 100 < (least > 0).sum() < 550
    dice = np.random.default_rng(1)
    anywhere = overlaps(cars, pair, unit_vectors((len(cars), 300, 3), dice)).min(1)
    middles, full_depth = box_middles(cars, pair), []
    for i in np.flatnonzero([len(found) > 0 for found in touches]):
        normal = touches[i]["normal"][:1].astype(float)
        assert (touches[i]["normal"] == touches[i]["normal"][0]).all()
        assert normal[0] @ (middles[i, 1] - middles[i, 0]) > 0  # from B, seat 0, to A
        along = overlaps(cars[i:i + 1], pair[i:i + 1], normal[None])[0, 0]
        assert along <= least[i] * 1.05 + 0.01 and along <= anywhere[i] * 1.05 + 0.01
        assert -touches[i]["distance"].min() < along + 0.01
        full_depth.append(-touches[i]["distance"].min() > along - 0.01)
    assert np.mean(full_depth) > 0.9  # the deepest point is among them, unless it is beside the face that it is behind


def outside(car: np.ndarray, body: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How far points [k, 3] are outside of a car's box; negative if inside."""
    shape = SHAPES[car["hitbox"]]
    local = (points - body["position"]) @ body["rotation"] - shape["center"]
    return (np.abs(local) - shape["half"]).max(1)


def test_contacts_lie_on_the_surface_of_each_box_and_one_of_them_in_the_other_box() -> None:
    cars, pair = scene(600, (0.5, 15.0))
    numbers, misses = np.zeros(5, int), []
    for i, found in enumerate(run(cars, pair).contacts):
        numbers[len(found)] += 1
        assert (found["a"] == 2).all() and (found["b"] == 1).all()
        assert found["friction"] == pytest.approx(0.09) and found["restitution"] == pytest.approx(0.1)
        assert (found["distance"] <= 0).all()
        on_a, on_b = pair["position"][i, 1] + found["arm_a"], pair["position"][i, 0] + found["arm_b"]
        assert np.abs(on_a - on_b - found["normal"] * found["distance"][:, None]).max() < 2e-3
        off_own = np.abs([outside(cars[i, 1], pair[i, 1], on_a), outside(cars[i, 0], pair[i, 0], on_b)]).max()
        off_other = np.minimum(outside(cars[i, 0], pair[i, 0], on_a), outside(cars[i, 1], pair[i, 1], on_b)).max()
        assert max(off_own, off_other) < 0.02 or len(found) == 1
        misses.append(max(off_own, off_other))
    assert np.mean(np.array(misses) < 0.02) > 0.98  # lines along two edges may be closest just beyond a corner
    assert (numbers[[1, 2, 4]] > 30).all() and numbers[0] == 0


def test_the_mirrored_scene_has_the_mirrored_contacts() -> None:
    cars, pair = scene(300, (0.5, 15.0))
    mirrored = pair.copy()
    mirrored["position"] = pair["position"] @ MIRROR
    mirrored["rotation"] = MIRROR @ pair["rotation"] @ LEFT_RIGHT
    for here, there in zip(run(cars, pair).contacts, run(cars, mirrored).contacts, strict=True):
        assert len(here) == len(there)
        assert np.abs(here["normal"][0] @ MIRROR - there["normal"][0]).max() < 1e-4
        assert here["distance"].min() == pytest.approx(there["distance"].min(), abs=2e-3)
        if len(here) < 4:  # of more than four, others may be left out
            gaps = np.abs((here["arm_a"] @ MIRROR)[:, None] - there["arm_a"][None]).max(-1)
            assert gaps.min(1).max() < 0.02


def test_swapping_the_cars_turns_the_normal() -> None:
    cars, pair = scene(300, (0.5, 15.0))
    for here, there in zip(run(cars, pair, 1, 0).contacts, run(cars, pair, 0, 1).contacts, strict=True):
        assert len(here) == len(there)
        assert (there["a"] == 1).all() and (there["b"] == 2).all()
        assert np.abs(here["normal"][0] + there["normal"][0]).max() < 1e-4
        if len(here) < 4:
            gaps = np.abs(here["arm_a"][:, None] - there["arm_b"][None]).max(-1)
            assert gaps.min(1).max() < 0.02


def test_a_full_list_gets_no_more_contacts() -> None:
    cars, pair = scene(300, (0.5, 15.0))
    everything, cut = run(cars, pair).contacts, run(cars, pair, room=3).contacts
    assert any(len(found) > 2 for found in everything)
    for found, fitting in zip(everything, cut, strict=True):
        assert (fitting == found[:2]).all()


# Bumps


def bump_scene(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of cars in all situations that matter for bumps."""
    cars, pair = scene(n, (-1.0, 12.0), seed=2)
    dice = np.random.default_rng(3)
    cars["team"] = dice.integers(0, 2, (n, 2))
    cars["is_supersonic"], cars["on_ground"] = dice.random((n, 2)) < 0.3, dice.random((n, 2)) < 0.5
    waiting = dice.random((n, 2)) < 0.2
    cars["contact_cooldown"] = np.where(waiting, 0.1, 0.0)
    cars["contact_car"] = np.where(waiting, dice.integers(0, 2, (n, 2)), -1)
    return cars, pair


@dataclass
class Expected:
    """What RocketSim's Arena::_BtCallback_OnCarCarCollision does, in plain Python."""

    cars: list[dict[str, Any]]
    bumped: list[int]
    demolished: list[int]
    late: np.ndarray


def bump_in_python(cars: np.ndarray, pair: np.ndarray, contacts: np.ndarray) -> Expected:
    names = ("team", "is_supersonic", "on_ground", "contact_car", "contact_cooldown", "is_demoed", "demo_timer")
    state = [{name: car[name] for name in names} for car in cars]
    result = Expected(state, [-1, -1], [-1, -1], np.zeros((2, 3)))
    for contact in contacts:
        for me, other, arm in ((1, 0, contact["arm_a"]), (0, 1, contact["arm_b"])):
            if state[me]["is_demoed"] or state[other]["is_demoed"]:
                break
            if state[me]["contact_car"] == other and state[me]["contact_cooldown"] > 0:
                continue
            velocity, way = pair["velocity"][me].astype(float), (pair["position"][other] - pair["position"][me]).astype(float)
            direction = velocity / np.linalg.norm(velocity)
            speed = velocity @ way / np.linalg.norm(way)
            flees = pair["velocity"][other] @ direction
            if not (velocity @ way > 0 and speed > flees and arm @ pair["rotation"][me][:, 0] > 64.5):
                continue
            state[me]["contact_car"], state[me]["contact_cooldown"] = other, 0.25
            if state[me]["is_supersonic"] and state[me]["team"] != state[other]["team"]:
                state[other]["is_demoed"], state[other]["demo_timer"] = True, 3.0
                result.demolished[me] = other
            else:
                on_ground = state[other]["on_ground"]
                up = pair["rotation"][other][:, 2] if on_ground else np.array([0.0, 0.0, 1.0])
                size = np.interp(speed, [0, 1400, 2200], [5 / 6, 1100, 1530] if on_ground else [5 / 6, 1390, 1945])
                result.late[other] += direction * size + up * np.interp(speed, [0, 1400, 2200], [2 / 6, 278, 417])
                result.bumped[me] = other
    return result


def test_bumps_and_demolitions_are_those_of_the_formula() -> None:
    cars, pair = bump_scene(2000)
    touched = run(cars, pair)
    seen = {"bumped": 0, "demolished": 0}
    for i, contacts in enumerate(touched.contacts):
        expected = bump_in_python(cars[i], pair[i], contacts)
        assert touched.events["bumped"][i].tolist() == expected.bumped
        assert touched.events["demolished"][i].tolist() == expected.demolished
        assert np.abs(touched.late[i] - expected.late).max() < 0.01
        for seat in range(2):
            for name, value in expected.cars[seat].items():
                assert touched.cars[name][i, seat] == pytest.approx(value)
        for name in seen:
            seen[name] += sum(other >= 0 for other in getattr(expected, name))
    assert min(seen.values()) > 100


def test_only_one_of_two_cars_is_demolished() -> None:
    cars, pair = scene(1, (0.0, 1.0))
    cars["hitbox"], cars["team"], cars["is_supersonic"] = 0, [[0, 1]], True
    pair["rotation"] = np.array([np.eye(3), np.diag([-1.0, -1.0, 1.0])])
    pair["position"] = [[[-73.0, 0, 1000], [73.0, 0, 1000]]]
    pair["velocity"] = [[[2250.0, 0, 0], [-2250.0, 0, 0]]]
    touched = run(cars, pair)
    assert len(touched.contacts[0]) == 4
    assert touched.cars["is_demoed"].tolist() == [[True, False]]
    assert touched.events["demolished"].tolist() == [[-1, 0]]
    assert (touched.events["bumped"] == -1).all() and (touched.late == 0).all()


def test_events_are_those_of_rocketsim() -> None:
    pytest.importorskip("RocketSim")
    from wavedash.rocket.rocketsim.package import rocketsim

    rs = rocketsim()
    cars, pair = bump_scene(150)
    cars["hitbox"], cars["team"], cars["on_ground"] = [[0, 1]], [[0, 1]], False
    touched = run(cars, pair)
    arena = rs.Arena(rs.GameMode.THE_VOID)
    arena.step(1)
    both = [arena.add_car(seat, rs.CarConfig(seat)) for seat in (0, 1)]
    seat_of = {car.id: seat for seat, car in enumerate(both)}
    log: list[tuple[int, int, bool]] = []
    arena.set_car_bump_callback(
        lambda bumper, victim, is_demo, **_: log.append((seat_of[bumper.id], seat_of[victim.id], is_demo)))
    far = arena.ball.get_state()
    far.pos = rs.Vec(3000, 3000, 1500)
    total = 0
    for i in range(len(cars)):
        arena.ball.set_state(far)
        log.clear()
        for seat, car in enumerate(both):
            state, body = rs.CarState(), pair[i, seat]
            state.pos, state.vel = rs.Vec(*body["position"].tolist()), rs.Vec(*body["velocity"].tolist())
            state.rot_mat = rs.RotMat(*body["rotation"].T.ravel().tolist())
            state.is_supersonic = bool(cars["is_supersonic"][i, seat])
            other = cars["contact_car"][i, seat]
            state.car_contact_id = both[other].id if other >= 0 else 0
            state.car_contact_cooldown_timer = float(cars["contact_cooldown"][i, seat])
            car.set_state(state)
        arena.step(1)
        if any(any(car.get_state().wheels_with_contact) for car in both):
            continue  # wheels on the other car change velocities before
        ours = [(seat, int(touched.events[name][i, seat]), name == "demolished")
                for name in ("bumped", "demolished") for seat in range(2) if touched.events[name][i, seat] >= 0]
        assert sorted(log) == sorted(ours)
        total += len(ours)
    assert total > 20
