"""The bot in numpy sees and does what the trainer's task and policy do, for states of RocketSim games."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from wavedash.export.actor import Actor
from wavedash.loading import load_run
from wavedash.rlbot.bot import constants
from wavedash.rlbot.bot.actions import Actions
from wavedash.rlbot.bot.observation import make_observation
from wavedash.rlbot.bot.policy import Policy
from wavedash.rlbot.export.check import arrays_of, randomise
from wavedash.rlbot.export.network import network_of
from wavedash.rlbot.export.task import action_settings, observation_settings
from wavedash.rocket import constants as trained_with
from wavedash.rocket.actions import LookupTable
from wavedash.rocket.observations import AdvancedObsPlus, DefaultObs
from wavedash.rocket.parts import Observation
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.sim import constants as simulated_with
from wavedash.rocket.state import CONTROLS

TICKS, DELAY = 8, 1
ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Numbers are at most about 2; each is a sum of at most three products, rounded in another order"""


def test_constants_are_those_of_training() -> None:
    assert np.array_equal(constants.PADS, np.array(trained_with.PADS, np.float32))
    for name in ("TICK_RATE", "GOAL_HEIGHT", "BACK_NET_Y", "FLIP_SECONDS", "FLIP_WINDOW", "SMALL_PAD_SECONDS",
                 "BIG_PAD_SECONDS", "SIDE_WALL_X", "BALL_RADIUS"):
        assert getattr(constants, name) == getattr(trained_with, name)
    for name in ("BOOST_SHORTEST", "HANDBRAKE_RISE", "HANDBRAKE_FALL", "AUTO_FLIP_SECONDS", "AUTO_FLIP_ROLL",
                 "AUTO_FLIP_GROUND", "RAY_SHORTENED", "BOX_MARGIN", "BOX_MARGIN_SHARE", "CONTACT_SHARE", "WHEELS"):
        assert getattr(constants, name) == getattr(simulated_with, name)
    assert constants.CONTROLS == CONTROLS and constants.CEILING_Z == simulated_with.ARENA_CEILING_Z
    assert constants.UNIT == trained_with.BACK_WALL_Y
    assert {box.name: box.size for box in trained_with.HITBOXES} == constants.HITBOXES


def test_the_bot_needs_neither_torch_nor_the_rest_of_the_package() -> None:
    program = """
import sys
for name in ("torch", "gymnasium", "pydantic", "onnxruntime"):
    sys.modules[name] = None
import wavedash.rlbot.bot.player, wavedash.rlbot.bot.run
ours = [name for name in sys.modules if name.startswith("wavedash") and not "wavedash.rlbot.bot".startswith(name)
        and not name.startswith("wavedash.rlbot.bot")]
assert not ours, ours
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(("blue", "orange", "hitbox"), [(1, 1, "octane"), (2, 3, "dominus"), (3, 3, "merc")])
def test_observations_and_masks_are_those_of_training(blue: int, orange: int, hitbox: str) -> None:
    simulator = RocketSimSimulator(1, blue, orange, hitboxes=hitbox)
    state, seats = simulator.state, blue + orange
    table = LookupTable(TICKS, DELAY)
    observations = [AdvancedObsPlus(team_size=3), AdvancedObsPlus(frames=3, team_size=3, pads=2), DefaultObs()]
    for part in (table, *observations):
        part.bind(state)
    bots = [[make_observation(observation_settings(observation, seats)) for _ in range(seats)] for observation in observations]
    actions = Actions(*action_settings(table))
    random, masks = np.random.default_rng(0), set()
    controls = torch.zeros(1, seats, 8)
    for step in range(200):
        arrays, offered = arrays_of(state), table.mask(state)[0].numpy()
        for observation, own in zip(observations, bots, strict=True):
            trained = observation.build(state, controls)[0].numpy()
            for seat in range(seats):
                built = own[seat].build(arrays, seat, controls[0, seat].numpy())
                np.testing.assert_allclose(built, trained[seat], rtol=ROUNDING, atol=ROUNDING, err_msg=f"{step} {seat}")
        for seat in range(seats):
            mask = actions.mask({name: x[seat] for name, x in arrays.items() if name not in ("ball", "pads")})
            assert np.array_equal(mask, offered[seat]), (step, seat)
            masks.add(mask.tobytes())
        chosen = [random.choice(np.flatnonzero(offered[seat])) for seat in range(seats)]
        controls = table.controls(torch.tensor([chosen]))
        simulator.step(controls, TICKS, DELAY)
    assert len(masks) > 5, "cars drove, flew and flipped"
    simulator.close()


def of_cars(arrays: dict[str, np.ndarray], cars: list[int]) -> dict[str, np.ndarray]:
    """The same moment with these cars alone."""
    return {name: x if name in ("ball", "pads") else x[cars] for name, x in arrays.items()}


@pytest.mark.parametrize(("size", "observation", "seen"), [
    (1, DefaultObs(zero_padding=None), [0, 3]), (2, DefaultObs(zero_padding=None), [0, 1, 3, 4]),
    (1, DefaultObs(zero_padding=1), [0, 3]), (2, AdvancedObsPlus(team_size=2), [0, 1, 3, 4]),
])
def test_in_larger_teams_it_sees_the_first_cars_of_each(size: int, observation: Observation, seen: list[int]) -> None:
    """What it sees of 3v3 is what it would see without the other cars, and that is what the trainer sees of its own size."""
    simulator, trained_in = RocketSimSimulator(1, 3, 3), RocketSimSimulator(1, size, size)
    randomise(simulator.state, np.random.default_rng(0))
    observation.bind(trained_in.state)
    arrays, bot = arrays_of(simulator.state), make_observation(observation_settings(observation, 2 * size))
    for name, x in vars(trained_in.state.cars).items():
        if torch.is_tensor(x):
            x.copy_(getattr(simulator.state.cars, name)[:, seen])
    for body in ("ball", "pads"):
        for name, x in vars(getattr(trained_in.state, body)).items():
            if torch.is_tensor(x):
                x.copy_(getattr(getattr(simulator.state, body), name))
    trained = observation.build(trained_in.state, torch.zeros(1, 2 * size, 8))[0, 0].numpy()
    for game in (of_cars(arrays, seen), arrays):
        np.testing.assert_allclose(bot.build(game, 0, np.zeros(8, np.float32)), trained, rtol=ROUNDING, atol=ROUNDING)
        bot.begin()
    simulator.close()
    trained_in.close()


def test_another_order_of_pads_or_a_lost_half_turn_is_noticed() -> None:
    """The negative control."""
    simulator = RocketSimSimulator(1, 1, 1)
    observation = AdvancedObsPlus(team_size=1)
    observation.bind(simulator.state)
    simulator.state.pads.timer[0, 3] = 5.0
    trained, nothing = observation.build(simulator.state, torch.zeros(1, 2, 8))[0].numpy(), np.zeros(8, np.float32)
    bot, arrays = make_observation(observation_settings(observation, 2)), arrays_of(simulator.state)
    assert np.allclose(bot.build(arrays, 1, nothing), trained[1], atol=ROUNDING)
    for wrong in ({"pads": arrays["pads"][::-1]}, {"team": 0 * arrays["team"]}):
        assert not np.allclose(bot.build(arrays | wrong, 1, nothing), trained[1], atol=1e-3)
    simulator.close()


def test_the_champion_chooses_the_same() -> None:
    policy = load_run("champion").policy.policy
    actor = Actor(policy)
    settings, weights = network_of(actor)
    bot = Policy(settings, weights)
    generator = torch.Generator().manual_seed(0)
    inputs = {name: torch.randn(x.shape, generator=generator) if x.is_floating_point()
              else torch.rand(x.shape, generator=generator) < 0.5 for name, x in actor.example(300).items()}
    outputs = actor(inputs)
    (mask,) = (x.numpy() for name, x in inputs.items() if x.dtype == torch.bool)
    (observed,) = (x.numpy() for x in inputs.values() if x.is_floating_point())
    sizes = [weights["body.0.weight"].shape[1], *(weights[f"body.{i}.weight"].shape[0] for i in range(3))]
    for row in range(300):
        action, scores = bot.act(observed[row], mask[row]), bot.scores
        # Every layer sums `size` products in an order of its own: its error is at most size * eps of the sum of their sizes.
        bound = sum(sizes) * float(np.finfo(np.float32).eps) * max(1.0, float(np.abs(scores[mask[row]]).max()))
        best, second = np.sort(scores[mask[row]])[::-1][:2]
        assert action[0] == int(outputs["action"][row]) or best - second < 2 * bound
        expected = outputs["log_probs"][row].numpy()[mask[row]]
        np.testing.assert_allclose(scores[mask[row]] - scores[mask[row]].max(), expected - expected.max(), atol=2 * bound)
