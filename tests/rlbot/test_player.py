"""What a match brings besides play: countdowns, goals, missed packets, state setting, spectators."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.rlbot.bots import bot_of
from wavedash.bench.rlbot.arena import Arena
from wavedash.rlbot.bot.constants import HITBOXES
from wavedash.rlbot.bot.pace import IDLE, NUDGE, Pace
from wavedash.rlbot.packets import Clock, PacketPlayer, PacketWriter

flat = pytest.importorskip("rlbot.flat")


class Match:
    """One car that a bot drives, and one that nobody does. `episodes` counts how often the bot began one, and `decided` has
    the frames at which it decided."""

    def __init__(self, name: str = "beta-1v1") -> None:
        self.arena, self.bot = Arena(1, 1, "breakout"), bot_of(name).bot()
        self.episodes = 0
        self.decided: list[int] = []
        begin, decide = self.bot.brain.begin, self.bot.pace.decide

        def begins() -> None:
            self.episodes += 1
            begin()

        def decides(frame: int, controls: Any) -> None:
            self.decided.append(frame)
            decide(frame, controls)

        self.bot.brain.begin, self.bot.pace.decide = begins, decides

    def packet(self, phase: Any = None, players: int = 2, balls: bool = True) -> Any:
        writer = PacketWriter([PacketPlayer(f"car {i}", i + 1) for i in range(players)])
        packet = writer.write(self.arena.state, Clock(frame=self.arena.frame, phase=phase))
        return packet if balls else flat.GamePacket(packet.players, packet.boost_pads, [], packet.match_info, packet.teams)

    def play(self, ticks: int, **kind: Any) -> np.ndarray:
        """So many ticks; what the bot answered to the last packet."""
        for _ in range(ticks):
            answer = self.bot.controls(self.packet(**kind), 0).copy()
            controls = torch.zeros(1, 2, 8)
            controls[0, 0] = torch.from_numpy(answer)
            self.arena.tick(controls)
        return answer


def test_it_decides_every_eight_frames_from_the_kick_off_on() -> None:
    match = Match()
    match.play(10, phase=flat.MatchPhase.Countdown)
    match.play(10, phase=flat.MatchPhase.Kickoff)
    match.play(20)
    assert match.decided == [10, 18, 26, 34] and match.episodes == 1, "play goes on after the kick-off"


def test_it_is_idle_where_nobody_plays_and_begins_anew_afterwards() -> None:
    match = Match()
    match.play(20)
    for phase in (flat.MatchPhase.GoalScored, flat.MatchPhase.Replay, flat.MatchPhase.Ended):
        assert np.array_equal(match.play(3, phase=phase), IDLE)
    assert np.array_equal(match.play(1, phase=flat.MatchPhase.Countdown), NUDGE)
    assert np.array_equal(match.play(20, phase=flat.MatchPhase.Countdown), IDLE)
    match.play(9)
    assert match.episodes == 2 and match.decided[-2:] == [50, 58]
    assert np.array_equal(match.play(1, balls=False), IDLE)
    match.play(1)
    assert match.episodes == 3


@pytest.mark.parametrize(("games", "episodes"), [(1, [1, 2, 3, 4]), (2, [1, 1, 2, 2]), (3, [1, 1, 1, 2])])
def test_memory_outlasts_as_many_games_as_in_training(games: int, episodes: list[int]) -> None:
    """What else it remembers begins anew with every game, and with other players a new episode begins."""
    match, found = Match("gru-2v2"), []
    match.bot.brain.games = games
    for _ in range(4):
        match.play(3, phase=flat.MatchPhase.Countdown)
        remembered, before = match.bot.brain.policy.memory.h[0].copy(), match.episodes
        packet = match.packet()
        match.bot.controls(packet, 0)
        # A decision with the memory of before, or with none, gives the memory that is there now.
        brain, now = match.bot.brain, match.bot.brain.policy.memory.h[0].copy()
        brain.policy.memory.h[0] = remembered if match.episodes == before else np.zeros_like(remembered)
        brain.policy.act(brain.seen, brain.mask)
        np.testing.assert_array_equal(brain.policy.memory.h[0], now)
        found.append(match.episodes)
        match.play(20)
        match.play(3, phase=flat.MatchPhase.GoalScored)
    assert found == episodes
    match.play(1, players=1)
    assert match.episodes == episodes[-1] + 1


def test_a_pause_changes_nothing() -> None:
    match = Match()
    before = match.play(12)
    paused = match.bot.controls(match.packet(phase=flat.MatchPhase.Paused), 0)
    assert np.array_equal(paused, before)
    match.play(12)
    assert match.episodes == 1 and match.decided == [0, 8, 16]


def test_missed_packets_keep_the_rhythm_and_a_long_gap_ends_the_episode() -> None:
    match = Match()
    match.play(10)
    match.arena.frame += 9  # frames 10 to 18 do not arrive, and with them the decision of frame 16
    match.play(14)
    assert match.decided == [0, 8, 19, 24, 32] and match.episodes == 1
    match.arena.frame += 130
    match.play(1)
    assert match.episodes == 2


@pytest.mark.parametrize("body", ["ball", "cars"])
def test_a_placed_ball_or_car_begins_an_episode(body: str) -> None:
    match = Match()
    match.play(10)
    getattr(match.arena.state, body).position[0].copy_(torch.tensor([500.0, 1000.0, 400.0]))
    match.arena.simulator.place(torch.ones(1, dtype=torch.bool))
    match.play(1)
    assert match.episodes == 2 and match.decided == [0, 8, 10]


def test_a_respawn_is_no_new_episode() -> None:
    match = Match()
    state = match.arena.state
    state.cars.is_demoed[0, 0], state.cars.demo_timer[0, 0] = True, 0.1
    match.arena.simulator.place(torch.ones(1, dtype=torch.bool))
    match.play(30)
    assert not state.cars.is_demoed[0, 0] and match.episodes == 1
    arrays = match.bot.game.arrays
    assert not arrays["is_demoed"][0] and arrays["boost"][0] < 33.4 and arrays["air_time"][0] < 30 / 120


def test_who_comes_or_goes_begins_an_episode_and_spectators_do_not_play() -> None:
    match = Match()
    match.play(10)
    match.play(1, players=1)
    assert match.episodes == 2 and match.bot.game.seats == [0]
    packet = match.packet()
    watched = flat.GamePacket(
        [packet.players[0], flat.PlayerInfo(team=2, player_id=9), packet.players[1]], packet.boost_pads, packet.balls,
        packet.match_info, packet.teams)
    match.bot.controls(watched, 0)
    assert match.bot.game.seats == [0, 2] and len(match.bot.game.arrays["team"]) == 2
    assert np.array_equal(match.bot.controls(watched, 1), IDLE), "the spectator"
    assert np.array_equal(match.bot.controls(watched, 7), IDLE), "nobody"


@pytest.mark.parametrize("pads", [0, 10, 33, 35])
def test_other_pads_than_the_field_has_do_not_stop_it(pads: int) -> None:
    """As on a map of one's own. It plays on as if all pads were there."""
    match = Match()
    match.arena.state.pads.timer[:] = 3.0
    match.play(1)
    assert (match.bot.game.arrays["pads"] == 3.0).all()
    match.arena.frame += 7
    packet = match.packet()
    states = [*packet.boost_pads, *packet.boost_pads][:pads]
    other = flat.GamePacket(packet.players, states, packet.balls, packet.match_info, packet.teams)
    match.bot.controls(other, 0)
    assert match.decided == [0, 8] and not match.bot.game.arrays["pads"].any()


def test_a_car_may_get_another_hitbox() -> None:
    """As where somebody chooses another body in the middle of a match. Play goes on."""
    match = Match()
    match.play(10)
    packet = match.packet()
    assert match.bot.game.cars[1].shape.half[0] == pytest.approx(HITBOXES["breakout"][0] / 2, abs=2.0)
    told = {name: getattr(packet.players[1], name) for name in flat.PlayerInfo.__match_args__}
    other = flat.PlayerInfo(**told | {"hitbox": flat.BoxShape(*HITBOXES["octane"])})
    match.bot.controls(flat.GamePacket([packet.players[0], other], packet.boost_pads, packet.balls, packet.match_info,
                                       packet.teams), 0)
    assert match.bot.game.cars[1].shape.half[0] == pytest.approx(HITBOXES["octane"][0] / 2, abs=2.0)
    assert match.episodes == 1


def answered(pace: Pace, latency: int, frames: int) -> list[int]:
    """Frames of the ticks in which decisions came into force, of a server of this latency."""
    coming, in_force, found = [IDLE] * latency, IDLE, []
    for frame in range(frames):
        pace.seen(frame, in_force)
        if pace.decides(frame):
            pace.decide(frame, np.full(8, frame + 1, np.float32))
        coming.append(pace.send(frame))
        before, in_force = in_force, coming.pop(0)
        if not np.array_equal(before, in_force):
            found.append(frame + 1)
    return found


@pytest.mark.parametrize(("delay", "latency"), [(1, 1), (1, 0), (0, 0), (3, 0), (3, 2), (8, 1)])
def test_decisions_come_into_force_after_the_delay_of_training(delay: int, latency: int) -> None:
    """Decisions at frames 0, 8, ... are in force from the tick to frame 1 + delay on, once the latency was measured."""
    found = answered(Pace(8, delay), latency, 80)
    assert found[1:] == [1 + delay + 8 * i for i in range(1, len(found))] and len(found) >= 8


def test_a_server_slower_than_the_delay_is_answered_at_once() -> None:
    assert answered(Pace(8, 1), 3, 40)[1:] == [12, 20, 28, 36]
