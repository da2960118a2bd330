"""`wavedash eval RUN` of a walking run: all robots walk the course once, and what became of each is counted."""
from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import torch
from torch import Tensor

from wavedash.envs.vec_env import Obs, Step
from wavedash.loading import LoadedRun, load_run
from wavedash.ppo.graphs import CapturedCall
from wavedash.seeding import stream_seed
from wavedash.threads import decide_threads, set_torch_threads
from wavedash.trained_policy import TrainedPolicy
from wavedash.walk.env import WalkEnv
from wavedash.walk.evaluate.course import SPEED, Course, Watch, platform, way
from wavedash.walk.evaluate.results import GRAVITY, Tile, WalkingResult
from wavedash.walk.model import robot_spec
from wavedash.walk.robot import STEP

ROBOTS = 20
"""Robots on each tile"""
MOST_ON_CPU, MOST_ON_GPU = 1_024, 16_384
"""Robots that walk at the same time; more of them walk one after another"""
PATIENCE = 50
"""Steps between two looks at whether anybody still walks, which are a host sync"""

Progress = Callable[[float], None]


def evaluate_walking(
    run: str | Path | LoadedRun, robots: int | None = None, deterministic: bool = True, seed: int = 1, trust: bool = False,
    progress: Progress | None = None, terrain: Sequence[str] | None = None, levels: Sequence[int] | None = None,
    noisy: bool = False, pushes: bool = False, speed: float = SPEED, seconds: float | None = None,
) -> WalkingResult:
    """Measures a policy on tracks of all its kinds of terrain and levels, or of `terrain` and `levels`, with so many `robots`
    on each; see `Course.of`. `progress` is told the share that is done."""
    loaded = run if isinstance(run, LoadedRun) else load_run(run, trust=trust).to_run_device()
    walk = loaded.config.env.walk
    assert walk is not None
    course = Course.of(walk, terrain, levels, noisy, pushes, speed, seconds, seed)
    device, each = loaded.policy.device, robots or ROBOTS
    rounds = -(-len(course.tiles) * each // (MOST_ON_CPU if device.type == "cpu" else MOST_ON_GPU))
    at_once = -(-each // rounds)
    decide_threads(loaded.config.threads)
    env, watch = course.make_env(at_once, device)
    with closing(env):
        loaded.check_spaces(env)
        set_torch_threads(env.num_rows, loaded.policy.policy.config)
        limit = course.limit(env.ground)
        advance = stepping(env)
        played = []
        for number in range(rounds):
            env.reset(stream_seed(seed, "evaluation", number))
            told = None if progress is None else _part(progress, number, rounds)
            played.append(_walk(env, watch, loaded.policy, deterministic, round(limit / STEP), told, advance))
        found = {name: torch.cat([x[name].view(len(course.tiles), at_once) for x in played], 1)[:, :each] for name in played[0]}
        goal = course.goal(env.ground)
        found["success"] = (found["distance"] >= goal) & ~(found["fell"] | found["left"] | found["broken"])
        return WalkingResult(
            loaded.path, deterministic, noisy, pushes, speed, way(env.ground), platform(env.ground), limit, goal,
            GRAVITY * _mass(), list(_tiles(env, course.tiles, found)), course.walk.terrain_seed, int(found["broken"].sum()))


def stepping(env: WalkEnv) -> Callable[[Tensor], Step]:
    """`env.step`. On CUDA it replays a graph of it, because a step is a thousand small kernels, and to launch them one by one
    takes longer than they do. A result is overwritten by the next step."""
    if not env.capturable:
        return env.step
    given = torch.zeros(env.num_rows, *env.action_space.shape, device=env.device)
    call = CapturedCall(lambda: env.step(given), "a step of the course", env.generators)

    def advance(action: Tensor) -> Step:
        given.copy_(action)
        return call()

    return advance


@torch.no_grad()
def _walk(env: WalkEnv, watch: Watch, policy: TrainedPolicy, deterministic: bool, steps: int, progress: Progress | None,
          advance: Callable[[Tensor], Step] | None = None) -> dict[str, Tensor]:
    """[E] of each quantity: the first episode of every robot, on the CPU. The environment was reset. `advance`: does its
    steps."""
    advance = advance or env.step
    walking = torch.ones(env.num_rows, dtype=torch.bool, device=env.device)
    found = {name: torch.zeros(env.num_rows, device=env.device) for name in ("distance", "seconds", "error", "energy")}
    ends = {name: torch.zeros_like(walking) for name in ("fell", "left", "broken")}
    obs: Obs = env.seen
    policy.reset()
    for number in range(steps):
        step = advance(policy.step(obs, deterministic))
        obs, done = step.obs, step.terminated | step.truncated
        policy.reset(done)
        well = walking & step.active
        found["distance"] = torch.where(well, watch.distance, found["distance"])
        for name, x in (("seconds", torch.ones_like(step.reward)), ("error", step.metrics["walk/error"]),
                        ("energy", step.metrics["walk/power"])):
            found[name] += torch.where(well, STEP * x, 0.0)
        for name, ended in (("fell", step.terminated), ("left", watch.left & ~step.terminated), ("broken", ~step.active)):
            ends[name] |= walking & done & ended
        walking &= ~done
        if number % PATIENCE == 0:
            if progress is not None:
                progress(number / steps)
            if not bool(walking.any()):
                break
    found["error"] /= found["seconds"].clamp(min=STEP)
    return {name: x.cpu() for name, x in (found | ends).items()}


def _tiles(env: WalkEnv, tiles: Sequence[int], found: dict[str, Tensor]) -> Iterator[Tile]:
    ground = env.ground
    for row, number in enumerate(tiles):
        kind, level = divmod(number, ground.levels)
        robots = {name: x[row].tolist() for name, x in found.items() if name != "broken"}
        yield Tile(ground.kinds[kind], level, ground.difficulty(level), **robots,
                   ground=zlib.crc32(ground.heights[number].cpu().numpy().tobytes()))


def _mass() -> float:
    """kg, of the robot as it is modelled."""
    return float(robot_spec().compile().body_mass.sum())


def _part(progress: Progress, number: int, rounds: int) -> Progress:
    return lambda share: progress((number + share) / rounds)
