"""Packets: the game state of one arena as RLBot's `GamePacket`, and the field as its `FieldInfo`.

Units and axes are the same on both sides. What differs: rotations are Euler angles; boost pads are ordered by y and then x, and
their timers count up from the pick-up; a car has one air state instead of flags; -1 stands for timers that do not run. A packet
remembers more than a state (latest touches of the whole match, scores of players, the ticks after a double jump), so packets
are made by a writer that follows the game.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from wavedash.rlbot.package import flat
from wavedash.rlbot.rotation import to_euler
from wavedash.rocket.constants import (
    BACK_WALL_Y,
    BALL_RADIUS,
    BIG_PAD_SECONDS,
    FLIP_WINDOW,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    GRAVITY,
    HITBOXES,
    PADS,
    SMALL_PAD_SECONDS,
    TICK_RATE,
)
from wavedash.rocket.state import GameState

PAD_ORDER = tuple(sorted(range(len(PADS)), key=lambda pad: (PADS[pad].y, PADS[pad].x)))
"""Our pads in the order of field info and packets: by y, then by x"""
DOUBLE_JUMP_TICKS = 13
"""Ticks for which a double jump is the air state"""
NO_TIME = -1.0
"""A timer that does not run"""


@dataclass(frozen=True)
class PacketPlayer:
    """What a packet says of a player besides the state of its car."""

    name: str
    player_id: int
    is_bot: bool = True


@dataclass
class Clock:
    """The part of a packet that the match knows and the arena does not."""

    seconds: float = 0.0
    """Seconds since the first packet of the match; it also runs in countdowns"""
    remaining: float = 300.0
    """What the clock of the game shows; it counts up in overtime"""
    overtime: bool = False
    unlimited: bool = False
    phase: Any = None
    """A `MatchPhase`; None: Active"""
    frame: int = 0
    score: tuple[int, int] = (0, 0)


@dataclass
class _Memory:
    """What a writer remembers of one car."""

    double_jump_frame: int | None = None
    hit_tick: int = -1
    touch: Any = None
    scores: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("goals", "assists", "saves", "shots", "demolitions"), 0))


def field_info() -> Any:
    """RLBot's `FieldInfo` of the standard field."""
    fb = flat()
    pads = [fb.BoostPad(fb.Vector3(PADS[i].x, PADS[i].y, PADS[i].z), PADS[i].big) for i in PAD_ORDER]
    goals = [fb.GoalInfo(team, fb.Vector3(0.0, side * BACK_WALL_Y, GOAL_HEIGHT / 2), fb.Vector3(0.0, -side, 0.0),
                         2 * GOAL_HALF_WIDTH, GOAL_HEIGHT) for team, side in ((0, -1.0), (1, 1.0))]
    return fb.FieldInfo(pads, goals)


def ball_physics(state: GameState, arena: int) -> Any:
    """RLBot's `Physics` of the ball."""
    return _physics(*(getattr(state.ball, name)[arena].tolist() for name in ("position", "rotation", "velocity",
                                                                             "angular_velocity")))


def _physics(position: list[float], rotation: list[list[float]], velocity: list[float], spin: list[float]) -> Any:
    fb = flat()
    return fb.Physics(fb.Vector3(*position), fb.Rotator(*to_euler(rotation)), fb.Vector3(*velocity), fb.Vector3(*spin))


class PacketWriter:
    """Makes a packet of every state of one arena. It must be given all states of the match in their order, as it counts the
    scores of players and keeps their latest touches."""

    def __init__(self, players: Sequence[PacketPlayer], arena: int = 0) -> None:
        self._flat = flat()
        self._players, self._arena = players, arena
        self._memory = [_Memory() for _ in players]

    def write(self, state: GameState, clock: Clock, *, new: bool = True) -> Any:
        """RLBot's `GamePacket`. `new`: the events of the state have not been counted yet."""
        fb = self._flat
        info = fb.MatchInfo(
            seconds_elapsed=clock.seconds, game_time_remaining=clock.remaining, is_overtime=clock.overtime,
            is_unlimited_time=clock.unlimited, match_phase=fb.MatchPhase.Active if clock.phase is None else clock.phase,
            world_gravity_z=-GRAVITY, game_speed=1.0, frame_num=clock.frame)
        return fb.GamePacket(self._write_players(state, clock, new), self._write_pads(state), [self._write_ball(state)], info,
                             [fb.TeamInfo(team, goals) for team, goals in enumerate(clock.score)])

    def _write_ball(self, state: GameState) -> Any:
        return self._flat.BallInfo(ball_physics(state, self._arena), self._flat.SphereShape(2 * BALL_RADIUS), -1)

    def _write_pads(self, state: GameState) -> list[Any]:
        timers: list[float] = state.pads.timer[self._arena].tolist()
        return [self._flat.BoostPadState(timers[i] <= 0.0, _since_taken(timers[i], PADS[i].big)) for i in PAD_ORDER]

    def _write_players(self, state: GameState, clock: Clock, new: bool) -> list[Any]:
        cars, events = state.cars, state.events
        fields = {name: getattr(cars, name)[self._arena].tolist() for name in _CAR_FIELDS}
        happened = {name: getattr(events, name)[self._arena].tolist() for name in _EVENT_FIELDS} if new else {}
        tick = int(state.game.tick[self._arena])
        return [self._write_player(seat, {name: values[seat] for name, values in fields.items()},
                                   {name: values[seat] for name, values in happened.items()}, tick, clock)
                for seat in range(len(self._players))]

    def _write_player(self, seat: int, car: dict[str, Any], happened: dict[str, Any], tick: int, clock: Clock) -> Any:
        fb, who, memory = self._flat, self._players[seat], self._memory[seat]
        self._follow_touch(memory, car, tick, clock.seconds)
        accolades = _count(memory.scores, happened)
        hitbox, scores = HITBOXES[car["hitbox"]], memory.scores
        torque, sticks, buttons = car["flip_torque"], car["controls"][:5], [value > 0.5 for value in car["controls"][5:]]
        return fb.PlayerInfo(
            physics=_physics(car["position"], car["rotation"], car["velocity"], car["angular_velocity"]),
            score_info=fb.ScoreInfo(100 * scores["goals"] + 50 * (scores["assists"] + scores["saves"]) + 20 * scores["shots"],
                                    **scores),
            hitbox=fb.BoxShape(*hitbox.size), hitbox_offset=fb.Vector3(*hitbox.offset), latest_touch=memory.touch,
            air_state=self._air_state(memory, car, clock.frame), dodge_timeout=_dodge_timeout(car),
            demolished_timeout=car["demo_timer"] if car["is_demoed"] else NO_TIME, is_supersonic=car["is_supersonic"],
            is_bot=who.is_bot, name=who.name, team=car["team"], boost=car["boost"], player_id=who.player_id,
            accolades=accolades, last_input=fb.ControllerState(*sticks, *buttons), has_jumped=car["has_jumped"],
            has_double_jumped=car["has_double_jumped"], has_dodged=car["has_flipped"],
            dodge_elapsed=car["flip_time"] if car["has_flipped"] else 0.0,
            # That of the latest dodge: RocketSim's torque of a dodge along (x, y) is (-y, x)
            dodge_dir=fb.Vector2(torque[1], -torque[0]))

    def _air_state(self, memory: _Memory, car: dict[str, Any], frame: int) -> Any:
        """A jump goes before the ground, which the wheels still touch in its first ticks."""
        states = self._flat.AirState
        if not car["has_double_jumped"]:
            memory.double_jump_frame = None
        elif memory.double_jump_frame is None:
            memory.double_jump_frame = frame
        if car["is_jumping"]:
            return states.Jumping
        if car["on_ground"]:
            return states.OnGround
        if car["is_flipping"]:
            return states.Dodging
        if memory.double_jump_frame is not None and frame - memory.double_jump_frame < DOUBLE_JUMP_TICKS:
            return states.DoubleJumping
        return states.InAir

    def _follow_touch(self, memory: _Memory, car: dict[str, Any], tick: int, seconds: float) -> None:
        """Keeps the latest touch: a state that was placed has none, but the match does."""
        hit_tick = car["ball_hit_tick"]
        if hit_tick < 0 or hit_tick == memory.hit_tick:
            memory.hit_tick = hit_tick
            return
        memory.hit_tick, offset = hit_tick, car["ball_hit_offset"]
        length = sqrt(sum(value * value for value in offset)) or 1.0
        fb = self._flat
        memory.touch = fb.Touch(
            max(seconds - (tick - hit_tick) / TICK_RATE, 0.0),
            fb.Vector3(*(at + by for at, by in zip(car["ball_hit_position"], offset, strict=True))),
            fb.Vector3(*(-value / length for value in offset)), 0)


_CAR_FIELDS = ("position", "rotation", "velocity", "angular_velocity", "boost", "air_time_since_jump", "flip_time",
               "flip_torque", "demo_timer", "ball_hit_offset", "ball_hit_position", "controls", "ball_hit_tick", "team",
               "hitbox", "on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping",
               "is_supersonic", "is_demoed")
_EVENT_FIELDS = ("demolished", "goal", "assist", "shot", "save")


def _count(scores: dict[str, int], happened: dict[str, Any]) -> list[str]:
    """Counts the events of a car, and returns the words for them."""
    accolades = []
    for name, score, word in (("goal", "goals", "Goal"), ("assist", "assists", "Assist"), ("save", "saves", "Save"),
                              ("shot", "shots", "Shot")):
        if happened.get(name):
            scores[score] += 1
            accolades.append(word)
    if happened.get("demolished", -1) >= 0:
        scores["demolitions"] += 1
        accolades.append("Demolish")
    return accolades


def _since_taken(timer: float, big: bool) -> float:
    """Seconds since a pad was taken, 0 for one that is there."""
    return 0.0 if timer <= 0.0 else (BIG_PAD_SECONDS if big else SMALL_PAD_SECONDS) - timer


def _dodge_timeout(car: dict[str, Any]) -> float:
    """Seconds until a jumped car can no longer dodge; -1 on the ground, without a jump, after a dodge and when too late."""
    used = car["has_flipped"] or car["has_double_jumped"] or not car["has_jumped"]
    left: float = FLIP_WINDOW - car["air_time_since_jump"]
    return NO_TIME if used or left <= 0.0 or (car["on_ground"] and not car["is_jumping"]) else left
