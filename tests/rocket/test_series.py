"""Series: several games are one episode. Between them only the game begins anew; memory, opponent and value go on."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.league.leagues import Stop, trained
from tests.ppo.learners import learner_over, run_config
from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.test_driver import BEFORE, Counts, driver_of
from tests.rocket.test_driver import arenas as empty_arenas
from tests.rocket.test_env import SIMULATORS, clocks, ends_after, random_actions, simulated
from tests.rocket.test_line_up import Asked, config, environment
from wavedash.ppo.gae import gae, next_values
from wavedash.rocket.driver import Pace
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Opponents
from wavedash.rocket.parts import Player, Start
from wavedash.rocket.series import Series
from wavedash.rocket.state import GameState
from wavedash.training import resume

GAMES = 3
SERIES = f"env.rocket.games={GAMES}"
Make = Callable[..., RocketEnv]


@pytest.fixture(params=SIMULATORS)
def env_of(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes environments of three arenas on one of the simulators, and closes them at the end."""
    made: list[RocketEnv] = []

    def make(*overrides: str) -> RocketEnv:
        made.append(simulated(*overrides, simulator=request.param))
        return made[-1]

    yield make
    for env in made:
        env.close()


def ends(t: int, games: int = 1) -> Tensor:
    """[N]: where so many games of three arenas end with step t, counted from 1: games have 3, 4 and 5 steps."""
    return torch.tensor([t % (games * n) == 0 for n in (3, 4, 5)]).repeat_interleave(2)


# What ends, and what goes on


@pytest.mark.parametrize("truncates", [True, False])
def test_only_the_last_game_of_a_series_ends_the_episode(truncates: bool, env_of: Make) -> None:
    env = env_of(ends_after(3, truncates), SERIES)
    env.reset(0)
    for t, action in enumerate(random_actions(env, 40), start=1):
        before, step = clocks(env), env.step(action)
        assert torch.equal(step.truncated if truncates else step.terminated, ends(t, GAMES))
        assert not (step.terminated if truncates else step.truncated).any()
        assert torch.equal(clocks(env), torch.where(ends(t)[::2], 0, before + 8)), "every game begins anew"
        same = (step.final_obs["obs"] == step.obs["obs"]).all(-1)
        assert torch.equal(same, ~ends(t, GAMES)), "only episodes that ended have another last observation"


def test_a_series_is_the_same_games_bit_for_bit(env_of: Make) -> None:
    """The reference is an environment in which every game is an episode, so that all its parts begin anew: frames that are
    remembered, buttons that are held, time limits, attempts. Starts are drawn for every game."""
    settings = ("env.rocket.endings={no_touch: {seconds: 0.4}, goal: {}, time_out: {seconds: 1}}",
                "env.rocket.measures=[dribble]",
                "env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}",
                "env.rocket.action={lookup_table: {sticky: 2}}", "env.rocket.starts={kickoff: 1, random: 1, save: 1}")
    one, other = env_of(*settings), env_of(*settings, SERIES)
    first, second = one.reset(4), other.reset(4)
    assert torch.equal(first["obs"], second["obs"])
    games = episodes = 0
    for action in random_actions(one, 60):
        step, same = one.step(action), other.step(action)
        assert all(torch.equal(step.obs[key], same.obs[key]) for key in step.obs) and torch.equal(step.reward, same.reward)
        assert step.metrics.keys() == same.metrics.keys()
        for name, x in step.metrics.items():
            torch.testing.assert_close(x, same.metrics[name], rtol=0, atol=0, equal_nan=True)
        assert all(torch.equal(one.state_of(arena).memory, other.state_of(arena).memory) for arena in range(3))
        games += int((step.terminated | step.truncated).sum())
        episodes += int((same.terminated | same.truncated).sum())
        assert not ((same.terminated & ~step.terminated) | (same.truncated & ~step.truncated)).any()
    assert games >= 3 * episodes > 0


def test_one_game_is_no_series_and_saves_what_it_did() -> None:
    plain, one = simulated(), simulated("env.rocket.games=1")
    for env in (plain, one):
        env.reset(0)
        assert env.tasks[0].series is None and not any("series" in name for name in env.save_state())
        env.close()


def test_a_reset_begins_a_new_series(env_of: Make) -> None:
    env = env_of(ends_after(3), SERIES)
    env.reset(0)
    for action in random_actions(env, 7):
        env.step(action)
    env.reset(1)
    ended = torch.stack([env.step(action).truncated for action in random_actions(env, 20)])
    assert torch.equal(ended, torch.stack([ends(t, GAMES) for t in range(1, 21)]))


class IntoTheGoal(Start):
    """The ball flies into the orange goal."""

    def write(self, state: GameState, generator: torch.Generator) -> None:
        state.ball.position.copy_(torch.tensor([0.0, 4500.0, 300.0]))
        state.ball.velocity.copy_(torch.tensor([0.0, 4000.0, 0.0]))


def test_every_goal_is_paid_and_the_last_one_terminates(env_of: Make) -> None:
    env = env_of(SERIES, "env.rocket.starts={kickoff: 0, random: 0, 'tests.rocket.test_series:IntoTheGoal': 1}",
                 "env.rocket.rewards={concede: 8}", "env.rocket.endings={goal: {}, no_touch: null, time_out: null}")
    env.reset(0)
    action, paid = torch.full((6,), 8), []
    while len(paid) < 2 * GAMES:
        step = env.step(action)
        if step.reward.any():
            assert step.reward.tolist() == [0.0, -8.0] * 3, "all orange cars concede"
            paid.append(bool(step.terminated.all()))
    assert paid == [False, False, True, False, False, True]


# What the learner makes of it


def test_memory_is_kept_between_games_and_cleared_after_the_series(env_of: Make) -> None:
    """The reference is what the network returns as its memory after each observation."""
    env = env_of(ends_after(3), SERIES)
    learner = learner_over(env, run_config({"rollout_steps": 1, "minibatch_size": 6},
                                           {"hidden": [8], "memory": {"kind": "gru", "size": 4, "sequence": 1}}))
    (shard,), policy = learner.collector.shards, learner.policy
    kept = 0
    for t in range(1, 40):
        before = {name: x.clone() for name, x in shard.memory.items()}
        after = policy.act(policy.normalize(shard.obs), before).memory
        learner.collector.collect(learner.buffer.next_slot())
        for name, x in shard.memory.items():
            ended = ends(t, GAMES)
            assert not x[ended].any() and torch.equal(x[~ended], after[name][~ended]) and x[~ended].any(-1).all()
            kept += int((ends(t) & ~ended).sum())
    assert kept > 0


def test_the_value_of_the_next_game_counts_up_to_the_end_of_the_series(env_of: Make) -> None:
    """The reference goes through every row alone, and knows from the lengths of games where a series ends. Rewards and values
    are small whole numbers, gamma is a half: in 20 steps nothing is rounded."""
    steps = 20
    env = env_of(ends_after(3, truncates=False), SERIES)
    learner = learner_over(env, run_config({"rollout_steps": steps, "minibatch_size": 6}))
    out = learner.buffer.next_slot()
    learner.collector.collect(out)
    generator = torch.Generator().manual_seed(0)
    for x in (out.reward, out.value):
        x.copy_(torch.randint(0, 4, x.shape, generator=generator))
    last = torch.randint(0, 4, (6,), generator=generator).float()
    following = next_values(out.value, last, out.final_value, out.terminated, out.truncated)
    found = gae(out.reward, out.value, following, out.done, out.active, 0.5, 1.0)
    assert torch.equal(found, advantages(out.reward, out.value, last, GAMES))
    assert not torch.equal(found, advantages(out.reward, out.value, last, 1)), "the control: every game an episode"


def advantages(reward: Tensor, value: Tensor, last: Tensor, games: int) -> Tensor:
    """Discounted rewards and what follows them, up to the end of the episode, minus the value."""
    steps, rows = reward.shape
    found = torch.zeros(steps, rows, dtype=torch.float64)
    for row in range(rows):
        for begin in range(steps):
            factor, t = 1.0, begin
            while True:
                found[begin, row] += factor * float(reward[t, row])
                factor, t = factor / 2, t + 1
                if bool(ends(t, games)[row]):
                    break
                if t == steps:
                    found[begin, row] += factor * float(last[row])
                    break
            found[begin, row] -= float(value[begin, row])
    return found.float()


# Opponents


class Remembers(Asked):
    """It counts the series, and the games of the current one, that began before its eyes."""

    began: Tensor
    games: Tensor

    def bind(self, state: GameState) -> None:
        super().bind(state)
        for name in ("began", "games"):
            self.register_buffer(name, torch.zeros(state.arenas, dtype=torch.int64))

    def begin(self, state: GameState, mask: Tensor) -> None:
        super().begin(state, mask)
        self.began += mask
        self.games.masked_fill_(mask, 1)

    def next_game(self, state: GameState, mask: Tensor) -> None:
        self.games += mask

    def exchange(self, slot: int, policy: Any) -> None:
        """Whoever it is now, nothing of it matters."""


def with_opponents(simulator: str = "warp", players: Callable[[], list[Player]] = lambda: [Remembers(), Remembers()],
                   games: int = GAMES) -> tuple[RocketEnv, Opponents]:
    """Four arenas, in all of which opponents play; games have 8 steps."""
    settings = config(simulator)
    assert settings.rocket is not None
    settings = settings.model_copy(update={"rocket": settings.rocket.model_copy(update={"games": games})})
    env, (line_up,) = environment(settings, lambda task: Opponents(task.action, players(), share=1.0))
    assert isinstance(line_up, Opponents)
    return env, line_up


def nothing() -> Tensor:
    """The row of the lookup table without any control."""
    return torch.full((8,), 8)


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_the_opponent_stays_for_a_series_and_every_game_counts(simulator: str) -> None:
    env, line_up = with_opponents(simulator)
    env.reset(0)
    who = [line_up.seats.clone()]
    for t in range(1, 8 * GAMES * 12 + 1):
        active = env.step(nothing()).active
        assert torch.equal(active, (who[-1] == 0).flatten())
        if t % (8 * GAMES):
            assert torch.equal(line_up.seats, who[-1]), "the same opponent on the same side"
        else:
            assert ((line_up.seats > 0) != (who[-1] > 0)).all(), "sides alternate from series to series"
            who.append(line_up.seats.clone())
        for player in line_up.players:
            assert isinstance(player, Remembers)
            assert (player.games == t // 8 % GAMES + 1).all() and (player.began == t // (8 * GAMES) + 1).all()
            assert (player.steps == t % (8 * GAMES)).all(), "what it remembers goes on from game to game"
        assert int(line_up.results.sum()) == 4 * (t // 8)
    assert len({tuple(seats.amax(-1).tolist()) for seats in who}) > 1, "who plays where is drawn anew"
    env.close()


def test_the_rest_of_a_series_counts_for_nobody_after_its_opponent_was_exchanged() -> None:
    env, line_up = with_opponents()
    env.reset(0)
    counted = []
    for t in range(1, 2 * 8 * GAMES + 1):
        env.step(nothing())
        if t == 10:
            line_up.exchange(0, None)
        if t % 8 == 0:
            counted.append(line_up.results.sum(-1).tolist())
    assert counted == [[2, 2], [2, 4], [2, 6], [4, 8], [6, 10], [8, 12]]
    env.close()


class KeepsCounting(Counts):
    """Its decisions are numbered over the whole series."""

    def next_game(self, state: GameState, mask: Tensor) -> None:
        """It forgets nothing."""


@pytest.mark.parametrize("pace", [Pace(8, 1), Pace(16, 9), Pace(24, 1)], ids=str)
def test_the_pace_of_a_player_begins_anew_with_every_game(pace: Pace) -> None:
    """Its decisions take effect at the same steps as in a new episode, only their numbers go on where the player remembers."""
    def told(player: Counts, series: bool) -> list[float]:
        state, mask = empty_arenas(), torch.ones(1, dtype=torch.bool)
        driver = driver_of(player, Pace(8, 1), state)
        controls = []
        for step in range(9):
            if step == 5:
                (driver.next_game if series else driver.begin)(state, mask)
            driven = driver.drive(torch.zeros(1, 2, 8), torch.ones(1, 2, 1, dtype=torch.bool))
            controls.append(float(driven[0, 0, 0]))
        return controls

    anew, forgetful = told(Counts(*pace), series=False), KeepsCounting(*pace)
    before = max(anew[:5])
    forgetful.forgets = True
    assert told(Counts(*pace), series=True) == anew == told(forgetful, series=True)
    decided = -(-5 // (pace.ticks // 8))  # up to the end of the first game, also those that have not taken effect
    kept = told(KeepsCounting(*pace), series=True)
    assert kept == [*anew[:5], *(x if x == BEFORE else x + decided for x in anew[5:])] and before <= decided


# Resume


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_saved_arenas_go_on_in_the_middle_of_a_series(simulator: str) -> None:
    def played(env: RocketEnv, line_up: Opponents, steps: int) -> list[Tensor]:
        kept = []
        for action in random_actions(env, steps):
            step = env.step(action)
            kept += [step.obs["obs"].clone(), step.reward.clone(), step.truncated.clone(), step.active.clone()]
            kept += [line_up.seats.clone(), line_up.results.clone()]
            kept += [player.games.clone() for player in line_up.players if isinstance(player, Remembers)]
        return kept

    env, line_up = with_opponents(simulator)
    env.reset(3)
    played(env, line_up, 8 * GAMES + 13)  # in the second game of the second series
    saved = {name: x.clone() for name, x in env.save_state().items()}
    assert saved["0.task.series.played"].tolist() == [1, 1, 1, 1]
    expected = played(env, line_up, 40)
    env.close()
    for name, change, same in (("as it was", 0, True), ("control", 1, False)):
        other, theirs = with_opponents(simulator)
        other.reset(4)
        other.load_state({**saved, "0.task.series.played": saved["0.task.series.played"] + change})
        found = played(other, theirs, 40)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True)) == same, name
        other.close()


@pytest.mark.parametrize(("before", "after", "ends_at"), [(1, 3, 19), (3, 1, 3), (3, 2, 3), (2, 5, 27)])
def test_a_run_goes_on_with_series_of_another_length(before: int, after: int, ends_at: int) -> None:
    """Games have 8 steps; the arenas are saved after 13, in the second game. Of that, one that was no series knows nothing."""
    env, _ = with_opponents(games=before)
    env.reset(0)
    for _ in range(13):
        env.step(nothing())
    other, _ = with_opponents(games=after)
    other.reset(1)
    other.load_state(env.save_state())
    ended = [bool(other.step(nothing()).truncated.any()) for _ in range(30)]
    assert ended.index(True) + 1 == ends_at
    for each in (env, other):
        each.close()


@pytest.mark.slow
def test_a_run_that_is_stopped_in_the_middle_of_series_learns_the_same(tmp_path: Path) -> None:
    """With memory, and opponents with memory: the snapshots of the run."""
    settings = (SERIES, "policy.memory={kind: gru, size: 8, sequence: 8}", "opponents.members=[chaser]", "rating=null")
    whole, stopped = (trained(tmp_path / name, *settings, "total_steps=3000", listeners=listeners)
                      for name, listeners in (("whole", ()), ("stopped", (Stop(7),))))
    arenas = load_file(max((stopped / "checkpoints").iterdir()) / "env.safetensors")
    assert all(arenas[f"{shard}.task.series.played"].any() for shard in (0, 1)), "first games of series are over"
    assert resume(str(stopped)) == 0
    one, other = (load_file(next((run / "final").iterdir()) / "policy.safetensors") for run in (whole, stopped))
    assert all(torch.equal(x, other[name]) for name, x in one.items())


# On a GPU


def test_a_step_of_a_series_reads_nothing_on_the_host() -> None:
    env, line_up = with_opponents(players=lambda: [Asked(), Asked()])
    env.reset(0)
    shard = env._shards[0]
    shard.on_host = line_up.on_host = False  # as on a GPU
    ended = []
    for _ in range(8 * GAMES):
        shard.send(nothing())
        shard.simulator.recv()
        receive, shard.simulator.recv = shard.simulator.recv, lambda: None
        place, shard.simulator.place = shard.simulator.place, lambda arenas: None
        with NoHostSync():
            step = shard.recv()
        shard.simulator.recv, shard.simulator.place = receive, place
        shard.simulator.place(torch.ones(4, dtype=torch.bool))
        ended.append(bool(step.truncated.all()))
    assert ended == [*[False] * (8 * GAMES - 1), True]
    env.close()


def test_a_series_counts_in_place() -> None:
    """A CUDA graph sees only tensors that stay the same."""
    series, state = Series(2), GameState.empty(4, 2)
    series.bind(state)
    addresses = [x.data_ptr() for x in (series.played, series.over)]
    over = torch.tensor([True, True, False, False])
    with NoHostSync():
        assert_ends = [series.ended(over), series.ended(~over), series.ended(over)]
        series.begin(state, over)
    assert [x.tolist() for x in assert_ends] == [[False] * 4, [False] * 4, over.tolist()]
    assert series.played.tolist() == [0, 0, 1, 1] and [x.data_ptr() for x in (series.played, series.over)] == addresses
