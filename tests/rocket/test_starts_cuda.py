"""Starts and endings inside a CUDA graph: each replay of the graph writes a new start, as good as one written outside."""
from __future__ import annotations

import pytest
import torch

from wavedash.rocket import endings, starts
from wavedash.rocket.state import GameState

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


def test_starts_and_endings_are_captured(tmp_path):
    state = GameState.empty(4096, 4, "cuda")
    state.cars.team.copy_(torch.arange(4, device="cuda") >= 2)
    state.cars.present.fill_(True)
    generator = torch.Generator("cuda").manual_seed(0)
    previous = written(state.clone(), generator)
    starts.save_frames(tmp_path / "frames.npz", previous)
    parts = [kind() for kind in (
        starts.Kickoff, starts.FuzzedKickoff, starts.Random, starts.Turtle, starts.Wall, starts.AirDribble, starts.FlipReset,
        starts.JumpChallenge, starts.Shot, starts.Save, starts.Goalie, starts.Dribble,
    )]
    parts.append(starts.ReplayFrames(str(tmp_path / "frames.npz")))
    kickoff, mixture = starts.Kickoff(), starts.Mixture([(part, 1.0) for part in parts])
    ends = [endings.Goal(), endings.TimeOut(1.0), endings.NoTouch(1.0), endings.BallOnGround()]
    over = torch.zeros(4096, dtype=torch.bool, device="cuda")
    everywhere = torch.ones_like(over)
    for part in (kickoff, mixture, *ends):
        part.bind(state)

    def step() -> None:
        kickoff.write(state, generator)
        mixture.write(state, generator)
        for ending in ends:
            ending.begin(state, everywhere)
            over.logical_or_(ending(state, previous, state.events))

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        step()
    seen = []
    for _ in range(2):
        graph.replay()
        torch.cuda.synchronize()
        counts = torch.bincount(mixture.drawn, minlength=13)
        assert ((counts - 4096 / 13) ** 2 / (4096 / 13)).sum() < 32.9, "p = 0.001 at 12 degrees of freedom"
        assert state.cars.position.isfinite().all() and (state.cars.position[..., 2] > 10).all()
        seen.append(state.memory.clone())
    assert not torch.equal(*seen)


def written(state: GameState, generator: torch.Generator) -> GameState:
    kickoff = starts.Kickoff()
    kickoff.bind(state)
    kickoff.write(state, generator)
    return state
