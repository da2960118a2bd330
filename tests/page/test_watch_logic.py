"""Parts of the tab Watch that need no browser: the clock of live games, moments between frames, and what files may say."""
from __future__ import annotations

import base64
import copy
import json
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.page.browser import required
from tests.page.test_bundle import sources  # noqa: F401 (a fixture)
from wavedash.recordings.header import event, make_header
from wavedash.recordings.layout import Layout, fields
from wavedash.rocket.geometry import rotation
from wavedash.rocket.recording.frames import rocket_layout
from wavedash.rocket.recording.quaternions import quaternion_of

pytestmark = pytest.mark.slow
MODULES = ("recording", "header", "watch/delay", "watch/draft", "watch/marks", "watch/driving")
PICTURE = 1 / 60


@pytest.fixture(scope="module")
def module(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """Parts of the page as a module of Node."""
    node, out = required("node"), tmp_path_factory.mktemp("watch") / "watch.mjs"
    contents = "".join(f"export * from './src/{name}';" for name in MODULES)
    build = ("import { build } from 'esbuild'; await build({ bundle: true, format: 'esm', logLevel: 'error', "
             f"stdin: {{ contents: {json.dumps(contents)}, resolveDir: '.' }}, outfile: {json.dumps(str(out))} }});")
    subprocess.run([node, "--input-type=module", "-e", build], cwd=sources, check=True)
    return out


def asked(module: Path, code: str, given: Any) -> Any:
    """What JavaScript returns for `given`."""
    program = (f"import * as page from {json.dumps(module.as_uri())}; import {{ readFileSync }} from 'node:fs'; "
               "const given = JSON.parse(readFileSync(0, 'utf8')); "
               "const bytes = (text) => new Uint8Array(Buffer.from(text, 'base64')); "
               f"console.log(JSON.stringify((() => {{ {code} }})()));")
    done = subprocess.run([required("node"), "--input-type=module", "-e", program], input=json.dumps(given),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def packed(layout: Layout, values: dict[str, Any]) -> str:
    return base64.b64encode(layout.encode(values).tobytes()).decode()


# --- live games -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("jitter", "lost", "speed", "slow"), [
    (0.0, 0.0, 1.0, 1.0), (0.02, 0.0, 1.0, 0.97), (0.08, 0.1, 1.0, 1.03), (0.01, 0.0, 8.0, 1.0), (0.01, 0.0, 0.1, 1.0)])
def test_a_live_game_is_shown_smoothly(module: Path, jitter: float, lost: float, speed: float, slow: float) -> None:
    """Frames arrive late and some not at all, and the clock of the stage is `slow` times as slow as that of the page. The
    picture never goes back, is never ahead of what has arrived, hardly ever stands still, and is not later than it must be."""
    rng, interval = np.random.default_rng(1), 1 / 30
    times = np.arange(1, int(40 * 30 * max(1.0, speed))) * interval  # of the game
    kept = times[rng.random(len(times)) >= lost]
    arrivals = np.stack([slow * kept / speed + rng.random(len(kept)) * jitter, kept], 1)
    arrivals = arrivals[arrivals[:, 0].argsort()]
    arrivals[:, 1] = np.maximum.accumulate(arrivals[:, 1])
    shown, newest = np.array(asked(module, f"""
        const delay = new page.Delay(), out = [];
        let newest = 0, shown = 0, next = 0;
        for (let now = 0; now < 30; now += {PICTURE}) {{
          for (; next < given.length && given[next][0] <= now; next++) {{
            newest = given[next][1];
            delay.arrived(newest, given[next][0], {speed});
          }}
          shown = delay.advance(shown, newest, {PICTURE}, {speed}, {interval}, true);
          out.push([shown, newest]);
        }}
        return out;""", arrivals.tolist())).T
    rates = np.diff(shown) / PICTURE / speed
    assert (rates >= 0).all() and (shown <= newest + 1e-9).all()
    settled = slice(600, None)
    behind = (newest - shown) / speed
    assert np.percentile(rates[settled], 2) > 0.75 and np.percentile(rates[settled], 98) < 1.25
    assert behind[settled].mean() < 3 * interval / speed + 1.5 * jitter + 0.04
    naive = np.diff(newest) / PICTURE / speed  # without a delay, pictures would stand still and jump
    assert np.percentile(naive[settled], 2) == 0 or speed == 8


def test_a_long_game_forgets_its_oldest_frames_only(module: Path) -> None:
    layout = Layout(fields(("tick", "i32", [], 1.0), ("number", "f32", [], 1.0)))
    header = make_header("walk", "a walk", "stage", 2, 0.01, layout)
    records = [packed(layout, {"tick": np.array([2 * i]), "number": np.array([i])}) for i in range(400)]
    found = asked(module, """
        const recording = new page.Recording(given.header);
        given.records.forEach((record, i) => {
          if (i % 100 === 50) recording.addLiveEvent({ frame: i, kind: "fall", car: 0, text: String(i) });
          recording.append(bytes(record));
        });
        const before = recording.time(300), again = recording.append(bytes(given.records[7]));
        recording.drop(120);
        return { again, before, after: recording.time(180), start: recording.start, duration: recording.duration,
                 frames: recording.frames, at: recording.number("number", recording.sample(before).frame),
                 events: recording.events.map((one) => [one.text, recording.number("number", one.frame)]) };""",
                  {"header": header, "records": records})
    assert found["again"] is False and found["frames"] == 280  # a frame that is not newer is no frame
    assert found["before"] == found["after"] == pytest.approx(6.0) and found["at"] == 300
    assert found["start"] == pytest.approx(2.4) and found["duration"] == pytest.approx(7.98)
    assert found["events"] == [["150", 150], ["250", 250], ["350", 350]]


# --- moments ----------------------------------------------------------------------------------------------------------

def test_between_frames_a_ball_flies_its_parabola_and_turns_evenly(module: Path) -> None:
    """A free flight is a cubic of its frames, so the page must find it exactly; frames are 1/30 s apart."""
    layout = Layout(fields(("tick", "i32", [], 1.0), ("ball.position", "f32", [3], 1.0), ("ball.velocity", "f32", [3], 1.0),
                           ("ball.rotation", "f32", [4], 1.0)))
    header = make_header("walk", "a flight", "stage", 4, 1 / 120, layout)

    def flight(t: NDArray[Any]) -> dict[str, NDArray[Any]]:
        v0, gravity, half = np.array([900.0, -1200.0, 700.0]), np.array([0, 0, -650.0]), 2.5 * t
        return {"tick": np.rint(t * 120).astype(int), "ball.velocity": v0 + gravity * t[:, None],
                "ball.position": v0 * t[:, None] + gravity * t[:, None] ** 2 / 2 + [0, 0, 500],
                "ball.rotation": np.stack([0 * t, np.sin(half), 0 * t, np.cos(half)], 1)}

    frames, between = flight(np.arange(31) / 30), np.random.default_rng(0).uniform(0, 1, 50)
    found = asked(module, """
        const recording = new page.Recording(given.header, bytes(given.frames));
        return given.between.map((time) => {
          const moment = recording.sample(time);
          const at = moment.point("ball.position", "ball.velocity", 0, 60, [0, 0, 0]);
          return [at, moment.turn("ball.rotation", 0, [0, 0, 0, 1])];
        });""", {"header": header, "frames": packed(layout, frames), "between": between.tolist()})
    expected = flight(between)
    assert np.allclose([position for position, _ in found], expected["ball.position"], atol=0.01)
    dots = np.abs(np.sum(np.array([turn for _, turn in found]) * expected["ball.rotation"], 1))
    assert np.allclose(dots, 1, atol=1e-6)


def test_placed_bodies_are_sent_as_they_stand(module: Path) -> None:
    """Yaws of RocketSim's rotations come out of the page again, and bodies that nobody touched are left out."""
    layout, yaws = rocket_layout(2), [0.7, -2.4]
    header = make_header("rocket", "a game", "stage", 4, 1 / 120, layout, players=[
        {"name": str(team), "team": team, "hitbox": "octane", "policy": False, "human": False} for team in (1, 0)])
    values: dict[str, Any] = {field.name: np.zeros((1, *field.shape)) for field in layout.fields}
    values |= {"cars.rotation": quaternion_of(rotation(torch.tensor(yaws))[None].numpy()), "cars.boost": np.array([[12, 34]]),
               "cars.position": np.array([[[100, 200, 17], [-300, 400, 17]]]), "ball.position": np.array([[0, 0, 93.25]])}
    found = asked(module, """
        const recording = new page.Recording(given.header, bytes(given.frame));
        const draft = new page.Draft(recording, 0), all = draft.command(true), none = draft.command(false);
        draft.move(0, [9999, -500, 300]);
        draft.turn(0, 1.5);
        return { all, none, some: draft.command(false), kept: recording.read("cars.position", 0) };""",
                  {"header": header, "frame": packed(layout, values)})
    blue, orange = found["all"]["cars"]  # seats of the stage: blue before orange
    assert [blue["yaw"], orange["yaw"]] == pytest.approx([yaws[1], yaws[0]], abs=2e-3)
    assert orange["position"] == [100, 200, 17] and [blue["boost"], orange["boost"]] == [34, 12]
    assert found["none"] == {"do": "place", "cars": [None, None]}
    moved = found["some"]["cars"][1]
    assert found["some"]["cars"][0] is None and "ball" not in found["some"]
    assert moved["position"][0] < 4096 and moved["position"][1:] == [-500, 300] and moved["yaw"] == pytest.approx(1.5, abs=1e-3)
    assert found["kept"][:3] == [100, 200, 17], "the recording itself is not changed"


# --- files ------------------------------------------------------------------------------------------------------------

def test_no_header_breaks_the_page(module: Path) -> None:
    """Headers with something wrong anywhere are refused in words, or shown; what is shown can be read to its end."""
    layout, rng = rocket_layout(2, head=True, terms=2), random.Random(0)
    players = [{"name": "x", "team": team, "hitbox": "octane", "policy": True, "human": False} for team in (0, 1)]
    header = make_header("rocket", "a game", "match", 4, 1 / 120, layout, reward_terms=["a", "b"], actions=[[0.0] * 8],
                         players=players, events=[event(1, "goal", 0, "x scores")])
    frames = packed(layout, {field.name: np.zeros((3, *field.shape)) for field in layout.fields})
    wrong: list[Any] = [None, -1, 1e308, "x", [], {}, True, [[[]]], {"name": 3}]
    headers = []
    for _ in range(600):
        made = copy.deepcopy(header)
        place: Any = made
        while True:
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not isinstance(place[key], (dict, list)) or not place[key] or rng.random() < 0.25:
                break
            place = place[key]
        if rng.random() < 0.3:
            del place[key]
        else:
            place[key] = rng.choice(wrong)
        headers.append(made)
    found = asked(module, """
        return given.headers.map((header) => {
          try {
            const recording = new page.Recording(header, bytes(given.frames));
            for (const field of recording.header.record) {
              for (let frame = 0; frame < recording.frames; frame++) recording.read(field.name, frame);
            }
            const marks = new page.Marks();
            marks.update(recording);
            marks.near(0, 1);
            return `shown with ${recording.header.players.length} players`;
          } catch (error) {
            return error.constructor === Error ? error.message : `broken: ${error.stack}`;
          }
        });""", {"headers": headers, "frames": frames})
    assert not [said for said in found if said.startswith("broken")]
    assert all("this recording" in said or "this page" in said or said.startswith("shown") for said in found)
    assert len(set(found)) > 12 and sum(said.startswith("shown") for said in found) > 100


def test_keys_drive_as_in_the_game(module: Path) -> None:
    """W gives throttle and tips the nose down, as a dodge forwards needs it; D steers and yaws to the right."""
    held = [["KeyW"], ["KeyS", "KeyA"], ["KeyD", "Space"], ["ShiftLeft", "KeyX", "KeyE"], ["KeyA", "KeyD"], ["ArrowUp"]]
    found = asked(module, "return given.map((keys) => page.readKeys(new Set(keys)));", held)
    assert found == [[1, 0, -1, 0, 0, 0, 0, 0], [-1, -1, 1, -1, 0, 0, 0, 0], [0, 1, 0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0, 1, 1],
                     [0, 0, 0, 0, 0, 0, 0, 0], [0, 0, -1, 0, 0, 0, 0, 0]]
