"""Frames are drawn as often as their weights say."""
from __future__ import annotations

import pytest
import torch

from wavedash.errors import UserError
from wavedash.rocket.starts import Random, ReplayFrames, save_frames
from wavedash.rocket.starts.weights import STATES_OF_PLAY, state_of_play
from wavedash.rocket.state import GameState

FRAMES, DRAWS = 30, 30000


def empty(arenas):
    state = GameState.empty(arenas, 2)
    state.cars.team[:, 1] = 1
    state.cars.present.fill_(True)
    for body in (state.ball, state.cars):
        body.rotation.copy_(torch.eye(3))
    return state


@pytest.fixture
def path(tmp_path):
    stored = empty(FRAMES)
    start = Random(ball_in_air=0.7)
    start.bind(stored)
    start.write(stored, torch.Generator().manual_seed(2))
    save_frames(tmp_path / "frames.npz", stored)
    return str(tmp_path / "frames.npz")


def drawn(start):
    """[N]: how often each frame was drawn, recognised by the ball's height and its place."""
    state = empty(DRAWS)
    start.bind(state)
    start.write(state, torch.Generator().manual_seed(7))
    place = start.frames.ball.position
    same = (state.ball.position[:, None].abs() - place.abs()).abs().amax(-1) < 1e-3
    assert (same.sum(-1) == 1).all()
    return torch.bincount(same.int().argmax(-1), minlength=FRAMES).double()


def chi_square(counts, weights):
    expected = weights.double() / weights.double().sum() * DRAWS
    used = expected > 0
    assert (counts[~used] == 0).all()
    return float(((counts - expected)[used] ** 2 / expected[used]).sum())


BOUND = 58.3
"""p = 0.001 at 29 degrees of freedom"""


@pytest.mark.parametrize("weight_by", ["height", "state_of_play"])
def test_frames_are_drawn_by_their_weights(path, weight_by):
    start = ReplayFrames(path, weight_by)
    counts = drawn(start)
    assert chi_square(counts, start.weights) < BOUND
    assert chi_square(counts, torch.ones(FRAMES)) > 10 * BOUND, "the same draws are not uniform"


def test_heights_by_hand(path):
    start = ReplayFrames(path, "height")
    z = (start.frames.ball.position[:, 2] + start.frames.cars.position[..., 2].mean(-1)) / 2
    ratio = start.weights / (1 / 9 + z / 2044.0)
    assert torch.allclose(ratio, torch.ones(FRAMES), atol=1e-5)


def test_states_of_play_have_the_shares_that_are_asked_for(path):
    start = ReplayFrames(path, "state_of_play", {"aerial": 3.0, "ground": 1.0})
    counts, state = drawn(start), state_of_play(start.frames)
    share = {name: float(counts[state == i].sum()) / DRAWS for i, name in enumerate(STATES_OF_PLAY)}
    assert abs(share["aerial"] - 0.75) < 0.01 and abs(share["ground"] - 0.25) < 0.01  # four standard deviations: 0.01


def test_the_same_generator_draws_the_same_frames(path):
    assert torch.equal(drawn(ReplayFrames(path, "height")), drawn(ReplayFrames(path, "height")))


def test_wrong_weights_are_named(path):
    for options, text in (({"weight_by": "hight"}, "not 'hight'"), ({"shares": {"wall": 1.0}}, "set weight_by"),
                          ({"weight_by": "state_of_play", "shares": {"sky": 1.0}}, "sky"),
                          ({"weight_by": "state_of_play", "shares": {"kickoff": 1.0}}, "no frame")):
        with pytest.raises(UserError, match=text):
            ReplayFrames(path, **options)
