"""A tape holds what the arenas did, step by step, also around the ends of episodes, and changes nothing in them."""
from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.test_env import random_actions, simulated
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.recording import episodes as module
from wavedash.rocket.recording.episodes import Episodes, RawEpisode
from wavedash.rocket.recording.frames import RocketFrames
from wavedash.rocket.recording.tape import HostTape, Tape, evenly_spaced, make_tape
from wavedash.rocket.state import GameState

SHORT = "env.rocket.endings={goal: {}, time_out: {seconds: 0.8}}"
"""Episodes of 12 steps, which do not end together where they began at different times"""


class Witness:
    """Keeps by itself what a tape should hold: copies around every step."""

    def __init__(self, env: RocketEnv, arenas: list[int]) -> None:
        self.env, self.arenas = env, arenas
        self.episodes: list[tuple[int, list[torch.Tensor]]] = []
        self.open = {arena: [env.states[0].memory[arena].clone()] for arena in arenas}
        self.last: torch.Tensor | None = None
        task = env.tasks[0]
        own = task.ended

        def ended(state, previous, events):  # what endings see is the state before the next episode begins
            self.last = state.memory.clone()
            return own(state, previous, events)

        task.ended = ended

    def step(self, action: torch.Tensor) -> None:
        step = self.env.step(action)
        assert self.last is not None
        ended = (step.terminated | step.truncated).view(self.env.states[0].arenas, -1)[:, 0]
        for arena in self.arenas:
            self.open[arena].append(self.last[arena])
            if ended[arena]:
                self.episodes.append((arena, self.open[arena]))
                self.open[arena] = [self.env.states[0].memory[arena].clone()]


def same(raw: RawEpisode, rows: list[torch.Tensor], frames: RocketFrames, seats: int) -> bool:
    episode, expected = raw.encoded(frames), frames.records(GameState.over(torch.stack(rows), seats))
    return len(expected) == episode.frames == raw.frames and np.array_equal(expected, episode.records)


def staggered(env: RocketEnv) -> None:
    """Lets the arenas be at different times of their episodes, as after a long training."""
    env.reset(3)
    env.states[0].game.tick[:] = torch.arange(env.states[0].arenas) * 24


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
@pytest.mark.parametrize(("kind", "every", "arenas"), [(Tape, 1, [0, 2, 4]), (Tape, 16, [0, 1, 3]), (HostTape, 7, [0, 1, 3]),
                                                       (HostTape, 16, [0, 2, 4])])
def test_episodes_of_a_tape_are_those_that_were_played(simulator, kind, every, arenas):
    """However often it is read: every episode, frame by frame, from the beginning to the state of its end. The first episode of
    an arena began before the tape, and is not whole."""
    env = simulated("env.count=5", SHORT, simulator=simulator)
    staggered(env)
    state = env.states[0]
    tape, frames = kind(state, arenas, 16), RocketFrames.of(state)
    episodes, found = Episodes(tape, first_arena=10), []
    env.attach([tape])
    witness = Witness(env, arenas)
    for number, action in enumerate(random_actions(env, 60), 1):
        witness.step(action)
        if number % every == 0:
            found += episodes.read()
    found += episodes.read()
    for arena in arenas:
        mine, theirs = [one for one in found if one.arena == 10 + arena], [rows for at, rows in witness.episodes if at == arena]
        assert len(mine) == len(theirs) >= 4
        for number, (episode, rows) in enumerate(zip(mine, theirs, strict=True)):
            begun = number > 0 or arena == 0
            assert episode.whole == begun and same(episode, rows if begun else rows[1:], frames, state.seats)
    for episode in episodes.unfinished():
        assert same(episode, witness.open[episode.arena - 10], frames, state.seats)
    env.close()


def test_a_tape_that_was_not_read_in_time_has_a_gap_and_no_episode_spans_it():
    env = simulated("env.count=2", SHORT)
    staggered(env)
    tape = make_tape(env.states[0], [0, 1], 4)
    episodes, frames = Episodes(tape), RocketFrames.of(env.states[0])
    env.attach([tape])
    for number, action in enumerate(random_actions(env, 70), 1):
        env.step(action)
        if number % 5 == 0:  # one step too late
            strip = tape.read()
            assert strip.torn and len(strip.ended) == 4
            for raw in episodes.take(strip):
                assert raw.frames <= 5 and (np.diff(raw.encoded(frames).records["tick"]) == 8).all()
    assert len(tape.read().ended) == 0
    env.close()


def played(env: RocketEnv, steps: int, every: int, **options: int) -> tuple[list[RawEpisode], Episodes]:
    """The episodes of arena 1, read every so many steps."""
    env.reset(0)
    tape = make_tape(env.states[0], [1], every)
    episodes, found = Episodes(tape, **options), []
    env.attach([tape])
    for number, action in enumerate(random_actions(env, steps), 1):
        env.step(action)
        if number % every == 0:
            found += episodes.read()
            if "most" in options:
                assert all(one.frames <= options["most"] + every for one in episodes.unfinished())
            else:
                episodes.compact(RocketFrames.of(env.states[0]))
    return found, episodes


def test_long_episodes_keep_their_end():
    env = simulated("env.count=2", "env.rocket.endings={time_out: {seconds: 5}}")
    (raw,), _ = played(env, 80, 8, most=20)
    episode = raw.encoded(RocketFrames.of(env.states[0]))
    assert not episode.whole and episode.frames >= 20 and episode.records["tick"][-1] == 600
    assert (np.diff(episode.records["tick"]) == 8).all()
    part = episode.part(-5, 3)
    assert part.frames == 4 and np.array_equal(part.records, episode.records[:4])
    env.close()


def test_an_episode_that_was_made_smaller_on_the_way_is_the_same(monkeypatch):
    made = []
    for many in (10, 1000):
        monkeypatch.setattr(module, "MANY", many)
        env = simulated("env.count=2", "env.rocket.endings={time_out: {seconds: 5}}")
        (raw,), _ = played(env, 80, 8)
        assert (raw.before is not None) == (many == 10)
        made.append(raw.encoded(RocketFrames.of(env.states[0])))
        env.close()
    small, whole = made
    assert small.whole and small.frames == whole.frames == 76
    assert np.array_equal(small.records, whole.records) and np.array_equal(small.happened, whole.happened)


def test_writing_has_no_host_sync():
    """It can be captured in a CUDA graph. The control: reading cannot."""
    env = simulated("env.rocket.measures=[turtle, dribble]", "env.count=4")
    env.reset(0)
    env.step(random_actions(env, 1)[0])
    shard = env._shards[0]
    tape, uneven = (Tape(shard.state, arenas, 4, ["turtle", "dribble"]) for arenas in ([0, 3], [0, 2, 3]))
    metrics = shard._metrics()
    ended = torch.zeros(4, dtype=torch.bool)
    with NoHostSync():
        tape.write(shard.state, shard.previous, ended, shard.active, metrics)
        uneven.write(shard.state, shard.previous, ended, shard.active, metrics)
    with pytest.raises(AssertionError, match="host"), NoHostSync():
        tape.read()
    env.close()


@pytest.mark.parametrize("kind", [Tape, HostTape])
def test_successes_of_mechanics_and_the_cars_of_the_policy_are_kept(kind):
    env = simulated("env.rocket.measures=[turtle, dribble]", "env.count=3")
    env.reset(0)
    shard, calls = env._shards[0], []
    own = shard._metrics

    def metrics():
        found = dict(own())
        number = len(calls)
        found["attempt/dribble"] = torch.tensor([1.0, 0.0, torch.nan, 1.0, 0.0, 1.0]).roll(number)
        calls.append(found["attempt/dribble"].view(3, 2)[[2, 0]] == 1.0)
        return found

    shard._metrics = metrics
    shard.active = torch.tensor([True, True, True, False, False, True])
    tape = kind(env.states[0], [2, 0], 8, ["turtle", "dribble"])
    env.attach([tape])
    for action in random_actions(env, 5):
        env.step(action)
    strip = tape.read()
    assert torch.equal(strip.success[:, :, 1], torch.stack(calls)) and not strip.success[:, :, 0].any()
    assert torch.equal(strip.policy, torch.tensor([[False, True], [True, True]]).expand(5, 2, 2))
    env.close()


def test_a_tape_has_no_effect_on_the_games():
    """Bit for bit, in both simulators, with what players and measures remember."""
    for simulator in ("warp", "rocketsim"):
        seen = []
        for watched in (False, True):
            env = simulated("env.count=4", SHORT, "env.rocket.measures=[turtle]", simulator=simulator)
            env.reset(5)
            if watched:
                env.attach([make_tape(env.states[0], [1, 2], 3, ["turtle"])])
            steps = [env.step(action) for action in random_actions(env, 40)]
            seen.append((torch.stack([step.reward for step in steps]), torch.stack([step.obs["obs"] for step in steps]),
                         env.save_state()))
            env.close()
        (rewards, obs, state), (rewards_2, obs_2, state_2) = seen
        assert torch.equal(rewards, rewards_2) and torch.equal(obs, obs_2)
        assert state.keys() == state_2.keys() and all(torch.equal(x, state_2[name]) for name, x in state.items())


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6))
@example([5, 8, 11])
@example([4])
def test_a_slice_picks_the_arenas_or_there_is_none(numbers):
    found = evenly_spaced(numbers)
    if found is not None:
        assert list(range(40))[found] == numbers
    if numbers == list(range(numbers[0], numbers[0] + 3 * len(numbers), 3)):
        assert found is not None
