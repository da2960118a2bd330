"""Hub: the connections of all programs of a match, on the loopback address of this machine alone."""
from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from wavedash.errors import UserError
from wavedash.rlbot.package import flat
from wavedash.rlbot.server.agent import Agent, Controls, Mail
from wavedash.rlbot.server.channel import LONGEST, Channel, Closed, Gone
from wavedash.rlbot.server.program import Patience, Program

HOST = "127.0.0.1"
MOST_CONNECTIONS = 64
TO_INTRODUCE = 5.0
"""Seconds in which a connection must say which program it is"""
MOST_TALK = 4096
"""Bytes that one program may say to others from one packet to the next"""


class Hub:
    """Connections, and the newest input of every car."""

    def __init__(self, programs: Sequence[Program], welcome: Callable[[Program], Sequence[bytes]], port: int = 0) -> None:
        """`welcome`: the messages with which a program is greeted. `port`: 0 takes any free one. UserError: it is taken."""
        self.programs, self.welcome, self._flat = programs, welcome, flat()
        self.inputs: dict[int, Controls] = {}
        """The newest controls of every car whose program has sent any"""
        self.agents: list[Agent] = []
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket()
        if os.name != "nt":  # a port of the match before can be used again at once; on Windows the option means something else
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((HOST, port))
        except OSError as error:
            self._listener.close()
            raise UserError(f"port {port} cannot be used ({error.strerror or error}): name another one with --port, or "
                            "leave it out") from error
        self._listener.listen(MOST_CONNECTIONS)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)

    @property
    def address(self) -> tuple[str, int]:
        name = self._listener.getsockname()
        return name[0], name[1]

    def agent_of(self, program: Program) -> Agent | None:
        return next((agent for agent in self.agents if agent.program is program), None)

    def poll(self, seconds: float) -> None:
        """Handles what arrives, and waits at most so long for anything."""
        for key, events in self._selector.select(max(0.0, seconds)):
            if key.fileobj is self._listener:
                self._accept()
            elif events & selectors.EVENT_WRITE:
                self._try(key.data, key.data.channel.flush)
            elif events & selectors.EVENT_READ:
                self._try(key.data, key.data.read)
        now = time.monotonic()
        for agent in list(self.agents):
            if now - agent.connected_at > TO_INTRODUCE if agent.program is None else agent.program.lost:
                self._drop(agent)
            else:
                self._watch(agent)

    def poll_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Handles what arrives until `done`. Returns whether it was done within so many seconds."""
        end = time.monotonic() + seconds
        while not done():
            left = end - time.monotonic()
            if left <= 0:
                return False
            self.poll(min(left, 0.25))
            for program in self.programs:
                program.look()
        return True

    def send(self, agent: Agent, message: bytes) -> None:
        self._try(agent, lambda: agent.send(message))

    def send_packet(self, message: bytes, prediction: bytes, patience: Patience, real_time: bool) -> None:
        """Sends a packet to all programs that are ready, but to those that have not read what they were sent, or in lockstep
        owe an answer. `prediction`: of the ball, for those that want it."""
        for agent in list(self.agents):
            program = agent.program
            if program is not None and program.ready and not program.lost and program.asks(patience, real_time) and (
                    not agent.channel.behind):
                if agent.wants_predictions:
                    self.send(agent, prediction)
                self.send(agent, message)

    @property
    def predictions_wanted(self) -> bool:
        return any(agent.wants_predictions and agent.program is not None for agent in self.agents)

    def say_goodbye(self) -> None:
        """Asks all programs to end."""
        for program in self.programs:
            program.dismissed = True
        farewell = self._flat.CorePacket(self._flat.DisconnectSignal()).pack()
        for agent in list(self.agents):
            self.send(agent, farewell)

    def close(self) -> None:
        for agent in self.agents:
            agent.channel.close()
        self._listener.close()
        self._selector.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # it has gone again
        if len(self.agents) >= MOST_CONNECTIONS:
            nameless = next((agent for agent in self.agents if agent.program is None), None)
            if nameless is None:
                connection.close()
                return
            self._drop(nameless)
        agent = Agent(Channel(connection), Mail(self._claim, self.inputs.__setitem__, self._talk))
        self.agents.append(agent)
        self._selector.register(connection, selectors.EVENT_READ, agent)

    def _claim(self, agent: Agent, key: str) -> bool:
        program = next((program for program in self.programs
                        if program.key == key and not program.connected and not program.lost), None)
        if program is None:
            return False
        agent.program, program.connected = program, True
        for message in self.welcome(program):
            agent.send(message)
        return True

    def _talk(self, sender: Agent, said: Any) -> None:
        """Passes a message on, in the name of a car of its sender."""
        program = sender.program
        assert program is not None
        car = said.index if said.index in program.cars else program.cars[0]
        fb = self._flat
        message = fb.CorePacket(fb.MatchComm(car, program.team, said.team_only, said.display, said.content)).pack()
        program.said += len(message)
        if program.said > MOST_TALK or len(message) > LONGEST:
            program.conduct.ignored += 1
            return
        for agent in list(self.agents):
            other = agent.program
            if agent is not sender and other is not None and agent.wants_talk and not agent.channel.behind and (
                    not said.team_only or other.team == program.team):
                self.send(agent, message)

    def _try(self, agent: Agent, what: Callable[[], None]) -> None:
        """Does something with a connection; where it is broken, the program has left the match."""
        if agent not in self.agents:
            return
        try:
            what()
        except Closed as why:
            self._drop(agent)
            if agent.program is not None and isinstance(why, Gone):
                agent.program.leave(str(why))
            elif agent.program is not None:
                agent.program.lose(f"it {why}")

    def _drop(self, agent: Agent) -> None:
        self.agents.remove(agent)
        self._selector.unregister(agent.channel.socket)
        agent.channel.close()

    def _watch(self, agent: Agent) -> None:
        """Waits for a connection to be writable only while something waits to be written."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if agent.channel.behind else 0)
        if self._selector.get_key(agent.channel.socket).events != events:
            self._selector.modify(agent.channel.socket, events, agent)
