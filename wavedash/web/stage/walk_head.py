"""What a walking policy thinks: what it expects, what it was paid, what it sees and does, each number by its name."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from wavedash.walk.parts import Observation
from wavedash.walk.recording import Walk
from wavedash.walk.robot import JOINTS, LEGS

MOST_MEMORY = 512
"""Numbers of a memory that are shown"""
ORDERS = {"joints": JOINTS, "legs": LEGS}
"""Names of readings that come once for each of these"""
AXES = ("x", "y", "z")


def decision(walk: Walk, observation: bool) -> dict[str, Any]:
    """Returns what is told of the robot's policy now. `observation`: with what it sees. Actions have no numbers; `outputs` are
    what the policy told the joints in the last step."""
    memory = walk.run.policy.memory or {}
    return {
        "action": -1, "controls": None, "top": [], "value": walk.value, "rewards": walk.rewards,
        "outputs": _outputs(walk.env.state.action[0]),
        "observation": list(observed(walk.env.task.observation.parts, walk.obs)) if observation else [],
        "memory": {name: x[0].flatten()[:MOST_MEMORY].tolist() for name, x in memory.items()} or None,
    }


def observed(parts: Any, obs: Mapping[str, Tensor]) -> Iterator[list[Any]]:
    """Name and value of every number that the robot sees, as the policy gets it. Images are left out: frames have them."""
    for key, part in parts.items():
        seen = obs[key][0]
        if seen.dim() == 1:
            yield from ([name, value] for name, value in zip(names_of(key, part, len(seen)), seen.tolist(), strict=True))


def names_of(key: str, part: Observation, size: int) -> list[str]:
    """The names of the numbers of an observation, as far as its description has any."""
    names = [name for reading in part.describe()["parts"] for name in _reading(reading)]
    return names if len(names) == size else [f"{key} {number}" for number in range(size)]


def _reading(reading: Mapping[str, Any]) -> Iterator[str]:
    name, size = str(reading["reading"]).replace("_", " "), int(reading["size"])
    if size == 1:
        yield name
    elif "points" in reading:
        yield from (f"{name} at {x:g}, {y:g} m" for x, y in reading["points"])
    else:
        of = ORDERS.get(str(reading.get("order")), AXES if size == len(AXES) else tuple(map(str, range(size))))
        yield from (f"{name} {each}" for each in of)


def _outputs(action: Tensor) -> list[list[Any]]:
    numbers = action.tolist()
    names = JOINTS if len(numbers) == len(JOINTS) else tuple(map(str, range(len(numbers))))
    return [list(pair) for pair in zip(names, numbers, strict=True)]
