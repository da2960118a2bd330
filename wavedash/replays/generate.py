"""Games that were played here as replays: what a replay carries of them, with the errors that replays have. They prove the
import and train the inverse model, since their truth is known.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from wavedash.replays.replay import COUNTDOWN, Array, Replay
from wavedash.rocket.constants import BOOST_MAX, TICK_RATE
from wavedash.rocket.recording.quaternions import quaternion_of
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.starts.anywhere import Random
from wavedash.rocket.state import HANDBRAKE, STEER, THROTTLE, GameState

EVERY = 2
"""Ticks between recorded states; frames are some of these"""
BEGIN = 10.0
"""Seconds at which the first state is"""
LENGTH_UNIT, SPIN_UNIT, TURN_UNIT = 0.01, 0.0001, 2.0**-17
"""Steps in which replays store positions (uu) and velocities (uu/s), spins (rad/s) and elements of quaternions"""


@dataclass
class Played:
    """Games of E arenas, S states each."""

    states: list[GameState]
    controls: list[Tensor]
    """[E, C, 8] in force from each state to the next"""
    began: list[Tensor]
    """[E] bool: a new game begins with this state"""


def play(simulator: Simulator, decisions: int, ticks: int, seed: int) -> Played:
    """Plays random controls, each held for some decisions, from random states."""
    generator = torch.Generator().manual_seed(seed)
    state, start = simulator.state, Random()
    start.bind(state)
    start.write(state, generator)
    everywhere = torch.ones(state.arenas, dtype=torch.bool)
    simulator.place(everywhere)
    played, controls, begins = Played([], [], []), torch.zeros(state.arenas, state.seats, 8), everywhere
    for _ in range(decisions):
        shape = (state.arenas, state.seats, 1)
        sticks = torch.randint(-1, 2, (*shape[:2], 5), generator=generator).float()
        sticks[..., :1] = torch.where(torch.rand(shape, generator=generator) < 0.5, 1.0, sticks[..., :1])
        buttons = (torch.rand(*shape[:2], 3, generator=generator) < torch.tensor([0.3, 0.4, 0.15])).float()
        controls = torch.where(torch.rand(shape, generator=generator) < 0.3, torch.cat([sticks, buttons], -1), controls)
        for _ in range(ticks // EVERY):
            played.states.append(state.clone())
            played.controls.append(controls.clone())
            played.began.append(begins.clone())
            simulator.step(controls, EVERY)
            begins = state.game.goal >= 0
            if bool(begins.any()):
                fresh = state.clone()
                start.write(fresh, generator)
                state.copy_(fresh, begins)
                simulator.place(begins)
    return played


def as_replay(played: Played, arena: int, seed: int, lost: float = 0.02, jitter: float = 0.0) -> tuple[Replay, Array]:
    """One arena's game as a replay, and [F] the index of each frame among the states. Frames come every 4 or 6 ticks, a share
    `lost` of them is missing, times are wrong by up to `jitter` seconds, and all numbers are rounded as replays round them."""
    random = np.random.default_rng(seed)
    steps = np.cumsum(random.integers(4 // EVERY, 6 // EVERY + 1, len(played.states)))
    frames = steps[(steps < len(played.states)) & (random.random(len(steps)) >= lost)]
    whole = GameState.over(torch.stack([state.memory[arena] for state in played.states]), played.states[0].seats)
    state, cars = whole.picked(torch.from_numpy(frames)), whole.cars
    replay = Replay.blank(len(frames), cars.team[0].tolist())
    replay.time = BEGIN + frames * EVERY / TICK_RATE + random.uniform(-jitter, jitter, len(frames))
    for body, source in ((replay.ball, state.ball), (replay.cars, state.cars)):
        for name, unit in (("position", LENGTH_UNIT), ("velocity", LENGTH_UNIT), ("angular_velocity", SPIN_UNIT)):
            body[name] = np.round(getattr(source, name).double().numpy() / unit) * unit
        body["quaternion"] = np.round(quaternion_of(source.rotation.numpy()) / TURN_UNIT) * TURN_UNIT
    replay.ball_known[:], replay.car_known[:] = True, True
    replay.demolished, replay.hitbox = state.cars.is_demoed.numpy().copy(), cars.hitbox[0].numpy().copy()
    replay.boost = np.round(state.cars.boost.numpy() * (255.0 / BOOST_MAX))
    controls = torch.stack([step[arena] for step in played.controls])[torch.from_numpy(frames)].numpy()
    replay.throttle = np.clip(np.round(128 + 127.5 * controls[..., THROTTLE]), 0, 255).astype(int)
    replay.steer = np.clip(np.round(128 + 127.5 * controls[..., STEER]), 0, 255).astype(int)
    replay.flags = {"jump_active": state.cars.is_jumping.numpy().copy(), "dodge_active": state.cars.is_flipping.numpy().copy(),
                    "double_jump_active": state.cars.has_double_jumped.numpy().copy(),
                    "boost_active": (state.cars.boost_time > 0).numpy(), "handbrake": controls[..., HANDBRAKE] > 0.5}
    replay.pad_timer = state.pads.timer.double().numpy().copy()
    began = torch.stack([step[arena] for step in played.began]).numpy()
    before = np.concatenate([[0], frames[:-1] + 1])
    restarts = np.array([began[a : b + 1].any() for a, b in zip(before, frames, strict=True)])
    replay.phase[restarts] = COUNTDOWN  # a jump to another game must not look like play
    return replay, frames
