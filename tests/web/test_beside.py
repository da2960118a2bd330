"""The page beside a training: neither waits for the other, and the page ends when the training does."""
from __future__ import annotations

import http.client
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from tests.processes import words_of
from tests.web.serving import PATIENCE, Server, until
from tests.web.training import LONG, Training
from wavedash.web.beside import PageBeside
from wavedash.web.serve import bind


def ask(link: str, path: str) -> Any:
    """What the page answers; None: there is none."""
    connection = http.client.HTTPConnection(urlsplit(link).netloc, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    except OSError:
        return None
    finally:
        connection.close()


def page_of(training: Training) -> psutil.Process:
    (page,) = [child for child in psutil.Process(training.process.pid).children() if "wavedash.web.beside" in words_of(child)]
    return page


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Training]:
    with Training(tmp_path / "runs", *LONG, "checkpoint.every=2000", "--page") as training:
        assert training.goes_on()
        yield training


@pytest.mark.slow
def test_the_page_shows_the_run_and_its_end_changes_nothing_for_the_training(training: Training) -> None:
    page = page_of(training)
    (run,) = ask(training.link, "/api/runs")
    assert run["state"] == "running" and ask(training.link, "/api/about")["run"] == run["id"]
    assert page.nice() >= 5 and not page.children(), "no game is played while nobody watches"
    training.process.send_signal(signal.SIGSTOP)  # as Ctrl-Z does, which has no effect where no terminal is
    until(lambda: psutil.Process(training.process.pid).status() == "stopped", "pause")
    assert ask(training.link, "/api/runs"), "the page does not wait for the training"
    training.process.send_signal(signal.SIGCONT)
    page.kill()
    until(lambda: "the page has ended" in training.printed.read_text(), "word of the end of the page")
    assert training.goes_on() and ask(training.link, "/api/runs") is None
    log = (training.run / "log.txt").read_text()
    assert "the page has ended" in log and training.link.partition("token=")[2] not in log, "the token is nobody's business"


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_page_ends_with_the_training(training: Training, how: signal.Signals) -> None:
    page = page_of(training)
    assert ask(training.link, "/api/about")["writable"] is False
    assert training.end(how) in (-signal.SIGKILL, 130)
    until(lambda: not page.is_running() or page.status() == psutil.STATUS_ZOMBIE, "end of the page")
    assert "Traceback" not in training.printed.read_text()
    assert not training.run.joinpath(".lock-holder.json").exists() or how == signal.SIGKILL
    with Server(training.root) as server:  # a run that was killed has not said that it ends
        assert server.json("/api/runs")[0]["state"] == "stopped"


@pytest.mark.slow
def test_a_training_goes_on_where_its_page_cannot_be_served(caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    taken = bind("127.0.0.1")
    page = PageBeside(port=taken.getsockname()[1])
    assert page.wait() is None and "taken" in caplog.text and "The run goes on" in caplog.text
    taken.close()
    caplog.clear()
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert PageBeside().wait() is None and "No such file" in caplog.text
    caplog.clear()
    monkeypatch.setattr("sys.executable", "/bin/false" if Path("/bin/false").exists() else "/usr/bin/false")
    assert PageBeside().wait() is None and caplog.text.count("could not be started") == 1


@pytest.mark.slow
def test_only_the_first_of_several_processes_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    from wavedash.cli.training import _page

    monkeypatch.setenv("RANK", "1")
    assert _page(None, False) is None
    monkeypatch.setenv("RANK", "0")
    page = _page(None, False)
    link = page.wait()
    assert ask(link, "/api/about")["run"] is None
    page.close()
    until(lambda: ask(link, "/api/about") is None, "end of the page")
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", urlsplit(link).port))
