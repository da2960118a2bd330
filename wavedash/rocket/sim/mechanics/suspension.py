"""Suspension: springs hold a car above the ground, and its tyres roll and grip.

Engine, brake, steering and grip act one tick late: the tyres use what was decided in the previous tick.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.sim.collision.bodies import Body, inverse_effective_mass, point_velocity
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.collision.wheel_rays import (
    ARENA_GROUND,
    BODY_GROUND,
    NO_GROUND,
    OtherBodies,
    WheelHits,
    body_below,
    mount_arm,
)
from wavedash.rocket.sim.constants import (
    DT,
    MIN_TILT,
    PUSHBACK_RATE,
    PUSHBACK_SHARE,
    RAY_SHORTENED,
    STEEP_INVERSE_TILT,
    SUSPENSION_DAMPING_IN,
    SUSPENSION_DAMPING_OUT,
    SUSPENSION_FORCE_BACK,
    SUSPENSION_FORCE_FRONT,
    SUSPENSION_STIFFNESS,
    SUSPENSION_TRAVEL,
)
from wavedash.rocket.sim.kernels.struct_io import loader, storer, stride_of
from wavedash.rocket.sim.mechanics.tyres import tyre_grip, tyre_impulse
from wavedash.rocket.sim.mechanics.wheels import ray_length, suspension_length, wheel_radius

wp.set_module_options({"enable_backward": False})


@wp.struct
class Drivetrain:
    """What a car remembers from the previous tick; in memory its four `Tyre`s follow."""

    steer: wp.float32
    """Angle of the front wheels, radians"""
    engine: wp.float32
    brake: wp.float32
    has_pushback: wp.int32
    """1: a tyre of the car remembers a pushback"""


@wp.struct
class Tyre:
    """What a wheel remembers from the previous tick."""

    side_grip: wp.float32
    roll_grip: wp.float32
    pushback: wp.float32
    """Impulse against a wheel that is deep in the ground; it is kept until the wheel leaves the ground"""


load_drivetrain, store_drivetrain = loader(Drivetrain), storer(Drivetrain)
load_tyre, store_tyre = loader(Tyre), storer(Tyre)
TYRES_AT, TYRE_WORDS = wp.constant(stride_of(Drivetrain)), wp.constant(stride_of(Tyre))
PUSHBACK_WORD = wp.constant(Tyre.ctype.pushback.offset // 4)
DRIVETRAIN_WORDS = wp.constant(stride_of(Drivetrain) + 4 * stride_of(Tyre))


@wp.struct
class WheelForces:
    """The forces of the ground on the wheels of a car in a tick."""

    wheels_touching: wp.int32
    """How many wheels touch the ground"""
    contact: wp.vec4ub
    """1 for each wheel that touches"""
    on_arena: wp.bool
    """Whether a wheel touches the arena"""
    normals: wp.vec3
    """Sum of the ground's normals under the wheels"""
    impulse: wp.vec3
    """Impulse of springs and tyres"""
    angular_impulse: wp.vec3
    """Their angular impulse; tyres act at the height of the car's origin, so that it does not roll over"""
    has_pushback: wp.int32
    """1: a tyre remembers a pushback"""


@wp.func
def compute_wheel_forces(
    hits: WheelHits, body: Body, shape: CarShape, drivetrain: Drivetrain, others: OtherBodies,
    memory: wp.array2d(dtype=wp.int32), first: int, handbrake: float, throttle: float,
) -> WheelForces:
    """The sum of what the ground does to each wheel. `memory` holds the tyres of the car from word `first` on: they act as was
    decided in the previous tick, and get their grip for the next."""
    right = wp.vec3(body.rotation[0, 1], body.rotation[1, 1], body.rotation[2, 1])
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    up = wp.vec3(body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
    front_axle = right * wp.cos(drivetrain.steer) - forward * wp.sin(drivetrain.steer)
    under = Body()
    if hits.seat >= -1:
        under = body_below(others, hits.seat)
    forces = WheelForces()
    count = int(4)  # not range(4), which Warp would unroll
    for i in range(count):
        tyre = load_tyre(memory, others.e, first + i * TYRE_WORDS)
        if hits.ground[i] == NO_GROUND:
            tyre.pushback = 0.0
        else:
            normal = hits.normal[i]
            mount = mount_arm(shape, body.rotation, i)
            depth = ray_length(shape, i) * hits.fraction[i]
            arm = mount - up * depth
            motion = point_velocity(body, arm)
            speed = wp.dot(normal, motion)
            sunk = depth - (suspension_length(shape, i) + wheel_radius(shape, i) - RAY_SHORTENED)
            if hits.ground[i] == ARENA_GROUND:
                forces.on_arena = True
                if sunk < 0.0:
                    tyre.pushback = pushback(body, arm, normal, speed, sunk)
            axle = right
            force = SUSPENSION_FORCE_BACK
            if i < 2:
                axle = front_axle
                force = SUSPENSION_FORCE_FRONT
            length = suspension_length(shape, i)
            pressure = spring_force(wp.dot(normal, up), speed, length, depth - wheel_radius(shape, i)) * force
            support = wp.vec3()
            if pressure > 0.0:
                support = normal * (pressure * DT + tyre.pushback)
            friction = tyre_impulse(body, under, hits.ground[i] == BODY_GROUND, axle, arm, motion, normal, drivetrain.engine,
                                    drivetrain.brake, tyre.roll_grip, tyre.side_grip)
            forces.wheels_touching += 1
            forces.contact[i] = wp.uint8(1)
            forces.normals = forces.normals + normal
            forces.impulse = forces.impulse + support + friction
            level_arm = arm - up * wp.dot(up, arm)
            forces.angular_impulse = forces.angular_impulse + wp.cross(arm, support) + wp.cross(level_arm, friction)
            side, roll = tyre_grip(point_velocity(body, mount), axle, normal, handbrake, throttle)
            tyre.side_grip = side
            tyre.roll_grip = roll
            if tyre.pushback != 0.0:
                forces.has_pushback = 1
        store_tyre(memory, others.e, first + i * TYRE_WORDS, tyre)
    return forces


@wp.func
def clear_pushback(drivetrain: Drivetrain, memory: wp.array2d(dtype=wp.int32), e: int, first: int):
    """Clears the pushback of all tyres, for a car with nothing under its wheels."""
    if drivetrain.has_pushback == 1:
        for i in range(4):
            memory[e, first + i * TYRE_WORDS + PUSHBACK_WORD] = 0


@wp.func
def reset_drivetrain(memory: wp.array2d(dtype=wp.int32), e: int, first: int):
    """Clears drivetrain and tyres, for a car that begins anew."""
    for i in range(DRIVETRAIN_WORDS):
        memory[e, first + i] = 0


@wp.func
def pushback(body: Body, arm: wp.vec3, normal: wp.vec3, speed: float, sunk: float) -> float:
    """Impulse against a wheel that is deep in the arena (`sunk` is negative)."""
    return PUSHBACK_SHARE * wp.max(0.0, (-PUSHBACK_RATE * sunk / DT - speed) / inverse_effective_mass(body, arm, normal))


@wp.func
def spring_force(tilt: float, speed: float, length: float, stretched: float) -> float:
    """Force of a suspension by stiffness and damping, before its scale. `tilt`: cosine between the ground's normal and the
    car's up; `speed`: along the normal; `length` at rest; `stretched`: length now."""
    squeezed = length - wp.clamp(stretched, length - SUSPENSION_TRAVEL, length + SUSPENSION_TRAVEL)
    inverse_tilt = float(STEEP_INVERSE_TILT)
    closing = float(0.0)
    if tilt > MIN_TILT:
        inverse_tilt = 1.0 / tilt
        closing = speed * inverse_tilt
    damping = SUSPENSION_DAMPING_OUT
    if closing < 0.0:
        damping = SUSPENSION_DAMPING_IN
    return squeezed * SUSPENSION_STIFFNESS * inverse_tilt - damping * closing


@wp.func
def ground_normal(forces: WheelForces, up: wp.vec3) -> wp.vec3:
    """The mean normal of the ground under the wheels that touch, `up` where none does."""
    if wp.length_sq(forces.normals) > 0.0:
        return wp.normalize(forces.normals)
    return up
