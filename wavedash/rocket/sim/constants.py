"""Constants that only the physics needs, each with its unit, meaning, and name in RocketSim 2.2 or its Bullet 3.24.

Lengths are in uu (1 cm), times in seconds, angles in radians; RocketSim writes many of them in Bullet's unit of 50 uu. Facts of
the game that tasks need as well are in `wavedash/rocket/constants.py`.
"""
from __future__ import annotations

from math import pi
from typing import NamedTuple

from wavedash.rocket.constants import BALL_RADIUS, FLIP_SECONDS, GOAL_HALF_WIDTH, GOAL_HEIGHT, GOAL_Y, SIDE_WALL_X, TICK_RATE

# Bodies (RLConst.h, Arena.cpp) ------------------------------------------------------------------------------------------------
DT = 1.0 / TICK_RATE
CAR_MASS = 180.0
"""CAR_MASS_BT"""
BALL_MASS = 30.0
"""BALL_MASS_BT: a sixth of a car's mass"""
BALL_DRAG = 0.03
"""BALL_DRAG: share of its velocity that the ball loses in a second"""
BALL_VELOCITY_KEPT = (1.0 - BALL_DRAG) ** DT
"""Share of its velocity that the ball keeps in a tick"""
BALL_INVERSE_INERTIA = 1.0 / (0.4 * BALL_MASS * BALL_RADIUS**2)
"""Inverse moment of inertia of a solid sphere"""
MAX_TURN = 0.25 * pi
"""Greatest angle in radians by which a body turns in a tick (Bullet's ANGULAR_MOTION_THRESHOLD)"""
ARENA_WALL_X = SIDE_WALL_X
"""ARENA_EXTENT_X: planes of the side walls"""
ARENA_CEILING_Z = 2048.0
"""ARENA_HEIGHT: plane of the ceiling"""

# Contacts (RLConst.h, Arena.cpp: values of pairs override those of the bodies) ------------------------------------------------
BALL_FRICTION, BALL_RESTITUTION = 0.35, 0.6
"""Between ball and arena: the smaller friction and the greater restitution of the two"""
CAR_ARENA_FRICTION, CAR_ARENA_RESTITUTION = 0.3, 0.3
"""CARWORLD_COLLISION_FRICTION, CARWORLD_COLLISION_RESTITUTION"""
CAR_BALL_FRICTION = 2.0
"""CARBALL_COLLISION_FRICTION; the restitution is 0"""
CAR_CAR_FRICTION, CAR_CAR_RESTITUTION = 0.09, 0.1
"""CARCAR_COLLISION_FRICTION, CARCAR_COLLISION_RESTITUTION"""
CONTACT_SHARE = 0.02
"""Bodies touch within this share of a shape's bounding radius (Bullet's gContactThresholdFactor)"""
BALL_CONTACT_DISTANCE = CONTACT_SHARE * (BALL_RADIUS + 4.0)
"""uu between the ball and another surface below which they touch, with Bullet's margin of 0.08 of its units; a ball at rest is
1.9 uu above the floor"""
BOX_MARGIN = 2.0
"""uu by which Bullet shrinks a box on each side before it adds the margin (CONVEX_DISTANCE_MARGIN, 0.04 of its units)"""
BOX_MARGIN_SHARE = 0.05
"""The margin is at most this share of the box's smallest size (setSafeMargin): bodies of flat boxes are up to 0.4 uu smaller
than their hitboxes"""
EDGE_DISTANCE = 5.0
"""uu from an edge within which its angle counts (Bullet's m_edgeDistanceThreshold, 0.1 of its units)"""
POINTS_PER_MESH = 4
"""Contacts that a body keeps with one mesh (Bullet's MANIFOLD_CACHE_SIZE)"""
BOX_EDGE_FACTOR = 1.05
"""Two boxes touch with their edges if these overlap less than their faces by this factor (fudge_factor of dBoxBox2)"""

# Solver (Bullet's btContactSolverInfo as RocketSim sets it) -------------------------------------------------------------------
SOLVER_ITERATIONS = 10
"""m_numIterations"""
PENETRATION_RATE = 0.8
"""Share of an overlap that is removed in a tick (m_erp2)"""
PUSH_TURN_RATE = 0.1
"""Share of that push that turns a body (m_splitImpulseTurnErp)"""
RESTITUTION_THRESHOLD = 10.0
"""uu/s below which nothing bounces (m_restitutionVelocityThreshold, 0.2 of Bullet's units)"""
MIN_SLIDING_SPEED = 0.0173
"""uu/s below which a contact does not slide in any direction (SIMD_EPSILON against the squared speed in Bullet's units)"""
CONVERGED = 1.0e-4
"""Iterations end when no impulse changes by more than this"""

# Wheels (CarConfig.cpp, btVehicleRL.cpp, RLConst.h) ---------------------------------------------------------------------------


class WheelPair(NamedTuple):
    """The two wheels of an axle."""

    radius: float
    """uu"""
    suspension: float
    """uu: length of the suspension at rest, with the travel"""
    mount: tuple[float, float, float]
    """Where the suspension of the right wheel begins, in the car's frame; the left one is mirrored"""


WHEELS = {
    "octane": (WheelPair(12.5, 38.755, (51.25, 25.90, 20.755)), WheelPair(15.0, 37.055, (-33.75, 29.50, 20.755))),
    "dominus": (WheelPair(12.0, 33.95, (50.30, 31.10, 15.75)), WheelPair(13.5, 33.85, (-34.75, 33.00, 15.75))),
    "plank": (WheelPair(12.5, 31.9242, (49.97, 27.80, 12.0942)), WheelPair(17.0, 27.9242, (-35.43, 20.28, 12.0942))),
    "breakout": (WheelPair(13.5, 29.7, (51.50, 26.67, 11.75)), WheelPair(15.0, 29.666, (-35.75, 35.00, 11.75))),
    "hybrid": (WheelPair(12.5, 38.755, (51.25, 25.90, 20.755)), WheelPair(15.0, 37.055, (-34.00, 29.50, 20.755))),
    "merc": (WheelPair(15.0, 39.505, (51.25, 25.90, 21.505)), WheelPair(15.0, 39.105, (-33.75, 29.50, 21.505))),
}
"""Front and back axle of each hitbox (CarConfig.cpp)"""
SUSPENSION_TRAVEL = 12.0
"""uu that a wheel goes up and down (MAX_SUSPENSION_TRAVEL)"""
RAY_SHORTENED = 2.5
"""uu that a wheel's ray is shorter than suspension, travel and radius (SUSPENSION_SUBTRACTION, 0.05 of Bullet's units)"""
SUSPENSION_STIFFNESS = 500.0
"""SUSPENSION_STIFFNESS"""
SUSPENSION_DAMPING_IN, SUSPENSION_DAMPING_OUT = 25.0, 40.0
"""WHEELS_DAMPING_COMPRESSION, WHEELS_DAMPING_RELAXATION"""
SUSPENSION_FORCE_FRONT, SUSPENSION_FORCE_BACK = 35.75, 54.265
"""SUSPENSION_FORCE_SCALE_FRONT, SUSPENSION_FORCE_SCALE_BACK"""
MIN_TILT = 0.1
"""Cosine between the ground's normal and the car's up below which the ground counts as steep (btVehicleRL::rayCast)"""
STEEP_INVERSE_TILT = 10.0
"""Replaces the inverse of that cosine on steep ground"""
PUSHBACK_RATE = 0.2
"""Share of its depth by which a wheel deep in the ground is pushed back in a tick (btVehicleRL: erp of the extra pushback)"""
PUSHBACK_SHARE = 0.25
"""Each of the four wheels gets this share of the pushback"""

# Tyres (btVehicleRL.cpp, RLConst.h) -------------------------------------------------------------------------------------------
SIDE_GRIP = 0.2
"""Share of the sideways motion that a tyre stops in a tick (contactDamping of resolveSingleBilateral)"""
BRAKE_RATE = 113.73963
"""ROLLING_FRICTION_SCALE_MAGIC: force of a braked wheel per uu/s of rolling"""
TYRE_MASS = CAR_MASS / 3.0
"""Mass by which a tyre's friction is scaled (frictionImpulse * mass / 3)"""
MIN_SLIP_SPEED = 5.0
"""uu/s sideways below which a tyre does not slip (Car::_UpdateWheels)"""
HANDBRAKE_SIDE_GRIP = 0.1
"""HANDBRAKE_LAT_FRICTION_FACTOR: share of the sideways grip that a full handbrake leaves"""
LATERAL_FRICTION = ((0.0, 1.0), (1.0, 0.2))
"""LAT_FRICTION_CURVE: sideways grip of a tyre, by its slip (0: it rolls, 1: it slides)"""
HANDBRAKE_LONG_FRICTION = ((0.0, 0.5), (1.0, 0.9))
"""HANDBRAKE_LONG_FRICTION_FACTOR: share of the grip along the rolling direction that a full handbrake leaves, by slip"""
NON_STICKY_FRICTION = ((0.0, 0.1), (0.7075, 0.5), (1.0, 1.0))
"""NON_STICKY_FRICTION_FACTOR: share of the grip that is left without throttle, by z of the ground's normal"""

# Driving (RLConst.h, Car::_UpdateWheels) --------------------------------------------------------------------------------------
ENGINE_FORCE = CAR_MASS * 400.0
"""THROTTLE_TORQUE_AMOUNT: mass times 400 uu/s2"""
BRAKE_FORCE = CAR_MASS * (14.25 + 1.0 / 3.0)
"""BRAKE_TORQUE_AMOUNT"""
DRIVE_TORQUE = ((0.0, 1.0), (1400.0, 0.1), (1410.0, 0.0))
"""DRIVE_SPEED_TORQUE_FACTOR: share of the engine's force that is left, by forward speed (uu/s)"""
FEW_WHEELS_TORQUE = 0.25
"""Share of the engine's force with fewer than three wheels on the ground"""
STEER_ANGLE = ((0.0, 0.53356), (500.0, 0.31930), (1000.0, 0.18203), (1500.0, 0.10570), (1750.0, 0.08507), (3000.0, 0.03454))
"""STEER_ANGLE_FROM_SPEED: radians of the front wheels at full steer, by forward speed (uu/s)"""
POWERSLIDE_STEER_ANGLE = ((0.0, 0.39235), (2500.0, 0.12610))
"""POWERSLIDE_STEER_ANGLE_FROM_SPEED: the same with a full handbrake"""
HANDBRAKE_RISE, HANDBRAKE_FALL = 5.0, 2.0
"""POWERSLIDE_RISE_RATE, POWERSLIDE_FALL_RATE: how much the handbrake closes and opens in a second"""
THROTTLE_DEADZONE = 0.001
"""THROTTLE_DEADZONE"""
STOPPED_SPEED = 25.0
"""STOPPING_FORWARD_VEL: uu/s below which a coasting car brakes fully"""
COASTING_BRAKE = 0.15
"""COASTING_BRAKE_FACTOR"""
STICKY_FORCE = 0.5
"""Share of gravity that holds a car to the ground; it is more on walls while the car drives (Car::_UpdateWheels)"""

# In the air (RLConst.h, Car::_UpdateAirTorque, Car::_UpdateAutoRoll) ----------------------------------------------------------
AIR_TORQUE_SCALE = 2.0 * pi / 65536.0 * 1000.0
"""CAR_TORQUE_SCALE: rad/s2 for a torque of 1"""
AIR_TORQUE_PITCH, AIR_TORQUE_YAW, AIR_TORQUE_ROLL = 130.0, 95.0, 400.0
"""CAR_AIR_CONTROL_TORQUE"""
AIR_DAMPING_PITCH, AIR_DAMPING_YAW, AIR_DAMPING_ROLL = 30.0, 20.0, 50.0
"""CAR_AIR_CONTROL_DAMPING"""
AIR_THROTTLE = 200.0 / 3.0
"""THROTTLE_AIR_ACCEL, uu/s2"""
AUTO_ROLL_ACCELERATION = 100.0
"""CAR_AUTOROLL_FORCE, uu/s2 towards the ground"""
AUTO_ROLL_TORQUE = 80.0
"""CAR_AUTOROLL_TORQUE, rad/s2"""

# Jumps and flips (RLConst.h, Car.cpp) -----------------------------------------------------------------------------------------
JUMP_SPEED = 875.0 / 3.0
"""JUMP_IMMEDIATE_FORCE, uu/s, for jumps and double jumps"""
JUMP_HOLD = 4375.0 / 3.0
"""JUMP_ACCEL, uu/s2 while the button is held"""
JUMP_HOLD_EARLY = 0.62
"""JUMP_PRE_MIN_ACCEL_SCALE: share of that acceleration in the first JUMP_SHORTEST seconds"""
JUMP_SHORTEST, JUMP_LONGEST = 0.025, 0.2
"""JUMP_MIN_TIME, JUMP_MAX_TIME, seconds"""
JUMP_RESET = JUMP_SHORTEST + 1.0 / 40.0
"""JUMP_MIN_TIME + JUMP_RESET_TIME_PAD: seconds after a jump from which the ground allows the next one"""
FLIP_DEADZONE = 0.5
"""Sum of |pitch|, |yaw| and |roll| from which a second jump is a flip (CarConfig.dodgeDeadzone)"""
FLIP_AXIS_DEADZONE = 0.1
"""Deflection below which an axis of the stick counts as centered (Car::_UpdateDoubleJumpOrFlip)"""
FLIP_SPEED = 500.0
"""FLIP_INITIAL_VEL_SCALE, uu/s"""
FLIP_BACKWARD_GAIN, FLIP_SIDE_GAIN = 1.5, 0.9
"""FLIP_BACKWARD_IMPULSE_MAX_SPEED_SCALE - 1, FLIP_SIDE_IMPULSE_MAX_SPEED_SCALE - 1: how much more at the car's top speed"""
FLIP_BACKWARD_SCALE = 16.0 / 15.0
"""FLIP_BACKWARD_IMPULSE_SCALE_X"""
FLIP_DIRECTION_SPEED = 100.0
"""uu/s from which a flip against the motion, not against the nose, is a backward one (Car::_UpdateDoubleJumpOrFlip)"""
FLIP_TORQUE_ROLL, FLIP_TORQUE_PITCH = 260.0, 224.0
"""FLIP_TORQUE_X, FLIP_TORQUE_Y, rad/s2"""
FLIP_PITCH_LOCK = FLIP_SECONDS + 0.3
"""FLIP_TORQUE_TIME + FLIP_PITCHLOCK_EXTRA_TIME: seconds from a flip until the pitch is free again"""
FLIP_FALL_BEGINS, FLIP_FALL_ENDS = 0.15, 0.21
"""FLIP_Z_DAMP_START, FLIP_Z_DAMP_END, seconds: between them vertical speed is damped also while the car rises"""
FLIP_FALL_KEPT = 0.65
"""1 - FLIP_Z_DAMP_120: share of its vertical speed that a flipping car keeps in a tick"""
AUTO_FLIP_SPEED = 200.0
"""CAR_AUTOFLIP_IMPULSE, uu/s"""
AUTO_FLIP_TORQUE = 50.0
"""CAR_AUTOFLIP_TORQUE, rad/s2"""
AUTO_FLIP_SECONDS = 0.4
"""CAR_AUTOFLIP_TIME: seconds for half a turn"""
AUTO_FLIP_ROLL = 2.8
"""CAR_AUTOFLIP_ROLL_THRESH: radians of roll beyond which a car lies on its roof"""
AUTO_FLIP_GROUND = 0.70710678
"""CAR_AUTOFLIP_NORMZ_THRESH: least z of the ground's normal"""

# Boost and speed (RLConst.h, Car::_UpdateBoost) -------------------------------------------------------------------------------
BOOST_SHORTEST = 0.1
"""BOOST_MIN_TIME: least duration of a boost in seconds"""
BOOST_ACCELERATION_GROUND, BOOST_ACCELERATION_AIR = 2975.0 / 3.0, 3175.0 / 3.0
"""BOOST_ACCEL_GROUND, BOOST_ACCEL_AIR, uu/s2"""
SUPERSONIC_KEPT_SPEED = 2100.0
"""SUPERSONIC_MAINTAIN_MIN_SPEED: uu/s above which a car stays supersonic"""
SUPERSONIC_KEPT_SECONDS = 1.0
"""SUPERSONIC_MAINTAIN_MAX_TIME: for at most this long"""

# Hits and bumps (RLConst.h, Arena.cpp) ----------------------------------------------------------------------------------------
EXTRA_HIT = ((500.0, 0.65), (2300.0, 0.55), (4600.0, 0.30))
"""BALL_CAR_EXTRA_IMPULSE_FACTOR: velocity that a hit adds to the ball, as a share of the speed between car and ball (uu/s)"""
EXTRA_HIT_MAX_SPEED = 4600.0
"""BALL_CAR_EXTRA_IMPULSE_MAXDELTAVEL_UU: uu/s up to which that speed counts"""
EXTRA_HIT_HEIGHT = 0.35
"""BALL_CAR_EXTRA_IMPULSE_Z_SCALE: scale of the z component of its direction, which goes from car to ball"""
EXTRA_HIT_FORWARD = 0.65
"""BALL_CAR_EXTRA_IMPULSE_FORWARD_SCALE: scale of the component of its direction along the car's nose"""
BUMPER_X = 64.5
"""BUMP_MIN_FORWARD_DIST: uu from a car's origin forward beyond which its body bumps others"""
BUMP_COOLDOWN = 0.25
"""BUMP_COOLDOWN_TIME: seconds until the same car can be bumped again"""
BUMP_GROUND = ((0.0, 5.0 / 6.0), (1400.0, 1100.0), (2200.0, 1530.0))
"""BUMP_VEL_AMOUNT_GROUND: uu/s that a bump adds to a car on the ground, by the speed of the other towards it (uu/s)"""
BUMP_AIR = ((0.0, 5.0 / 6.0), (1400.0, 1390.0), (2200.0, 1945.0))
"""BUMP_VEL_AMOUNT_AIR: the same in the air"""
BUMP_UP = ((0.0, 1.0 / 3.0), (1400.0, 278.0), (2200.0, 417.0))
"""BUMP_UPWARD_VEL_AMOUNT: uu/s that a bump adds upwards"""
RESPAWN_Z = 36.0
"""CAR_RESPAWN_Z, uu"""

# Boost pads (RLConst.h: BoostPads) --------------------------------------------------------------------------------------------
PAD_RADIUS_SMALL, PAD_RADIUS_BIG = 144.0, 208.0
"""CYL_RAD_SMALL, CYL_RAD_BIG: a car takes a pad when its origin is within so many uu of it along x and y"""
PAD_HEIGHT = 95.0
"""CYL_HEIGHT: and within so many uu of it along z"""
PAD_BOX_SMALL, PAD_BOX_BIG = 120.0, 160.0
"""BOX_RAD_SMALL, BOX_RAD_BIG, uu: half sizes of the box; the car that took a pad holds it while its body overlaps the box"""
PAD_BOX_HEIGHT = 64.0
"""BOX_HEIGHT, uu: height of that box above the pad"""

# Goals and shots (RLConst.h, GameEventTracker.cpp) ----------------------------------------------------------------------------
GOAL_LINE_Y = GOAL_Y - BALL_RADIUS
"""SOCCAR_GOAL_SCORE_BASE_THRESHOLD_Y, 5124.25"""
SHOT_HALF_WIDTH, SHOT_HEIGHT = GOAL_HALF_WIDTH + 9.125, GOAL_HEIGHT + 9.125
"""uu within which a ball that crosses the goal line is on course: the goal, widened by a tenth of the ball's radius"""
SHOT_SPEED = 1750.0
"""shotMinSpeed, uu/s"""
SHOT_SECONDS = 2.0
"""shotMinScoreTime: a shot reaches the goal within so many seconds"""
SHOT_DELAY_TICKS = 36
"""shotTouchMinDelay, 0.3 s: time from the touch until a shot counts"""
SHOT_AGAIN_SECONDS = 1.0
"""shotEventCooldown: time until the next shot can count"""
ASSIST_TICKS = 240
"""passMaxTouchTime, 2 s: longest time between the touches of passer and scorer"""
