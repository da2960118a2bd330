"""The tab Watch in a real browser, with a real server and real games: every control does what it says."""
from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.page.browser import TOKEN, PageServer
from tests.page.games import record_game
from wavedash.recordings import read

pytest.importorskip("RocketSim")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    root = tmp_path_factory.mktemp("runs")
    record_game(root / "recordings", 12.0, "champion", "idle", seed=4)
    server = PageServer(root, "champion", "vs", "chaser")
    yield server
    server.close()


def live(page):
    """Waits for the live game to move."""
    page.wait("s.watch && s.watch.live && s.watch.frames > 5")
    return page


def recorded(open_page, server: PageServer, hash_: str = "", **options):
    """Opens the only recording of the game of the fixture."""
    page = open_page(server.address, **options)
    rows = page.page.evaluate("fetch('/api/recordings').then((answer) => answer.json())")
    chosen = next(row for row in rows if row["title"].endswith("vs idle"))
    page.page.evaluate(f"location.hash = 'rec={chosen['id']}{hash_}'")
    page.wait("s.watch.rec !== null && s.watch.frames > 10")
    return page


# --- live games -------------------------------------------------------------------------------------------------------

def test_a_live_game_moves_and_nobody_else_is_asked(open_page, server: PageServer) -> None:
    page = open_page(server.address)
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url))
    live(page)
    first = page.picture()
    page.wait(f"s.watch.time > {page.state()['time'] + 1}")
    second = page.picture()
    assert (np.abs(first - second).max(-1) > 24).mean() > 0.005, "pixels move"
    assert "chaser" in page.state()["who"]["orange"]
    page.page.reload()
    live(page)
    assert asked and all(url.startswith(server.origin) for url in asked)


def test_a_live_game_is_paused_scrubbed_and_taken_up_again(open_page, server: PageServer) -> None:
    page = live(open_page(server.address))
    page.wait("s.watch.duration > 2")
    page.page.locator(".track").first.click(position={"x": 60, "y": 4})
    page.wait("s.watch.live && !s.watch.following && s.watch.time < s.watch.duration - 0.5")
    page.page.keyboard.press("End")
    page.wait("s.watch.following")


def choose(page, orange: str, blue: str, size: str) -> None:
    """Chooses players in the dialog, with keys alone."""
    page.page.keyboard.press("p")
    page.page.wait_for_selector("#chooser[open]")
    for team, name in (("orange", orange), ("blue", blue)):
        page.page.wait_for_selector(f"#side-{team} input[type=radio]", state="attached")
        page.page.fill(f"#side-{team} input[type=search]", name)
        page.page.keyboard.press("Tab")
        page.page.keyboard.press("Space")
    page.page.focus("#choose-size")
    page.page.keyboard.press(size)
    page.page.focus("#choose-play")
    page.page.keyboard.press("Enter")


def test_players_are_chosen_with_keys_alone(open_page, server: PageServer) -> None:
    """What cannot be played is explained, and the next choice is played."""
    page = live(open_page(server.address))
    choose(page, "defender", "champion", "2")
    page.wait("s.watch.status === 'failed' && s.watch.text.includes('team')")
    choose(page, "defender", "chaser", "2")
    page.wait("(s.watch.who?.orange ?? '').includes('defender') && s.watch.cars.length === 4 && s.watch.frames > 3")
    choose(page, "chaser", "champion", "1")  # as the other tests expect it
    page.wait("(s.watch.who?.blue ?? '').includes('champion') && s.watch.cars.length === 2 && s.watch.frames > 3")


def test_a_ball_is_placed_and_the_game_goes_on_from_there(open_page, server: PageServer) -> None:
    page = live(open_page(server.address))
    page.page.keyboard.press("g")
    page.wait("s.watch.placing")
    page.page.keyboard.press("0")
    page.page.wait_for_timeout(500)
    ball, field = page.state()["ball"], page.page.locator(".picture canvas").first.bounding_box()
    from_ = page.page.evaluate(f"window.wavedash.screen({ball['x']}, {ball['y']}, {ball['z']})")
    to = page.page.evaluate("window.wavedash.screen(2000, -2500, 93)")
    assert field["x"] < to["x"] < field["x"] + field["width"]
    page.page.mouse.move(from_["x"], from_["y"])
    page.page.mouse.down()
    page.page.mouse.move((from_["x"] + to["x"]) / 2, (from_["y"] + to["y"]) / 2)
    page.page.mouse.move(to["x"], to["y"])
    page.page.mouse.up()
    page.page.click("#place-play")
    page.wait("s.watch.live && !s.watch.placing && s.watch.frames < 60 && s.watch.frames > 0 "
              "&& Math.hypot(s.watch.ball.x - 2000, s.watch.ball.y + 2500) < 700")


def test_a_human_drives_and_leaves(open_page, server: PageServer) -> None:
    page = live(open_page(server.address))
    page.page.keyboard.press("1")
    page.page.keyboard.press("v")
    page.wait("s.watch.driving === 0 && s.watch.humans.includes(0)")
    page.page.keyboard.down("w")
    page.page.keyboard.down("Shift")
    page.wait("s.watch.controls[0] === 1 && s.watch.controls[6] === 1")
    page.page.keyboard.up("Shift")
    page.page.keyboard.up("w")
    page.page.keyboard.press("Escape")
    page.wait("s.watch.driving === null && s.watch.humans.length === 0")


def test_the_head_says_what_the_bot_thinks(open_page, server: PageServer) -> None:
    page = live(open_page(server.address, width=1100, height=700))
    page.page.keyboard.press("1")
    page.page.keyboard.press("h")
    page.wait("s.head.visible && s.head.who === 'policy' && s.head.choices.length > 0 && s.head.value !== null")
    page.page.keyboard.press("2")
    page.wait("s.head.car === 1")
    page.page.keyboard.press("h")
    page.wait("!s.head.visible")


def test_a_game_is_kept_and_downloaded(open_page, server: PageServer, tmp_path: Path) -> None:
    """The file of the server and the one that the browser packs hold the same frames as far as both go."""
    page = live(open_page(server.address, accept_downloads=True))
    page.wait("s.watch.duration > 1")
    before = set((server.root / "recordings").glob("*.wdr"))
    page.page.click("#record")
    page.page.wait_for_selector(".toast:has-text('Recorded')")
    (kept,) = set((server.root / "recordings").glob("*.wdr")) - before
    with page.page.expect_download() as download:
        page.page.click("#download")
    download.value.save_as(tmp_path / "mine.wdr")
    theirs, mine = read(kept), read(tmp_path / "mine.wdr")
    common = min(theirs.frames, mine.frames)
    assert common > 10 and mine.header["record"] == theirs.header["record"]
    seen = np.isin(mine["tick"], theirs["tick"])  # a viewer who joins later, or is slow, misses frames
    assert seen.sum() > 5
    rows = np.searchsorted(theirs["tick"], mine["tick"][seen])
    assert np.array_equal(mine["cars.position"][seen], theirs["cars.position"][rows])
    kept.unlink()


def test_without_the_token_one_watches_only(open_page, server: PageServer) -> None:
    page = live(open_page(server.origin + "/"))
    who = page.state()["who"]
    refused = page.page.evaluate("""() => new Promise((resolve) => {
        const socket = new WebSocket(`ws://${location.host}/api/watch`, ["wavedash"]);
        socket.onopen = () => socket.send(JSON.stringify({do: "pause"}));
        socket.onmessage = (event) => {
            if (typeof event.data !== "string") return;
            const message = JSON.parse(event.data);
            if (message.type === "refused") { socket.close(); resolve(message.why); }
        };
    })""")
    assert "token" in refused
    page.page.keyboard.press("v")
    page.page.keyboard.press("g")
    assert page.state()["driving"] is None and not page.state()["placing"] and page.state()["who"] == who


# --- recorded games ---------------------------------------------------------------------------------------------------

def test_a_recording_is_played_stepped_and_looped(open_page, server: PageServer) -> None:
    page = recorded(open_page, server, "&t=0")
    page.wait("!s.watch.playing && s.watch.frame === 0")
    page.page.keyboard.press(".")
    page.page.keyboard.press(".")
    page.wait("s.watch.frame === 2")
    page.page.keyboard.press(",")
    page.wait("s.watch.frame === 1")
    page.page.click("#step-on")
    page.wait("s.watch.frame === 2")
    page.page.keyboard.press("ArrowRight")
    page.wait("Math.abs(s.watch.time - 5) < 0.3")
    page.page.select_option("#speed", "8")
    page.wait("s.watch.speed === 8")
    page.page.keyboard.press("-")
    page.wait("s.watch.speed < 8")
    page.page.keyboard.press("l")
    page.wait("s.watch.loop")
    page.page.keyboard.press("Home")
    page.page.keyboard.press("k")  # Space would press the button that was clicked last
    page.wait("s.watch.playing && s.watch.time > 1")
    page.wait("s.watch.time < 1")  # it has begun anew
    page.page.click("#play")
    page.wait("!s.watch.playing")


def test_marks_lead_to_what_happened(open_page, server: PageServer) -> None:
    page = recorded(open_page, server, "&t=0")
    (file,) = [path for path in (server.root / "recordings").glob("*.wdr") if "idle" in path.name]
    recording = read(file)
    happened = [event for event in recording.header["events"] if event["kind"] != "bump"]
    assert happened and page.state()["marks"] >= 1
    page.page.keyboard.press("]")
    page.wait("s.watch.time > 0")
    near = min(abs(page.state()["frame"] - event["frame"]) for event in happened)
    assert near <= 60, "it stops shortly before something that happened"


def test_cameras(open_page, server: PageServer) -> None:
    page = recorded(open_page, server, "&t=2")
    page.page.wait_for_timeout(300)
    seen = []
    for button, mode in (("#cam-director", "director"), ("#cam-top", "top"), ("#cam-car", "car"), ("#cam-free", "free")):
        page.page.click(button)
        page.wait(f"s.watch.camera.mode === '{mode}'")
        page.page.wait_for_timeout(400)
        seen.append(page.picture())
    assert all((np.abs(a - b).max(-1) > 24).mean() > 0.1 for a, b in pairwise(seen[:3])), "a free camera begins where it was"
    before = page.state()["camera"]["at"]
    page.page.keyboard.down("w")
    page.page.wait_for_timeout(500)
    page.page.keyboard.up("w")
    assert np.abs(np.subtract(page.state()["camera"]["at"], before)).max() > 0.5
    page.page.keyboard.press("2")
    page.wait("s.watch.camera.mode === 'car' && s.watch.camera.car === 1")
    ball = page.state()["camera"]["ballCam"]
    page.page.keyboard.press("b")
    page.wait(f"s.watch.camera.ballCam === {'false' if ball else 'true'}")


def test_a_link_leads_to_a_moment_and_a_camera(open_page, server: PageServer) -> None:
    page = recorded(open_page, server, "&t=3.5&cam=2")
    page.wait("Math.abs(s.watch.time - 3.5) < 0.1 && !s.watch.playing")
    page.wait("s.watch.camera.mode === 'car' && s.watch.camera.car === 1")
    page.page.keyboard.press("0")
    page.page.keyboard.press("ArrowLeft")
    page.until("location.hash.includes('t=0') && location.hash.includes('cam=')")
    copied = open_page(page.page.url)
    copied.wait("s.watch.rec !== null && s.watch.time < 0.1 && s.watch.camera.mode === 'top'")


DROP = """([bytes, name]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], name));
    for (const kind of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
}"""


def crafted(file: Path, change) -> list[int]:
    """The file with another header."""
    whole = gzip.decompress(file.read_bytes())
    (length,) = struct.unpack_from("<I", whole, 4)
    header = json.loads(whole[8:8 + length])
    change(header)
    text = json.dumps(header).encode()
    return list(gzip.compress(b"WDR1" + struct.pack("<I", len(text)) + text + whole[8 + length:]))


def endless(header) -> None:
    """Every frame is later than any clock goes on by one."""
    next(field for field in header["record"] if field["name"] == "tick")["scale"] = 1e20


def hostile(header) -> None:
    """Names that every object of JavaScript has, and markup."""
    for player in header["players"]:
        player |= {"hitbox": "__proto__", "name": "<img src=x onerror=alert(1)>"}
    for event in header["events"]:
        event["kind"] = "constructor"


def test_crafted_recordings_neither_hang_nor_run_anything(open_page, server: PageServer) -> None:
    (file,) = [path for path in (server.root / "recordings").glob("*.wdr") if "idle" in path.name]
    page = live(open_page(server.address, width=1100, height=700))
    page.page.on("dialog", lambda dialog: page.wrong.append(dialog.message))
    page.page.keyboard.press("h")
    page.page.evaluate(DROP, [crafted(file, endless), "endless.wdr"])
    page.page.wait_for_selector(".toast.bad:has-text('time')")
    page.page.evaluate(DROP, [crafted(file, hostile), "hostile.wdr"])
    page.wait("!s.watch.live && s.watch.frames > 10 && s.watch.title.endsWith('vs idle')")
    page.page.keyboard.press("]")
    page.page.keyboard.press("End")
    page.wait("Number.isFinite(s.watch.time)")
    assert page.page.locator("img").count() == 0


def test_a_new_address_in_an_open_tab_brings_its_token(open_page, server: PageServer) -> None:
    """A server that was started again has another token; the browser opens its address without loading the page anew."""
    page = live(open_page(server.origin + "/"))
    with page.page.expect_event("load"):
        page.page.evaluate(f"location.hash = 'token={TOKEN}'")
    page.until("window.wavedash !== undefined && !location.hash.includes('token')")
    live(page)
    page.page.keyboard.press("g")
    page.wait("s.watch.placing")
    page.page.click("#place-cancel")
    page.wait("!s.watch.placing")
    if page.state()["status"] == "paused":  # the game is everybody's: it would stay so for the next test
        page.page.keyboard.press("k")
    page.wait("s.watch.status === 'playing'")


def test_files_are_opened_by_drag_and_drop_and_bad_ones_are_explained(open_page, server: PageServer, tmp_path: Path) -> None:
    (file,) = [path for path in (server.root / "recordings").glob("*.wdr") if "idle" in path.name]
    page = live(open_page(server.address))
    data = list(file.read_bytes())
    page.page.evaluate(DROP, [data, "dropped.wdr"])
    page.wait("!s.watch.live && s.watch.frames > 10 && s.watch.title.endsWith('vs idle')")
    for bad, name in ((data[:len(data) // 2], "cut.wdr"), ([1, 2, 3], "other.wdr"), ([], "empty.wdr")):
        page.page.evaluate(DROP, [bad, name])
        page.page.wait_for_selector(".toast.bad")
        assert page.state()["frames"] > 10, "what was shown stays"
        page.page.evaluate("document.querySelectorAll('.toast').forEach((toast) => toast.remove())")


def test_the_list_of_recordings(open_page, server: PageServer) -> None:
    page = live(open_page(server.address))
    page.page.keyboard.press("o")
    page.page.wait_for_selector("#recordings:visible")
    page.page.locator("#recordings button", has_text="idle").first.click()
    page.wait("s.watch.rec !== null && s.watch.title.endsWith('vs idle')")


# --- the page itself --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_scrolling_sideways(open_page, server: PageServer, scheme: str) -> None:
    page = live(open_page(server.address, width=390, height=844, color_scheme=scheme, has_touch=True, is_mobile=True))
    for tab in ("watch", "run", "ladder", "steer"):
        page.page.click(f"#tab-{tab}")
        page.page.wait_for_timeout(300)
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab
    assert page.page.evaluate("document.documentElement.dataset.theme") == scheme


SEEN = """[...document.querySelectorAll("#pane-watch button, #pane-watch select, #pane-watch input")].filter((one) =>
    one.checkVisibility() && !one.disabled && one.getAttribute("aria-disabled") !== "true" && one.tabIndex >= 0)"""


def test_all_buttons_can_be_reached_by_tab(open_page, server: PageServer) -> None:
    """Everything that is seen and on gets the focus by the Tab key, and has a name."""
    page = recorded(open_page, server, "&t=0", width=1200, height=800)
    wanted = set(page.page.evaluate(f"{SEEN}.map((one) => one.id).filter(Boolean)"))
    assert len(wanted) > 10
    reached = set()
    for _ in range(80):
        page.page.keyboard.press("Tab")
        reached.add(page.page.evaluate("document.activeElement.id"))
    assert wanted <= reached
    named = "one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length || one.title"
    assert page.page.evaluate(f"{SEEN}.filter((one) => !({named})).length") == 0
