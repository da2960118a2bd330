"""The rate and the latency of the depth camera, beside a list of all poses."""
from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from wavedash.errors import UserError
from wavedash.tasks.declared import refuse_undeclared
from wavedash.walk.sensors.camera import DepthCamera
from wavedash.walk.sensors.depth import Optics
from wavedash.walk.sensors.tiles import Tiles

DOWN = {"rows": 2, "columns": 3, "field_of_view": 0.1, "pitch": 90.0, "position": (0.0, 0.0, 0.0)}
"""Straight down at flat ground: an image shows nothing but the height of the robot"""
STILL = torch.tensor([[1.0, 0.0, 0.0, 0.0]])


def made(count, **options):
    return DepthCamera(Tiles(torch.zeros(2, 9, 9), 1.0), count, Optics(**DOWN, far=1e6), **options)


def shown(camera, position, orientation, tile, began, generator):
    """The images after a step, and after the beginning of episodes where `began`, as an environment has them."""
    camera.step(position, orientation, tile, generator)
    return camera.restart(began, position, orientation, tile, generator)


def ages(camera, steps, begins=(), seed=0):
    """[steps, N]: how many steps ago the image of each step was taken. Robots rise by one metre per step."""
    generator = torch.Generator().manual_seed(seed)
    count, found = len(camera.tile), []
    for step in range(steps):
        began = torch.full((count,), step == 0)
        for at, robot in begins:
            began[robot] |= step == at
        position = torch.tensor([0.0, 0.0, 1.0 + step]).expand(count, 3)
        images = shown(camera, position, STILL.expand(count, 4), torch.zeros(count), began, generator)
        found.append(1 + step - images.mean((1, 2)).round().int())
    return torch.stack(found)


def test_an_image_is_shown_so_many_steps_after_it_was_taken_until_the_next_one():
    found = ages(made(1, period=(5, 5), latency=(2, 2)), 40)[:, 0].tolist()
    first = next(i for i in range(40) if found[i] != i)  # the first image after the one of the beginning
    assert 3 <= first <= 7
    assert found[first:first + 20] == [2, 3, 4, 5, 6] * 4


def test_without_latency_every_step_can_have_its_image():
    assert (ages(made(4, period=(1, 1), latency=(0, 0)), 10) == 0).all()
    assert (ages(made(4, period=(1, 1), latency=(1, 1)), 10)[2:] == 1).all()


def test_periods_and_latencies_are_spread_evenly():
    found = ages(made(64), 400)[20:]
    is_new = found[1:] <= found[:-1]
    ages_shown = found[1:][is_new]
    assert set(ages_shown.tolist()) == {1, 2, 3}
    assert all((ages_shown == age).float().mean().item() == pytest.approx(1 / 3, abs=0.03) for age in (1, 2, 3))
    taken = [[step - age for step, age in enumerate(robot) if step and age <= robot[step - 1]] for robot in found.T.tolist()]
    gaps = torch.tensor([b - a for times in taken for a, b in pairwise(times)])
    assert set(gaps.tolist()) == {4, 5, 6}
    assert all((gaps == gap).float().mean().item() == pytest.approx(1 / 3, abs=0.03) for gap in (4, 5, 6))


def test_a_new_episode_has_an_image_of_its_pose_at_once():
    found = ages(made(3), 60, begins=[(step, 1) for step in (7, 8, 20, 33)])
    assert all(found[step, 1] == 0 for step in (7, 8, 20, 33))
    assert (found <= 6 + 3).all()


def test_what_was_on_its_way_before_a_reset_is_never_shown():
    camera = made(1, period=(6, 6), latency=(6, 6))
    generator, count = torch.Generator().manual_seed(0), 0
    for step in range(200):
        began = torch.tensor([step % 9 == 0])
        episode = step // 9
        images = shown(camera, torch.tensor([[0.0, 0.0, 10.0 + episode]]), STILL, torch.zeros(1), began, generator)
        count += 1
        torch.testing.assert_close(images, torch.full_like(images, 10.0 + episode))
    assert count == 200


def test_each_robot_sees_its_tile_when_the_image_was_taken():
    camera = DepthCamera(Tiles(torch.tensor([0.0, 5.0]).view(2, 1, 1).expand(2, 9, 9), 1.0), 1, Optics(**DOWN, far=100.0),
                         period=(3, 3), latency=(3, 3))
    generator, position = torch.Generator().manual_seed(0), torch.tensor([[0.0, 0.0, 10.0]])
    seen = []
    for step in range(14):
        tile = torch.tensor([0 if step < 6 else 1])
        seen.append(shown(camera, position, STILL, tile, torch.tensor([step == 0]), generator).mean().item())
    assert seen[0] == pytest.approx(10) and seen[8] == pytest.approx(10) and seen[-1] == pytest.approx(5)


def test_saved_cameras_go_on_bit_for_bit():
    options = {"optics": Optics(rows=4, columns=6, noise=0.05, dropout=0.1)}
    heights = torch.rand(2, 30, 30, generator=torch.Generator().manual_seed(3)) * 0.3
    cameras = [DepthCamera(Tiles(heights, 0.1), 8, **options) for _ in range(2)]
    motion = torch.rand(30, 8, 3, generator=torch.Generator().manual_seed(4))
    motion[..., 2] += 0.4

    def go_on(camera, generator, steps):
        return torch.stack([shown(camera, motion[t], STILL.expand(8, 4), torch.arange(8) % 2, torch.full((8,), t == 0),
                                        generator).clone() for t in steps])

    first = torch.Generator().manual_seed(5)
    go_on(cameras[0], first, range(13))
    second = torch.Generator()
    second.set_state(first.get_state())
    cameras[1].load_state_dict(cameras[0].state_dict())
    assert torch.equal(go_on(cameras[0], first, range(13, 30)), go_on(cameras[1], second, range(13, 30)))


def test_noise_stays_with_the_image_that_has_it():
    camera = DepthCamera(Tiles(torch.zeros(1, 9, 9), 1.0), 1, Optics(**DOWN, noise=0.1), period=(5, 5), latency=(0, 0))
    generator = torch.Generator().manual_seed(0)
    seen = [shown(camera, torch.tensor([[0.0, 0.0, 1.0]]), STILL, torch.zeros(1), torch.tensor([t == 0]), generator).clone()
            for t in range(30)]
    changes = [t for t in range(1, 30) if not torch.equal(seen[t], seen[t - 1])]
    assert [b - a for a, b in pairwise(changes)] == [5] * (len(changes) - 1) and len(changes) >= 5


def test_everything_that_changes_is_declared():
    camera = made(3)
    shown(camera, torch.ones(3, 3), STILL.expand(3, 4), torch.zeros(3), torch.ones(3, dtype=torch.bool), torch.Generator())
    with refuse_undeclared(camera, "camera"):
        ages(camera, 3)


@pytest.mark.parametrize("options", [{"period": (0, 2)}, {"period": (5, 4)}, {"latency": (2, 1)}, {"latency": (1, 5)}])
def test_impossible_times_are_refused(options):
    with pytest.raises(UserError, match="two numbers of steps, the smaller one first"):
        made(1, **options)
