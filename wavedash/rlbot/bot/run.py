"""The bot that RLBot starts."""
from __future__ import annotations

from pathlib import Path

from rlbot import flat
from rlbot.managers import Bot

from .player import Player


class WavedashBot(Bot):
    """Answers every packet with the controls of the player."""

    folder = Path(__file__).resolve().parent.parent

    def initialize(self) -> None:
        self.player = Player(self.folder, self.field_info.boost_pads)

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        throttle, steer, pitch, yaw, roll, jump, boost, handbrake = self.player.controls(packet, self.index).tolist()
        return flat.ControllerState(throttle=throttle, steer=steer, pitch=pitch, yaw=yaw, roll=roll, jump=jump > 0.5,
                                    boost=boost > 0.5, handbrake=handbrake > 0.5)


def main(folder: Path, agent_id: str) -> None:
    WavedashBot.folder = folder
    WavedashBot(agent_id).run(wants_match_communications=False, wants_ball_predictions=False)
