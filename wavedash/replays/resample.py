"""A replay at the rate of decisions: frames come 20 to 30 times a second at irregular times, decisions every `ticks` ticks."""
from __future__ import annotations

import numpy as np

from wavedash.replays.replay import Array, Replay
from wavedash.rocket.constants import TICK_RATE


def resample(replay: Replay, rows: Array, ticks: int) -> Replay:
    """The frames `rows`, a segment of play with the same players, at one moment every `ticks` ticks, with the players of the
    segment alone. Positions follow the cubic through positions and velocities; velocities and rotations are interpolated.
    Sticks and `chosen_flags` are those in the middle between this moment and the next, since they stand for what was chosen
    here. `flags` are those of the last frame so far: a state that shows a jump before it was chosen would tell the answer."""
    seats = np.flatnonzero(replay.car_known[rows[0]])
    time, step = replay.time[rows], ticks / TICK_RATE
    count = int((time[-1] - time[0]) / step) + 1
    wanted = time[0] + step * np.arange(count)
    after = np.clip(np.searchsorted(time, wanted, side="right"), 1, len(rows) - 1)
    first, second, span = rows[after - 1], rows[after], time[after] - time[after - 1]
    share = np.clip((wanted - time[after - 1]) / span, 0.0, 1.0)
    now, held = (rows[np.searchsorted(time, at, side="right") - 1] for at in (wanted, wanted + step / 2))

    moments = Replay.blank(count, replay.team[seats].tolist())
    moments.time, moments.phase = wanted, replay.phase[first]
    moments.hitbox, moments.names = replay.hitbox[seats], [replay.names[seat] for seat in seats]
    moments.ball_known[:], moments.car_known[:] = True, True
    moments.ball = _between(replay.ball, first, second, share, span)
    cars = {name: values[:, seats] for name, values in replay.cars.items()}
    moments.cars = _between(cars, first, second, share[:, None], span[:, None])
    moments.boost = replay.boost[first][:, seats]
    moments.flags, moments.chosen_flags = ({name: values[frames][:, seats] for name, values in replay.flags.items()}
                                           for frames in (now, held))
    moments.throttle, moments.steer = replay.throttle[held][:, seats], replay.steer[held][:, seats]
    moments.pad_timer = np.maximum(replay.pad_timer[first] - (wanted - time[after - 1])[:, None], 0.0)
    moments.identity = replay.identity
    return moments


def _between(body: dict[str, Array], first: Array, second: Array, share: Array, span: Array) -> dict[str, Array]:
    """The bodies at a `share` of the time from frame `first` to frame `second`, which are `span` seconds apart."""
    s, h = share[..., None], span[..., None]
    result = {name: (1 - s) * body[name][first] + s * body[name][second] for name in ("velocity", "angular_velocity")}
    p0, p1, v0, v1 = (body[name][frame] for name in ("position", "velocity") for frame in (first, second))
    result["position"] = ((1 + 2 * s) * (1 - s) ** 2 * p0 + s * s * (3 - 2 * s) * p1
                          + h * s * (1 - s) ** 2 * v0 + h * s * s * (s - 1) * v1)
    # A frame time that jitters makes the cubic overshoot: the place stays within what the two frames span.
    low, high = np.minimum(p0, p1), np.maximum(p0, p1)
    result["position"] = np.clip(result["position"], low, high)
    q0, q1 = body["quaternion"][first], body["quaternion"][second]
    q1 = np.where((q0 * q1).sum(-1, keepdims=True) < 0, -q1, q1)  # the same rotation, the short way
    mixed = (1 - s) * q0 + s * q1
    result["quaternion"] = mixed / np.maximum(np.linalg.norm(mixed, axis=-1, keepdims=True), 1e-6)
    return result
