"""A run that runs is steered through the page: what it is told, it does, and writes down; everything else it refuses."""
from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.web.serving import PATIENCE, Server, until
from tests.web.training import LONG, Training
from wavedash.errors import UserError
from wavedash.web.steering import MOST_ASKS, listed, read_asked


@pytest.fixture(scope="module")
def steered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Training, Server]]:
    root = tmp_path_factory.mktemp("runs")
    with Training(root, *LONG) as training, Server(root) as server:
        assert training.goes_on()
        yield training, server


def steer(server: Server, values: dict[str, Any] | None = None, *orders: str) -> Any:
    (run,) = server.json("/api/runs")
    reply = server.post(f"/api/runs/{run['id']}/set", {"values": values or {}, "orders": list(orders)})
    assert reply.status == 200, reply
    return reply.content


def settings_of(server: Server) -> dict[str, Any]:
    (run,) = server.json("/api/runs")
    told = server.json(f"/api/runs/{run['id']}/settings")
    assert {"save", "milestone", "pause", "continue", "stop"} <= set(told["orders"])
    return {row["key"]: row["value"] for row in told["settings"]}


@pytest.mark.slow
def test_settings_change_and_are_written_down(steered: tuple[Training, Server]) -> None:
    training, server = steered
    assert server.json("/api/runs")[0]["state"] == "running" and settings_of(server)["ppo.learning_rate"] == 1e-3
    answer = steer(server, {"ppo.learning_rate": 2e-4, "ppo.clip_range": 0.15})
    assert answer["done"] is True and "ppo.learning_rate" in answer["said"]
    assert settings_of(server)["ppo.learning_rate"] == 2e-4, "what was changed is not answered from memory"
    rows = {row["key"]: row for row in training.events()}
    assert rows["ppo.learning_rate"]["old"] == 1e-3 and rows["ppo.learning_rate"]["new"] == 2e-4
    assert {row["by"] for row in rows.values()} == {"page"}
    log = (training.run / "log.txt").read_text()
    assert "page: ppo.learning_rate" in log and "orders:" not in log, "questions are not written into the log"


@pytest.mark.slow
def test_what_a_run_does_not_know_changes_nothing(steered: tuple[Training, Server]) -> None:
    training, server = steered
    before = settings_of(server)
    wrong = steer(server, {"ppo.learning_rat": 1.0, "ppo.clip_range": 0.3})
    assert wrong["done"] is False and "did you mean 'ppo.learning_rate'?" in wrong["said"]
    assert "did you mean 'save'?" in steer(server, None, "sav")["said"]
    assert steer(server, {"ppo.learning_rate": "fast"})["done"] is False
    assert steer(server, None, "milestone=../../etc")["done"] is False
    assert settings_of(server) == before and training.goes_on()


@pytest.mark.slow
def test_orders_are_obeyed(steered: tuple[Training, Server]) -> None:
    training, server = steered
    assert "paused" in steer(server, None, "pause")["said"]
    paused = training.steps
    saved = steer(server, None, "save", "milestone=from-the-page")
    assert saved["done"] is True and list(training.run.glob("milestones/*-from-the-page"))
    assert settings_of(server), "a run that is paused answers too"
    assert training.steps == paused
    assert steer(server, None, "continue")["done"] is True and training.goes_on()
    said = [row["text"] for row in server.json(f"/api/runs/{server.json('/api/runs')[0]['id']}/events")]
    assert any("milestone" in text and "from-the-page" in text for text in said), said


@pytest.mark.slow
def test_a_run_that_does_not_answer_delays_nobody(steered: tuple[Training, Server]) -> None:
    training, server = steered
    (run,) = server.json("/api/runs")
    answers: list[int] = []

    def ask() -> None:
        answers.append(server.post(f"/api/runs/{run['id']}/set", {"orders": ["save"]}).status)

    training.process.send_signal(signal.SIGSTOP)
    threads = [threading.Thread(target=ask) for _ in range(MOST_ASKS + 3)]
    try:
        for thread in threads:
            thread.start()
        until(lambda: answers.count(503) == 3, "refusal of those who are too many")
        assert server.json("/api/runs") and server.json(f"/api/runs/{run['id']}/metrics")["steps"], "others are answered"
    finally:
        training.process.send_signal(signal.SIGCONT)
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] * MOST_ASKS + [503] * 3


@pytest.mark.slow
def test_requests_of_any_form_are_answered_in_words(steered: tuple[Training, Server]) -> None:
    training, server = steered
    (run,) = server.json("/api/runs")
    anything = st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
                            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3))
    forms = st.one_of(anything.map(json.dumps), st.text(max_size=30),
                      st.builds(lambda values, orders: json.dumps({"values": values, "orders": orders}), anything, anything))

    @settings(max_examples=40, deadline=None)
    @given(forms)
    def answered(text: str) -> None:
        reply = server.ask(f"/api/runs/{run['id']}/set", "POST", text.encode("utf-8", "surrogatepass"))
        assert reply.status in (200, 400) and (reply.content.get("error") or reply.content["done"] is False), (text, reply)

    answered()
    deep = "[" * 20_000
    assert server.ask(f"/api/runs/{run['id']}/set", "POST", deep.encode()).status == 400
    assert training.goes_on()


@pytest.mark.slow
def test_the_run_is_stopped_and_the_page_says_so(steered: tuple[Training, Server]) -> None:
    """The last of these tests: there is nothing to steer afterwards."""
    training, server = steered
    assert steer(server, None, "stop")["done"] is True
    training.process.wait(PATIENCE)
    (run,) = server.json("/api/runs")
    assert run["state"] == "stopped" and run["steps"] > 0 and training.events()[-1]["key"] == "stop"
    refused = server.ask(f"/api/runs/{run['id']}/settings")
    assert refused.status == 409 and "wavedash resume" in refused.content["error"]


def test_requests_are_read_strictly() -> None:
    assert read_asked({"values": {"a.b": [1, {"c": None}]}, "orders": ["save"]}).orders == ("save",)
    for wrong in (None, [], {}, {"values": {}, "orders": []}, {"values": [], "orders": []}, {"values": {"": 1}},
                  {"values": {"a\nb": 1}}, {"orders": "save"}, {"orders": [1]}, {"orders": ["x" * 301]}, {"other": 1},
                  {"values": {"a": {"__float__": 1}}}, {"values": {"a": "\ud800"}}, {"orders": ["save"] * 201}):
        with pytest.raises(UserError):
            read_asked(wrong)


def test_what_a_run_lists_is_read_as_it_was_written() -> None:
    told = listed('a.b=1e-4\nenv.names=[x, "y=z"]\nflag=true\nnothing=null\nodd={\norders: save, stop')
    assert told["orders"] == ["save", "stop"]
    assert [row["value"] for row in told["settings"]] == [1e-4, ["x", "y=z"], True, None, "{"]
    assert [row["key"] for row in told["settings"]] == ["a.b", "env.names", "flag", "nothing", "odd"]
