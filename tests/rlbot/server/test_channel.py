"""Messages over real sockets: cut anywhere, never read, or broken off."""
from __future__ import annotations

import random
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from wavedash.rlbot.server.channel import LONGEST, MOST_WAITING, Channel, Closed


@pytest.fixture
def pair() -> Iterator[tuple[Channel, socket.socket]]:
    """A channel and the plain socket of its other side."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        other = socket.create_connection(listener.getsockname())
        connection, _ = listener.accept()
    channel = Channel(connection)
    yield channel, other
    channel.close()
    other.close()


def arrived(channel: Channel, count: int) -> list[bytes]:
    found: list[bytes] = []
    end = time.monotonic() + 10
    while len(found) < count and time.monotonic() < end:
        found += channel.receive()
    return found


def test_messages_arrive_whole_however_they_are_cut(pair: tuple[Channel, socket.socket]) -> None:
    channel, other = pair
    dice = random.Random(0)
    messages = [dice.randbytes(dice.choice([0, 1, 2, 255, 256, 5000, LONGEST])) for _ in range(60)]
    stream = b"".join(len(message).to_bytes(2, "big") + message for message in messages)
    found: list[bytes] = []
    while stream:
        size = dice.choice([1, 1, 2, 3, 700, 40_000])
        other.sendall(stream[:size])
        stream = stream[size:]
        found += channel.receive()
    found += arrived(channel, len(messages) - len(found))
    assert found == messages


def test_what_is_sent_is_what_rlbots_own_package_reads(pair: tuple[Channel, socket.socket]) -> None:
    interface = pytest.importorskip("rlbot.interface")
    channel, other = pair
    relay = interface.SocketRelay("tests/channel")
    relay.socket = other
    for message in (b"", b"a", bytes(300), bytes(range(256)) * 200):
        channel.send(message)
        other.setblocking(True)
        assert relay.read_message() == message


def test_a_reader_that_reads_nothing_costs_a_bounded_memory(pair: tuple[Channel, socket.socket]) -> None:
    channel, other = pair

    def flood() -> None:
        for _ in range(10_000):
            channel.send(bytes(LONGEST))

    with pytest.raises(Closed, match="reads nothing"):
        flood()
    assert channel.behind and len(channel._waiting) <= MOST_WAITING + LONGEST + 2
    other.settimeout(5)
    assert other.recv(2) == LONGEST.to_bytes(2, "big"), "what was sent before is whole"


def test_the_other_side_closes(pair: tuple[Channel, socket.socket]) -> None:
    channel, other = pair
    other.close()
    with pytest.raises(Closed):
        arrived(channel, 1)


def test_a_message_that_the_protocol_cannot_carry_is_refused(pair: tuple[Channel, socket.socket]) -> None:
    with pytest.raises(ValueError, match="longer than the protocol allows"):
        pair[0].send(bytes(LONGEST + 1))


@pytest.mark.skipif(sys.platform != "linux", reason="an option of Linux")
def test_a_program_that_sends_in_two_writes_does_not_wait_for_an_acknowledgement(
        pair: tuple[Channel, socket.socket]) -> None:
    """The system has taken the option back after every exchange, and the channel sets it again."""
    channel, other = pair

    def acknowledges_at_once(receives: Callable[[], object]) -> bool:
        for _ in range(10):
            channel.send(b"packet")
            assert other.recv(100)
            other.sendall(b"\x00\x00")
            assert select.select([channel.socket], [], [], 10.0)[0]
            receives()
        return bool(channel.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))

    assert not acknowledges_at_once(lambda: channel.socket.recv(100))
    assert acknowledges_at_once(channel.receive)
