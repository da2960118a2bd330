"""How far a command is that plays games, shown while it plays."""
from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from wavedash.evaluate.matches import Progress


class Shown:
    """Shows on stderr how far a command is: on a terminal twice a second in one line, elsewhere a line every half minute."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.began = self.last = time.monotonic()

    def __call__(self, text: str, whole: str = "the games") -> Progress:
        """For one match, or whatever else `text` describes; shares are shares of `whole`."""
        def show(share: float) -> None:
            now = time.monotonic()
            if now - self.last < (0.5 if self.live else 30.0):
                return
            self.last = now
            line = f"{text}: {100 * share:.0f} % of {whole}, {now - self.began:.0f} s"
            typer.echo(f"\r{line}\033[K" if self.live else line, err=True, nl=not self.live)

        return show

    def end(self) -> None:
        if self.live:
            typer.echo("\r\033[K", err=True, nl=False)
