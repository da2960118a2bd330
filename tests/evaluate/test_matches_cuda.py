"""Matches on a GPU: a captured step plays the same games as one that is not captured, also after weights were exchanged."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.evaluate.test_match_blocks import network
from tests.league.test_own_cars import player
from wavedash.evaluate.matches import Match, arenas_of
from wavedash.league.frozen import FrozenPolicy
from wavedash.ppo.graphs import CapturedCall
from wavedash.rocket.players import Chaser, Idle, Random

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def made(graphs: bool, games: int = 8) -> Match:
    first, other = network(1)[1], network(2)[1]
    return Match(arenas_of(1), first, [Chaser(), Random(seed=4), other], games, device="cuda", limit=4.0, graphs=graphs)


def arenas_after(match: Match) -> Tensor:
    """The arenas before the last step: after it, those whose game it has ended are at another kick-off."""
    return match.env._shards[0].previous.memory


def test_a_captured_match_plays_the_games_of_one_that_is_not():
    plain, captured = made(graphs=False), made(graphs=True)
    control = []
    for seed in (1, 2, 1):
        ours, theirs = captured.play_all(seed), plain.play_all(seed)
        assert [result.played for result in ours] == [result.played for result in theirs]
        assert torch.equal(arenas_after(captured), arenas_after(plain))
        control.append(arenas_after(captured).clone())
    assert isinstance(captured._advance, CapturedCall) and captured._advance.graph is not None
    assert torch.equal(control[0], control[2]) and not torch.equal(control[0], control[1]), "the seed decides"
    for match in (plain, captured):
        player = match.line_up.players[0]
        assert isinstance(player, FrozenPolicy)
        player.play_as(network(3)[0].to("cuda"))
    assert [x.played for x in captured.play_all(1)] == [x.played for x in plain.play_all(1)]
    assert torch.equal(arenas_after(captured), arenas_after(plain))
    assert not torch.equal(arenas_after(captured), control[0]), "the control: the other weights count"


@pytest.mark.parametrize("kinds", ["plain plain", "gru gru", "gru slow"])
def test_policies_that_share_a_view_or_keep_a_pace_of_their_own_play_the_same_games_in_a_graph(kinds):
    """Each infers its own cars, in every step."""
    ends = []
    for graphs in (False, True):
        first, second = (player(kind, seed) for seed, kind in enumerate(kinds.split(), 1))
        match = Match(arenas_of(1), first, second, games=8, device="cuda", limit=3.0, graphs=graphs)
        (result,) = match.play_all(1)
        assert isinstance(first, FrozenPolicy) and first.rows.shape == (1, 8)
        ends.append((result.played, arenas_after(match).clone()))
        match.close()
    assert ends[0][0] == ends[1][0] and torch.equal(ends[0][1], ends[1][1])


def test_warming_up_captures_the_step_and_changes_no_game():
    plain, warm = made(graphs=True), made(graphs=True)
    warm.warm_up()
    assert isinstance(warm._advance, CapturedCall) and isinstance(plain._advance, CapturedCall)
    graph = warm._advance.graph
    assert graph is not None and plain._advance.graph is None
    for seed in (1, 2):
        assert [x.played for x in warm.play_all(seed)] == [x.played for x in plain.play_all(seed)]
        assert torch.equal(arenas_after(warm), arenas_after(plain))
    assert warm._advance.graph is graph, "captured once, and not again"


def test_thousands_of_games_are_played_at_once():
    match = Match(arenas_of(1), Chaser(), [Idle(), Idle()], games=2000, device="cuda", limit=20.0)
    assert (match.rounds, match.arenas) == (1, 4000)
    for result in match.play_all(1):
        assert result.score.games == 2000 and result.score.scored > 10 * result.score.conceded
