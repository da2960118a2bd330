"""The supervisor of worker processes alone, with programs that compute almost nothing and with real faults."""
from __future__ import annotations

import gc
import os
import signal
import sys
import time

import psutil
import pytest

from tests.envs.toy_programs import CALLING, ToyJob, signs_over
from wavedash.envs.errors import EnvError
from wavedash.envs.workers.process import WorkerFailed
from wavedash.envs.workers.shared_block import SharedBlock
from wavedash.envs.workers.signs_of_life import MAKING
from wavedash.envs.workers.supervisor import Post, Supervisor, Timeouts

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals are how POSIX does it")]


@pytest.fixture
def supervise(request):
    """Starts toy workers; `births` says what happens to each while it is made."""
    def supervise(*births, call=1.5, start=60.0):
        blocks = [SharedBlock(64) for _ in births]
        posts = [Post(f"toy {i}", ToyJob(block, birth), signs_over(block))
                 for i, (block, birth) in enumerate(zip(blocks, births, strict=True))]
        supervisor = Supervisor(posts, Timeouts(call, start, "Have patience."))
        request.addfinalizer(supervisor.close)
        return supervisor
    return supervise


def all_news(supervisor):
    """The answers by worker, until none is awaited or a worker fails."""
    heard = [[] for _ in supervisor.workers]
    while supervisor.awaited:
        for worker, news in supervisor.news():
            heard[worker.index].append(news)
            if isinstance(news, WorkerFailed):
                return heard, worker, news
    return heard, None, None


def test_commands_are_answered_in_order_by_the_worker_that_was_told(supervise):
    supervisor = supervise("", "")
    for worker in supervisor.workers:
        for number in range(3):
            worker.tell(f"{number}".encode())
    heard, _, _ = all_news(supervisor)
    assert heard == [[f"{worker.pid} {number}".encode() for number in range(3)] for worker in supervisor.workers]


def test_a_worker_that_dies_is_reported_with_where_it_was_and_replaced_by_one_that_heard_nothing(supervise, caplog):
    supervisor = supervise("", "")
    all_news(supervisor)
    second = supervisor.workers[1]
    before = second.pid
    second.tell(b"die in 2")
    second.tell(b"never heard")
    _, worker, failure = all_news(supervisor)
    assert worker is second and not failure.raised
    assert (int(second.signs.doing[0]), second.signs.thing) == (CALLING, 2)
    assert failure.told("in the third thing") == "toy 1 ended by itself with exit code 7 in the third thing"
    supervisor.replace(second, "what happened", "something is lost")
    assert "what happened\nThe worker is started again; something is lost" in caplog.text
    assert supervisor.restarts == 1
    assert int(second.signs.doing[0]) != CALLING, "the signs of life of the dead worker are not taken for those of the new one"
    second.tell(b"hello")
    heard, _, _ = all_news(supervisor)
    assert heard[1] == [f"{second.pid} hello".encode()] and second.pid != before
    assert not psutil.pid_exists(before)


@pytest.mark.parametrize(("command", "raised", "says"), [
    ("raise", True, "Traceback (most recent call last)"), ("say", True, "toy 0 failed:\nsaid in words"),
    ("crash", False, "was killed by SIGSEGV"),
])
def test_what_ended_a_worker_is_told(supervise, command, raised, says):
    """It is a traceback where that helps, the message alone where it says everything, or the stack of a crash."""
    supervisor = supervise("")
    all_news(supervisor)
    supervisor.workers[0].tell(command.encode())
    _, _, failure = all_news(supervisor)
    assert failure.raised == raised and says in str(failure)
    assert ("Traceback" in str(failure)) == (command == "raise")
    assert ("toy_programs.py" in failure.stack) == (command == "crash")
    assert ("somewhere" in failure.told("somewhere")) == (not raised), "an exception already says where"


def test_only_a_worker_that_owes_an_answer_and_gives_no_sign_of_life_counts_as_hung(supervise):
    supervisor = supervise("", "", "")
    all_news(supervisor)
    idle, slow, stuck = supervisor.workers
    os.kill(idle.pid, signal.SIGSTOP)  # it owes no answer
    slow.tell(b"take long")
    stuck.tell(b"hang")
    heard, worker, failure = all_news(supervisor)
    assert worker is stuck
    assert str(failure).startswith("toy 2 hung: no sign of life for") and str(failure).endswith("Have patience. It was")
    assert "toy_programs.py" in failure.stack
    supervisor.replace(stuck, "", "")
    heard, worker, _ = all_news(supervisor)
    assert worker is None, "neither the one that takes longer than the time limit nor the one that owes nothing"
    assert heard[1] in ([], [f"{slow.pid} take long".encode()])


@pytest.mark.parametrize("birth", ["die in 2", "raise", "hang"])
def test_a_worker_that_never_came_up_ends_all(supervise, birth):
    supervisor = supervise("", birth, start=10.0 if birth == "hang" else 60.0)
    _, worker, _ = all_news(supervisor)
    assert worker.index == 1 and not worker.ready
    if birth == "raise":
        assert int(worker.signs.doing[0]) == MAKING and worker.signs.thing == 1
    pids = [worker.pid for worker in supervisor.workers]
    with pytest.raises(EnvError, match=r"what\nA worker that cannot start, .*, ends the run. Advice"):
        supervisor.replace(worker, "what", "lost", ". Advice")
    assert supervisor.closed and not any(psutil.pid_exists(pid) for pid in pids)


def test_the_third_failure_within_a_minute_ends_all(supervise):
    supervisor = supervise("")
    all_news(supervisor)
    for number in range(3):
        supervisor.workers[0].tell(b"raise")
        _, worker, failure = all_news(supervisor)
        if number < 2:
            supervisor.replace(worker, str(failure), "")
    with pytest.raises(EnvError, match=r"(?s)a bug.*3 times within a minute"):
        supervisor.replace(worker, str(failure), "")


def test_workers_end_with_the_last_reference_to_their_supervisor(supervise):
    supervisor = Supervisor([Post("toy", ToyJob(block := SharedBlock(64)), signs_over(block))], Timeouts(1.0, 60.0))
    all_news(supervisor)
    pid = supervisor.workers[0].pid
    gc.disable()  # the collector of cycles must not be what ends them
    try:
        del supervisor
        deadline = time.monotonic() + 5
        while psutil.pid_exists(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not psutil.pid_exists(pid)
    finally:
        gc.enable()
