"""What commands with `--record` say at their end."""
from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from wavedash.recordings.order import Order


def tell_recorded(order: Order | None) -> None:
    """Says where recordings are, apart from the result. Raises what kept them from being written."""
    if order is None:
        return
    if order.files:
        typer.echo(str(order), err=True)
    if order.failure is not None:
        raise order.failure
