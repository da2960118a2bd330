"""Rigid bodies: the ball and the cars as the solver sees them, and how they move."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import GRAVITY
from wavedash.rocket.sim.collision.shapes import CarShape
from wavedash.rocket.sim.constants import (
    BALL_INVERSE_INERTIA,
    BALL_MASS,
    BALL_VELOCITY_KEPT,
    CAR_MASS,
    DT,
    MAX_TURN,
    PUSH_TURN_RATE,
)
from wavedash.rocket.sim.kernels.records import BallRecord, Car
from wavedash.rocket.sim.kernels.struct_io import loader, storer, stride_of

wp.set_module_options({"enable_backward": False})


@wp.struct
class Body:
    """A ball or car during one tick. `spin` is its angular velocity."""

    position: wp.vec3
    rotation: wp.mat33
    velocity: wp.vec3
    spin: wp.vec3
    inverse_mass: wp.float32
    """0: nothing moves it"""
    inverse_inertia: wp.vec3
    """About the body's own axes"""
    forced_velocity: wp.vec3
    """Velocity that forces add during the tick (Bullet's m_externalForceImpulse)"""
    forced_spin: wp.vec3
    """Spin that torques add during the tick"""
    delta_velocity: wp.vec3
    """Velocity that contacts add (Bullet's m_deltaLinearVelocity)"""
    delta_spin: wp.vec3
    push_velocity: wp.vec3
    """Velocity that takes the body out of an overlap and ends with the tick (Bullet's m_pushVelocity)"""
    turn_velocity: wp.vec3
    """Angular velocity that does the same (Bullet's m_turnVelocity)"""
    late_velocity: wp.vec3
    """Velocity that hits and bumps add at the end of the tick (RocketSim's _velocityImpulseCache)"""


load_body, store_body = loader(Body), storer(Body)
BODY_WORDS = wp.constant(stride_of(Body))


@wp.func
def car_body(car: Car, shape: CarShape) -> Body:
    """The body of a car as the tick begins."""
    body = Body()
    body.position = car.position
    body.rotation = car.rotation
    body.velocity = car.velocity
    body.spin = car.angular_velocity
    body.inverse_inertia = shape.inverse_inertia
    if car.present and not car.is_demoed:
        body.inverse_mass = 1.0 / CAR_MASS
    return body


@wp.func
def ball_body(ball: BallRecord) -> Body:
    """The body of the ball as the tick begins. A ball at rest, as at a kick-off, floats until something moves it."""
    body = Body()
    body.position = ball.position
    body.rotation = ball.rotation
    body.velocity = ball.velocity * BALL_VELOCITY_KEPT
    body.spin = ball.angular_velocity
    body.inverse_mass = 1.0 / BALL_MASS
    body.inverse_inertia = wp.vec3(BALL_INVERSE_INERTIA)
    if wp.length_sq(ball.velocity) + wp.length_sq(ball.angular_velocity) > 0.0:
        body.forced_velocity = wp.vec3(0.0, 0.0, -GRAVITY * DT)
    return body


@wp.func
def apply_inverse_inertia(body: Body, torque: wp.vec3) -> wp.vec3:
    """Change of spin by an angular impulse, both in world axes."""
    return body.rotation * wp.cw_mul(body.inverse_inertia, wp.transpose(body.rotation) * torque)


@wp.func
def point_velocity(body: Body, arm: wp.vec3) -> wp.vec3:
    """Velocity of the point at `arm` from the origin of a body."""
    return body.velocity + wp.cross(body.spin, arm)


@wp.func
def inverse_effective_mass(body: Body, arm: wp.vec3, direction: wp.vec3) -> float:
    """Inverse of the effective mass of a body for an impulse along `direction` at `arm`."""
    turn_velocity = wp.transpose(body.rotation) * wp.cross(arm, direction)
    return body.inverse_mass + wp.dot(turn_velocity, wp.cw_mul(body.inverse_inertia, turn_velocity))


@wp.func
def apply_impulse(body: Body, impulse: wp.vec3, angular_impulse: wp.vec3) -> Body:
    """The body after an impulse, which changes velocity and spin at once."""
    body.velocity = body.velocity + impulse * body.inverse_mass
    body.spin = body.spin + apply_inverse_inertia(body, angular_impulse)
    return body


@wp.func
def clamp_length(v: wp.vec3, limit: float) -> wp.vec3:
    """A vector, shortened to the length `limit` if it is longer."""
    squared = wp.length_sq(v)
    if squared > limit * limit:
        return v * (limit / wp.sqrt(squared))
    return v


@wp.func
def rotated(rotation: wp.mat33, spin: wp.vec3) -> wp.mat33:
    """A rotation after one tick with this spin. Half the angle is at most an eighth of pi, where short series give its sine and
    cosine to the last bit."""
    spin = clamp_length(spin, MAX_TURN / DT)
    square = 0.25 * DT * DT * wp.length_sq(spin)
    sine = 1.0 - square * (1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0)))
    cosine = 1.0 - square * (0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0 - square * (1.0 / 40320.0))))
    axis = spin * (0.5 * DT * sine)
    return orthonormalised(wp.quat_to_matrix(wp.quat(axis[0], axis[1], axis[2], cosine)) * rotation)


@wp.func
def orthonormalised(rotation: wp.mat33) -> wp.mat33:
    """A rotation whose rounding errors are removed: its axes get unit length and right angles again."""
    return rotation * 1.5 - rotation * (wp.transpose(rotation) * rotation) * 0.5


@wp.func
def integrated(body: Body) -> Body:
    """The body after the tick: it moves out of overlaps first, then along its new velocity."""
    body.velocity = body.velocity + body.delta_velocity + body.forced_velocity
    body.spin = body.spin + body.delta_spin + body.forced_spin
    if wp.length_sq(body.push_velocity) + wp.length_sq(body.turn_velocity) > 0.0:
        body.position = body.position + body.push_velocity * DT
        body.rotation = rotated(body.rotation, body.turn_velocity * PUSH_TURN_RATE)
    body.position = body.position + body.velocity * DT
    body.rotation = rotated(body.rotation, body.spin)
    return body
