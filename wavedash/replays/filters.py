"""Which frames of a replay are play that can be trusted, and why the others are not."""
from __future__ import annotations

import numpy as np
import torch

from wavedash.replays.replay import COUNTDOWN, GOAL, NO_PLAY, PLAY, Array, Replay
from wavedash.rocket.constants import BALL_MAX_SPIN, BOOST_MAX, CAR_MAX_SPIN
from wavedash.rocket.possible import SLACK, rules
from wavedash.rocket.recording.quaternions import matrix_of
from wavedash.rocket.state import GameState

LONGEST_GAP = 0.2
"""Seconds between frames beyond which the game is not known in between. Frames come every 0.033 to 0.05 s"""
STILL = 1.0
"""uu/s below which nothing moves"""
STANDING = 50.0
"""uu/s below which cars stand at a kick-off: they settle on their wheels"""
REASONS = (
    "time stands still", "countdown", "goal and its replay", "not in play", "kick-off pause", "too few players", "no ball",
    "demolished car", "ball out of bounds", "car out of bounds", "impossible speed", "impossible spin", "no rotation",
    "duplicate", "kept",
)
"""In the order in which frames are sorted out: a frame is counted under the first that applies"""
KEPT = REASONS.index("kept")


def sort_out(replay: Replay) -> Array:
    """[F]: index into REASONS for every frame."""
    frames = replay.frames
    cars, ball = replay.cars, replay.ball
    state = bodies_of(replay, np.arange(frames))
    broken = {rule.field: rule.broken.reshape(frames, -1).any(-1).numpy() for rule in rules(state)}
    spin = np.linalg.norm(cars["angular_velocity"], axis=-1)
    still = (np.linalg.norm(cars["velocity"], axis=-1) < STILL).all(-1) & (np.linalg.norm(ball["velocity"], axis=-1) < STILL)
    full = (replay.car_known & (replay.team == 0)).sum(-1), (replay.car_known & (replay.team == 1)).sum(-1)
    same = np.zeros(frames, bool)
    same[1:] = np.all([(body[name][1:] == body[name][:-1]).reshape(frames - 1, -1).all(-1)
                       for body in (cars, ball) for name in ("position", "velocity", "quaternion")], axis=0)
    backwards = np.zeros(frames, bool)
    backwards[1:] = replay.time[1:] <= np.maximum.accumulate(replay.time)[:-1]
    found = {
        "time stands still": backwards | ~np.isfinite(replay.time),
        "countdown": replay.phase == COUNTDOWN, "goal and its replay": replay.phase == GOAL,
        "not in play": replay.phase == NO_PLAY, "kick-off pause": still & (replay.phase == PLAY),
        "too few players": (full[0] != replay.size) | (full[1] != replay.size), "no ball": ~replay.ball_known,
        "demolished car": replay.demolished.any(-1),
        "ball out of bounds": broken["ball.position"], "car out of bounds": broken["cars.position"],
        "impossible speed": broken["ball.velocity"] | broken["cars.velocity"],
        "impossible spin": ~((spin <= CAR_MAX_SPIN * SLACK).all(-1)
                             & (np.linalg.norm(ball["angular_velocity"], axis=-1) <= BALL_MAX_SPIN * SLACK)),
        "no rotation": broken["cars.rotation"] | broken["ball.rotation"], "duplicate": same,
    }
    reason = np.full(frames, KEPT)
    for index in range(KEPT - 1, -1, -1):  # the first reason is written last
        reason[found[REASONS[index]]] = index
    _keep_kickoffs(replay, found, reason)
    return reason


def _keep_kickoffs(replay: Replay, found: dict[str, Array], reason: Array) -> None:
    """Keeps the last frame of each countdown before play: the state of the kick-off, with the controls that are held when it
    begins. All later frames have cars that are driving already, and who learned from these alone stands still at a kick-off."""
    speeds = [np.linalg.norm(body["velocity"], axis=-1) for body in (replay.cars, replay.ball)]
    ready = found["countdown"] & (speeds[0] < STANDING).all(-1) & (speeds[1] < STANDING)
    for name, applies in found.items():
        if name not in ("countdown", "duplicate"):
            ready &= ~applies
    reason[:-1][ready[:-1] & (reason[1:] == KEPT)] = KEPT


def segments(replay: Replay, reason: Array) -> tuple[list[Array], int]:
    """Runs of kept frames of the same players without a gap in time, as indices, and how many gaps there were within play. A
    frame that is the same as the one before leaves no gap."""
    rows = np.flatnonzero(reason == KEPT)
    if not len(rows):
        return [], 0
    lost = reason == REASONS.index("duplicate")
    passed = np.concatenate([[0], np.cumsum(~lost & (reason != KEPT))])
    other = passed[rows[1:]] - passed[rows[:-1] + 1] > 0
    late = np.diff(replay.time[rows]) > LONGEST_GAP
    exchanged = (replay.car_known[rows[1:]] != replay.car_known[rows[:-1]]).any(-1)
    cuts = np.flatnonzero(other | late | exchanged) + 1
    return np.split(rows, cuts), int((late & ~other).sum())


def bodies_of(replay: Replay, rows: Array) -> GameState:
    """A state of these frames with bodies, boost, pads, teams: what the replay says without any reconstruction."""
    seats = len(replay.team)
    state = GameState.empty(len(rows), seats)
    for body, source in ((state.ball, replay.ball), (state.cars, replay.cars)):
        for name in ("position", "velocity", "angular_velocity"):
            getattr(body, name).copy_(torch.from_numpy(source[name][rows]))
        quaternion = source["quaternion"][rows]
        usable = np.linalg.norm(quaternion, axis=-1, keepdims=True) > 0.5
        matrix = matrix_of(np.where(usable, quaternion, [0.0, 0.0, 0.0, 1.0]))
        body.rotation.copy_(torch.from_numpy(np.where(usable[..., None], matrix, 0.0)))
    state.cars.boost.copy_(torch.from_numpy(replay.boost[rows] * (BOOST_MAX / 255.0)).clamp(0, BOOST_MAX))
    state.cars.team.copy_(torch.from_numpy(replay.team))
    state.cars.hitbox.copy_(torch.from_numpy(replay.hitbox))
    state.cars.present.copy_(torch.from_numpy(replay.car_known[rows]))
    state.cars.is_demoed.copy_(torch.from_numpy(replay.demolished[rows]))
    state.pads.timer.copy_(torch.from_numpy(replay.pad_timer[rows]))
    state.ball.last_touch.fill_(-1)
    for name in ("contact_car", "ball_hit_tick", "ball_hit_impulse_tick"):
        getattr(state.cars, name).fill_(-1)
    state.pads.locked_car.fill_(-1)
    return state
