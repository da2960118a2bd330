"""A state is the same whether it lies arena by arena or word by word: to read, to write, to play in, to save."""
from __future__ import annotations

from dataclasses import fields
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.rocket.blind import Blind
from tests.rocket.random_states import random_state
from tests.rocket.test_env import ends_after, random_actions
from wavedash.config_file import load_config
from wavedash.envs.errors import EnvError
from wavedash.rocket import names
from wavedash.rocket.env import RocketEnv, Task
from wavedash.rocket.observations import AdvancedObsPlus, DefaultObs
from wavedash.rocket.observations.columns import Columns
from wavedash.rocket.parts import Start
from wavedash.rocket.sim.simulator import WarpSimulator
from wavedash.rocket.starts import Kickoff, Mixture, Random, ReplayFrames, save_frames
from wavedash.rocket.state import GameState

ARENAS, BLUE, ORANGE = 40, 2, 2
SEATS = BLUE + ORANGE
FIELDS = [(part, field.name) for part, kind in GameState.PARTS.items() for field in fields(kind)]


def both(seed: int = 0, arenas: int = ARENAS) -> tuple[GameState, GameState]:
    """The same games, arena by arena and word by word."""
    state = random_state(arenas, BLUE, ORANGE, seed)
    return state, by_word(state)


def by_word(state: GameState) -> GameState:
    turned = GameState.empty(state.arenas, state.seats, by_word=True).copy_(state)
    assert turned.memory.stride() == (1, state.arenas) and turned.by_word and not state.by_word
    return turned


def field(state: GameState, part: str, name: str) -> Tensor:
    return getattr(getattr(state, part), name)


def different(one: GameState, other: GameState) -> list[str]:
    """Fields that are not the same to the bit."""
    return [f"{part}.{name}" for part, name in FIELDS if not same(field(one, part, name), field(other, part, name))]


def same(one: Tensor, other: Tensor) -> bool:
    """To the bit, NaN too."""
    if one.dtype == torch.float32:
        one, other = (x.contiguous().view(torch.int32) for x in (one, other))
    return torch.equal(one, other)


# --- the state -------------------------------------------------------------------------------------------------------


def test_a_field_lies_where_its_bytes_are():
    """The reference: byte b of word w of arena e is at ((w * E) + e) * 4 + b of the memory."""
    _, state = both()
    memory = np.frombuffer(state.memory.T.contiguous().numpy().tobytes(), np.uint8)
    for part, name, dtype, shape, offset, stride in GameState.layout(SEATS):
        kind = np.dtype(str(dtype).removeprefix("torch."))
        for e, seat in product(range(ARENAS), range(SEATS if stride else 1)):
            place = offset + seat * stride + np.arange(prod(shape) * kind.itemsize)
            there = memory[(place // 4 * ARENAS + e) * 4 + place % 4].view(kind).reshape(shape)
            seen = field(state, part, name)
            assert np.array_equal((seen[e, seat] if stride else seen[e]).numpy(), there, equal_nan=True), (part, name, e, seat)


def test_states_of_both_layouts_are_the_same():
    state, turned = both()
    assert different(state, turned) == [] and torch.equal(state.memory, turned.memory)
    some = slice(7, 19)
    for name, made in {
        "part": lambda x: x.part(some),
        "part of a part": lambda x: x.part(some).part(slice(2, 5)),
        "copy of a part": lambda x: x.part(some).clone(),
        "one arena": lambda x: x.part(slice(5, 6)),
        "copy of one arena": lambda x: x.part(slice(5, 6)).clone(),
        "mirrored": GameState.mirrored,
        "repeated": lambda x: x.repeated(3),
        "there and back": lambda x: GameState.empty(ARENAS, SEATS).copy_(x),
    }.items():
        assert different(made(state), made(turned)) == [], name
    assert len(different(state.part(slice(1, ARENAS)), turned.part(slice(0, ARENAS - 1)))) > 40, "another arena would be seen"


def test_copies_lie_as_what_they_are_copies_of():
    state, turned = both()
    assert not any(x.by_word for x in (state.clone(), state.mirrored(), state.repeated(2), state.part(slice(3, 9)).clone()))
    for copy in (turned.clone(), turned.mirrored(), turned.repeated(2), turned.to("cpu"), turned.part(slice(3, 9)).clone()):
        assert copy.memory.stride() == (1, copy.arenas)
    assert different(turned.repeated(2).part(slice(ARENAS, 2 * ARENAS)), state) == []
    view = turned.part(slice(3, 9))
    assert view.memory.stride() == (1, ARENAS) and view.memory.data_ptr() == turned.memory.data_ptr() + 3 * 4


@pytest.mark.parametrize("reads_by_word", [False, True])
def test_what_is_written_into_a_field_is_read_in_the_other_layout(reads_by_word):
    writes, reads = (pair[reads_by_word] for pair in (both(1)[::-1], both(1)))
    news = random_state(ARENAS, BLUE, ORANGE, 2)
    for part, name in FIELDS:
        expected = reads.clone()
        field(writes, part, name).copy_(field(news, part, name))
        assert different(writes, reads) in ([], [f"{part}.{name}"]), "a write reached another field"
        reads.copy_(writes)
        field(expected, part, name).copy_(field(news, part, name))
        assert torch.equal(reads.memory, expected.memory) and same(field(reads, part, name), field(news, part, name))
    assert torch.equal(reads.memory, news.memory)


@pytest.mark.parametrize("into_by_word", [False, True])
def test_some_arenas_are_taken_over_from_the_other_layout(into_by_word):
    one, other = both(3)[into_by_word], both(4)[not into_by_word]
    chosen, memory = torch.arange(ARENAS) % 3 == 0, one.memory
    expected = torch.where(chosen.unsqueeze(-1), other.memory, one.memory)
    one.copy_(other, chosen)
    assert one.memory is memory and one.by_word == into_by_word and torch.equal(memory, expected)


def test_the_wrong_layout_would_be_seen():
    state, turned = both()
    wrong = GameState.over(turned.memory.T.contiguous().view_as(state.memory), SEATS)
    assert len(different(state, wrong)) > 40


def test_columns_are_the_fields_in_either_layout():
    state, turned = both()
    wheels = torch.cat([state.cars.wheel_contact, state.cars.present.unsqueeze(-1)], -1)
    for one in (state, turned):
        moves = Columns(one, "ball", "position", "velocity")(one)
        assert torch.equal(moves, torch.cat([state.ball.position, state.ball.rotation.flatten(1), state.ball.velocity], -1))
        assert torch.equal(Columns(one, "cars", "boost", "handbrake")(one)[..., 1], state.cars.boost_time)
        flags = Columns(one, "cars", "wheel_contact", "present")(one)
        assert flags.shape == (ARENAS, SEATS, 2, 4) and torch.equal(flags.flatten(2)[..., :5], wheels)


# --- the parts of a task ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DefaultObs, AdvancedObsPlus, lambda: AdvancedObsPlus(frames=3)])
def test_observations_are_the_same(kind):
    seen = []
    for layout in range(2):
        observation, states = kind(), [both(seed)[layout] for seed in range(3)]
        observation.bind(states[0])
        observation.begin(states[0], torch.ones(ARENAS, dtype=torch.bool))
        controls = torch.rand(ARENAS, SEATS, 8, generator=torch.Generator().manual_seed(0))
        seen.append(torch.stack([observation.build(state, controls).clone() for state in states]))
    assert same(*seen) and seen[0].abs().max() > 0.5


@pytest.mark.parametrize("name", [name for name in names.shipped("start") if name not in ("mixture", "replay_frames")])
def test_starts_are_the_same(name):
    assert_same_starts(lambda: names.make("start", name))


def test_mixtures_of_starts_and_replays_are_the_same(tmp_path):
    frames = tmp_path / "frames.npz"
    save_frames(frames, random_state(50, BLUE, ORANGE, 7, empty=0.0))
    assert_same_starts(lambda: ReplayFrames(str(frames)))
    assert_same_starts(lambda: Mixture([(ReplayFrames(str(frames)), 1.0), (Kickoff(), 1.0), (Random(), 1.0)]))


def assert_same_starts(make) -> None:
    """But for the last bits of an angle: torch's arctangent of neighbours in memory is not that of numbers that are apart."""
    state, turned = both(5)
    before = state.clone()
    for one in (state, turned):
        generator = torch.Generator().manual_seed(0)
        for start in (Kickoff(), make()):
            start.bind(one)
            start.write(one, generator)
    for part, name in FIELDS:
        one, other = (field(x, part, name) for x in (state, turned))
        torch.testing.assert_close(one, other, rtol=0, atol=5e-7 * float(one.abs().max()) if one.is_floating_point() else 0)
    assert set(different(state, turned)) <= {"cars.rotation", "cars.velocity"} and len(different(state, before)) > 10


@pytest.mark.parametrize("name", names.shipped("ending"))
def test_endings_are_the_same(name):
    ends = []
    for layout in range(2):
        ending, (before, now) = names.make("ending", name), (both(seed)[layout] for seed in (5, 6))
        for state in (before, now):
            state.ball.position[::2, 2] = 93.0 if state is now else 1000.0
            state.game.tick.mul_(100 if state is now else 1)
        now.events.touches.zero_()
        ending.bind(before)
        ending.begin(before, torch.ones(ARENAS, dtype=torch.bool))
        ends.append(ending(now, before, now.events))
    assert torch.equal(*ends) and ends[0].any()


@pytest.mark.parametrize("name", names.shipped("reward"))
def test_rewards_are_the_same(name):
    """But for the last bit of a length: torch adds up three neighbours in another order than three that are apart."""
    paid = []
    for layout in range(2):
        reward, states = names.make("reward", name), [both(seed, 400)[layout] for seed in range(4)]
        for state in states:
            state.ball.position[::4, :2] = 0.0
            state.ball.position[1::4] = (state.cars.position - 150.0 * state.cars.up)[1::4, 0]  # under the wheels
        reward.bind(states[0])
        reward.begin(states[0], torch.ones(400, dtype=torch.bool))
        paid.append(torch.stack([reward(now, before, now.events).float() for before, now in pairwise(states)]))
    torch.testing.assert_close(*paid, rtol=1e-6, atol=1e-6)
    assert not torch.equal(paid[0][0], paid[0][1]), "two steps are paid alike: this proves little"


@pytest.mark.parametrize("name", names.shipped("player"))
def test_scripted_players_play_the_same(name):
    players = names.make("player", name), names.make("player", name)
    controls = []
    for player, state in zip(players, both(), strict=True):
        player.bind(state)
        controls.append(player.controls(state))
    torch.testing.assert_close(*controls, rtol=1e-6, atol=1e-6)


# --- whole games -----------------------------------------------------------------------------------------------------

PAID = "env.rocket.rewards={goal: 10, touch: 1, touch_height: 1, in_air: 0.5, save_boost: 1, boost_pickup: 1, demo: 1}"
"""Without lengths, as the starts are without angles: to the bit"""
STARTS = "env.rocket.starts={kickoff: 1, random: 2, turtle: 1, 'tests.rocket.test_layouts:OnTheRoof': 2}"
TASKS = {
    "advanced_obs_plus": ("env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}", PAID),
    "default_obs": ("env.rocket.observation=default_obs", "env.rocket.action={lookup_table: {sticky: 2}}", PAID),
}


class OnTheRoof(Start):
    """A kick-off, but the ball lies on the first car: something happens."""

    def write(self, state: GameState, generator: torch.Generator) -> None:
        state.ball.position.copy_(state.cars.position[:, 0] + torch.tensor([0.0, 0.0, 140.0]))


def env_of(in_parts: bool, *overrides: str, arenas: int = 100) -> RocketEnv:
    rocket = load_config("rocket-1v1", [ends_after(15), STARTS, *overrides]).env.rocket
    env = RocketEnv([WarpSimulator(arenas, 1, 1, in_parts=in_parts)], lambda: Task.configured(rocket))
    state = env._arenas[0].state
    assert state.by_word == in_parts and all(x.by_word == in_parts for x in (env._arenas[0].previous, env._arenas[0].fresh))
    return env


def numbers_of(env: RocketEnv, step) -> dict[str, Tensor]:
    """Everything that a step gives, and all states it leaves."""
    arenas = env._arenas[0]
    seen = {name: getattr(step, name) for name in ("reward", "terminated", "truncated", "active")}
    seen |= {f"obs.{name}": x for name, x in step.obs.items()} | {f"last.{name}": x for name, x in step.final_obs.items()}
    seen |= {f"state.{name}": getattr(arenas, name).memory for name in ("state", "previous", "fresh")} | {"used": arenas.used}
    return {name: x.clone() for name, x in (seen | step.metrics).items()}


def unequal(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
    assert one.keys() == other.keys()
    return [name for name, x in one.items() if not same(x, other[name])]


@pytest.mark.parametrize("blind", [False, True], ids=["seeing", "blind"])
@pytest.mark.parametrize("task", TASKS)
def test_a_world_that_lies_word_by_word_is_the_same_to_the_bit(task, blind):
    """`blind`: as on a GPU, where nobody looks."""
    env, turned = (env_of(in_parts, *TASKS[task]) for in_parts in (False, True))
    turned._arenas[0].looks = not blind
    assert all(torch.equal(x, y) for x, y in zip(env.reset(1).values(), turned.reset(1).values(), strict=True))
    ended, touched = 0, 0
    for t, action in enumerate(random_actions(env, 90)):
        expected = env.step(action)
        if blind:
            with Blind():
                step = turned.step(action)
        else:
            step = turned.step(action)
        assert unequal(numbers_of(turned, step), numbers_of(env, expected)) == [], t
        ended += int((expected.terminated | expected.truncated).sum())
        touched += int((expected.metrics["per_minute/touches"] > 0).sum())
    assert ended > 100 and touched > 20
    before = turned._arenas[0].fresh.memory.clone()
    turned.prepare()
    assert torch.equal(turned._arenas[0].fresh.memory, before) != blind


@pytest.mark.parametrize("saves_by_word", [False, True])
def test_a_world_that_was_saved_goes_on_in_the_other_layout(saves_by_word):
    task = TASKS["advanced_obs_plus"]
    env, other = env_of(saves_by_word, *task), env_of(not saves_by_word, *task)
    env.reset(2)
    actions = random_actions(env, 50)
    for action in actions[:20]:
        env.step(action)
    other.load_state({name: x.contiguous() for name, x in env.save_state().items()})
    for action in actions[20:]:
        assert unequal(numbers_of(other, other.step(action)), numbers_of(env, env.step(action))) == []
    assert torch.equal(env.save_state()["0.simulator.records"], other.save_state()["0.simulator.records"])


@pytest.mark.parametrize("in_parts", [False, True])
def test_records_in_bytes_are_refused(in_parts):
    env = env_of(in_parts)
    env.reset(0)
    saved = env.save_state()
    for name in ("0.fresh", "0.simulator.records"):
        with pytest.raises(EnvError, match=r"set env\."):
            env.load_state({**saved, name: saved[name].contiguous().view(torch.uint8)})
