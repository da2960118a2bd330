"""Robots of both simulators, set onto the ground in the same way."""
from __future__ import annotations

import torch

from wavedash.walk.robot import HOME, STANDING
from wavedash.walk.simulator import Simulator
from wavedash.walk.terrain.ground import Ground
from wavedash.walk.terrain.layout import tile

KINDS = ("rough", "slope", "slope_down", "stairs_up", "stairs_down", "obstacles", "stones", "gaps")
FOOTPRINT = torch.cartesian_prod(torch.linspace(-0.3, 0.3, 13), torch.linspace(-0.2, 0.2, 9))
"""Points under a robot, in m"""


def all_kinds(resolution: float = 0.05) -> Ground:
    """An easy and a hard tile of every kind of terrain that is not flat."""
    return Ground.named(dict.fromkeys(KINDS, 1), levels=2, layout=tile(resolution), seed=0)


def flat() -> Ground:
    return Ground.named({"flat": 1}, levels=1, layout=tile(0.1), seed=0)


def home(robots: int, device: torch.device | str = "cpu") -> torch.Tensor:
    return torch.tensor(HOME, device=device).repeat(robots, 1)


def everyone(simulator: Simulator) -> torch.Tensor:
    return torch.ones_like(simulator.broken)


def stand(simulator: Simulator, *, above: float = 0.0, reach: float = 0.0, seed: int = 0) -> None:
    """Places all robots in the standing pose, `above` m over the ground, up to `reach` m from the centre of their tiles, which
    they have in turn."""
    state, ground = simulator.state, simulator.ground
    robots = state.shape[0]
    state.memory.zero_()
    state.orientation[:, 0] = 1.0
    state.joint_position.copy_(home(robots, state.device))
    state.tile.copy_(torch.arange(robots) % len(ground.heights))
    generator = torch.Generator().manual_seed(seed)
    state.position[:, :2] = ((torch.rand(robots, 2, generator=generator) * 2 - 1) * reach).to(state.device)
    under = ground.height(state.tile, state.position[:, None, :2] + FOOTPRINT.to(state.device))
    state.position[:, 2] = under.amax(-1) + STANDING + above
    simulator.place(everyone(simulator))


def clearance(simulator: Simulator, points: torch.Tensor, within: float) -> torch.Tensor:
    """[E, P] m: how far points [E, P, 3] are above the lowest ground `within` so many m of them. Beside a wall the ground right
    under a point says little: a point that is below all ground around it is inside."""
    shifts = torch.cartesian_prod(*2 * [torch.linspace(-within, within, 7)])
    shifts = shifts[shifts.norm(dim=-1) <= within + 1e-6]
    around = (points[:, :, None, :2].cpu() + shifts).flatten(1, 2)
    ground = simulator.ground.to("cpu")
    lowest = ground.height(simulator.state.tile.cpu(), around).unflatten(1, (points.shape[1], -1)).amin(-1)
    return points[..., 2].cpu() - lowest
