"""Players by name, as users type them after `--against`.

A name is that of a script (`chaser`), the import path of a user's own class (`module:Class`), or the path of a trained policy:
a run, a checkpoint, or a folder with config.yaml, policy.safetensors and state.json.
"""
from __future__ import annotations

import difflib
from pathlib import Path

from wavedash.errors import UserError
from wavedash.league.frozen import FrozenPolicy
from wavedash.loading import load_run
from wavedash.rocket import names
from wavedash.rocket.parts import Player
from wavedash.runs.folder import RunError
from wavedash.tasks.lookup import snake_case


def find_player(name: str, deterministic: bool = True, seed: int = 0, trust: bool = False) -> Player:
    """The player of this name. `deterministic` and `seed` are for trained policies; `trust`: also run code that a run of
    another user names."""
    shipped = names.shipped("player")
    if snake_case(name) in shipped or (":" in name and not Path(name).exists()):
        player: Player = names.make("player", name)
        return player
    try:
        run = load_run(name, trust=trust)
    except RunError as error:
        if Path(name).exists():
            raise
        near = difflib.get_close_matches(name, shipped, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise UserError(f"there is no player {name!r}{hint} A player is one of {', '.join(sorted(shipped))}; a class of your "
                        "own as 'module:Class'; or a trained policy: a run, a checkpoint or a folder with config.yaml, "
                        "policy.safetensors and state.json") from error
    return FrozenPolicy.of_run(run, deterministic, seed)
