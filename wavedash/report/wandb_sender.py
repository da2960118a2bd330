"""The process that talks to Weights & Biases: `python -m wavedash.report.wandb_sender`, started by `wandb.py`.

It reads JSON lines from standard input: first the settings of the run, then one line per point. It ends when its input ends.
Messages to the user go to standard output, one line each.
"""
from __future__ import annotations

import json
import sys
from threading import Thread
from typing import Any, TextIO

from wavedash.report.mailbox import Mailbox

KEPT_POINTS = 10_000
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 5.0, 300.0


def main() -> None:
    messages, sys.stdout = sys.stdout, sys.stderr  # output of the client must not mix with our messages
    settings = json.loads(sys.stdin.readline())
    inbox = Mailbox(KEPT_POINTS)
    # A thread reads all the time, so that the end of the training is noticed even during an outage.
    Thread(target=_receive, args=(inbox,), daemon=True).start()
    run = _connect(settings, inbox, messages)
    for line in inbox:
        point = json.loads(line)
        try:
            run.log(point)
        except Exception as error:
            print(f"the connection broke ({_first_line(error)}); connecting again", file=messages, flush=True)
            run = _connect(settings, inbox, messages)
            run.log(point)
    run.finish()


def _receive(inbox: Mailbox) -> None:
    for line in sys.stdin:
        inbox.put(line)
    inbox.close()


def _connect(settings: dict[str, Any], inbox: Mailbox, messages: TextIO) -> Any:
    """Tries to connect for as long as the training runs; meanwhile points are kept in the mailbox."""
    import wandb

    delay = FIRST_RETRY_SECONDS
    while True:
        try:
            run = wandb.init(**settings, settings=wandb.Settings(console="off"))
            # A resumed run goes back to its checkpoint, but wandb's own step counter cannot: points carry their steps.
            run.define_metric("*", step_metric="steps")
            return run
        except Exception as error:
            print(f"cannot connect ({_first_line(error)}); next try in {delay:.0f} s", file=messages, flush=True)
        if inbox.closed_within(delay):
            print("the run has ended without a connection; metrics.jsonl has all metrics", file=messages, flush=True)
            sys.exit(1)
        delay = min(2 * delay, LONGEST_RETRY_SECONDS)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


if __name__ == "__main__":
    main()
