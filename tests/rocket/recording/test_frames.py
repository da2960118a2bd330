"""Records are what the simulator's states are, within the scales of docs/recordings.md."""
from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rocket.test_env import random_actions, simulated
from wavedash.rocket.constants import PADS
from wavedash.rocket.recording.frames import Head, RocketFrames, players_of
from wavedash.rocket.recording.quaternions import matrix_of, quaternion_of
from wavedash.rocket.state import GameState

BITS = ("on_ground", None, "is_supersonic", "is_demoed", "has_flip", "is_jumping", "is_flipping", None)
"""Fields of cars that are bits of cars.flags, in the order of the page; None: not a field"""


def rotated(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """v + 2 w (u x v) + 2 u x (u x v): a formula that shares nothing with the code under test."""
    u, w = quaternion[:3], quaternion[3]
    return vector + 2 * w * np.cross(u, vector) + 2 * np.cross(u, np.cross(u, vector))


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_frames_are_the_states_of_real_games(simulator):
    env = simulated("env.count=6", "env.rocket.starts={random: 1, shot: 1, wall: 1}", simulator=simulator, preset="rocket-2v2")
    env.reset(1)
    state = env.states[0]
    frames = RocketFrames.of(state)
    for number, action in enumerate(random_actions(env, 30)):
        env.step(action)
        if number % 5:
            continue
        records = frames.records(state)
        recorded = {name: frames.layout.decode(records, name) for name in frames.layout.by_name}
        for body, part in (("ball", state.ball), ("cars", state.cars)):
            for name, step in (("position", 0.25), ("velocity", 0.25), ("angular_velocity", 0.0005)):
                error = np.abs(recorded[f"{body}.{name}"] - getattr(part, name).numpy())
                assert error.max() <= step / 2 * 1.0001, (body, name)
        assert np.abs(recorded["cars.boost"] - state.cars.boost.numpy()).max() <= 0.5
        assert np.abs(recorded["cars.controls"] - state.cars.controls.numpy()).max() <= 0.5 / 127 * 1.0001
        assert (recorded["tick"] == state.game.tick.numpy()).all() and (recorded["score"] == state.game.score.numpy()).all()
        for arena in range(6):
            pads = [(int(records["pads"][arena, pad // 8]) >> (pad % 8)) & 1 for pad in range(len(PADS))]
            assert pads == (state.pads.timer[arena] <= 0).int().tolist()
            for car in range(4):
                flags = int(recorded["cars.flags"][arena, car])
                for bit, name in enumerate(BITS):
                    if name is not None:
                        assert bool(flags >> bit & 1) == bool(getattr(state.cars, name)[arena, car]), name
                axes = state.cars.rotation[arena, car].numpy()
                for axis in range(3):  # columns of a rotation are the axes of a car
                    seen = rotated(recorded["cars.rotation"][arena, car], np.eye(3)[axis])
                    assert np.abs(seen - axes[:, axis]).max() < 2e-4
    env.close()


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 0.1))
@settings(max_examples=200, deadline=None)
def test_a_rotation_and_its_quaternion_turn_alike(q):
    q = np.array(q) / np.linalg.norm(q)
    matrix = np.stack([rotated(q, axis) for axis in np.eye(3)], -1)
    found = quaternion_of(matrix)
    assert found[3] >= 0 and abs(np.linalg.norm(found) - 1) < 1e-9
    assert min(np.abs(found - q).max(), np.abs(found + q).max()) < 1e-6
    assert np.abs(matrix_of(found) - matrix).max() < 1e-6


def test_what_is_no_number_is_recorded_as_something_that_can_be_shown():
    """A state after a fault must not keep a crash from being recorded."""
    state = GameState.empty(2, 2)
    state.cars.present.fill_(True)
    for part in (state.ball, state.cars):
        part.position.fill_(np.nan)
        part.velocity.fill_(np.inf)
        part.rotation.fill_(-np.inf)
    state.cars.boost.fill_(np.nan)
    frames = RocketFrames.of(state)
    records = frames.records(state)
    assert (records["ball.position"] == 0).all() and (records["cars.boost"] == 0).all()
    assert (records["cars.velocity"] == 32767).all()
    assert np.allclose(frames.layout.decode(records, "cars.rotation"), [0, 0, 0, 1])


def test_only_cars_that_take_part_are_recorded_and_heads_where_they_are_known():
    state = GameState.empty(1, 4)
    state.cars.present[0] = torch.tensor([True, False, True, True])
    state.cars.team[0] = torch.tensor([0, 0, 1, 1])
    state.cars.boost[0] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    state.ball.last_touch[0] = 3
    frames = RocketFrames.of(state, head=True, terms=2)
    head = Head(value=np.array([[1.0, 2.0, 3.0, 4.0]]), reward=np.arange(8.0).reshape(1, 4, 2))
    record = frames.record(state, 0, head)
    assert record["cars.boost"].tolist() == [[1, 3, 4]] and record["touched"].tolist() == [2]
    assert record["cars.value"].tolist() == [[1.0, 3.0, 4.0]] and record["cars.action"].tolist() == [[-1, -1, -1]]
    assert record["cars.reward"].tolist() == [[[0, 1], [4, 5], [6, 7]]]
    assert [(player["name"], player["team"]) for player in players_of(state, 0, ["a", "b", "c", "d"])] == [
        ("a", 0), ("c", 1), ("d", 1)]
