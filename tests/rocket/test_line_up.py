"""Line-ups: which player drives which car, drawn at ends of episodes, on both sides; and which rows are learned from."""
from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.ppo.learners import learner_over, run_config
from wavedash.config import EnvConfig
from wavedash.config_file import load_config
from wavedash.envs.vec_env import Obs, Step, VecEnv
from wavedash.errors import UserError
from wavedash.rocket.actions import LookupTable
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import POLICY, LineUp, Opponents
from wavedash.rocket.parts import Player, ScriptedPlayer
from wavedash.rocket.players import Chaser, Idle
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task


def arenas(count: int, seats: int = 2) -> GameState:
    state = GameState.empty(count, seats)
    state.cars.team[:, seats // 2:] = 1
    state.cars.present.fill_(True)
    return state


def opponents(state: GameState, players: int = 2, share: float = 0.5, seed: int = 0) -> Opponents:
    made = Opponents(LookupTable(), [Idle() for _ in range(players)], share, seed)
    made.bind(state)
    return made


# The seats of players


@pytest.mark.parametrize("seats", [2, 4, 6])
def test_a_player_has_a_whole_team_and_every_arena_both_sides_as_often(seats):
    state = arenas(8, seats)
    line_up, everywhere = opponents(state), torch.ones(8, dtype=torch.bool)
    taken = []
    for _ in range(40):
        line_up.begin(state, everywhere)
        taken.append(line_up.seats.clone())
    told = torch.stack(taken)  # [games, E, C]
    assert (told[:, :4] == POLICY).all(), "the first half of the arenas is the policy's own"
    blue, orange = told[:, 4:, : seats // 2], told[:, 4:, seats // 2 :]
    for team in (blue, orange):
        assert (team == team[..., :1]).all()
    assert ((blue[..., 0] == POLICY) ^ (orange[..., 0] == POLICY)).all(), "one of the teams is the policy's"
    assert ((blue[..., 0] != POLICY).sum(0) == 20).all(), "as often blue as orange, in every arena"
    assert torch.equal(line_up.of_policy(), line_up.seats == 0)


def test_the_players_of_seats_change_only_where_an_episode_begins():
    state = arenas(6)
    line_up = opponents(state, share=1.0)
    line_up.begin(state, torch.ones(6, dtype=torch.bool))
    before = line_up.seats.clone()
    line_up.begin(state, torch.tensor([True, False, False, True, False, False]))
    changed = (line_up.seats != before).any(-1)
    assert changed.tolist() == [True, False, False, True, False, False]


def test_draws_are_uniform_and_independent_of_neighbouring_arenas():
    state, everywhere = arenas(200), torch.ones(200, dtype=torch.bool)
    line_up, drawn = opponents(state, share=1.0), []
    for _ in range(200):
        line_up.begin(state, everywhere)
        drawn.append(line_up.drawn())
    table = torch.stack(drawn)  # [games, arenas]
    assert table.min() >= 0 and table.max() < 1
    counts = torch.histc(table.float(), 20, 0, 1)
    assert ((counts - 2000) ** 2 / 2000).sum() < 50, "chi-square with 19 degrees of freedom: 50 is beyond 99.98 %"
    centred = table - 0.5
    for lagged in (centred[1:] * centred[:-1], centred[:, 1:] * centred[:, :-1]):
        assert abs(float(lagged.mean())) < 4 / 12 / math.sqrt(lagged.numel())
    other = opponents(arenas(200), share=1.0, seed=1)
    assert not torch.equal(other.drawn(), opponents(arenas(200), share=1.0).drawn())


@pytest.mark.parametrize(("options", "words"), [
    ({"players": 0}, "needs a player"), ({"share": 0.0}, "share of the arenas above 0"), ({"share": 1.5}, "up to 1"),
    ({"players": 5}, "each of the 5 slots for opponents needs an arena in every group of arenas, but a group has 4"),
])
def test_an_impossible_line_up_is_refused(options, words):
    with pytest.raises(UserError, match=words):
        opponents(arenas(4), **options)


# In an environment


class Honks(ScriptedPlayer):
    """It only honks, so that its controls can be recognised."""

    def controls(self, state: GameState) -> Tensor:
        return torch.full((state.arenas, state.seats, 8), 0.5)


class Asked(Player):
    """It notes the last controls that it is given, and its memory: the steps since its episode began."""

    steps: Tensor

    def bind(self, state: GameState) -> None:
        self.register_buffer("steps", torch.zeros(state.arenas, dtype=torch.int64))
        self.shown: list[Tensor] = []

    def begin(self, state: GameState, mask: Tensor) -> None:
        self.steps.masked_fill_(mask, 0)

    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        self.steps += 1
        self.shown.append(chosen.clone())
        return torch.full((state.arenas, state.seats, 8), 0.5)


def config(simulator: str, count: int = 4) -> EnvConfig:
    return load_config("rocket-1v1", [
        f"env.rocket.simulator={simulator}", f"env.count={count}", "env.groups=1", "env.workers=0",
        "env.rocket.endings={time_out: {seconds: 0.5}}", "env.rocket.observation={advanced_obs_plus: {team_size: 1}}",
    ]).env


def environment(settings: EnvConfig, make: Callable[[Task], LineUp]) -> tuple[RocketEnv, list[LineUp]]:
    line_ups = []

    def task() -> Task:
        made = Task.configured(settings.rocket)
        line_ups.append(make(made))
        made.line_up = line_ups[-1]
        return made

    return RocketEnv.configured(settings, task=task), line_ups


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_players_drive_their_cars_and_only_rows_of_the_policy_are_active(simulator):
    player = Asked()
    env, (line_up,) = environment(config(simulator), lambda task: Opponents(task.action, [player], share=0.5))
    env.reset(0)
    controls = env._shards[0].controls
    nothing = torch.full((8,), 8)  # the row of the lookup table without any control
    sides, remembered = [], []
    for _ in range(20):  # 0.5 s are 8 steps
        seats = line_up.seats.clone()
        told = torch.where((seats > 0).unsqueeze(-1), 0.5, 0.0).expand(4, 2, 8)
        step = env.step(nothing)
        assert torch.equal(step.active, (seats == POLICY).flatten()), "it belongs to the step that was made, not to the next"
        ended = (step.terminated | step.truncated).view(4, 2)[:, 0]
        pressed = torch.cat([env.state_of(arena).cars.controls for arena in range(4)])
        assert torch.equal(pressed[~ended], told[~ended])
        assert torch.equal(controls[~ended], told[~ended]) and not controls[ended].any(), "what cars see as their last action"
        sides.append(seats[2:].argmax(-1))
        remembered.append(player.steps.clone())
    assert torch.stack(sides).unique(dim=0).shape[0] == 2, "both sides were played"
    assert torch.stack(remembered)[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 0, *([1, 2, 3, 4, 5, 6, 7, 0]), 1, 2, 3, 4]
    assert not player.shown[0].any() and player.shown[1].any() and not player.shown[8].any(), "none is pressed at a kick-off"
    env.close()


class Filled(VecEnv):
    """A Rocket League environment in which observations, rewards and metrics of the rows of players are `filling`."""

    def __init__(self, env: RocketEnv, line_up: LineUp, filling: float | None) -> None:
        self.env, self.line_up, self.filling = env, line_up, filling
        self.num_rows, self.observation_space, self.action_space = env.num_rows, env.observation_space, env.action_space

    def _fill(self, x: Tensor, rows: Tensor) -> Tensor:
        return x if self.filling is None else x.masked_fill(rows.view(-1, *(1,) * (x.dim() - 1)), self.filling)

    def _seen(self, obs: Obs, rows: Tensor) -> Obs:
        assert isinstance(obs, dict)
        return {"obs": self._fill(obs["obs"], rows), "action_mask": obs["action_mask"]}

    @property
    def _of_players(self) -> Tensor:
        return (self.line_up.seats != POLICY).flatten()

    def reset(self, seed: int | None = None) -> Obs:
        return self._seen(self.env.reset(seed), self._of_players)

    def step(self, action: Tensor) -> Step:
        rows = self._of_players
        step = self.env.step(action)
        seen = self._seen(step.obs, self._of_players)
        return step._replace(
            obs=seen, reward=self._fill(step.reward, rows),
            final_obs=seen if step.final_obs is step.obs else self._seen(step.final_obs, rows),
            metrics={name: self._fill(x, rows) for name, x in step.metrics.items()},
        )


class LearnedFrom(Opponents):
    """This is the mistake: rows of players are learned from."""

    def of_policy(self) -> Tensor:
        return torch.ones_like(self.seats, dtype=torch.bool)


def learned(simulator: str, kind: type[Opponents], filling: float | None, player: type[Player] = Chaser) -> dict[str, Tensor]:
    env, (line_up,) = environment(config(simulator), lambda task: kind(task.action, [player()], share=0.5))
    ppo = {"rollout_steps": 12, "epochs": 2, "minibatch_size": 24, "learning_rate": 0.01, "normalize_reward": True}
    policy = {"hidden": [8], "memory": {"kind": "gru", "size": 4, "sequence": 4}}
    learner = learner_over(Filled(env, line_up, filling), run_config(ppo, policy))
    metrics = [learner.iterate().metrics for _ in range(2)]
    env.close()
    assert metrics[-1]["optim/update_size"] > 1e-3
    tensors, _ = learner.state()
    return {**tensors["policy"], **tensors["optimizer"]}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return all(torch.equal(x, b[name]) for name, x in a.items())


@pytest.mark.slow
@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_nothing_is_learned_from_the_rows_of_players(simulator):
    """Whatever these rows hold, the weights and moments are the same bit for bit."""
    clean = learned(simulator, Opponents, None)
    assert same(clean, learned(simulator, Opponents, math.nan))
    assert not same(clean, learned(simulator, Opponents, None, Honks)), "the player of the other cars does matter"


def test_learning_from_the_rows_of_players_would_be_seen():
    assert not same(learned("warp", LearnedFrom, None), learned("warp", LearnedFrom, 7.0))
