"""Kernels find every field of the game state where tasks do."""
from typing import Any

import numpy as np
import pytest
import torch
import warp as wp
from numpy.lib.recfunctions import structured_to_unstructured

from wavedash.rocket.sim.kernels import records
from wavedash.rocket.sim.kernels.records import (
    MOTION_WORD,
    BallRecord,
    Car,
    EventRecord,
    GameRecord,
    Motion,
    Pose,
    car_at,
    event_at,
    game_at,
    is_present,
    load_motion,
    load_pose,
    pads_at,
)
from wavedash.rocket.sim.kernels.struct_io import stride_of
from wavedash.rocket.state import GameState

KINDS = {"ball": BallRecord, "cars": Car, "game": GameRecord, "events": EventRecord}
NAMES = {"ball": "ball", "cars": "car", "game": "game", "events": "event"}
ARENAS, SEATS = 5, 3


def place_in_words(seats: int) -> dict[tuple[str, str], tuple[float, float]]:
    """For each field of the state, its offset in a record and the stride to the next car, in words."""
    return {(part, name): (offset / 4, stride / 4) for part, name, _, _, offset, stride in GameState.layout(seats)}


@wp.kernel(enable_backward=False)
def places(seats: int, found: wp.array2d(dtype=wp.int32)):
    seat = wp.tid()
    found[seat, 0] = car_at(seat)
    found[seat, 1] = pads_at(seats)
    found[seat, 2] = game_at(seats)
    found[seat, 3] = event_at(seats, seat)


@pytest.mark.parametrize("seats", range(1, 9))
def test_the_parts_of_a_record_begin_where_the_state_has_them(seats: int) -> None:
    place = place_in_words(seats)
    found = wp.zeros((seats, 4), dtype=wp.int32, device="cpu")
    wp.launch(places, seats, [seats], [found], device="cpu")
    for seat, places_of_seat in enumerate(found.numpy().tolist()):
        (car, to_next), (event, to_next_event) = place["cars", "position"], place["events", "touches"]
        pads, game = place["pads", "timer"][0], place["game", "tick"][0]
        assert places_of_seat == [car + seat * to_next, pads, game, event + seat * to_next_event]
    assert place["ball", "position"][0] == records.BALL_AT
    assert pads + records.PAD_COUNT == place["pads", "locked_car"][0]
    assert game + records.GOAL_WORD == place["game", "goal"][0]
    for part, first in (("ball", records.BALL_AT), ("cars", car)):
        words = [place[part, name][0] - first for name in ("rotation", "velocity", "angular_velocity")]
        assert words == [3, records.MOTION_WORD, records.MOTION_WORD + 3]
    for word, name in ((records.BOOST_WORD, "boost"), (records.HITBOX_WORD, "hitbox"), (records.TEAM_WORD, "team"),
                       (records.HIT_TICK_WORD, "ball_hit_tick")):
        assert car + word == place["cars", name][0]
    assert records.CAR_WORDS == stride_of(Car) == to_next and records.EVENT_WORDS == stride_of(EventRecord) == to_next_event


@wp.kernel(enable_backward=False)
def look(words: wp.array2d(dtype=wp.int32), there: wp.array2d(dtype=wp.bool), pose: wp.array2d(dtype=Pose),
         motion: wp.array2d(dtype=Motion)):
    e, seat = wp.tid()
    there[e, seat] = is_present(words, e, seat)
    pose[e, seat] = load_pose(words, e, car_at(seat))
    motion[e, seat] = load_motion(words, e, car_at(seat) + MOTION_WORD)


def test_presence_pose_and_motion_are_read_without_loading_a_car() -> None:
    state = random_state(2)
    words = state.memory.clone()
    there = wp.zeros((ARENAS, SEATS), dtype=wp.bool, device="cpu")
    pose, motion = (wp.zeros((ARENAS, SEATS), dtype=kind, device="cpu") for kind in (Pose, Motion))
    wp.launch(look, (ARENAS, SEATS), [wp.from_torch(words)], [there, pose, motion], device="cpu")
    assert 0 < there.numpy().sum() < ARENAS * SEATS
    assert np.array_equal(there.numpy(), state.cars.present)
    for seen in (pose, motion):
        for name in seen.numpy().dtype.names:
            assert np.array_equal(seen.numpy()[name], getattr(state.cars, name))


# Loading and storing ----------------------------------------------------------------------------------------------------------


def kernels(part: str) -> tuple[Any, Any]:
    """One loads the records of a part from place `first` of all arenas, the other stores them there."""
    Record, load, store = KINDS[part], getattr(records, f"load_{NAMES[part]}"), getattr(records, f"store_{NAMES[part]}")

    @wp.kernel(enable_backward=False, module="unique")
    def load_all(words: wp.array2d(dtype=wp.int32), first: int, found: wp.array(dtype=Record)):
        found[wp.tid()] = load(words, wp.tid(), first)

    @wp.kernel(enable_backward=False, module="unique")
    def store_all(words: wp.array2d(dtype=wp.int32), first: int, given: wp.array(dtype=Record)):
        store(words, wp.tid(), first, given[wp.tid()])

    return load_all, store_all


def random_state(seed: int) -> GameState:
    """A state in which every field has values of its own."""
    generator = torch.Generator().manual_seed(seed)
    state = GameState.empty(ARENAS, SEATS)
    for part, name, dtype, *_ in GameState.layout(SEATS):
        values = getattr(getattr(state, part), name)
        high = 2 if dtype == torch.bool else 2**20
        values.copy_(torch.randint(high, values.shape, generator=generator))
    return state


def of_seat(state: GameState, part: str, name: str, seat: int) -> np.ndarray:
    values = getattr(getattr(state, part), name)
    return np.asarray(values[:, seat] if part in GameState.PER_CAR else values)


def same(record: np.ndarray, state: GameState, part: str, seat: int) -> dict[str, bool]:
    """For each field, whether the records of a seat hold what the state does."""
    return {name: np.array_equal(unnamed(record[name]), of_seat(state, part, name, seat)) for name in record.dtype.names}


def unnamed(field: np.ndarray) -> np.ndarray:
    """A field as the state has it, where all controls are one."""
    return structured_to_unstructured(field) if field.dtype.names else field


def first_word(part: str, seat: int) -> int:
    place, stride = next(at for (other, _), at in place_in_words(SEATS).items() if other == part)
    return int(place + seat * stride)


@pytest.mark.parametrize("part", KINDS)
def test_every_field_is_loaded_and_stored(part: str) -> None:
    load_all, store_all = kernels(part)
    state, other = random_state(0), random_state(1)
    for seat in range(SEATS if part in GameState.PER_CAR else 1):
        found = wp.zeros(ARENAS, dtype=KINDS[part], device="cpu")
        wp.launch(load_all, ARENAS, [wp.from_torch(state.memory.clone()), first_word(part, seat)], [found], device="cpu")
        fields = {name for other_part, name, *_ in GameState.layout(SEATS) if other_part == part}
        assert same(found.numpy(), state, part, seat) == dict.fromkeys(fields, True)

        words = other.memory.clone()
        wp.launch(store_all, ARENAS, [wp.from_torch(words), first_word(part, seat), found], device="cpu")
        expected = other.clone()  # nothing else may change
        for name in fields:
            values = getattr(getattr(expected, part), name)
            (values[:, seat] if part in GameState.PER_CAR else values).copy_(torch.from_numpy(of_seat(state, part, name, seat)))
        assert torch.equal(words, expected.memory)


@pytest.mark.parametrize("part", KINDS)
def test_a_wrong_place_would_be_seen(part: str) -> None:
    load_all, _ = kernels(part)
    state, found = random_state(0), wp.zeros(ARENAS, dtype=KINDS[part], device="cpu")
    words, first = state.memory.clone(), first_word(part, 0)
    for wrong, place in ((words, first + 4), (words.T.contiguous().view(ARENAS, -1), first)):
        wp.launch(load_all, ARENAS, [wp.from_torch(wrong), place], [found], device="cpu")
        right = same(found.numpy(), state, part, 0)
        assert sum(right.values()) <= len(right) // 4, "flags may be the same by chance"
