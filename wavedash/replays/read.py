"""Reads `.replay` files with subtr-actor.

What its frames mean, as measured on recorded games: positions and linear velocities are in uu and uu/s, in the axes of the game
state; angular velocities are in 1/100 rad/s; the quaternion of a car turns its axes forward, right, up into the field's; sticks
are bytes around 128; numbers of game states differ from file to file.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wavedash.errors import UserError
from wavedash.replays.modes import other_mode
from wavedash.replays.replay import COUNTDOWN, FLAGS, GOAL, NEUTRAL, NO_PLAY, PLAY, UNKNOWN, Array, NotAReplayError, Replay
from wavedash.rocket.constants import BIG_PAD_SECONDS, HITBOXES, PADS, RESPAWN_SECONDS, SMALL_PAD_SECONDS

SPIN_UNIT = 0.01
"""rad/s per unit of a replay's angular velocity"""
MOST_BYTES = 64 << 20
"""Files that are larger are no replays: a game of half an hour has about 8 MB"""
KEYS = {"position": "location", "quaternion": "rotation", "velocity": "linear_velocity", "angular_velocity": "angular_velocity"}
NAMES = {name: "powerslide_active" if name == "handbrake" else name for name in FLAGS}


def check_installed() -> None:
    """Raises UserError where subtr-actor is missing."""
    try:
        import subtr_actor  # noqa: F401
    except ImportError as error:
        raise UserError('reading replays needs subtr-actor: pip install "wavedash[replays]"') from error


def read_replay(path: Path) -> Replay:
    """The game in a file. NotAReplayError: it is damaged, empty, or something else."""
    size = path.stat().st_size
    if size == 0:
        raise NotAReplayError("the file is empty")
    if size > MOST_BYTES:
        raise NotAReplayError(f"{size >> 20} MB is larger than any replay")
    if mode := other_mode(path.read_bytes()):
        raise NotAReplayError(f"another mode: {mode}")
    import subtr_actor
    try:
        data = subtr_actor.get_replay_frames_data(str(path))
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the parser is no Exception
        lines = str(error).splitlines() or [type(error).__name__]
        raise NotAReplayError(f"cannot be parsed: {lines[0][:200]}") from error
    return replay_of(data)


def replay_of(data: dict[str, Any]) -> Replay:
    """The game in what subtr-actor returns of a file."""
    moments, meta = data["frame_data"]["metadata_frames"], data["meta"]
    tracks = {repr(key): track["frames"] for key, track in data["frame_data"]["players"]}
    players = [(team, info) for team, side in enumerate(("team_zero", "team_one")) for info in meta[side]]
    players = [(team, info) for team, info in players if repr(info["remote_id"]) in tracks]
    if not moments or not players:
        raise NotAReplayError("it holds no frames" if not moments else "it holds no players")
    kind = str((meta.get("game_type") or {}).get("match_type_class") or "")
    if len(data["boost_pads"]) != len(PADS):
        raise NotAReplayError(f"another arena: {len(data['boost_pads'])} boost pads, {kind or 'unknown mode'}")
    replay = Replay.blank(len(moments), [team for team, _ in players])
    replay.time = np.array([moment["time"] for moment in moments], np.float64)
    replay.goals = [(goal["frame"], 1 - int(goal["scoring_team_is_team_0"])) for goal in data["goal_events"]]
    replay.phase = _phases(moments, [frame for frame, _ in replay.goals])
    _read_bodies(replay.ball, replay.ball_known, data["frame_data"]["ball_data"]["frames"])
    families = [hitbox.name for hitbox in HITBOXES]
    for seat, (_, info) in enumerate(players):
        frames = tracks[repr(info["remote_id"])]
        replay.names[seat] = str(info.get("name"))
        family = str(info.get("car_hitbox_family")).lower()
        replay.hitbox[seat] = families.index(family) if family in families else 0
        _read_bodies({name: values[:, seat] for name, values in replay.cars.items()}, replay.car_known[:, seat], frames)
        _read_inputs(replay, seat, frames)
    _rest_sticks(replay)
    keys = [repr(info["remote_id"]) for _, info in players]
    for event in data["demolish_infos"]:
        if repr(event["victim"]) in keys:
            _demolish(replay, keys.index(repr(event["victim"])), int(event["frame"]))
    _read_pads(replay, data)
    replay.identity = identity_of({str(name): value for name, value in meta.get("all_headers", [])})
    return replay


def identity_of(headers: dict[str, Any]) -> str:
    """Returns what files of the same game have in common. An Id names the file; what names the game, whoever saved it, is in
    files since 2024. Empty: unknown."""
    return next((str(headers[name]) for name in ("MatchGUID", "MatchGuid", "Id") if headers.get(name)), "")


def _phases(moments: list[dict[str, Any]], goals: list[int]) -> Array:
    """[F]. The numbers of game states are indices into a table of the file: the countdown's is the one with seconds left,
    play's is the commonest of the others. Files of the game's first year name no states: all have one number, and there is a
    countdown where seconds are left, and before the first one."""
    state = np.array([moment["replicated_game_state_name"] for moment in moments])
    left = np.array([moment["replicated_game_state_time_remaining"] for moment in moments])
    countdown = np.isin(state, np.unique(state[left > 0]))
    if (state == state[0]).all() and (left > 0).any():
        countdown = left > 0
        countdown[: countdown.argmax()] = True
    others, counts = np.unique(state[~countdown], return_counts=True)
    phase = np.full(len(moments), NO_PLAY)
    if len(others):
        phase[~countdown & (state == others[counts.argmax()])] = PLAY
    phase[countdown] = COUNTDOWN
    for frame in goals:  # until the next countdown, whatever the state is called
        after = np.flatnonzero(countdown[frame:])
        phase[frame : frame + int(after[0]) if len(after) else len(phase)] = GOAL
    return phase


def _read_bodies(into: dict[str, Array], known: Array, frames: list[Any]) -> None:
    """Fills arrays [F, ...] with the bodies of the ball's or of a player's frames."""
    bodies = [frame["Data"]["rigid_body"] if isinstance(frame, dict) else None for frame in frames]
    known[:] = [body is not None for body in bodies]
    rows = np.flatnonzero(known)
    if not len(rows):
        return
    for name, key in KEYS.items():
        axes = "xyzw" if name == "quaternion" else "xyz"
        none = dict.fromkeys(axes, 0.0)  # a body that sleeps has no velocities
        into[name][rows] = [[vector[axis] for axis in axes] for vector in ((bodies[row][key] or none) for row in rows)]
    into["angular_velocity"] *= SPIN_UNIT


def _read_inputs(replay: Replay, seat: int, frames: list[Any]) -> None:
    for row in np.flatnonzero(replay.car_known[:, seat]):
        data = frames[row]["Data"]
        replay.boost[row, seat] = data["boost_amount"]
        for name, key in NAMES.items():
            replay.flags[name][row, seat] = data[key]
        for name in ("throttle", "steer"):
            value = data["input"].get(name)
            getattr(replay, name)[row, seat] = UNKNOWN if value is None else value


def _rest_sticks(replay: Replay) -> None:
    """A file carries a stick from its first motion on: until then it rests. (In recorded games cars whose steering is not yet
    known do not turn, 2,280 frames on the ground, and those whose throttle is not neither speed up nor slow down.)"""
    for stick in (replay.throttle, replay.steer):
        if (stick != UNKNOWN).any():
            stick[(stick == UNKNOWN) & replay.car_known] = NEUTRAL


def _demolish(replay: Replay, seat: int, frame: int) -> None:
    """The car is gone from this frame on until its body, which stays where it was, appears elsewhere."""
    end = int(np.searchsorted(replay.time, replay.time[frame] + RESPAWN_SECONDS + 1.0))
    later = replay.time[frame:end] > replay.time[frame] + RESPAWN_SECONDS - 1.0
    place = replay.cars["position"][frame:end, seat]
    resting = place[np.flatnonzero(later)[0]] if later.any() else place[-1]
    moved = later & (np.linalg.norm(place - resting, axis=-1) > 1.0)
    replay.demolished[frame : frame + int(moved.argmax()) if moved.any() else end, seat] = True


def _read_pads(replay: Replay, data: dict[str, Any]) -> None:
    """Timers of pads: they run from the frame in which a pad was taken until it is available again or the next kick-off."""
    spots = np.array([[pad.x, pad.y] for pad in PADS])
    index = {}
    for pad in data["boost_pads"]:
        away = np.linalg.norm(spots - [pad["position"]["x"], pad["position"]["y"]], axis=-1)
        if away.min() < 100:
            index[pad["pad_id"]] = int(away.argmin())
    for event in data["boost_pad_events"]:
        kind = event["kind"]
        place = index.get(event["pad_id"])
        taken = "PickedUp" in kind if isinstance(kind, dict) else kind == "PickedUp"
        if place is None or not taken:
            continue
        seconds = BIG_PAD_SECONDS if PADS[place].big else SMALL_PAD_SECONDS
        frame = int(event["frame"])
        end = int(np.searchsorted(replay.time, replay.time[frame] + seconds))
        replay.pad_timer[frame:end, place] = seconds - (replay.time[frame:end] - replay.time[frame])
    replay.pad_timer[replay.phase == COUNTDOWN] = 0.0
    for frame in np.flatnonzero((replay.phase[1:] == PLAY) & (replay.phase[:-1] == COUNTDOWN)) + 1:  # all are back by then
        running = replay.pad_timer[frame - 1 : frame + 1].min(0) == 0
        for place in np.flatnonzero(running & (replay.pad_timer[frame] > 0)):
            stop = frame + int((replay.pad_timer[frame:, place] == 0).argmax())
            replay.pad_timer[frame:stop, place] = 0.0
