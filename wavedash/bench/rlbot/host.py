"""Host: a match server for one bot, just enough to start it by its bot.toml, hand it packets and take its answers."""
from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from wavedash.errors import UserError
from wavedash.rlbot.package import flat
from wavedash.rlbot.packets import field_info

SECONDS = 60.0
"""What a bot may take to answer"""
PLAYER_ID = 77


class Host:
    """The process of a bot that plays the car `index`. `start_seconds`: from its start until it is ready."""

    def __init__(self, bot_toml: Path, index: int = 0, team: int = 0, command: Sequence[str] | None = None) -> None:
        """`command` starts it instead of its own, in its folder."""
        from rlbot.config import load_player_config

        self._flat = flat()
        bot: Any = load_player_config(bot_toml, team).variety
        words = list(command) if command else [sys.executable, *shlex.split(bot.run_command)[1:]]
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(SECONDS)
        begin = time.perf_counter()
        self.process = subprocess.Popen(words, cwd=bot.root_dir, env=self._environment(bot.agent_id, listener.getsockname()[1]),
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            self._socket, _ = listener.accept()
        except TimeoutError as error:
            self.process.kill()
            raise UserError(f"{bot_toml} did not connect: {self.process.communicate()[0]}") from error
        finally:
            listener.close()
        self._socket.settimeout(SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._introduce(bot, index, team)
        self.start_seconds = time.perf_counter() - begin

    @staticmethod
    def _environment(agent_id: str, port: int) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return inherited | {"RLBOT_AGENT_ID": agent_id, "RLBOT_SERVER_IP": "127.0.0.1", "RLBOT_SERVER_PORT": str(port)}

    def _introduce(self, variety: Any, index: int, team: int) -> None:
        """Tells the bot everything that it waits for, until it says that it is ready."""
        fb = self._flat
        self._await(fb.ConnectionSettings)
        self._send(fb.MatchConfiguration(player_configurations=[fb.PlayerConfiguration(variety, team, PLAYER_ID)]))
        self._send(field_info())
        self._send(fb.ControllableTeamInfo(team, [fb.ControllableInfo(index, PLAYER_ID)]))
        self._await(fb.InitComplete)

    def answer(self, packet: Any) -> Any:
        """The bot's `ControllerState` for this packet."""
        self._send(packet)
        return self._await(self._flat.PlayerInput).controller_state

    def end(self) -> int:
        """Ends the match; how the process exits."""
        self._send(self._flat.DisconnectSignal())
        code = self.process.wait(SECONDS)
        self.output = self.process.stdout.read() if self.process.stdout else ""
        return code

    def __enter__(self) -> Host:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()

    def _send(self, message: Any) -> None:
        data = self._flat.CorePacket(message).pack()
        self._socket.sendall(len(data).to_bytes(2, "big") + data)

    def _await(self, kind: Any) -> Any:
        """The next message of this kind; others are passed over."""
        while True:
            message = self._flat.InterfacePacket.unpack(self._read(int.from_bytes(self._read(2), "big"))).message
            if isinstance(message, kind):
                return message

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise UserError(f"the bot ended: {self.process.communicate()[0]}")
            data += more
        return data
