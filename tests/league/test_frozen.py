"""Frozen policies as players: they play as in their own run, against any other player, and are refused where they cannot."""
from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.random_states import random_state
from wavedash.assembly import make_policy
from wavedash.config import EnvConfig
from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.errors import UserError
from wavedash.evaluate.against import play_against, play_match
from wavedash.evaluate.matches import Match, NoAction
from wavedash.league.frozen import FrozenPolicy
from wavedash.league.players import find_player
from wavedash.loading import LoadedRun, load_run
from wavedash.rocket.driver import Pace
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.line_up import Duel, Opponents
from wavedash.rocket.players import Chaser, Idle
from wavedash.rocket.task import Task
from wavedash.runs.find import resolve_checkpoint
from wavedash.training import train

pytestmark = pytest.mark.slow

QUICK = ("total_steps=64", "env.count=4", "ppo.rollout_steps=16", "ppo.minibatch_size=64", "report.console=off",
         "report.tensorboard=false", "device=cpu")
GRU = ("policy.hidden=[8]", "policy.memory={kind: gru, size: 8}", "ppo.normalize_obs=true",
       "env.rocket.action={multi_discrete: {sticky: 1}}",
       "env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}")
"""A policy that remembers in three places: its memory, the frames it observes, and the buttons it holds."""
KINDS = {
    "gru": GRU,
    "lstm": ("policy.hidden=[8]", "policy.memory={kind: lstm, size: 8}"),
    "plain": ("policy.hidden=[16, 16]", "env.rocket.observation=default_obs", "env.rocket.action=continuous"),
    "choices": ("policy.hidden=[16, 16]", "env.rocket.observation=default_obs", "env.rocket.action=multi_discrete"),
    "slow": ("policy.hidden=[8]", "env.rocket.action={lookup_table: {ticks: 12}}"),
    "fast": ("policy.hidden=[8]", "env.rocket.action={lookup_table: {ticks: 4}}"),
    "late": ("policy.hidden=[8]", "env.rocket.action={lookup_table: {delay: 2}}"),
    "narrow": ("policy.hidden=[8]", "env.rocket.orange=0", "rating=null",
               "env.rocket.observation={default_obs: {zero_padding: null}}"),
}
PACES = {"slow": (12, 1), "fast": (4, 1), "late": (8, 2)}
"""Ticks and delay of the kinds for which they are not 8 and 1."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        for name, overrides in KINDS.items():
            patch.setenv("WAVEDASH_RUNS", str(root / name))
            assert train("rocket-1v1", *QUICK, *overrides) == 0
    return {name: resolve_checkpoint(root / name).path.parent.parent for name in KINDS}


@pytest.mark.parametrize(("kind", "games"), [("gru", 1), ("lstm", 1), ("choices", 1), ("gru", 3), ("lstm", 3)])
def test_a_player_plays_bit_for_bit_as_its_policy_does_in_its_own_environment(runs, kind, games):
    """The reference is the environment of the run itself, with all rows driven by the policy. Games end at different times, and
    several may be one episode, which they remember. Choices are the same where roundings are not; continuous controls are
    compared in test_own_cars.py."""
    run = load_run(runs[kind])
    config = ending_soon(run, games)
    own, other = RocketEnv.configured(config), duel_in(config, run)
    obs = own.reset(3)
    other.reset(3)
    ended = 0
    for _ in range(100):
        step = own.step(run.policy.step(obs))
        done = step.terminated | step.truncated
        run.policy.reset(done)
        obs, ended = step.obs, ended + int(done.sum())
        other.step(torch.zeros(12, dtype=torch.int64))
        for arena in range(6):
            assert torch.equal(own.state_of(arena).memory, other.state_of(arena).memory)
    assert ended > 12


def ending_soon(run: LoadedRun, games: int) -> EnvConfig:
    """Arenas with the task of a run, in which series of so many games are over in 2 to 3 seconds."""
    ends = {"no_touch": {"seconds": 2 / games}, "time_out": {"seconds": 3 / games}}
    task = rocket_task(run.config.env, run.path).model_copy(
        update={"endings": ends, "starts": {"kickoff": 1.0, "random": 1.0}, "games": games})
    return run.config.env.model_copy(update={"count": 6, "workers": 0, "groups": 1, "rocket": task})


@pytest.mark.parametrize(("kind", "differ"), [("gru", True), ("choices", False)])
def test_what_a_policy_remembers_changes_how_it_plays_the_next_game(runs, kind, differ):
    """The control of the test above, and of the benchmark of adaptation: without the memory of a network, nothing differs."""
    config = ending_soon(load_run(runs[kind]), games=3)
    kept, cleared = (duel_in(config, load_run(runs[kind])) for _ in range(2))
    for player in cleared.tasks[0].line_up.players:
        player.forgets = True
    same = []
    for env in (kept, cleared):
        env.reset(3)
    for _ in range(60):
        for env in (kept, cleared):
            env.step(torch.zeros(12, dtype=torch.int64))
        same.append(all(torch.equal(kept.state_of(arena).memory, cleared.state_of(arena).memory) for arena in range(6)))
    first = round(2 / 3 * 15) - 1  # the first game that could end
    assert all(same[:first]) and all(same) != differ


def duel_in(config: EnvConfig, run: LoadedRun, ticks: int = 8) -> RocketEnv:
    """The same task in steps of so many ticks, with the cars driven by two copies of the policy."""
    def task() -> Task:
        made = Task.configured(config.rocket)
        made.action = NoAction(Pace(ticks, made.action.delay))
        made.line_up = Duel(made.action, FrozenPolicy.of_run(run), FrozenPolicy.of_run(run))
        return made

    return RocketEnv.configured(config, task=task)


@pytest.mark.parametrize("kind", ["gru", "plain"])
def test_a_policy_plays_the_same_from_the_other_end_of_the_field(runs, kind):
    state = random_state(100, 1, 1, seed=3, empty=0.0)
    controls = []
    for seen in (state, state.mirrored()):
        player = FrozenPolicy.of_run(load_run(runs[kind]))
        player.bind(seen)
        player.begin(seen, torch.ones(100, dtype=torch.bool))
        controls.append(player.drive(seen, torch.zeros(100, 2, 8)))
    different = (controls[0] - controls[1]).abs().amax(-1) > 1e-4
    assert different.float().mean() < 0.02, "but for choices that rounding decides"
    assert len(controls[0].flatten(0, 1).unique(dim=0)) > 1


@pytest.mark.parametrize(("first", "second"), [("gru", "plain"), ("plain", "lstm"), ("gru", "gru")])
def test_policies_with_other_networks_observations_and_parsers_play_each_other(runs, first, second):
    score, again = (play_against(runs[first], str(runs[second]), games=2, deterministic=False).scores["warp"] for _ in range(2))
    assert score.games == 2 and score == again, "the same games again"


def test_a_policy_that_does_not_fit_the_arenas_is_refused(runs):
    with pytest.raises(UserError, match="cannot play Rocket League 1v1: a car observes"):
        play_against(runs["lstm"], str(runs["narrow"]), games=2)


@pytest.mark.parametrize(("first", "second", "ticks"), [("lstm", "slow", 4), ("gru", "fast", 4), ("late", "lstm", 1)])
def test_policies_with_other_ticks_and_delays_play_each_other(runs, first, second, ticks):
    """In steps that suit both; how exactly each keeps its own pace in them is tested in tests/rocket/test_driver.py."""
    one, another = (FrozenPolicy.of_run(load_run(runs[kind])) for kind in (first, second))
    duel = Match(load_config("rocket-1v1").env, one, another, games=2)
    duel.env.reset(0)
    assert duel.env.step_seconds == ticks / 120
    for _ in range(48 // ticks):
        duel.env.step(torch.zeros(4, dtype=torch.int64))
    for driver, kind in zip(duel.line_up.drivers, (first, second), strict=True):
        assert (driver.every * ticks, driver.late * ticks + 1) == PACES.get(kind, (8, 1))
    duel.close()


def test_a_match_at_different_paces_is_played_to_its_end(runs):
    score = play_against(runs["gru"], str(runs["fast"]), games=2).scores["warp"]
    assert score.games == 2 and 0 < score.minutes <= 2


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_in_arenas_that_step_twice_as_often_a_policy_plays_as_in_its_own(runs, kind):
    """The reference is its own environment. Timers of boost pads are rounded once per step: games count until one is taken."""
    run = load_run(runs[kind])
    ends = {"time_out": {"seconds": 1}}
    task = rocket_task(run.config.env, run.path).model_copy(update={"endings": ends, "starts": {"kickoff": 1.0}})
    config = run.config.env.model_copy(update={"count": 6, "workers": 0, "groups": 1, "rocket": task})
    own, other = (duel_in(config, run, ticks) for ticks in (8, 4))
    for env in (own, other):
        env.reset(3)
    nothing, same, compared = torch.zeros(12, dtype=torch.int64), [True] * 6, 0
    for _ in range(60):  # episodes of 15 decisions
        own.step(nothing)
        for _ in range(2):
            other.step(nothing)
        for arena, (ours, theirs) in enumerate((own.state_of(arena), other.state_of(arena)) for arena in range(6)):
            same[arena] = (same[arena] or int(ours.game.tick) == 0) and not bool(ours.pads.timer.any())
            if same[arena]:
                assert torch.equal(ours.cars.controls, theirs.cars.controls)
                assert torch.equal(ours.cars.position, theirs.cars.position)
                compared += int(ours.game.tick) > 0 and bool(ours.cars.controls.any())
    assert compared > 100


def test_a_script_decides_as_often_as_the_policy_that_it_plays_against(runs):
    config = load_config("rocket-1v1").env
    duel = Match(config, Chaser(), FrozenPolicy.of_run(load_run(runs["slow"])), games=2)
    assert duel.env.step_seconds == 12 / 120 and all(driver.keeps_pace for driver in duel.line_up.drivers)
    duel.close()


def test_a_policy_with_gsde_keeps_its_noise_between_draws_and_gets_another_where_an_episode_begins():
    config = load_config("rocket-1v1", ["policy.hidden=[8]", "policy.std=gsde", "policy.gsde.sample_every=3",
                                        "env.rocket.action=continuous"])
    env = make_env(config.env.model_copy(update={"count": 1}))
    player = FrozenPolicy(make_policy(env, config), config.env.rocket, "a player", deterministic=False)
    env.close()
    state = random_state(4, 1, 1, seed=3, empty=0.0)
    player.bind(state)
    player.begin(state, torch.ones(4, dtype=torch.bool))
    drawn = []
    for step in range(8):
        if step == 4:
            player.begin(state, torch.arange(4) == 2)
        player.drive(state, torch.zeros(4, 2, 8))
        drawn.append(player.noise.clone())
    changed = [[step for step in range(1, 8) if not torch.equal(drawn[step][arena], drawn[step - 1][arena])]
               for arena in range(4)]
    assert changed == [[3, 6], [3, 6], [3, 4, 7], [3, 6]]
    assert "noise" in player.state_dict(), "a resumed run goes on with it"


# By name


def test_a_player_is_found_by_name(runs, tmp_path, monkeypatch):
    folder, checkpoint = tmp_path / "rung", resolve_checkpoint(runs["lstm"]).path
    folder.mkdir()
    shutil.copy(runs["lstm"] / "config.yaml", folder)
    for name in ("policy.safetensors", "state.json"):
        shutil.copy(checkpoint / name, folder)
    scores = []
    for path in (runs["lstm"], checkpoint, folder):
        player = find_player(str(path))
        assert isinstance(player, FrozenPolicy) and str(path) in str(player)
        scores.append(play_match(load_config("rocket-1v1").env, player, Idle(), games=2))
    assert scores[0] == scores[1] == scores[2]
    assert isinstance(find_player("Chaser"), Chaser) and isinstance(find_player("wavedash.rocket.players:Idle"), Idle)


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path):
    with pytest.raises(UserError, match=r"no player 'chasr'; did you mean 'chaser'\? A player is one of chaser, defender"):
        find_player("chasr")
    with pytest.raises(UserError, match="no checkpoint found"):
        find_player(str(tmp_path))


# In training


def opposed(runs: dict[str, Path], seed: int = 0) -> tuple[RocketEnv, Opponents]:
    """The learner's task differs from those of its two opponents, which sample their actions. Episodes are short."""
    config = load_config("rocket-1v1", ["env.count=6", "env.groups=1", "env.rocket.endings={time_out: {seconds: 1}}"]).env
    assert config.rocket is not None
    task = Task.configured(config.rocket)
    players = [FrozenPolicy.of_run(load_run(runs[kind]), deterministic=False, seed=seed) for kind in ("gru", "plain")]
    line_up = task.line_up = Opponents(task.action, players, share=0.7)
    return RocketEnv.configured(config, task=lambda: task), line_up


def test_saved_arenas_go_on_with_the_same_opponents_and_what_they_remember(runs):
    (first, line_up), (second, other) = opposed(runs, seed=1), opposed(runs, seed=2)
    actions = torch.randint(0, 90, (60, 12), generator=torch.Generator().manual_seed(1))
    first.reset(5)
    second.reset(6)
    for action in actions[:20]:  # in the middle of an episode
        first.step(action)
    second.load_state(first.save_state())
    played: set[int] = set()
    for action in actions[20:]:
        assert torch.equal(line_up.seats, other.seats)
        played |= set(line_up.seats.flatten().tolist())
        step, again = first.step(action), second.step(action)
        assert torch.equal(step.active, again.active) and torch.equal(step.reward, again.reward)
        assert all(torch.equal(first.state_of(arena).memory, second.state_of(arena).memory) for arena in range(6))
    assert played == {0, 1, 2}, "the policy and both opponents"


def test_a_line_up_has_no_host_sync(runs):
    """On a GPU a rollout with opponents is captured in a CUDA graph."""
    env, line_up = opposed(runs)
    env.reset(5)
    state = env._shards[0].state
    with NoHostSync():
        line_up.begin(state, torch.arange(6) % 2 == 0)
        assert len(env.generators) == 2
        for _ in range(2):
            line_up.drive(torch.zeros(6, 2, 8), torch.zeros(6, 2, 8))
