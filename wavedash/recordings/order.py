"""Order: what a user asked to be recorded by `--record`, and the files that it became."""
from __future__ import annotations

from pathlib import Path

from wavedash.errors import UserError
from wavedash.recordings.file import Recording
from wavedash.recordings.layout import RecordingError
from wavedash.recordings.names import file_name, stamp


class Order:
    """What a user asked to be recorded, and what has been."""

    def __init__(self, games: int | None, folder: Path) -> None:
        """`games`: how many of every match; None: all."""
        self.games, self.folder = games, folder
        self.files: list[Path] = []
        self.failure: RecordingError | None = None
        """Why nothing is recorded any more. The games go on: their results are worth more."""
        self._made = stamp()

    @classmethod
    def read(cls, record: str | None, folder: Path | None, default: Path) -> Order | None:
        """The order of `--record N|all --recordings FOLDER`; None: nothing is recorded. UserError: it cannot be done."""
        if record is None:
            if folder is not None:
                raise UserError("--recordings goes with --record N, which says how many games are recorded")
            return None
        number = int(record) if record.isascii() and record.isdigit() and len(record) < 10 else 0
        if record != "all" and not number:
            raise UserError(f"--record takes a number of games, or all, not {record!r}")
        folder = folder or default
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {folder} for recordings: {error.strerror or error}; name another one with "
                            "--recordings") from error
        return cls(number or None, folder)

    @property
    def next_number(self) -> int:
        """The number of the next file."""
        return len(self.files) + 1

    def write(self, recording: Recording, title: str) -> None:
        """Writes a file, unless one could not be written before."""
        if self.failure is None:
            try:
                self.files.append(recording.write(self.folder / file_name(title, f"{self._made}-{self.next_number:03d}")))
            except RecordingError as error:
                self.failure = error

    def __str__(self) -> str:
        """Says what the user is told at the end."""
        return f"wrote {len(self.files)} recording{'s' * (len(self.files) != 1)} into {self.folder}"
