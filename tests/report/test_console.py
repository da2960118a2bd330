"""The console view in a real terminal, a pipe, a broken pipe and a full disk."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.reports import make_report, stand_in_learner
from wavedash.report.console import ConsoleView
from wavedash.report.dashboard import Progress, plain_line

ROOT = Path(__file__).parents[2]
METRICS = {
    "rollout__length": 21.5, "rollout__return": 22.25, "rollout__reward": 1.125, "policy__clip_fraction": 0.0625,
    "policy__kl": 0.0078, "recent__length": 31.5, "recent__return": 32.25, "recent__success": 0.75, "recent__count": 42.0,
    "optim__clip_range": 0.15, "optim__learning_rate": 0.0003, "optim__skipped": 2.0, "health__worker_restarts": 3.0,
    "env__wins": 5.5,
}
RUN = f"""
import logging, sys
from pathlib import Path
from tests.report.reports import play
from wavedash.envs.headline import Headline
from wavedash.report.console import ConsoleView
from wavedash.report.log_file import LogFile

folder = Path(sys.argv[1])
(folder / "checkpoints" / "step-000000000500").mkdir(parents=True)
log_file, view = LogFile(folder / "log.txt"), ConsoleView(folder, "auto")
logging.getLogger("wavedash.test").info("a message above the view")
play(view, range(1, 11), headlines=[Headline("in the game", {{"wins": "games won"}})], **{METRICS})
log_file.on_stop(None, None)
Path(folder, "reached the end").touch()
"""


def run(folder: Path, stdout: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", RUN, str(folder)], cwd=ROOT, text=True, check=False, stderr=subprocess.PIPE,
                          stdout=stdout)


def test_without_a_terminal_there_are_plain_lines_and_the_last_one_is_the_end(tmp_path: Path) -> None:
    lines = run(tmp_path, stdout=subprocess.PIPE).stdout.splitlines()
    assert lines[0] == "a message above the view"
    assert lines[1].startswith("100/1,000 steps (10%)  100 steps/s  eta ")
    assert lines[1].endswith("return 32.25  length 31.5  success 0.75  kl 0.0078  in the game: games won 5.5")
    assert lines[-1].startswith("1,000/1,000 steps (100%)")
    assert len(lines) == 3, "ten iterations within a second do not print ten lines"
    assert "\x1b" not in "".join(lines)


def test_in_a_terminal_there_are_all_tables_and_the_health_line(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "40"}
    process = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], cwd=ROOT, stdout=theirs, env=environment)
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:  # Linux: the other side of the terminal was closed
        pass
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert "a message above the view" in text
    rows = {
        "in the game": ["games won +5.5"],
        "this rollout": ["episode length +21.5", "return +22.25", "reward per step +1.125", "clip fraction +0.0625",
                         r"KL +0.0078", "time +1.00 s"],
        "the last 42 episodes": ["length +31.5", "return +32.25", "success rate +0.75"],
        "the run": ["episodes +30", "steps +1,000", "rollouts +10", "total steps +1,000", "clip range +0.15"],
    }
    for title, expected in rows.items():
        assert title in text
        for row in expected:
            assert re.search(row, text), row
    assert "env 20%" in text and "update 60%" in text and "100 steps/s" in text
    assert re.search(r"checkpoint step-000000000500, \d+ s ago +worker restarts 3 +skipped updates 20", text)


def test_a_reader_that_leaves_does_not_end_the_training(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run(tmp_path, stdout=writer)
    os.close(writer)
    assert (tmp_path / "reached the end").exists(), done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_to_a_full_disk_does_not_end_the_training(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = run(tmp_path, stdout=full.fileno())
    assert (tmp_path / "reached the end").exists(), done.stderr


def test_metrics_that_were_not_measured_are_not_shown() -> None:
    line = plain_line(make_report(1), Progress(elapsed=1.0, remaining=None, checkpoint="none yet", skipped=0))
    assert line == "100/1,000 steps (10%)  100 steps/s  eta -"


def test_the_last_rating_stays_until_the_next_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view, learner = ConsoleView(tmp_path, "plain"), stand_in_learner()
    view.on_start(learner)
    for iteration, elo in enumerate((None, 1000.0, None, 1200.0, None), 1):
        rating = {} if elo is None else {"rating__elo": elo, "rating__low": elo - 50, "rating__high": elo + 50}
        view.on_iteration(learner, make_report(iteration, **rating))
        view._drawn = -float("inf")
    view.on_stop(learner, None)
    shown = [line.partition("rating ")[2] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["", *["1000 (950 to 1050)"] * 2, *["1200 (1150 to 1250)"] * 3]
