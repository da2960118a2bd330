"""Depth images and scandots of walking robots on a CPU, beside rays of MuJoCo on the same height fields.

    wavedash bench sensors [--rounds N] [--robots N] [--resolution METRES]

Robots stand on tiles of 8 m: rough ground of 4 cm, and stairs 1.1 m high. MuJoCo tests all cells in the rectangle around a ray
between the lowest and the highest point of a tile, so that its rays take longer on high tiles; ours visit the cells on their
way. All contestants are in one process and take turns, so that a slow minute of the machine hits all; there are tables for one
thread and for as many as there are cores.
"""
from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from wavedash.bench.tables import print_rates, take_turns
from wavedash.threads import cores
from wavedash.walk.sensors.depth import DepthImages, Optics
from wavedash.walk.sensors.scan import Scan
from wavedash.walk.sensors.tiles import Tiles

TILE_METRES, TREAD, RISE, ROUGHNESS = 8.0, 0.31, 0.12, 0.04
PEER_IMAGES = 16
"""Images of MuJoCo per round: one takes as long as dozens of ours"""
NO_CUTOFF = 1e9
"""A smaller one made its rays no faster"""
Array = np.ndarray[Any, Any]
Poses = tuple[Tensor, Tensor, Tensor]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="wavedash bench sensors", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--robots", type=int, default=256)
    parser.add_argument("--resolution", type=float, default=0.05)
    options = parser.parse_args(arguments)
    for name, heights in terrain(options.resolution).items():
        tiles, field = Tiles(heights.unsqueeze(0), options.resolution), height_field(heights, options.resolution)
        poses = standing(tiles, options.robots)
        for threads in sorted({1, cores()}):
            contestants: dict[str, Callable[[], float]] = {
                "wavedash": partial(rate, DepthImages(tiles, options.robots, threads=threads), poses, 1),
                "mj_multiRay": partial(rate_of_mujoco, field, poses, threads)}
            where = f"{name}, cells of {options.resolution} m, {threads} thread(s)"
            print_rates(f"Depth images of 58 x 87, {where}", take_turns(contestants, options.rounds), "images/s")
            scans = {"wavedash": partial(rate, Scan(tiles, options.robots, threads=threads), poses, 50)}
            print_rates(f"132 scandots, {where}", take_turns(scans, options.rounds), "robots/s")


def terrain(resolution: float) -> dict[str, Tensor]:
    """Heights [Y, X] by name: rough ground, and a pyramid of stairs."""
    corners = int(TILE_METRES / resolution) + 1
    x = (torch.arange(corners) - (corners - 1) / 2) * resolution
    inwards = TILE_METRES / 2 - torch.maximum(x.abs()[:, None], x.abs()[None])
    stairs = (inwards.clamp(max=3.0) / TREAD).floor() * RISE
    rough = torch.rand(stairs.shape, generator=torch.Generator().manual_seed(0)) * ROUGHNESS
    return {"rough": rough, "stairs": stairs}


def standing(tiles: Tiles, robots: int) -> Poses:
    """Positions, orientations and tiles of robots whose trunk is 0.3 m above the ground, with any heading."""
    generator = torch.Generator().manual_seed(0)
    position = (torch.rand(robots, 3, generator=generator) - 0.5) * 0.75 * TILE_METRES
    yaw, tilt = torch.rand(robots, generator=generator) * 2 * np.pi, torch.randn(robots, 2, generator=generator) * 0.05
    orientation = torch.stack(((yaw / 2).cos(), tilt[:, 0], tilt[:, 1], (yaw / 2).sin()), 1)
    orientation /= orientation.norm(dim=1, keepdim=True)
    tile = torch.zeros(robots)
    position[:, 2] = Scan(tiles, robots, torch.zeros(1, 2))(position, orientation, tile)[:, 0] + 0.3
    return position, orientation, tile


def rate(sensor: Callable[..., Tensor], poses: Poses, repeats: int) -> float:
    """Robots per second."""
    began = perf_counter()
    for _ in range(repeats):
        sensor(*poses)
    return repeats * len(poses[0]) / (perf_counter() - began)


def height_field(heights: Tensor, resolution: float) -> Any:
    """A model with this tile as its height field."""
    rows, columns = heights.shape
    low, high = (float(x) for x in heights.aminmax())
    size = f"{(columns - 1) * resolution / 2} {(rows - 1) * resolution / 2} {high - low} 1"
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><asset><hfield name="tile" nrow="{rows}" ncol="{columns}" size="{size}"/>
        </asset><worldbody><geom type="hfield" hfield="tile" pos="0 0 {low}"/></worldbody></mujoco>""")
    model.hfield_data[:] = ((heights - low) / (high - low)).numpy().ravel()
    return model


def rate_of_mujoco(field: Any, poses: Poses, threads: int) -> float:
    """Images per second, each thread with images of its own. Rays are made before the clock starts."""
    position, orientation = (x[:PEER_IMAGES * threads].double().numpy() for x in poses[:2])
    jobs = [rays(p, q) for p, q in zip(position, orientation, strict=True)]
    with ThreadPoolExecutor(threads) as pool:
        began = perf_counter()
        list(pool.map(partial(_cast_all, field), [jobs[i::threads] for i in range(threads)]))
        return len(jobs) / (perf_counter() - began)


def rays(position: Array, orientation: Array) -> tuple[Array, Array]:
    """The eye and the directions [rows * columns, 3], of length 1, of the default camera."""
    optics, trunk = Optics(), np.zeros(9)
    mujoco.mju_quat2Mat(trunk, orientation)
    trunk = trunk.reshape(3, 3)
    sin, cos = np.sin(np.radians(optics.pitch)), np.cos(np.radians(optics.pitch))
    down, right = np.meshgrid((np.arange(optics.rows) + 0.5 - optics.rows / 2) * optics.pixel,
                              (np.arange(optics.columns) + 0.5 - optics.columns / 2) * optics.pixel, indexing="ij")
    local = np.stack((cos - sin * down, -right, -sin - cos * down), -1).reshape(-1, 3)
    return position + trunk @ np.array(optics.position), local @ trunk.T / np.linalg.norm(local, axis=1, keepdims=True)


def _cast_all(field: Any, jobs: list[tuple[Array, Array]]) -> None:
    data = mujoco.MjData(field)
    mujoco.mj_forward(field, data)
    for eye, directions in jobs:
        count = len(directions)
        mujoco.mj_multiRay(field, data, eye, directions.ravel(), None, 1, -1, np.zeros(count, np.int32), np.zeros(count), None,
                           count, NO_CUTOFF)
