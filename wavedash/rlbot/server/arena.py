"""The arena of a match in RocketSim, tick by tick, and the players that drive cars in this process."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.rlbot.server.agent import Controls
from wavedash.rlbot.server.bot_file import BotFile
from wavedash.rlbot.server.referee import Seen
from wavedash.rocket.constants import BALL_RADIUS
from wavedash.rocket.driver import Pace, PatientDriver
from wavedash.rocket.parts import Player, Start
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.starts import Kickoff
from wavedash.rocket.state import CONTROLS

USUAL = Pace(8, 1)
"""The pace of players that have none of their own"""
TICK = Pace(1, 0)
"""The pace of the arena"""
ON_GROUND_Z = BALL_RADIUS + 3.0
"""A ball whose center is below has met the ground"""


class Seat(NamedTuple):
    """A car of a match, and who drives it: a bot's program, or a player in this process."""

    team: int
    name: str
    driver: BotFile | Player
    hitbox: str = "octane"


class MatchArena:
    """One arena. Blue seats come first."""

    def __init__(self, seats: Sequence[Seat], seed: int, nudge: Start | None = None) -> None:
        """`nudge` changes kick-offs a little."""
        teams = [seat.team for seat in seats]
        self.simulator = RocketSimSimulator(1, teams.count(0), teams.count(1), hitboxes=[seat.hitbox for seat in seats])
        self.state = self.simulator.state
        self._generator = torch.Generator().manual_seed(seed)
        self._starts = [Kickoff(), *([] if nudge is None else [nudge])]
        self._all = torch.ones(1, dtype=torch.bool)
        self._in_force = torch.zeros(1, len(seats), len(CONTROLS))
        for start in self._starts:
            start.bind(self.state)
        self._drivers = {car: self._driver(seat.driver, car) for car, seat in enumerate(seats)
                         if isinstance(seat.driver, Player)}

    def kick_off(self) -> None:
        """Puts cars and ball on their places; players begin anew."""
        for start in self._starts:
            start.write(self.state, self._generator)
        self.simulator.place(self._all)
        self._in_force.zero_()
        for driver in self._drivers.values():
            driver.begin(self.state, self._all)

    def hold(self, inputs: Mapping[int, Controls]) -> None:
        """A tick passes in which nobody moves. The state says what programs hold, as packets show it."""
        for car, values in inputs.items():
            self.state.cars.controls[0, car] = torch.tensor(values)

    @torch.no_grad()
    def tick(self, inputs: Mapping[int, Controls]) -> Seen:
        """Plays one tick. `inputs`: of the cars that programs drive; a car without any stands still."""
        controls = torch.zeros_like(self._in_force)
        for car, values in inputs.items():
            controls[0, car] = torch.tensor(values)
        for car, driver in self._drivers.items():
            controls[0, car] = driver.drive(self._in_force, self._mine(car))[0, car]
        self._in_force = controls
        self.simulator.step(controls, 1)
        state = self.state
        return Seen(int(state.game.goal[0]), bool((state.events.touches[0] > 0).any()),
                    float(state.ball.position[0, 2]) < ON_GROUND_Z)

    def touching(self) -> list[bool]:
        """Which cars touched the ball in the last tick."""
        touching: list[bool] = (self.state.events.touches[0] > 0).tolist()
        return touching

    def close(self) -> None:
        self.simulator.close()

    def _driver(self, player: Player, car: int) -> PatientDriver:
        if player.ticks is None:
            player.ticks, player.delay = USUAL
        driver = PatientDriver(player, TICK)
        driver.bind(self.state)
        player.take_slots(torch.tensor([[car]]))
        return driver

    def _mine(self, car: int) -> Tensor:
        """[1, C, 1]: the one car."""
        mine = torch.zeros(1, self._in_force.shape[1], 1, dtype=torch.bool)
        mine[0, car] = True
        return mine
