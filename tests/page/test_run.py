"""The tabs Run, Ladder and Steer in a real browser, beside a real training that is steered, stopped, killed and resumed."""
from __future__ import annotations

import http.server
import signal
import threading
from collections.abc import Iterator

import pytest

from tests.page.browser import PageServer
from tests.processes import free_port
from tests.web.serving import PATIENCE
from tests.web.training import LONG, Training

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def training(browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with Training(tmp_path_factory.mktemp("runs"), *LONG, "checkpoint.every=2000") as training:
        yield training


@pytest.fixture(scope="module")
def server(training: Training) -> Iterator[PageServer]:
    server = PageServer(training.root)
    yield server
    server.close()


def test_a_run_is_watched_steered_killed_and_resumed(open_page, server: PageServer, training: Training) -> None:
    """One long story, because a run has only one."""
    page = open_page(f"{server.address}&tab=run", width=1000, height=700)
    page.wait("s.run && s.run.state === 'running' && s.run.points[0] > 3", 90)
    names = page.page.evaluate("window.wavedash.state().curves.map((chart) => chart.title)")
    assert "Return" in names and any("KL" in name for name in names)
    points = page.state("run")["points"][0]
    page.wait(f"s.run.points[0] > {points}")  # it grows

    page.page.click("#tab-steer")
    page.wait("s.steer.open && s.steer.settings.length > 3")
    page.page.fill("#steer-key", "ppo.learning_rate")
    page.page.fill("#steer-value", "1.5e-4")
    page.page.click("#steer-any")
    page.wait("s.steer.answers.some((told) => told.state === 'done' && told.asked.includes('learning_rate'))")
    page.page.fill("#steer-key", "ppo.learning_rat")
    page.page.click("#steer-any")
    page.wait("s.steer.answers.some((told) => told.state === 'refused' && told.said.includes('ppo.learning_rate'))")
    page.page.click("#steer-save")
    page.wait("s.steer.answers.some((told) => told.state === 'done' && told.asked === 'save')")
    page.page.fill("#steer-label", "from-the-page")
    page.page.click("#steer-milestone")
    page.wait("s.steer.answers.some((told) => told.state === 'done' && told.asked.includes('from-the-page'))")
    page.page.click("#steer-pause")
    page.wait("s.steer.paused")
    page.page.click("#steer-continue")
    page.wait("!s.steer.paused")
    rows = training.events()
    assert [row["new"] for row in rows if row.get("key") == "ppo.learning_rate" and "refused" not in row] == [1.5e-4]
    assert any(row.get("refused") for row in rows), "what was refused is written too"
    assert list((training.run / "milestones").glob("*/*"))

    page.page.click("#tab-run")
    page.wait("s.run.events >= 3 && s.run.milestones === 1")
    page.wait("s.curves.some((chart) => chart.marks.length > 0)")  # the change is marked in the curves
    training.end(signal.SIGKILL)
    page.wait("s.run.state === 'stopped'")
    kept = page.state("run")["points"][0]
    assert kept > 3 and page.state("run")["trouble"] is None
    with Training(training.root, str(training.run), "report.console=plain", command="resume") as resumed:
        page.wait(f"s.run.state === 'running' && s.run.points[0] > {kept // 2}", 90)
        page.page.click("#tab-steer")
        page.wait("s.steer.open", 90)
        page.page.click("#steer-stop")
        page.page.click("#steer-stop-yes")
        resumed.process.wait(PATIENCE)
        page.page.click("#tab-run")
        page.wait("s.run.state === 'stopped'")
    assert resumed.process.returncode == 0, resumed.printed.read_text()
    page.wrong = [said for said in page.wrong if "409" not in said]  # the browser reports that a run which has ended answers so


def test_a_server_that_dies_and_comes_back(open_page, training: Training) -> None:
    """The page says so, keeps what it shows, and goes on by itself."""
    port = ["--port", str(free_port())]
    server = PageServer(training.root, *port)
    page = open_page(f"{server.address}&tab=run", width=1000, height=700)
    page.wait("s.run && s.run.chosen.length === 1 && s.connected")
    server.close()
    page.wait("!s.connected")
    assert page.state("run")["chosen"]
    again = PageServer(training.root, *port)
    try:
        page.wait("s.connected")
    finally:
        again.close()
    page.wrong = [said for said in page.wrong if "net::ERR_" not in said]  # the browser itself reports these


def test_a_run_without_ratings_says_what_to_do(open_page, server: PageServer) -> None:
    page = open_page(f"{server.address}&tab=ladder")
    page.wait("s.ladder && s.ladder.empty")
    assert "Ratings come from games" in page.state("ladder")["empty"]
    page.wrong = [said for said in page.wrong if "400" not in said]


def test_without_the_token_nothing_is_steered(open_page, server: PageServer) -> None:
    page = open_page(f"{server.origin}/#tab=steer")
    page.page.wait_for_selector("#steer-closed")
    assert "token" in page.page.inner_text("#steer-closed")


def test_another_site_is_refused(open_page, browser, server: PageServer) -> None:
    """A page of another origin in the same browser gets no answer, changes nothing and opens no socket."""
    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>evil</title>")

        def log_message(self, *words) -> None:
            pass

    evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=evil.serve_forever, daemon=True).start()
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"http://localhost:{evil.server_port}/")
        tried = page.evaluate("""async (origin) => {
            const found = {};
            for (const path of ["/", "/api/about", "/api/runs", "/api/players", "/api/recordings"])
                found[path] = await fetch(origin + path).then(() => "answered", () => "refused");
            for (const method of ["POST", "PUT", "DELETE"])
                found[method] = await fetch(`${origin}/api/runs/000000000000/set`, {method, body: "{}"})
                    .then(() => "answered", () => "refused");
            found.socket = await new Promise((resolve) => {
                const socket = new WebSocket(origin.replace("http", "ws") + "/api/watch", ["wavedash"]);
                socket.onopen = () => resolve("answered");
                socket.onerror = () => resolve("refused");
            });
            return found;
        }""", server.origin)
        assert set(tried.values()) == {"refused"}, tried
    finally:
        context.close()
        evil.shutdown()
