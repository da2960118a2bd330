"""`render=True`: the first environment is shown, by its own window or through RocketSimVis; the training always goes on."""
from __future__ import annotations

import json
import socket
from types import SimpleNamespace

import numpy as np
import pytest

from tests.compat.gym_envs import Match, two_players
from tests.compat.learners import small_learner
from wavedash.compat.rlgym_ppo.rendering import Rendering
from wavedash.envs.rlgym.gym_env import GymEnv
from wavedash.rocket.bridges import rocketsimvis

pytestmark = pytest.mark.slow

PLAIN = {"standardize_obs": False, "standardize_returns": False, "n_proc": 2, "timestep_limit": 40}


def body(x: float) -> SimpleNamespace:
    vector = np.asarray([x, 0.0, 17.0])
    return SimpleNamespace(position=vector, linear_velocity=vector, angular_velocity=vector, rotation_mtx=lambda: np.eye(3))


def game(step: int) -> SimpleNamespace:
    """A state as rlgym-sim has it."""
    player = SimpleNamespace(car_data=body(float(step)), team_num=1, boost_amount=0.5, on_ground=True, is_demoed=False,
                             has_flip=True)
    return SimpleNamespace(ball=body(1.0), players=[player], boost_pads=np.ones(34))


class Game(Match):
    """Its states can be shown, but it has no window of its own."""

    def step(self, actions):
        *result, info = super().step(actions)
        return (*result, {"state": game(info["state"].step)})


class Window(Game):
    """It draws itself into a file."""

    def __init__(self, path, breaks_at=10**9):
        super().__init__(2)
        self.path, self.breaks_at = path, breaks_at

    def render(self):
        with open(self.path, "a") as file:
            file.write(f"{self.steps}\n")
        if self.steps == self.breaks_at:
            raise RuntimeError("the window was closed")


@pytest.fixture
def viewer(monkeypatch):
    """A list of what RocketSimVis would receive."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(5.0)
        monkeypatch.setattr(rocketsimvis.RocketSimVis.__init__, "__defaults__", (listening.getsockname()[1],))
        yield lambda: json.loads(listening.recv(65536))


def test_one_environment_of_all_draws_itself_in_every_step(tmp_path):
    path = tmp_path / "drawn"
    with small_learner(tmp_path, lambda: Window(path), render=True, **PLAIN) as learner:
        learner.learn()
    assert path.read_text().split() == [str(n % 4 + 1) for n in range(10)], "one of two environments is shown"


def test_a_game_that_cannot_draw_itself_is_sent_to_rocketsimvis(viewer):
    adapter = Rendering(0.0).of(GymEnv(Game(2)), Game(2))
    adapter.reset(0)
    for step in (1, 2):
        adapter.step(np.zeros((2, 1)))
        packet = viewer()
        assert packet["ball_phys"]["pos"] == [1.0, 0.0, 17.0] and len(packet["boost_pad_states"]) == 34
        (car,) = packet["cars"]
        assert (car["phys"]["pos"][0], car["team_num"], car["boost_amount"]) == (step, 1, 50.0)
        assert car["phys"]["forward"] == [1.0, 0.0, 0.0] and all(packet["boost_pad_states"])


def test_a_window_that_breaks_is_replaced_and_training_goes_on(viewer, tmp_path, capsys):
    env = Window(tmp_path / "drawn", breaks_at=2)
    adapter = Rendering(0.0).of(GymEnv(env), env)
    adapter.reset(0)
    for _ in range(3):
        adapter.step(np.zeros((2, 1)))
    assert viewer()["cars"][0]["phys"]["pos"][0] == 3
    told = capsys.readouterr().err
    assert "own render() failed (RuntimeError: the window was closed); it is shown through RocketSimVis" in told


def test_what_is_no_game_trains_unseen_and_says_so_once(capsys):
    adapter = Rendering(0.0).of(GymEnv(two_players()), two_players())
    adapter.reset(0)
    for _ in range(3):
        adapter.step(np.zeros((2, 1)))
    assert capsys.readouterr().err.count("this environment cannot be shown (info['state'] is SimpleNamespace") == 1


def test_an_rlgym_without_a_renderer_goes_to_rocketsimvis(viewer):
    from tests.compat.rlgym_v2_example import build_env

    env = build_env()
    adapter = Rendering(0.0).of(env.as_host_env(), env)
    adapter.reset(0)
    adapter.step(np.zeros((2, 1), np.int64))
    assert len(viewer()["cars"]) == 2
    adapter.close()
