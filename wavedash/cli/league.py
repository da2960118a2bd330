"""Commands that set players against each other: `match`, `tournament`, and `ladder`, which rates the versions of runs."""
from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from wavedash.cli.arguments import Deterministic, Record, Recordings, SimulatorName, Trust
from wavedash.cli.progress import Shown
from wavedash.cli.recorded import tell_recorded
from wavedash.errors import UserError

if TYPE_CHECKING:
    from wavedash.league.match import Terms
    from wavedash.league.players import Entrant
    from wavedash.league.reference import Reference as References
    from wavedash.recordings.order import Order

commands = typer.Typer()

PLAYER = ("idle, random, chaser, defender, champion, your own as module:Class, a run, a checkpoint or a folder with a policy, "
          "or the bot.toml of an RLBot bot; A+B: a team with one player per car.")
Games = Annotated[int, typer.Option(min=2, help="Games of each pair in each simulator, half of them from either side. Four "
                                                "times as many: half the interval.")]
Size = Annotated[
    Optional[int],  # noqa: UP045 (typer reads the annotation at run time)
    typer.Option(min=1, max=4, show_default=False, help="Cars per team. [default: as the first trained policy was trained]"),
]
Simulator = Annotated[SimulatorName, typer.Option(help="Where to play; with both, also whether they agree.")]
Seconds = Annotated[float, typer.Option(min=1, max=3600, help="A game without a goal is a draw after so many seconds.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1. On a GPU thousands of games are played at once.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed plays the same games again.")]
Out = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(metavar="FILE", show_default=False, help="Append every game to this games.csv."),
]

With = Annotated[
    Optional[list[Path]],  # noqa: UP045
    typer.Option("--with", metavar="FILE", show_default=False,
                 help="A games.csv whose games count for the ratings too; can be given several times."),
]
Reference = Annotated[
    bool,
    typer.Option("--reference/--no-reference", help="Count the games between scripts, champions and other fixed players that "
                                                    "ship with the package too."),
]


@commands.command(no_args_is_help=True)
def match(
    first: Annotated[str, typer.Argument(metavar="A", help=f"A player: {PLAYER}")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another player.")],
    games: Games = 200,
    size: Size = None,
    simulator: Simulator = SimulatorName.ROCKETSIM,
    seconds: Seconds = 60.0,
    as_json: Json = False,
    device: Device = "auto",
    seed: Seed = 1,
    deterministic: Deterministic = True,
    trust: Trust = False,
    out: Out = None,
    record: Record = None,
    recordings: Recordings = None,
) -> None:
    """Rocket League: play one bot against another.

    Says which of the two is stronger, and how sure that is.
    """
    from wavedash.league.match import compare, names_of

    one, other = entrants = find_entrants([first, second], trust, size)
    terms = _terms(entrants, games, size, simulator, seconds, device, seed, deterministic)
    if out is not None:
        _check_new(out, names_of(one, other), terms)
        _append(out, [])  # whether it can be written is found out before anything is played, too
    order, progress = _order(record, recordings), Shown()
    found = compare(one, other, terms, progress, order)
    progress.end()
    _print(found, as_json)  # first of all: if the file cannot be written any more, the result is there
    if out is not None:
        _append(out, found.games)
    tell_recorded(order)


class FormatName(StrEnum):
    """Who meets whom in a tournament."""

    ROUND_ROBIN = "round-robin"
    SWISS = "swiss"
    SINGLE_ELIMINATION = "single-elimination"
    DOUBLE_ELIMINATION = "double-elimination"


class Seeding(StrEnum):
    """What the order of the seeds follows from."""

    NAMED = "named"
    RATING = "rating"


@commands.command(no_args_is_help=True)
def tournament(
    players: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="A B C ...", help=f"Players: {PLAYER}"),
    ] = None,
    games: Games = 200,
    size: Size = None,
    simulator: Simulator = SimulatorName.ROCKETSIM,
    seconds: Seconds = 60.0,
    as_json: Json = False,
    device: Device = "auto",
    seed: Seed = 1,
    deterministic: Deterministic = True,
    trust: Trust = False,
    out: Out = None,
    also: With = None,
    reference: Reference = True,
    record: Record = None,
    recordings: Recordings = None,
    format: Annotated[FormatName, typer.Option(help="Who meets whom.")] = FormatName.ROUND_ROBIN,
    rounds: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, show_default=False, help="Rounds of Swiss. [default: as many as single elimination takes]"),
    ] = None,
    seeding: Annotated[Seeding, typer.Option(help="The order of the seeds: as named, or known ratings first.")] = Seeding.NAMED,
    minutes: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(min=0.1, max=60, show_default=False, help="Games are whole matches of so many minutes, with overtime."),
    ] = None,
    folder: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="DIR", show_default=False, help="Results, games and a picture are kept here, and the same command "
                                                             "goes on after a kill. Alone: go on with the one in it."),
    ] = None,
) -> None:
    """Rocket League: let several bots play each other.

    By default everybody plays everybody. Prints ratings with intervals, and who took which share of the goals from whom.
    """
    from wavedash.league.event_folder import DESCRIPTION, EventFolder
    from wavedash.league.players import distinct_names
    from wavedash.league.rlbot_games import needs_server
    from wavedash.league.tournament import play_tournament

    goes_on = folder if not players else None
    if goes_on is not None:
        there = EventFolder(goes_on).description()
        if there is None:
            raise UserError(f"there is no tournament in {folder}: name players to begin one")
        try:
            players, size, rounds, seed = list(there["players"]), int(there["size"]), there["rounds"], int(there["seed"])
            games, seconds, deterministic = int(there["games"]), float(there["seconds"]), bool(there["deterministic"])
            simulator, format, minutes = SimulatorName(there["simulator"]), FormatName(there["format"]), there["minutes"]
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{folder} describes no tournament ({error}): name another folder") from error
        seeding = Seeding.NAMED  # the players are listed in the order of their seeds
    if not players or len(players) < 2:
        raise UserError("a tournament needs at least two players")
    try:
        entrants = find_entrants(players, trust, size)
    except UserError as error:
        if goes_on is None:
            raise
        raise UserError(f"{error}\n{goes_on / DESCRIPTION} names this player. Go on in the working folder in which the "
                        "tournament began, put the player back there, or correct its path in the file") from error
    terms = replace(_terms(entrants, games, size, simulator, seconds, device, seed, deterministic), minutes=minutes)
    if folder is not None or format is not FormatName.ROUND_ROBIN or needs_server(terms, *entrants):
        if out is not None:
            raise UserError("--out is for a round robin without a folder: here games.csv is in the folder, see --folder")
        known = _reference(also, reference and deterministic)
        _event(entrants, terms, format, rounds, simulator, seeding, folder, known, as_json, _order(record, recordings))
        return
    if rounds is not None:
        raise UserError("--rounds is for --format swiss")
    names = distinct_names(entrants)
    for file in [*([out] if out else []), *(also or [])]:
        _check_new(file, names.values(), terms)
    if out is not None:
        _append(out, [])
    known = _reference(also, reference and deterministic)
    order, progress = _order(record, recordings), Shown()
    found = play_tournament(entrants, terms, lambda new: None if out is None else _append(out, new), progress, known, order)
    progress.end()
    _print(found, as_json)
    tell_recorded(order)


@commands.command()
def ladder(
    runs: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="RUN", help="Runs that rated themselves, or files of games. [default: the newest run]"),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE.svg", show_default=False, help="The chart. [default: ladder.svg beside the games]"),
    ] = None,
    size: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, max=4, show_default=False, help="Only games with so many cars per team. [default: all games]"),
    ] = None,
    as_json: Json = False,
    also: With = None,
    reference: Reference = True,
) -> None:
    """Rocket League: rate the versions of runs.

    All of them together, from all games that they have played. Prints the ratings, and draws them against steps.
    """
    from wavedash.league.chart import draw
    from wavedash.league.ladder import find_games, read_ladder
    from wavedash.runs.durable import replace_file

    files = [find_games(run) for run in runs] if runs else [find_games()]
    for file in also or []:
        if file.resolve() in [path.resolve() for path in files]:
            raise UserError(f"{file} is rated already: with it once more, its games would count twice")
    found = read_ladder(files, _reference(also, reference), size)
    _print(found, as_json)
    out = out or files[0].parent / "ladder.svg"
    try:
        replace_file(out, draw(found).encode())
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}; name another file with --out") from error
    typer.echo(f"{'' if as_json else chr(10)}chart: {out}", err=as_json)


def _event(entrants: list[Entrant], terms: Terms, format: FormatName, rounds: int | None, simulator: SimulatorName,
           seeding: Seeding, folder: Path | None, known: References, as_json: bool, order: Order | None) -> None:
    """A tournament in a folder. Without one, the folder follows from what the tournament is, so the same command goes on."""
    from wavedash.league.event import play_event
    from wavedash.league.event_folder import PICTURE, EventFolder
    from wavedash.league.formats import make_format
    from wavedash.league.players import distinct_names
    from wavedash.league.reference import NO_REFERENCE
    from wavedash.league.rlbot_games import needs_server
    from wavedash.runs.folder import runs_root

    served = needs_server(terms, *entrants)
    names = distinct_names(entrants)
    if seeding is Seeding.RATING:
        entrants = _by_rating(entrants, names, terms, known)
    description = {"format": format.value, "rounds": rounds, "players": [entrant.asked for entrant in entrants],
                   "names": [names[entrant] for entrant in entrants], "games": terms.games, "size": terms.size,
                   "simulator": simulator.value, "seconds": terms.seconds, "minutes": terms.minutes,
                   "deterministic": terms.deterministic, "seed": terms.seed}
    held = make_format(format.value, len(entrants), rounds)
    what = zlib.crc32(json.dumps(description).encode())
    where = EventFolder(folder or runs_root() / "tournaments" / f"{format.value}-{what:08x}")
    where.begin(description)
    progress = Shown()
    found = play_event(entrants, [names[entrant] for entrant in entrants], held, terms, where, progress,
                       NO_REFERENCE if served else known, order)
    progress.end()
    _print(found, as_json)
    typer.echo(f"{'' if as_json else chr(10)}bracket: {where.path / PICTURE}", err=as_json)
    tell_recorded(order)


def _by_rating(entrants: list[Entrant], names: dict[Entrant, str], terms: Terms, known: References) -> list[Entrant]:
    """Returns those whose ratings follow from known games, the strongest first; then the others as they were named."""
    from wavedash.league.ratings import rate

    ratings = rate(known.among(names.values(), [(terms.simulators[0], terms.size)], [terms.seconds]))
    return sorted(entrants, key=lambda entrant: -ratings[names[entrant]].value if names[entrant] in ratings else 0.0)


def _order(record: str | None, folder: Path | None) -> Order | None:
    from wavedash.recordings.order import Order
    from wavedash.runs.folder import RECORDINGS, runs_root

    return Order.read(record, folder, runs_root() / RECORDINGS)


def _reference(files: list[Path] | None, ships: bool) -> References:
    """The results that count beside those of a command."""
    from wavedash.league.reference import SHIPPED, read_references

    return read_references([*([SHIPPED] if ships else []), *map(str, files or [])])


def find_entrants(players: list[str], trust: bool, size: int | None) -> list[Entrant]:
    """Finds the players. Without a size, `champion` is the one for the teams of the first of the other trained policies."""
    from wavedash.champions import NAME
    from wavedash.league.players import find_entrant

    others = [None if player == NAME else find_entrant(player, trust, size) for player in players]
    task = next((entrant.task for entrant in others if entrant is not None and entrant.task is not None), None)
    if size is None and task is not None:
        size = task.largest.larger
    return [find_entrant(NAME, trust, size) if entrant is None else entrant for entrant in others]


def _terms(entrants: list[Entrant], games: int, size: int | None, simulator: SimulatorName, seconds: float, device: str,
           seed: int, deterministic: bool) -> Terms:
    from wavedash.league.match import SIMULATORS, Terms
    from wavedash.preflight import named_device

    chosen = SIMULATORS if simulator is SimulatorName.BOTH else (simulator.value,)
    return Terms(games, chosen, 1, seconds, deterministic, seed, named_device(device)).for_entrants(entrants, size)


def _check_new(out: Path, names: Iterable[str], terms: Terms) -> None:
    """Refuses to play games that the file has: they would count twice. That is found out before anything is played."""
    from wavedash.league.games import GamesFile

    names = set(names)
    for game in GamesFile(out).read():
        if game.seed == terms.stream and game.size == terms.size and game.simulator in terms.simulators and (
                {game.blue, game.orange} <= names):
            raise UserError(f"{out} already has games of {game.blue} and {game.orange} in {game.simulator} with this seed: the "
                            f"same games would count twice. Use another seed, such as --seed {terms.seed + 1}, or another file")


def _append(out: Path, games: list[Any]) -> None:
    from wavedash.league.games import GamesFile

    try:
        GamesFile(out).add(games)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}; name another file with --out") from error


def _print(found: Any, as_json: bool) -> None:
    typer.echo(json.dumps(found.as_json(), indent=2) if as_json else str(found))
