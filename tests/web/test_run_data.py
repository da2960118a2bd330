"""What the tabs Run, Ladder and Steer are told beyond the metrics themselves."""
from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.web.serving import make_run
from wavedash.config_file import describe_config, load_config
from wavedash.errors import UserError
from wavedash.league.games import HEADER
from wavedash.web.library import Library
from wavedash.web.machine import Machine
from wavedash.web.metrics import MetricsTail
from wavedash.web.options import about
from wavedash.web.run_data import RunData, last_row


def rows_of(*steps: int, **more: float) -> str:
    return "".join(json.dumps({"steps": step, "x": float(step), **more}) + "\n" for step in steps)


def test_rows_of_one_edition_can_be_added_to_each_other(tmp_path: Path) -> None:
    """A reader that adds what is new while the edition stays, and else reads all, has what a reader of the whole file has."""
    path = tmp_path / "metrics.jsonl"
    tail, have, edition, read_anew = MetricsTail(path), list[float](), None, 0
    stories = [rows_of(1, 2, 3), rows_of(1, 2, 3, 4, 5), rows_of(1, 2, 30), rows_of(1, 2, 30, 40),
               rows_of(1, 2, 30, 40, 35), "", rows_of(7)]
    for text in stories:
        path.write_text(text)
        tail.refresh()
        found = tail.table(["x"], after=have[-1] if have else None)
        if found["edition"] == edition:
            have += found["steps"]
        else:
            have, read_anew = tail.table(["x"])["steps"], read_anew + 1
        edition = found["edition"]
        whole = MetricsTail(path)
        whole.refresh()
        assert have == whole.table()["steps"], text
    assert read_anew < len(stories), "rows that were added are no other edition"


def test_a_run_has_its_last_rating_however_many_rows_came_since(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rated = rows_of(3, **{"rating/elo": 900.0}) + rows_of(4, **{"rating/elo": 1234.5})
    path.write_text(rows_of(1, 2) + rated + rows_of(*range(5, 3000)))
    row = last_row(path)
    assert (row["steps"], row["rating/elo"]) == (2999, 1234.5)
    path.write_text(rows_of(1, 2))
    assert last_row(path)["rating/elo"] is None
    path.write_text('{"steps": 1, "rating/elo": "high"}\n' + rows_of(2))
    assert last_row(path)["rating/elo"] is None, "a file may be anybody's"


def test_ladders_are_of_one_team_size(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    games = [f"2026-11-18T00:00:00Z,{step},bot@{step},chaser,{size},{goals},0,60.0,warp,{seed}"
             for size, goals in ((1, 0), (2, 1)) for step in (100, 200) for seed in range(4)]
    (run / "games.csv").write_text(HEADER + "\n".join(games) + "\n")
    data = RunData(Library(tmp_path))
    (found,) = data.library.runs()
    values = {size: {one["player"]: one["value"] for one in data.ladder(found, size)["ratings"]} for size in (1, 2)}
    assert values[1]["bot@200"] < values[2]["bot@200"], "with two cars it won every game, alone it scored in none"
    assert data.ladder(found)["size"] == 2 and data.ladder(found)["sizes"] == [1, 2]
    assert {data.ladder(found, size)["games"] for size in (1, 2)} == {8}
    with pytest.raises(UserError, match="3v3"):
        data.ladder(found, 3)


def test_settings_say_what_the_configuration_says() -> None:
    text = " ".join(describe_config(load_config("rocket-1v1")).replace("#", " ").split())
    for key in ("total_steps", "ppo.learning_rate", "ppo.schedule.kind", "env.rocket.reward_mode", "checkpoint.every"):
        assert about(key)["help"] in text
    assert about("ppo.schedule.kind")["choices"] == ["constant", "linear", "cosine", "kl"]
    assert "choices" not in about("env.rocket.zero_sum"), "it may be a number too"
    for unknown in ("env.rocket.rewards.touch", "ppo.nothing", "nothing.at.all", "", "ppo..x", "__class__"):
        assert about(unknown) == {}


def test_the_load_of_the_processors_is_told_in_every_thread() -> None:
    """Each answer is given by another thread, and each is measured since the last one by whichever."""
    machine, loads = Machine(), list[float]()

    def look() -> None:
        machine._at = float("-inf")  # what was found two seconds ago is not told again
        loads.append(machine.look()["cpu"])

    sum(i * i for i in range(3_000_000))
    for _ in range(3):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        sum(i * i for i in range(3_000_000))
    assert all(0 < load <= 1 for load in loads)
