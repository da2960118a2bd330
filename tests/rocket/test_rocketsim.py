"""RocketSimSimulator against RocketSim itself, RLGym's engine, and situations whose outcome is known."""
from __future__ import annotations

import gc
import os
import struct
import sys
from collections import Counter
from dataclasses import fields
from math import pi

import numpy as np
import pytest
import torch
from rlgym.rocket_league.sim import RocketSimEngine

from tests.rocket.rlgym_states import BODY_FIELDS, CAR_FIELDS, to_rlgym
from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.rocket.constants import BALL_REST_Z, CAR_REST_Z, GOAL_Y, HITBOXES, KICKOFF_SPAWNS, PADS, RESPAWN_SPOTS
from wavedash.rocket.geometry import rotation
from wavedash.rocket.rocketsim import package, state_bytes
from wavedash.rocket.rocketsim.fields import BALL_COLUMNS, CAR_COLUMNS, car_values
from wavedash.rocket.rocketsim.layout import record_layout
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.rocketsim.state_reader import StateReader
from wavedash.rocket.state import GameState

PARTS = ("ball", "cars", "pads", "game", "events")
ON_THE_WHEELS = {"position": (0.0, 0.0, CAR_REST_Z), "on_ground": True, "wheel_contact": True}


@pytest.fixture
def make(request):
    """Makes simulators that are closed at the end of the test."""
    def make(*args, **kwargs):
        sim = RocketSimSimulator(*args, **kwargs)
        request.addfinalizer(sim.close)
        return sim
    return make


@pytest.fixture(scope="module")
def duel():
    """One arena of two against one, which several tests use one after the other."""
    sim = RocketSimSimulator(1, 2, 1)
    yield sim
    sim.close()


def random_controls(sim, seed):
    generator = torch.Generator().manual_seed(seed)
    controls = torch.rand(sim.state.arenas, sim.state.seats, 8, generator=generator) * 2 - 1
    controls[..., 0] = controls[..., 0].abs().sqrt()
    controls[..., 5:] = (controls[..., 5:] > 0.3).float()
    return controls


def chase(sim, seed):
    """Random controls, but cars on the ground drive toward the ball."""
    controls, cars = random_controls(sim, seed), sim.state.cars
    way = sim.state.ball.position[:, None] - cars.position
    ahead, aside = (way * cars.forward).sum(-1), (way * cars.right).sum(-1)
    controls[..., 0] = 1.0
    controls[..., 1] = torch.atan2(aside, ahead).mul(2).clamp(-1, 1)
    controls[..., 5] *= (way.norm(dim=-1) < 500).float()
    return controls


def idle(sim):
    return torch.zeros(sim.state.arenas, sim.state.seats, 8)


def everywhere(sim):
    return torch.ones(sim.state.arenas, dtype=torch.bool)


def scene(sim, ball, cars, tick=0):
    """Places ball and cars (by seat) in all arenas, the other cars far away in the corners; there are no events yet."""
    state = sim.state
    for part in ("ball", "cars", "pads"):
        for field in fields(getattr(state, part)):
            if field.name not in ("team", "hitbox", "present"):
                getattr(getattr(state, part), field.name).zero_()
    state.clear_events()
    state.game.tick.fill_(tick)
    state.game.score.zero_()
    for number in (state.ball.last_touch, state.cars.contact_car, state.cars.ball_hit_tick, state.cars.ball_hit_impulse_tick,
                   state.pads.locked_car):
        number.fill_(-1)
    state.ball.rotation.copy_(torch.eye(3))
    state.cars.rotation.copy_(torch.eye(3))
    for name, value in ball.items():
        getattr(state.ball, name).copy_(torch.as_tensor(value))
    corners = [(-3000.0, -3500.0), (-3000.0, 3500.0), (3000.0, -3500.0), (3000.0, 3500.0)]
    for seat in range(state.seats):
        given = {**ON_THE_WHEELS, "position": (*corners[seat % 4], CAR_REST_Z), "boost": 33.0, **cars.get(seat, {})}
        if "yaw" in given:
            given["rotation"] = rotation(torch.tensor(given.pop("yaw")))
        for name, value in given.items():
            getattr(state.cars, name)[:, seat] = torch.as_tensor(value)
    sim.place(everywhere(sim))


def same(a, b, parts=PARTS):
    """Names of the fields that differ by any bit."""
    return [f"{part}.{field.name}" for part in parts for field in fields(getattr(a, part))
            if not torch.equal(getattr(getattr(a, part), field.name), getattr(getattr(b, part), field.name))]


def assert_same(a, b, parts=PARTS):
    assert same(a, b, parts) == []


# Every field, both ways


def fill_at_random(state, seed):
    """Fills the state with any values, plausible or not, that are consistent with each other."""
    generator = torch.Generator().manual_seed(seed)
    seats = state.seats

    def number(low, high, shape):
        return torch.randint(low, high + 1, shape, generator=generator, dtype=torch.int32)

    for part in ("ball", "cars", "pads"):
        for field in fields(getattr(state, part)):
            tensor = getattr(getattr(state, part), field.name)
            if tensor.dtype == torch.float32:
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * 10)
            elif tensor.dtype == torch.bool and field.name != "present":
                tensor.copy_(number(0, 1, tensor.shape) > 0)
    state.game.tick.copy_(number(0, 10**6, state.game.tick.shape))
    state.game.score.copy_(number(0, 9, state.game.score.shape))
    for seat in (state.ball.last_touch, state.cars.contact_car, state.pads.locked_car):
        seat.copy_(number(-1, seats - 1, seat.shape))
    state.pads.timer.clamp_(min=0)
    state.cars.controls[..., :5].tanh_()
    state.cars.controls[..., 5:].copy_(number(0, 1, (state.arenas, seats, 3)))
    tick = state.game.tick[:, None].double()
    hit = torch.rand(state.arenas, seats, generator=generator) < 0.7
    for name in ("ball_hit_tick", "ball_hit_impulse_tick"):
        when = (torch.rand(state.arenas, seats, generator=generator) * tick).int()
        getattr(state.cars, name).copy_(torch.where(hit, when, -1))


THEIRS = {
    "position": lambda s: s.pos.as_tuple(),
    "rotation": lambda s: np.array(s.rot_mat.as_tuple()).T,
    "velocity": lambda s: s.vel.as_tuple(),
    "angular_velocity": lambda s: s.ang_vel.as_tuple(),
    "boost": lambda s: s.boost,
    "boost_time": lambda s: s.time_spent_boosting,
    "supersonic_time": lambda s: s.supersonic_time,
    "handbrake": lambda s: s.handbrake_val,
    "air_time": lambda s: s.air_time,
    "air_time_since_jump": lambda s: s.air_time_since_jump,
    "jump_time": lambda s: s.jump_time,
    "flip_time": lambda s: s.flip_time,
    "flip_torque": lambda s: s.flip_rel_torque.as_tuple(),
    "auto_flip_timer": lambda s: s.auto_flip_timer,
    "auto_flip_torque": lambda s: s.auto_flip_torque_scale,
    "demo_timer": lambda s: s.demo_respawn_timer,
    "contact_normal": lambda s: s.world_contact_normal.as_tuple(),
    "contact_cooldown": lambda s: s.car_contact_cooldown_timer,
    "ball_hit_offset": lambda s: s.ball_hit_info.relative_pos_on_ball.as_tuple(),
    "ball_hit_position": lambda s: s.ball_hit_info.ball_pos.as_tuple(),
    "ball_hit_impulse": lambda s: s.ball_hit_info.extra_hit_vel.as_tuple(),
    "controls": lambda s: [getattr(s.last_controls, name) for name in
                           ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")],
    "wheel_contact": lambda s: s.wheels_with_contact,
    "on_ground": lambda s: s.is_on_ground,
    "has_jumped": lambda s: s.has_jumped,
    "has_double_jumped": lambda s: s.has_double_jumped,
    "has_flipped": lambda s: s.has_flipped,
    "is_jumping": lambda s: s.is_jumping,
    "is_flipping": lambda s: s.is_flipping,
    "is_auto_flipping": lambda s: s.is_auto_flipping,
    "is_supersonic": lambda s: s.is_supersonic,
    "is_demoed": lambda s: s.is_demoed,
    "has_contact": lambda s: s.has_world_contact,
}
OUR_OWN = {"team", "hitbox", "present", "contact_car", "ball_hit_tick", "ball_hit_impulse_tick"}


def test_every_field_that_is_placed_is_set_in_rocketsim_and_comes_back(make):
    """The list above is written out, so that a field of the state that is not copied is noticed."""
    sim = make(6, 3, 3, hitboxes=[hitbox.name for hitbox in HITBOXES])
    state = sim.state
    assert {field.name for field in fields(state.cars)} == {*THEIRS, *OUR_OWN}
    for seed in range(3):
        fill_at_random(state, seed)
        placed = state.clone()
        sim.place(everywhere(sim))
        sim.step(idle(sim), ticks=0)
        for body in ("ball", "cars"):  # RocketSim counts in 50 uu, which costs the last bits of these
            for name in ("position", "velocity"):
                torch.testing.assert_close(getattr(getattr(state, body), name), getattr(getattr(placed, body), name),
                                           rtol=1e-6, atol=1e-6)
                getattr(getattr(placed, body), name).copy_(getattr(getattr(state, body), name))
        placed.clear_events()
        assert_same(state, placed)
        for e, arena in enumerate(sim._batch._arenas):
            for seat, car in arena._cars.items():
                theirs = car.get_state()
                for name, read in THEIRS.items():
                    np.testing.assert_allclose(np.array(read(theirs), float), getattr(placed.cars, name)[e, seat].numpy(),
                                               rtol=1e-6, atol=1e-6, err_msg=name)
                hit = theirs.ball_hit_info
                assert hit.is_valid == (placed.cars.ball_hit_tick[e, seat] >= 0)
                if hit.is_valid:
                    age = placed.game.tick[e] - placed.cars.ball_hit_tick[e, seat]
                    assert hit.tick_count_when_hit == arena._arena.tick_count - age
                other = int(placed.cars.contact_car[e, seat])
                assert theirs.car_contact_id == (arena._cars[other].id if other >= 0 else 0)
            for index, pad in enumerate(arena._arena.get_boost_pads()):
                timer = placed.pads.timer[e, index].item()
                assert pad.get_pos().as_tuple() == PADS[index][:3]
                assert (pad.get_state().cooldown, pad.get_state().is_active) == (timer, timer == 0)


def test_copies_of_objects_hold_the_values_of_their_attributes(make):
    """The places of RocketSim's values in its objects were found by search; its attributes are what is documented."""
    sim = make(4, 2, 2, sizes=[(2, 2), (2, 2), (1, 0), (0, 1)])
    for seed in range(30):
        sim.step(random_controls(sim, seed), ticks=8)
    batch = sim._batch
    assert (batch._reader._ball, batch._reader._car) == state_bytes.from_memory(), "the reader under test is in use"
    records = sim.state.memory.clone().view(torch.uint8).numpy()
    records[:] = 255
    by_attributes = StateReader(record_layout(4), records, by_attributes=True)
    read = []
    for i, arena in enumerate(batch._arenas):
        read += by_attributes.read(*arena.states())
        by_attributes.set_offsets(i, arena.number_offset, arena.tick_offset)
    by_attributes.write(read)
    read = GameState.over(torch.from_numpy(records).view(torch.int32), 4)
    different = set(same(read, sim.state, ("ball", "cars")))
    assert different == {"cars.controls", "cars.team", "cars.hitbox", "cars.present"}, "RocketSim does not have these"


def test_no_byte_beyond_an_object_is_read():
    """A copy is exactly the memory that the allocator gave the object, every number lies wholly within it, and objects of any
    other type (smaller ones among them) are not read."""
    rs = package.rocketsim()
    ball, car = state_bytes.from_memory()
    for state, kind, columns in ((ball, rs.BallState, BALL_COLUMNS), (car, rs.CarState, CAR_COLUMNS)):
        thing = kind()
        assert len(state.read(thing)) == state.size == kind.__basicsize__ <= sys.getsizeof(thing)
        assert kind.__itemsize__ == 0, "no object of the type is of another size"
        assert all(0 <= offset <= state.size - struct.calcsize("<" + column.code)
                   for offset, column in zip(state.offsets, columns, strict=True))
        for other in (rs.Vec(), rs.BallState() if kind is rs.CarState else rs.CarState(), object(), None):
            with pytest.raises(TypeError, match="its memory is not read"):
                state.read(other)


def test_attributes_are_read_if_their_values_are_not_found_in_memory(make, monkeypatch):
    """Another compiler or interpreter may lay objects out differently."""
    monkeypatch.setattr(state_bytes, "car_values", lambda state: [*car_values(state)[:-1], not state.ball_hit_info.is_valid])
    assert state_bytes.from_memory.__wrapped__() is None
    monkeypatch.undo()
    monkeypatch.setattr(state_bytes, "from_memory", lambda: None)
    slow = make(2, 1, 1)
    monkeypatch.undo()
    fast = make(2, 1, 1)
    assert slow._batch._reader._car != fast._batch._reader._car
    for seed in range(20):
        for sim in (slow, fast):
            sim.step(random_controls(sim, seed), ticks=8)
    assert_same(slow.state, fast.state)


# RLGym's engine


@pytest.mark.parametrize("delay", [0, 1])
def test_a_game_is_the_same_as_in_rlgyms_engine(make, delay):
    """Every field that RLGym has is equal bit for bit over 200 steps in which two cars chase the ball. (With more cars RLGym's
    own games differ from run to run when one drives over another.)"""
    sim = make(1, 1, 1, hitboxes=["dominus", "merc"])
    engine = RocketSimEngine(rlbot_delay=bool(delay))
    engine._arena.step(1)  # the first tick of an arena's life is a special one, and ours has had it without cars
    scene(sim, {"position": (0.0, 0.0, 400.0), "velocity": (0.0, 0.0, 0.1)}, {
        seat: {"position": (200.0 * seat, -900.0 * side, CAR_REST_Z), "boost": 100.0, "yaw": side * pi / 2}
        for seat, side in enumerate((1, -1))})
    game = to_rlgym(sim.state, 0)
    game.config = engine.create_base_state().config
    game.config.boost_consumption = (100 / 3) / 33.3  # RLGym takes 33.3 a second for the game's 100 / 3
    engine.set_state(game, {})
    touched = 0
    for step in range(200):
        controls = chase(sim, step)
        sim.step(controls, ticks=8, delay=delay)
        actions = {seat: np.repeat(controls[0, seat].numpy()[None], 8, axis=0) for seat in range(2)}
        expected = engine.step(actions, {})
        assert not sim.state.cars.is_demoed.any(), "RLGym's cars come back anywhere"
        ours = to_rlgym(sim.state, 0)
        assert ours.tick_count == expected.tick_count
        np.testing.assert_array_equal(ours.boost_pad_timers, expected.boost_pad_timers)
        for name in BODY_FIELDS:
            np.testing.assert_array_equal(getattr(ours.ball, name), getattr(expected.ball, name), err_msg=name)
        for seat in range(2):
            car, other = ours.cars[seat], expected.cars[seat]
            for name in BODY_FIELDS:
                np.testing.assert_array_equal(getattr(car.physics, name), getattr(other.physics, name), err_msg=name)
            for name in (*CAR_FIELDS, "is_holding_jump", "wheels_with_contact", "on_ground", "is_flipping"):
                np.testing.assert_array_equal(getattr(car, name), getattr(other, name), err_msg=name)
            touches = int(sim.state.events.touches[0, seat])
            touched += touches
            assert (touches > 0) == (other.ball_touches > 0)
    assert touched > 5


# Events and the cars they belong to


def test_a_touch_is_counted_for_its_car(duel):
    scene(duel, {"position": (0.0, 0.0, BALL_REST_Z)},
          {1: {"position": (0.0, -400.0, CAR_REST_Z), "velocity": (0.0, 1400.0, 0.0), "yaw": pi / 2}}, tick=100)
    controls = idle(duel)
    controls[0, 1, 0] = 1.0
    seen = 0
    for _ in range(4):
        duel.step(controls, ticks=8)
        touches = duel.state.events.touches[0].tolist()
        seen += touches[1]
        assert touches[0] == touches[2] == 0
        assert touches[1] <= 8
        assert duel.state.ball.last_touch[0] == (1 if seen else -1)
    hit = int(duel.state.cars.ball_hit_tick[0, 1])
    assert 1 <= seen <= 6
    arena = duel._batch._arenas[0]
    for _ in range(2):  # two points of contact in one tick, which RocketSim would report one by one
        arena.events._touch(arena=arena._arena, car=arena._cars[0], data=None)
    assert arena._record["events"]["touches"].tolist() == [1, touches[1], 0]
    assert 100 < hit < 132
    assert duel.state.cars.ball_hit_tick[0].tolist() == [-1, hit, -1]
    assert 100 < duel.state.cars.ball_hit_impulse_tick[0, 1] <= hit
    assert duel.state.ball.velocity[0, 1] > 1400


@pytest.mark.parametrize("team", [0, 1])
def test_a_goal_stops_its_arena_at_that_moment(make, team):
    sim = make(2, 2, 1)
    side = 1.0 if team == 0 else -1.0
    scene(sim, {"position": (0.0, side * (GOAL_Y - 60.0), 300.0), "velocity": (0.0, side * 3000.0, 0.0)}, {}, tick=1000)
    sim.state.ball.position[1] = torch.tensor([0.0, 0.0, 300.0])
    before = sim.state.clone()
    sim.step(random_controls(sim, 0), ticks=8, delay=1)
    after = sim.state.clone()
    ticks = int(after.game.tick[0]) - 1000
    assert (after.game.goal.tolist(), after.game.tick.tolist()) == ([team, -1], [1000 + ticks, 1008])
    assert 2 <= ticks <= 4
    assert after.game.score.tolist() == [[1 - team, team], [0, 0]]
    distance = float(after.ball.position[0, 1] - before.ball.position[0, 1])
    assert distance * side == pytest.approx(3000 * ticks / 120, rel=0.01)
    assert GOAL_Y < after.ball.position[0, 1] * side < GOAL_Y + 25
    assert not after.events.goal.any(), "no car touched it"
    # Without a reset the game goes on, and the ball that lies in the goal does not score again.
    for _ in range(3):
        sim.step(idle(sim), ticks=8)
        assert sim.state.game.goal.tolist() == [-1, -1]
    assert sim.state.game.tick[0] == 1000 + ticks + 24
    assert sim.state.game.score.tolist() == [[1 - team, team], [0, 0]]


def test_controls_that_were_due_after_a_goal_were_not_in_force(make):
    sim = make(1, 1, 0)
    scene(sim, {"position": (0.0, GOAL_Y - 1.0, 300.0), "velocity": (0.0, 3000.0, 0.0)},
          {0: {"controls": torch.full((8,), 0.25)}})
    sim.step(torch.ones(1, 1, 8), ticks=8, delay=1)
    assert (sim.state.game.tick.item(), sim.state.game.goal.item()) == (1, 0)
    assert sim.state.cars.controls.unique().tolist() == [0.25]


@pytest.mark.parametrize(("ages", "scorer", "helper"), [
    ({0: 100, 2: 10}, 0, None),  # the defender's touch came later, but it is not its goal
    ({0: 100, 1: 200}, 0, 1),
    ({0: 100, 1: 341}, 0, None),  # over two seconds between them: no pass
    ({1: 600}, 1, None),  # over four seconds: too long for RocketSim, not for us
    ({2: 5}, None, None),
])
def test_scorer_and_passer_follow_from_the_last_touches(duel, ages, scorer, helper):
    cars = {seat: {"ball_hit_tick": 1000 - age, "ball_hit_impulse_tick": 1000 - age} for seat, age in ages.items()}
    scene(duel, {"position": (0.0, GOAL_Y - 60.0, 300.0), "velocity": (0.0, 3000.0, 0.0)}, cars, tick=1000)
    duel.step(idle(duel), ticks=8)
    assert duel.state.game.goal.item() == 0
    assert duel.state.events.goal[0].tolist() == [seat == scorer for seat in range(3)]
    assert duel.state.events.assist[0].tolist() == [seat == helper for seat in range(3)]
    theirs = duel._batch._arenas[0]._cars
    if max(ages.values()) < 480:
        assert [theirs[seat].goals for seat in range(3)] == duel.state.events.goal[0].int().tolist()
        assert [theirs[seat].assists for seat in range(3)] == duel.state.events.assist[0].int().tolist()


@pytest.mark.parametrize(("bumper", "victim", "speed", "demolished"), [(0, 2, 2250.0, True), (2, 1, 2250.0, True),
                                                                       (0, 2, 1000.0, False), (0, 1, 2250.0, False)])
def test_supersonic_cars_demolish_opponents_and_bump_team_mates(duel, bumper, victim, speed, demolished):
    """Slower cars bump opponents too."""
    scene(duel, {"position": (0.0, 2000.0, BALL_REST_Z)}, {
        bumper: {"position": (0.0, -150.0, CAR_REST_Z), "velocity": (0.0, speed, 0.0), "yaw": pi / 2,
                 "is_supersonic": speed > 2200},
        victim: {"position": (0.0, 50.0, CAR_REST_Z)},
    })
    bumped, demos = [], []
    for _ in range(4):
        duel.step(idle(duel), ticks=8)
        bumped.append(duel.state.events.bumped[0].tolist())
        demos.append(duel.state.events.demolished[0].tolist())
    expected = [victim if seat == bumper else -1 for seat in range(3)]
    assert [row for row in (demos if demolished else bumped) if row != [-1] * 3] == [expected]
    assert all(row == [-1] * 3 for row in (bumped if demolished else demos))
    assert duel.state.cars.is_demoed[0].tolist() == [demolished and seat == victim for seat in range(3)]
    assert (duel.state.cars.demo_timer[0, victim] > 2.7) == demolished
    if not demolished:
        assert duel.state.cars.contact_car[0, bumper] == victim


@pytest.mark.parametrize("big", [False, True])
def test_a_pad_gives_boost_and_comes_back(duel, big):
    index = next(i for i, pad in enumerate(PADS) if pad.big == big)
    pad = PADS[index]
    scene(duel, {"position": (0.0, 2000.0, BALL_REST_Z)}, {1: {"position": (pad.x, pad.y, CAR_REST_Z), "boost": 20.0}})
    duel.step(idle(duel), ticks=1)
    events, pads = duel.state.events, duel.state.pads
    assert (events.big_pads if big else events.small_pads)[0].tolist() == [0, 1, 0]
    assert (events.small_pads if big else events.big_pads)[0].tolist() == [0, 0, 0]
    assert duel.state.cars.boost[0, 1] == (100 if big else 32)
    assert pads.timer[0].nonzero().flatten().tolist() == [index]
    assert pads.locked_car[0, index] == 1
    assert pads.active.sum() == 33
    duel.state.cars.position[0, 1] = torch.tensor([0.0, 0.0, CAR_REST_Z])
    duel.place(everywhere(duel))
    for step in range(1, (10 if big else 4) * 15 + 2):
        duel.step(idle(duel), ticks=8)
        assert duel.state.pads.timer[0, index] == pytest.approx(max(0.0, (10 if big else 4) - step / 15), abs=1e-3)
        assert duel.state.pads.locked_car[0, index] == -1
        assert not duel.state.events.small_pads.any() and not duel.state.events.big_pads.any()


def test_a_shot_and_its_save_are_counted(duel):
    """RocketSim calls it a shot 0.3 s after the touch, while the ball is on course; a touch that stops it is a save."""
    hit = {"ball_hit_tick": 970, "ball_hit_impulse_tick": 970}
    shots, saves = [], []
    scene(duel, {"position": (0.0, 2000.0, 300.0), "velocity": (0.0, 2500.0, 300.0)},
          {1: hit, 2: {"position": (0.0, 4900.0, 200.0), "yaw": -pi / 2, "on_ground": False, "wheel_contact": False}},
          tick=1000)
    for _ in range(25):
        state = duel.state
        if int(state.game.tick) in range(1060, 1080):  # the keeper appears in front of the ball
            state.cars.position[0, 2] = state.ball.position[0] + torch.tensor([0.0, 250.0, 0.0])
            state.cars.velocity[0, 2] = torch.tensor([0.0, -1500.0, 0.0])
            arena = duel._batch._arenas[0]
            body = arena._cars[2].get_state()  # after place() RocketSim would not remember the shot
            body.pos, body.vel = (arena._rs.Vec(*getattr(state.cars, name)[0, 2].tolist()) for name in ("position", "velocity"))
            arena._cars[2].set_state(body)
        duel.step(idle(duel), ticks=8)
        shots += [(int(state.game.tick), seat) for seat in state.events.shot[0].nonzero().flatten().tolist()]
        saves += [(int(state.game.tick), seat) for seat in state.events.save[0].nonzero().flatten().tolist()]
    assert [seat for _, seat in shots] == [1]
    assert 970 + 36 <= shots[0][0] <= 970 + 36 + 16
    assert [seat for _, seat in saves] == [2]
    assert saves[0][0] > 1060


def test_placing_forgets_a_shot(duel):
    """Otherwise the shot of one episode could be saved in the next."""
    on_course = {"position": (0.0, 2000.0, 300.0), "velocity": (0.0, 2500.0, 300.0)}
    scene(duel, on_course, {1: {"ball_hit_tick": 965, "ball_hit_impulse_tick": 965}}, tick=1000)
    duel.step(idle(duel), ticks=8)
    assert duel.state.events.shot.any()
    # A step of 16 ticks, so that the test does not depend on RocketSim's own count of ticks since the ball was set.
    scene(duel, {"position": (0.0, 2000.0, 300.0), "velocity": (0.0, -100.0, 0.0)},
          {2: {"ball_hit_tick": 999, "ball_hit_impulse_tick": 999}}, tick=1000)
    duel.step(idle(duel), ticks=16)
    assert not duel.state.events.save.any()


def test_a_demolished_car_comes_back_on_a_spot_that_the_clock_chooses(make):
    sim = make(4, 1, 1)
    scene(sim, {"position": (0.0, 2000.0, BALL_REST_Z)}, {1: {"is_demoed": True, "demo_timer": 0.05}})
    sim.state.game.tick.copy_(torch.arange(4))
    sim.place(everywhere(sim))
    sim.step(idle(sim), ticks=8)
    assert not sim.state.cars.is_demoed.any()
    x, y, _ = sim.state.cars.position[:, 1].unbind(-1)
    assert sorted(x.tolist()) == pytest.approx(sorted(spot.x for spot in RESPAWN_SPOTS), abs=1)
    assert y.tolist() == pytest.approx([-RESPAWN_SPOTS[0].y] * 4, abs=1)
    assert sim.state.cars.boost[:, 1].tolist() == pytest.approx([100 / 3] * 4)


# Seats


def test_a_simulator_begins_with_a_kick_off_in_the_order_of_seats(make):
    state = make(2, 2, 1).state
    spots = torch.tensor([(spot.x, spot.y, CAR_REST_Z) for spot in KICKOFF_SPAWNS[:2]])
    expected = torch.cat([spots, spots[:1] * torch.tensor([-1.0, -1.0, 1.0])])
    torch.testing.assert_close(state.cars.position, expected.expand(2, 3, 3))
    yaws = torch.tensor([KICKOFF_SPAWNS[0].yaw, KICKOFF_SPAWNS[1].yaw, KICKOFF_SPAWNS[0].yaw + pi])
    torch.testing.assert_close(state.cars.rotation, rotation(yaws).expand(2, 3, 3, 3), atol=1e-6, rtol=0)
    assert state.cars.boost.tolist() == [[pytest.approx(100 / 3)] * 3] * 2
    assert state.ball.position.tolist() == [[0.0, 0.0, pytest.approx(BALL_REST_Z)]] * 2
    assert state.pads.active.all() and not state.cars.velocity.any() and not state.game.tick.any()
    for number in (state.ball.last_touch, state.cars.contact_car, state.cars.ball_hit_tick, state.cars.ball_hit_impulse_tick,
                   state.pads.locked_car, state.game.goal, state.events.bumped, state.events.demolished):
        assert (number == -1).all()


def test_uneven_teams_and_empty_seats(make):
    """Cars are where they were placed; an empty seat is not touched, bumped or counted."""
    sizes = [(3, 2), (1, 0), (0, 2), (0, 0), (2, 1)]
    sim = make(5, 3, 2, hitboxes=["octane", "merc", "plank", "dominus", "breakout"], sizes=sizes)
    cars = sim.state.cars
    expected = [[seat < blue or 3 <= seat < 3 + orange for seat in range(5)] for blue, orange in sizes]
    for seed in range(40):
        sim.step(random_controls(sim, seed), ticks=8)
        assert cars.present.tolist() == expected
        assert cars.team.tolist() == [[0, 0, 0, 1, 1]] * 5
        assert cars.hitbox.tolist() == [[0, 5, 2, 1, 3]] * 5
        assert not sim.state.events.touches[~cars.present].any()
        for part in ("ball", "cars", "pads"):
            for field in fields(getattr(sim.state, part)):
                tensor = getattr(getattr(sim.state, part), field.name)
                assert not tensor.is_floating_point() or tensor.isfinite().all()
    for arena, present in zip(sim._batch._arenas, expected, strict=True):
        theirs = {seat: car.get_config().hitbox_size.as_tuple() for seat, car in arena._cars.items()}
        assert sorted(theirs) == [seat for seat, there in enumerate(present) if there]
        assert len(arena._arena.get_cars()) == sum(present)
        for seat, size in theirs.items():
            assert size == pytest.approx(HITBOXES[int(cars.hitbox[0, seat])].size, rel=1e-5)


# Placing


def test_only_marked_arenas_are_placed(make):
    sim, undisturbed = make(4, 1, 1), make(4, 1, 1)
    for seed in range(5):
        sim.step(random_controls(sim, seed), ticks=8)
        undisturbed.step(random_controls(sim, seed), ticks=8)
    assert_same(sim.state, undisturbed.state)
    marked = torch.tensor([False, True, False, True])
    sim.state.ball.position.copy_(torch.tensor([1000.0, -1000.0, 700.0]))
    sim.state.cars.boost.fill_(7.0)
    sim.state.cars.boost_time.zero_()
    sim.place(marked)
    sim.place(torch.zeros(4, dtype=torch.bool))
    for seed in range(5, 10):
        sim.step(random_controls(sim, seed) * torch.tensor([1, 1, 1, 1, 1, 1, 0, 1]), ticks=8)
        undisturbed.step(random_controls(sim, seed) * torch.tensor([1, 1, 1, 1, 1, 1, 0, 1]), ticks=8)
    assert_same(sim.state.part(slice(0, 1)), undisturbed.state.part(slice(0, 1)))
    assert_same(sim.state.part(slice(2, 3)), undisturbed.state.part(slice(2, 3)))
    assert (sim.state.cars.boost[marked] == 7.0).all()
    assert (sim.state.ball.position[marked, 0] - 1000).abs().max() < 1


def test_a_placed_state_does_not_depend_on_what_was_before(make):
    """In a used arena it goes on as in a new one, bit for bit, also up the walls of the corners."""
    sizes = [(2, 2), (2, 1), (1, 1)] * 4
    old, new = make(12, 2, 2, sizes=sizes), make(12, 2, 2, sizes=sizes)
    for seed in range(40):
        old.step(chase(old, seed), ticks=8)
    for sim in (old, new):
        scene(sim, {"position": (0.0, 0.0, 900.0), "velocity": (700.0, 500.0, 0.0)}, {})
    for seed in range(30):
        for sim in (old, new):
            sim.step(random_controls(sim, seed), ticks=8)
        assert_same(old.state, new.state)


@pytest.mark.slow
def test_the_order_of_cars_does_not_depend_on_their_addresses(make):
    """Six cars fall on top of each other. RocketSim by itself has many outcomes."""
    sim, outcomes = make(24, 3, 3), Counter()
    scene(sim, {"position": (0.0, 2000.0, 300.0)}, {
        seat: {"position": (40.0 * seat, 0.0, 20.0 + 45.0 * seat), "velocity": (500.0, 100.0 * seat, 0.0)}
        for seat in range(6)})
    for seed in range(6):
        sim.step(random_controls(sim, seed)[:1].expand(24, -1, -1), ticks=8)
    outcomes.update(record.numpy().tobytes() for record in sim.state.memory)
    if sys.platform == "linux":
        assert len(outcomes) == 1
    assert outcomes.most_common(1)[0][1] >= 20, "elsewhere an exception in a hundred remains"


@pytest.mark.slow
def test_a_saved_state_goes_on_nearly_as_the_game_it_was_taken_from(make):
    """In the air it is exact up to the last bits. On the wheels the forces of the last tick are missing."""
    sim, other = make(6, 2, 2), make(6, 2, 2)
    for seed in range(40):
        sim.step(chase(sim, seed), ticks=8)
    flying = torch.arange(4) >= 2
    sim.state.cars.position[:, 2:] = torch.tensor([[-1500.0, 0.0, 900.0], [1500.0, 0.0, 700.0]])
    sim.state.cars.velocity[:, 2:] = torch.randn(6, 2, 3) * 500
    sim.place(everywhere(sim))
    sim.step(chase(sim, 50), ticks=8)
    saved = sim.state.clone()
    other.state.copy_(saved)
    other.place(everywhere(other))
    controls = chase(sim, 99)
    sim.step(controls, ticks=8)
    other.step(controls, ticks=8)
    assert sim.state.game.tick.equal(other.state.game.tick)
    difference = (sim.state.cars.velocity - other.state.cars.velocity).norm(dim=-1)
    assert difference[:, flying].max() < 0.01
    assert difference[:, ~flying].median() < 10
    assert 0.1 < difference[:, ~flying].max() < 300
    assert (sim.state.cars.position - other.state.cars.position).norm(dim=-1).max() < 20


@pytest.mark.parametrize("workers", [0, 1])
def test_a_place_that_is_no_number_is_refused(make, workers):
    sim = make(1, 1, 1, workers=workers)
    scene(sim, {"position": (0.0, float("nan"), 100.0)}, {})
    with pytest.raises(EnvError, match=r"ball.position .*not finite.*nan"):
        sim.step(idle(sim), ticks=8)


# Wrong use


def test_wrong_use_is_refused_with_the_reason(make):
    sim = make(1, 1, 1)
    with pytest.raises(EnvError, match=r"recv\(\) without send"):
        sim.recv()
    sim.send(idle(sim), ticks=8)
    for call in (lambda: sim.send(idle(sim), ticks=8), lambda: sim.place(everywhere(sim))):
        with pytest.raises(EnvError, match="still stepping"):
            call()
    sim.recv()
    with pytest.raises(EnvError, match="delay of 9 ticks"):
        sim.send(idle(sim), ticks=8, delay=9)
    with pytest.raises(EnvError, match=r"names are octane, dominus"):
        RocketSimSimulator(1, 1, 1, hitboxes="octan")
    with pytest.raises(EnvError, match="do not fit 2 seats"):
        RocketSimSimulator(1, 1, 1, hitboxes=["octane"])
    with pytest.raises(EnvError, match=r"at most \(1, 1\)"):
        RocketSimSimulator(1, 1, 1, sizes=[(2, 1)])
    with pytest.raises(EnvError, match="every worker needs an arena"):
        RocketSimSimulator(1, 1, 1, workers=2)
    with pytest.raises(EnvError, match="0 against 0 is no game"):
        RocketSimSimulator(1, 0, 0)
    sim.close()
    with pytest.raises(EnvError, match="was closed"):
        sim.step(idle(sim), ticks=8)


@pytest.mark.parametrize(("missing", "match"), [
    ("RocketSim", "RocketSim is not installed"), ("rlgym.rocket_league", "walls of the field"),
])
def test_a_missing_package_is_named(monkeypatch, missing, match):
    package.rocketsim.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError, match=rf"{match}.*pip install 'wavedash\[rocket\]'"):
        RocketSimSimulator(1, 1, 1)
    monkeypatch.undo()
    package.rocketsim()


@pytest.mark.slow
def test_arenas_are_freed_with_their_simulator():
    """RocketSim's objects cannot be garbage-collected once they refer to each other."""
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("reads /proc")
    before = []
    for _ in range(6):
        sim = RocketSimSimulator(4, 1, 1)
        sim.step(idle(sim), ticks=8)
        sim.close()
        del sim
        gc.collect()
        before.append(resident())
    assert before[-1] - before[1] < 6, "growth in MB; 16 arenas take about 20"
