"""Random terrain, poses of robots, and MuJoCo's rays on the same height field: the reference of all sensors."""
from __future__ import annotations

import mujoco
import numpy as np
import torch

RESOLUTION = 0.1


def random_heights(tiles: int = 3, rows: int = 41, columns: int = 31, seed: int = 0) -> torch.Tensor:
    """Tiles of 4 x 3 m: noise, stairs along x, pits between stones."""
    generator = torch.Generator().manual_seed(seed)
    heights = torch.rand(tiles, rows, columns, generator=generator) * 0.08
    heights[1] += (torch.arange(columns) // 3) * 0.12
    pits = torch.rand(rows // 4 + 1, columns // 4 + 1, generator=generator) < 0.4
    heights[2] -= pits.repeat_interleave(4, 0).repeat_interleave(4, 1)[:rows, :columns] * 0.9
    return heights


def random_poses(count: int, reach: float, height: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions [N, 3] and orientations [N, 4] in any direction, also upside down."""
    generator = torch.Generator().manual_seed(seed)
    position = (torch.rand(count, 3, generator=generator) * 2 - 1) * reach
    position[:, 2] = torch.rand(count, generator=generator) * height
    orientation = torch.randn(count, 4, generator=generator)
    return position, orientation / orientation.norm(dim=1, keepdim=True)


class Field:
    """One tile as a height field of MuJoCo, on a base of ten metres."""

    def __init__(self, heights: torch.Tensor, resolution: float = RESOLUTION) -> None:
        rows, columns = heights.shape
        low, span = float(heights.min()), max(float(heights.max() - heights.min()), 1e-3)
        size = f"{(columns - 1) * resolution / 2} {(rows - 1) * resolution / 2} {span} 10"
        self.model = mujoco.MjModel.from_xml_string(f"""<mujoco><asset>
            <hfield name="ground" nrow="{rows}" ncol="{columns}" size="{size}"/></asset>
            <worldbody><geom type="hfield" hfield="ground" pos="0 0 {low}"/></worldbody></mujoco>""")
        self.model.hfield_data[:] = ((heights - low) / span).numpy().ravel()
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)

    def cast(self, eye: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """[R] for directions [R, 3]: multiples of each direction to the first hit, infinite where there is none. A ray at a
        time: mj_multiRay prunes by angles, this does not."""
        found = np.full(len(directions), np.inf)
        geom = np.zeros(1, np.int32)
        for i, direction in enumerate(directions):
            length = np.linalg.norm(direction)
            distance = mujoco.mj_ray(self.model, self.data, eye, direction / length, None, 1, -1, geom)
            if geom[0] >= 0:
                found[i] = distance / length
        return found

    def height(self, x: float, y: float) -> float:
        return float(100 - self.cast(np.array([x, y, 100.0]), np.array([[0.0, 0.0, -1.0]]))[0])


def rotation(orientation: torch.Tensor) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, orientation.double().numpy())
    return matrix.reshape(3, 3)
