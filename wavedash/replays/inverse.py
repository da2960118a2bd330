"""The inverse model: which controls lead from one state of a car to the next. Replays carry throttle, steering, boost and
handbrake; how a car was pitched, rolled and when the button for jumps was down must be inferred.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from wavedash.errors import UserError
from wavedash.replays.replay import UNKNOWN, Replay
from wavedash.rocket.constants import BOOST_MAX, CAR_MAX_SPEED, CAR_MAX_SPIN, GRAVITY
from wavedash.rocket.state import BOOST, CONTROLS, HANDBRAKE, JUMP, PITCH, ROLL, STEER, STICKS, THROTTLE, YAW, GameState

SHIPPED = Path(__file__).with_name("inverse.safetensors")
BEFORE, AFTER = 1, 2
"""Moments before and after a decision that the model sees"""
GROUND = (THROTTLE, STEER, JUMP, BOOST, HANDBRAKE)
AIR = (PITCH, YAW, ROLL, JUMP, BOOST)
"""Controls that matter on the ground and in the air"""
LEVELS = 3
"""A stick is -1, 0 or 1; what lies between becomes the nearest"""


def features(moments: Replay, state: GameState) -> Tensor:
    """[K, C, F]: the motion of each car around each moment, in the axes of the car at this moment. Moments near the ends repeat
    the last one."""
    cars, count = state.cars, state.arenas
    step = float(moments.time[1] - moments.time[0]) if count > 1 else 1.0
    axes = cars.rotation  # [K, C, 3, 3]

    def at(values: Tensor, offset: int) -> Tensor:
        return values[(torch.arange(count) + offset).clamp(0, count - 1)]

    def local(vectors: Tensor) -> Tensor:
        return (axes.transpose(-1, -2) @ vectors.unsqueeze(-1)).squeeze(-1)

    flags = torch.stack([torch.from_numpy(values).float() for _, values in sorted(moments.chosen_flags.items())], -1)
    parts = [local(cars.velocity) / CAR_MAX_SPEED, axes[..., 2, :], cars.position[..., 2:] / 1000.0,
             cars.boost.unsqueeze(-1) / BOOST_MAX]
    for offset in range(-BEFORE, AFTER + 1):
        spin = local(at(cars.angular_velocity, offset)) / CAR_MAX_SPIN
        parts += [spin, at(cars.on_ground.float(), offset).unsqueeze(-1), at(flags, offset)]
    gravity = torch.tensor([0.0, 0.0, -GRAVITY * step])
    for offset in range(-BEFORE, AFTER):
        change = at(cars.velocity, offset + 1) - at(cars.velocity, offset) - gravity
        turned = at(cars.angular_velocity, offset + 1) - at(cars.angular_velocity, offset)
        parts += [local(change) / 200.0, local(turned)]
    parts.append((at(cars.boost, 1) - cars.boost).unsqueeze(-1) / 5.0)
    for values in (moments.throttle, moments.steer):
        byte = torch.from_numpy(np.asarray(values))
        parts += [((byte != UNKNOWN) * (byte - 128) / 127.0).float().unsqueeze(-1), (byte == UNKNOWN).float().unsqueeze(-1)]
    parts += [x.float().unsqueeze(-1) for x in (cars.has_jumped, cars.has_flipped, cars.has_double_jumped)]
    parts += [x.unsqueeze(-1) for x in (cars.flip_time, cars.air_time_since_jump.clamp(max=2.0), cars.jump_time)]
    return torch.cat(parts, -1).clamp(-10.0, 10.0)


class InverseModel(nn.Module):
    """Two hidden layers over `features`; for every stick three levels, for every button two."""

    mean: Tensor
    scale: Tensor

    def __init__(self, inputs: int, hidden: int = 128) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, LEVELS * len(CONTROLS)))
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))

    def forward(self, x: Tensor) -> Tensor:
        """[..., 8, 3] logits. A button's levels are: never, up, down."""
        logits = self.net((x - self.mean) / self.scale).unflatten(-1, (len(CONTROLS), LEVELS))
        never = torch.zeros_like(logits, dtype=torch.bool)
        never[..., STICKS:, 0] = True
        return logits.masked_fill(never, -1e9)

    @torch.no_grad()
    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[..., 8] controls and [..., 8] the probability that the model gives them."""
        probability, level = self(x).softmax(-1).max(-1)
        return level.float() - 1.0, probability

    def label(self, moments: Replay, state: GameState, controls: np.ndarray, carried: np.ndarray,
              confidence: float) -> tuple[Tensor, Tensor]:
        """[K, C, 8] controls: what the replay carries, else what the model says; and [K, C] whether all that matter here are
        known."""
        guess, probability = self.predict(features(moments, state))
        given = torch.from_numpy(carried)
        chosen = torch.where(given, torch.from_numpy(controls), guess)
        sure = torch.where(given, torch.ones_like(probability), probability) >= confidence
        ground = state.cars.on_ground
        known = torch.where(ground, sure[..., GROUND].all(-1), sure[..., AIR].all(-1))
        known[:BEFORE] = False
        known[len(known) - AFTER :] = False
        if len(known) > BEFORE + AFTER:
            # Nothing is inferred of the first moment. But who stays on the ground does not jump, and all else is carried: this
            # is how cars drive off at kick-offs, and who never saw that stands still there.
            stays = ground[0] & ground[1]
            known[0] = stays & given[0][..., [THROTTLE, STEER, BOOST, HANDBRAKE]].all(-1)
            chosen[0, ..., JUMP] = torch.where(stays, 0.0, chosen[0, ..., JUMP])
        # What does not matter cannot be inferred. As noise it would decide which action is the nearest one, so it is what
        # actions have there: sticks that agree on the way to turn, and no other turn on the ground.
        chosen[..., YAW] = torch.where(ground, chosen[..., STEER], chosen[..., YAW])
        chosen[..., STEER] = chosen[..., YAW]
        for turn in (PITCH, ROLL):
            chosen[..., turn] = torch.where(ground, 0.0, chosen[..., turn])
        return chosen, known


def levels_of(controls: Tensor) -> Tensor:
    """[..., 8] int64: the levels 0, 1, 2 that controls are nearest to."""
    return controls.round().clamp(-1, 1).long() + 1


def save_model(path: Path, model: InverseModel) -> None:
    from safetensors.torch import save

    from wavedash.runs.durable import replace_file
    replace_file(path, save(dict(model.state_dict()), {"format": "wavedash-inverse", "version": "1"}))


def load_model(name: str) -> InverseModel | None:
    """The model `shipped`, of a file, or None for `none`."""
    if name == "none":
        return None
    from safetensors.torch import load_file
    path = SHIPPED if name == "shipped" else Path(name)
    try:
        weights = load_file(path)
        hidden, inputs = weights["net.0.weight"].shape
        model = InverseModel(inputs, hidden)
        model.load_state_dict(weights)
    except Exception as error:
        raise UserError(f"{path} holds no inverse model ({error}); make one with `wavedash replays train-inverse FILE`, or "
                        "import with --inverse none") from error
    return model.eval()
