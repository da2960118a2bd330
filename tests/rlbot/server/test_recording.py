"""Matches become recordings for the page: whole ones, and games up to their first goal."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wavedash.league.players import find_entrant
from wavedash.recordings.file import Recording, read
from wavedash.recordings.order import Order
from wavedash.rlbot.server.arena import Seat
from wavedash.rlbot.server.referee import FirstGoals, Referee, WholeMatch
from wavedash.rlbot.server.serving import Manner, play_match

pytest.importorskip("rlbot")


def recorded(referee: Referee, order: Order) -> tuple[list[Recording], tuple[int, int]]:
    seats = [Seat(0, "champion", find_entrant("champion").player()), Seat(1, "idle", find_entrant("idle").player())]
    outcome = play_match(seats, referee, Manner(seed=2, record=order))
    assert order.failure is None
    return [read(path) for path in order.files], outcome.goals


@pytest.mark.slow
def test_a_whole_match_is_one_recording(tmp_path: Path) -> None:
    (recording,), goals = recorded(WholeMatch(20.0, countdown=0.5, celebration=0.5), Order(None, tmp_path))
    assert goals[0] >= 2 and recording.header["score"] == list(goals)
    ticks = recording["tick"].astype(int)
    between = np.diff(ticks)
    assert (between > 0).all() and (between <= 8).all(), "countdowns are left out, and ticks count on over kick-offs"
    assert (between < 8).sum() <= 2 * (goals[0] + 1), "every eighth tick but where play stops"
    said = [event["text"] for event in recording.header["events"]]
    assert sum(text == "champion scores" for text in said) == goals[0] and said[-1] == f"blue wins {goals[0]}-{goals[1]}"
    assert [player["name"] for player in recording.header["players"]] == ["champion", "idle"]
    assert (np.diff(recording["score"].astype(int)[:, 0]) >= 0).all() and recording["score"][-1].tolist() == list(goals)


@pytest.mark.slow
def test_games_to_the_first_goal_are_recorded_one_by_one_as_many_as_asked_for(tmp_path: Path) -> None:
    recordings, goals = recorded(FirstGoals(3, 30.0), Order(2, tmp_path))
    assert goals == (3, 0) and len(recordings) == 2
    for number, recording in enumerate(recordings, 1):
        assert recording["tick"][0] == 0 and recording.header["title"] == f"champion vs idle, game {number}"
        assert abs(float(recording["ball.position"][-1][1])) > 5100, "its last frame is that of the goal"
