"""One tick of a car: wheels, controls, jumps and boost, and its motion to the end of the tick.

There is a stage for each class of cars. A flying car and a driving car touch nothing but the floor and have their whole tick
here. A car in contact goes on to the stages that find and solve contacts, unless it turns out to touch nothing.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import CAR_MAX_SPEED, CAR_MAX_SPIN, GRAVITY
from wavedash.rocket.sim.classes import AT_ARENA, NO_CLASS
from wavedash.rocket.sim.collision.arena_solver import solve_single_contact
from wavedash.rocket.sim.collision.bodies import (
    BODY_WORDS,
    Body,
    apply_impulse,
    car_body,
    clamp_length,
    integrated,
    store_body,
)
from wavedash.rocket.sim.collision.broad_phase import is_in_mask
from wavedash.rocket.sim.collision.car_arena import find_floor_contact, touches_plane
from wavedash.rocket.sim.collision.mesh_reach import BODY_NEAR_MESH, MESH_REACH_WORDS, load_mesh_reach
from wavedash.rocket.sim.collision.wheel_rays import OtherBodies, cast_rays_at_floor, cast_wheel_rays
from wavedash.rocket.sim.constants import DT
from wavedash.rocket.sim.kernels.lanes import Lanes
from wavedash.rocket.sim.kernels.memory import Arenas, Model
from wavedash.rocket.sim.kernels.records import CONTROLS_WORDS, Car, Controls, car_at, load_car, load_controls, store_car
from wavedash.rocket.sim.kernels.struct_io import prefetch
from wavedash.rocket.sim.limits import sanitised
from wavedash.rocket.sim.mechanics.boosting import apply_boost, update_supersonic
from wavedash.rocket.sim.mechanics.driving import apply_driving, effective_throttle, update_handbrake
from wavedash.rocket.sim.mechanics.flying import apply_air_forces, auto_roll
from wavedash.rocket.sim.mechanics.jumping import auto_flip, double_jump_or_flip, jump
from wavedash.rocket.sim.mechanics.suspension import (
    DRIVETRAIN_WORDS,
    TYRES_AT,
    Drivetrain,
    WheelForces,
    clear_pushback,
    compute_wheel_forces,
    ground_normal,
    load_drivetrain,
    store_drivetrain,
)

wp.set_module_options({"enable_backward": False})


# Stages -----------------------------------------------------------------------------------------------------------------------
# All loads come first, so that a GPU waits for all of them at once.


@wp.func
def step_flying_car(model: Model, arenas: Arenas, e: int, c: int, late: bool, lanes: Lanes):
    """The whole tick of a car that nothing is near."""
    car = load_car(arenas.words, e, car_at(c))
    controls = controls_in_force(arenas, e, c, late)
    first = c * DRIVETRAIN_WORDS
    drivetrain = load_drivetrain(arenas.drivetrain, e, first)
    body = car_body(car, model.shapes[car.hitbox])
    controls = sanitised(controls)
    car.handbrake = update_handbrake(car.handbrake, controls)
    throttle = effective_throttle(car, controls)
    clear_pushback(drivetrain, arenas.drivetrain, e, first + TYRES_AT)
    drivetrain.has_pushback = 0
    car, drivetrain, body = apply_controls(car, controls, throttle, WheelForces(), drivetrain, body)
    store_drivetrain(arenas.drivetrain, e, first, drivetrain)
    store_car(arenas.words, e, car_at(c), finish_car(car, body))


@wp.func
def step_driving_car(model: Model, arenas: Arenas, e: int, c: int, late: bool, lanes: Lanes):
    """The whole tick of a car that only the floor is near."""
    car = load_car(arenas.words, e, car_at(c))
    controls = controls_in_force(arenas, e, c, late)
    first = c * DRIVETRAIN_WORDS
    drivetrain = load_drivetrain(arenas.drivetrain, e, first)
    prefetch(arenas.drivetrain, e, first + TYRES_AT)
    prefetch(arenas.drivetrain, e, first + DRIVETRAIN_WORDS - 1)
    shape = model.shapes[car.hitbox]
    body = car_body(car, shape)
    controls = sanitised(controls)
    others = other_bodies(model, arenas, e)
    car.handbrake = update_handbrake(car.handbrake, controls)
    throttle = effective_throttle(car, controls)
    hits = cast_rays_at_floor(shape, body)
    forces = compute_wheel_forces(hits, body, shape, drivetrain, others, arenas.drivetrain, first + TYRES_AT, car.handbrake,
                                  throttle)
    drivetrain.has_pushback = forces.has_pushback
    car, drivetrain, body = apply_controls(car, controls, throttle, forces, drivetrain, body)
    store_drivetrain(arenas.drivetrain, e, first, drivetrain)
    touches, contact = find_floor_contact(shape, body.position, body.rotation)
    if touches == 1:
        car.has_contact = True
        car.contact_normal = contact.normal
        solved = solve_single_contact(contact, body)
        body.delta_velocity = solved.delta_velocity  # not `body = ...`: Warp copies a whole struct that an `if` assigns
        body.delta_spin = solved.delta_spin
        body.push_velocity = solved.push_velocity
        body.turn_velocity = solved.turn_velocity
    store_car(arenas.words, e, car_at(c), finish_car(car, body))


@wp.func
def step_car_in_contact(model: Model, arenas: Arenas, e: int, c: int, late: bool, lanes: Lanes) -> int:
    """Wheels and controls of a car that may touch walls, the ball or other cars. Returns AT_ARENA if its body may touch the
    arena. A car that can touch nothing is moved to the end of the tick here."""
    may_collide = is_in_mask(arenas.collision_mask[e], c)
    car = load_car(arenas.words, e, car_at(c))
    controls = controls_in_force(arenas, e, c, late)
    first = c * DRIVETRAIN_WORDS
    drivetrain = load_drivetrain(arenas.drivetrain, e, first)
    prefetch(arenas.drivetrain, e, first + TYRES_AT)
    prefetch(arenas.drivetrain, e, first + DRIVETRAIN_WORDS - 1)
    prefetch(arenas.mesh_reach, e, c * MESH_REACH_WORDS)
    shape = model.shapes[car.hitbox]
    body = car_body(car, shape)
    arenas.arena_contact_count[e, 1 + c] = 0
    if body.inverse_mass == 0.0:
        store_body(arenas.bodies, e, (1 + c) * BODY_WORDS, body)
        return NO_CLASS
    controls = sanitised(controls)
    others = other_bodies(model, arenas, e)
    car.handbrake = update_handbrake(car.handbrake, controls)
    throttle = effective_throttle(car, controls)
    reach = load_mesh_reach(arenas.mesh_reach, e, c * MESH_REACH_WORDS)
    hits = cast_wheel_rays(c, body, shape, model.arena, reach, others, may_collide)
    forces = compute_wheel_forces(hits, body, shape, drivetrain, others, arenas.drivetrain, first + TYRES_AT, car.handbrake,
                                  throttle)
    drivetrain.has_pushback = forces.has_pushback
    car, drivetrain, body = apply_controls(car, controls, throttle, forces, drivetrain, body)
    store_drivetrain(arenas.drivetrain, e, first, drivetrain)
    at_arena = reach.near == BODY_NEAR_MESH or touches_plane(shape, body.position, body.rotation)
    if may_collide or at_arena:
        store_car(arenas.words, e, car_at(c), car)
        store_body(arenas.bodies, e, (1 + c) * BODY_WORDS, body)
        return wp.where(at_arena, AT_ARENA, NO_CLASS)
    store_car(arenas.words, e, car_at(c), finish_car(car, body))
    return NO_CLASS


# Helpers of the stages --------------------------------------------------------------------------------------------------------


@wp.func
def controls_in_force(arenas: Arenas, e: int, c: int, late: bool) -> Controls:
    """The controls of a car in this tick. `late`: those of the previous step are still in force."""
    if late:
        return load_controls(arenas.previous_controls, e, c * CONTROLS_WORDS)
    return load_controls(arenas.controls, e, c * CONTROLS_WORDS)


@wp.func
def other_bodies(model: Model, arenas: Arenas, e: int) -> OtherBodies:
    """The bodies on which the wheels of a car may stand: the ball and the other cars."""
    others = OtherBodies()
    others.words = arenas.words
    others.shapes = model.shapes
    others.e = e
    others.seats = arenas.seats
    return others


@wp.func
def apply_controls(car: Car, controls: Controls, throttle: float, forces: WheelForces, drivetrain: Drivetrain, body: Body):
    """Applies controls and the forces of the wheels, in the order of RocketSim's `Car::_PreTickUpdate`."""
    body.forced_velocity = wp.vec3(0.0, 0.0, -GRAVITY * DT)
    forward = wp.vec3(body.rotation[0, 0], body.rotation[1, 0], body.rotation[2, 0])
    speed = wp.dot(body.velocity, forward)
    pressed = controls.jump > 0.5 and car.controls.jump <= 0.5
    touching = forces.wheels_touching
    car.wheel_contact = forces.contact
    car.on_ground = touching >= 3
    drivetrain, body = apply_driving(car.handbrake, throttle, controls, drivetrain, forces, speed, body)
    if touching < 3:
        flipping, spin, velocity = apply_air_forces(car, controls, touching == 0, body)
        car.is_flipping = flipping
        body.forced_spin = body.forced_spin + spin
        body.forced_velocity = body.forced_velocity + velocity
    else:
        car.is_flipping = False
    car, body = jump(car, controls, pressed, body)
    car, body = auto_flip(car, pressed, body)
    car, body = double_jump_or_flip(car, controls, pressed, speed, body)
    if controls.throttle != 0.0 and ((touching > 0 and touching < 4) or car.has_contact):
        ground = car.contact_normal
        if touching > 0:
            ground = ground_normal(forces, ground)
        spin, velocity = auto_roll(ground, body)
        body.forced_spin = body.forced_spin + spin
        body.forced_velocity = body.forced_velocity + velocity
    car.has_contact = False
    body = apply_impulse(body, forces.impulse, forces.angular_impulse)
    car, body = apply_boost(car, controls, body)
    car.controls = controls
    return car, drivetrain, body


@wp.func
def finish_car(car: Car, body: Body) -> Car:
    """The car at the end of the tick: it moves, and its speed is capped. A car that was demolished in this tick does not
    move."""
    if car.is_demoed:
        car.velocity = body.velocity
        car.angular_velocity = body.spin
        return car
    body = integrated(body)
    car.position = body.position
    car.rotation = body.rotation
    car.velocity = body.velocity
    car = update_supersonic(car)
    car.contact_cooldown = wp.max(car.contact_cooldown - DT, 0.0)
    car.velocity = clamp_length(body.velocity + body.late_velocity, CAR_MAX_SPEED)
    car.angular_velocity = clamp_length(body.spin, CAR_MAX_SPIN)
    return car
