"""Ball prediction: where the ball will be in the next six seconds if no car touches it. Some bots want it with every packet."""
from __future__ import annotations

from collections import deque
from typing import Any

import torch

from wavedash.rlbot.package import flat
from wavedash.rlbot.packets import ball_physics
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.state import GameState

SLICES = 720
"""Ticks that are predicted"""
TOLERANCE = 0.1
"""A ball that is nearer than this to where it was predicted, in uu, flies as predicted"""


class BallPredictor:
    """Predicts in an arena without cars. While the ball flies as predicted, only one more tick is simulated for each packet."""

    def __init__(self) -> None:
        self._arena = RocketSimSimulator(1, 1, 0, sizes=[(0, 0)])
        self._controls = torch.zeros(1, 1, 8)
        self._all = torch.ones(1, dtype=torch.bool)
        self._ahead: deque[tuple[torch.Tensor, Any]] = deque(maxlen=SLICES)
        """Position and `Physics` of every tick to come"""
        self._flat = flat()

    def message(self, state: GameState, seconds: float, moved: bool) -> bytes:
        """The prediction for this moment, packed. `seconds`: of the match so far; `moved`: the last tick was played."""
        if self._ahead and moved:
            self._ahead.popleft()
        if not self._ahead or float((self._ahead[0][0] - state.ball.position[0]).abs().max()) > TOLERANCE:
            self._begin(state)
        while len(self._ahead) < SLICES:
            self._arena.step(self._controls, 1)
            self._keep()
        fb = self._flat
        slices = [fb.PredictionSlice(seconds + tick / TICK_RATE, moment) for tick, (_, moment) in enumerate(self._ahead)]
        packed: bytes = fb.CorePacket(fb.BallPrediction(slices)).pack()
        return packed

    def _begin(self, state: GameState) -> None:
        self._ahead.clear()
        for name in ("position", "rotation", "velocity", "angular_velocity"):
            getattr(self._arena.state.ball, name).copy_(getattr(state.ball, name))
        self._arena.place(self._all)
        self._keep()

    def _keep(self) -> None:
        self._ahead.append((self._arena.state.ball.position[0].clone(), ball_physics(self._arena.state, 0)))

    def close(self) -> None:
        self._arena.close()
