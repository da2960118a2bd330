"""What counts in a phase: the settings of a run as a function of configuration, phase and steps."""
from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavedash.config import RunConfig
from wavedash.config_file import ConfigError, dump_config, load_config
from wavedash.curriculum.plan import Plan, counting, only_in_phases
from wavedash.curriculum.ramp import value_at
from wavedash.curriculum.state import PhaseState, saved_phase
from wavedash.errors import UserError

NEVER = 2**62


def configured(*phases: dict[str, Any], source: str = "rocket-1v1", **changes: Any) -> RunConfig:
    config = load_config(source, [f"{key}={value}" for key, value in changes.items()])
    return RunConfig.model_validate({**config.model_dump(), "phases": list(phases)})


def at(config: RunConfig, number: int, steps: int = 0, began: list[int] | None = None) -> RunConfig:
    return Plan(config).settings(PhaseState(number=number, began=began or [0] * (number + 1)), steps)


def test_phases_build_on_each_other_and_the_last_word_on_a_key_counts():
    config = configured(
        {"name": "A", "set": {"ppo.learning_rate": 1e-3, "ppo.clip_range": 0.3}, "until": {"steps": 1}},
        {"name": "B", "set": {"ppo": {"clip_range": 0.1, "entropy_coef": 0.5}}, "until": {"steps": 1}},
        {"name": "C", "set": {"ppo.learning_rate": 2e-3}})
    found = [(s.ppo.learning_rate, s.ppo.clip_range, s.ppo.entropy_coef) for s in (at(config, number) for number in range(3))]
    assert found == [(1e-3, 0.3, 0.01), (1e-3, 0.1, 0.5), (2e-3, 0.1, 0.5)]
    assert at(config, 0).phases == [], "what counts is a plain configuration"


def test_a_mapping_is_replaced_as_a_whole_and_a_key_inside_of_it_alone():
    config = configured(
        {"name": "A", "set": {"env.rocket.rewards": {"touch": 1.0}}, "until": {"steps": 1}},
        {"name": "B", "set": {"env.rocket.rewards.goal": 5.0}, "until": {"steps": 1}},
        {"name": "C", "set": {"env.rocket.rewards": {"goal": 7.0}}})
    paid = [{name: weight for name, weight in at(config, number).env.rocket.rewards.items() if weight} for number in range(3)]
    assert paid == [{"touch": 1.0}, {"touch": 1.0, "goal": 5.0}, {"goal": 7.0}]


def test_every_phase_has_the_parts_of_all_in_the_same_order_switched_off():
    config = configured(
        {"name": "A", "set": {"env.rocket.rewards": {"touch": 1.0}, "env.rocket.starts": {"random": 1.0},
                              "env.rocket.endings": {"time_out": {"seconds": 5}}}, "until": {"steps": 1}},
        {"name": "B", "set": {"env.rocket.rewards": {"goal": 9.0}, "env.rocket.starts": {"shot": 1.0},
                              "env.rocket.endings": {"goal": {}}, "opponents": {"share": 0.4},
                              "env.rocket.lanes": {"turtle": {"share": 0.2, "starts": {"turtle": 1}}}}})
    first, second = (at(config, number) for number in (0, 1))
    assert list(first.env.rocket.rewards.items()) == [("touch", 1.0), ("goal", 0.0)]
    assert list(second.env.rocket.rewards.items()) == [("touch", 0.0), ("goal", 9.0)]
    assert list(first.env.rocket.starts) == list(second.env.rocket.starts) == ["random", "shot"]
    assert first.env.rocket.endings == {"time_out": {"seconds": 5}, "goal": None}
    assert second.env.rocket.endings == {"time_out": None, "goal": {}}
    assert (first.opponents.share, first.opponents.most) == (0.0, 0.4) == (0.0, second.opponents.most)
    assert (first.env.rocket.lanes["turtle"].share, first.env.rocket.lanes["turtle"].most) == (0.0, 0.2)


@given(first=st.floats(-10, 10), last=st.floats(-10, 10), over=st.integers(1, 10**9), steps=st.integers(-10, 2 * 10**9))
def test_a_ramp_is_the_straight_line_between_its_ends(first, last, over, steps):
    exact = Fraction(first) + (Fraction(last) - Fraction(first)) * min(max(Fraction(steps, over), Fraction(0)), Fraction(1))
    found = value_at({"from": first, "to": last, "over": over}, steps)
    # Three roundings, of numbers no larger than 20: the quotient, the product, the sum; and that of the difference.
    assert abs(Fraction(found) - exact) <= 4 * 20 * Fraction(2) ** -53
    if steps >= over:
        assert found == last
    if steps <= 0:
        assert found == first


def test_ramps_run_from_the_beginning_of_their_phase_and_on_in_later_ones_at_any_depth():
    ramp = {"from": 0.0, "to": 10.0, "over": 100}
    config = configured({"name": "A", "until": {"steps": 1}},
                        {"name": "B", "set": {"env.rocket.rewards": {"goal": {"weight": ramp, "zero_sum": 1}, "touch": 1}},
                         "until": {"steps": 1}},
                        {"name": "C", "set": {"ppo.clip_range": 0.1}, "until": {"steps": 1}},
                        {"name": "D", "set": {"env.rocket.rewards.goal": 3.0}})
    began = [0, 50, 80, 300]
    paid = [at(config, number, steps, began[:number + 1]).env.rocket.rewards["goal"]
            for number, steps in ((1, 50), (1, 75), (2, 100), (2, 150), (2, 250), (3, 300))]
    assert [goal["weight"] if isinstance(goal, dict) else goal for goal in paid] == [0.0, 2.5, 5.0, 10.0, 10.0, 3.0]
    plan = Plan(config)
    assert plan.moves(PhaseState(number=2, began=[0, 50, 80]), 149)
    assert not plan.moves(PhaseState(number=2, began=[0, 50, 80]), 151)


def test_moving_back_begins_a_phase_anew_and_phases_that_are_passed_over_begin_too():
    state = PhaseState(number=1, began=[0, 40], held=3, known={"rating": 7.0})
    assert state.moved(3, 90) == PhaseState(number=3, began=[0, 40, 90, 90])
    assert state.moved(3, 90).moved(1, 200) == PhaseState(number=1, began=[0, 200])
    assert state.moved(0, 90) == PhaseState(number=0, began=[90])


def test_a_users_change_counts_until_a_later_phase_sets_the_same_key():
    config = configured({"name": "A", "set": {"ppo.learning_rate": 1e-3}, "until": {"steps": 1}},
                        {"name": "B", "set": {"ppo.clip_range": 0.1}, "until": {"steps": 1}},
                        {"name": "C", "set": {"ppo.learning_rate": 2e-3}})
    changed = Plan(config).with_values(PhaseState(), {("ppo", "learning_rate"): 5e-4, ("ppo", "gamma"): 0.9})
    found = [(at(changed, number).ppo.learning_rate, at(changed, number).ppo.gamma) for number in range(3)]
    assert found == [(5e-4, 0.9), (5e-4, 0.9), (2e-3, 0.9)]
    assert changed.ppo == config.ppo, "the base is as it was: phases are what changes"


def test_a_users_change_counts_over_the_mapping_that_its_phase_sets():
    rewards = {"env.rocket.rewards.goal": 2.0, "env.rocket.rewards": {"goal": 1.0, "touch": 1.0}}
    config = configured({"name": "A", "set": rewards})
    assert at(config, 0).env.rocket.rewards["goal"] == 1.0
    changed = Plan(config).with_values(PhaseState(), {("env", "rocket", "rewards", "goal"): 4.0})
    assert at(changed, 0).env.rocket.rewards["goal"] == 4.0 and at(changed, 0).env.rocket.rewards["touch"] == 1.0


@pytest.mark.parametrize(("phases", "message"), [
    ([{"name": "A", "set": {"ppo.learning_rat": 1}}], "phase 'A'.*unknown key 'ppo.learning_rat'.*'ppo.learning_rate'"),
    ([{"name": "A", "set": {"ppo.learning_rate": {"from": 1, "to": 2}}}], "phase 'A'.*ramp needs"),
    ([{"name": "A", "set": {"ppo.learning_rate": {"from": 1, "to": 2, "over": 0}}}], "ramp needs"),
    ([{"name": "A", "set": {"ppo.clip_range": {"from": 1, "to": -1, "over": 10}}}], "phase 'A'.*ppo.clip_range"),
    ([{"name": "A", "set": {"seed": 3}}], "sets seed: phases may set what is in"),
    ([{"name": "A"}, {"name": "A"}], "two phases are named 'A'"),
    ([{"name": "A", "until": {"steps": 3}}], "nothing comes after it"),
])
def test_what_cannot_be_is_refused_with_the_phase_and_the_reason(phases, message):
    with pytest.raises(ConfigError, match=message):
        Plan(configured(*phases)).check()


def test_the_last_ramp_end_is_checked_not_only_the_beginning():
    fine = configured({"name": "A", "set": {"ppo.clip_range": {"from": 1, "to": 0.5, "over": 10}}})
    Plan(fine).check()


def test_what_only_phases_have_is_told_from_what_the_whole_run_has():
    config = configured({"name": "A", "set": {"env.rocket.lanes": {"turtle": {"share": 0.1, "starts": {"turtle": 1}}},
                                              "env.rocket.rewards": {"touch": 2.0}, "opponents.share": 0.2}})
    of_phases = [("env", "rocket", "lanes", "turtle", "share"), ("opponents", "most")]
    of_run = [("env", "rocket", "rewards", "touch"), ("ppo", "learning_rate"), ("rating", "every"), ("total_steps",),
              ("env", "rocket", "lanes", "x", "share")]  # nobody has the last one, which is refused there
    assert only_in_phases(config, [*of_phases, *of_run]) == of_phases
    asked = {of_phases[1]: 0.6, ("opponents", "share"): 0.5}
    resumed = counting(config, asked, {})
    assert resumed.opponents is None, "a phase without opponents gets none"
    assert (at(resumed, 0).opponents.share, at(resumed, 0).opponents.most) == (0.5, 0.6)


@pytest.mark.filterwarnings("error")
def test_a_whole_number_as_the_weight_among_options_is_a_weight_like_others():
    """`wavedash set RUN env.rocket.rewards.touch.weight=2` records such a phase; nothing of pydantic's is printed for it."""
    config = configured({"name": "A", "set": {"env.rocket.rewards": {"touch": {"weight": 2}},
                                              "env.rocket.starts": {"kickoff": {"weight": 1}}}, "until": {"steps": 1}},
                        {"name": "B", "set": {"env.rocket.rewards": {"touch": 2.0}, "env.rocket.starts": {"kickoff": 1.0}}})
    assert dump_config(at(config, 0)) == dump_config(at(config, 1))


def test_a_part_of_another_phase_is_recorded_with_its_options_when_a_user_switches_it_on():
    config = configured({"name": "A", "set": {"env.rocket.rewards": {"touch": 1.0}}, "until": {"steps": 1}},
                        {"name": "B", "set": {"env.rocket.rewards": {"boost_pickup": {"weight": 0.5, "small": 0.7}},
                                              "env.rocket.lanes": {"turtle": {"share": 0.2, "starts": {"turtle": 1}}},
                                              "opponents": {"share": 0.2, "slots": 3}}})
    values = {("env", "rocket", "rewards", "boost_pickup", "weight"): 0.3, ("env", "rocket", "lanes", "turtle", "share"): 0.1,
              ("env", "rocket", "lanes", "turtle", "starts", "turtle"): 3.0, ("opponents", "share"): 0.1}
    changed = Plan(config).with_values(PhaseState(), values)
    now = at(changed, 0)
    assert now.env.rocket.rewards["boost_pickup"] == {"weight": 0.3, "small": 0.7}
    assert (now.env.rocket.lanes["turtle"].share, now.env.rocket.lanes["turtle"].starts) == (0.1, {"turtle": 3.0})
    assert (now.opponents.share, now.opponents.slots, now.opponents.room) == (0.1, 3, 0.2)
    assert at(changed, 1).env.rocket.rewards["boost_pickup"] == {"weight": 0.5, "small": 0.7}


def test_a_name_with_dots_is_changed_alone():
    """The ramps beside it go on, those of its own phase and those of an earlier one."""
    own, ramp = "tests.rocket.own_parts:Speedy", {"from": 2.0, "to": 0.0, "over": 100}
    config = configured({"name": "A", "set": {"env.rocket.rewards": {own: 1.0, "touch": ramp}}, "until": {"steps": 1}},
                        {"name": "B", "set": {f"env.rocket.rewards.'{own}'": 3.0}})
    for number, before in ((0, 1.0), (1, 3.0)):
        state = PhaseState().moved(number, 0)
        changed = Plan(config).with_values(state, {("env", "rocket", "rewards", own): 4.0})
        for steps in (0, 25, 100):
            rewards = [Plan(each).settings(state, steps).env.rocket.rewards for each in (config, changed)]
            assert rewards == [{own: weight, "touch": 2.0 - steps / 50} for weight in (before, 4.0)]


def test_a_phase_is_found_by_its_name_if_others_came_or_went():
    state = PhaseState(number=1, name="B", began=[0, 40], held=2)
    assert state.among(["A", "B", "C"]) == state
    assert state.among(["A", "New", "B"]) == PhaseState(number=2, name="B", began=[0, 40, 40])
    assert state.among(["B", "C"]) == PhaseState(number=0, name="B", began=[40])
    assert state.among(["X"]).name == "X" and state.among([]) == PhaseState()


def test_a_run_that_had_no_phases_begins_with_the_first_one_now():
    assert saved_phase({"steps": 77}) == PhaseState(began=[77])


@pytest.mark.parametrize(("asked", "number"), [("next", 2), ("back", 0), ("3", 2), ("c", 2), ("A", 0)])
def test_a_phase_is_found_by_number_name_and_direction(asked, number):
    config = configured({"name": "A", "until": {"steps": 1}}, {"name": "B", "until": {"steps": 1}}, {"name": "C"})
    assert Plan(config).number_of(asked, 1) == number


@pytest.mark.parametrize("asked", ["0", "4", "D", ""])
def test_a_phase_that_does_not_exist_is_refused_with_all_that_do(asked):
    config = configured({"name": "A", "until": {"steps": 1}}, {"name": "B", "until": {"steps": 1}}, {"name": "C"})
    with pytest.raises(UserError, match="1 A, 2 B, 3 C"):
        Plan(config).number_of(asked, 1)
