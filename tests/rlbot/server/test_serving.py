"""Whole matches with real programs: bots that play, and bots that crash, hang, lie, or send anything else."""
from __future__ import annotations

import ctypes
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import words_of
from tests.rlbot.server.bots import CHASES, CRASHES, HANGS, RAISES, write_bot, write_raw_bot
from wavedash.evaluate.matches import nudged_kickoff
from wavedash.league.players import find_entrant
from wavedash.rlbot.server.arena import Seat
from wavedash.rlbot.server.bot_file import read_bot_file
from wavedash.rlbot.server.keeper import as_exit_code
from wavedash.rlbot.server.program import Conduct, Patience
from wavedash.rlbot.server.referee import FirstGoals, Phase, Referee, WholeMatch
from wavedash.rlbot.server.serving import Manner, Match, Outcome, play_match

pytest.importorskip("rlbot")
pytestmark = pytest.mark.slow

QUICK = Manner(seed=5, nudge=nudged_kickoff(), patience=Patience(start=30.0, answer=0.3, end=0.5))


def bot(team: int, path: Path) -> Seat:
    file = read_bot_file(path)
    return Seat(team, file.name, file, file.hitbox(team))


def player(team: int, name: str) -> Seat:
    return Seat(team, name, find_entrant(name).player())


def no_children() -> bool:
    return not [child for child in psutil.Process().children(recursive=True) if "run.py" in " ".join(words_of(child))]


def only(outcome: Outcome) -> Conduct:
    (conduct,) = outcome.conduct
    return conduct


def test_rlbots_own_package_plays_a_whole_match(tmp_path: Path) -> None:
    """Kick-offs with a countdown, goals, score and clock as its packets show them."""
    logs = "open('log', 'a').write(f'{int(info.match_phase)} {info.game_time_remaining} {[t.score for t in packet.teams]}\\n')"
    seats = [bot(0, write_bot(tmp_path / "a", "Chase", f"{logs}\n        {CHASES}")), player(1, "champion")]
    referee = WholeMatch(20.0, countdown=0.5)
    outcome = play_match(seats, referee, QUICK)
    assert sum(outcome.goals) > 0 and outcome.touches[0] > 0 and len(outcome.results) == 1
    conduct = only(outcome)
    assert not conduct.faulty and len(conduct.answer_seconds) == outcome.ticks and conduct.ignored == 0
    rows = [line.split(" ", 2) for line in (tmp_path / "a" / "log").read_text().splitlines()]
    assert len(rows) == outcome.ticks, "every packet was answered, and seen once"
    phases = [int(phase) for phase, _, _ in rows]
    assert set(phases) == {*Phase} and phases.count(Phase.ENDED) == 1, "the end is shown too"
    assert phases.count(Phase.COUNTDOWN) == 60 * (1 + sum(outcome.goals))
    clock = [float(left) for _, left, _ in rows]
    assert clock[0] == 20.0 and sorted(clock, reverse=True) == clock
    assert rows[-1][2] == f"{list(outcome.goals)}"
    assert no_children()


def test_the_same_match_again_is_the_same_match(tmp_path: Path) -> None:
    """In lockstep nothing depends on how long programs think."""
    naps = "import random\n        time.sleep(random.choice([0.0, 0.0, 0.0, 0.003]))\n        " + CHASES
    results = []
    for folder, choose in (("a", CHASES), ("b", naps)):
        seats = [bot(0, write_bot(tmp_path / folder / "0", "Left", choose)),
                 bot(1, write_bot(tmp_path / folder / "1", "Right", CHASES))]
        results.append(play_match(seats, FirstGoals(2, 4.0), QUICK))
    assert results[0].results == results[1].results and results[0].touches == results[1].touches


@pytest.mark.parametrize("latency", [0, 1, 3])
def test_an_answer_takes_effect_so_many_ticks_later(tmp_path: Path, latency: int) -> None:
    path = write_bot(tmp_path / "a", "Echo", ECHO)
    play_match([bot(0, path), player(1, "idle")], FirstGoals(1, 0.5, countdown=0.1), replace(QUICK, latency=latency))
    shown = echoed(path)
    # The input of the tick that led to packet n answered packet n - 1 - latency.
    for frame in range(20, 60):
        assert shown[frame] == (frame - 1 - latency) % 100


@pytest.mark.parametrize(("name", "choose", "says"), [
    ("Crash", CRASHES, "exit code 3: .*out of fuel"), ("Hang", HANGS, "hung"), ("Raise", RAISES, "hung"),
])
def test_a_bot_that_fails_loses_its_input_and_not_the_match(tmp_path: Path, name: str, choose: str, says: str) -> None:
    outcome = play_match([bot(0, write_bot(tmp_path / "a", name, choose)), player(1, "chaser")], FirstGoals(2, 10.0), QUICK)
    assert len(outcome.results) == 2
    conduct = only(outcome)
    assert conduct.faulty and says.split(":")[0] in str(conduct)
    if name == "Crash":
        assert "out of fuel" in conduct.lost and not conduct.hung
    else:
        assert conduct.hung and not conduct.lost and conduct.missed > 100
    assert no_children()


ECHO = ("shown = round(me.last_input.steer * 100)\n        open('log', 'a').write(f'{info.frame_num} {shown}\\n')\n"
        "        return flat.ControllerState(steer=info.frame_num % 100 / 100)")
"""Sends the number of the packet, and logs what it is shown as its last input"""


def echoed(path: Path) -> dict[int, int]:
    """By packet: the number that it showed."""
    rows = (line.split() for line in (path.parent / "log").read_text().splitlines())
    return {int(frame): int(shown) for frame, shown in rows}


def test_a_bot_that_misses_once_goes_on_and_its_answers_stay_those_to_their_packets(tmp_path: Path) -> None:
    path = write_bot(tmp_path / "a", "Late", "if self.packets == 50: time.sleep(0.45)\n        " + ECHO)
    outcome = play_match([bot(0, path), player(1, "idle")], FirstGoals(1, 2.0), QUICK)
    conduct = only(outcome)
    assert 1 <= conduct.missed <= 2 and not conduct.hung and not conduct.lost
    assert len(conduct.answer_seconds) >= outcome.ticks - 2 - conduct.missed
    shown = echoed(path)
    assert all(shown[frame] == (frame - 2) % 100 for frame in shown if 60 <= frame < outcome.ticks - 1)


def test_a_bot_that_thinks_too_long_in_all_is_no_longer_waited_for(tmp_path: Path) -> None:
    naps = "time.sleep(0.05)\n        " + CHASES
    manner = replace(QUICK, patience=replace(QUICK.patience, in_all=1.0))
    outcome = play_match([bot(0, write_bot(tmp_path / "a", "Nap", naps)), player(1, "chaser")], FirstGoals(1, 10.0), manner)
    conduct = only(outcome)
    assert conduct.slow and conduct.failed and not conduct.lost and len(conduct.answer_seconds) < outcome.ticks / 2


def test_many_games_are_no_reason_to_wait_no_longer(tmp_path: Path) -> None:
    """A game takes the bot 0.6 s at least, so all of them take longer than it may think in one."""
    naps = "time.sleep(0.005)\n        " + CHASES
    manner = replace(QUICK, patience=replace(QUICK.patience, in_all=4.0))
    outcome = play_match([bot(0, write_bot(tmp_path / "a", "Nap", naps)), player(1, "idle")], FirstGoals(12, 1.0), manner)
    conduct = only(outcome)
    assert sum(conduct.answer_seconds) > 4.0, "else this shows nothing"
    assert not conduct.faulty and len(conduct.answer_seconds) == outcome.ticks


BROKEN = {
    "garbage": ("introduce()\nsend(bytes(range(200)))\ntime.sleep(60)", "that are no message"),
    "a longer message than comes": ("introduce()\nserver.sendall(b'\\xff\\xffabc')\nserver.close()", "exit code 0"),
    "another key": ("introduce('tests/a')\ntime.sleep(60)", "not ready"),
    "never introduced": ("say(flat.InitComplete())\ntime.sleep(60)", "not ready"),
    "never ready": ("introduce()\ntime.sleep(60)", "not ready"),
    "leaves": ("introduce()\nsay(flat.InitComplete())\nreceive()\nsay(flat.DisconnectSignal())\ntime.sleep(60)",
               "left the match"),
    "reads nothing": ("introduce()\nsay(flat.InitComplete())\ntime.sleep(60)", "hung"),
    "no number": ("introduce()\nsay(flat.InitComplete())\nwhile True:\n    if isinstance(receive(), flat.GamePacket):\n"
                  "        say(flat.PlayerInput(0, flat.ControllerState(throttle=float('nan'))))", "ignored"),
    "another's car": ("introduce()\nsay(flat.InitComplete())\nwhile True:\n    if isinstance(receive(), flat.GamePacket):\n"
                      "        say(flat.PlayerInput(1, flat.ControllerState(throttle=1.0)))", "ignored"),
    "floods": ("introduce()\nsay(flat.InitComplete())\nserver.settimeout(5)\nwhile True:\n"
               "    say(flat.MatchComm(0, 0, False, 'x', bytes(60000)))", "ignored"),
    "says more than can be passed on": (
        "introduce()\nsay(flat.InitComplete())\nsize = 65535 - len(flat.InterfacePacket(flat.MatchComm()).pack())\n"
        "while len(flat.InterfacePacket(flat.MatchComm(content=bytes(size))).pack()) > 65535: size -= 1\n"
        "say(flat.MatchComm(content=bytes(size)))\nwhile True: receive()", "ignored"),
    "opens many connections": (
        "introduce()\nmore = [socket.create_connection(server.getpeername()) for _ in range(100)]\n"
        "say(flat.InitComplete())\nwhile True: receive()", "hung"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_program_that_breaks_the_protocol(tmp_path: Path, kind: str) -> None:
    """The other team plays on, and cars of others cannot be driven."""
    program, says = BROKEN[kind]
    quick = replace(QUICK, patience=replace(QUICK.patience, start=1.0 if says == "not ready" else 30.0))
    outcome = play_match([bot(0, write_raw_bot(tmp_path / "a", "a", program)), player(1, "idle")], FirstGoals(1, 1.0), quick)
    conduct = only(outcome)
    assert len(outcome.results) == 1 and says in str(conduct) and conduct.faulty
    assert outcome.touches == (0, 0), "nobody has moved"
    assert no_children()


@pytest.mark.parametrize("kind", ["floods", "opens many connections"])
def test_a_program_that_floods_the_server_does_not_harm_the_other_bot(tmp_path: Path, kind: str) -> None:
    other = write_bot(tmp_path / "b", "Good", CHASES, initialize="time.sleep(1.0)", talk=True)
    seats = [bot(0, write_raw_bot(tmp_path / "a", "a", BROKEN[kind][0])), bot(1, other)]
    outcome = play_match(seats, FirstGoals(1, 3.0), replace(QUICK, patience=replace(QUICK.patience, answer=2.0)))
    assert not outcome.conduct[1].faulty and len(outcome.conduct[1].answer_seconds) == outcome.ticks


def test_exit_codes_of_windows_are_c_ints() -> None:
    """A crash there has an exit code of 32 bits without a sign, and the keeper's own must be a C int of the same bits."""
    for code in (0, 1, 255, 2**31 - 1, 0xC0000005, 2**32 - 1):
        assert as_exit_code(code) & 0xFFFFFFFF == code and as_exit_code(code) == ctypes.c_int32(code).value
    assert as_exit_code(-11) == -11


@pytest.mark.parametrize("goes", [False, True])
def test_a_program_that_started_others_takes_them_along(tmp_path: Path, goes: bool) -> None:
    """Also those that want to stay, and those of a program that has ended by itself before the match."""
    stays = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    program = ("import subprocess, sys\n"
               f"other = subprocess.Popen([sys.executable, '-c', {stays!r}])\n"
               "open('pid', 'w').write(str(other.pid))\n"
               f"introduce()\nsay(flat.InitComplete())\nreceive()\ntime.sleep({1.0 if goes else 600})\n")
    match = Match([bot(0, write_raw_bot(tmp_path / "a", "a", program)), player(1, "idle")], FirstGoals(1, 0.5), QUICK)
    try:
        match.begin()
        other = psutil.Process(int((tmp_path / "a" / "pid").read_text()))
        assert other.is_running()
        match.tick()
        if goes:
            match.programs[0].process.exit_code(within=20.0)
    finally:
        match.close()
    _, alive = psutil.wait_procs([other], timeout=5.0)
    assert not alive


def test_nothing_is_left_of_a_match_whose_process_is_killed(tmp_path: Path) -> None:
    """Bots that play, and one that hangs and would not notice."""
    for name, choose in (("Kill-A", CHASES), ("Kill-B", HANGS)):
        write_bot(tmp_path / name, name.replace("-", ""), choose)
    command = [sys.executable, "-m", "wavedash", "rlbot", "serve", str(tmp_path / "Kill-A" / "bot.toml"),
               str(tmp_path / "Kill-B" / "bot.toml"), "--minutes", "20", "--patience", "0.1", "--out",
               str(tmp_path / "games.csv")]
    server = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(bots := [p for p in server.children(recursive=True) if words_of(p)[-1:] == ["run.py"]]) < 2:
        assert time.monotonic() < until and server.poll() is None
        time.sleep(0.05)
    time.sleep(3.0)  # one of them hangs by now
    assert all(process.is_running() for process in bots)
    server.kill()
    server.wait()
    _, alive = psutil.wait_procs(bots, timeout=5.0)
    assert not alive


def test_predictions_are_how_the_ball_flies(tmp_path: Path) -> None:
    """With nobody near it, the ball is where it was predicted a second before."""
    choose = ("slices, ball = self.ball_prediction.slices, packet.balls[0].physics.location\n"
              "        assert len(slices) == 720 and abs(slices[0].game_seconds - info.seconds_elapsed) < 1e-4\n"
              "        spots = [(s.physics.location.x, s.physics.location.y, s.physics.location.z) for s in slices]\n"
              "        open('log', 'a').write(repr((info.frame_num, (ball.x, ball.y, ball.z), spots[0], spots[120])) + '\\n')\n"
              "        return flat.ControllerState()")
    path = write_bot(tmp_path / "a", "Watch", choose, predictions=True)
    match = Match([bot(0, path), player(1, "idle")], FirstGoals(1, 3.0), QUICK)
    try:
        match.begin()
        for tick in range(300):
            if tick == 20:
                state = match._arena.state
                state.ball.position[0, 2], state.ball.velocity[0, 0] = 600.0, 700.0
                match._arena.simulator.place(match._arena._all)
            match.tick()
    finally:
        match.close()
    rows: list[Any] = [eval(line) for line in (path.parent / "log").read_text().splitlines()]
    assert len(rows) == 300 and all(math.dist(now, first) <= 0.2 for frame, now, first, _ in rows)
    place = {frame: now for frame, now, _, _ in rows}
    for frame, _, _, later in rows[30:]:
        if frame + 120 in place:
            assert math.dist(place[frame + 120], later) < 1.0


def test_bots_of_a_team_talk_and_others_do_not_hear_it(tmp_path: Path) -> None:
    sends = "if self.packets == 20: self.send_match_comm(b'pass', 'to me', team_only=True)\n        " + CHASES
    hears = f"self.handle_match_comm = lambda *said: open('heard', 'a').write(repr(said))\n        {CHASES}"
    paths = [write_bot(tmp_path / name, name, choose, talk=True)
             for name, choose in (("Sender", sends), ("Mate", hears), ("Other", hears))]
    outcome = play_match([bot(0, paths[0]), bot(0, paths[1]), bot(1, paths[2])], FirstGoals(1, 2.0), QUICK)
    assert not any(conduct.faulty for conduct in outcome.conduct)
    assert (paths[1].parent / "heard").read_text() == "(0, 0, b'pass', 'to me', True)"
    assert not (paths[2].parent / "heard").exists()


def test_one_program_drives_a_hive(tmp_path: Path) -> None:
    program = ("introduce()\ncars = []\nready = False\nwhile True:\n    message = receive()\n"
               "    if isinstance(message, flat.ControllableTeamInfo):\n"
               "        cars = [one.index for one in message.controllables]\n        say(flat.InitComplete())\n"
               "    if isinstance(message, flat.GamePacket):\n        for car in cars:\n"
               "            say(flat.PlayerInput(car, flat.ControllerState(throttle=1.0)))\n")
    path = write_raw_bot(tmp_path / "a", "Hive", program, "hivemind = true")
    match = Match([bot(0, path), bot(0, path), player(1, "idle")], FirstGoals(1, 1.0), QUICK)
    try:
        match.begin()
        match.tick()
        start = match._arena.state.cars.position.clone()
        while not match.referee.over:
            match.tick()
            moved = (match._arena.state.cars.position - start)[0].norm(dim=-1)
    finally:
        match.close()
    assert len(match.programs) == 1 and not match.programs[0].conduct.faulty
    assert moved[0] > 100 and moved[1] > 100 and moved[2] < 5


def test_in_real_time_a_second_takes_a_second(tmp_path: Path) -> None:
    """A bot that stands still in between does not hold the match up, and none is called late for thinking a little."""
    naps = "time.sleep(0.02)\n        " + CHASES
    referee: Referee = FirstGoals(1, 1.5, countdown=0.1)
    outcome = play_match([bot(0, write_bot(tmp_path / "a", "Nap", naps)), player(1, "idle")], referee,
                         replace(QUICK, real_time=True))
    assert outcome.wall_seconds >= (outcome.ticks - 1) / 120
    conduct = only(outcome)
    assert not conduct.faulty and 0 < len(conduct.answer_seconds) < outcome.ticks
