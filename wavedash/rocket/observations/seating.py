"""Who is seen in which place of an observation: oneself, one's team, the opponents; each in the order of seats."""
from __future__ import annotations

from functools import cache
from itertools import product

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.rocket.state import Cars

ABSENT, BLUE, ORANGE = range(3)


class Seating:
    """Looks up the seats that every car has in its places: [places, E, C].

    Present cars of a team come first in its places; places that are left, and all places of an absent car, hold `nobody`. As
    there are few seats, the answer for each possible line-up is worked out beforehand, and a step looks it up.
    """

    def __init__(self, seats: int, team_size: int | None, device: torch.device, ball: bool = False):
        """`team_size`: places per team. None: as many places as seats, one team after the other. `ball`: it has the second
        place, with a number of its own."""
        self.nobody, self.ball = seats, seats + 1
        self.powers = torch.tensor([3**seat for seat in range(seats)], device=device)
        table = _table(seats, team_size)
        if ball:
            table = torch.cat([table[:1], torch.where(table[:1] == self.nobody, self.nobody, self.ball), table[1:]])
        self.table = table.to(device)

    def __call__(self, cars: Cars) -> Tensor:
        code = ((cars.team + 1) * cars.present * self.powers).sum(-1)  # [E]
        return self.table.index_select(1, code).view(len(self.table), *cars.team.shape)


def check_team_size(seats: int, team_size: int, option: str) -> None:
    """Every car must have a place in two teams of `team_size`."""
    if team_size < 1 or seats > 2 * team_size:
        raise UserError(f"{seats} seats do not fit into an observation with {option}={team_size} per team; raise {option}")


@cache
def _table(seats: int, team_size: int | None) -> Tensor:
    """[places, 3**C, C] by line-up, whose number has one digit per seat."""
    line_ups = (digits[::-1] for digits in product((ABSENT, BLUE, ORANGE), repeat=seats))
    by_line_up = [[_view(line_up, seat, team_size) for seat in range(seats)] for line_up in line_ups]
    return torch.tensor(by_line_up).permute(2, 0, 1).contiguous()


def _view(line_up: tuple[int, ...], me: int, team_size: int | None) -> list[int]:
    """Seats in the places of one car: itself, team, opponents."""
    nobody = len(line_up)
    team = [seat for seat, status in enumerate(line_up) if status == line_up[me] and seat != me]
    opponents = [seat for seat, status in enumerate(line_up) if status not in (line_up[me], ABSENT)]
    if team_size is None:
        places = _padded([me, *team, *opponents], len(line_up), nobody)
    else:
        places = [me, *_padded(team, team_size - 1, nobody), *_padded(opponents, team_size, nobody)]
    return places if line_up[me] != ABSENT else [nobody] * len(places)


def _padded(seats: list[int], places: int, nobody: int) -> list[int]:
    return (seats + [nobody] * places)[:places]
