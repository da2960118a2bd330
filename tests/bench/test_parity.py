"""`wavedash bench parity` finds no difference where there is none, finds faults put in on purpose, and its scenes show what
they say.

A scene must show on RocketSim what its name says: one in which nothing happens proves nothing about the simulator compared
there.
"""
from __future__ import annotations

import io
from dataclasses import replace
from math import isnan

import pytest
import torch
from rich.console import Console

from wavedash.bench import parity
from wavedash.bench.parity.compare import JUDGED, Quantiles, compare, play_script
from wavedash.bench.parity.moments import BETWEEN, MOMENTS, Recorder
from wavedash.bench.parity.pair import SimulatorPair
from wavedash.bench.parity.scene import write_script
from wavedash.bench.parity.scenes import SCENES
from wavedash.bench.parity.spread import compare_spread, kolmogorov_smirnov, nudged
from wavedash.bench.parity.trace import find_divergence, print_trace
from wavedash.errors import UserError
from wavedash.rocket.constants import BACK_WALL_Y, GOAL_HALF_WIDTH, GOAL_HEIGHT, GRAVITY, TICK_RATE
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.state import CONTROLS, GameState

COUNT = 16


@pytest.fixture(scope="module")
def rocketsim():
    simulator = RocketSimSimulator(COUNT, 1, 1)
    yield simulator
    simulator.close()


@pytest.fixture(scope="module")
def played(rocketsim):
    """The states of a scene on RocketSim, played when they are first asked for, up to the tick that its check needs."""
    played = {}

    def play(name):
        if name not in played:
            played[name] = play_script(rocketsim, write_script(shortened(name, LOOKED_AT.get(name, JUDGED)), rocketsim, seed=1))
        return played[name]

    return play


def both(rocketsim, candidate=None):
    return SimulatorPair(COUNT, lambda *size: rocketsim, candidate and (lambda *size: candidate))


def shortened(name, ticks=JUDGED):
    return replace(SCENES[name], ticks=ticks)


class Changed(Simulator):
    """RocketSim with a fault: `controls` changes the controls, `faulty` the state after a tick."""

    def __init__(self, simulator, controls=lambda pressed: pressed, faulty=None):
        self.simulator, self.state, self.device = simulator, simulator.state, simulator.device
        self.controls, self.faulty = controls, faulty

    def send(self, controls, ticks, delay=0):
        self.simulator.send(self.controls(controls), ticks, delay)

    def recv(self):
        self.simulator.recv()
        if self.faulty:
            self.faulty(self.state)
            self.place(torch.ones(COUNT, dtype=torch.bool))

    def place(self, arenas):
        self.simulator.place(arenas)


def heavy(share):
    """A ball that is heavier by this share."""
    def fall(state: GameState) -> None:
        state.ball.velocity[:, 2] -= share * GRAVITY / TICK_RATE
    return fall


def without(key):
    def press(controls):
        controls = controls.clone()
        controls[..., CONTROLS.index(key)] = 0.0
        return controls
    return press


# The comparison


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tumble", "50-50"])
def test_rocketsim_does_not_differ_from_itself(rocketsim, name):
    row, spread = both(rocketsim).measure(name)
    assert all(error == (0.0, 0.0) for found in row.errors.values() for error in found.values())
    assert set(row.errors) == {(body, tick) for body in SCENES[name].of for tick in (1, 8, 120)}
    assert all(share == 1.0 for kinds in row.agreement.values() for share in kinds.values())
    assert row.misses == []
    assert (spread is None) == (name != "tumble")
    if row.change:
        assert row.change == (0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "ticks"), [(0.01, 8), (0.02, 120)])
def test_a_wrong_gravity_is_found_and_measured(rocketsim, share, ticks):
    taken = both(rocketsim, Changed(rocketsim, faulty=heavy(share))).play(shortened("ball in air", ticks))
    row = compare(taken.scene, taken.theirs, taken.ours)
    for tick in (1, 8, ticks):
        error = row.errors["ball", tick]["velocity"]
        assert error.median == pytest.approx(share * GRAVITY * tick / TICK_RATE, rel=0.03)
        assert error.most == pytest.approx(error.median, rel=0.1)
        assert row.errors["ball", tick]["angular_velocity"].most < 1e-5
    assert row.misses == (["ball velocity"] if share > 0.0115 else []), "8 ticks of it are 0.43 or 0.87 uu/s"


def test_a_key_that_does_nothing_is_found(rocketsim):
    taken = both(rocketsim, Changed(rocketsim, controls=without("jump"))).play(shortened("jump"))
    row = compare(taken.scene, taken.theirs, taken.ours)
    assert {"car position", "car velocity", "on_ground", "has_jumped", "is_jumping", "wheel_contact"} <= set(row.misses)
    assert row.worst_event(8) == ("on_ground", 0.0)
    assert row.agreement[8]["is_supersonic"] == row.agreement[8]["touch"] == 1.0


def test_an_event_that_one_does_not_report_is_found(rocketsim):
    """It may have happened at any tick up to that of the comparison."""
    taken = both(rocketsim).play_named("demo")
    silent = [state.clone() for state in taken.theirs]
    for state in silent:
        state.events.demolished.fill_(-1)
    row = compare(taken.scene, taken.theirs, silent)
    assert row.misses == ["demo"]
    assert row.agreement[120]["demo"] < 0.6, "of two cars, one demolishes"
    assert row.errors["car", 8]["velocity"] == (0.0, 0.0)


def test_a_bounce_that_loses_speed_is_found_and_measured(rocketsim):
    """The ball's velocity after the bounce is 5 % too small; it is faster before, so the change is larger than what is left."""
    clean = both(rocketsim).play(shortened("ball, floor"))
    weak = [state.clone() for state in clean.theirs]
    for state in weak[JUDGED:]:
        state.ball.velocity.mul_(0.95)
    row = compare(clean.scene, clean.theirs, weak)
    assert 0.01 < row.change.median < 0.05
    assert row.changed >= 0.9 * COUNT
    assert row.misses == ["bounce velocity"]


def test_a_state_that_is_nan_counts_as_an_infinite_error(rocketsim):
    taken = both(rocketsim).play(shortened("ball in air"))
    broken = [state.clone() for state in taken.theirs]
    for state in broken[1:]:
        state.ball.velocity[:COUNT * 3 // 4] = float("nan")
    row = compare(taken.scene, taken.theirs, broken)
    assert row.errors["ball", 8]["velocity"] == (float("inf"), float("inf"))
    assert row.misses == ["ball velocity"]


def test_median_and_99th_percentile_of_known_errors():
    errors = torch.arange(1001.0)[torch.randperm(1001)]
    assert Quantiles.of(errors) == (500.0, 990.0)
    assert all(isnan(x) for x in Quantiles.of(torch.empty(0)))


# Distributions


def test_the_kolmogorov_smirnov_distance_is_that_worked_out_by_hand():
    generator = torch.Generator().manual_seed(0)
    a, b = torch.rand(200, generator=generator), torch.rand(300, generator=generator)
    by_hand = max(abs(float((a <= x).float().mean() - (b <= x).float().mean())) for x in torch.cat([a, b]))
    assert kolmogorov_smirnov(a, b) == pytest.approx(by_hand, abs=1e-6)
    assert kolmogorov_smirnov(a, a) == 0.0
    assert kolmogorov_smirnov(a, b + 1) == kolmogorov_smirnov(b + 1, a) == 1.0
    assert kolmogorov_smirnov(a, a + 0.1, 0.2) == kolmogorov_smirnov(a + 0.1, a, 0.2) == 0.0
    assert kolmogorov_smirnov(a, a + 0.4, 0.2) == pytest.approx(kolmogorov_smirnov(a, a + 0.2), abs=1e-6)
    assert kolmogorov_smirnov(a, torch.full((50,), float("nan"))) == 1.0


@pytest.mark.slow
def test_chaos_is_not_taken_for_a_fault_but_another_distribution_is(rocketsim, played):
    scene = SCENES["tumble"]
    falls = played("tumble")
    other = play_script(rocketsim, nudged(write_script(scene, rocketsim, seed=1)))
    apart = (falls[-1].cars.position - other[-1].cars.position)[:, 0].norm(dim=-1)
    assert float(apart.max()) > 0.5, "a nudge of 0.01 uu has grown fifty times"
    assert compare_spread(scene, falls, other, other).misses == []
    lively = compare_spread(scene, falls, played("flip front") + played("flip front")[1:], other)
    assert {"energy after 1 s", "energy after 2 s", "time to settle"} <= set(lively.misses)


# Tracing


def test_a_trace_names_tick_and_field_of_the_first_difference(rocketsim):
    stage = both(rocketsim, Changed(rocketsim, controls=without("jump")))
    taken = stage.play(shortened("double jump", 24))
    found = find_divergence(taken.scene, taken.theirs, taken.ours, tolerance=0.01)
    pressed = taken.script.controls[:, :, 0, CONTROLS.index("jump")].argmax(0) + 1
    late = ~taken.theirs[JUDGED].cars.has_double_jumped[:, 0]
    assert torch.equal(found.tick[~late], pressed[~late])
    assert all("car 0.velocity" in fields and "car 0.has_double_jumped" in fields
               for fields, skipped in zip(found.fields, late.tolist(), strict=True) if not skipped)

    text = io.StringIO()
    print_trace(taken.scene, taken.script, taken.theirs, taken.ours, 0.01, around=3, console=Console(file=text, width=170))
    printed = text.getvalue()
    assert "worst arena" in printed and "median arena" in printed and "car 0.has_double_jumped" in printed

    text = io.StringIO()
    print_trace(taken.scene, taken.script, taken.theirs, taken.theirs, 0.01, around=3, console=Console(file=text, width=170))
    assert text.getvalue().startswith(f"double jump: 0 of {COUNT} arenas differ within 24 ticks")


# Moments of play


def test_a_moment_of_play_goes_on_as_the_game_did(rocketsim):
    """The same controls were in force, of which the first are those of the step before. In the air no state is hidden."""
    generator = torch.Generator().manual_seed(0)
    start = write_script(SCENES["air control"], rocketsim, seed=3).start
    rocketsim.state.copy_(start)
    rocketsim.place(torch.ones(COUNT, dtype=torch.bool))
    recorder = Recorder(rocketsim)
    for _ in range(BETWEEN):
        recorder.step(torch.rand(COUNT, 2, 8, generator=generator) * 2 - 1, ticks=4, delay=1)
    (moment,) = recorder.scripts
    assert moment.controls.shape == (JUDGED, COUNT, 2, 8), "after a short step the controls are held"
    rocketsim.step(moment.controls[-1], ticks=JUDGED - 4)
    after = rocketsim.state.clone()
    again = play_script(rocketsim, moment)[-1]
    flying = ~moment.start.cars.wheel_contact[:, 0].any(-1) & ~moment.start.cars.has_contact[:, 0]
    assert flying.sum() > COUNT / 2
    for name in ("position", "velocity", "angular_velocity", "boost", "flip_time"):
        torch.testing.assert_close(getattr(again.cars, name)[flying, 0], getattr(after.cars, name)[flying, 0],
                                   rtol=1e-4, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random play", "scripted play"])
def test_play_has_all_kinds_of_moments(rocketsim, name):
    taken = both(rocketsim).play_named(name)
    assert taken.theirs[0].arenas == COUNT * MOMENTS
    assert taken.script.controls.shape == (JUDGED, COUNT * MOMENTS, 2, 8)
    cars = taken.theirs[0].cars
    assert 0.03 < float(cars.on_ground.float().mean()) < 0.95
    assert cars.has_contact.any() and cars.is_flipping.any()
    if name == "scripted play":
        assert share(ever(taken.theirs, lambda state: (state.events.touches > 0).any(-1))) > 0.01
    row = compare(taken.scene, taken.theirs, taken.ours)
    assert row.misses == []
    assert {tick for _, tick in row.errors} == {1, 8}


# The command


@pytest.mark.slow
def test_tables_are_printed_and_written_to_a_page(tmp_path, capsys):
    page = tmp_path / "table.md"
    parity.main(["--candidate", "rocketsim", "--scene", "shot", "--scene", "roof", "--count", "2", "--markdown", str(page)])
    printed, written = capsys.readouterr().out, page.read_text(encoding="utf-8")
    assert "shot: met" in printed and "Verdicts" in printed and "Tumbling cars" in printed
    lines = [line for line in written.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines if line.startswith("| shot")}) == 2
    assert len([line for line in lines if line.startswith("| roof")]) == 1 + 1 + 4
    assert sum("---" in line for line in lines) == 3


def test_a_scene_that_does_not_exist_is_a_mistake_of_the_users(rocketsim):
    with pytest.raises(UserError, match="did you mean 'flip cancel'"):
        both(rocketsim).play_named("flipcancel")


# The scenes


def share(arenas):
    """The share of the arenas [E] in which it is true."""
    return float(arenas.float().mean())


def car(states, tick, name, seat=0):
    return getattr(states[tick].cars, name)[:, seat]


def ever(states, of, last=JUDGED):
    """[E]: whether it is true in one of the states up to a tick."""
    assert last < len(states)
    return torch.stack([of(state) for state in states[1:last + 1]]).any(0)


def wheels(states, tick):
    return car(states, tick, "wheel_contact").sum(-1)


def touched(states, seat=0, last=JUDGED):
    return ever(states, lambda state: state.events.touches[:, seat] > 0, last)


def gained(states, axis, tick=JUDGED):
    """[E]: the velocity gained along an axis that the car had at the start, in the plane."""
    direction = car(states, 0, axis) * torch.tensor([1.0, 1.0, 0.0])
    return ((car(states, tick, "velocity") - car(states, 0, "velocity")) * direction).sum(-1)


def kick(states):
    """[E, 3]: the change of the ball's velocity without that of gravity."""
    fallen = torch.tensor([0.0, 0.0, -GRAVITY * JUDGED / TICK_RATE])
    return states[JUDGED].ball.velocity - states[0].ball.velocity - fallen


def outward(states):
    """[E, 3]: the side of the field on which the ball is, as signs."""
    return states[0].ball.position.sign() * torch.tensor([1.0, 1.0, 0.0])


def passes(states, x, y, z):
    """[E]: how near the ball comes to a line, given by coordinates of a point (None: along the line), mirrored to all sides."""
    line = [(i, value) for i, value in enumerate((x, y, z)) if value is not None]
    squares = [sum((state.ball.position[:, i].abs() - value).square() for i, value in line) for state in states[:JUDGED + 1]]
    return torch.stack(squares).amin(0).sqrt()


def flips(states, axis, sign):
    return share(car(states, JUDGED, "is_flipping") & (sign * gained(states, axis) > 100)) > 0.75


def drives_on(states):
    return all(share(car(states, tick, "on_ground")) > 0.9 for tick in range(JUDGED + 1))


def pitching(states, tick=24):
    return (car(states, tick, "angular_velocity") * car(states, tick, "right")).sum(-1).abs().mean()


def is_drive(states, played):
    way = (car(states, 120, "position") - car(states, 0, "position")).norm(dim=-1)
    return drives_on(states) and share(way > 50) > 0.5 and share(car(states, 8, "velocity").norm(dim=-1) > 100) > 0.5


def is_turn(states, played):
    turned = (car(states, 0, "forward") * car(states, 60, "forward")).sum(-1)
    return drives_on(states) and share(turned < 0.99) > 0.6


def is_powerslide(states, played):
    sideways = (car(states, 24, "velocity") * car(states, 24, "right")).sum(-1).abs()
    begins = share(car(states, 0, "handbrake") == 0) == 1 and share(car(states, JUDGED, "handbrake") > 0.15) == 1
    return begins and drives_on(states) and share(sideways > 100) > 0.5


def is_boost(states, played):
    had, left = car(states, 0, "boost"), car(states, 120, "boost")
    faster = car(states, 8, "velocity").norm(dim=-1) - car(states, 0, "velocity").norm(dim=-1)
    return share(had > car(states, 1, "boost")) > 0.7 and share((had > 1) & (left == 0)) > 0.05 and share(faster > 20) > 0.4


def is_landing(states, played):
    return share(wheels(states, 0) == 0) == 1 and share(wheels(states, JUDGED) >= 3) > 0.75


def is_jump(states, played):
    return share(car(states, 0, "on_ground") & ~car(states, JUDGED, "on_ground") & car(states, JUDGED, "has_jumped")) > 0.9


def is_wall_drive(states, played):
    return drives_on(states) and share(car(states, JUDGED, "up")[:, 0].abs() > 0.99) > 0.9


def is_ramp_drive(states, played):
    return drives_on(states) and share(car(states, 0, "position")[:, 0].abs() > 3700) == 1 and share(
        car(states, 0, "up")[:, 0].abs().sub(0.5).abs() < 0.4) > 0.5


def is_corner_drive(states, played):
    place = car(states, 0, "position").abs()
    both_ways = car(states, 0, "up")[:, :2].abs().amin(-1) > 0.1
    return drives_on(states) and share(place[:, 0] + place[:, 1] > 7400) > 0.9 and share(both_ways) > 0.5


def is_ceiling(states, played):
    return share((wheels(states, 2) >= 3) & (car(states, 2, "position")[:, 2] > 2000)) > 0.8


def is_double_jump(states, played):
    jumped = car(states, JUDGED, "has_double_jumped") & ~car(states, JUDGED, "has_flipped")
    climb = car(states, JUDGED, "velocity")[:, 2] - car(states, 0, "velocity")[:, 2]
    return 0.7 < share(jumped) < 1 and share(jumped & (climb > 100)) > 0.6  # for some it is too late


def is_flip_diagonal(states, played):
    return share(car(states, JUDGED, "is_flipping") & (gained(states, "forward").abs() > 50) & (
        gained(states, "right").abs() > 50)) > 0.5


def is_flip_cancel(states, played):
    return share(car(states, JUDGED, "is_flipping")) > 0.8 and pitching(states) < 0.8 * pitching(played("flip front"))


def is_stall(states, played):
    flips = car(states, JUDGED, "is_flipping") & (car(states, JUDGED, "flip_torque").norm(dim=-1) == 0)
    return share(flips & (gained(states, "forward").abs() < 50)) > 0.7


def is_air_control(states, played):
    spin = (car(states, JUDGED, "angular_velocity") - car(states, 0, "angular_velocity")).norm(dim=-1)
    boosts = car(states, JUDGED, "boost_time") > 0
    return share(wheels(states, 120) == 0) > 0.9 and share(spin > 0.1) > 0.8 and share(boosts) > 0.1


def is_wavedash(states, played):
    return share(car(states, JUDGED, "has_flipped") & (gained(states, "forward", 40) > 200)) > 0.6 and share(
        wheels(states, 40) >= 3) > 0.4


def is_roof(states, played):
    upside_down = car(states, 60, "up")[:, 2] < -0.9
    return share(upside_down & ever(states, lambda state: state.cars.has_contact[:, 0], 60)) > 0.9


def is_tumble(states, played):
    hits = ever(states, lambda state: state.cars.has_contact[:, 0], 240)
    return share(hits) > 0.9 and len((10 * car(states, 60, "up")[:, 2]).round().unique()) > 6


def is_auto_flip(states, played):
    turns = car(states, 0, "up")[:, 2] < -0.9
    return share(turns & car(states, JUDGED, "is_auto_flipping")) > 0.8 and share(car(states, 120, "up")[:, 2] > 0.5) > 0.5


def is_ball_in_air(states, played):
    return share(kick(states).norm(dim=-1) < 0.003 * 6000) == 1


def is_ball_rolling(states, played):
    return all(share(state.ball.position[:, 2] < 94.5) == 1 for state in states) and share(
        (states[120].ball.position - states[0].ball.position).norm(dim=-1) > 20) > 0.9


def is_ball_floor(states, played):
    return share(kick(states)[:, 2] > 60) > 0.9


def is_ball_side_wall(states, played):
    return share((kick(states) * outward(states))[:, 0] < -60) > 0.9


def is_ball_back_wall(states, played):
    return share((kick(states) * outward(states))[:, 1] < -60) > 0.9


def is_ball_ceiling(states, played):
    return share(kick(states)[:, 2] < -60) > 0.9


def is_ball_ramp(states, played):
    back = kick(states) * outward(states)
    return share((back[:, 0] < -30) & (kick(states)[:, 2] > 30)) > 0.8


def is_ball_corner(states, played):
    back = kick(states) * outward(states)
    return share((back[:, 0] < -20) & (back[:, 1] < -20)) > 0.8


def is_ball_post(states, played):
    struck = (kick(states).norm(dim=-1) > 60) & (passes(states, GOAL_HALF_WIDTH, BACK_WALL_Y, None) < 160)
    return share(struck) > 0.8 and share(struck & (kick(states)[:, 0].abs() > 60)) > 0.5


def is_ball_crossbar(states, played):
    struck = (kick(states).norm(dim=-1) > 60) & (passes(states, None, BACK_WALL_Y, GOAL_HEIGHT) < 160)
    return share(struck) > 0.8 and share(struck & (kick(states)[:, 2].abs() > 60)) > 0.5


def is_goal(states, played):
    scored = ever(states, lambda state: state.game.goal >= 0, 120)
    credited = ever(states, lambda state: state.events.goal.any(-1), 120)
    return share(scored) > 0.75 and 0.2 < share(credited) < 0.8  # the others are own goals


def is_dribble(states, played):
    near = (states[30].ball.position - car(states, 30, "position")).norm(dim=-1) < 200
    return share(touched(states) & near) > 0.7


def is_shot(states, played):
    return share(touched(states) & (kick(states).norm(dim=-1) > 300)) > 0.75


def is_aerial_hit(states, played):
    return share(touched(states) & (states[JUDGED].ball.position[:, 2] > 500)) > 0.7


def is_flip_reset(states, played):
    landed = ever(states, lambda state: state.cars.wheel_contact[:, 0].sum(-1) >= 3)
    return share(landed & car(states, 0, "has_double_jumped") & ~car(states, JUDGED, "has_double_jumped")) > 0.7


def is_fifty_fifty(states, played):
    return share(touched(states, 0) & touched(states, 1)) > 0.7


def is_pinch(states, played):
    by_wall = states[0].ball.position[:, 0].abs() > 3900
    return share(touched(states)) > 0.75 and 0.2 < share(by_wall) < 0.8 and share(kick(states).norm(dim=-1) > 240) > 0.7


def is_bump(states, played):
    return share(ever(states, lambda state: state.events.bumped[:, 0] == 1)) > 0.85 and share(
        ever(states, lambda state: state.events.demolished[:, 0] >= 0)) == 0


def is_demo(states, played):
    return share(ever(states, lambda state: state.events.demolished[:, 0] == 1) & car(states, JUDGED, "is_demoed", 1)) > 0.85


def is_respawn(states, played):
    return 0.5 < share(car(states, 0, "is_demoed")) < 1 and share(car(states, JUDGED, "is_demoed")) == 0


def is_pads(states, played):
    small, big = (share(ever(states, lambda state, name=name: getattr(state.events, name)[:, 0] > 0, 120))
                  for name in ("small_pads", "big_pads"))
    return small > 0.2 and big > 0.05 and share(touched(states, last=120)) == 0


def is_kick_off(states, played):
    return all(share(car(states, 120, "velocity", seat).norm(dim=-1) > 1000) == 1 for seat in (0, 1)) and share(
        states[120].ball.velocity.norm(dim=-1) == 0) == 1


WHAT_THEY_ARE = {
    "drive": is_drive, "turn": is_turn, "powerslide": is_powerslide, "boost": is_boost, "landing": is_landing, "jump": is_jump,
    "wall drive": is_wall_drive, "ramp drive": is_ramp_drive, "corner drive": is_corner_drive, "ceiling": is_ceiling,
    "double jump": is_double_jump,
    "flip front": lambda states, played: flips(states, "forward", 1),
    "flip back": lambda states, played: flips(states, "forward", -1),
    "flip left": lambda states, played: flips(states, "right", -1),
    "flip right": lambda states, played: flips(states, "right", 1),
    "flip diagonal": is_flip_diagonal, "flip cancel": is_flip_cancel, "stall": is_stall, "air control": is_air_control,
    "wavedash": is_wavedash, "roof": is_roof, "tumble": is_tumble, "auto-flip": is_auto_flip, "ball in air": is_ball_in_air,
    "ball rolling": is_ball_rolling, "ball, floor": is_ball_floor, "ball, side wall": is_ball_side_wall,
    "ball, back wall": is_ball_back_wall, "ball, ceiling": is_ball_ceiling, "ball, ramp": is_ball_ramp,
    "ball, corner": is_ball_corner, "ball, post": is_ball_post, "ball, crossbar": is_ball_crossbar, "goal": is_goal,
    "dribble": is_dribble, "shot": is_shot, "aerial hit": is_aerial_hit, "flip reset": is_flip_reset, "50-50": is_fifty_fifty,
    "pinch": is_pinch, "bump": is_bump, "demo": is_demo, "respawn": is_respawn, "pads": is_pads, "kick-off": is_kick_off,
}


LOOKED_AT = {
    "drive": 120, "turn": 60, "powerslide": 24, "boost": 120, "flip front": 120, "flip cancel": 24, "air control": 120,
    "wavedash": 40, "roof": 60, "tumble": 240, "auto-flip": 120, "ball rolling": 120, "goal": 120, "dribble": 30, "pads": 120,
    "kick-off": 120,
}
"""Ticks after which a scene shows what it is, where that is later than the verdict."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_a_scene_shows_what_its_name_says(played, name):
    assert WHAT_THEY_ARE[name](played(name), played)
