"""What the debug switches say of a Rocket League task names the mistake that was made, and no mistake where there is none."""
from __future__ import annotations

import pytest
import torch

from tests.rocket.random_states import random_state
from wavedash.assembly import make_policy
from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.envs.kinds import kind_of
from wavedash.findings import Findings
from wavedash.rocket.debug.mirror import exchanged
from wavedash.trained_policy import TrainedPolicy

HERE = "tests.debug.mistakes"
CPU = torch.device("cpu")


def found(switch: str, *overrides: str, preset: str = "rocket-1v1") -> Findings:
    config: RunConfig = load_config(preset, [*overrides, "policy.hidden=[16]"])
    kind = kind_of(config.env)
    policy = make_policy(kind.spaces(config.env, CPU), config)
    findings = kind.debug_report(switch, config.env, CPU, TrainedPolicy(policy))
    assert findings is not None
    return findings


@pytest.mark.parametrize("preset", ["rocket-touch", "rocket-1v1", "rocket-2v2"])
@pytest.mark.parametrize("switch", ["actions", "starts", "rewards"])
def test_nothing_is_wrong_with_a_preset(switch: str, preset: str) -> None:
    """This is the control of all tests below."""
    findings = found(switch, preset=preset)
    assert findings.problems == [] and findings.lines


@pytest.mark.parametrize("action", ["multi_discrete", "continuous", "{lookup_table: {masked: false, ticks: 4, delay: 4}}"])
def test_nothing_is_wrong_with_other_action_parsers(action: str) -> None:
    assert found("actions", f"env.rocket.action={action}").problems == []


@pytest.mark.parametrize(("action", "expected"), [
    ("ThrottleSteerSwapped", "throttle and steer look swapped"),
    ("JumpBoostSwapped", "jump and boost look swapped"),
    ("NoJump", "jumps: the action parser has no choice that does"),
    ("ForbidsJump", "jumps: 18 of 90 choices do, and the mask allowed one of them in 0% of the steps"),
    ("OneChoice", "no action of the first 4,0"),
])
def test_a_mistake_in_an_action_parser_is_named(action: str, expected: str) -> None:
    problems = found("actions", f"env.rocket.action={HERE}:{action}").problems
    assert any(expected in problem for problem in problems), problems


def test_the_entries_of_a_continuous_action_are_named_by_what_they_move() -> None:
    """Which entry is meant to be which only its author knows: the report shows what it is."""
    lines = found("actions", f"env.rocket.action={HERE}:ContinuousSwapped").lines
    assert any("action[0] moves steer (-1 to 1)" in line for line in lines)
    assert any("action[1] moves throttle (-1 to 1)" in line for line in lines)


def test_the_first_steps_show_controls_by_name_and_what_came_of_them() -> None:
    text = "\n".join(found("actions").lines)
    assert "the first steps of the car in seat 0 (blue) of arena 0, 8 ticks each" in text
    assert "the first steps of the car in seat 1 (orange) of arena 0" in text
    (throttle,) = (line for line in text.splitlines() if line.startswith("throttle "))
    back, rolling, ahead = (float(part.split()[-1]) for part in throttle.split(" uu/s")[0].split("%")[-1].split(", "))
    assert back < rolling < ahead


@pytest.mark.parametrize(("start", "expected"), [
    ("UpsideDown", "of the cars on their roof after 1 s; 512 of 512 cars begin with the roof down"),
    ("NoseInTheFloor", "puts 512 of 512 cars into the floor"),
    ("OnTheBall", "puts 256 of 512 cars into the ball or into each other"),
    ("FliesOnTheGround", "says of 512 of 512 cars that they are on the ground, and they are in the air"),
])
def test_a_mistake_in_a_start_is_named(start: str, expected: str) -> None:
    problems = found("starts", f"env.rocket.starts={{kickoff: 0, random: 0, '{HERE}:{start}': 1}}").problems
    assert any(expected in problem for problem in problems), problems


def test_a_start_that_teaches_to_get_off_the_roof_is_no_mistake() -> None:
    findings = found("starts", "env.rocket.starts={turtle: 1}")
    assert findings.problems == []
    (row,) = (line.split() for line in findings.lines if line.startswith("turtle"))
    assert row[-1] == "100%", "all cars lie on their roof after a second"


def test_starts_of_lanes_are_looked_at_too() -> None:
    findings = found("starts", f"env.rocket.lanes={{odd: {{starts: {{'{HERE}:NoseInTheFloor': 1}}}}}}")
    assert any("start 'odd/" in problem and "into the floor" in problem for problem in findings.problems)


@pytest.mark.parametrize(("reward", "expected"), [
    ("Flees: 1", "driving to the ball pays"),
    ("UpTheField: 1", "up_the_field pays blue and orange differently"),
])
def test_a_reward_that_pays_for_the_wrong_thing_is_named(reward: str, expected: str) -> None:
    name, weight = reward.split(": ")
    problems = found("rewards", f"env.rocket.rewards={{'{HERE}:{name}': {weight}}}").problems
    assert any(expected in problem for problem in problems), problems


def test_a_reward_of_the_wrong_sign_is_named_though_others_outweigh_it() -> None:
    rewards = f"{{velocity_player_to_ball: 0.1, '{HERE}:Flees': 0.05}}"
    problems = found("rewards", f"env.rocket.rewards={rewards}").problems
    assert any(problem.startswith("reward flees pays -0.3") for problem in problems), problems


def test_goals_that_pay_the_team_that_concedes_are_named() -> None:
    problems = found("rewards", "env.rocket.rewards={goal: -30, concede: -30}").problems
    assert any(problem.startswith("scoring pays") and "conceding pays" in problem for problem in problems), problems


def test_a_turned_game_turned_again_is_the_same_game() -> None:
    """And every car has the place of its counterpart in between: the check of rewards rests on this."""
    state = random_state(8, 2, 2, seed=0)
    other = exchanged(state)
    assert torch.equal(exchanged(other).memory, state.memory)
    assert torch.equal(other.cars.team, state.cars.team)
    assert torch.equal(other.cars.position[:, 2, :2], -state.cars.position[:, 0, :2])
