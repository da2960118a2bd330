"""Time is counted for the part that a lap names, by the host's clock and by a device's."""
from __future__ import annotations

from time import perf_counter

import pytest
import torch

from tests.ppo.learners import identity_learner, run_config
from wavedash.assembly import make_policy
from wavedash.bench.synthetic import SyntheticEnv
from wavedash.ppo.learner import Learner
from wavedash.ppo.stopwatch import DeviceStopwatch, Stopwatch

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Queue:
    """A device that is `behind` the host: it reaches later what it is given now. It stands in for CUDA's streams and events."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now, self.capturing = 0.0, False
        queue = self

        class Event:
            def __init__(self, enable_timing: bool):
                assert enable_timing

            def record(self, stream: object) -> None:
                assert not queue.capturing, "an event inside a captured graph measures no time"
                self.at = queue.now

            def elapsed_time(self, later: Event) -> float:
                return 1e3 * (later.at - self.at)

        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: self.capturing)


@pytest.mark.parametrize("kind", ["host", "device"])
def test_the_time_since_the_last_lap_is_the_named_parts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Queue(monkeypatch)
    monkeypatch.setattr("wavedash.ppo.stopwatch.perf_counter", lambda: clock.now)
    watch = Stopwatch() if kind == "host" else DeviceStopwatch(torch.device("cuda"))
    for laps in ([("inference", 2), ("env", 1), ("inference", 4), ("gae", 8)], [("env", 3), ("update", 16)]):
        clock.now += 100  # between two iterations
        watch.start()
        for part, seconds in laps:
            clock.now += seconds
            watch.lap(part)
        clock.now += 100
        expected = {part: sum(s for p, s in laps if p == part) for part in ("env", "inference", "gae", "update")}
        assert watch.read() == pytest.approx({part: s for part, s in expected.items() if s})


def test_a_captured_graph_is_timed_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Queue(monkeypatch)
    watch = DeviceStopwatch(torch.device("cuda"))
    device.capturing = True
    watch.lap("inference")
    device.capturing, device.now = False, 5.0
    watch.lap("collect")
    assert watch.read() == {"collect": 5.0}


def test_the_parts_of_an_iteration_are_all_there_and_none_is_counted_twice() -> None:
    learner = identity_learner("discrete", {"rollout_steps": 8, "minibatch_size": 64, "epochs": 1})
    for _ in range(2):
        began = perf_counter()
        seconds = learner.iterate().seconds
        whole = perf_counter() - began
        assert list(seconds) == ["env", "inference", "gae", "update", "other"]
        assert all(x > 0 for x in seconds.values()) and sum(seconds.values()) <= whole


@gpu
def test_a_gpu_reports_how_long_it_computed_and_not_how_long_launching_took() -> None:
    device = torch.device("cuda")
    watch = DeviceStopwatch(device)
    watch.start()
    torch.cuda._sleep(10**8)
    watch.lap("env")
    watch.lap("update")
    torch.zeros(1, device=device).item()
    seconds = watch.read()
    assert seconds["env"] > 0.01 and seconds["env"] > 100 * seconds["update"]


@gpu
@pytest.mark.parametrize("graphs", [False, True])
def test_iterations_on_a_gpu_report_the_time_of_their_parts(graphs: bool) -> None:
    env = SyntheticEnv(4096, "cuda")
    config = run_config({"rollout_steps": 8, "minibatch_size": 8192, "epochs": 1}, graphs=graphs)
    learner = Learner(env, make_policy(env, config), config)
    learner.start()
    for _ in range(5):
        began = perf_counter()
        seconds = learner.iterate().seconds
        whole = perf_counter() - began
    assert list(seconds) == [*(["collect"] if graphs else ["env", "inference", "gae"]), "update", "other"]
    assert all(x >= 0 for x in seconds.values())
    assert sum(seconds.values()) == pytest.approx(whole, rel=0.1)
