"""A task with the parts of other tasks added, which are switched off."""
from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from wavedash.config import RocketConfig
from wavedash.errors import UserError
from wavedash.rocket.united import united


def task(**options: Any) -> RocketConfig:
    return RocketConfig.model_validate(options)



TOUCH = task(rewards={"touch": 1.0, "face_ball": {"weight": 0.1}}, starts={"kickoff": 1.0},
                     endings={"no_touch": {"seconds": 10}}, measures=["turtle"])
SCORE = task(rewards={"goal": 10.0, "touch": 0.5, "boost_pickup": {"weight": 0.5, "small": 0.2}},
                     starts={"random": {"weight": 2.0, "ball_in_air": 0.2}, "kickoff": 0.5},
                     endings={"goal": {}, "no_touch": {"seconds": 20}},
                     lanes={"turtle": {"share": 0.1, "starts": {"turtle": 1.0}, "rewards": {"recovery": 1.0}}},
                     measures=[{"turtle": {"window": 2}}, "wall"])
PLAY = task(rewards={"goal": 10.0}, endings={"time_out": {"seconds": 60}},
                    lanes={"mechanics": {"share": 0.2, "starts": {"wall": 1.0}, "measures": ["wall"]},
                           "turtle": {"share": 0.05, "most": 0.3, "starts": {"turtle": 1.0, "kickoff": 0.1},
                                      "rewards": {"touch": 1.0}}})
ALL = [TOUCH, SCORE, PLAY]


def test_parts_of_other_tasks_are_added_switched_off():
    one = united(TOUCH, ALL)
    assert one.rewards == {"touch": 1.0, "face_ball": 0.1, "goal": 0.0,
                            "boost_pickup": {"weight": 0.0, "small": 0.2}}
    assert one.starts == {"kickoff": 1.0, "random": {"weight": 0.0, "ball_in_air": 0.2}}
    assert one.endings == {"no_touch": {"seconds": 10}, "goal": None, "time_out": None}
    assert one.measures == ["turtle", "wall"]
    shares = {name: (lane.share, lane.most) for name, lane in one.lanes.items()}
    assert shares == {"turtle": (0.0, 0.3), "mechanics": (0.0, 0.2)}
    assert one.lanes["turtle"].starts == {"turtle": 1.0, "kickoff": 0.0}
    assert one.lanes["turtle"].rewards == {"recovery": 1.0, "touch": 0.0}


def test_own_values_stay_and_room_is_that_of_the_largest():
    one = united(PLAY, ALL)
    assert one.rewards == {"touch": 0.0, "face_ball": 0.0, "goal": 10.0, "boost_pickup": {"weight": 0.0, "small": 0.2}}
    assert one.endings == {"no_touch": None, "goal": None, "time_out": {"seconds": 60}}
    turtle, mechanics = one.lanes["turtle"], one.lanes["mechanics"]
    assert (turtle.share, turtle.most, turtle.starts, turtle.rewards) == (0.05, 0.3, {"turtle": 1.0, "kickoff": 0.1},
                                                                          {"recovery": 0.0, "touch": 1.0})
    assert (mechanics.share, mechanics.most, mechanics.rewards, mechanics.measures) == (0.2, 0.2, None, ["wall"])


def test_the_order_of_parts_does_not_depend_on_the_phase():
    tasks = [united(task, ALL) for task in ALL]
    for part in ("rewards", "starts", "endings", "lanes"):
        assert len({tuple(getattr(task, part)) for task in tasks}) == 1
    for part in ("starts", "rewards"):
        assert len({tuple(getattr(task.lanes["turtle"], part)) for task in tasks}) == 1
    assert [task.lanes["turtle"].most for task in tasks] == [0.3] * 3
    assert [united(task, ALL) for task in tasks] == tasks  # nothing is added twice


def test_a_task_alone_is_itself_and_no_task_is_changed():
    before = [task.model_dump() for task in ALL]
    assert united(TOUCH, [TOUCH]).rewards == {"touch": 1.0, "face_ball": 0.1}
    assert united(SCORE, []).lanes["turtle"].most == 0.1
    united(TOUCH, ALL)
    assert [task.model_dump() for task in ALL] == before


def test_a_united_task_is_one_that_can_be_written_and_read():
    one = united(SCORE, ALL)
    assert RocketConfig.model_validate(one.model_dump()) == one


def test_lanes_of_all_phases_must_fit_together():
    """Each task fits for itself; a run has room for the lanes of all of them from its beginning."""
    one, two, three = (task(lanes={name: {"share": share, "starts": {"kickoff": 1.0}}})
                       for name, share in (("turtle", 0.6), ("air", 0.4), ("wall", 0.3)))
    assert sum(lane.room for lane in united(one, [one, two]).lanes.values()) == 1.0
    with pytest.raises(UserError, match=r"turtle \(60%\), air \(40%\), wall \(30%\).* 130% of the arenas.*Lower"):
        united(one, [one, two, three])


def test_uniting_needs_no_torch():
    """Configurations are checked before torch is loaded."""
    code = ("import sys; from wavedash.config import RocketConfig as R; from wavedash.rocket.united import united; "
            "united(R(), [R()]); sys.exit('torch' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
