"""Contacts of a car and the ball against a cloud of points, and the extra hit against plain Python and RocketSim."""
import numpy as np
import pytest
import warp as wp

from tests.rocket.sim.poses import SHAPES, bodies, rotations, to_warp, turned, warp_shapes
from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.sim.collision.bodies import Body
from wavedash.rocket.sim.collision.car_ball import find_car_ball_contact
from wavedash.rocket.sim.collision.contacts import Contact
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.kernels.records import Car
from wavedash.rocket.sim.mechanics.ball_hits import hit_ball

RADIUS, TOUCHING = 91.25, 1.905
TICK = 50
GRID = 3.0
"""Distance in uu between the points of a cloud."""


@wp.kernel(enable_backward=False)
def touch(
    cars: wp.array(dtype=Car), car_bodies: wp.array(dtype=Body), balls: wp.array(dtype=Body), shapes: wp.array(dtype=CarShape),
    found: wp.array(dtype=wp.int32), contacts: wp.array(dtype=Contact), added: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    touches, contact = find_car_ball_contact(3, car_bodies[i], shapes[cars[i].hitbox], balls[i])
    found[i] = touches
    contacts[i] = contact
    if touches == 1:
        car, velocity = hit_ball(cars[i], car_bodies[i], balls[i], contact, TICK)
        cars[i] = car
        added[i] = velocity


def run(cars: np.ndarray, car_bodies: np.ndarray, balls: np.ndarray) -> tuple[np.ndarray, ...]:
    """Whether each car touches its ball, where, the car afterwards, and the velocity that the ball gets."""
    n = len(cars)
    found, contacts = wp.zeros(n, dtype=wp.int32, device="cpu"), wp.zeros(n, dtype=Contact, device="cpu")
    after, added = to_warp(cars, Car), wp.zeros(n, dtype=wp.vec3, device="cpu")
    inputs = [after, to_warp(car_bodies, Body), to_warp(balls, Body), warp_shapes(), found, contacts, added]
    wp.launch(touch, n, inputs, device="cpu")
    return found.numpy() == 1, contacts.numpy(), after.numpy(), added.numpy()


def scene(n: int, gap: tuple[float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cars with a ball next to a random point of their surface, `gap` apart, not counting round edges."""
    dice = np.random.default_rng(0)
    cars = np.zeros(n, Car.numpy_dtype())
    cars["hitbox"], cars["ball_hit_tick"], cars["ball_hit_impulse_tick"] = dice.integers(0, 6, n), -1, -1
    half, middle = SHAPES["half"][cars["hitbox"]], SHAPES["center"][cars["hitbox"]]
    cube = dice.uniform(-1, 1, (n, 3))
    surface = np.clip(cube / np.abs(cube).max(1, keepdims=True) * 1.3, -1, 1)  # on faces, edges and corners
    away = np.where(np.abs(surface) == 1, np.abs(dice.normal(size=(n, 3))) * surface, 0.0)
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    local = middle + surface * half + away * (RADIUS + dice.uniform(*gap, (n, 1)))
    car_bodies = bodies(dice.uniform(-2000, 2000, (n, 3)), rotations(n, dice), dice.normal(size=(n, 3)) * 900)
    ball_at = car_bodies["position"] + turned(car_bodies["rotation"], local)
    return cars, car_bodies, bodies(ball_at, rotations(n, dice), dice.normal(size=(n, 3)) * 900)


def cloud(half: np.ndarray) -> np.ndarray:
    """Points on the surface of a box."""
    axes = [np.linspace(-h, h, int(2 * h / GRID) + 2) for h in half]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    return points[(np.abs(points) >= half - 1e-6).any(1)]


CLOUDS = [cloud(shape["half"] - shape["margin"]) for shape in SHAPES]


def ball_in_box(cars: np.ndarray, car_bodies: np.ndarray, balls: np.ndarray) -> np.ndarray:
    """Centres of balls relative to the centres of the cars' boxes."""
    seen = turned(np.swapaxes(car_bodies["rotation"], 1, 2).astype(np.float64), balls["position"] - car_bodies["position"])
    return seen - SHAPES["center"][cars["hitbox"]]


def test_a_contact_is_where_a_cloud_of_points_has_it() -> None:
    cars, car_bodies, balls = scene(1500, (-60.0, 30.0))
    found, contacts, _, _ = run(cars, car_bodies, balls)
    for i, center in enumerate(ball_in_box(cars, car_bodies, balls)):
        edge, points = SHAPES["margin"][cars["hitbox"][i]], CLOUDS[cars["hitbox"][i]]
        nearest = np.linalg.norm(points - center, axis=1).min()
        slack = nearest - max(nearest**2 - GRID**2 / 2, 0.0) ** 0.5 + 0.01  # the true point is half a cell's diagonal away
        if (np.abs(center) < points.max(0)).all():
            nearest = -nearest
        assert found[i] == (nearest - edge - RADIUS <= TOUCHING) or abs(nearest - edge - RADIUS - TOUCHING) < slack
        if found[i]:
            assert contacts["distance"][i] + edge + RADIUS == pytest.approx(nearest, abs=slack)
            away = -car_bodies["rotation"][i].T @ contacts["normal"][i]
            closest = center - away * (contacts["distance"][i] + edge + RADIUS)
            assert np.linalg.norm(points - closest, axis=1).min() < GRID / 2**0.5 + 0.01
    assert 300 < found.sum() < 1400  # both outcomes are there


def test_a_contact_lies_on_both_surfaces() -> None:
    cars, car_bodies, balls = scene(1500, (-60.0, 1.0))
    found, contacts, _, _ = run(cars, car_bodies, balls)
    contacts, cars, car_bodies, balls = contacts[found], cars[found], car_bodies[found], balls[found]
    assert (contacts["a"] == 4).all() and (contacts["b"] == 0).all()
    assert (contacts["friction"] == 2).all() and (contacts["restitution"] == 0).all()
    assert np.abs(np.linalg.norm(contacts["arm_b"], axis=1) - RADIUS).max() < 1e-3
    on_car, on_ball = (body["position"] + contacts[arm] for body, arm in ((car_bodies, "arm_a"), (balls, "arm_b")))
    assert np.abs(on_car - on_ball - contacts["normal"] * contacts["distance"][:, None]).max() < 2e-3
    box_point = ball_in_box(cars, car_bodies, bodies(on_car, balls["rotation"]))
    shape = SHAPES[cars["hitbox"]]
    core = shape["half"] - shape["margin"][:, None]
    to_core = np.linalg.norm(box_point - np.clip(box_point, -core, core), axis=1)
    assert np.abs(to_core - shape["margin"]).max() < 5e-3


def test_a_ball_inside_a_car_is_pushed_out_of_the_nearest_face() -> None:
    dice = np.random.default_rng(1)
    cars, car_bodies, balls = scene(300, (0.0, 0.0))
    shape = SHAPES[cars["hitbox"]]
    core = shape["half"] - shape["margin"][:, None]
    center = dice.uniform(-0.95, 0.95, (300, 3)) * core
    balls["position"] = car_bodies["position"] + turned(car_bodies["rotation"], shape["center"] + center)
    found, contacts, _, _ = run(cars, car_bodies, balls)
    assert found.all()
    depth = core - np.abs(center)
    assert np.abs(contacts["distance"] + depth.min(1) + shape["margin"] + RADIUS).max() < 2e-3
    away = -turned(np.swapaxes(car_bodies["rotation"], 1, 2), contacts["normal"])
    face = depth.argmin(1)
    rows = np.arange(300)
    assert (away[rows, face] * np.sign(center[rows, face]) > 0.999).all()


def extra_hit_in_python(car: np.ndarray, ball: np.ndarray) -> np.ndarray:
    """The formula of RocketSim's Arena::_BtCallback_OnCarBallCollision."""
    car_at, ball_at = car["position"].astype(float), ball["position"].astype(float)
    forward = car["rotation"][:, 0].astype(float)
    speed = min(np.linalg.norm(ball["velocity"].astype(float) - car["velocity"]), 4600.0)
    direction = (ball_at - car_at) * [1, 1, 0.35]
    direction /= np.linalg.norm(direction)
    direction = direction - forward * (direction @ forward) * (1 - 0.65)
    direction /= np.linalg.norm(direction)
    return direction * speed * np.interp(speed, [0, 500, 2300, 4600], [0.65, 0.65, 0.55, 0.30])


def test_the_extra_hit_is_that_of_the_formula() -> None:
    cars, car_bodies, balls = scene(600, (-20.0, 1.0))
    balls["velocity"][0] = car_bodies["velocity"][0]  # no speed, no hit
    balls["velocity"][1:20] *= 5  # faster than the curve goes
    found, contacts, after, added = run(cars, car_bodies, balls)
    expected = np.array([extra_hit_in_python(car, ball) for car, ball in zip(car_bodies, balls, strict=True)])
    assert np.abs(added - expected)[found].max() < 0.01
    assert (added[0] == 0).all()
    assert (after["ball_hit_tick"] == np.where(found, TICK, -1)).all()
    assert (after["ball_hit_impulse"][found] == added[found]).all()
    assert (after["ball_hit_position"][found] == balls["position"][found]).all()
    offset = turned(np.swapaxes(balls["rotation"], 1, 2), contacts["arm_b"])
    assert np.abs(after["ball_hit_offset"] - offset)[found].max() < 1e-3


@pytest.mark.parametrize(("last", "again"), [(-1, True), (TICK - 2, True), (TICK - 1, False), (TICK, False), (TICK + 9, True)])
def test_no_extra_hit_in_two_ticks_in_a_row(last: int, again: bool) -> None:
    cars, car_bodies, balls = scene(50, (-20.0, 0.0))
    cars["ball_hit_impulse_tick"], cars["ball_hit_impulse"] = last, 7.0
    found, _, after, added = run(cars, car_bodies, balls)
    assert found.any()
    assert ((np.linalg.norm(added[found], axis=1) > 0) == again).all()
    assert (after["ball_hit_impulse_tick"][found] == (TICK if again else last)).all()
    assert (after["ball_hit_impulse"][found] == added[found]).all()


def test_hits_are_those_of_rocketsim() -> None:
    pytest.importorskip("RocketSim")
    from wavedash.rocket.rocketsim.package import rocketsim

    rs = rocketsim()
    cars, car_bodies, balls = scene(120, (-25.0, 5.0))
    car_bodies["velocity"] = np.clip(car_bodies["velocity"], -1200, 1200)
    shift = np.array([0.0, 0.0, 1000.0]) - car_bodies["position"]
    car_bodies["position"] += shift
    balls["position"] += shift
    balls["rotation"] = np.eye(3)
    before_tick = balls.copy()
    balls["velocity"] *= 0.97 ** (1 / 120)  # drag comes before contacts
    found, _, after, _ = run(cars, car_bodies, balls)
    arenas, compared = [], 0
    for hitbox in range(len(HITBOXES)):
        arena = rs.Arena(rs.GameMode.THE_VOID)
        arena.step(1)
        arenas.append((arena, arena.add_car(0, rs.CarConfig(hitbox))))
    for i in range(len(cars)):
        arena, car = arenas[cars["hitbox"][i]]
        ball_state, car_state = rs.BallState(), rs.CarState()
        for state, body in ((ball_state, before_tick[i]), (car_state, car_bodies[i])):
            state.pos, state.vel = rs.Vec(*body["position"].tolist()), rs.Vec(*body["velocity"].tolist())
            state.rot_mat = rs.RotMat(*body["rotation"].T.ravel().tolist())
        arena.ball.set_state(ball_state)
        car.set_state(car_state)
        arena.step(1)
        hit = car.get_state().ball_hit_info
        assert hit.is_valid == found[i]
        if found[i] and not any(car.get_state().wheels_with_contact):  # wheels on the ball change the car's velocity before
            theirs = [[v.x, v.y, v.z] for v in (hit.relative_pos_on_ball, hit.ball_pos, hit.extra_hit_vel)]
            ours = [after[f"ball_hit_{name}"][i] for name in ("offset", "position", "impulse")]
            compared += 1
            # Bullet's search for the closest point is not exact.
            assert (np.abs(np.array(theirs) - ours).max(1) < [1.0, 0.001, 0.1]).all()
    assert compared > 30 and not found.all()
