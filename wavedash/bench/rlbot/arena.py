"""An arena of RocketSim that is played tick by tick, and whose every tick becomes a packet of RLBot, through bytes and back."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from wavedash.rlbot.package import flat
from wavedash.rlbot.packets import Clock, PacketPlayer, PacketWriter
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.parts import Start
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.starts import Kickoff


class Arena:
    """It begins with a kick-off, or with another `start`."""

    def __init__(self, blue: int, orange: int, hitbox: str = "octane", seed: int = 0, start: Start | None = None) -> None:
        self.simulator = RocketSimSimulator(1, blue, orange, hitboxes=hitbox)
        self.state = self.simulator.state
        self.writer = PacketWriter([PacketPlayer(f"car {seat}", seat + 1) for seat in range(blue + orange)])
        self.frame = 0
        self._generator = torch.Generator().manual_seed(seed)
        self._starts = [Kickoff(), *([] if start is None else [start])]  # starts change a state that holds a kick-off
        for each in self._starts:
            each.bind(self.state)
        self.begin()

    def begin(self) -> None:
        """An episode begins."""
        for each in self._starts:
            each.write(self.state, self._generator)
        self.simulator.place(torch.ones(1, dtype=torch.bool))

    def tick(self, controls: Tensor) -> None:
        """One tick with these controls [1, C, 8]."""
        self.simulator.step(controls, 1)
        self.frame += 1

    @property
    def goal(self) -> bool:
        return int(self.state.game.goal[0]) >= 0

    def packet(self) -> Any:
        """The packet of this tick, as a bot receives it."""
        return self._packed(None)

    def countdown_packet(self, in_force: Tensor) -> Any:
        """A packet of the countdown, which shows these inputs [1, C, 8], though nothing moves."""
        kept = self.state.cars.controls.clone()
        self.state.cars.controls.copy_(in_force)
        packet = self._packed(flat().MatchPhase.Countdown)
        self.state.cars.controls.copy_(kept)
        return packet

    def _packed(self, phase: Any) -> Any:
        packet = self.writer.write(self.state, Clock(seconds=self.frame / TICK_RATE, frame=self.frame, phase=phase))
        return flat().GamePacket.unpack(packet.pack())

    def close(self) -> None:
        self.simulator.close()
