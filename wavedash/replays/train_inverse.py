"""Trains the inverse model in our simulator and measures it on games of RocketSim, which it has not seen."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from wavedash.replays.filters import segments, sort_out
from wavedash.replays.generate import BEGIN, EVERY, Played, as_replay, play
from wavedash.replays.inverse import AFTER, BEFORE, InverseModel, features, levels_of
from wavedash.replays.replay import UNKNOWN
from wavedash.replays.resample import resample
from wavedash.replays.states import carried_controls, states_of
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.state import CONTROLS

TICKS = 8
JITTER = 1.0 / TICK_RATE
"""Seconds by which times of frames are wrong: in recorded games the way between two frames and velocity times time differ by
about a sixth, which is this much of 0.04 s"""
SITUATIONS = ("on the ground", "in the air", "flipping")


@dataclass
class Samples:
    """N cars at moments."""

    inputs: Tensor
    """[N, F]"""
    level: Tensor
    """[N, 8]: the true level of every control"""
    carried: Tensor
    """[N, 8]: the level that the replay alone gives"""
    situation: Tensor
    """[N]: index into SITUATIONS"""


def samples_of(played: Played, seed: int, without_sticks: float) -> Samples:
    """All moments of the games that have neighbours. A share `without_sticks` of the games carries no throttle and steering."""
    random, found = np.random.default_rng(seed), []
    controls = torch.stack(played.controls)  # [S, E, C, 8]
    for arena in range(played.states[0].arenas):
        replay, _ = as_replay(played, arena, seed + arena, jitter=JITTER)
        if random.random() < without_sticks:
            replay.throttle[:], replay.steer[:] = UNKNOWN, UNKNOWN
        for run in segments(replay, sort_out(replay))[0]:
            if len(run) < 4 * (BEFORE + AFTER + 1):
                continue
            moments = resample(replay, run, TICKS)
            state = states_of(moments)
            middle = (moments.time - BEGIN) * TICK_RATE / EVERY + TICKS / EVERY / 2
            true = controls[torch.from_numpy(middle.astype(int)).clamp(0, len(controls) - 1), arena]
            situation = torch.where(state.cars.is_flipping, 2, torch.where(state.cars.on_ground, 0, 1))
            carried = levels_of(torch.from_numpy(carried_controls(moments)[0]))
            inner = slice(BEFORE, len(middle) - AFTER)
            found.append([x[inner].flatten(0, 1) for x in (features(moments, state), levels_of(true), carried, situation)])
    return Samples(*(torch.cat(column) for column in zip(*found, strict=True)))


def training_data(simulator: Simulator, rounds: int, seed: int) -> Samples:
    """Samples of some rounds of games of 8 s."""
    parts = [samples_of(play(simulator, 120, TICKS, seed + i), seed + 1000 * i, without_sticks=0.5) for i in range(rounds)]
    return Samples(*(torch.cat([vars(part)[name] for part in parts]) for name in vars(parts[0])))


def train(samples: Samples, steps: int, seed: int, show: Callable[[str], None] = lambda text: None) -> InverseModel:
    """A model that predicts the levels of all controls."""
    torch.manual_seed(seed)
    model = InverseModel(samples.inputs.shape[-1])
    model.mean.copy_(samples.inputs.mean(0))
    model.scale.copy_(samples.inputs.std(0).clamp(min=0.01))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for step in range(steps):
        batch = torch.randint(len(samples.inputs), (1024,))
        loss = F.cross_entropy(model(samples.inputs[batch]).flatten(0, 1), samples.level[batch].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        if (step + 1) % 1000 == 0:
            show(f"step {step + 1} of {steps}: loss {float(loss.detach()):.3f}")
    return model.eval()


def accuracies(model: InverseModel, held_out: Samples, commonest: Tensor) -> dict[str, dict[str, Tensor]]:
    """For every situation and all of them: the shares of right levels [8] of the model, of always the commonest level of the
    training data, and of what the replay alone gives."""
    guess = levels_of(model.predict(held_out.inputs)[0])
    result = {}
    for index, name in enumerate((*SITUATIONS, "all")):
        chosen = held_out.situation == index if name != "all" else torch.ones_like(held_out.situation, dtype=torch.bool)
        level = held_out.level[chosen]
        result[name] = {"model": (guess[chosen] == level).float().mean(0), "commonest": (commonest == level).float().mean(0),
                        "replay": (held_out.carried[chosen] == level).float().mean(0), "count": chosen.sum()}
    return result


def accuracy_table(found: dict[str, dict[str, Tensor]]) -> str:
    """Percent right: model / always the commonest / the replay alone."""
    lines = ["percent right: model / always the commonest / what the replay carries",
             f"{'control':12}" + "".join(f"{name + ' (' + str(int(row['count'])) + ')':>26}" for name, row in found.items())]
    for index, control in enumerate(CONTROLS):
        cells = (" / ".join(f"{100 * float(row[key][index]):.1f}" for key in ("model", "commonest", "replay"))
                 for row in found.values())
        lines.append(f"{control:12}" + "".join(f"{cell:>26}" for cell in cells))
    return "\n".join(lines)


def commonest_levels(samples: Samples) -> Tensor:
    """[8]"""
    return samples.level.mode(0).values


def train_and_measure(rounds: int, steps: int, seed: int, show: Callable[[str], None]) -> tuple[InverseModel, str]:
    """A model, and the table of its accuracy."""
    from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
    from wavedash.rocket.sim.simulator import WarpSimulator
    simulator = WarpSimulator(64, 1, 1)
    samples = training_data(simulator, rounds, seed)
    simulator.close()
    show(f"{len(samples.inputs):,} samples of our simulator")
    model = train(samples, steps, seed, show)
    other = RocketSimSimulator(16, 1, 1)
    held_out = samples_of(play(other, 120, TICKS, seed + 10_000), seed + 20_000, without_sticks=0.0)
    other.close()
    show(f"{len(held_out.inputs):,} samples of RocketSim, held out")
    return model, accuracy_table(accuracies(model, held_out, commonest_levels(samples)))
