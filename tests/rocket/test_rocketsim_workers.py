"""RocketSim arenas in worker processes: the same games as in this process, also when workers die."""
from __future__ import annotations

import os
import signal
import sys
import time
from math import pi

import psutil
import pytest
import torch

from tests.rocket.test_rocketsim import assert_same, chase, everywhere, idle, make, scene  # noqa: F401 (make is a fixture)
from wavedash.envs.errors import EnvError
from wavedash.rocket.constants import CAR_REST_Z, PADS
from wavedash.rocket.rocketsim.batch import STEPPING
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator

pytestmark = pytest.mark.slow

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are how POSIX does it")


def pids(sim):
    return [worker.pid for worker in sim._supervisor.workers]


def shared_memory():
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def test_a_game_does_not_depend_on_the_number_of_workers(make):  # noqa: F811
    """Games are equal bit for bit, with cars that collide, are demolished and respawn, pads, and arenas placed in between."""
    sizes = [(1, 1), (1, 1), (1, 0), (0, 1), (1, 1)]
    alone, together = make(5, 1, 1, sizes=sizes), make(5, 1, 1, sizes=sizes, workers=2)
    assert_same(alone.state, together.state)
    duel = {seat: {"position": (80.0 * seat, -700.0 * side, CAR_REST_Z), "velocity": (0.0, 2250.0 * side, 0.0),
                   "yaw": side * pi / 2, "boost": 100.0, "is_supersonic": True} for seat, side in enumerate((1, -1))}
    for sim in (alone, together):
        scene(sim, {"position": (0.0, 0.0, 300.0), "velocity": (300.0, 100.0, 0.0)}, duel)
    demolished = came_back = touches = pads = 0
    for step in range(110):
        controls, was_demoed = chase(alone, step), alone.state.cars.is_demoed.clone()
        if step % 12 == 11:
            for sim in (alone, together):
                sim.state.ball.position[step % 5] = sim.state.cars.position[step % 5, 0] + torch.tensor([0.0, 300.0, 100.0])
                sim.place(torch.arange(5) == step % 5)
        for sim in (alone, together):
            sim.step(controls, ticks=8, delay=step % 3)
        assert_same(alone.state, together.state)
        demolished += int((alone.state.events.demolished >= 0).sum())
        came_back += int((was_demoed & ~alone.state.cars.is_demoed).sum())
        touches += int(alone.state.events.touches.sum())
        pads += int(alone.state.events.small_pads.sum())
    assert demolished and came_back and touches and pads


def test_send_returns_before_the_step_is_done(make):  # noqa: F811
    sim = make(2, 1, 1, workers=1)
    sim.send(idle(sim), ticks=20_000)
    assert not sim.ready
    while not sim.ready:
        time.sleep(0.01)
    sim.recv()
    assert sim.state.game.tick.tolist() == [20_000] * 2


@posix
@pytest.mark.parametrize("moment", ["idle", "stepping"])
def test_the_arenas_of_a_killed_worker_go_on(make, moment, caplog):  # noqa: F811
    """No step is lost or done twice, and what was placed stays placed. Cars are in the air, where their state is complete."""
    sim, healthy = make(4, 1, 1, workers=2), make(4, 1, 1)
    flying = {seat: {"position": (1000.0 * seat, 0.0, 1500.0), "velocity": (0.0, 100.0, 800.0), "on_ground": False,
                     "wheel_contact": False, "boost": 100.0} for seat in range(2)}
    for each in (sim, healthy):
        scene(each, {"position": (0.0, 3000.0, 500.0), "velocity": (0.0, 0.0, 900.0)}, flying, tick=50)
        each.step(chase(each, 0), ticks=8)
        each.state.ball.velocity[3] = torch.tensor([700.0, 0.0, 900.0])
        each.place(torch.arange(4) == 3)
    victim, controls = pids(sim)[1], chase(sim, 1)
    if moment == "idle":
        os.kill(victim, signal.SIGKILL)
        sim.send(controls, ticks=8)
    else:
        os.kill(victim, signal.SIGSTOP)  # so that the step is surely under way when it is killed
        sim.send(controls, ticks=8)
        os.kill(victim, signal.SIGKILL)
    sim.recv()
    healthy.step(controls, ticks=8)
    for step in range(2, 6):
        assert sim.state.game.tick.tolist() == [50 + 8 * step] * 4
        for body in ("ball", "cars"):
            for name in ("position", "velocity", "rotation"):
                torch.testing.assert_close(getattr(getattr(sim.state, body), name), getattr(getattr(healthy.state, body), name),
                                           rtol=1e-5, atol=1e-2)
        sim.step(chase(healthy, step), ticks=8)
        healthy.step(chase(healthy, step), ticks=8)
    assert sim.health == {"worker_restarts": 1}
    assert not psutil.pid_exists(victim)
    assert "RocketSim worker 1 (arenas 2 to 3) was killed by SIGKILL" in caplog.text


@posix
@pytest.mark.parametrize("moment", ["idle", "stepping"])
def test_games_that_went_on_in_a_new_worker_are_resumed_bit_for_bit(make, moment, caplog):  # noqa: F811
    """Cars drive, so that the new worker lacks what RocketSim does not expose: the saved game must be the one it played."""
    sim, other = make(4, 1, 1, workers=2), make(4, 1, 1)
    for step in range(10):
        if step == 6:
            if moment == "stepping":
                os.kill(pids(sim)[1], signal.SIGSTOP)
                sim.send(chase(sim, step), ticks=8)
            os.kill(pids(sim)[1], signal.SIGKILL)
        if sim._stepping:
            sim.recv()
        else:
            sim.step(chase(sim, step), ticks=8)
    assert sim.health == {"worker_restarts": 1}
    other.load(sim.save())
    assert "differ" not in caplog.text
    for step in range(10, 20):
        controls = chase(sim, step)
        for each in (sim, other):
            each.step(controls, ticks=8)
        assert_same(sim.state, other.state)


@posix
def test_a_worker_that_dies_in_its_first_step_begins_with_what_was_placed(make):  # noqa: F811
    sim, healthy = make(2, 1, 1, workers=1), make(2, 1, 1)
    for each in (sim, healthy):
        scene(each, {"position": (0.0, 100.0, 500.0), "velocity": (0.0, 0.0, 900.0)}, {}, tick=50)
    controls, worker = chase(healthy, 0), sim._supervisor.workers[0]
    sim.send(controls, ticks=20_000)
    while worker.signs.doing[0] != STEPPING:
        time.sleep(0.001)
    os.kill(worker.pid, signal.SIGKILL)
    sim.recv()
    healthy.step(controls, ticks=20_000)
    assert sim.health == {"worker_restarts": 1}
    assert_same(sim.state, healthy.state)


@posix
def test_a_worker_that_dies_after_its_step_does_not_do_it_again(make):  # noqa: F811
    """The step is already in memory when the worker dies before its answer is read."""
    sim, healthy = make(2, 1, 1, workers=1), make(2, 1, 1)
    on_a_pad = {"position": (PADS[0].x, PADS[0].y, CAR_REST_Z), "boost": 0.0, "ball_hit_tick": 3, "ball_hit_impulse_tick": 3}
    for each in (sim, healthy):
        scene(each, {"position": (0.0, 5150.0, 300.0), "velocity": (0.0, 3000.0, 0.0)}, {0: on_a_pad}, tick=100)
    worker = sim._supervisor.workers[0]
    sim.send(idle(sim), ticks=8)
    while not worker.pipe.poll(0):  # wait until it has answered
        time.sleep(0.01)
    sim._arrays.records[:] = 77  # as if it had died while it copied them
    worker.hear = lambda: hear_of_its_death(worker)
    sim.recv()
    healthy.step(idle(healthy), ticks=8)
    assert_same(sim.state, healthy.state)
    assert sim.state.game.goal.tolist() == [0, 0]
    assert sim.state.events.goal.tolist() == [[True, False]] * 2
    assert sim.state.events.small_pads.tolist() == [[1, 0]] * 2
    assert sim.state.pads.locked_car[:, 0].tolist() == [0, 0]
    assert sim.state.game.score.tolist() == [[1, 0]] * 2
    sim.step(idle(sim), ticks=8)
    healthy.step(idle(healthy), ticks=8)
    assert sim.health == {"worker_restarts": 1}
    torch.testing.assert_close(sim.state.ball.position, healthy.state.ball.position, rtol=1e-5, atol=1e-2)
    assert sim.state.game.score.tolist() == [[1, 0]] * 2


def hear_of_its_death(worker):
    del worker.hear
    worker._process.kill()
    worker._process.join()
    worker.pipe.recv_bytes()
    worker.hear()


@posix
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_a_worker_that_is_lost_in_an_arena_names_it_and_keeps_its_game(make, sign, caplog, tmp_path, monkeypatch):  # noqa: F811
    """Arenas are placed twice, so that the episode is shorter than the run; the kept game leads to the same bits."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sim, healthy = make(4, 1, 1, workers=2, timeout=3.0, first=10), make(4, 1, 1)
    for step in range(4):
        controls = chase(healthy, step)
        for each in (sim, healthy):
            if step in (0, 2):
                scene(each, {"position": (0.0, 100.0 * step, 500.0), "velocity": (0.0, 0.0, 900.0)}, {}, tick=50)
            each.step(controls, ticks=8, delay=step % 2)
    controls = chase(healthy, 4)
    sim.send(controls, ticks=20_000)
    second = sim._supervisor.workers[1].signs
    while second.doing[0] != STEPPING:  # until the second worker is in one of its arenas
        time.sleep(0.001)
    os.kill(pids(sim)[1], sign)
    arena = 2 + second.thing
    sim.recv()
    assert f"in arena {10 + arena}, step 3 since its episode began (after tick 66)" in caplog.text
    ended = {signal.SIGKILL: "was killed by SIGKILL", signal.SIGSEGV: "was killed by SIGSEGV",
             signal.SIGSTOP: "hung: no sign of life for 3"}
    assert f"(arenas 12 to 13) {ended[sign]}" in caplog.text
    assert ("rocketsim/arena.py" in caplog.text) == (sign == signal.SIGSEGV), "the stack of a crash"
    healthy.step(controls, ticks=20_000)
    lines = caplog.text.partition("To see it again:\n")[2].splitlines()[:2]
    names: dict = {}
    exec("\n".join(line.strip() for line in lines).replace("play('", "state = play('"), names)
    assert torch.equal(names["state"].memory[0], healthy.state.memory[arena])


@posix
def test_a_stopped_worker_is_taken_for_dead(make, caplog):  # noqa: F811
    sim = make(2, 1, 1, workers=2, timeout=1.0)
    os.kill(pids(sim)[0], signal.SIGSTOP)
    sim.step(idle(sim), ticks=8)
    assert sim.state.game.tick.tolist() == [8, 8]
    assert sim.health == {"worker_restarts": 1}
    assert "worker 0 (arenas 0 to 0) hung: no sign of life for 1" in caplog.text
    assert "It was in no arena: while it was starting, or between two steps" in caplog.text


@posix
def test_a_worker_that_dies_again_and_again_ends_the_run_and_leaves_nothing(make):  # noqa: F811
    before, children = shared_memory(), {child.pid for child in psutil.Process().children()}
    sim = make(2, 1, 1, workers=2)
    for _ in range(2):
        os.kill(pids(sim)[1], signal.SIGKILL)
        sim.step(idle(sim), ticks=8)
    os.kill(pids(sim)[1], signal.SIGKILL)
    with pytest.raises(EnvError, match=r"(?s)worker 1 .*was killed by SIGKILL.*3 times within a minute"):
        sim.step(idle(sim), ticks=8)
    left = [child for child in psutil.Process().children() if child.pid not in children]
    assert [child.cmdline() for child in left if "resource_tracker" not in " ".join(child.cmdline())] == []
    assert shared_memory() == before


@posix
def test_closing_ends_the_workers():
    sim = RocketSimSimulator(2, 1, 1, workers=2)
    workers = [psutil.Process(pid) for pid in pids(sim)]
    assert all("torch" not in str(worker.memory_maps()) for worker in workers), "a worker has no use for torch"
    sim.place(everywhere(sim))
    sim.step(idle(sim), ticks=8)
    sim.close()
    sim.close()
    assert not any(worker.is_running() for worker in workers)
