"""Nothing is shown mirrored, as the pixels of real pictures say.

Rocket League's coordinates are left-handed and three's are right-handed, so a mirrored picture is an easy mistake, and one that
looks right. RocketSim is the reference: it knows what a right turn is. A camera stands still while a car drives.
"""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.page.browser import PageServer
from tests.page.games import AHEAD, record_game

pytest.importorskip("RocketSim")
pytestmark = pytest.mark.slow

STEERS = {"left": -1.0, "right": 1.0}
ORANGE = {"left": "idle", "right": "random"}
"""Who plays orange, so that the recordings can be told by their titles"""


@pytest.fixture(scope="module")
def server(browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    root = tmp_path_factory.mktemp("runs")
    for name, steer in STEERS.items():
        record_game(root / "recordings", 1.5, orange=ORANGE[name], controls=[1.0, steer, 0, 0, 0, 0, 0, 0], placed={
            "ball": {"position": [0, 4000, 93]},
            "cars": [{"position": [0, -3000, 17], "yaw": AHEAD}, {"position": [2500, 3500, 17], "yaw": -AHEAD}]})
    server = PageServer(root, "idle", "vs", "idle")
    yield server
    server.close()


def open_recording(open_page, server: PageServer, steer: str):
    """Opens a recording at its beginning, behind the car that drives."""
    page = open_page(server.address, color_scheme="dark", reduced_motion="reduce")
    rows = page.page.evaluate("fetch('/api/recordings').then((answer) => answer.json())")
    (chosen,) = [row["id"] for row in rows if row["title"].endswith(f"vs {ORANGE[steer]}")]
    page.page.evaluate(f"location.hash = 'rec={chosen}&t=0'")
    page.wait("s.watch.rec !== null && s.watch.frames > 10")
    if page.state()["playing"]:
        page.page.keyboard.press("Space")
    page.page.keyboard.press("Home")
    page.page.keyboard.press("1")
    if page.state()["camera"]["ballCam"]:
        page.page.keyboard.press("b")
    page.wait("!s.watch.playing && s.watch.frame === 0 && s.watch.camera.mode === 'car' && !s.watch.camera.ballCam")
    page.page.wait_for_timeout(300)
    return page


def is_blue(picture: np.ndarray) -> np.ndarray:
    red, green, blue = np.moveaxis(picture, -1, 0)
    return (blue > 110) & (blue > red + 70) & (blue > green + 25)


def is_orange(picture: np.ndarray) -> np.ndarray:
    red, green, blue = np.moveaxis(picture, -1, 0)
    return (red > 110) & (red > blue + 70) & (red > green + 25)


@pytest.mark.parametrize("steer", STEERS)
def test_a_car_that_steers_right_turns_right(open_page, server: PageServer, steer: str) -> None:
    page = open_recording(open_page, server, steer)
    page.page.keyboard.press("f")  # the camera stays where it is, and the car drives away from it
    page.wait("s.watch.camera.mode === 'free'")
    page.page.wait_for_timeout(300)
    before = is_blue(page.picture())
    for _ in range(25):
        page.page.keyboard.press(".")
    page.wait("s.watch.frame === 25")
    page.page.wait_for_timeout(300)
    now = is_blue(page.picture())
    new = now & ~before
    assert before.sum() > 50 and new.sum() > 20, "the car is seen before and after"
    column = np.nonzero(new)[1].mean() / new.shape[1]
    assert column > 0.55 if steer == "right" else column < 0.45


def test_blue_attacks_the_orange_goal(open_page, server: PageServer) -> None:
    """Behind a blue car that looks ahead, the goal in the middle of the picture is orange, and no other is seen."""
    page = open_recording(open_page, server, "right")
    picture = page.picture()
    height, width = picture.shape[:2]
    ahead = picture[height // 5: height // 2, width // 3: 2 * width // 3]
    assert is_orange(ahead).sum() > 10 * max(1, is_blue(ahead).sum())


def test_cars_are_where_the_page_says(open_page, server: PageServer) -> None:
    """The pixel that the page names for a car shows that car, in a view from above."""
    page = open_recording(open_page, server, "right")
    page.page.keyboard.press("0")
    page.wait("s.watch.camera.mode === 'top'")
    page.page.wait_for_timeout(500)
    picture = page.picture()
    box = page.page.locator(".picture canvas").first.bounding_box()
    for car, colour in zip(page.state()["cars"], (is_blue, is_orange), strict=True):
        at = page.page.evaluate(f"window.wavedash.screen({car['x']}, {car['y']}, {car['z']})")
        x, y = int(at["x"] - box["x"]), int(at["y"] - box["y"])
        near = picture[max(0, y - 6): y + 7, max(0, x - 6): x + 7]
        assert colour(near).any()
