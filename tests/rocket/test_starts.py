"""Starts are possible in the game, fair to both teams, and what their names say, as RocketSim plays on from them."""
from __future__ import annotations

import math

import numpy as np
import pytest
import RocketSim
import torch
from torch import Tensor

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.random_states import random_state
from tests.rocket.rocketsim_arena import RocketSimArena
from wavedash.errors import UserError
from wavedash.rocket import names
from wavedash.rocket.constants import BALL_RADIUS, CAR_REST_Z, HITBOXES
from wavedash.rocket.geometry import look, rotation
from wavedash.rocket.parts import Start
from wavedash.rocket.starts import Kickoff, Mixture, Random, ReplayFrames, Scene, Turtle, load_frames, save_frames
from wavedash.rocket.state import GameState

SPEC = ["kickoff", "fuzzed_kickoff", "random", "turtle", "wall", "air_dribble", "flip_reset", "jump_challenge", "shot", "save",
        "goalie", "dribble"]
TEAMS = [(1, 0), (1, 1), (2, 1), (3, 3)]


def empty(arenas: int, blue: int, orange: int, seed: int = 0) -> GameState:
    """A state with cars of all hitboxes and nothing else."""
    state = GameState.empty(arenas, blue + orange)
    state.cars.team.copy_(torch.arange(blue + orange) >= blue)
    state.cars.present.fill_(True)
    state.cars.hitbox.random_(0, len(HITBOXES), generator=torch.Generator().manual_seed(seed))
    return state


def written(start: Start | str, state: GameState, seed: int = 0) -> GameState:
    """Writes a kick-off, then the start, as an environment does."""
    generator = torch.Generator().manual_seed(seed)
    for part in (Kickoff(), names.make("start", start) if isinstance(start, str) else start):
        part.bind(state)
        part.write(state, generator)
    return state


def octanes(start: Start | str, arenas: int, blue: int = 1, orange: int = 1, seed: int = 0) -> tuple[GameState, RocketSimArena]:
    state = empty(arenas, blue, orange)
    state.cars.hitbox.zero_()
    written(start, state, seed)
    return state, RocketSimArena(state)


# --- geometry --------------------------------------------------------------------------------------------------------


def test_rotations_are_those_of_rocketsim():
    angles = (torch.rand(200, 3, generator=torch.Generator().manual_seed(0)) - 0.5) * 2 * math.pi
    ours = rotation(*angles.unbind(-1))
    theirs = [RocketSim.Angle(*a).as_rot_mat().as_numpy().reshape(3, 3).T for a in angles.tolist()]
    assert np.allclose(ours, np.array(theirs), atol=1e-5)


def test_look_gives_right_handed_rotations_with_the_given_forward_axis():
    forward, up = torch.randn(2, 500, 3, generator=torch.Generator().manual_seed(0)).unbind(0)
    turned = look(forward, up)
    assert torch.allclose(turned[..., 0], torch.nn.functional.normalize(forward, dim=-1), atol=1e-5)
    assert torch.allclose(turned.mT @ turned, torch.eye(3), atol=1e-4)
    assert torch.allclose(torch.linalg.det(turned), torch.ones(500), atol=1e-4)
    assert ((turned[..., 2] * up).sum(-1) > 0).all()


# --- kick-offs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("blue", "orange", "line_ups"), [(1, 0, 5), (1, 1, 5), (2, 1, 20), (3, 3, 10)])
def test_kickoffs_are_those_of_rocketsim(blue, orange, line_ups):
    """The set of line-ups is the same. Teammates are exchangeable, since RocketSim orders cars by their addresses."""

    def line_up(cars: Tensor) -> tuple:
        """Position and axes [C, 9] of the cars of an arena, sorted in each team."""
        rows = [tuple(row) for row in cars.round(decimals=2).add(0.0).tolist()]  # -0 is 0
        return tuple(sorted(rows[:blue]) + sorted(rows[blue:]))

    def theirs(seed: int) -> tuple:
        arena.arena.reset_kickoff(seed)
        cars = [arena.car(i) for i in range(blue + orange)]
        vectors = [[v.as_tuple() for v in (car.pos, car.rot_mat.forward, car.rot_mat.up)] for car in cars]
        return line_up(torch.tensor(vectors).flatten(1))

    state, arena = octanes("kickoff", 2000, blue, orange)
    ours = {line_up(cars) for cars in torch.cat([state.cars.position, state.cars.forward, state.cars.up], -1)}
    seeds = np.random.default_rng(0).integers(2**31, size=400).tolist()  # with small seeds it has only a few of the line-ups
    assert ours == {theirs(seed) for seed in seeds}
    assert len(ours) == line_ups
    assert arena.car(0).boost == pytest.approx(float(state.cars.boost[0, 0]), abs=1e-4)
    assert arena.ball.pos.as_tuple() == pytest.approx(state.ball.position[0].tolist())


def test_kickoff_leaves_nothing_of_the_game_before():
    fresh, used = empty(50, 2, 2), random_state(50, 2, 2, seed=3)
    fresh.cars.hitbox.copy_(used.cars.hitbox)
    fresh.cars.present.copy_(used.cars.present)
    assert torch.equal(written("kickoff", fresh).memory, written("kickoff", used).memory)
    assert (used.pads.timer == 0).all() and (used.game.goal == -1).all() and (used.events.bumped == -1).all()
    assert (used.ball.last_touch == -1).all() and (used.cars.contact_car == -1).all() and (used.pads.locked_car == -1).all()
    assert not used.cars.is_demoed.any() and not used.cars.has_flipped.any() and (used.game.tick == 0).all()


def test_teammates_never_share_a_spot_beside_empty_seats():
    state = empty(500, 3, 3)
    state.cars.present.copy_(torch.rand(500, 6, generator=torch.Generator().manual_seed(1)) < 0.6)
    written("kickoff", state)
    distance = torch.cdist(state.cars.position, state.cars.position) + 1e5 * torch.eye(6)
    both = state.cars.present.unsqueeze(1) & state.cars.present.unsqueeze(2)
    assert (distance[both] > 400).all()


JITTER = {"distance": 150.0, "ball": 10.0, "angle": 0.175, "speed": 0.0, "boost": [33.3, 33.3]}


def offsets(**options) -> tuple[Tensor, Tensor, Tensor]:
    """How far cars [E, 2, 2] and ball [E, 2] are from where the kick-off had put them, and the cars' angles [E, 2]."""
    plain, moved = empty(2000, 1, 1), empty(2000, 1, 1)
    kickoff = Kickoff()
    kickoff.bind(plain)
    kickoff.write(plain, torch.Generator().manual_seed(0))
    written(names.make("start", "fuzzed_kickoff", options), moved)
    turn = (plain.cars.forward * moved.cars.forward).sum(-1).clamp(-1, 1).acos()
    assert (moved.cars.velocity == 0).all() and (moved.cars.boost == 33.3).all()
    return ((moved.cars.position - plain.cars.position)[..., :2], (moved.ball.position - plain.ball.position)[:, :2], turn)


def test_a_kickoff_may_jitter_cars_and_ball_by_different_amounts_and_is_no_mirror_image():
    cars, ball, turn = offsets(**JITTER)
    for offset, most in ((cars, 150.0), (ball, 10.0)):
        assert 0.98 * most < offset.abs().max() <= most * (1 + 1e-4)
        assert abs(float(offset.mean())) < most / 20
    assert 0.98 * 0.175 < turn.max() < 0.176
    mirrored = (cars[:, 0] + cars[:, 1]).norm(dim=-1)
    assert (mirrored > 1.0).float().mean() > 0.99, "one car is moved as the mirror image of the other"
    _, ball, _ = offsets(**{name: x for name, x in JITTER.items() if name != "ball"})
    assert ball.abs().max() > 140.0, "without an amount of its own the ball is moved as far as the cars"


@pytest.mark.parametrize(("blue", "orange"), TEAMS)
def test_the_widest_jitter_of_kickoffs_is_possible_for_every_hitbox(blue, orange):
    assert_possible(written(names.make("start", "fuzzed_kickoff", JITTER), empty(2000, blue, orange)))


# --- every start -----------------------------------------------------------------------------------------------------


def car_boxes(state: GameState) -> tuple[Tensor, Tensor]:
    """Middle and half size [E, C, 3] of the hitboxes."""
    offset = torch.tensor([box.offset for box in HITBOXES])[state.cars.hitbox]
    size = torch.tensor([box.size for box in HITBOXES])[state.cars.hitbox]
    return state.cars.position + (state.cars.rotation @ offset.unsqueeze(-1)).squeeze(-1), size / 2


def inside(points: Tensor, margin: float = 0.0) -> Tensor:
    """Whether points are between floor, ceiling, walls and corners, or in a goal. Curved edges are left to RocketSim."""
    x, y, z = points.abs().unbind(-1)
    field = (x <= 4096 - margin) & (y <= 5120 - margin) & (x + y <= 8064 - margin * math.sqrt(2))
    goal = (x <= 893 - margin) & (y <= 5880 - margin) & (z <= 642 - margin)
    return (field | goal) & (points[..., 2] >= margin - 0.5) & (z <= 2044 - margin)


def assert_possible(state: GameState) -> None:
    """Bodies are inside the arena, do not overlap, are no faster than the game allows, and flags are consistent."""
    ball, cars, here = state.ball, state.cars, state.cars.present
    for body in (ball, cars):  # empty seats too: their numbers may be anything but not NaN
        for value in vars(body).values():
            assert value.isfinite().all() if value.is_floating_point() else True
        assert torch.allclose(body.rotation.mT @ body.rotation, torch.eye(3), atol=1e-4)
        assert (torch.linalg.det(body.rotation) > 0.99).all()
    assert (ball.velocity.norm(dim=-1) <= 6000).all() and (ball.angular_velocity.norm(dim=-1) <= 6.001).all()
    assert (cars.velocity.norm(dim=-1)[here] < 2200).all(), "else it would be supersonic"
    assert (cars.angular_velocity.norm(dim=-1)[here] <= 5.5).all()
    assert ((cars.boost >= 0) & (cars.boost <= 100)).all()

    middle, half = car_boxes(state)
    corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3)
    corners = middle.unsqueeze(-2) + (half.unsqueeze(-2) * corners) @ cars.rotation.mT
    assert inside(corners)[here].all() and inside(ball.position, BALL_RADIUS).all()
    to_ball = (cars.rotation.mT @ (ball.position.unsqueeze(1) - middle).unsqueeze(-1)).squeeze(-1)
    gap = (to_ball - to_ball.clamp(-half, half)).norm(dim=-1) - BALL_RADIUS
    assert (gap[here] > 0).all()
    apart = torch.cdist(middle, middle) + 1e5 * torch.eye(state.seats)
    assert (apart[here.unsqueeze(1) & here.unsqueeze(2)] > 2 * half.norm(dim=-1).max()).all()

    assert torch.equal(cars.wheel_contact.all(-1), cars.on_ground) and torch.equal(cars.wheel_contact.any(-1), cars.on_ground)
    for used in (cars.has_jumped, cars.has_double_jumped, cars.has_contact):
        assert not (used & cars.on_ground).any()
    assert (cars.air_time[cars.on_ground] == 0).all() and (cars.air_time[~cars.on_ground & here] > 0).all()
    assert not (cars.has_double_jumped & ~cars.has_jumped).any()
    assert (state.game.tick == 0).all() and (state.pads.timer == 0).all() and (state.events.touches == 0).all()


@pytest.mark.parametrize(("blue", "orange"), TEAMS)
@pytest.mark.parametrize("name", SPEC)
def test_every_start_is_possible(name, blue, orange):
    before = empty(1500, blue, orange)
    before.cars.present[:, 1:].copy_(torch.rand(1500, blue + orange - 1, generator=torch.Generator().manual_seed(2)) < 0.8)
    state = written(name, before.clone())
    for field in ("team", "hitbox", "present"):
        assert torch.equal(getattr(state.cars, field), getattr(before.cars, field)), "a simulator cannot change these"
    assert_possible(state)


@pytest.mark.parametrize("name", SPEC)
def test_nothing_explodes_in_rocketsim(name):
    """In the first tick bodies move by their velocity, which only gravity and tyres change; wheels touch where they should."""
    state, arena = octanes(name, 100, 2, 2)
    for e in range(100):
        position, velocity = arena.set(state, e).bodies()
        after, velocity_after = arena.step().bodies()
        assert np.abs(after - position - velocity_after / 120).max() < 0.1
        change = np.linalg.norm(velocity_after - velocity, axis=-1)
        assert change[0] < 10 and change[1:].max() < 45
        for i in range(4):
            wheels = sum(arena.car(i).wheels_with_contact)
            assert wheels == 4 if state.cars.on_ground[e, i] else wheels == 0
        after, velocity_after = arena.step(59).bodies()
        assert inside(torch.from_numpy(after)).all() and np.linalg.norm(velocity_after, axis=-1).max() < 6000


def test_cars_rest_on_their_wheels_at_the_height_they_are_put():
    """For every hitbox, the car is not pushed out of the floor, and all wheels touch."""
    for hitbox in range(len(HITBOXES)):
        state = empty(1, 1, 1)
        state.cars.hitbox.fill_(hitbox)
        arena = RocketSimArena(written("dribble", state)).set(state, 0).step()
        assert sum(arena.car(0).wheels_with_contact) == 4 and abs(arena.car(0).pos.z - CAR_REST_Z) < 1


@pytest.mark.parametrize("name", SPEC)
def test_a_start_has_no_host_sync(name):
    state, generator = empty(8, 2, 1), torch.Generator().manual_seed(0)
    start = names.make("start", name)
    parts = [Kickoff(), Mixture([(start, 1.0), (Kickoff(), 1.0)])]
    for part in parts:
        part.bind(state)
    with NoHostSync():
        for part in parts:
            part.write(state, generator)


@pytest.mark.parametrize("name", SPEC)
def test_the_same_seed_gives_the_same_starts(name):
    one, again, other = (written(name, empty(64, 2, 2), seed) for seed in (1, 1, 2))
    assert torch.equal(one.memory, again.memory)
    assert not torch.equal(one.memory, other.memory)


@pytest.mark.parametrize("name", SPEC)
def test_both_teams_are_treated_alike(name):
    """The starts of orange, turned by half a turn, are distributed as those of blue (Kolmogorov-Smirnov)."""
    n = 4000
    straight = written(name, empty(n, 1, 1), seed=1)
    turned = written(name, empty(n, 1, 1), seed=2).mirrored()
    for mine, seat, theirs in ((straight, 0, turned), (straight, 1, turned)):
        for field in ("position", "velocity", "forward", "boost", "on_ground"):
            a, b = getattr(mine.cars, field)[:, seat], getattr(theirs.cars, field)[:, 1 - seat]
            _same_distribution(a, b)
        for field in ("position", "velocity", "angular_velocity"):
            _same_distribution(getattr(mine.ball, field), getattr(theirs.ball, field))


def _same_distribution(a: Tensor, b: Tensor) -> None:
    for x, y in zip(a.float().reshape(len(a), -1).T, b.float().reshape(len(b), -1).T, strict=True):
        x, y = (v.add(1e-4).mul(1e3).round().sort().values for v in (x, y))  # -0 is 0
        everything = torch.cat([x, y])
        gap = torch.searchsorted(x, everything, right=True) / len(x) - torch.searchsorted(y, everything, right=True) / len(y)
        assert gap.abs().max() < 0.055, "p < 1e-5"


class Led(Scene):
    """The leading car is at a height of 1000."""

    def stage(self, stage):
        stage.put(stage.lead, position=torch.tensor([0.0, -1000.0, 1000.0]).expand(stage.arenas, 3))
        return stage.lead


@pytest.mark.parametrize(("blue", "orange"), TEAMS)
def test_every_car_leads_equally_often(blue, orange):
    cars = written(Led(), empty(6000, blue, orange)).cars
    leads = cars.position[..., 2] == 1000
    assert (leads.sum(-1) == 1).all()
    team_share = [1.0 if orange == 0 else 0.5] * blue + [0.5] * orange
    wanted = torch.tensor(team_share) / torch.tensor([blue] * blue + [orange] * orange)
    assert torch.allclose(leads.float().mean(0), wanted, atol=0.03)
    y = cars.position[..., 1]
    assert (y[leads] == torch.where(cars.team[leads] == 0, -1000.0, 1000.0)).all(), "the scene is turned for orange"
    own_half = torch.where(cars.team == 0, -y, y)
    assert (own_half > 0).all(), "the others are in their own half"


# --- each start is what its name says --------------------------------------------------------------------------------


def test_turtled_cars_lie_on_their_roofs():
    state, arena = octanes("turtle", 60, 1, 1)
    for e in range(60):
        arena.set(state, e).step(60)
        for i in range(2):
            car = arena.car(i)
            assert car.rot_mat.up.z < -0.95 and not any(car.wheels_with_contact) and car.has_world_contact
    roofs = [box.offset[2] + box.size[2] / 2 for box in HITBOXES]
    all_boxes = written("turtle", empty(500, 1, 1))
    gap = all_boxes.cars.position[..., 2] - torch.tensor(roofs)[all_boxes.cars.hitbox]
    assert torch.allclose(gap, torch.ones(500, 2), atol=1e-3)
    half = written(Turtle(share=0.5), empty(2000, 1, 1)).cars.on_ground.float().mean()
    assert abs(half - 0.5) < 0.04


@pytest.mark.parametrize("name", ["save", "goalie"])
def test_the_ball_goes_in_unless_somebody_saves_it(name):
    state, arena = octanes(name, 60)
    arena.without_cars()
    leads = torch.where(state.ball.velocity[:, 1] < 0, 0, 1)
    for e in range(60):
        arena.set(state, e)
        seconds = 0.0
        while abs(arena.ball.pos.y) < 5215.5:
            assert arena.step().ball.pos.z > BALL_RADIUS, "it flies all the way"
            seconds += 1 / 120
            assert seconds < 3.5
        assert arena.ball.pos.y * float(state.ball.velocity[e, 1]) > 0 and seconds > 0.6
    defender = state.cars.position[torch.arange(60), leads]
    own_goal = torch.stack([torch.zeros(60), torch.where(leads == 0, -5120.0, 5120.0)], -1)
    assert ((defender[:, :2] - own_goal).norm(dim=-1) < (700 if name == "goalie" else 2300)).all()


def test_an_attacker_that_keeps_its_pace_meets_the_ball_before_the_goal():
    state, arena = octanes("shot", 60, 1, 0)
    arena.without_cars()
    near = []
    for e in range(60):
        arena.set(state, e).control(throttle=0.02)
        distances = []
        for _ in range(250):
            (ball, car), _ = arena.step().bodies()
            distances.append((np.linalg.norm((ball - car)[:2]), ball[1]))
        near.append(min(distances))
    assert np.mean([distance < 150 for distance, _ in near]) > 0.9
    assert all(2500 < y < 4500 for _, y in near)


def test_both_cars_reach_a_challenge_while_the_ball_is_at_jump_height():
    state, arena = octanes("jump_challenge", 60)
    arena.without_cars()
    for e in range(60):
        arena.set(state, e).control(throttle=0.02)
        meetings = []
        for _ in range(180):
            (ball, *cars), _ = arena.step().bodies()
            meetings.append((max(np.linalg.norm((car - ball)[:2]) for car in cars), ball[2]))
        distance, height = min(meetings)
        assert distance < 30 and 230 < height < 420


def test_a_dribbled_ball_stays_on_the_roof_for_a_moment():
    state, arena = octanes("dribble", 60)
    for e in range(60):
        (ball, *cars), _ = arena.set(state, e).step(30).bodies()
        car = min(cars, key=lambda c: np.linalg.norm(c - ball))
        assert ball[2] - car[2] > 120 and np.linalg.norm((ball - car)[:2]) < 60


def test_a_car_on_the_wall_drives_on_it_with_the_ball_ahead():
    state, arena = octanes("wall", 60)
    leads = (state.cars.position[..., 0].abs() > 4000).int().argmax(-1)
    for e, lead in enumerate(leads.tolist()):
        arena.set(state, e).control(throttle=1.0).step(40)
        assert sum(arena.car(lead).wheels_with_contact) == 4 and arena.car(lead).pos.z > 300
        to_ball = state.ball.position[e] - state.cars.position[e, lead]
        assert 250 < to_ball @ state.cars.forward[e, lead] < 750
        assert abs(float(state.ball.position[e, 0])) > 3800


def test_a_car_in_an_air_dribble_carries_the_ball():
    """The car is below and behind the ball, and with boost it touches it within a third of a second."""
    state, arena = octanes("air_dribble", 60)
    leads = (~state.cars.on_ground).int().argmax(-1)
    for e, lead in enumerate(leads.tolist()):
        assert state.ball.position[e, 2] > state.cars.position[e, lead, 2] + 50 and state.cars.boost[e, lead] >= 50
        arena.set(state, e).control(throttle=1.0, boost=True).step(40)
        assert arena.car(lead).ball_hit_info.is_valid
        assert arena.ball.pos.z > 400


def test_the_wheels_on_the_ball_reset_the_flip():
    """Most cars reach the ball without any controls."""
    state, arena = octanes("flip_reset", 100)
    leads = (~state.cars.on_ground).int().argmax(-1)
    resets = 0
    for e, lead in enumerate(leads.tolist()):
        assert not state.cars.has_flip[e, lead]
        arena.set(state, e)
        for _ in range(100):
            car = arena.step().car(lead)
            if car.is_on_ground:
                break
        resets += car.pos.z > 400 and not car.has_double_jumped
    assert resets > 75


# --- mixtures --------------------------------------------------------------------------------------------------------


def test_a_mixture_follows_its_weights_and_their_changes():
    """The starts can be told apart: cars are on the kick-off spots, on the roof, or on a wall."""
    state, generator = empty(4000, 1, 1), torch.Generator().manual_seed(0)
    parts = [(names.make("start", name), weight) for name, weight in
             [("kickoff", 1.0), ("turtle", 2.0), ("random", 0.0), ("wall", 5.0)]]
    mixture, kickoff = Mixture(parts), Kickoff()
    kickoff.bind(state)
    mixture.bind(state)

    def seen() -> list[int]:
        kickoff.write(state, generator)
        mixture.write(state, generator)
        turtle = (state.cars.up[..., 2] < 0).all(-1)
        wall = (state.cars.position[..., 0].abs() > 4000).any(-1)
        spots = (state.cars.boost - 100 / 3).abs().amax(-1) < 1e-3
        for i, kind in enumerate([spots, turtle, ~(spots | turtle | wall), wall]):
            assert torch.equal(kind, mixture.drawn == i)
        assert_possible(state)
        assert state.cars.on_ground[wall].all(), "no turtles are left"
        return torch.bincount(mixture.drawn, minlength=4).tolist()

    for weights in ([1.0, 2.0, 0.0, 5.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 3.0]):
        mixture.set_weights(dict(zip(mixture.names, weights, strict=True)))
        expected = np.array(weights) / sum(weights) * 4000
        counts = np.array(seen())
        assert (counts[expected == 0] == 0).all()
        chi_square = sum((c - w) ** 2 / w for c, w in zip(counts, expected, strict=True) if w)
        assert chi_square < 13.8, "p = 0.001 at two degrees of freedom"


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0], [math.nan, 1.0]])
def test_a_mixture_refuses_senseless_weights(weights):
    with pytest.raises(UserError, match="weights of 0 or more"):
        Mixture([(Kickoff(), weight) for weight in weights])
    mixture = Mixture([(Kickoff(), 1.0), (Random(), 1.0)])
    with pytest.raises(UserError, match="weights of 0 or more"):
        mixture.set_weights({"kickoff": weights[0], "random": weights[1]})
    with pytest.raises(UserError, match="this task has kickoff, random"):
        mixture.set_weights({"shot": 1.0})
    assert mixture.below.tolist() == [[1.0, 2.0]] and list(mixture.shares.values()) == [1.0, 1.0], "nothing was written"


# --- frames ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_frames_come_back_as_they_were_saved(tmp_path, suffix):
    stored = random_state(40, 2, 2, seed=5, empty=0.0)
    for body in (stored.ball, stored.cars):
        body.position[..., :2] *= 0.8  # away from the corners, which cut off what the random states fill
    save_frames(tmp_path / f"frames{suffix}", stored)
    frames = load_frames(tmp_path / f"frames{suffix}")
    for part, field, forgotten in (
        ("ball", "position", False), ("ball", "rotation", False), ("ball", "last_touch", True), ("cars", "rotation", False),
        ("cars", "has_jumped", False), ("cars", "flip_time", False), ("cars", "wheel_contact", False),
        ("cars", "ball_hit_tick", True), ("pads", "timer", False), ("pads", "locked_car", True),
    ):
        was, now = getattr(getattr(stored, part), field), getattr(getattr(frames, part), field)
        assert (now == -1).all() if forgotten else torch.equal(was, now)
    assert (frames.game.tick == 0).all() and (frames.game.score == 0).all()


@pytest.mark.parametrize(("blue", "orange"), [(2, 2), (1, 2), (1, 0)])
def test_episodes_begin_in_the_frames_half_of_them_turned(tmp_path, blue, orange):
    """Frames of 2v2 are played with fewer cars: the first of each team. They are recognised by the ball's height."""
    stored = written(Random(ball_in_air=1.0), empty(30, 2, 2))
    save_frames(tmp_path / "frames.npz", stored)
    before = empty(3000, blue, orange)
    before.cars.present[:100, -1] = False
    state = written(ReplayFrames(str(tmp_path / "frames.npz")), before.clone())
    height = state.ball.position[:, 2]
    frame = (height.unsqueeze(-1) == stored.ball.position[:, 2]).int().argmax(-1)
    same = state.ball.position[:, 0] == stored.ball.position[frame, 0]
    side = torch.where(same, 1.0, -1.0).unsqueeze(-1)
    assert torch.equal(state.ball.position[:, :2], stored.ball.position[frame, :2] * side)
    assert abs(float(same.float().mean()) - 0.5) < 0.05
    for seat in range(blue + orange):
        team, number = (0, seat) if seat < blue else (1, seat - blue)
        theirs = torch.where(same, 2 * team + number, 2 * (1 - team) + number)
        source = stored.cars.position[frame, theirs]
        assert torch.equal(state.cars.position[:, seat, :2], source[:, :2] * side)
        assert torch.equal(state.cars.position[:, seat, 2], source[:, 2])
        assert torch.equal(state.cars.has_jumped[:, seat], stored.cars.has_jumped[frame, theirs])
    for field in ("team", "hitbox", "present"):
        assert torch.equal(getattr(state.cars, field), getattr(before.cars, field))
    counts = torch.bincount(frame, minlength=30)
    assert ((counts - 100.0) ** 2 / 100).sum() < 58.3, "p = 0.001 at 29 degrees of freedom"
    assert (state.events.bumped == -1).all() and (state.game.goal == -1).all()


def test_a_file_may_hold_bodies_and_boost_alone(tmp_path):
    stored = written("random", empty(200, 1, 1))
    save_frames(tmp_path / "all.npz", stored)
    arrays = dict(np.load(tmp_path / "all.npz"))
    needed = {name: arrays[name] for name in arrays if name.split(".")[1] in
              ("position", "velocity", "angular_velocity", "team", "boost") or name == "cars.rotation"}
    np.savez(tmp_path / "few.npz", **needed)
    frames = load_frames(tmp_path / "few.npz")
    assert frames.cars.present.all() and torch.equal(frames.cars.on_ground, stored.cars.on_ground)
    assert torch.equal(frames.cars.wheel_contact, stored.cars.wheel_contact)
    assert torch.equal(frames.ball.rotation, stored.ball.rotation)


def _break(arrays, name, index, value):
    arrays[name] = arrays[name].copy()
    arrays[name][index] = value


@pytest.mark.parametrize(("fault", "told"), [
    (lambda a: a.pop("cars.boost"), "holds no cars.boost"),
    (lambda a: _break(a, "ball.position", (3, 0), np.nan), "ball.position is outside the arena in 1 of 9 frames.*number 3"),
    (lambda a: _break(a, "cars.position", (4, 1, 2), 3000), "cars.position is outside"),
    (lambda a: _break(a, "cars.velocity", (slice(5, 7), 0, 0), 9000), "cars.velocity is faster than 2300.*2 of 9.*number 5"),
    (lambda a: _break(a, "ball.velocity", (0, 0), np.inf), "ball.velocity is faster"),
    (lambda a: _break(a, "cars.angular_velocity", (0, 0, 0), np.nan), "cars.angular_velocity is not a number"),
    (lambda a: _break(a, "cars.boost", (0, 0), 150), "cars.boost must be 0 to 100"),
    (lambda a: _break(a, "cars.team", (0, 0), 7), "cars.team must be 0"),
    (lambda a: _break(a, "cars.rotation", (0, 0), 0), "cars.rotation is no rotation"),
    (lambda a: _break(a, "cars.rotation", (0, 0), -np.eye(3)), "cars.rotation is no rotation"),
    (lambda a: a.update({"cars.velocity": a["cars.velocity"][:, :1]}), r"must be numbers \[9, 2, 3\], is float32 \[9, 1, 3\]"),
    (lambda a: a.update({"cars.boost": a["cars.boost"].astype(str)}), "cars.boost must be numbers"),
    (lambda a: a.update({"cars.position": a["cars.position"][:0]}), r"is \[0, 2, 3\]"),
])
def test_bad_frames_are_refused_by_name(tmp_path, fault, told):
    save_frames(tmp_path / "good.npz", written("random", empty(9, 1, 1)))
    arrays = dict(np.load(tmp_path / "good.npz"))
    fault(arrays)
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(UserError, match=rf"bad\.npz.*{told}"):
        load_frames(tmp_path / "bad.npz")


def test_files_that_are_no_frames_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "text.safetensors").write_text("hello")
    (tmp_path / "text.csv").write_text("hello")
    np.savez(tmp_path / "code.npz", **{"cars.position": np.array([{}], dtype=object)})
    for name, told in (("none.npz", "no such file"), ("text.npz", "cannot be read as npz"), ("text.csv", "not as .csv"),
                       ("text.safetensors", "cannot be read as safetensors"), ("code.npz", "cannot be read as npz")):
        with pytest.raises(UserError, match=rf"{name}.*{told}"):
            ReplayFrames(str(tmp_path / name))
    with pytest.raises(UserError, match="choose one"):
        save_frames(tmp_path / "frames.txt", empty(1, 1, 1))


def test_frames_with_too_few_cars_are_refused(tmp_path):
    save_frames(tmp_path / "duel.npz", written("random", empty(9, 1, 1)))
    with pytest.raises(UserError, match=r"duel\.npz has frames with 1 blue cars, and 2 play here"):
        ReplayFrames(str(tmp_path / "duel.npz")).bind(empty(4, 2, 2))


# --- names -----------------------------------------------------------------------------------------------------------


def test_every_shipped_start_has_its_name():
    assert set(names.shipped("start")) == {*SPEC, "replay_frames", "mixture"}
    assert isinstance(names.make("start", "random", {"cars_in_air": 0.0}), Start)
