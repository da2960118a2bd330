"""Live is the listener by which a user changes a run while it runs: `wavedash set RUN key=value ...`, or `live.yaml`.

Requests are read between iterations (inbox.py, live_file.py), checked and taken over as in changes.py. Before a change counts,
the run saves a checkpoint of this step, and then writes the change into `config.yaml`. So a run that is killed at any later
time goes on exactly as one that was not; killed before, it goes on as if the change had not been asked for. Each key of each
request is a row of `events.jsonl`, whether it was changed or refused. Orders are handed to the listeners that have them
(orders.py); some are Live's own.

With several ranks the first one reads, and all take the change over before the same iteration.
"""
from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from wavedash.config import RunConfig
from wavedash.config_file import changed_config
from wavedash.curriculum.curriculum import Curriculum
from wavedash.errors import UserError
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.ppo.ranks import Ranks
from wavedash.runs.changes import ChangeError, apply, changed, live_keys, value_at
from wavedash.runs.events import PHASE, EventsFile, in_words
from wavedash.runs.folder import RunFolder
from wavedash.runs.inbox import Answer, Inbox, Request
from wavedash.runs.interrupt import uninterrupted
from wavedash.runs.live_file import LiveFile
from wavedash.runs.orders import check_orders, known_orders, order_row, split_order
from wavedash.runs.saver import Saver
from wavedash.yaml_text import Key, write_yaml

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)

SILENT = ("list", PHASE)
"""Orders that are no events of their own: they are questions, or whoever obeys them writes what has happened"""
PAUSE = 0.2
"""Seconds between two looks at the requests while the run is paused"""


class Live(Listener):
    """Takes requests in the first rank; the others, which have no run folder, do what it tells them."""

    orders = ("pause", "continue", "stop", "list")

    def __init__(self, curriculum: Curriculum, run: RunFolder | None = None, saver: Saver | None = None,
                 again: bool = False) -> None:
        """`curriculum` holds the configuration of the run, which a change becomes a part of. `again`: the run goes on in the
        same process, and what was asked meanwhile is meant for it."""
        self._curriculum, self._run, self._saver, self._again = curriculum, run, saver, again
        self._events = None if run is None else EventsFile(run.events)
        self._inbox: Inbox | None = None
        self._file: LiveFile | None = None
        self._paused = False
        self._changes = 0

    def on_start(self, learner: Learner) -> None:
        if self._run is None or self._events is None:
            return
        self._inbox, self._file = Inbox(self._run.path), self._run.live_file
        self._changes = self._events.changes_until(learner.steps)
        try:
            self._inbox.open(0 if self._again else self._run.locked_at)
        except OSError as error:
            log.warning("this run cannot be changed while it runs: %s", error)

    def on_iteration(self, learner: Learner, report: IterationReport) -> Mapping[str, float] | None:
        return {"live/changes": float(self._changes)} if self._changes else None

    def between_iterations(self, learner: Learner) -> None:
        self._serve(learner)
        while self._paused and not learner.ranks.any(learner.stop_reason is not None):
            time.sleep(PAUSE)
            self._serve(learner)

    def _serve(self, learner: Learner) -> None:
        """Does what was asked since the last call, in all ranks."""
        asked: list[Request] = []
        if self._inbox is not None and self._file is not None:
            asked = self._inbox.take() + self._file.take()
        if not learner.ranks.any(bool(asked)):
            return
        with uninterrupted():
            for request in learner.ranks.shared(asked):
                self._answer(request, self._do(learner, request))

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        """Refuses what nobody will do any more. A run that goes on at once does it then."""
        for request in [] if self._inbox is None or self._curriculum.resumes else self._inbox.take():
            said = "the run ends; resume it with these settings"
            self._refuse(learner, request, said)
            self._answer(request, Answer(False, said))

    def _answer(self, request: Request, answer: Answer) -> None:
        if self._inbox is None:
            return
        if request.values or request.orders != ("list",):  # the page asks for that whenever somebody looks
            log.log(logging.INFO if answer.done else logging.ERROR, "%s: %s", request.by, answer.said)
        with suppress(OSError):  # on a full disk the command is not answered
            self._inbox.answer(request, answer)

    def _do(self, learner: Learner, request: Request) -> Answer:
        if request.problem:
            self._refuse(learner, request, request.problem)
            return Answer(False, request.problem)
        try:
            _all_or_none(learner.ranks, lambda: check_orders(learner, request.orders))
            said = [self._change(learner, request)] if request.values else []
        except UserError as error:
            self._refuse(learner, request, str(error))
            return Answer(False, f"{error}\nNothing was changed")
        for order in request.orders:
            row = {**order_row(order), "by": request.by}
            try:
                said.append(self._order(learner, *split_order(order)))
            except UserError as error:
                self._write([{**row, "refused": str(error)}], learner)
                return Answer(False, "\n".join([*said, str(error)]))
            if split_order(order)[0] not in SILENT:
                self._write([row], learner)
        return Answer(True, "\n".join(said) or "nothing was asked")

    # --- settings ----------------------------------------------------------------------------------------------------

    def _change(self, learner: Learner, request: Request) -> str:
        """Changes settings in all ranks, or in none. UserError: they are as they were."""
        then = learner.config
        keys, base, config = _all_or_none(learner.ranks, lambda: self._checked(learner, request.values))
        _together(learner, then, lambda: apply(learner, config))
        kept = base != self._curriculum.plan.config  # also where a ramp had just this value: it ends here
        if kept:
            self._save(learner, then, keys)
            self._curriculum.adopt(base, learner.steps)
        rows = [{"key": ".".join(map(str, key)), "old": value_at(then, key), "new": value_at(config, key), "by": request.by}
                for key in keys]
        self._changes += sum(row["old"] != row["new"] for row in rows)
        # A file is read as a whole, and most of it is as it was.
        told = [row for row in rows if request.id or row["old"] != row["new"]]
        self._write(told, learner)
        lines = [(in_words(row) or f"{row['key']} is {_text(row['new'])} already") + self._curriculum.until(key)
                 for key, row in zip(keys, rows, strict=True) if row in told]
        return "\n".join([*lines, f"from step {learner.steps:,} on" if kept or config != then else "nothing changes"])

    def _checked(self, learner: Learner, values: Mapping[str, Any]) -> tuple[dict[Key, Any], RunConfig, RunConfig]:
        """The new values by key, the configuration of the run with them, and what its learner has then."""
        keys = changed(learner, values)
        base = self._curriculum.with_values(self._curriculum.plan.config, keys)
        return keys, base, changed_config(learner.config, keys)

    def _save(self, learner: Learner, then: RunConfig, keys: Mapping[Key, Any]) -> None:
        """Saves this step, and writes the change into the configuration of the run, so that it is kept. Where that fails, all
        ranks go back to the configuration `then`."""
        def save() -> None:
            try:
                if self._run is not None and self._saver is not None:
                    self._saver.save_now(learner)
                    assert self._run.recorded is not None
                    self._run.record_change(self._curriculum.with_values(self._run.recorded, keys))
            finally:
                learner.ranks.serve_requests(learner.saved.rank_part)  # the others answer the saver until the first comes here

        _together(learner, then, save)

    # --- orders ------------------------------------------------------------------------------------------------------

    def _order(self, learner: Learner, word: str, argument: str | None) -> str:
        """Has the listeners that know an order obey it in all ranks; returns what those of the first rank say. UserError: one
        of them refuses. Each is told even so: those that talk to the other ranks must do so in all of them or in none."""
        said, refused = [], []
        for listener in known_orders(learner).get(word, []):  # not all of them are in every rank
            try:
                said.append(listener.obey(learner, word, argument))
            except UserError as error:
                refused.append(str(error))
            except Exception as error:  # a listener may be a user's own code
                refused.append(f"{word} failed: {type(error).__name__}: {error}")
        learner.ranks.serve_requests(learner.saved.rank_part)  # of the saver, which is in the first rank
        if everywhere := list(dict.fromkeys(why for one in learner.ranks.all_gather(refused) for why in one)):
            raise ChangeError("\n".join(everywhere))
        return "\n".join(filter(None, learner.ranks.shared(said)))

    def obey(self, learner: Learner, order: str, argument: str | None) -> str:
        if argument is not None:
            raise ChangeError(f"{order} takes no argument: wavedash set RUN {order}")
        if order == "pause":
            self._paused = True
            return f"paused at step {learner.steps:,}; go on with: continue"
        if order == "continue":
            was, self._paused = self._paused, False
            return f"goes on from step {learner.steps:,}" if was else "it was not paused"
        if order == "stop":
            learner.stop("stopped by a command")
            return f"stops at step {learner.steps:,}, and is saved"
        settings = [f"{name}={_text(value_at(learner.config, key))}" for name, key in live_keys(learner).items()]
        return "\n".join([*settings, f"orders: {', '.join(sorted(known_orders(learner)))}"])

    # --- events ------------------------------------------------------------------------------------------------------

    def _refuse(self, learner: Learner, request: Request, why: str) -> None:
        """Writes that nothing of a request was done."""
        asked = [{"key": key, "new": value} for key, value in request.values.items()] + list(map(order_row, request.orders))
        asked = asked or [{"key": None}]  # a file that cannot be read
        self._write([{**row, "by": request.by, "refused": why} for row in asked], learner)

    def _write(self, rows: Sequence[Mapping[str, Any]], learner: Learner) -> None:
        if self._events is not None:
            self._events.record(learner, rows)


def _all_or_none(ranks: Ranks, find: Any) -> Any:
    """Returns what the first rank finds, in all ranks; where it fails, all raise what it raised."""
    found: Any = None
    if ranks.rank == 0:
        try:
            found = find()
        except UserError as error:
            found = ChangeError(str(error))
        except Exception as error:  # a kind of environment may be a user's own code
            found = ChangeError(f"{type(error).__name__}: {error}")
    found = ranks.shared(found)
    if isinstance(found, ChangeError):
        raise found
    return found


def _together(learner: Learner, then: RunConfig, act: Any) -> None:
    """Acts in all ranks. Where it fails in one, all go back to the configuration `then` and raise why."""
    failure: str | None = None
    try:
        act()
    except UserError as error:
        failure = str(error)
    failures = [said for said in learner.ranks.all_gather(failure) if said is not None]
    if failures:
        if learner.config != then:
            apply(learner, then)
        raise ChangeError(failures[0])


def _text(value: Any) -> str:
    return write_yaml(value, inline=True).strip()
