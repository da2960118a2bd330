"""The exported page in a real browser: it opens from a file, without a network, and shows curves, ladder and recordings."""
from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.page.browser import Watched
from wavedash.config_file import dump_config, load_config
from wavedash.league.games import HEADER
from wavedash.loading import load_run
from wavedash.recordings import Recording
from wavedash.walk.recording import record_walk
from wavedash.web.export import export_page

pytestmark = pytest.mark.slow

WALKER = Path(__file__).parents[1] / "walk" / "walker"
LEFT, RIGHT = 0.8, -0.8
"""rad/s: positive is to the left in MuJoCo, as everywhere in robotics"""
WANTED = np.array([0x5B, 0x9D, 0xFF])
"""The colour of the arrow of what is wanted, on a dark page"""


def turning(walk: Recording, rate: float) -> Recording:
    """The same walk with another command: straight on, and turn."""
    records = walk.records.copy()
    records["command"] = (0.6, 0.0, rate)
    return Recording({**walk.header, "title": f"turn {rate}"}, walk.layout, records)


def make_run(folder: Path, preset: str) -> Path:
    """A run that nobody trains, with metrics."""
    run = folder / preset / "20261118-090000-abcd"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text(dump_config(load_config(preset)))
    (run / "metrics.jsonl").write_text("".join(
        json.dumps({"steps": 1000 * i, "recent/return": i * i, "policy/kl": 0.01}) + "\n" for i in range(1, 41)))
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of a walk with recordings, of a run with a ladder, and of one that has neither."""
    folder = tmp_path_factory.mktemp("exports")
    rated = make_run(folder, "rocket-1v1")
    (rated / "games.csv").write_text(HEADER + "".join(
        f"2026-11-18T09:0{i}:00Z,{1000 * i},bot@{1000 * i},chaser,1,{i},1,60.0,rocketsim,{i}\n" for i in range(1, 5)))
    export_page(rated, folder / "rated.html")
    run = make_run(folder, "walk-flat")
    walk = record_walk(load_run(WALKER), "stairs_up", 2, seconds=3.0, depth=True)
    for rate in (LEFT, RIGHT):
        turning(walk, rate).write(run / "recordings" / f"{rate}.wdr")
    export_page(run, folder / "walk.html")
    export_page(make_run(folder, "cartpole"), folder / "plain.html")
    return folder


@pytest.fixture
def open_file(browser: Any) -> Iterator[Callable[..., Watched]]:
    """Opens files in pages without a network. Nothing may have been asked for but the files, and nothing gone wrong."""
    contexts, pages, asked, opened = [], [], [], []

    def open_one(path: Path, where: str = "", width: int = 640, height: int = 420, **options: Any) -> Watched:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark", offline=True, **options)
        context.on("request", lambda request: asked.append(request.url.partition("?")[0]))
        page = context.new_page()
        page.on("websocket", lambda socket: asked.append(socket.url))
        contexts.append(context)
        pages.append(Watched(page))
        opened.append(path.as_uri())
        return pages[-1].open(f"{path.as_uri()}#{where}")

    yield open_one
    for context in contexts:
        context.close()
    assert asked == opened and [page.wrong for page in pages] == [[] for _ in pages]


def recordings_of(path: Path) -> dict[str, str]:
    """Ids of the recordings in a file, by their titles."""
    found = re.search(r'id="offline">(.*?)</script>', path.read_text())
    assert found is not None
    answers = json.loads(gzip.decompress(base64.b64decode(json.loads(found[1])["packed"])))["answers"]
    return {row["title"]: row["id"] for row in answers["/api/recordings"]}


def test_curves_ladder_and_words_are_in_the_file(folder: Path, open_file: Callable[..., Watched]) -> None:
    watched = open_file(folder / "rated.html", "tab=run")
    watched.page.locator("figure.chart").first.scroll_into_view_if_needed()  # charts are drawn when they are seen
    watched.wait("s.curves.some((chart) => chart.names[0] === 'recent/return' && chart.drawn)")
    (chart,) = [chart for chart in watched.state("curves") if chart["names"][0] == "recent/return"]
    assert chart["points"] == [40] and chart["last"]["recent/return"] == 1600
    assert chart["x"] == [1000, 40_000] and chart["y"][0] <= 1 < 1600 <= chart["y"][1]
    watched.page.click("#tab-ladder")
    watched.wait("s.ladder && s.ladder.games === 4 && s.ladder.rows === 5")
    assert "chaser" in watched.page.inner_text("#pane-ladder") and "4,000" in watched.page.inner_text("#pane-ladder")
    watched.page.click("#tab-steer")
    assert "An exported page" in watched.page.inner_text("#pane-steer")
    watched.page.click("#exported")
    assert "the command line" in watched.page.inner_text(".exported-about")
    watched.page.keyboard.press("Escape")


def test_recordings_play(folder: Path, open_file: Callable[..., Watched]) -> None:
    watched = open_file(folder / "walk.html")
    watched.wait("s.watch.frames === 75 && s.watch.kind === 'walk'")
    first = watched.wait("s.watch.frame + 1") - 1
    before = watched.picture()
    if not watched.state()["playing"]:
        watched.page.locator("body").press(" ")
    watched.wait(f"s.watch.frame > {first} || (s.watch.loop && s.watch.frame !== {first})")
    watched.wait("!s.watch.playing && s.watch.frame === 74")
    after = watched.picture()
    assert np.abs(after - before).mean() > 0.3, "the robot has moved in the picture"
    assert watched.state()["live"] is False and "stairs up, level 2" in watched.page.inner_text(".walk-overlay")
    depth = watched.page.locator(".walk-depth").evaluate(
        "(canvas) => [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data]")
    pixels = np.array(depth).reshape(58, 87, 4)
    assert (pixels[..., 3] == 255).all() and pixels[-10:].mean() > pixels[:10].mean(), "the ground at its feet is near: bright"
    watched.page.set_viewport_size({"width": 390, "height": 700})
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_robots_are_not_mirrored(folder: Path, open_file: Callable[..., Watched]) -> None:
    """From behind the robot, its left is left in the picture, and the arrow of a command to turn left bends to the left."""
    ids = recordings_of(folder / "walk.html")
    bends = {}
    for rate in (LEFT, RIGHT):
        watched = open_file(folder / "walk.html", f"rec={ids[f'turn {rate}']}&t=1&cam=1")
        watched.wait("s.watch.frames === 75 && s.watch.camera.mode === 'car'")
        watched.page.wait_for_timeout(300)
        (body,) = watched.state()["cars"]
        x, y, z = body["x"], body["y"], body["z"]
        screen = watched.page.evaluate(
            f"[[0, 0.3, 0], [0, -0.3, 0], [0.5, 0, 0], [0, 0, 0.3], [0, 0, 0]].map(([a, b, c]) => "
            f"window.wavedash.screen({x} + a, {-z} + b, {y} + c))")
        left, right, ahead, above, here = screen
        assert left["x"] < here["x"] - 5 < right["x"] and ahead["y"] < here["y"] and above["y"] < here["y"] - 5
        box = watched.page.locator("canvas").first.bounding_box()
        picture = watched.picture()
        rows, columns = np.nonzero(np.abs(picture - WANTED).max(-1) < 40)
        near = (np.abs(columns + box["x"] - here["x"]) < 130) & (np.abs(rows + box["y"] - here["y"]) < 130)
        assert near.sum() > 20, "the arrow is seen"
        top = rows[near] < np.quantile(rows[near], 0.3)  # its head, which is further away
        bends[rate] = float(np.mean(columns[near][top])) + box["x"] - here["x"]
    assert bends[LEFT] < -3 and bends[RIGHT] > 3, bends


def test_a_run_without_recordings_opens_with_its_curves(folder: Path, open_file: Callable[..., Watched]) -> None:
    watched = open_file(folder / "plain.html", width=390, height=700)
    watched.wait("s.tab === 'run' && s.curves && s.curves.length > 0")
    watched.page.click("#tab-watch")
    watched.until("document.querySelector('#pane-watch').innerText.includes('no recordings')")
    watched.page.click("#tab-ladder")
    watched.until("document.querySelector('#pane-ladder').innerText.includes('no ladder')")
    watched.page.click("#theme")
    assert watched.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_file_that_was_changed_does_not_run(folder: Path, browser: Any) -> None:
    """The policy in the file allows its own script alone: one that was put in later is refused."""
    text = (folder / "plain.html").read_text()
    changed = folder / "changed.html"
    changed.write_text(text.replace("</body>", "<script>window.stranger = 1</script><img src='https://example.org/x.png'></body>"))
    context = browser.new_context(offline=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(changed.as_uri())
    page.wait_for_selector(".page")
    assert page.evaluate("window.stranger") is None
    assert sum("Content Security Policy" in line for line in said) >= 2
    context.close()
