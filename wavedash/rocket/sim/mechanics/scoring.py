"""Scoring: goals, assists, shots and saves.

A shot is a ball faster than 1,750 uu/s that is on course for the goal 0.3 s after the shooter touched it; a save is a touch
after which a shot is no longer on course.
"""
from __future__ import annotations

import warp as wp

from wavedash.rocket.constants import GOAL_Y, GRAVITY
from wavedash.rocket.sim.constants import (
    ASSIST_TICKS,
    DT,
    GOAL_LINE_Y,
    SHOT_AGAIN_SECONDS,
    SHOT_DELAY_TICKS,
    SHOT_HALF_WIDTH,
    SHOT_HEIGHT,
    SHOT_SECONDS,
    SHOT_SPEED,
)
from wavedash.rocket.sim.kernels.records import (
    HIT_TICK_WORD,
    TEAM_WORD,
    BallRecord,
    GameRecord,
    car_at,
    event_at,
    is_present,
    load_event,
    store_event,
)
from wavedash.rocket.sim.kernels.struct_io import loader, storer

wp.set_module_options({"enable_backward": False})

@wp.struct
class ScoringMemory:
    """What an arena remembers about goals and shots from the previous tick."""

    in_goal: wp.int32
    """1: the ball was in a goal"""
    shot_at: wp.int32
    """1 + team whose goal the ball is on course for after a shot, 0: no shot"""
    shot_wait: wp.float32
    """Seconds until the next shot can count"""


load_scoring, store_scoring = loader(ScoringMemory), storer(ScoringMemory)


@wp.func
def goal_on_course(position: wp.vec3, velocity: wp.vec3) -> int:
    """The team whose goal the ball is on course for, -1: none."""
    if wp.abs(velocity[1]) < 1.0e-7:
        return -1
    side = wp.sign(velocity[1])
    time = wp.abs(position[1] - GOAL_LINE_Y * side) / wp.abs(velocity[1])
    if time > SHOT_SECONDS:
        return -1
    if position[2] + velocity[2] * time - 0.5 * GRAVITY * time * time > SHOT_HEIGHT:
        return -1
    if wp.abs(position[0] + velocity[0] * time) > SHOT_HALF_WIDTH:
        return -1
    return wp.where(side > 0.0, 1, 0)


@wp.func
def last_toucher(words: wp.array2d(dtype=wp.int32), e: int, seats: int, team: int, since: int, excluded: int) -> int:
    """Seat of the team's car that touched the ball last, in tick `since` or later; -1: none. The seat `excluded` does not
    count."""
    seat = int(-1)
    latest = wp.max(since, 0) - 1
    for c in range(seats):
        tick = words[e, car_at(c) + HIT_TICK_WORD]
        if tick > latest and words[e, car_at(c) + TEAM_WORD] == team and c != excluded:
            if is_present(words, e, c):
                latest = tick
                seat = c
    return seat


@wp.func
def update_score(
    memory: ScoringMemory, game: GameRecord, ball: BallRecord, words: wp.array2d(dtype=wp.int32), e: int, seats: int
):
    """Decides goals, shots and saves at the end of a tick, before the clock advances: (memory, game)."""
    scored = wp.abs(ball.position[1]) > GOAL_Y
    if scored and memory.in_goal == 0:
        team = wp.where(ball.position[1] > 0.0, 0, 1)
        game.goal = team
        game.score[team] = game.score[team] + 1
        credit_goal(words, e, seats, team)
    elif memory.shot_at == 0:
        if memory.shot_wait > 0.0:
            memory.shot_wait = wp.max(memory.shot_wait - DT, 0.0)
        elif wp.length_sq(ball.velocity) >= SHOT_SPEED * SHOT_SPEED:
            memory = detect_shot(memory, ball, words, e, seats, game.tick + 1)
    elif goal_on_course(ball.position, ball.velocity) < 0:
        saver = last_toucher(words, e, seats, memory.shot_at - 1, game.tick, -1)
        if saver >= 0:
            event = load_event(words, e, event_at(seats, saver))
            event.save = True
            store_event(words, e, event_at(seats, saver), event)
        memory.shot_at = 0
    memory.in_goal = wp.where(scored, 1, 0)
    return memory, game


@wp.func
def credit_goal(words: wp.array2d(dtype=wp.int32), e: int, seats: int, team: int):
    """Credits a goal to the car of the team that touched the ball last, and the assist to the car that passed to it."""
    scorer = last_toucher(words, e, seats, team, 0, -1)
    if scorer >= 0:
        event = load_event(words, e, event_at(seats, scorer))
        event.goal = True
        store_event(words, e, event_at(seats, scorer), event)
        passer = last_toucher(words, e, seats, team, words[e, car_at(scorer) + HIT_TICK_WORD] - ASSIST_TICKS, scorer)
        if passer >= 0:
            event = load_event(words, e, event_at(seats, passer))
            event.assist = True
            store_event(words, e, event_at(seats, passer), event)


@wp.func
def detect_shot(
    memory: ScoringMemory, ball: BallRecord, words: wp.array2d(dtype=wp.int32), e: int, seats: int, now: int
) -> ScoringMemory:
    """Decides whether a fast ball is a shot, and credits it."""
    at = goal_on_course(ball.position, ball.velocity)
    if at >= 0:
        shooter = last_toucher(words, e, seats, 1 - at, now - SHOT_DELAY_TICKS - 1, -1)
        if shooter >= 0:
            if now - words[e, car_at(shooter) + HIT_TICK_WORD] >= SHOT_DELAY_TICKS:
                memory.shot_at = 1 + at
                memory.shot_wait = SHOT_AGAIN_SECONDS
                event = load_event(words, e, event_at(seats, shooter))
                event.shot = True
                store_event(words, e, event_at(seats, shooter), event)
    return memory
