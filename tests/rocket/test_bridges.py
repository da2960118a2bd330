"""Viewers: a real receiver gets over UDP the state that was shown, and a game goes on with and without one."""
from __future__ import annotations

import json
import logging
import os
import re
import socket
import struct
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from rlgym.rocket_league.common_values import BOOST_LOCATIONS

from tests import prepared
from tests.rocket.random_states import random_state
from tests.rocket.rlgym_states import to_rlgym
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.loading import load_policy
from wavedash.rocket.bridges import Pace, RLGymRenderer, RLViser, RocketSimVis, Viewer
from wavedash.rocket.bridges.rlgym_renderer import from_rlgym
from wavedash.rocket.bridges.rocketsimvis import PORT, packet
from wavedash.rocket.bridges.show import play, show_run
from wavedash.rocket.constants import HITBOXES
from wavedash.rocket.endings import TimeOut
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.names import make
from wavedash.rocket.parts import Start
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.starts import Random
from wavedash.rocket.state import CONTROLS, GameState
from wavedash.rocket.task import Task
from wavedash.training import train

ROOT = Path(__file__).parents[2]
RLVISER_PORT = 45243


class Receiver:
    """It listens on a port of this machine as a viewer does, and reads in a thread, so that nothing gets lost."""

    def __init__(self, port: int = 0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.socket.bind(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            pytest.skip(f"UDP port {port} is in use: a viewer is running")
        self.port = self.socket.getsockname()[1]
        self.packets: list[bytes] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while packet := self.socket.recv(1 << 20):
            self.packets.append(packet)

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        """Completes `packets`: the empty packet comes last."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join(20)
        self.socket.close()

    def games(self) -> list[dict]:
        return [json.loads(packet.decode("utf-8")) for packet in self.packets]


class Rolling(Start):
    """The ball rolls across the middle of the field, so that no goal ends an episode of one second."""

    def write(self, state: GameState, generator: torch.Generator) -> None:
        state.ball.velocity[:, 0] = 1000.0


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A tiny 1v1 policy from a real run; its episodes take one second and start with a moving ball."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        assert train("rocket-1v1", "total_steps=64", "env.count=4", "policy.hidden=[8]", "ppo.rollout_steps=8",
                     "ppo.minibatch_size=64", "env.rocket.endings={time_out: {seconds: 1}}",
                     "env.rocket.starts={'tests.rocket.test_bridges:Rolling': 1}") == 0
    return root


def one_second_task() -> Task:
    return Task(make("observation", "default_obs"), make("action", "lookup_table"), Rewards.named({"touch": 1.0}), Random(),
                {"time_out": TimeOut(1.0)})


# RocketSimVis


def test_rocketsimvis_receives_every_field_of_the_state():
    """The fields are compared with RLGym's form of the same states."""
    state = random_state(24, 3, 3, seed=5)
    with Receiver() as receiver:
        viewer = RocketSimVis(receiver.port)
        for arena in range(state.arenas):
            viewer.show(state, arena)
        viewer.close()
    games = receiver.games()
    assert len(games) == state.arenas
    seen = set()
    for arena, game in enumerate(games):
        truth = to_rlgym(state, arena)
        assert set(game) == {"gamemode", "ball_phys", "cars", "boost_pad_locations", "boost_pad_states"}
        assert game["gamemode"] == "soccar"
        assert game["ball_phys"] == motion(truth.ball)
        assert game["boost_pad_states"] == [timer <= 0 for timer in truth.boost_pad_timers]
        assert len(game["cars"]) == len(truth.cars)
        for car, (seat, true) in zip(game["cars"], truth.cars.items(), strict=True):
            assert car == {
                "team_num": true.team_num,
                "phys": motion(true.physics) | {"forward": true.physics.forward.tolist(), "up": true.physics.up.tolist()},
                "controls": dict(zip(CONTROLS, state.cars.controls[arena, seat].tolist(), strict=True)),
                "boost_amount": true.boost_amount,
                "on_ground": true.on_ground,
                "has_flipped_or_double_jumped": true.has_flipped or true.has_double_jumped,
                "is_demoed": true.is_demoed,
            }
            seen |= {(key, car[key]) for key in ("team_num", "on_ground", "has_flipped_or_double_jumped", "is_demoed")}
    assert len(seen) == 8  # blue and orange, demolished and not, ...
    assert {len(game["cars"]) for game in games} > {6}  # there were empty seats


def motion(body) -> dict[str, list[float]]:
    return {"pos": body.position.tolist(), "vel": body.linear_velocity.tolist(), "ang_vel": body.angular_velocity.tolist()}


def test_pads_are_where_rocketsimvis_draws_them():
    """It recognises big ones by a height of 73. (One small pad is 2 uu off in RLGym's table.)"""
    locations = np.array(packet(random_state(1, 1, 1, seed=0), 0)["boost_pad_locations"])
    np.testing.assert_allclose(locations, BOOST_LOCATIONS, atol=2)
    assert (locations[:, 2] == np.array(BOOST_LOCATIONS)[:, 2]).all()


def test_a_packet_of_the_largest_game_fits_everywhere():
    """macOS sends no more than 9,216 bytes at once."""
    state = random_state(16, 4, 4, seed=1, empty=0.0)
    assert max(len(json.dumps(packet(state, arena))) for arena in range(16)) < 9216


def test_a_game_goes_on_without_a_viewer_and_logs_it_once(caplog):
    state = random_state(1, 2, 2, seed=2)
    with Receiver() as receiver:
        port = receiver.port
    viewer = RocketSimVis(port)
    with caplog.at_level(logging.DEBUG, "wavedash"):
        for _ in range(50):
            viewer.show(state)
    (record,) = caplog.records
    assert f"port {port}" in record.message and "is it started?" in record.message
    with Receiver(port) as late:
        for _ in range(3):  # the first may only report that no viewer listened before
            viewer.show(state)
    assert late.games()[-1]["ball_phys"]["pos"] == state.ball.position[0].tolist()
    viewer.close()
    viewer.show(state)  # without harm


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs a local socket that can be full")
def test_a_full_buffer_is_not_waited_for(caplog):
    """UDP on one machine is never full, so another kind of socket takes its place, which is never read."""
    state, viewer = random_state(1, 3, 3, seed=3), RocketSimVis()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.setblocking(viewer._socket.getblocking())
    viewer._socket.close()
    viewer._socket = ours

    def show_often() -> None:
        for _ in range(400):
            viewer.show(state)

    thread = threading.Thread(target=show_often, daemon=True)
    with caplog.at_level(logging.DEBUG, "wavedash"):
        thread.start()
        thread.join(20)
    assert not thread.is_alive() and len(caplog.records) == 1
    assert json.loads(theirs.recv(1 << 20)) == packet(state, 0)
    ours.close()
    theirs.close()


def test_an_arena_that_does_not_exist_is_refused():
    state = random_state(2, 1, 1, seed=0)
    for arena in (-1, 2):
        with pytest.raises(IndexError, match=f"no arena {arena}: the state has 2"):
            packet(state, arena)


# The environment


def test_any_arena_of_any_shard_can_be_shown():
    groups = [RocketSimSimulator(count, 1, 1) for count in (2, 3)]
    env = RocketEnv(groups, one_second_task)
    env.reset(seed=0)
    env.step(torch.randint(90, (env.num_rows,), generator=torch.Generator().manual_seed(0)))
    everywhere = torch.cat([group.state.ball.position for group in groups])
    with Receiver() as receiver:
        viewer = RocketSimVis(receiver.port)
        for arena in range(5):
            viewer.show(env.state_of(arena))
    shown = torch.tensor([game["ball_phys"]["pos"] for game in receiver.games()])
    assert len(shown.unique(dim=0)) == 5
    torch.testing.assert_close(shown, everywhere, rtol=0, atol=0)
    assert env.step_seconds == 8 / 120
    for arena in (-1, 5):
        with pytest.raises(IndexError, match=f"no arena {arena}: this environment has 5"):
            env.state_of(arena)
    env.close()


class Clock:
    """Its time passes only in `sleep` and by simulated work."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


def test_steps_are_slowed_down_to_real_time():
    clock = Clock()
    pace = Pace(2.0, clock, clock.sleep)
    for work in (0.0, 0.03, 0.2, 0.0):  # the third takes longer than a step, and later ones do not catch up
        clock.now += work
        pace.wait(0.1)
    assert clock.slept == pytest.approx([0.05, 0.02, 0.0, 0.05])
    Pace(0, clock, clock.sleep).wait(1.0)
    assert len(clock.slept) == 4


class Recorder(Viewer):
    def __init__(self, clock: Clock):
        self.clock, self.times, self.ticks = clock, [], []

    def show(self, state, arena=0):
        self.times.append(self.clock.now)
        self.ticks.append(int(state.game.tick[arena]))


def test_a_policy_is_shown_step_by_step_at_the_asked_speed(run, capsys):
    env, clock = RocketEnv([RocketSimSimulator(1, 1, 1)], lambda: task_of(run)), Clock()
    recorder = Recorder(clock)
    play(env, load_policy(run), recorder, Pace(0.5, clock, clock.sleep), episodes=2, deterministic=True)
    env.close()
    assert recorder.ticks == [*range(0, 120, 8), *range(0, 120, 8), 0]
    assert np.diff(recorder.times) == pytest.approx([2 * 8 / 120] * 30)
    assert capsys.readouterr().out == "episode 1: 1.0 s of the game\nepisode 2: 1.0 s of the game\n"


def task_of(run: Path) -> Task:
    (config,) = run.glob("*/*/config.yaml")
    return Task.configured(load_config(str(config), []).env.rocket)


@pytest.mark.slow
def test_the_command_streams_a_trained_policy(run):
    with Receiver(PORT) as receiver:
        words = ["rocket", "show", str(run), "--episodes", "2", "--speed", "0", "--stochastic"]
        done = prepared.run(["-m", "wavedash", *words], ROOT)
    assert done.returncode == 0, done.stderr
    assert "plays Rocket League 1v1 in RocketSimVis" in done.stdout and "episode 2: 1.0 s of the game" in done.stdout
    games = receiver.games()
    assert len(games) == 1 + 2 * 15
    assert all([car["team_num"] for car in game["cars"]] == [0, 1] for game in games)
    # Between two packets of an episode the ball moves by its velocity: they are consecutive steps of one game.
    place, velocity = (np.array([game["ball_phys"][key] for game in games]) for key in ("pos", "vel"))
    moved = place[1:] - place[:-1]
    between = [i for i in range(30) if i not in (14, 29)]
    foreseen = (velocity[1:] + velocity[:-1]) / 2 * 8 / 120
    assert np.median(np.abs(moved - foreseen)[between]) < 1
    assert np.abs(moved).sum() > 100


def test_the_python_on_the_page_about_watching_shows_a_game():
    page = (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert code.count("range(450)") == 1
    with Receiver(PORT) as receiver:
        exec(code.replace("range(450)", "range(3)"), {})
    assert [[car["team_num"] for car in game["cars"]] for game in receiver.games()] == [[0, 0, 1, 1]] * 3


def test_a_run_that_is_not_rocket_league_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    assert train("cartpole", "total_steps=256", "policy.hidden=[8]") == 0
    with pytest.raises(UserError, match=r"trained in CartPole-v1; only runs of a Rocket League task"):
        show_run(tmp_path)


# RLGym


def test_an_environment_of_rlgym_is_shown_by_its_own_render():
    from rlgym.api import RLGym
    from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
    from rlgym.rocket_league.done_conditions import TimeoutCondition
    from rlgym.rocket_league.obs_builders import DefaultObs
    from rlgym.rocket_league.reward_functions import TouchReward
    from rlgym.rocket_league.sim import RocketSimEngine
    from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

    with Receiver() as receiver:
        start = MutatorSequence(FixedTeamSizeMutator(2, 1), KickoffMutator())
        env = RLGym(start, DefaultObs(), RepeatAction(LookupTableAction()), TouchReward(), RocketSimEngine(),
                    TimeoutCondition(10.0), renderer=RLGymRenderer(RocketSimVis(receiver.port)))
        env.reset()
        for _ in range(4):
            env.step({agent: np.array([8]) for agent in env.agents})
        env.render()
        truth = env.state
        env.close()
    (game,) = receiver.games()
    assert [car["team_num"] for car in game["cars"]] == [0, 0, 1]
    for car, true in zip(game["cars"], truth.cars.values(), strict=True):
        assert car["phys"]["pos"] == true.physics.position.tolist()
        np.testing.assert_allclose(car["phys"]["forward"], true.physics.forward, atol=1e-6)
        assert np.dot(car["phys"]["forward"], car["phys"]["vel"]) != 0  # it drives


def test_games_of_rlgym_are_shown_like_ours():
    state = random_state(16, 2, 2, seed=8)
    for arena in range(state.arenas):
        ours, theirs = packet(state, arena), packet(from_rlgym(to_rlgym(state, arena)), 0)
        for car in ours["cars"]:  # of the controls RLGym knows only jump
            car["controls"] = {name: car["controls"][name] if name == "jump" else 0 for name in CONTROLS}
        assert theirs == ours


# RLViser


def test_without_its_package_rlviser_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rlviser_py", None)
    with pytest.raises(UserError, match="pip install rlviser-py"):
        RLViser()


def in_a_process(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """The package keeps its port as long as the process lives, and aborts the process if the port is taken."""
    pytest.importorskip("rlviser_py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=folder, env=environment, capture_output=True,
                          text=True, check=False)


def test_rlviser_receives_every_field_of_the_state(tmp_path):
    """The packets of rlviser-py are decoded by the published schema of RLViser 0.9."""
    with Receiver(RLVISER_PORT) as receiver:
        done = in_a_process(tmp_path, """
            from tests.rocket.random_states import random_state
            from wavedash.rocket.bridges import RLViser
            state, viewer = random_state(24, 3, 3, seed=5), RLViser()
            for arena in range(24):
                viewer.show(state, arena)
            viewer.close()
            print("shown")
        """)
    assert done.stdout == "shown\n", done.stderr
    messages = [Message(data) for data in receiver.packets]
    assert [m.kind for m in messages] == ["connection", *["state"] * 24, "quit"]
    state = random_state(24, 3, 3, seed=5)
    for arena, message in enumerate(messages[1:-1]):
        game, truth = message.content, to_rlgym(state, arena)
        assert (game.value(0, "f"), game.value(1, "Q"), game.value(2, "B")) == (120.0, truth.tick_count, 0)
        assert game.floats(4, 18) == body(truth.ball)
        pads = game.tables(5)
        assert [bool(pad.floats(1, 1, "?")[0]) for pad in pads] == [timer <= 0 for timer in truth.boost_pad_timers]
        np.testing.assert_allclose([pad.floats(0, 3) for pad in pads], BOOST_LOCATIONS, atol=2)
        cars = game.tables(3)
        assert len(cars) == len(truth.cars)
        for info, (seat, true) in zip(cars, truth.cars.items(), strict=True):
            car = info.table(2)
            assert (info.value(0, "Q"), info.value(1, "B")) == (seat + 1, true.team_num)
            assert info.floats(3, 3) == pytest.approx(HITBOXES[true.hitbox_type].size, rel=1e-5)
            assert car.floats(0, 18) == body(true.physics)
            assert car.floats(2, 4, "?") == [*true.wheels_with_contact]
            flags = {1: "on_ground", 3: "has_jumped", 4: "has_double_jumped", 5: "has_flipped", 9: "is_flipping",
                     10: "is_jumping", 17: "is_supersonic", 20: "is_auto_flipping", 25: "is_demoed"}
            for field, name in flags.items():
                assert bool(car.value(field, "B")) == bool(getattr(state.cars, name)[arena, seat]), name
            numbers = {7: "jump_time", 8: "flip_time", 11: "air_time", 12: "air_time_since_jump", 13: "boost",
                       18: "supersonic_time", 19: "handbrake", 26: "demo_timer"}
            for field, name in numbers.items():
                assert car.value(field, "f") == float(getattr(state.cars, name)[arena, seat]), name
            sticks, buttons = car.floats(28, 5), car.floats(28, 3, "?", skip=20)
            assert [*sticks, *map(float, buttons)] == state.cars.controls[arena, seat].tolist()


def body(physics) -> list[float]:
    """Position, forward, right, up, velocity and spin of a body."""
    return np.concatenate([physics.position, physics.forward, physics.right, physics.up, physics.linear_velocity,
                           physics.angular_velocity]).tolist()


def test_rlviser_needs_its_port_but_no_window(tmp_path):
    """The package itself would abort the process if another one has the port."""
    with Receiver(RLVISER_PORT):
        pass  # skips where RLViser runs
    done = in_a_process(tmp_path, """
        import socket
        from tests.rocket.random_states import random_state
        from wavedash.errors import UserError
        from wavedash.rocket.bridges import RLViser
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(("0.0.0.0", 34254))
            try:
                RLViser()
            except UserError as error:
                print(error)
        for _ in range(2):
            viewer = RLViser()
            viewer.show(random_state(1, 1, 1, seed=0))
            viewer.close()
        print("shown twice")
    """)
    assert done.returncode == 0, done.stderr
    refusal, end = done.stdout.splitlines()
    assert "needs UDP port 34254" in refusal and end == "shown twice"
    assert done.stderr.count("Failed to launch RLViser") == 2  # the package's words: the program is not in this folder


class Message:
    """A packet: eight bytes of length, then a flatbuffer whose root holds a union: type and content."""

    def __init__(self, data: bytes):
        (length,) = struct.unpack_from(">Q", data)
        assert length == len(data) - 8
        root = Table(data[8:], struct.unpack_from("<I", data, 8)[0])
        self.kind = {1: "connection", 2: "quit", 3: "speed", 4: "paused", 5: "state"}[root.value(0, "B")]
        self.content = root.table(1)


class Table:
    """A table of a flatbuffer. Its fields have numbers; one that is left out is zero."""

    def __init__(self, data: bytes, at: int):
        self.data, self.at = data, at
        self.vtable = at - struct.unpack_from("<i", data, at)[0]
        self.fields = (struct.unpack_from("<H", data, self.vtable)[0] - 4) // 2

    def place(self, field: int) -> int:
        offset = struct.unpack_from("<H", self.data, self.vtable + 4 + 2 * field)[0] if field < self.fields else 0
        return self.at + offset if offset else 0

    def value(self, field: int, code: str) -> float:
        place = self.place(field)
        return struct.unpack_from("<" + code, self.data, place)[0] if place else 0

    def floats(self, field: int, count: int, code: str = "f", skip: int = 0) -> list[float]:
        """The numbers of a struct, which lies in the table itself."""
        assert self.place(field)
        return list(struct.unpack_from(f"<{count}{code}", self.data, self.place(field) + skip))

    def table(self, field: int) -> Table:
        place = self.place(field)
        return Table(self.data, place + struct.unpack_from("<I", self.data, place)[0])

    def tables(self, field: int) -> list[Table]:
        place = self.place(field)
        start = place + struct.unpack_from("<I", self.data, place)[0]
        (count,) = struct.unpack_from("<I", self.data, start)
        places = [start + 4 + 4 * i for i in range(count)]
        return [Table(self.data, p + struct.unpack_from("<I", self.data, p)[0]) for p in places]
