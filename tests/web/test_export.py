"""The exported page: one file with everything that the server would answer, and with nothing about the machine or its users."""
from __future__ import annotations

import base64
import getpass
import gzip
import hashlib
import json
import os
import socket
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from wavedash.cli.app import app
from wavedash.config_file import dump_config, load_config
from wavedash.errors import UserError
from wavedash.league.games import HEADER
from wavedash.recordings import Field, Layout, Recording, read
from wavedash.recordings.header import event, make_header
from wavedash.web.app import STATIC
from wavedash.web.export import export_page
from wavedash.web.export_clean import GONE, Cleaner
from wavedash.web.export_html import PageFiles
from wavedash.web.library import Library
from wavedash.web.run_data import RunData

HOME, USER, HOST, SECRET = "/home/zaphod", "zaphod", "castle-of-zaphod", "s3cr3t-token"
EVIL = "</script><script>alert(1)</script><!--\u2028\u2029]]>&amp;"
VERSIONS = {"python": "3.12", "packages": {"torch": "2.11"}, "gpus": []}
STEPS = 3000
LAYOUT = Layout((Field("tick", "i32"), Field("noise", "u8", (64,))))


def make_recording(number: int, source: str = "rating", frames: int = 200, title: str = "one vs two") -> Recording:
    header = make_header("rocket", title, source, 8, 1 / 120, LAYOUT, run="bot", step=number, events=[
        event(1, "goal", 0, f"{HOME}/bots/one scores")], players=[{"name": f"{HOME}/bots/one", "team": 0}])
    header["created"] = f"2026-11-18T09:{number:02}:00Z"
    noise = np.random.default_rng(number).integers(0, 256, (frames, 64))
    return Recording(header, LAYOUT, LAYOUT.encode({"tick": 8 * np.arange(frames), "noise": noise}))


def make_run(root: Path, name: str = "bot", recordings: int = 3) -> Path:
    """A run folder as training writes it, by a user who is careless with names."""
    run = root / name / "20261118-090000-abcd"
    (run / "checkpoints").mkdir(parents=True)
    config = load_config("rocket-1v1", [f"name={name}", f"init={HOME}/runs/old/best"])
    (run / "config.yaml").write_text(dump_config(config))
    same = {"policy/kl": 0.01, "phase": f"Phase1-{EVIL}", "bad": {"__float__": "nan"}}
    rows = [{"steps": 100 * i, "recent/return": i / 3, **same} for i in range(1, STEPS + 1)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"steps": 9')  # it is being written
    changed = {"time": "2026-11-18T14:31:00.123+05:30", "step": 500, "key": f"init{EVIL}", "old": f"{HOME}/a/b",
               "new": "C:\\Users\\zaphod\\c", "by": f"{USER}@{HOST}"}
    (run / "events.jsonl").write_text(json.dumps(changed) + "\n")
    (run / "command.txt").write_text(f"{HOME}/bin/wavedash train rocket-1v1 --token {SECRET}\n")
    (run / "env.jsonl").write_text(json.dumps({**VERSIONS, "host": HOST}) + "\n")
    (run / "log.txt").write_text(f"started by {USER} on {HOST} in {HOME}\n")
    (run / "games.csv").write_text(HEADER + "".join(
        f"2026-11-18T09:0{i}:00Z,{100 * i},bot@{100 * i},{HOME}/bots/one,{1 + i // 4},{i},1,60.0,rocketsim,{i}\n"
        for i in range(5)))
    for number in range(recordings):
        make_recording(number).write(run / "recordings" / f"{number}.wdr")
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs"))


class Parsed(HTMLParser):
    """The elements of a file as a browser finds them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.inside = False
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)
        (found,) = [text for tag, attributes, text in self.elements if attributes.get("id") == "offline"]
        self.data: dict[str, Any] = json.loads(found)
        unpacked: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(self.data["packed"])))
        self.answers, self.errors = unpacked["answers"], unpacked["errors"]
        self.files = {path: base64.b64decode(text) for path, text in self.data["files"].items()}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))
        self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            tag, attributes, text = self.elements[-1]
            self.elements[-1] = tag, attributes, text + data

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for found, attributes, text in self.elements if found == tag]

    def inside_text(self) -> str:
        """What is packed in it."""
        recordings = [json.dumps(read(data).header, ensure_ascii=False) for data in self.files.values()]
        return "\n".join([json.dumps(self.answers, ensure_ascii=False), json.dumps(self.errors), *recordings])

    def everything(self) -> str:
        """All that is in it."""
        return f"{self.text}\n{self.inside_text()}"


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    out = tmp_path_factory.mktemp("out") / "new" / "folder" / "bot.html"
    said = export_page(run, out)
    assert "3 of 3 recordings" in said and "the command line" in said
    return Parsed(out)


def test_nothing_in_it_names_the_machine_or_its_users(run: Path, exported: Parsed) -> None:
    everything = exported.everything()
    needles = [HOME, USER, HOST, SECRET, str(run), str(run.parent.parent), str(Path.cwd()), f"/{getpass.getuser()}/",
               "C:\\\\Users"]
    assert [needle for needle in needles if needle in everything] == []
    # A short name of a machine may be a word of the program: only the data are searched for it.
    assert [mark for mark in ("@", "on ") if f"{mark}{socket.gethostname()}" in exported.inside_text()] == []
    raw = "".join(path.read_text() for path in run.iterdir() if path.is_file())
    assert all(needle in raw for needle in (HOME, USER, HOST, SECRET)), "they are in the run folder"
    assert f"{GONE}/best" in everything and f"{GONE}/one" in everything, "what paths lead to is told"


def test_it_holds_what_the_server_answers(run: Path, exported: Parsed) -> None:
    library = Library(run.parent)
    data, (row,) = RunData(library), exported.answers["/api/runs"]
    mine = library.run_at(run)
    here = f"/api/runs/{mine.id}"
    asked = json.loads(json.dumps(data.metrics(mine, None, 1500, None)))
    found = exported.answers[f"{here}/metrics"]
    assert found["steps"] == asked["steps"] and found["names"] == ["policy/kl", "recent/return"]
    for name, column in asked["columns"].items():
        assert found["columns"][name] == pytest.approx(column, rel=1e-6)
    assert len(found["steps"]) == 1500 and found["steps"][-1] == 100 * STEPS
    assert any("3,000" in what for what in exported.answers["/api/about"]["left_out"])
    assert row["id"] == exported.answers["/api/about"]["run"] == mine.id
    assert (row["steps"], row["title"], row["state"]) == (100 * STEPS, "bot/20261118-090000-abcd", "stopped")
    for size, path in ((2, f"{here}/ladder"), (1, f"{here}/ladder?size=1")):
        assert exported.answers[path]["matrix"]["games"] == data.ladder(mine, size)["matrix"]["games"]
        assert exported.answers[path]["ratings"][0]["player"].startswith("bot@") and exported.answers[path]["size"] == size
    details = exported.answers[here]
    assert "rocket:" in details["config"] and details["versions"] == VERSIONS
    (event,) = exported.answers[f"{here}/events"]
    assert event["by"] is None and event["time"] == "2026-11-18T09:01:00+00:00"
    assert {key for key, item in details.items() if item is None} >= {"command", "holder", "machine"} and details["log"] == []
    assert event["text"].startswith(f"init{EVIL}: {GONE}/b -> ")
    for number, row in enumerate(reversed(exported.answers["/api/recordings"])):
        held = read(exported.files[f"/api/recordings/{row['id']}"])
        original = make_recording(number)
        assert np.array_equal(held.records, original.records) and held.header["step"] == number == original.header["step"]
        assert row["bytes"] == len(exported.files[f"/api/recordings/{row['id']}"]) and row["run"] == mine.id


def test_no_data_becomes_markup_and_nothing_but_the_page_may_run(exported: Parsed) -> None:
    files = PageFiles()
    (data, (attributes, script)), ((_, style),) = exported.of("script"), exported.of("style")
    assert data[0] == {"type": "application/json", "id": "offline"} and attributes == {}
    assert style == files.style and script.replace("\\x3c", "<") == files.script.replace("\\x3c", "<")
    assert not exported.of("link") and "alert(1)" not in exported.text
    assert "alert(1)" in json.dumps(exported.answers), "it is there as data"
    (policy,) = [attributes["content"] for attributes, _ in exported.of("meta") if "http-equiv" in attributes]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (script, style)]
    assert policy == (f"default-src 'none'; script-src {hashes[0]}; style-src {hashes[1]}; base-uri 'none'; form-action 'none'")
    tags = [tag for tag, _, _ in exported.elements]
    assert tags.index("meta") < tags.index("style") < tags.index("script")
    names = [attributes.get("http-equiv") for tag, attributes, _ in exported.elements[:4] if tag == "meta"]
    assert "Content-Security-Policy" in names, "the policy comes before what it is for"
    assert "\u2028" not in exported.text.replace(files.script, "").replace(files.style, "")


def test_scripts_that_would_end_early_are_escaped(tmp_path: Path, run: Path) -> None:
    """A bundle with the worst strings."""
    for name in ("index.html", "page.css"):
        (tmp_path / name).write_bytes((STATIC / name).read_bytes())
    (tmp_path / "page.js").write_text('const a = "</script>", b = "</SCRIPT >", c = "<!--";\r\nconst d = 1;')
    export_page(run, tmp_path / "out.html", static=tmp_path)
    (_, (_, script)) = Parsed(tmp_path / "out.html").of("script")
    assert script == 'const a = "\\x3c/script>", b = "\\x3c/SCRIPT >", c = "\\x3c!--";\nconst d = 1;'
    (tmp_path / "page.css").write_text("a::before { content: '</style>' }")
    with pytest.raises(UserError, match="style"):
        export_page(run, tmp_path / "out.html", static=tmp_path)
    (tmp_path / "index.html").write_text("<html></html>")
    with pytest.raises(UserError, match="install the package again"):
        export_page(run, tmp_path / "other.html", static=tmp_path)
    with pytest.raises(UserError, match="npm run build"):
        export_page(run, tmp_path / "other.html", static=tmp_path / "nowhere")
    assert not (tmp_path / "other.html").exists()


def test_recordings_are_bounded_and_highlights_come_first(tmp_path: Path) -> None:
    run = make_run(tmp_path, recordings=0)
    for number in range(8):
        make_recording(number, "highlight" if number in (2, 3) else "rating", 3000).write(run / "recordings" / f"{number}.wdr")
    make_recording(20, "crash", 3000).write(run / "crash" / "20.wdr")
    make_recording(30, "highlight", 200_000).write(run / "recordings" / "large.wdr")  # 12 MB of noise
    (run / "recordings" / "broken.wdr").write_bytes(b"no recording")
    out = tmp_path / "out.html"

    def steps(**options: Any) -> list[int]:
        said = export_page(run, out, **options)
        kept = Parsed(out)
        assert "of 10 recordings" in said and out.stat().st_size < 8.5e6
        assert any("of 10 recordings" in what for what in kept.answers["/api/about"]["left_out"]) == (len(kept.files) < 10)
        assert len(kept.files) == len(kept.answers["/api/recordings"])
        return sorted(read(data).header["step"] for data in kept.files.values())

    assert steps(recordings=3) == [2, 3, 7], "highlights, then the newest"
    assert steps(recordings=0) == []
    assert steps(recordings=50) == [*range(8), 20], "all but the large one"
    small = steps(recordings=50, megabytes=PageFiles().size / 1e6 + 0.9)
    assert 2 <= len(small) < 8 and {2, 3} <= set(small)


def test_too_many_curves_have_fewer_points(tmp_path: Path) -> None:
    run = make_run(tmp_path, recordings=1)
    random = np.random.default_rng(0)
    with (run / "metrics.jsonl").open("w") as file:
        for step in range(1, 301):
            row = dict(zip((f"noise/{i}" for i in range(400)), random.normal(size=400).tolist(), strict=True))
            file.write(json.dumps({"steps": step, **row}) + "\n")
    out = tmp_path / "out.html"
    export_page(run, out, megabytes=PageFiles().size / 1e6 + 1)
    kept = Parsed(out)
    (metrics,) = [answer for path, answer in kept.answers.items() if path.endswith("/metrics")]
    assert len(metrics["columns"]) == 400 and 60 <= len(metrics["steps"]) < 300 and metrics["steps"][-1] == 300
    assert any("to keep the file small" in what for what in kept.answers["/api/about"]["left_out"])
    assert out.stat().st_size < PageFiles().size + 1.1e6 and len(kept.files) == 1


def test_runs_of_any_kind_and_age_can_be_exported(tmp_path: Path) -> None:
    run = tmp_path / "zaphod" / "my-run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.yaml").write_text(dump_config(load_config("cartpole")))
    said = export_page(run, tmp_path / "out.html")
    assert "0 curves, 0 of 0 recordings" in said
    found = Parsed(tmp_path / "out.html")
    (row,) = found.answers["/api/runs"]
    assert row["steps"] == 0 and row["kind"] == "other"
    assert row["title"] == "my-run", "the folder around it is not named after the run, so it is left out"
    (why,) = found.errors.values()
    assert "game" in why
    (run / "config.yaml").write_text("no: {yaml")  # damaged
    export_page(run, tmp_path / "out.html")
    assert Parsed(tmp_path / "out.html").answers["/api/runs"][0]["kind"] == "other"


def test_files_of_others_are_not_overwritten(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    out.write_text("<html>my homework</html>")
    with pytest.raises(UserError, match="--force"):
        export_page(run, out)
    assert out.read_text() == "<html>my homework</html>"
    export_page(run, out, force=True)
    first = out.read_bytes()
    export_page(run, out, recordings=0)
    assert len(out.read_bytes()) < len(first), "an older export is replaced"
    with pytest.raises(UserError, match=r"notes\.html"):
        export_page(run, tmp_path / "notes")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UserError, match="another file"):
        export_page(run, tmp_path / "folder.html", force=True)
    with pytest.raises(UserError, match="cannot write"):
        export_page(run, out / "below" / "a.html")
    with pytest.raises(UserError, match="no run folder"):
        export_page(tmp_path, tmp_path / "new.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "page.html"]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the limit of the size of files is POSIX's")
def test_a_full_disk_leaves_the_old_file(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    export_page(run, out, recordings=0)
    before = out.read_bytes()
    done = subprocess.run(["sh", "-c", f'ulimit -f 100; exec "{sys.executable}" -m wavedash page export "{run}" "{out}"'],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "cannot write" in done.stderr and "Traceback" not in done.stderr
    assert out.read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_command(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.html"
    result = CliRunner().invoke(app, ["page", "export", str(run.parent), str(out), "--points", "10", "--recordings", "1"])
    assert result.exit_code == 0, result.output
    assert "1 of 3 recordings" in result.output and "2 curves" in result.output
    (metrics,) = [answer for path, answer in Parsed(out).answers.items() if path.endswith("/metrics")]
    assert len(metrics["steps"]) == 10


@pytest.mark.parametrize(("text", "clean"), [
    ("/home/zaphod/bots/one", f"{GONE}/one"),
    ("init: '/home/zaphod/runs/a b'", f"init: '{GONE}/a b'"),
    ("/home/zaphod", GONE), ("/Users/zaphod/", GONE), ("see /home/zaphod.", f"see {GONE}"),
    ("C:\\Users\\zaphod\\runs\\my-bot", f"{GONE}/my-bot"), ("C:\\\\Users\\\\zaphod", GONE), ("D:/data/x", f"{GONE}/x"),
    ("\\\\server\\share\\x", f"{GONE}/x"), ("file:///home/zaphod/a.wdr", f"{GONE}/a.wdr"),
    ("on castle", f"on {GONE}"), ("ann@castle said", f"{GONE} said"), ("the castle stays", "the castle stays"),
    ("and/or 3 m/s, rating/elo, 1/2, runs/my-bot/best", "and/or 3 m/s, rating/elo, 1/2, runs/my-bot/best"),
    ("https://example.org/a/b.html", "https://example.org/a/b.html"), ("a / b", "a / b"),
    ("champion-1v1@5994", "champion-1v1@5994"),
])
def test_texts_are_cleaned(text: str, clean: str, tmp_path: Path) -> None:
    (tmp_path / "env.jsonl").write_text('{"host": "castle"}\nno json\n')
    cleaner = Cleaner(tmp_path)
    assert cleaner.text(text) == clean and cleaner.text(clean) == clean


def test_the_folders_of_this_machine_are_cleaned_and_keys_stay_apart(tmp_path: Path) -> None:
    run = tmp_path / "my run"  # with a space, where a pattern for paths alone would end
    run.mkdir()
    cleaner = Cleaner(run)
    assert cleaner.text(f"{run}/best, {Path.cwd()}/x, {Path.home()}/secret plans/y") == "my run/best, ./x, ~/secret plans/y"
    found = cleaner.value({"/home/a/x": 1, "/home/b/x": [2, ("/home/c/x", None, True)], "x": 3.5})
    assert found == {f"{GONE}/x": 1, f"{GONE}/x (2)": [2, [f"{GONE}/x", None, True]], "x": 3.5}
