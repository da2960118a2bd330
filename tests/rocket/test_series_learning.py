"""A policy with memory learns to adapt to its opponent in series of games: the whole way, from the option to the weights."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.ppo.learners import learner_over, run_config
from tests.rocket.test_line_up import config, environment
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Opponents
from wavedash.rocket.parts import Observation, Reward, ScriptedPlayer
from wavedash.rocket.state import STEER, Events, GameState
from wavedash.trained_policy import TrainedPolicy

GAMES, STEPS, ARENAS = 3, 4, 16


class Circles(ScriptedPlayer):
    """It drives in circles, always the same way."""

    def __init__(self, steer: float) -> None:
        self.steer = steer

    def controls(self, state: GameState) -> Tensor:
        controls = torch.zeros(state.arenas, state.seats, 8)
        controls[..., STEER] = self.steer
        return controls


class TheOther(Observation):
    """How the other car steered last, and whether the game has just begun: then it is not known."""

    def size(self, seats: int) -> int:
        return 2

    def build(self, state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        begins = (state.game.tick == 0).float().view(-1, 1).expand(state.shape)
        return torch.stack([controls.flip(1)[..., STEER], begins], -1)


class SameWay(Reward):
    """The first step of a game pays 1 to who steers as the other car does, and takes 1 from who steers the other way."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        steer = state.cars.controls[..., STEER].sign()
        return steer * steer.flip(1) * (previous.game.tick == 0).view(-1, 1)


def playing_circles() -> RocketEnv:
    """Half of the opponents circle to the left, the others to the right."""
    settings = config("warp", ARENAS)
    assert settings.rocket is not None
    task = settings.rocket.model_copy(update={
        "games": GAMES, "endings": {"time_out": {"seconds": STEPS * 8 / 120}},
        "observation": "tests.rocket.test_series_learning:TheOther", "action": {"lookup_table": {"masked": False}},
        "rewards": {"tests.rocket.test_series_learning:SameWay": 1.0}})
    env, _ = environment(settings.model_copy(update={"rocket": task}),
                         lambda task: Opponents(task.action, [Circles(-1.0), Circles(1.0)], share=1.0))
    return env


def paid_by_game(env: RocketEnv, policy: TrainedPolicy, keeps: bool) -> list[float]:
    """The mean reward of the policy's cars in each game of three series."""
    obs, paid = env.reset(5), torch.zeros(GAMES)
    policy.reset(torch.ones(env.num_rows, dtype=torch.bool))
    for t in range(3 * GAMES * STEPS):
        step = env.step(policy.step(obs, deterministic=True))
        paid[t // STEPS % GAMES] += step.reward[step.active].mean() / 3
        ended = step.terminated | step.truncated
        policy.reset(ended if keeps or (t + 1) % STEPS else torch.ones_like(ended))
        obs = step.obs
    return paid.tolist()


@pytest.mark.slow
def test_a_policy_with_memory_learns_to_adapt_to_its_opponent() -> None:
    """Nothing in a game tells the opponent's way before its first step, which is all that is paid. So the first game pays as
    much as guessing does: nothing, because both opponents play in equally many arenas. So do all others without memory."""
    env = playing_circles()
    learner = learner_over(env, run_config(
        {"rollout_steps": 2 * GAMES * STEPS, "minibatch_size": 768, "epochs": 4, "learning_rate": 0.01, "gamma": 0.9},
        {"hidden": [16], "memory": {"kind": "gru", "size": 8, "sequence": GAMES * STEPS}}))
    for _ in range(60):
        learner.iterate()
    policy = TrainedPolicy(learner.policy)
    kept, cleared = (paid_by_game(env, policy, keeps) for keeps in (True, False))
    env.close()
    assert kept[0] == pytest.approx(0.0, abs=1e-6) and min(kept[1:]) > 0.9
    assert cleared == pytest.approx([0.0] * GAMES, abs=1e-6), "the control: memory is cleared between games"
