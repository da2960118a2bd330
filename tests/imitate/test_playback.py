"""Demonstrations played back: every sample in its turn, at every place of the file at the same time, and exactly on resume."""
from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from tests.imitate.cloners import cloner_of, made_up, spaces_of
from wavedash.envs.vec_env import EnvError
from wavedash.errors import UserError
from wavedash.imitate.demonstrations import read
from wavedash.imitate.playback import ACTION, KNOWN, Playback
from wavedash.imitate.samples import Samples, samples_of
from wavedash.imitate.split import split_episodes
from wavedash.saved import SavedError


class Place(NamedTuple):
    rank: int
    size: int


ALONE = Place(0, 1)


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    return samples_of(read(made_up(tmp_path / "d.safetensors", "discrete", unknown=0.2)), spaces_of("discrete"))


def playback(samples: Samples, rows: int, ranks: Place = ALONE) -> Playback:
    circle = split_episodes(Path("d"), samples, 0.3, 0).learned
    return Playback(samples, circle, spaces_of("discrete"), rows, ranks)


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (6, 1), (3, 2)])
def test_in_one_round_every_row_sees_every_sample_once_in_the_order_of_time(samples: Samples, rows: int, size: int) -> None:
    envs = [playback(samples, rows, Place(rank, size)) for rank in range(size)]
    circle = envs[0].circle
    steps = len(circle)
    starts = torch.cat([env.place for env in envs])
    assert starts.tolist() == [number * steps // (rows * size) for number in range(rows * size)]
    for env in envs:
        obs, seen = env.reset(0), []
        for _ in range(steps):
            at = env.current.clone()
            seen.append(at)
            assert torch.equal(obs, samples.obs[at])
            step = env.step(torch.zeros(rows))
            assert torch.equal(step.terminated, samples.begins[env.current])
            assert step.active.all() and step.final_obs is step.obs
            follows = ~step.terminated
            assert torch.equal(env.current[follows], at[follows] + 1)
            obs = step.obs
        every = torch.stack(seen)
        assert all(torch.equal(every[:, row].sort().values, circle.sort().values) for row in range(rows))


def test_a_state_of_other_places_or_files_is_refused(samples: Samples) -> None:
    env = playback(samples, 4)
    with pytest.raises(EnvError, match="were read at 3 places"):
        env.load_state({"place": torch.zeros(3, dtype=torch.int64)})
    with pytest.raises(SavedError, match="not between"):
        env.load_state({"place": torch.full((4,), 10_000)})
    with pytest.raises(UserError, match="fewer than the 200 places"):
        playback(samples, 200)


def test_a_rollout_holds_what_was_demonstrated_and_memory_of_it(tmp_path: Path) -> None:
    learner = cloner_of(tmp_path, "discrete", {"kind": "gru", "size": 8, "sequence": 4}, unknown=0.2)
    env = learner.env
    assert isinstance(env, Playback)
    at = env.current.clone()
    rollout = learner.buffer.next_slot()
    learner.collector.collect(rollout)
    place = env.circle.tolist().index(int(at[2]))
    numbers = env.circle[(place + torch.arange(8)) % len(env.circle)]
    assert isinstance(rollout.obs, torch.Tensor)
    assert torch.equal(rollout.obs[:, 2], env.samples.obs[numbers])
    assert torch.equal(rollout.labels[ACTION][:, 2], env.samples.action[numbers].float())
    assert torch.equal(rollout.labels[KNOWN][:, 2], env.samples.known[numbers].float())
    begins = env.samples.begins[env.circle[(env.circle.tolist().index(int(at[0])) + torch.arange(5)) % len(env.circle)]]
    remembered = rollout.memory["actor.h"][1, 0].any()
    assert bool(remembered) != bool(begins[4]), "memory is carried from sequence to sequence within an episode"


def test_reports_say_nothing_of_rewards(tmp_path: Path) -> None:
    learner = cloner_of(tmp_path, "discrete")
    for _ in range(4):
        metrics = learner.iterate().metrics
    assert metrics["recent/length"] > 1 and {"imitate/loss", "imitate/accuracy", "rollout/length"} <= metrics.keys()
    assert not [name for name in metrics if name.endswith(("return", "reward")) or name.startswith(("policy/", "loss/"))]
