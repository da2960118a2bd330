"""The ball at the end of a tick."""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import BALL_MAX_SPEED, BALL_MAX_SPIN, BALL_RADIUS
from wavedash.rocket.sim.collision.arena_solver import solve_ball_on_plane
from wavedash.rocket.sim.collision.ball_arena import planes_at_ball
from wavedash.rocket.sim.collision.bodies import Body, ball_body, clamp_length, integrated, load_body
from wavedash.rocket.sim.constants import BALL_FRICTION, BALL_RESTITUTION
from wavedash.rocket.sim.kernels.memory import BALL_ON_PLANE, Arenas
from wavedash.rocket.sim.kernels.records import BallRecord

wp.set_module_options({"enable_backward": False})


@wp.func
def solved_ball(arenas: Arenas, e: int, ball: BallRecord, collision_mask: int) -> Body:
    """The body of the ball after all contacts of the tick are solved."""
    body = ball_body(ball)
    if collision_mask == BALL_ON_PLANE:
        _, normal, height = planes_at_ball(body.position)
        return solve_ball_on_plane(body, normal, height, BALL_RADIUS, BALL_FRICTION, BALL_RESTITUTION)
    if collision_mask != 0:
        return load_body(arenas.bodies, e, 0)
    return body


@wp.func
def finish_ball(ball: BallRecord, body: Body) -> BallRecord:
    """The ball at the end of the tick: it moves, and its speed is capped."""
    body = integrated(body)
    ball.position = body.position
    ball.rotation = body.rotation
    ball.velocity = clamp_length(body.velocity + body.late_velocity, BALL_MAX_SPEED)
    ball.angular_velocity = clamp_length(body.spin, BALL_MAX_SPIN)
    return ball
