"""Recorded game states as the observations and actions of a task: what its policy would have seen and chosen in these games.

Every car whose controls are known becomes an episode of its own. Many episodes are gone through side by side, each in an arena,
moment by moment, because observations may remember: the last controls of a car, or frames. They then hold what they would in
training.
"""
from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from wavedash.config import RocketConfig
from wavedash.errors import UserError
from wavedash.imitate.demonstrations import Demonstrations
from wavedash.rocket.starts.frames import frames_of
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task

ARENAS, MOMENTS = 256, 1 << 15
"""The most episodes, and about the most moments, that are gone through at once"""
OTHER = ("controls", "known", "episode", "recording", "events")
"""Tensors of a file that are no part of the state"""


def samples_of_states(config: RocketConfig, states: Demonstrations) -> Demonstrations:
    """Demonstrations of the kind `samples`, as this task sees the states and acts in them. UserError: they do not fit."""
    ticks = Task.configured(config).action.ticks
    if states.ticks != ticks:
        raise UserError(f"{states.path} has a moment every {states.ticks} ticks, and the policy decides every {ticks}: import "
                        f"or record it with {ticks} ticks, or set the ticks of env.rocket.action to {states.ticks}")
    cars, most = states.tensors["known"].shape[1], 2 * config.largest.larger
    if cars > most:
        raise UserError(f"{states.path} holds games of {cars} cars, and here play {most} at most: name a file of this team "
                        "size")
    parts = [_samples(config, states, *batch) for batch in _batches(states)]
    names = parts[0].keys()
    tensors = {name: torch.cat([part[name] for part in parts]) for name in names if name != "episode"}
    before = 0
    episodes = []
    for part in parts:  # episodes of all batches are numbered one after another
        episodes.append(part["episode"] + before)
        before += int(part["episode"].max()) + 1 if len(part["episode"]) else 0
    tensors["episode"] = torch.cat(episodes)
    if not before:
        raise UserError(f"{states.path}: no controls are known, so there is nothing to learn")
    return Demonstrations(states.path, "samples", states.metadata, tensors)


def _batches(states: Demonstrations) -> Iterator[tuple[Tensor, Tensor]]:
    """Numbers of moments [T, E] of episodes of similar length, and their lengths [E]. Short ones stay at their last moment."""
    first = states.begins().nonzero().flatten()
    lengths = torch.cat([first[1:], torch.tensor([states.count])]) - first
    order = lengths.argsort(stable=True)
    while len(order):
        arenas = min(ARENAS, max(1, MOMENTS // int(lengths[order[-1]])), len(order))
        order, chosen = order[:-arenas], order[-arenas:]
        time = torch.arange(int(lengths[chosen].max())).unsqueeze(-1)
        yield first[chosen] + torch.minimum(time, lengths[chosen] - 1), lengths[chosen]


@torch.no_grad()
def _samples(config: RocketConfig, states: Demonstrations, moments: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """The samples of these episodes: car by car, in the order of time."""
    steps, arenas = moments.shape
    tensors = states.tensors
    arrays = {name: x[moments.flatten()] for name, x in tensors.items() if name.partition(".")[0] not in OTHER}
    frames = frames_of(arrays, states.path)
    frames.clear_events()
    records, seats = frames.memory.view(steps, arenas, -1), frames.seats
    state = GameState.over(records[0].clone(), seats)
    task = Task.configured(config)
    for part in (task.observation, task.action):
        part.bind(state)
        part.begin(state, torch.ones(arenas, dtype=torch.bool))
    controls = tensors["controls"][moments]  # [T, E, C, 8]
    known = tensors["known"][moments] & frames.cars.present.view(steps, arenas, seats)
    seen: dict[str, list[Tensor]] = {"obs": [], "action": [], "mask": []}
    before = torch.zeros_like(controls[0])
    for step in range(steps):
        state.memory.copy_(records[step])
        seen["obs"].append(task.observation.build(state, before, stepped=step > 0).clone())
        seen["action"].append(task.action.nearest(controls[step], state))
        if (mask := task.action.mask(state)) is not None:
            seen["mask"].append(mask)
        before = controls[step]
    within = torch.arange(steps).unsqueeze(-1) < lengths  # [T, E]
    used = (within.unsqueeze(-1) & (known & within.unsqueeze(-1)).any(0)).permute(1, 2, 0)  # [E, C, T]
    number = torch.arange(arenas * seats, dtype=torch.int32).view(arenas, seats, 1).expand_as(used)
    # Cars of a game see the same: they are held out together.
    first = moments[0]
    recording = tensors["recording"][first] if "recording" in tensors else first
    groups = {name: x.view(arenas, 1, 1).expand_as(used)[used] for name, x in (("together", first), ("recording", recording))}
    by_car = {name: torch.stack(x).movedim(0, 2)[used] for name, x in seen.items() if x}
    return {**by_car, **groups, "known": known.permute(1, 2, 0)[used], "episode": number[used]}
