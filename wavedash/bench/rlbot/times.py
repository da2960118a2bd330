"""How long a bot takes: to start, and to answer a packet, with its own process or inside this one."""
from __future__ import annotations

import subprocess
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavedash.bench.rlbot.arena import Arena
from wavedash.bench.rlbot.host import Host
from wavedash.bench.rlbot.policies import Exported
from wavedash.rocket import names

WARM_UP = 40
"""Answers that are not counted: the first ones fill caches"""


@dataclass
class Times:
    """Milliseconds of every answer, and which of them were decisions."""

    cpu: list[float] = field(default_factory=list)
    """Of the thread alone: what other programs do does not count"""
    wall: list[float] = field(default_factory=list)
    decides: list[bool] = field(default_factory=list)

    def quantiles(self, values: Sequence[float], decisions: bool) -> tuple[float, float]:
        """The median and the 99th percentile, of all answers or of those with a decision."""
        chosen = [value for value, decides in zip(values, self.decides, strict=True) if decides or not decisions]
        p50, p99 = np.percentile(chosen[WARM_UP:], [50, 99])
        return float(p50), float(p99)


def packets_of(exported: Exported, ticks: int) -> list[Any]:
    """The packets of a game of the policy's size, in which all cars act at random."""
    size = exported.task.largest.larger
    arena, player = Arena(size, size, exported.task.hitbox), names.make("player", "random")
    player.bind(arena.state)
    packets, ticks_per_decision = [], exported.bot().pace.ticks
    controls = player.drive(arena.state, arena.state.cars.controls)
    for tick in range(ticks):
        packets.append(arena.packet())
        if tick % ticks_per_decision == 0:
            controls = player.drive(arena.state, controls)
        arena.tick(controls)
    arena.close()
    return packets


def time_answers(exported: Exported, packets: Sequence[Any]) -> Times:
    bot, times = exported.bot(), Times()
    for packet in packets:
        times.decides.append(bot.pace.decides(packet.match_info.frame_num))
        wall, cpu = time.perf_counter(), time.thread_time()
        bot.controls(packet, 0)
        times.cpu.append(1e3 * (time.thread_time() - cpu))
        times.wall.append(1e3 * (time.perf_counter() - wall))
    return times


def start_seconds(folder: Path, python: str) -> float:
    """From the start of the bot's process until it is ready to play."""
    with Host(folder / "bot.toml", command=[python, "run.py"]) as host:
        host.end()
        return host.start_seconds


def fresh_python(bot: Path, folder: Path) -> str:
    """The interpreter of a new virtual environment that holds the requirements of a bot and nothing else."""
    venv.create(folder, with_pip=True)
    python = str(next(path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists()))
    subprocess.run([python, "-m", "pip", "install", "-qq", "-r", str(bot / "requirements.txt")], check=True)
    return python
