"""Bots for tests: folders with a bot.toml and a program that uses RLBot's own package, as any bot does."""
from __future__ import annotations

from pathlib import Path

PROGRAM = '''
import math
import os
import sys
import time

from rlbot import flat
from rlbot.managers import Bot


class {name}(Bot):
    packets = 0

    def initialize(self):
        assert self.field_info.boost_pads and len(self.field_info.goals) == 2
        assert self.match_config.player_configurations[self.index].player_id == self.player_id
        {initialize}

    def get_output(self, packet):
        self.packets += 1
        return self.choose(packet, packet.players[self.index], packet.match_info)

    def choose(self, packet, me, info):
        {choose}

    def chase(self, packet, me, boost=True):
        ball, car = packet.balls[0].physics.location, me.physics
        angle = math.atan2(ball.y - car.location.y, ball.x - car.location.x) - car.rotation.yaw
        angle = (angle + math.pi) % (2 * math.pi) - math.pi
        return flat.ControllerState(throttle=1.0, steer=max(-1.0, min(1.0, 3.0 * angle)), boost=boost and abs(angle) < 0.5)


{name}().run(wants_ball_predictions={predictions}, wants_match_communications={talk})
'''
CHASES = "return self.chase(packet, me)"
CRASHES = "if self.packets > 100: print('out of fuel', flush=True); os._exit(3)\n        " + CHASES
HANGS = "if self.packets > 100: time.sleep(1000)\n        " + CHASES
RAISES = "raise RuntimeError('no idea')"


def write_bot(folder: Path, name: str, choose: str = CHASES, initialize: str = "pass", predictions: bool = False,
              talk: bool = False, settings: str = "") -> Path:
    """Writes a bot, and returns its bot.toml."""
    folder.mkdir(parents=True)
    program = PROGRAM.format(name=name, choose=choose, initialize=initialize, predictions=predictions, talk=talk)
    (folder / "run.py").write_text(program, encoding="utf-8")
    return write_bot_file(folder, name, "python run.py", settings)


def write_bot_file(folder: Path, name: str, command: str, settings: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "bot.toml"
    path.write_text(f'[settings]\nagent_id = "tests/{name}"\nname = "{name}"\nrun_command = "{command}"\n{settings}\n'
                    "[details]\n", encoding="utf-8")
    return path


RAW = '''
import os
import socket
import time

from rlbot import flat

server = socket.create_connection((os.environ["RLBOT_SERVER_IP"], int(os.environ["RLBOT_SERVER_PORT"])))


def send(data):
    server.sendall(len(data).to_bytes(2, "big") + data)


def receive():
    data = b""
    while len(data) < 2:
        data += server.recv(2 - len(data)) or exit()
    size, data = int.from_bytes(data, "big"), b""
    while len(data) < size:
        data += server.recv(size - len(data)) or exit()
    return flat.CorePacket.unpack(data).message


def say(message):
    send(flat.InterfacePacket(message).pack())


def introduce(key=os.environ["RLBOT_AGENT_ID"]):
    say(flat.ConnectionSettings(key, False, True, True))


'''
"""The beginning of a program that speaks the protocol by hand, for those that break it"""


def write_raw_bot(folder: Path, name: str, program: str, settings: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "run.py").write_text(RAW + program, encoding="utf-8")
    return write_bot_file(folder, name, "python run.py", settings)
