"""More than 10,000 decisions in games of RocketSim: what the bot makes of packets is what the trainer makes of the state."""
from __future__ import annotations

import numpy as np
import pytest

from tests.rlbot.bots import bot_of
from wavedash.bench.rlbot.arena import Arena
from wavedash.bench.rlbot.moments import Counts, watch
from wavedash.rlbot.bot import car, motion
from wavedash.rlbot.bot.brain import Brain
from wavedash.rlbot.rotation import from_euler
from wavedash.rocket import names

pytest.importorskip("rlbot.flat")

GEOMETRY = {"wheel_contact", "has_contact", "on_ground", "has_flip", "air_time"}
"""Found by rays and boxes, or following from that: at edges Bullet may decide otherwise"""


def looked_on(name: str, opponent: str, ticks: int, seed: int = 0) -> Counts:
    bot, counts = bot_of(name), Counts()
    arena = Arena(bot.task.blue, bot.task.orange, bot.task.hitbox, seed)
    watch(arena, bot.trained(), bot.trained() if opponent == "itself" else names.make("player", opponent), ticks, counts)
    arena.close()
    return counts


@pytest.mark.slow
@pytest.mark.parametrize(("name", "opponent", "ticks", "moments"), [
    ("champion", "itself", 4000, 1000), ("champion", "chaser", 2400, 300), ("gru-2v2", "itself", 4000, 2000),
    ("frames-2v2", "random", 3000, 1000), ("lstm-3v3", "itself", 7600, 5700), ("beta-1v1", "itself", 1200, 300),
])
def test_the_bot_sees_and_does_what_the_trainer_does(name: str, opponent: str, ticks: int, moments: int) -> None:
    counts = looked_on(name, opponent, ticks)
    assert counts.controls.total >= moments
    assert all(any(part in name for part in GEOMETRY) for name in counts.numbers), counts.numbers
    for what, apart in (("seen", counts.seen), ("masks", counts.masks), ("controls", counts.controls)):
        assert apart.total - apart.equal <= 0.005 * apart.total, (what, apart, counts.numbers)
    for what, apart in counts.cars.items():
        differ = apart.total - apart.equal
        assert differ <= (0.005 * apart.total if what in GEOMETRY else 0), (what, apart)


def test_rotations_of_the_bot_are_those_of_packets() -> None:
    """The bot has a formula of its own, as it may import nothing else."""
    random = np.random.default_rng(0)
    for pitch, yaw, roll in random.uniform(-np.pi, np.pi, (1000, 3)).tolist():
        np.testing.assert_allclose(motion.rotation_of(pitch, yaw, roll), from_euler(pitch, yaw, roll), atol=1e-7)


def test_a_mirrored_dodge_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    read = car.Car._read

    def mirrored(self: car.Car, player: object) -> None:
        read(self, player)
        self.flip_torque = self.flip_torque * np.float32([-1, 1, 1])

    monkeypatch.setattr(car.Car, "_read", mirrored)
    counts = looked_on("frames-2v2", "random", 600)
    assert counts.cars["flip_torque"].equal < counts.cars["flip_torque"].total and counts.numbers["own.flip_torque.x"]


def test_a_cleared_previous_action_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Brain.decide

    def forgetful(self: Brain, game: dict[str, np.ndarray], me: int) -> np.ndarray:
        self.controls = np.zeros(8, np.float32)
        return decide(self, game, me)

    monkeypatch.setattr(Brain, "decide", forgetful)
    counts = looked_on("frames-2v2", "random", 100)
    assert counts.seen.equal < 0.5 * counts.seen.total and any(name.startswith("previous") for name in counts.numbers)
