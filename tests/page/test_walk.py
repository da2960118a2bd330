"""A live walk in a real browser: the robot walks, viewers choose its course and look into its head."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.page.browser import PageServer, Watched

pytestmark = pytest.mark.slow

WALKER = Path(__file__).parents[1] / "walk" / "walker"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    server = PageServer(tmp_path_factory.mktemp("runs"), str(WALKER))
    yield server
    server.close()


def test_a_robot_walks_where_viewers_want(server: PageServer, open_page: Callable[..., Watched]) -> None:
    watched = open_page(server.address)
    watched.wait("s.watch && s.watch.live && s.watch.kind === 'walk' && s.watch.frames > 10")
    first = watched.state()["cars"][0]["x"]
    watched.wait(f"s.watch.cars[0].x > {first} + 0.2")  # it walks along x at 0.5 m/s
    assert watched.page.inner_text(".walk-where").startswith("flat")
    terrains = watched.page.locator("[data-course=terrain] option").all_inner_texts()
    assert "stairs_up" in terrains and terrains[0] == "flat"
    watched.page.select_option("[data-course=terrain]", "stairs_up")
    watched.until("document.querySelector('.walk-where').textContent === 'stairs up, level 5'")
    watched.page.select_option("[data-course=level]", "1")
    watched.until("document.querySelector('.walk-where').textContent === 'stairs up, level 1'")
    watched.page.locator("body").press("h")
    watched.wait("s.head.visible && s.head.value !== null && 'track_velocity' in s.head.rewards")
    watched.until("document.querySelector('.head-panel').innerText.includes('FR_hip')")
    before = watched.state()["frames"]
    watched.page.locator("body").press(" ")
    watched.wait("s.watch.status === 'paused'")
    watched.page.locator("body").press(" ")
    watched.wait(f"s.watch.status === 'playing' && s.watch.frames > {before} + 5")


def test_without_the_token_nobody_chooses(server: PageServer, open_page: Callable[..., Watched]) -> None:
    watched = open_page(f"{server.origin}/")
    watched.wait("s.watch && s.watch.live && s.watch.frames > 3")
    assert watched.page.locator("[data-course=terrain]").is_disabled()
