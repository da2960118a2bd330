"""Whose code may run: a configuration can name modules to import, and a run folder may come from anybody.

Every start signs what it runs with a secret of this user. Whoever later reads the configuration from the folder gets it only if
it names no code (built-in names, plain Gymnasium ids), if the signature is this user's, or if the user says `--trust`. Options
that were typed on the command line are the user's own words: what they name needs no signature.
"""
from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wavedash.config import RunConfig
from wavedash.config_file import dump_config, load_config
from wavedash.errors import UserError
from wavedash.import_path import is_run_folder
from wavedash.runs.durable import replace_file
from wavedash.runs.plain import from_json, to_json
from wavedash.runs.user_key import user_key
from wavedash.yaml_text import Key, YamlError, read_yaml

SIGNATURE = "signature.json"
LARGEST_SIGNATURE = 4096
SHIPPED = frozenset(f"wavedash.envs.puzzles:{name}" for name in ("RepeatPrevious", "TMaze", "masked_cartpole"))
"""Environments of this package, which presets name by their import path"""
SHOWN = 200
"""Characters of what a folder names that are shown to the user"""

log = logging.getLogger(__name__)


class UntrustedError(UserError):
    """A run folder of somebody else names code; the message lists it and says how to run it all the same."""


def read_config(source: str, overrides: Sequence[str] = (), trust: bool = False) -> RunConfig:
    """What a user names to start from: a preset or a file of one's own needs no trust, the configuration of a run does."""
    if is_run_folder(Path(source).absolute().parent):
        return run_config(Path(source), overrides, trust)
    return load_config(source, overrides)


def run_config(file: Path, overrides: Sequence[str] = (), trust: bool = False) -> RunConfig:
    """The configuration of a run folder. UntrustedError: it names code that this user did not start and was not told to
    trust."""
    if not file.is_file():
        raise UserError(f"there is no {file}, which says what to play in: name a checkpoint inside its run folder")
    config = load_config(str(file), overrides)
    typed = [tuple(override.partition("=")[0].split(".")) for override in overrides]
    code = {key: text for key, text in code_of(config) if not any(key[: len(own)] == own for own in typed)}
    if not code or trust:
        return config
    try:
        if _is_signed(file):
            return config
        reason = "and was not started by this user on this machine"
    except OSError as error:
        reason = f"and whether this user started it cannot be told ({error})"
    given: dict[Key, Any] = {**code, **({("env", "kwargs"): config.env.kwargs} if config.env.kwargs else {})}
    named = "".join(f"\n  {'.'.join(map(str, key))}: {_shown(value)}" for key, value in given.items())
    raise UntrustedError(f"{file.parent} names code that would be run here, {reason}:{named}\n"
                         "Look at that code first. If you want to run it, say so with --trust (in Python: trust=True)")


def sign(folder: Path, config: RunConfig) -> None:
    """Called when this user starts a run with this configuration: the code that it names is this user's from now on."""
    if not any(code_of(config)):
        return
    signed = _signed_part(dump_config(config))
    try:
        mac = _mac(signed)
    except (OSError, TypeError) as error:
        log.warning("this run cannot be marked as yours (%s): `resume` and `eval` will ask for --trust, because its "
                    "configuration names code", error)
        return
    replace_file(folder / SIGNATURE, to_json({"env": mac}).encode())


def code_of(config: RunConfig) -> Iterator[tuple[Key, str]]:
    """Every text of `env` that may be imported, and its place: all import paths have a colon, files end in .py."""
    env = config.env.model_dump()
    factory = env.pop("factory")
    if factory is not None and factory not in SHIPPED:
        yield ("env", "factory"), factory
    yield from _strings_of_code(env, ("env",))


def _strings_of_code(value: Any, key: Key) -> Iterator[tuple[Key, str]]:
    if isinstance(value, str) and (":" in value or value.endswith(".py")):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            if isinstance(name, str) and ":" in name:
                yield (*key, name), name
            yield from _strings_of_code(item, (*key, name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _strings_of_code(item, (*key, index))


def _is_signed(file: Path) -> bool:
    try:
        with open(file.parent / SIGNATURE, "rb") as signature:
            claimed = from_json(signature.read(LARGEST_SIGNATURE))["env"]
        mac = _mac(_signed_part(file.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError, YamlError):
        return False
    return isinstance(claimed, str) and hmac.compare_digest(claimed.encode(), mac.encode())


def _signed_part(text: str) -> Any:
    """The environment as it is written, less its numbers (`count`, `workers`), which may be changed by hand."""
    values, _ = read_yaml(text)
    env = values.get("env") if isinstance(values, dict) else None
    if not isinstance(env, dict):
        return env
    return {str(name): value for name, value in env.items() if not isinstance(value, int | float)}


def _mac(signed: Any) -> str:
    """TypeError: it holds what no configuration of ours does."""
    content = json.dumps(signed)
    return hmac.new(user_key(), b"wavedash run folder, env: " + content.encode(), hashlib.sha256).hexdigest()


def _shown(value: Any) -> str:
    """Escaped: a text from somebody else must not talk to the terminal."""
    text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
