"""docs/recordings.md can be followed, and what it says of the format is what the code does."""
from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.one_process import Job, run_jobs
from wavedash.recordings import Layout, file, header, layout
from wavedash.recordings.header import SOURCES
from wavedash.rocket.recording.frames import rocket_layout

PAGE = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    """Its command and both readers are run; they say the same of the same file."""
    pytest.importorskip("RocketSim")
    jobs: list[Job] = []
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        words = [*shlex.split(text)[1:], "--games", "2", "--seconds", "8", "--device", "cpu"]
        jobs.append(text if language == "python" else words)
    _, ours, theirs = run_jobs(jobs, tmp_path)
    assert "champion-1v1" in ours and "touches the ball" in ours and "uu high" in ours
    assert re.fullmatch(r"\d+ frames; the ball was at \[.+\] in the last\n", theirs)


def rows(begins: str, ends: str) -> dict[str, list[str]]:
    """The rows of tables in a part of the page: by the names in their first cell, the other cells."""
    part, found = PAGE.split(begins)[1].split(ends)[0], {}
    for line in part.splitlines():
        first, *others = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            for name in re.findall(r"`([\w.]+)`", first):
                found[f"cars{name}" if name.startswith(".") else name] = others
    return found


def check_fields(page: dict[str, list[str]], code: Layout, sizes: dict[str, int]) -> None:
    for name, (kind, shape, scale, _) in page.items():
        if kind:
            number, _, below = scale.partition("/")
            field = code.by_name[name]
            assert (field.type, list(field.shape)) == (kind, [sizes.get(n) or int(n) for n in shape.split(", ") if n]), name
            assert field.scale == float(number) / float(below or 1), name


def test_fields_of_rocket_league_are_those_of_the_page() -> None:
    page, code = rows("### Records of Rocket League", "### Records of walks"), rocket_layout(3, head=True, terms=4)
    assert set(page) == set(code.by_name)
    check_fields(page, code, {"C": 3, "K": 4})
    for name in ("position", "rotation", "velocity", "angular_velocity"):
        ball, cars = code.by_name[f"ball.{name}"], code.by_name[f"cars.{name}"]
        assert (cars.type, cars.scale, cars.shape) == (ball.type, ball.scale, (3, *ball.shape))


def test_fields_of_walks_are_those_of_the_page() -> None:
    pytest.importorskip("mujoco.batch")
    from wavedash.loading import load_run
    from wavedash.walk.recording import record_walk

    page = rows("### Records of walks", "### Limits")
    walk = record_walk(load_run(Path(__file__).parents[1] / "walk" / "walker"), seconds=0.1, depth=True)
    assert set(page) - set(walk.layout.by_name) <= {"scandots"} and set(walk.layout.by_name) <= set(page)
    rows_of_image, columns = walk.layout.by_name["depth"].shape
    check_fields({name: cells for name, cells in page.items() if name in walk}, walk.layout,
                 {"G": len(walk.header["scene"]["geoms"]), "K": len(walk.header["reward_terms"]), "rows": rows_of_image,
                  "columns": columns})
    said = set(re.findall(r"`(\w+)`", PAGE.split("The `scene` of a walk")[1].split("### ")[0]))
    assert set(walk.header["scene"]) | {"kind", "size", "colour"} == said


def test_keys_sources_and_limits_are_those_of_the_page() -> None:
    keys = set(rows("### The header", "A field has"))
    assert keys == {*header._RULES, "format", "record", "score"}
    assert all(f"`{source}`" in PAGE for source in SOURCES)
    limits = PAGE.split("### Limits")[1].split("## ")[0]
    for says, is_so in (("header has at most 1 MiB", file.MOST_HEADER == 1 << 20), ("64 MiB", file.MOST_UNPACKED == 64 << 20),
                        ("10,000 events", header.MOST_EVENTS == 10_000), ("64 players", header.MOST_PLAYERS == 64),
                        ("256 fields", layout.MOST_FIELDS == 256), ("four dimensions", layout.MOST_DIMENSIONS == 4),
                        ("1 MiB per record", layout.MOST_BYTES == 1 << 20)):
        assert says in limits.replace("\n", " ") and is_so, says
