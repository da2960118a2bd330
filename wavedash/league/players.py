"""Players by name, as users type them: `wavedash match chaser runs/my-bot`.

A name is that of a script (`chaser`) or of a champion, the import path of a user's own class (`module:Class`), or the path of a
trained policy: a run, a checkpoint, or a folder with config.yaml, policy.safetensors and state.json; or the bot.toml of an
RLBot bot. `A+B` is a team with one player per car.
"""
from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from wavedash.champions import champion_names, is_champion
from wavedash.config import RocketConfig
from wavedash.errors import UserError
from wavedash.league.frozen import FrozenPolicy
from wavedash.league.reference import RUNG, rung_name
from wavedash.league.teams import JOINED_BY, Team
from wavedash.loading import LoadedRun, load_run
from wavedash.rlbot.server.bot_file import BotFile, find_bot_file, read_bot_file
from wavedash.rocket import names
from wavedash.rocket.kind import rocket_task
from wavedash.rocket.parts import Player
from wavedash.runs.folder import RunError, RunFolder
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.tasks.lookup import snake_case

DRIVE = re.compile(r"[A-Za-z]:[\\/]")
"""How a path on another drive of Windows begins, which is no import path"""
SNAPSHOT = re.compile(r"step-\d+")
"""What folders of snapshots are called: there are some of these names in the `league/` of every run"""


@dataclass(frozen=True, eq=False)
class Entrant:
    """Somebody who takes part in matches. A player is bound to its arenas, so every match seats another copy of it."""

    asked: str
    """What the user typed"""
    run: LoadedRun | None = None
    """Where the policy comes from; None for a script"""
    members: tuple[Entrant, ...] = ()
    """The players of a team, one for each car; none: one player drives all cars of a team"""
    bot: BotFile | None = None
    """An RLBot bot, which only the match server can play with"""

    @cached_property
    def name(self) -> str:
        """The player and its version, as games.csv has it: `chaser`; `my-bot@120000000` for a run of this name and the steps
        that it had trained for, also for its snapshots `step-...`; the name of any other folder with a policy;
        `champion-1v1@5994970112`; `rung:NAME` for the weights of a rung (reference.py), wherever they are; `A+B` for a team."""
        if self.members:
            return JOINED_BY.join(member.name for member in self.members)
        if self.bot is not None:
            return f"bot:{self.bot.name}" if self._is_taken(self.bot.name) else self.bot.name
        if self.run is None:
            return snake_case(self.asked) if ":" not in self.asked else self.asked
        if isinstance(self.run.source, PolicyFolder) and not self._is_snapshot(self.run.source):
            return rung_name(self.run.source) or self._unmistakable(self.run.source)
        return f"{self.run.config.name}@{self.run.source.step}"

    @cached_property
    def full_name(self) -> str:
        """A name that also tells apart runs of one name: with the folder of the run."""
        if self.bot is not None:
            return str(self.bot.path)
        if self.run is None:
            return self.name
        source = self.run.source
        folder = source.path.absolute().parent.parent if isinstance(source, PolicyFolder) else source.home
        if isinstance(self.run.source, PolicyFolder) and not (self._is_snapshot(self.run.source) and RunFolder.is_run(folder)):
            return str(self.run.path)
        return f"{folder.name}@{self.run.source.step}"

    @staticmethod
    def _is_snapshot(folder: PolicyFolder) -> bool:
        return SNAPSHOT.fullmatch(folder.path.absolute().name) is not None

    @staticmethod
    def _unmistakable(folder: PolicyFolder) -> str:
        """The name of a folder, or its path if another player has that name: a folder `chaser` is not the chaser. The champion
        that ships is itself called like a version of a run."""
        return str(folder.path) if Entrant._is_taken(folder.name) and not folder.ships else folder.name

    @staticmethod
    def _is_taken(name: str) -> bool:
        """Whether results by this name would count for another player: a script, a rung, or a version of a run."""
        return name in names.shipped("player") or name.startswith(RUNG) or "@" in name

    @cached_property
    def task(self) -> RocketConfig | None:
        """The task that the policy was trained in; None for a script. UserError: it is not Rocket League."""
        if self.members:
            return next((member.task for member in self.members if member.task is not None), None)
        return None if self.run is None else rocket_task(self.run.config.env, self.run.path)

    def player(self, deterministic: bool = True, seed: int = 0) -> Player:
        """Another copy of the player. `deterministic` and `seed` are for trained policies, see FrozenPolicy."""
        if self.members:
            return Team([member.player(deterministic, seed + 1000 * i) for i, member in enumerate(self.members)])
        if self.bot is not None:
            raise UserError(f"{self.asked} is an RLBot bot, which plays in a process of its own: use wavedash match, wavedash "
                            "tournament or wavedash rlbot serve")
        if self.run is None:
            made: Player = names.make("player", self.asked)
            return made
        return FrozenPolicy.of_run(self.run, deterministic, seed)


def find_entrant(name: str, trust: bool = False, size: int | None = None) -> Entrant:
    """Whom a user means by this name. `trust`: also run code that a run of another user names. `size` is how many cars a team
    has, if that is known: it decides which champion `champion` means."""
    if JOINED_BY in name and not Path(name).exists():
        return Entrant(name, members=tuple(find_entrant(member, trust, size) for member in name.split(JOINED_BY)))
    shipped = names.shipped("player")
    # A folder with an exported bot may be called `champion`, and still `champion` is the champion.
    bot = None if snake_case(name) in shipped or is_champion(name) else find_bot_file(name)
    if bot is not None:
        return Entrant(name, bot=read_bot_file(bot))
    if snake_case(name) in shipped or (":" in name and not DRIVE.match(name) and not Path(name).exists()):
        entrant = Entrant(name)
        entrant.player()  # a class that cannot be made is answered at once
        return entrant
    try:
        return Entrant(name, load_run(name, trust=trust, teams=size))
    except RunError as error:
        if Path(name).exists():
            raise
        known = [*sorted(shipped), *champion_names()]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise UserError(f"there is no player '{name}'{hint} A player is one of {', '.join(known)}; a class of your "
                        "own as 'module:Class'; or a trained policy: a run, a checkpoint or a folder with config.yaml, "
                        "policy.safetensors and state.json") from error


def find_player(name: str, deterministic: bool = True, seed: int = 0, trust: bool = False, size: int | None = None) -> Player:
    """The player of this name. `deterministic` and `seed` are for trained policies; `trust` and `size` as in `find_entrant`."""
    return find_entrant(name, trust, size).player(deterministic, seed)


def distinct_names(entrants: Sequence[Entrant]) -> dict[Entrant, str]:
    """A name for each entrant. Runs of one name with as many steps get the name of their folder. UserError: somebody takes part
    twice."""
    names = [entrant.name for entrant in entrants]
    full = [entrant.name if names.count(entrant.name) == 1 else entrant.full_name for entrant in entrants]
    twice = next((i for i, name in enumerate(full) if name in full[:i]), None)
    if twice is not None:
        asked = dict.fromkeys([entrants[full.index(full[twice])].asked, entrants[twice].asked])
        as_whom = f", as {' and as '.join(asked)}" if len(asked) > 1 else ""
        raise UserError(f"{full[twice]} takes part twice{as_whom}: name every player once")
    return dict(zip(entrants, full, strict=True))
