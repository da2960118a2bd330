"""A written bot is held against the trainer: both see the same random states and must choose the same."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wavedash.envs.obs import ACTION_MASK
from wavedash.export.actor import Actor
from wavedash.export.agreement import TOLERANCE, DisagreementError
from wavedash.rlbot.bot.brain import Brain
from wavedash.rocket.parts import Action, Observation
from wavedash.rocket.state import GameState

Array = NDArray[Any]
STEPS = 200
REPORT = "nothing can be exported. Please report this with the config.yaml of the run"


@dataclass(frozen=True)
class BotAgreement:
    """What was compared, and the largest differences that were found."""

    decisions: int
    observation: float
    choice: float
    """Of actions, or of the logarithms of their probabilities"""


@torch.no_grad()
def compare_with_trainer(folder: Path, observation: Observation, action: Action, actor: Actor,
                         state: GameState) -> BotAgreement:
    """Lets the bot of a folder and the trainer's own parts decide for all cars of random states, each with a memory of its
    own. Raises DisagreementError at the first difference beyond rounding."""
    seats, random = state.seats, np.random.default_rng(0)
    bots = [Brain(folder) for _ in range(seats)]
    everywhere, controls = torch.ones(1, dtype=torch.bool), torch.zeros(1, seats, 8)
    observation.begin(state, everywhere)
    action.begin(state, everywhere)
    memory = actor.trunk.initial_state(seats)
    seen_apart = apart = 0.0
    for step in range(STEPS):
        randomise(state, random)
        seen, mask = observation.build(state, controls).flatten(0, 1), action.mask(state)
        obs: Any = seen if mask is None else {"obs": seen, ACTION_MASK: mask.flatten(0, 1).to(torch.int8)}
        outputs = actor(actor.inputs(obs, memory))
        memory = {part: outputs[f"next_memory_{part}"] for part in memory}
        game = arrays_of(state)
        own = np.stack([bot.decide(game, seat) for seat, bot in enumerate(bots)])
        actions = torch.from_numpy(np.stack([bot.action for bot in bots])).view(1, seats, *outputs["action"].shape[1:])
        controls = action.parse(actions, state)
        seen_apart = max(seen_apart, _compare("observation", np.stack([bot.seen for bot in bots]), seen.numpy(), step))
        apart = max(apart, _compare("choice", *_choices(outputs, actions.flatten(0, 1)), step))
        _compare("controls", own, controls[0].numpy(), step)
    return BotAgreement(STEPS * seats, seen_apart, apart)


def _choices(outputs: Mapping[str, torch.Tensor], actions: torch.Tensor) -> tuple[Array, Array]:
    """Returns what is compared of the bot's actions: the actions themselves, or where they are choices how likely the trainer
    finds them, since of two that are equally likely rounding decides."""
    if "log_probs" not in outputs:
        return actions.numpy(), outputs["action"].numpy()
    log_probs = outputs["log_probs"]
    return log_probs.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1).numpy(), log_probs.amax(-1).numpy()


def arrays_of(state: GameState) -> dict[str, Array]:
    """The first arena as the bot knows a game."""
    arrays = {name: value[0].numpy() for name, value in vars(state.cars).items() if torch.is_tensor(value)}
    ball = [state.ball.position[0], state.ball.rotation[0].flatten(), state.ball.velocity[0], state.ball.angular_velocity[0]]
    return arrays | {"ball": torch.cat(ball).numpy(), "pads": state.pads.timer[0].numpy()}


def randomise(state: GameState, random: np.random.Generator) -> None:
    """Any numbers that a game may have, whether or not they go together."""
    def draw(low: float, high: float, x: torch.Tensor) -> None:
        x.copy_(torch.from_numpy(random.uniform(low, high, tuple(x.shape)).astype(np.float32)))

    for body in (state.ball, state.cars):
        draw(-3000.0, 3000.0, body.position)
        draw(-2300.0, 2300.0, body.velocity)
        draw(-5.5, 5.5, body.angular_velocity)
        draw(-1.0, 1.0, body.rotation)
    cars = state.cars
    draw(0.0, 100.0, cars.boost)
    cars.boost[:] *= torch.from_numpy(random.random(tuple(cars.boost.shape)) > 0.2)
    for name in ("boost_time", "supersonic_time", "handbrake", "air_time", "air_time_since_jump", "jump_time", "flip_time",
                 "auto_flip_timer", "demo_timer"):
        draw(0.0, 1.5, getattr(cars, name))
    cars.flip_torque.copy_(torch.from_numpy(random.integers(-1, 2, tuple(cars.flip_torque.shape)).astype(np.float32)))
    for name in ("wheel_contact", "on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_jumping", "is_flipping",
                 "is_auto_flipping", "is_supersonic", "is_demoed", "has_contact"):
        flag = getattr(cars, name)
        flag.copy_(torch.from_numpy(random.random(tuple(flag.shape)) < 0.5))
    cars.demo_timer[:] *= cars.is_demoed
    cars.controls.copy_(torch.from_numpy(random.integers(0, 2, tuple(cars.controls.shape)).astype(np.float32)))
    draw(-5.0, 10.0, state.pads.timer)
    state.pads.timer.clamp_(min=0.0)


def _compare(what: str, bot: Array, trained: Array, step: int) -> float:
    """The largest difference, relative where numbers are above 1."""
    if bot.shape != trained.shape:
        raise DisagreementError(f"the written bot has {bot.shape} numbers of {what}, the trainer {trained.shape}; {REPORT}")
    apart = float((np.abs(bot - trained) / np.maximum(1.0, np.abs(trained))).max(initial=0.0))
    if not apart <= TOLERANCE:
        raise DisagreementError(f"the written bot differs from the trainer by {apart:.3g} in {what} at step {step}; {REPORT}")
    return apart
