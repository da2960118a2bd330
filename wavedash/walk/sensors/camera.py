"""A depth camera as it is in reality: a new image every now and then, which arrives late."""
from __future__ import annotations

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.tasks.part import Part
from wavedash.walk.sensors.depth import DepthImages, Optics
from wavedash.walk.sensors.tiles import Tiles


class DepthCamera(Part):
    """The images that `count` robots, N, have at each step, in `images` [N, rows, columns], metres.

    An image is taken every `period` steps and is shown `latency` steps after it was taken; each of them is drawn anew for every
    image, between the two numbers that are given. In steps of 20 ms the default is an image every 80, 100 or 120 ms, as in
    Agarwal et al. 2022, which is 20 to 60 ms old when it is shown. A robot whose episode begins has an image of its new pose at
    once; when its next one is taken is random, as the clock of a camera knows nothing of episodes.

    An image is computed when it is shown, from the pose that was kept when it was taken. On a CPU only images that are shown
    are computed; on a GPU there is no host sync.
    """

    images: Tensor
    position: Tensor
    """[N, 3]: the pose of the image that is on its way"""
    orientation: Tensor
    """[N, 4]"""
    tile: Tensor
    """[N]"""
    until_taken: Tensor
    """[N]: steps until the next image is taken"""
    until_shown: Tensor
    """[N]: steps until the image that is on its way is shown; at most 0 if none is"""

    def __init__(self, tiles: Tiles, count: int, optics: Optics | None = None, period: tuple[int, int] = (4, 6),
                 latency: tuple[int, int] = (1, 3), threads: int | None = None) -> None:
        if not 1 <= period[0] <= period[1]:
            raise UserError(f"period must be two numbers of steps, the smaller one first and at least 1, not {period}")
        if not 0 <= latency[0] <= latency[1] <= period[0]:
            raise UserError(f"latency must be two numbers of steps, the smaller one first, and none above the smallest period "
                            f"({period[0]}), so that one image at most is on its way; not {latency}")
        self.optics, self.period, self.latency, device = optics or Optics(), period, latency, tiles.device
        shape = (count, self.optics.rows, self.optics.columns)
        self.register_buffer("images", torch.full(shape, self.optics.far, device=device))
        self.register_buffer("position", torch.zeros(count, 3, device=device))
        self.register_buffer("orientation", torch.zeros(count, 4, device=device))
        for name in ("tile", "until_taken", "until_shown"):
            self.register_buffer(name, torch.zeros(count, dtype=torch.int32, device=device))
        self._render = DepthImages(tiles, count, self.optics, self.images, threads)

    def step(self, position: Tensor, orientation: Tensor, tile: Tensor, generator: torch.Generator) -> Tensor:
        """Returns `images` of this step, in memory that the next step overwrites. Call it once per step with the poses that the
        step ended with: `position` [N, 3] and `orientation` [N, 4], w x y z, of the trunk, `tile` [N]."""
        self.until_taken -= 1
        self.until_shown -= 1
        taken = self.until_taken <= 0
        latency = self._draw(*self.latency, generator)
        at_once = taken & (latency == 0)
        self._show(at_once | (self.until_shown == 0), at_once, position, orientation, tile, generator)
        self._take(taken, position, orientation, tile)
        self.until_shown.copy_(torch.where(taken, latency, self.until_shown.clamp_(min=0)))
        self.until_taken.copy_(torch.where(taken, self._draw(*self.period, generator), self.until_taken))
        return self.images

    def restart(self, began: Tensor, position: Tensor, orientation: Tensor, tile: Tensor, generator: torch.Generator) -> Tensor:
        """Returns `images` after episodes have begun with these poses where `began` [N] is true; the others stay as they
        are."""
        self._show(began, began, position, orientation, tile, generator)
        self.until_shown.masked_fill_(began, 0)
        self.until_taken.copy_(torch.where(began, self._draw(1, self.period[1], generator), self.until_taken))
        return self.images

    def _show(self, shown: Tensor, at_once: Tensor, position: Tensor, orientation: Tensor, tile: Tensor,
              generator: torch.Generator) -> None:
        """Computes the images of `shown` [N]: of the pose given where `at_once`, else of the one that was kept."""
        now = at_once.unsqueeze(-1)
        seeds = self._draw(0, 2**31 - 2, generator) if self.optics.noisy else None
        self._render(torch.where(now, position, self.position), torch.where(now, orientation, self.orientation),
                     torch.where(at_once, tile, self.tile), shown, seeds)

    def _take(self, taken: Tensor, position: Tensor, orientation: Tensor, tile: Tensor) -> None:
        mask = taken.unsqueeze(-1)
        self.position.copy_(torch.where(mask, position, self.position))
        self.orientation.copy_(torch.where(mask, orientation, self.orientation))
        self.tile.copy_(torch.where(taken, tile, self.tile))

    def _draw(self, low: int, high: int, generator: torch.Generator) -> Tensor:
        """[N] random integers, each from `low` to `high`."""
        return torch.randint(low, high + 1, self.tile.shape, dtype=torch.int32, device=self.tile.device, generator=generator)
