"""Options of a walking task."""
from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from wavedash.config.section import Fraction, Named, Positive, Section


class WalkConfig(Section):
    """A walking task: terrain, what a robot sees, what it is told and paid for, and how episodes begin and end."""

    simulator: Literal["auto", "mujoco", "mujoco_warp"] = "auto"
    """The physics, with the same model. mujoco: on all cores of a CPU. mujoco_warp: on a GPU, where thousands of robots
    (`env.count`) cost little more than hundreds. auto: the one for the run's device."""
    terrain: dict[str, float | dict[str, Any]] = {"flat": 1.0}
    """Kinds of terrain, by name with a weight or with options: flat, rough, slope, slope_down, stairs_up, stairs_down,
    obstacles, stones, gaps, shallow_stones, shallow_gaps, or your own. A higher weight: more robots walk on it. `roughness`
    adds noise of so many m to any of them."""
    levels: Positive = 10
    """Tiles of each kind, from easy to hard. More: a finer curriculum, more memory."""
    hardest: Fraction = 1.0
    """The difficulty of the last level. Higher: steeper, higher, wider."""
    first_level: Annotated[int, Field(ge=0)] = 2
    """Robots begin on a random level up to this one. Higher: hard ground is met sooner, before robots can walk."""
    curriculum: bool = True
    """Robots that come far are promoted to a harder tile, those that do not are demoted. false: each stays on its first
    level."""
    layout: Literal["tile", "track"] = "tile"
    """tile: squares of 8 m, robots begin in the middle. track: strips of 20 m, robots begin at one end and face along it."""
    resolution: Annotated[float, Field(gt=0.0, le=0.5)] = 0.05
    """m between the points of the height map. Less: sharper edges of stairs and stones, more memory."""
    terrain_seed: Annotated[int, Field(ge=0)] = 0
    """Another seed: other random blocks, stones and bumps."""
    observation: dict[str, dict[str, Any]] = {"proprioception": {}, "commands": {}}
    """What a robot sees, by key with options: proprioception, commands, scandots, foot_scan, depth, privileged, or your own.
    Which of them the actor and the critic get is said by `policy.actor_keys` and `policy.critic_keys`."""
    action: Named = "joint_targets"
    """How a robot acts: joint_targets, or your own."""
    commands: dict[str, float | dict[str, Any]] = {"ahead": 1.0, "curve": 1.0, "in_place": 0.2}
    """What robots are told, by name with a weight or with options: ahead, curve, in_place, or your own."""
    command_seconds: Annotated[float, Field(gt=0.0)] = 10.0
    """How long a command lasts. Less: more turns in an episode."""
    rewards: dict[str, float | dict[str, Any]] = {"track_velocity": 1.0, "track_turning": 0.5}
    """What is rewarded per second, by name with a weight (`work: 1e-3`) or with options. Penalties have positive weights."""
    reward_floor: float | None = None
    """A step pays at least this, per second. 0: penalties cannot outweigh what is earned, so falling soon never pays; robots
    then learn to walk first and to walk well later. Not set: there is no floor."""
    starts: dict[str, float | dict[str, Any]] = {"stand": 1.0}
    """How episodes begin, by name with a weight, or with options (`stand: {weight: 1, turn: 0}`)."""
    endings: dict[str, dict[str, Any] | None] = {"fallen": {}, "off_tile": {}, "time_out": {"seconds": 20}}
    """When episodes end, by name with options (`{}`: none). `off_tile: null` is an ending that is switched off."""
    randomize: dict[str, dict[str, Any] | None] = {}
    """What differs between robots, by name with options (`{}`: the usual range): payload, centre_of_mass, friction,
    motor_strength, gains, latency, pushes, or your own. More: the policy holds for other robots, and learns slower."""
    progressive: bool = True
    """Ranges of `randomize` grow with a robot's level, from nothing on the first to all on the last; those of bodies (payload,
    centre_of_mass) are drawn once, from the whole range. false: the whole range everywhere."""
