"""A tournament in a folder, of any format: what is played next follows from the files, so it can be stopped at any time."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from wavedash.errors import UserError
from wavedash.evaluate.matches import Progress
from wavedash.league.bracket_picture import draw
from wavedash.league.event_folder import FAULTS, PICTURE, RESULTS, EventFolder, MatchRow
from wavedash.league.formats.meeting import Format, Meeting, Outcome, next_meeting
from wavedash.league.games import Game
from wavedash.league.match import Terms, play
from wavedash.league.players import Entrant
from wavedash.league.reference import NO_REFERENCE, Reference
from wavedash.league.rlbot_games import Faults, needs_server, play_through_server
from wavedash.league.series import next_games, outcome_of
from wavedash.league.tournament import Tournament
from wavedash.recordings.order import Order
from wavedash.rocket.recording.events import TEAMS
from wavedash.seeding import stream_seed


@dataclass(frozen=True)
class Event:
    """What the files say about a tournament; `str()` is what `wavedash tournament` prints."""

    format: Format
    names: Sequence[str]
    """In the order of the seeds"""
    terms: Terms
    rows: Sequence[MatchRow]
    games: Sequence[Game]
    reference: Reference = NO_REFERENCE

    @cached_property
    def of_meeting(self) -> dict[str, list[Game]]:
        """The games of every meeting."""
        meeting_of = {row.seed: row.meeting for row in self.rows}
        found: dict[str, list[Game]] = {}
        for game in self.games:
            found.setdefault(meeting_of[game.seed], []).append(game)
        return found

    def left(self, meeting: str, first: str) -> tuple[str, int] | None:
        """Where the two play next and how many games; None: the meeting is over."""
        played = self.of_meeting.get(meeting, [])
        return next_games(played, first, self.terms.simulators, self.terms.games, self.format.knockout)

    @cached_property
    def outcomes(self) -> dict[str, Outcome]:
        """Returns the outcomes of the meetings that are over. UserError: the files name others than the format lets meet."""
        firsts = {row.meeting: row.first for row in self.rows}
        found = {meeting: outcome_of(self.of_meeting[meeting], first, self.format.knockout)
                 for meeting, first in firsts.items() if self.left(meeting, first) is None}
        meetings = {meeting.name: meeting for meeting in self.format.meetings(len(self.names), found)}
        for row in self.rows:
            place = meetings.get(row.meeting)
            if place is None or (self._name(place.first), self._name(place.second)) != (row.first, row.second):
                raise UserError(f"matches.csv has {row.first} against {row.second} as {row.meeting}, which does not follow "
                                "from the other results: put the file back as it was, or begin in another folder")
        return found

    @property
    def meetings(self) -> list[Meeting]:
        return self.format.meetings(len(self.names), self.outcomes)

    @property
    def next(self) -> Meeting | None:
        return next_meeting(self.format, len(self.names), self.outcomes)

    @property
    def tournament(self) -> Tournament:
        """Ratings and shares of goals."""
        return Tournament(self.games, str(self.terms), self.reference)

    def places(self) -> list[tuple[str, str, str]]:
        """Place, name and why, the best first."""
        return [(row.place, self.names[row.entrant], row.text)
                for row in self.format.ranking(len(self.names), self.outcomes)]

    def faults(self) -> dict[str, Faults]:
        """Returns the faults of those whose bots crashed, hung or were late."""
        found = {name: Faults(0, 0) for name in self.names}
        for row in self.rows:
            found[row.first] = found[row.first].plus(row.first_crashes, row.first_missed)
            found[row.second] = found[row.second].plus(row.second_crashes, row.second_missed)
        return {name: faults for name, faults in found.items() if faults != Faults(0, 0)}

    def notes(self) -> list[str]:
        """Meetings that no game decided."""
        return [f"{meeting.name}: {self._name(meeting.first)} and {self._name(meeting.second)} drew to the end; "
                f"{self._name(meeting.winner)} goes on as the better seed"
                for meeting in self.meetings if meeting.outcome is not None and meeting.outcome.by_seed]

    def picture(self) -> str:
        return draw(self.format, self.names, self.outcomes)

    def as_json(self) -> dict[str, Any]:
        return {
            "format": self.format.name, "over": self.next is None,
            "places": [{"place": place, "player": name, "why": why} for place, name, why in self.places()],
            "meetings": [{"meeting": meeting.name, "first": self._name(meeting.first), "second": self._name(meeting.second),
                          "bye": meeting.bye, "winner": self._name(meeting.winner),
                          "games": None if meeting.outcome is None else [meeting.outcome.won, meeting.outcome.lost]}
                         for meeting in self.meetings],
            "faults": {name: faults._asdict() for name, faults in self.faults().items()}, "notes": self.notes(),
            "ratings": self._rated(lambda: self.tournament.as_json()),
        }

    def __str__(self) -> str:
        wide = max(map(len, self.names))
        state = "finished" if self.next is None else "not finished"
        lines = [f"{self.format.name} of {len(self.names)}, {state}"]
        lines += [f"{place:>5}  {name:<{wide}}  {why}" for place, name, why in self.places()]
        blocks = ["\n".join(lines), *(["\n".join(self.notes())] if self.notes() else [])]
        if self.faults():
            rows = [f"{name:<{wide}}{faults.crashes:>17}{faults.missed:>15}" for name, faults in self.faults().items()]
            blocks.append("\n".join([f"{'bots':<{wide}}{'crashed or hung':>17}{'missed inputs':>15}", *rows,
                                     f"Why, meeting by meeting: {FAULTS} of the folder"]))
        played = [f"{meeting.name:<6} {self._name(meeting.first)} {meeting.outcome.won}:{meeting.outcome.lost} "
                  f"{self._name(meeting.second)}" for meeting in self.meetings if meeting.outcome is not None]
        blocks += ["\n".join(["meetings (won games)", *played])] if played else []
        rated = self._rated(lambda: str(self.tournament)) if self.games else None
        return "\n\n".join([*blocks, *([] if rated is None else [str(rated)])])

    @staticmethod
    def _rated(compute: Callable[[], Any]) -> Any:
        """Ratings need a chain of games between all, which few rounds may not give."""
        try:
            return compute()
        except UserError as error:
            return f"no ratings: {error}"

    def _name(self, entrant: int | None) -> str | None:
        return None if entrant is None or entrant < 0 else self.names[entrant]


def play_event(entrants: Sequence[Entrant], names: Sequence[str], format: Format, terms: Terms, folder: EventFolder,
               progress: Callable[[str], Progress] | None = None, reference: Reference = NO_REFERENCE,
               record: Order | None = None) -> Event:
    """Plays what the folder does not have yet. `entrants` and `names` are in the order of the seeds. UserError: another process
    does."""
    with folder.locked():
        return _play_on(entrants, names, format, terms, folder, progress, reference, record)


def _play_on(entrants: Sequence[Entrant], names: Sequence[str], format: Format, terms: Terms, folder: EventFolder,
             progress: Callable[[str], Progress] | None, reference: Reference, record: Order | None) -> Event:
    rows, games = folder.read()
    while True:
        event = Event(format, names, terms, rows, games, reference)
        meeting = event.next
        folder.write(PICTURE, event.picture())
        folder.write(RESULTS, f"{event}\n")
        if meeting is None:
            return event
        assert meeting.first is not None and meeting.second is not None
        pair = (names[meeting.first], names[meeting.second])
        todo = event.left(meeting.name, pair[0])
        assert todo is not None
        shown = progress(f"{meeting.name}: {pair[0]} against {pair[1]} in {todo[0]}") if progress else None
        row, new, faults = _play(meeting.name, (entrants[meeting.first], entrants[meeting.second]), pair, terms, *todo,
                                 len(event.of_meeting.get(meeting.name, [])), shown, record)
        folder.tell(faults)
        folder.add(row, new)
        rows, games = [*rows, row], [*games, *new]


def _play(meeting: str, entrants: tuple[Entrant, Entrant], names: tuple[str, str], terms: Terms, simulator: str, count: int,
          before: int, progress: Progress | None, record: Order | None) -> tuple[MatchRow, list[Game], list[str]]:
    """Plays the games of a meeting that are left; what there is to say of bots that failed comes with them. `before`: how many
    were played, which with the names of the two is all that the seed follows from."""
    first, second = entrants
    seed = stream_seed(terms.seed, f"{meeting} {names[0]} {names[1]} {simulator}", before) % 2**31
    todo = replace(terms, games=count, seed=seed)
    if needs_server(terms, first, second):
        found = play_through_server(first, second, todo, progress, record)
        games = found.result.games(*names)
        row = MatchRow(meeting, *names, games[0].seed, len(games), *found.faults[0], *found.faults[1])
        return row, games, [f"{meeting} {who} against {other}, as {TEAMS[one.team]}: {one}" for who, other, side in
                            zip(names, names[::-1], found.conduct, strict=True) for one in side if one.faulty]
    # A script adapts its pace to a policy that it plays against, if the policy is the first of the two.
    swapped = first.task is None and second.task is not None
    one, other = (second, first) if swapped else (first, second)
    (result,) = play(todo, simulator, one, [other], progress, record)
    games = result.games(*(names[::-1] if swapped else names))
    return MatchRow(meeting, *names, games[0].seed, len(games)), games, []
