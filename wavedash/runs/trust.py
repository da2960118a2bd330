"""Trust decides whose code may run: a configuration can name modules to import, and a run folder may come from anybody.

Every start signs what it runs with a secret of this user. The configuration of a run folder is accepted only if it names no
code (only built-in names and plain Gymnasium ids), if the signature is this user's, or if the user says `--trust`. What the
user types on the command line needs no signature.
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
from wavedash.envs.kinds import code_options
from wavedash.errors import UserError
from wavedash.import_path import is_run_folder
from wavedash.runs.durable import replace_file
from wavedash.runs.plain import from_json, to_json
from wavedash.runs.user_key import user_key
from wavedash.yaml_text import Key, YamlError, read_yaml

SIGNATURE = "signature.json"
LARGEST_SIGNATURE = 4096
PLAYERS: Sequence[tuple[str, str]] = [("opponents", "members"), ("rating", "panel")]
"""Options outside of `env` that name players, which may be code too"""
SHOWN = 200
"""The most characters of a text from somebody else's folder that are shown to the user"""

log = logging.getLogger(__name__)


class UntrustedError(UserError):
    """A run folder of somebody else names code; the message lists it and says how to run it anyway."""


def read_config(source: str, overrides: Sequence[str] = (), trust: bool = False) -> RunConfig:
    """Reads a configuration: a preset or a file of the user needs no trust, the configuration of a run does."""
    if is_run_folder(Path(source).absolute().parent):
        return run_config(Path(source), overrides, trust)
    return load_config(source, overrides)


def run_config(file: Path, overrides: Sequence[str] = (), trust: bool = False) -> RunConfig:
    """Reads the configuration of a run folder. UntrustedError: it names code that this user has neither started nor trusted."""
    if not file.is_file():
        raise UserError(f"there is no {file}, which says what environment to use: name a checkpoint inside its run folder")
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
        reason = f"and it cannot be checked whether this user started it ({error})"
    given: dict[Key, Any] = {**code, **({("env", "kwargs"): config.env.kwargs} if config.env.kwargs else {})}
    named = "".join(f"\n  {'.'.join(map(str, key))}: {_shown(value)}" for key, value in given.items())
    raise UntrustedError(f"{file.parent} names code that would be run here, {reason}:{named}\n"
                         "Look at that code first. If you want to run it, say so with --trust (in Python: trust=True)")


def sign(folder: Path, config: RunConfig) -> None:
    """Is called when this user starts a run: the code that its configuration names is trusted as this user's from now on."""
    if (signature := signature_of(config)) is not None:
        replace_file(folder / SIGNATURE, signature)


def signature_of(config: RunConfig) -> bytes | None:
    """Returns the content of the file SIGNATURE that is to be beside this configuration of the user's own. None: it names no
    code, or it cannot be signed, which is logged."""
    if not any(code_of(config)):
        return None
    signed = _signed_part(dump_config(config))
    try:
        mac = _mac(signed)
    except (OSError, TypeError) as error:
        log.warning("this run cannot be marked as yours (%s): `resume` and `eval` will ask for --trust, because its "
                    "configuration names code", error)
        return None
    return to_json({"env": mac}).encode()


def code_of(config: RunConfig) -> Iterator[tuple[Key, str]]:
    """Yields every text of `env`, and every player, that names code, with its key: options that kinds of environments declare,
    and any text that looks like code (import paths have a colon, files end in .py)."""
    for key in PLAYERS:
        yield from _players_of_code(config.model_dump(include={key[0]}), key)
    yield from _strings_of_code([phase.set for phase in config.phases], ("phases",))
    env = config.env.model_dump()
    for option, shipped in code_options().items():
        text = env.pop(option, None)
        if text is not None and text not in shipped:
            yield ("env", option), text
    yield from _strings_of_code(env, ("env",))


def _players_of_code(values: Any, key: Key) -> Iterator[tuple[Key, str]]:
    for name in key:
        values = values.get(name) if isinstance(values, dict) else None
    yield from _strings_of_code(values, key)


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
    """Returns `env` of a configuration file without its numbers (`count`, `workers`), which may be changed by hand, and the
    players and what phases set, where they are code."""
    values, _ = read_yaml(text)
    env = values.get("env") if isinstance(values, dict) else None
    if isinstance(env, dict):
        env = {str(name): value for name, value in env.items() if not isinstance(value, int | float)}
    players = [[".".join(map(str, key)), player] for place in PLAYERS for key, player in _players_of_code(values, place)]
    phases = values.get("phases") if isinstance(values, dict) else None
    sets = [phase.get("set") for phase in phases if isinstance(phase, dict)] if isinstance(phases, list) else []
    code = any(_strings_of_code(sets, ("phases",)))
    if not (players or code):
        return env
    return {"env": env, "players": players, **({"phases": sets} if code else {})}


def _mac(signed: Any) -> str:
    """Computes the signature. TypeError: it holds what cannot be in a configuration."""
    content = json.dumps(signed)
    return hmac.new(user_key(), b"wavedash run folder, env: " + content.encode(), hashlib.sha256).hexdigest()


def _shown(value: Any) -> str:
    """Escapes a text from somebody else, which must not control the terminal."""
    text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
