"""What a user types after `wavedash set`: the run that is meant, settings and orders."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wavedash.errors import UserError
from wavedash.runs.find import runs_under
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.inbox import Request
from wavedash.runs.orders import is_order
from wavedash.runs.plain import NotPlainError, to_json
from wavedash.runs.typed import typed
from wavedash.yaml_text import YamlError, read_yaml


def read_request(words: Sequence[str]) -> Request:
    """Reads `key=value` and orders. Without any, what may change is listed."""
    values: dict[str, Any] = {}
    orders: list[str] = []
    for word in words:
        if is_order(word):
            orders.append(word)
            continue
        key, _, text = word.partition("=")
        if key in values:
            raise UserError(f"{key} is set twice")
        try:
            values[key], _ = read_yaml(text)
            to_json(values[key])
        except YamlError as error:
            raise UserError(f"{word!r}: {error.found[0][1]}") from None
        except NotPlainError as error:
            raise UserError(f"{word!r}: {error}") from None
    return Request(values, tuple(orders) if words else ("list",))


def running(path: Path) -> RunFolder:
    """The run at a path, or the newest run in a folder that a process trains."""
    runs = [RunFolder(path)] if RunFolder.is_run(path) else runs_under(path)
    found = next((run for run in runs if run.holder is not None), None)
    if found is None:
        where = f"{runs[0].path} is not" if runs else f"there is no run at {path.absolute()} that is"
        raise RunError(f"{where} being trained. Settings of a run that has stopped change when it goes on: "
                       f"wavedash resume {typed(runs[0].path) if runs else 'RUN'} key=value")
    return found
