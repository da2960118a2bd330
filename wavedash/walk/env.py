"""WalkEnv: a walking task as a VecEnv. Every row is a robot in a world of its own.

In one step, actions become targets of the motors, physics runs its ticks, endings and rewards are computed, robots get new
commands and pushes, those whose episode is over begin another on the tile of their level, and every robot gets its observation.
All of it is batched. On a GPU there is no host sync, and the whole step can be captured in a CUDA graph.
"""
from __future__ import annotations

import zlib
from collections.abc import Sequence

import gymnasium
import torch
from torch import Tensor

from wavedash.config import EnvConfig, WalkConfig
from wavedash.envs.errors import EnvError
from wavedash.envs.headline import Headline
from wavedash.envs.vec_env import Obs, Step, VecEnv
from wavedash.saved import Saved
from wavedash.seeding import stream_seed
from wavedash.threads import cores
from wavedash.walk.limits import shaped
from wavedash.walk.parts import Context, Events
from wavedash.walk.physics import Physics
from wavedash.walk.robot import HOME, STANDING, STEP
from wavedash.walk.simulator import Simulator
from wavedash.walk.state import RobotState
from wavedash.walk.task import Task
from wavedash.walk.terrain.ground import Ground
from wavedash.walk.terrain.layout import Layout

TASK, SIMULATOR, PHYSICS = "task.", "simulator.", "physics."
"""Prefixes of the names of saved tensors"""
ENOUGH = 0.8
"""The share of what was commanded that makes an episode a success, if the robot did not fall"""
HOPELESS = 50
"""Steps in a row in which the physics of all robots goes wrong, after which nothing is left to learn from"""


class WalkEnv(VecEnv):
    """Robots of one simulator and their task."""

    def __init__(self, simulator: Simulator, task: Task) -> None:
        self.simulator, self.task = simulator, task
        self.state, self.ground = simulator.state, simulator.ground
        self.device = simulator.device
        self.on_host = self.device.type == "cpu"
        """On the host a step skips work that no robot needs. On a GPU it does all work, without a host sync."""
        self.capturable = simulator.capturable
        self.num_rows = self.state.shape[0]
        self.generator = torch.Generator(self.device)
        self.previous, self.fresh = self.state.clone(), self.state.clone()
        self.hopeless = torch.zeros((), dtype=torch.int64, device=self.device)
        """Steps in a row in which the physics of all robots went wrong"""
        self.lost = torch.zeros((), dtype=torch.bool, device=self.device)
        """Whether there were `HOPELESS` of them"""
        self.everywhere = torch.ones(self.num_rows, dtype=torch.bool, device=self.device)
        task.meet(Context(self.ground, simulator.physics, self.generator))
        task.bind(self.state, self.fresh)
        self.action_space: gymnasium.spaces.Box = task.action.space
        if self.action_space.shape != self.state.action.shape[1:]:
            raise EnvError(f"env.walk.action needs a space of {len(HOME)} numbers, one for each joint, not one of shape "
                           f"{list(self.action_space.shape)}")
        self.observation_space: gymnasium.spaces.Dict = task.observation.space
        self.seen = {key: torch.zeros(self.num_rows, *(space.shape or ()), device=self.device)
                     for key, space in self.observation_space.spaces.items()}
        """The current observations, as the policy has them: noise and the rate of a camera are in them"""
        self.standing = standing(self.ground).to(self.device)
        self.of_kind = torch.nn.functional.one_hot(task.levels.kind, len(self.ground.kinds)).float()  # [E, kinds]
        self.per_kind = self.of_kind.sum(0).clamp(min=1.0)
        self.terrain = self.ground.heights.double().mean((1, 2))  # [K]
        self.ranges = torch.tensor(zlib.crc32(task.randomizations.description.encode()))
        self.physics_of = torch.tensor(zlib.crc32(type(simulator).__name__.encode()))
        """A checkpoint knows by these whether the ground, what is randomised and the simulator are the same"""

    @classmethod
    def configured(cls, config: EnvConfig, device: torch.device | str = "cpu") -> WalkEnv:
        walk = config.walk
        assert walk is not None
        ground = make_ground(walk)
        return cls(make_simulator(walk, ground, config.count, torch.device(device)), Task.configured(walk, ground.to(device)))

    @property
    def tasks(self) -> Sequence[Task]:
        return [self.task]

    @property
    def generators(self) -> Sequence[torch.Generator]:
        return [self.generator]

    @property
    def health(self) -> dict[str, int]:
        return self.simulator.health

    @property
    def headlines(self) -> Sequence[Headline]:
        walking = {"walk/speed": "m/s forward", "walk/wanted": "m/s wanted", "walk/error": "m/s off", "walk/power": "W"}
        levels = {f"level/{_short(kind)}": _short(kind).replace("_", " ") for kind in self.ground.kinds}
        rewards = {f"reward/{name}": name.replace("_", " ") for name in self.task.rewards.names}
        return (Headline("walking", walking), *([Headline("level", levels)] if self.ground.levels > 1 else []),
                Headline("share of each reward", rewards, shares=True))

    @property
    def fault(self) -> Tensor:
        return self.lost

    def explain_fault(self) -> str | None:
        if not bool(self.lost):
            return None
        self.lost.zero_()
        return (f"the physics of all robots has gone wrong in {HOPELESS} steps in a row (numbers that are not finite, or "
                "absurdly large): look at what env.walk.starts, randomize, terrain and action make of them")

    def name_row(self, row: int) -> str:
        tile = int(self.state.tile[row])
        return f"robot {row} on {self.ground.kinds[tile // self.ground.levels]}, level {tile % self.ground.levels}"

    def reset(self, seed: int | None = None) -> Obs:
        if seed is not None:
            self.generator.manual_seed(stream_seed(seed, "robots"))
        task = self.task
        task.randomizations.draw(self.simulator.physics, self.everywhere.float(), self.generator, of_bodies=True)
        self.simulator.set_bodies()
        task.levels.scatter(self.generator)
        self._begin(self.everywhere)
        return self._show(task.observation.build(self.state))

    def step(self, action: Tensor) -> Step:
        state, previous, task = self.state, self.previous, self.task
        previous.copy_(state)
        target = shaped("what env.walk.action parsed", task.action.parse(action, state), *state.joint_position.shape)
        state.action.copy_(action)
        self.simulator.step(target)
        events = self._follow_feet()
        state.demanded += state.command[:, 0] * STEP
        broken = self.simulator.broken
        self._watch_physics(broken)
        terminated, truncated = task.ended(state, previous, events)
        terminated = terminated & ~broken
        truncated = (truncated | broken) & ~terminated
        reward = torch.where(broken, 0.0, task.rewards(state, previous, events))
        ended = terminated | truncated
        metrics = self._metrics(terminated)
        self._disturb()
        self._command()
        task.observation.renew(state)
        final_obs = task.observation.build(state)
        obs = self._show(final_obs)
        if not self.on_host or bool(ended.any()):
            task.levels.move(state, ended & ~broken, terminated, self.generator)
            self._begin(ended)
            self._show(task.observation.build(state), ended)
        else:
            final_obs = obs
        return Step(obs=obs, reward=reward, terminated=terminated, truncated=truncated, final_obs=final_obs, active=~broken,
                    metrics=metrics)

    def save_state(self) -> dict[str, Tensor]:
        saved = {name: x.clone() for name, x in self._own().items()}
        saved |= {f"{SIMULATOR}{name}": x for name, x in self.simulator.save().items()}
        saved |= {f"{TASK}{name}": x.clone() for name, x in self.task.state_dict().items()}
        return saved | {"terrain": self.terrain.clone(), "ranges": self.ranges.clone(), "physics_of": self.physics_of.clone(),
                        "generator": self.generator.get_state()}

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        saved = Saved("env", state)
        if int(saved.is_like("physics_of", self.physics_of)) != int(self.physics_of):
            raise EnvError("the saved state of the robots is that of another simulator")
        own = self._own()
        differ = [name for name, x in own.items() if name not in state or state[name].shape != x.shape]
        if differ:
            raise EnvError(f"the saved state of the robots does not fit this task (it differs in {', '.join(differ[:3])}): set "
                           "env.count to what it was, or go on without the saved state")
        terrain, here = saved.has("terrain", self.terrain.dtype, (None,)), self.terrain.cpu()
        if len(terrain) != len(here) or not torch.allclose(terrain.cpu(), here, rtol=0.0, atol=1e-7):
            raise EnvError("the saved state of the robots is that of other terrain")
        for name, x in own.items():
            saved.is_like(name, x)
        saved.is_between("tile", 0, len(self.ground.heights) - 1)
        of_task = Saved("env", _below(state, TASK), TASK)
        remembered = self.task.compare(of_task)
        generator = saved.is_like("generator", self.generator.get_state())
        same_ranges = int(saved.is_like("ranges", self.ranges)) == int(self.ranges)
        for name, x in own.items():
            x.copy_(state[name])
        self.generator.set_state(generator)
        self.task.restore(remembered, of_task, self.state)
        if not same_ranges:
            self._randomize_all()
        self.simulator.set_bodies()
        self.simulator.load(Saved("env", _below(state, SIMULATOR), SIMULATOR))
        return self.seen

    def close(self) -> None:
        self.simulator.close()

    def _own(self) -> dict[str, Tensor]:
        """The tensors of its own that the next step depends on."""
        state = self.state
        physics = {f"{PHYSICS}{name}": x for name, x in self.simulator.physics.tensors().items()}
        seen = {f"obs.{key}": x for key, x in self.seen.items()}
        return {"state": state.memory, "clock": state.clock, "tile": state.tile, **physics, **seen}

    def _show(self, obs: dict[str, Tensor], robots: Tensor | None = None) -> dict[str, Tensor]:
        """Makes `obs` what robots see now, those of `robots` [E] if it is given, and returns what all of them see."""
        for key, x in self.seen.items():
            x.copy_(obs[key] if robots is None else torch.where(robots.view(-1, *(1,) * (x.dim() - 1)), obs[key], x))
        return self.seen

    def _follow_feet(self) -> Events:
        """Counts how long feet are in the air."""
        state, touching = self.state, self.state.touching
        flight = self.previous.air_time + STEP
        events = Events(touching & (self.previous.air_time > 0), flight)
        state.air_time.copy_(torch.where(touching, 0.0, flight))
        return events

    def _command(self) -> None:
        """Gives new commands to robots whose last one is over."""
        commands, state = self.task.commands, self.state
        commands.left -= 1
        due = commands.left <= 0
        if not self.on_host or bool(due.any()):
            commands.give(state, due, self.generator)
        commands.follow(state)

    def _watch_physics(self, broken: Tensor) -> None:
        """Steps of broken robots [E] do not count, so a run in which all of them are broken would go on for ever."""
        self.hopeless.copy_(torch.where(broken.all(), self.hopeless + 1, 0))
        self.lost |= self.hopeless >= HOPELESS

    def _disturb(self) -> None:
        randomizations = self.task.randomizations
        push = randomizations.push(self.state, randomizations.breadth(self.task.levels), self.generator)
        if push is not None:
            self.simulator.push(push)

    def _begin(self, robots: Tensor) -> None:
        """Begins episodes of these robots [E], on the tiles of their levels."""
        task, state, fresh = self.task, self.state, self.fresh
        fresh.memory.copy_(self.standing.expand_as(fresh.memory))
        task.start.write(fresh, self.generator)
        fresh.origin.copy_(fresh.position[:, :2])
        fresh.clock.copy_(state.clock)
        fresh.tile.copy_(task.levels.tile)
        state.copy_(fresh, robots)
        self._draw_physics(robots)
        self.simulator.place(robots)
        task.commands.give(state, robots, self.generator)
        task.commands.follow(state)
        task.begin(state, robots)

    def _randomize_all(self) -> None:
        """Draws the physics of all robots, bodies too, as a run does that was resumed with other ranges."""
        physics, randomizations = self.simulator.physics, self.task.randomizations
        physics.copy_(Physics(self.num_rows, self.device))
        for of_bodies in (True, False):
            randomizations.draw(physics, randomizations.breadth(self.task.levels), self.generator, of_bodies)

    def _draw_physics(self, robots: Tensor) -> None:
        """Draws the physics of these robots anew; others keep theirs."""
        physics, randomizations = self.simulator.physics, self.task.randomizations
        if not len(randomizations.parts):
            return
        before = {name: x.clone() for name, x in physics.tensors().items()}
        randomizations.draw(physics, randomizations.breadth(self.task.levels), self.generator, of_bodies=False)
        for name, x in physics.tensors().items():
            x.copy_(torch.where(robots.view(-1, *(1,) * (x.dim() - 1)), x, before[name]))

    def _metrics(self, fell: Tensor) -> dict[str, Tensor]:
        """Metrics per row, and the mean level of each kind of terrain."""
        state, levels = self.state, self.task.levels
        metrics = {f"reward/{name}": share for name, share in self.task.rewards.shares().items()}
        wanted, speed = state.command[:, 0].clone(), state.body_velocity[:, 0].clone()  # pushes and resets change the state
        metrics |= {"walk/speed": speed, "walk/wanted": wanted, "walk/error": (wanted - speed).abs(),
                    "walk/power": (state.torque * state.joint_velocity).abs().sum(-1),
                    "episode/success": (~fell & (state.walked >= ENOUGH * state.demanded)).float(),
                    "episode/fell": fell.float(), "episode/walked": state.walked}
        if self.ground.levels > 1:
            means = (self.of_kind * levels.level.unsqueeze(-1)).sum(0) / self.per_kind
            metrics |= {f"level/{_short(kind)}": mean for kind, mean in zip(self.ground.kinds, means.unbind(0), strict=True)}
        return metrics


def standing(ground: Ground) -> Tensor:
    """[F]: the memory of a robot that stands in the home pose at the start of its tile, which a start begins to write with."""
    state = RobotState.zeros(1)
    state.position.copy_(torch.tensor((*ground.start, STANDING)))
    state.orientation.copy_(torch.tensor((1.0, 0.0, 0.0, 0.0)))
    state.joint_position.copy_(torch.tensor(HOME))
    return state.memory[0]


def make_ground(walk: WalkConfig) -> Ground:
    """The terrain of a task."""
    layout = Layout.named(walk.layout, walk.resolution)
    return Ground.named(walk.terrain, levels=walk.levels, layout=layout, seed=walk.terrain_seed, hardest=walk.hardest)


def make_simulator(walk: WalkConfig, ground: Ground, robots: int, device: torch.device) -> Simulator:
    """The simulator that the task names; auto: the one for the device."""
    name = walk.simulator
    if name == "auto":
        name = "mujoco" if device.type == "cpu" else "mujoco_warp"
    if name == "mujoco":
        from wavedash.walk.mujoco_batch import MujocoSimulator

        return MujocoSimulator(ground, robots, cores())
    from wavedash.walk.mujoco_warp import MujocoWarpSimulator

    return MujocoWarpSimulator(ground, robots, device)


def _below(state: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): x for name, x in state.items() if name.startswith(prefix)}


def _short(kind: str) -> str:
    return kind.rpartition(":")[2]
