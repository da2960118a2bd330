"""Recording on a GPU: a captured step writes to the tape what the step writes, without a host sync."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.rocket.sim.test_env_cuda import ARENAS, actions_of, captured_step, env_of
from wavedash.assembly import assembled
from wavedash.config import RecordingsConfig
from wavedash.config_file import load_config
from wavedash.evaluate.matches import Match, arenas_of
from wavedash.league.match import match_recorder
from wavedash.league.players import find_entrant
from wavedash.recordings import read
from wavedash.recordings.order import Order
from wavedash.rocket.recording.episodes import Episodes
from wavedash.rocket.recording.frames import RocketFrames
from wavedash.rocket.recording.highlights import Highlights
from wavedash.rocket.recording.tape import Tape
from wavedash.runs.folder import RunFolder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

MEASURES = ("env.rocket.measures=[turtle]", "env.groups=1")


def test_a_captured_step_writes_the_same_tape_without_a_host_sync() -> None:
    plain, captured = env_of(*MEASURES), env_of(*MEASURES)
    actions, arenas = actions_of(plain, 60), [0, 100, ARENAS - 1]
    tapes = []
    for env in (plain, captured):
        env.reset(1)
        tapes.append(Tape(env.states[0], arenas, 16, ["turtle"]))
        env.attach([tapes[-1]])
    followed, frames = [Episodes(tape) for tape in tapes], RocketFrames.of(plain.states[0])
    graph, action, _ = captured_step(captured, actions)
    for t in range(2):
        plain.step(actions[t])
    seen = 0
    for t in range(2, 60):
        torch.cuda.set_sync_debug_mode("error")
        try:
            plain.step(actions[t])
            action.copy_(actions[t])
            graph.replay()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        if t % 10 == 0:
            ours, theirs = (episodes.read() for episodes in followed)
            assert len(ours) == len(theirs)
            for one, other in zip(ours, theirs, strict=True):
                assert np.array_equal(one.rows, other.rows) and np.array_equal(one.success, other.success)
                assert one.encoded(frames).frames == other.frames
            seen += len(ours)
    assert seen >= 6


@pytest.mark.parametrize("graphs", ["true", "false"])
def test_training_on_a_gpu_keeps_highlights_and_learns_the_same(graphs: str, tmp_path: Path) -> None:
    """Kernels may add in another order from run to run, so weights are compared up to rounding. There is no calibration, whose
    rollout would be written over the beginnings of the first episodes: the tape holds one rollout."""
    options = ["device=cuda", "env.count=64", "env.groups=1", f"graphs={graphs}", "policy.hidden=[16]", "ppo.rollout_steps=16",
               "ppo.minibatch_size=512", "ppo.normalize_obs=false", "ppo.normalize_reward=false",
               "env.rocket.endings={goal: {}, time_out: {seconds: 3}}",
               "env.rocket.starts={'tests.rocket.recording.games:Tap': 1}"]
    weights = []
    for watched in (True, False):
        with assembled(load_config("rocket-1v1", options)) as learner:
            listener = Highlights(RecordingsConfig(), RunFolder(tmp_path))
            if watched:
                listener.on_start(learner)
            learner.start()
            for _ in range(8):
                report = learner.iterate()
                if watched:
                    listener.on_iteration(learner, report)
            assert learner.captures_collection == (graphs == "true")
            weights.append(learner.updater.optimizer.parameters.clone())
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-4)
    files = [read(path) for path in (tmp_path / "recordings").glob("*-goal-*.wdr")]
    assert files and all(file["goal"][-1] == 0 and file["tick"][0] == 0 for file in files)


def test_a_captured_match_is_recorded(tmp_path: Path) -> None:
    first, second = find_entrant("chaser"), find_entrant("idle")
    results, files = [], []
    for number, graphs in enumerate((True, False)):
        order = Order(6, tmp_path / str(number))
        match = Match(arenas_of(1), first.player(), second.player(), 8, device="cuda", limit=4.0, graphs=graphs,
                      recorder=match_recorder(order, "match", first, [second], 1, "warp"))
        results.append(match.play_all(3)[0].played)
        match.close()
        files.append([read(path) for path in order.files])
    assert results[0] == results[1] and len(files[0]) == 6
    for one, other in zip(*files, strict=True):
        assert np.array_equal(one.records, other.records) and one.header["score"] == other.header["score"]
