"""Packets of real RocketSim games, held against the state and an independent formula of rotations."""
from __future__ import annotations

from math import cos, pi, sin
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from wavedash.rlbot.packets import PAD_ORDER, Clock, PacketPlayer, PacketWriter, field_info
from wavedash.rlbot.rotation import from_euler, to_euler
from wavedash.rocket.constants import PADS
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator

flat = pytest.importorskip("rlbot.flat")


def about(axis: int, angle: float) -> np.ndarray:
    """A right-handed rotation about an axis: what the formula of Euler angles is made of."""
    turn = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turn[i, i] = turn[j, j] = cos(angle)
    turn[i, j], turn[j, i] = -sin(angle), sin(angle)
    return turn


def test_rotations_are_products_of_turns_about_the_axes() -> None:
    """Yaw about z, then pitch about -y (nose up), then roll about -x, in the frame of the car, whose right is +y."""
    random = Random(0)
    for _ in range(1000):
        pitch, yaw, roll = random.uniform(-pi / 2, pi / 2), random.uniform(-pi, pi), random.uniform(-pi, pi)
        matrix = about(2, yaw) @ about(1, -pitch) @ about(0, -roll)
        np.testing.assert_allclose(from_euler(pitch, yaw, roll), matrix, atol=1e-15)
        np.testing.assert_allclose(to_euler(matrix.tolist()), (pitch, yaw, roll), rtol=0, atol=1e-11 / cos(pitch))


@pytest.mark.parametrize("pitch", [pi / 2, -pi / 2])
def test_rotations_that_point_straight_up_or_down_come_back(pitch: float) -> None:
    matrix = [[0.0, -sin(0.4), -cos(0.4)], [0.0, cos(0.4), -sin(0.4)], [1.0, 0.0, 0.0]]
    if pitch < 0:
        matrix = [[0.0, -sin(0.4), cos(0.4)], [0.0, cos(0.4), sin(0.4)], [-1.0, 0.0, 0.0]]
    np.testing.assert_allclose(from_euler(*to_euler(matrix)), matrix, atol=1e-15)


def test_pads_are_in_the_order_of_the_field() -> None:
    pads, goals = field_info().boost_pads, field_info().goals
    places = [(pad.location.y, pad.location.x) for pad in pads]
    assert places == sorted(places) and len(set(places)) == 34 and sum(pad.is_full_boost for pad in pads) == 6
    assert [(goal.team_num, goal.location.y, goal.direction.y) for goal in goals] == [(0, -5120.0, 1.0), (1, 5120.0, -1.0)]


def played(scripts: list[list[float]], ticks: int, simulator: RocketSimSimulator, writer: PacketWriter,
           frame: int) -> list[Any]:
    """The packets of so many ticks with constant controls, through bytes and back."""
    packets = []
    for _ in range(ticks):
        simulator.step(torch.tensor([scripts]), 1)
        frame += 1
        packet = writer.write(simulator.state, Clock(seconds=frame / 120, frame=frame))
        packets.append(flat.GamePacket.unpack(packet.pack()))
    return packets


def test_every_air_state_of_a_real_game() -> None:
    """Two cars jump; one double jumps and one dodges forwards, and both land."""
    simulator = RocketSimSimulator(1, 1, 1)
    writer = PacketWriter([PacketPlayer("a", 1), PacketPlayer("b", 2)])
    rest, jump, dodge = [0.0] * 8, [0.0] * 5 + [1.0, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    packets: list[Any] = []
    for controls, ticks in (([rest, rest], 4), ([jump, jump], 10), ([rest, rest], 10), ([jump, dodge], 5), ([rest, rest], 300)):
        packets += played(controls, ticks, simulator, writer, len(packets))
    states = [[str(packet.players[seat].air_state).split(".")[-1] for packet in packets] for seat in (0, 1)]
    order = [[name for i, name in enumerate(names) if i == 0 or names[i - 1] != name] for names in states]
    assert order[0][:4] == ["OnGround", "Jumping", "InAir", "DoubleJumping"] and order[0][-1] == "OnGround"
    assert order[1][:4] == ["OnGround", "Jumping", "InAir", "Dodging"] and order[1][-1] == "OnGround"
    assert states[0].count("DoubleJumping") == 13
    assert 76 <= states[1].count("Dodging") <= 80, "RLBot says 79 ticks"

    timeouts = [packet.players[1].dodge_timeout for packet in packets]
    assert timeouts[0] == -1 and timeouts[23] == pytest.approx(1.25 - 10 / 120, abs=1.01 / 120) and timeouts[24] == -1
    dodging = packets[40].players[1]
    assert dodging.has_dodged and (dodging.dodge_dir.x, dodging.dodge_dir.y) == (1.0, 0.0)
    assert dodging.dodge_elapsed == pytest.approx(17 / 120, abs=1.01 / 120)
    assert packets[40].players[0].has_double_jumped and not packets[40].players[0].has_dodged
    assert packets[10].players[0].last_input.jump and not packets[20].players[0].last_input.jump


def test_touches_pads_boost_and_demolitions_of_a_real_game() -> None:
    """A car drives over pads into the ball and on."""
    simulator = RocketSimSimulator(1, 1, 1)
    state = simulator.state
    state.cars.position[0, 0] = torch.tensor([0.0, -3400.0, 17.0])
    state.cars.rotation[0, 0] = torch.tensor(from_euler(0.0, pi / 2, 0.0))
    state.cars.is_demoed[0, 1], state.cars.demo_timer[0, 1] = True, 2.0
    simulator.place(torch.tensor([True]))
    writer = PacketWriter([PacketPlayer("a", 1), PacketPlayer("b", 2)])
    drive = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    packets = played([drive, [0.0] * 8], 300, simulator, writer, 0)
    demolished = [packet.players[1].demolished_timeout for packet in packets]
    assert demolished[0] == pytest.approx(2.0, abs=1.01 / 120) and demolished[-1] == -1
    taken = PAD_ORDER.index(next(i for i, pad in enumerate(PADS) if (pad.x, pad.y) == (0.0, -2816.0)))
    first = next(i for i, packet in enumerate(packets) if not packet.boost_pads[taken].is_active)
    timers = [packet.boost_pads[taken].timer for packet in packets[first:first + 100]]
    np.testing.assert_allclose(timers, timers[0] + np.arange(100) / 120, atol=1e-4)
    assert timers[0] < 2 / 120 and packets[first - 1].boost_pads[taken].timer == 0.0

    touches = [packet.players[0].latest_touch for packet in packets]
    hit = next(i for i, touch in enumerate(touches) if touch is not None)
    touch, ball = touches[hit], packets[hit - 1].balls[0].physics.location
    assert touch.game_seconds == pytest.approx((hit + 1) / 120, abs=1.01 / 120)
    assert touch.normal.y > 0.7, "the car came from behind"
    assert np.hypot(touch.location.x - ball.x, touch.location.y - ball.y) < 100
    assert packets[hit - 2].players[0].boost < 33.4 and packets[0].players[0].hitbox.length == pytest.approx(120.507)
    final = packets[-1].players[0].physics
    np.testing.assert_allclose(from_euler(final.rotation.pitch, final.rotation.yaw, final.rotation.roll),
                               state.cars.rotation[0, 0].numpy(), atol=1e-6)
    assert [final.location.x, final.location.y, final.location.z] == state.cars.position[0, 0].tolist()
