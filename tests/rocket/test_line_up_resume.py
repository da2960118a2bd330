"""A run is resumed with another line-up: players are added, removed, or get another share of the arenas."""
from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.rocket.test_driver import Counts
from wavedash.config_file import load_config
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Opponents
from wavedash.rocket.parts import Player
from wavedash.rocket.players import Chaser
from wavedash.rocket.task import Task
from wavedash.training import resume, train

PLAYERS = {"chaser": Chaser, "counts": Counts, "slow": lambda: Counts(16, 9), "slower": lambda: Counts(24, 1)}


def arenas(count: int, device: torch.device, groups: int = 1, players: str = "", share: float = 0.5) -> RocketEnv:
    """A factory for `env.factory`. Buttons are sticky, so that the action parser has memory too."""
    config = load_config("rocket-1v1", [
        f"env.count={count}", f"env.groups={groups}", "env.rocket.endings={time_out: {seconds: 2}}",
        "env.rocket.action={lookup_table: {sticky: 2}}",
        "env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}",
    ]).env
    assert config.rocket is not None
    rocket = config.rocket

    def task() -> Task:
        made = Task.configured(rocket)
        if players:
            made.line_up = Opponents(made.action, [make_player(name) for name in players.split()], share)
        return made

    return RocketEnv.configured(config, device, task)


def make_player(name: str) -> Player:
    return PLAYERS[name]()


def played(env: RocketEnv, steps: int, seed: int) -> tuple[list[Tensor], list[Tensor]]:
    """The states of all arenas and the active rows, step by step."""
    actions = torch.randint(0, 90, (steps, env.num_rows), generator=torch.Generator().manual_seed(seed))
    states, active = [], []
    for action in actions:
        active.append(env.step(action).active.clone())
        states.append(torch.cat([env.state_of(arena).memory for arena in range(env.num_rows // 2)]))
    return states, active


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "untouched"), [
    ({}, {"players": "counts slow", "share": 0.5}, 4),
    ({"players": "counts slow", "share": 0.5}, {}, 4),
    ({"players": "slow", "share": 0.25}, {"players": "slow", "share": 0.75}, 2),
    ({"players": "slow", "share": 0.75}, {"players": "slow", "share": 0.25}, 2),
    ({"players": "counts", "share": 0.5}, {"players": "counts slow", "share": 0.5}, 4),
    ({"players": "counts", "share": 0.5}, {"players": "slow", "share": 0.5}, 4),
    ({"players": "slow", "share": 0.5}, {"players": "slower", "share": 0.5}, 4),
    ({"players": "counts counts slow", "share": 0.5}, {"players": "counts", "share": 0.5}, 4),
], ids=str)
def test_saved_arenas_go_on_with_another_line_up(before, after, untouched):
    """They are saved in the middle of episodes of 15 steps. Arenas in which the policy has all cars do not change."""
    env, other = arenas(8, "cpu", **before), arenas(8, "cpu", **after)
    env.reset(3)
    other.reset(4)
    played(env, 10, seed=1)
    other.load_state(env.save_state())
    states, active = played(env, 4, seed=2)
    again, active_again = played(other, 4, seed=2)
    for ours, theirs in zip(states, again, strict=True):
        assert torch.equal(ours[:untouched], theirs[:untouched])
    line_up = other.tasks[0].line_up
    played(other, 30, seed=3)
    if line_up is None:
        assert all(rows.all() for rows in active_again)
    else:
        last = torch.stack(played(other, 30, seed=4)[1])
        assert last[:, : 2 * line_up.where.start].all() and not last[:, 2 * line_up.where.start:].all()
        assert int(line_up.seats.max()) <= line_up.slots, "players that were removed have no seat"
    if len(after.get("players", "").split()) == len(before.get("players", "").split()) and before["share"] == after["share"]:
        assert all(torch.equal(a, b) for a, b in zip(active, active_again, strict=True)), "seats are kept"
    env.close()
    other.close()


@pytest.mark.parametrize("players", ["counts counts slow", "chaser slower"])
def test_saved_arenas_go_on_with_their_slots_and_results_bit_for_bit(players):
    """They are saved between two ends of episodes; slots are exchanged at those that follow."""
    env, other = (arenas(24, "cpu", groups=2, players=players, share=0.5) for _ in range(2))
    env.reset(3)
    other.reset(4)
    played(env, 40, seed=1)
    other.load_state(env.save_state())
    before = [task.line_up.place.clone() for task in env.tasks]
    states, active = played(env, 40, seed=2)
    again, active_again = played(other, 40, seed=2)
    for ours, theirs in ((states, again), (active, active_again)):
        assert all(torch.equal(x, y) for x, y in zip(ours, theirs, strict=True))
    for task, same, place in zip(env.tasks, other.tasks, before, strict=True):
        assert task.line_up.results.sum() == 12 and not torch.equal(task.line_up.place, place)
        for name, x in task.line_up.state_dict().items():
            assert torch.equal(x, same.line_up.state_dict()[name]), name
    env.close()
    other.close()


def test_a_run_is_resumed_with_a_line_up_and_without_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The runs are real ones, with two shards of arenas, each of which has its own players."""
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    quick = ("env.rocket=null", "rating=null", "env.factory=tests.rocket.test_line_up_resume:arenas", "env.count=8",
             "env.groups=2", "ppo.rollout_steps=8", "ppo.minibatch_size=64", "policy.hidden=[8]", "report.console=off",
             "report.tensorboard=false")
    assert train("rocket-1v1", "total_steps=256", *quick) == 0
    (run,) = (tmp_path / "rocket-1v1").iterdir()
    for total, kwargs in ((512, "{players: slow chaser, share: 0.5}"), (768, "{players: slow, share: 0.25}"), (1024, "{}")):
        assert resume(str(run), f"total_steps={total}", f"env.kwargs={kwargs}") == 0
