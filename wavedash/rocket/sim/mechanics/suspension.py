"""Springs hold a car above the ground, and its tyres roll and grip.

Engine, brake, steering and grip act one tick late: the tyres use what was decided in the tick before.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import DT, Body, impulse_mass, velocity_at
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.collision.wheel_rays import (
    ARENA_GROUND,
    BODY_GROUND,
    NOTHING,
    Others,
    Wheels,
    body_under,
    mount_of,
)
from wavedash.rocket.sim.kernels.struct_io import loader, room_of, storer
from wavedash.rocket.sim.mechanics.tyres import grip, tyre
from wavedash.rocket.sim.mechanics.wheels import RAY_SHORTENED, TRAVEL, length_of, radius_of, reach_of

wp.set_module_options({"enable_backward": False})

STIFFNESS = wp.constant(500.0)
DAMPING_IN = wp.constant(25.0)
DAMPING_OUT = wp.constant(40.0)
FRONT_FORCE = wp.constant(35.75)
BACK_FORCE = wp.constant(54.265)


@wp.struct
class Axles:
    """What a car remembers from the tick before; behind it lie its four `Tyre`s."""

    steer: wp.float32
    """Angle of the front wheels, radians"""
    engine: wp.float32
    brake: wp.float32
    rebounds: wp.int32
    """1: one of its tyres does"""


@wp.struct
class Tyre:
    """What a wheel remembers from the tick before."""

    side_grip: wp.float32
    roll_grip: wp.float32
    rebound: wp.float32
    """Impulse against a wheel that is deep in the ground; it stays until the wheel leaves the ground"""


load_axles, store_axles = loader(Axles), storer(Axles)
load_tyre, store_tyre = loader(Tyre), storer(Tyre)
TYRES_AT, TYRE_WORDS = wp.constant(room_of(Axles)), wp.constant(room_of(Tyre))
REBOUND_WORD = wp.constant(Tyre.ctype.rebound.offset // 4)
AXLES_WORDS = wp.constant(room_of(Axles) + 4 * room_of(Tyre))


@wp.struct
class Footing:
    """What the wheels of a car come to in a tick."""

    touching: wp.int32
    """Wheels that touch"""
    contact: wp.vec4ub
    """Which of them: 1"""
    on_arena: wp.bool
    """Whether one touches the arena"""
    normals: wp.vec3
    """Sum of the ground's normals under them"""
    push: wp.vec3
    """Impulse of springs and tyres"""
    turn: wp.vec3
    """Their angular impulse; tyres act at the height of the car's origin, so that it does not roll over"""
    rebounds: wp.int32
    """1: a tyre remembers a rebound"""


@wp.func
def stand(
    wheels: Wheels, body: Body, shape: CarShape, axles: Axles, others: Others, memory: wp.array2d(dtype=wp.int32), first: int,
    handbrake: float, throttle: float,
) -> Footing:
    """What the ground does to each wheel. `memory` holds the tyres of the car from word `first` on: they do what was decided in
    the tick before, and get their grip for the next."""
    right = wp.vec3(body.rotation[0, 1], body.rotation[1, 1], body.rotation[2, 1])
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    front_axle = right * wp.cos(axles.steer) - forward * wp.sin(axles.steer)
    under = Body()
    if wheels.seat >= -1:
        under = body_under(others, wheels.seat)
    footing = Footing()
    count = int(4)  # not range(4), which would be written out four times
    for i in range(count):
        tyre_i = load_tyre(memory, others.e, first + i * TYRE_WORDS)
        if wheels.ground[i] == NOTHING:
            tyre_i.rebound = 0.0
        else:
            normal = wheels.normal[i]
            mount = mount_of(shape, body.rotation, i)
            depth = reach_of(shape, i) * wheels.fraction[i]
            arm = mount - up * depth
            motion = velocity_at(body, arm)
            speed = wp.dot(normal, motion)
            sunk = depth - (length_of(shape, i) + radius_of(shape, i) - RAY_SHORTENED)
            if wheels.ground[i] == ARENA_GROUND:
                footing.on_arena = True
                if sunk < 0.0:
                    tyre_i.rebound = rebound(body, arm, normal, speed, sunk)
            axle = right
            force = BACK_FORCE
            if i < 2:
                axle = front_axle
                force = FRONT_FORCE
            pressed = spring(wp.dot(normal, up), speed, length_of(shape, i), depth - radius_of(shape, i)) * force
            push = wp.vec3()
            if pressed > 0.0:
                push = normal * (pressed * DT + tyre_i.rebound)
            rub = tyre(body, under, wheels.ground[i] == BODY_GROUND, axle, arm, motion, normal, axles.engine, axles.brake,
                       tyre_i.roll_grip, tyre_i.side_grip)
            footing.touching += 1
            footing.contact[i] = wp.uint8(1)
            footing.normals = footing.normals + normal
            footing.push = footing.push + push + rub
            footing.turn = footing.turn + wp.cross(arm, push) + wp.cross(arm - up * wp.dot(up, arm), rub)
            side, roll = grip(velocity_at(body, mount), axle, normal, handbrake, throttle)
            tyre_i.side_grip = side
            tyre_i.roll_grip = roll
            if tyre_i.rebound != 0.0:
                footing.rebounds = 1
        store_tyre(memory, others.e, first + i * TYRE_WORDS, tyre_i)
    return footing


@wp.func
def lift_wheels(axles: Axles, memory: wp.array2d(dtype=wp.int32), e: int, first: int):
    """Nothing is under any wheel."""
    if axles.rebounds == 1:
        for i in range(4):
            memory[e, first + i * TYRE_WORDS + REBOUND_WORD] = 0


@wp.func
def forget_wheels(memory: wp.array2d(dtype=wp.int32), e: int, first: int):
    """Of a car that begins again."""
    for i in range(AXLES_WORDS):
        memory[e, first + i] = 0


@wp.func
def rebound(body: Body, arm: wp.vec3, normal: wp.vec3, speed: float, sunk: float) -> float:
    """Impulse against a wheel that is deep in the arena (`sunk` is negative). It stays as it was until the wheel leaves the
    ground."""
    return 0.25 * wp.max(0.0, (-0.2 * sunk / DT - speed) / impulse_mass(body, arm, normal))


@wp.func
def spring(tilt: float, speed: float, length: float, stretched: float) -> float:
    """Stiffness and damping of a suspension: cosine between the ground's normal and the car's up, speed along the normal, its
    length at rest and now."""
    squeezed = length - wp.clamp(stretched, length - TRAVEL, length + TRAVEL)
    inverse_tilt = float(10.0)
    closing = float(0.0)
    if tilt > 0.1:
        inverse_tilt = 1.0 / tilt
        closing = speed * inverse_tilt
    damping = DAMPING_OUT
    if closing < 0.0:
        damping = DAMPING_IN
    return squeezed * STIFFNESS * inverse_tilt - damping * closing


@wp.func
def ground_normal(footing: Footing, up: wp.vec3) -> wp.vec3:
    """Mean over the wheels that touch, `up` where none does."""
    if wp.length_sq(footing.normals) > 0.0:
        return wp.normalize(footing.normals)
    return up
