"""Goals, shots and saves.

A shot is a ball faster than 1,750 uu/s that is on course for the goal 0.3 s after the shooter touched it; a save is a touch after which
a shot is no longer on course.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import GOAL_HALF_WIDTH, GOAL_HEIGHT
from wavedash.rocket.sim.bodies import DT
from wavedash.rocket.sim.records import BallRecord, Car, EventRecord, GameRecord, loader, storer

wp.set_module_options({"enable_backward": False})

IN_GOAL = wp.constant(5124.25 + 91.25)
GOAL_LINE = wp.constant(5124.25)
HALF_WIDTH = wp.constant(GOAL_HALF_WIDTH + 9.125)
HEIGHT = wp.constant(GOAL_HEIGHT + 9.125)
SHOT_SPEED = wp.constant(1750.0)
SHOT_SECONDS = wp.constant(2.0)
"""To the goal at most"""
SHOT_DELAY = wp.constant(36)
"""Ticks after the touch"""
SHOT_AGAIN = wp.constant(1.0)
"""Seconds until another shot counts"""
PASS_TICKS = wp.constant(240)


@wp.struct
class Match:
    """What an arena remembers from the tick before."""

    in_goal: wp.int32
    shot_at: wp.int32
    """1 + team whose goal the ball is on course for after a shot, 0: no shot"""
    shot_wait: wp.float32


load_match, store_match = loader(Match), storer(Match)


@wp.func
def course(position: wp.vec3, velocity: wp.vec3) -> int:
    """Team in whose goal the ball is about to be, -1: none."""
    if wp.abs(velocity[1]) < 1.0e-7:
        return -1
    side = wp.sign(velocity[1])
    time = wp.abs(position[1] - GOAL_LINE * side) / wp.abs(velocity[1])
    if time > SHOT_SECONDS:
        return -1
    if position[2] + velocity[2] * time - 325.0 * time * time > HEIGHT:
        return -1
    if wp.abs(position[0] + velocity[0] * time) > HALF_WIDTH:
        return -1
    return wp.where(side > 0.0, 1, 0)


@wp.func
def last_toucher(cars: wp.array(dtype=Car), seats: int, team: int, since: int, but: int) -> int:
    """Seat of the team's car that touched the ball last, not before a tick; -1: none."""
    who = int(-1)
    best = since - 1
    for c in range(seats):
        if cars[c].present and cars[c].team == team and c != but:
            if cars[c].ball_hit_tick >= 0 and cars[c].ball_hit_tick > best:
                best = cars[c].ball_hit_tick
                who = c
    return who


@wp.func
def watch_ball(
    match: Match, game: GameRecord, cars: wp.array(dtype=Car), events: wp.array(dtype=EventRecord), seats: int, ball: BallRecord
):
    """At the end of a tick, before its number goes up: whether the ball is in a goal, shot, or saved."""
    scored = wp.abs(ball.position[1]) > IN_GOAL
    if scored and match.in_goal == 0:
        team = wp.where(ball.position[1] > 0.0, 0, 1)
        game.goal = team
        game.score[team] = game.score[team] + 1
        scorer = last_toucher(cars, seats, team, 0, -1)
        if scorer >= 0:
            events[scorer].goal = True
            passer = last_toucher(cars, seats, team, wp.max(0, cars[scorer].ball_hit_tick - PASS_TICKS), scorer)
            if passer >= 0:
                events[passer].assist = True
    else:
        now = game.tick + 1
        if match.shot_at == 0:
            if match.shot_wait > 0.0:
                match.shot_wait = wp.max(match.shot_wait - DT, 0.0)
            elif wp.length_sq(ball.velocity) >= SHOT_SPEED * SHOT_SPEED:
                at = course(ball.position, ball.velocity)
                if at >= 0:
                    shooter = last_toucher(cars, seats, 1 - at, now - SHOT_DELAY - 1, -1)
                    if shooter >= 0 and now - cars[shooter].ball_hit_tick >= SHOT_DELAY:
                        match.shot_at = 1 + at
                        match.shot_wait = SHOT_AGAIN
                        events[shooter].shot = True
        elif course(ball.position, ball.velocity) < 0:
            saver = last_toucher(cars, seats, match.shot_at - 1, now - 1, -1)
            if saver >= 0:
                events[saver].save = True
            match.shot_at = 0
    match.in_goal = wp.where(scored, 1, 0)
    return match, game
