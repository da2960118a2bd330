"""Makes the reference results that ship (reference.py) from the games of a tournament: `wavedash champion reference`."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wavedash import champions
from wavedash.errors import UserError
from wavedash.evaluate.matches import SECONDS
from wavedash.league.games import Game
from wavedash.league.match import Terms
from wavedash.league.reference import RUNG, Row, as_bytes, count, drawn_after, rungs, table
from wavedash.rocket import names
from wavedash.runs.durable import replace_file
from wavedash.runs.policy_folder import PolicyFolder

MOST_DRAWN = 0.75
"""Pairs of which a larger share of the games is drawn are left out: they tell next to nothing about strength (one player that
does nothing and another that acts at random), and would distort the estimate of how often players draw"""


def make_reference(games: Sequence[Game], folders: Sequence[Path],
                   root: Path = champions.FOLDER) -> tuple[list[Row], list[str]]:
    """Writes the files. `folders` hold rungs, which the games call by the names of the folders; those that are rungs already
    need not be named. Returns the rows, and the players that were left out because they can change."""
    known = {} if not (root / "rungs.csv").exists() else rungs(root / "rungs.csv")
    found = {RUNG + folder.name: PolicyFolder(folder).sha256 for folder in folders}
    checksums = {name: sha256 for sha256, name in known.items()} | found
    called = {name.removeprefix(RUNG): name for name in found}
    games = [replace(game, blue=called.get(game.blue, game.blue), orange=called.get(game.orange, game.orange))
             for game in games]
    fixed = {*names.shipped("player"), *checksums, *(PolicyFolder(root / mode).name for mode in champions.modes())}
    players = {player for game in games for player in (game.blue, game.orange)}
    kept = [game for game in games if {game.blue, game.orange} <= fixed]
    _check(kept)
    rows = [row for row in count(kept) if row.drawn <= MOST_DRAWN * row.games]
    replace_file(root / "reference.csv", as_bytes(rows))
    played = {player for row in rows for player in (row.player, row.opponent)}
    replace_file(root / "rungs.csv", table(["name", "sha256"], sorted(pair for pair in checksums.items() if pair[0] in played)))
    return rows, sorted(players - fixed)


def _check(games: Sequence[Game]) -> None:
    if not games:
        raise UserError("no games between players that never change are in this file: scripts, champions that ship, and the "
                        "folders that --rung names")
    if wrong := [limit for limit in drawn_after(games) if abs(limit - SECONDS) >= 1.0]:
        raise UserError(f"games in this file were drawn after {wrong[0]:g} s, and all others are after {SECONDS:g} s: play the "
                        "tournament again without --seconds")
    if any(game.seed == Terms().stream for game in games):
        raise UserError("games in this file were played with the default seed: whoever plays them again would count them "
                        "twice. Play the tournament with another --seed")
