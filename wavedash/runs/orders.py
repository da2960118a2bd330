"""Orders are words that a user sends to a running run: `wavedash set RUN save`, `wavedash set RUN milestone=before-aerials`.

Listeners say which they have (`Listener.orders`) and obey them between two iterations (`Listener.obey`). A word without a dot
is a setting if the configuration has an option of that name, and an order otherwise.
"""
from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wavedash.config import RunConfig
from wavedash.config_file import option_keys
from wavedash.runs.changes import ChangeError, changed, live_keys, value_at
from wavedash.yaml_text import write_yaml

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner
    from wavedash.ppo.listener import Listener


def is_order(word: str) -> bool:
    """Whether what a user typed (`save`, `milestone=before-aerials`) is an order and no setting."""
    key, equals, _ = word.partition("=")
    return not equals or ("." not in key and key not in RunConfig.model_fields)


def split_order(order: str) -> tuple[str, str | None]:
    """Returns the word of an order and its argument, if it has one."""
    word, equals, argument = order.partition("=")
    return word, argument if equals else None


def order_row(order: str) -> dict[str, Any]:
    """Returns an order as it is in `events.jsonl`."""
    word, argument = split_order(order)
    return {"key": word} if argument is None else {"key": word, "argument": argument}


def known_orders(learner: Learner) -> dict[str, list[Listener]]:
    """Returns who obeys each order, in the order of the learner's listeners."""
    known: dict[str, list[Listener]] = {}
    for listener in learner.listeners:
        for order in listener.orders:
            known.setdefault(order, []).append(listener)
    return known


def check_orders(learner: Learner, orders: Iterable[str]) -> None:
    """Raises ChangeError if nobody obeys one of the orders. It names the nearest order or setting."""
    known = known_orders(learner)
    for word, argument in map(split_order, orders):
        if word in known:
            continue
        if argument is None and ("." in word or word in option_keys()):
            raise ChangeError(_without_value(learner, word))
        near = difflib.get_close_matches(word, known, n=1)
        if argument is not None and not near:
            changed(learner, {word: argument})  # says which setting may be meant
        meant = f"did you mean {near[0]!r}?" if near else f"the orders of this run are {', '.join(sorted(known))}"
        raise ChangeError(f"there is no order {word!r}; {meant}")


def _without_value(learner: Learner, name: str) -> str:
    """Returns what to say of a setting that was named without a value, as if it were an order. ChangeError: it cannot
    change."""
    changed(learner, {name: 0})
    now = write_yaml(value_at(learner.config, live_keys(learner)[name]), inline=True).strip()
    return f"{name} is {now}; to change it, give it a value: wavedash set RUN {name}=..."
