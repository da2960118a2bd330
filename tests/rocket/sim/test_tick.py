"""The list of the stages of a tick is consistent, and launches follow it."""
from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import warp as wp

from wavedash.rocket.sim import constants, tick
from wavedash.rocket.sim.classes import CLASS_COUNT
from wavedash.rocket.sim.kernels.records import Controls, load_controls
from wavedash.rocket.sim.simulator import WarpSimulator
from wavedash.rocket.sim.tick import Stage, stages
from wavedash.rocket.state import CONTROLS

MECHANICS = sorted((Path(tick.__file__).parent / "mechanics").glob("*.py"))
PLAIN = {0.0, 0.5, 1.0, 1e-7}
"""Numbers that are no constants of the game: zero, half, one, and the limit below which a number counts as zero."""


def lost(order: Sequence[Stage]) -> set[int]:
    """Classes that cars or arenas are sorted into only after the last stage that runs over them, or never."""
    wrong = set()
    for number in range(CLASS_COUNT):
        sorting = [i for i, stage in enumerate(order) if number in stage.sorts_into]
        running = [i for i, stage in enumerate(order) if stage.over.class_number == number]
        if not sorting or not running or max(sorting) > min(running):
            wrong.add(number)
    return wrong


def test_every_class_is_sorted_into_before_its_stages_run():
    order = stages(2)
    assert lost(order) == set()
    assert order[-1].over.class_number is None, "the last stage runs over all arenas"


def test_a_stage_in_a_wrong_place_would_be_noticed():
    order = list(stages(2))
    sorting = [i for i, stage in enumerate(order) if stage.sorts_into]
    for i in sorting:
        moved = [*order[:i], *order[i + 1:-1], order[i], order[-1]]
        assert lost(moved), f"{order[i].function.key} last"


def test_launches_follow_the_list():
    partition = WarpSimulator(2, 1, 1, by_stage=True)._partitions[0]
    keys = [launch.kernel.key.split("__")[-1] for launch in partition.launches(ticks=2, delay=1)]
    of_a_tick = [stage.function.key.split("__")[-1] for stage in stages(2) if stage.over.class_number is not None]
    assert keys == ["begin", "begin_tick", *of_a_tick, "end_tick", *of_a_tick, "end_tick", "end"]
    assert len(partition.launches(ticks=2, delay=0)) == len(keys)


@pytest.mark.parametrize("file", MECHANICS, ids=lambda file: file.stem)
def test_a_mechanic_has_no_number_of_the_game_of_its_own(file: Path):
    """They are in the file of constants, with unit and source. Module-level names are our own bounds."""
    functions = [node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]
    numbers = {node.value for function in functions for node in ast.walk(function)
               if isinstance(node, ast.Constant) and isinstance(node.value, float)}
    assert numbers <= PLAIN, f"{file.name} says {sorted(numbers - PLAIN)}"


def test_every_constant_is_used():
    module = ast.parse(Path(constants.__file__).read_text(encoding="utf-8")).body
    text = "".join(file.read_text(encoding="utf-8") for file in Path(tick.__file__).parent.rglob("*.py"))
    for node in module:
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                assert len(re.findall(rf"\b{ast.unparse(name)}\b", text)) > 1, f"nothing uses {ast.unparse(name)}"


@wp.kernel(enable_backward=False)
def read_controls(words: wp.array2d(dtype=wp.int32), out: wp.array(dtype=Controls)):
    out[wp.tid()] = load_controls(words, wp.tid(), 0)


def test_controls_have_the_names_and_the_order_of_the_tensor():
    controls = torch.arange(24, dtype=torch.float32).view(3, 8)
    out = wp.zeros(3, dtype=Controls, device="cpu")
    wp.launch(read_controls, 3, inputs=[wp.from_torch(controls.view(torch.int32)), out], device="cpu")
    assert out.numpy().dtype.names == CONTROLS
    for column, name in enumerate(CONTROLS):
        assert out.numpy()[name].tolist() == controls[:, column].tolist()


def test_each_control_does_what_its_name_says():
    """Each control has an arena in which blue's car has that control alone, on the ground with some speed, or in the air for
    pitch, yaw and roll."""
    sim = WarpSimulator(len(CONTROLS) + 1, 1, 1)
    arena = {name: e for e, name in enumerate(CONTROLS)} | {"none": len(CONTROLS)}
    in_air = torch.tensor([arena[name] for name in ("pitch", "yaw", "roll")])
    state = sim.state
    state.cars.rotation[:, 0] = torch.eye(3)
    state.cars.position[:, 0] = torch.tensor([0.0, -2000.0, 17.0])
    state.cars.velocity[:, 0] = torch.tensor([300.0, 0.0, 0.0])
    state.cars.position[in_air, 0, 2] = 1000.0
    state.cars.on_ground[in_air, 0] = False
    state.cars.boost[:, 0] = 50.0
    sim.place(torch.ones(len(arena), dtype=torch.bool))
    controls = torch.zeros(len(arena), 2, len(CONTROLS))
    for name in CONTROLS:
        controls[arena[name], 0, CONTROLS.index(name)] = 1.0
    for _ in range(3):
        sim.step(controls, ticks=8)
    cars = state.cars
    speed, spin = cars.velocity[:, 0, 0], cars.angular_velocity[:, 0].abs()
    assert speed[arena["throttle"]] > 310.0 > 300.0 > speed[arena["none"]]
    assert speed[arena["boost"]] > speed[arena["throttle"]] and cars.boost[arena["boost"], 0] < 50.0
    assert spin[arena["steer"], 2] > 0.3 > spin[arena["none"], 2]
    assert [int(spin[arena[name]].argmax()) for name in ("roll", "pitch", "yaw")] == [0, 1, 2]
    assert cars.has_jumped[:, 0].nonzero().flatten().tolist() == [arena["jump"]]
    assert (cars.handbrake[:, 0] > 0.5).nonzero().flatten().tolist() == [arena["handbrake"]]
