"""Ratings: closed forms, autograd as an independent reference, and synthetic players whose strength is known."""
from __future__ import annotations

from itertools import combinations
from math import log10

import numpy as np
import pytest
import torch

from wavedash.errors import UserError
from wavedash.league.games import Game
from wavedash.league.ratings import ELO, PRIOR, Results, anchors_among, rate, scale_of


def game(blue: str, orange: str, blue_goals: int, orange_goals: int) -> Game:
    return Game("2026-01-01T00:00:00Z", 0, blue, orange, 1, blue_goals, orange_goals, 60.0, "warp", 0)


def played(strengths: dict[str, float], pairs: list[tuple[str, str]], games: int, nu: float,
           rng: np.random.Generator) -> list[Game]:
    """Games of players whose true ratings are known, by the definition of the scale."""
    made = []
    for blue, orange in pairs:
        gap = strengths[blue] - strengths[orange]
        odds = np.array([10 ** (gap / 800), nu, 10 ** (-gap / 800)])
        for outcome in rng.choice(3, size=games, p=odds / odds.sum()):
            goals = ((1, 0), (2, 2), (0, 3))[outcome]
            made.append(game(blue, orange, *goals))
    return made


def test_two_players_have_the_closed_form() -> None:
    games = [game("chaser", "bot", 0, 1)] * 3000 + [game("bot", "chaser", 0, 1)] * 1000
    rating = rate(Results.of(games))["bot"]
    assert rating.value - 1000 == pytest.approx(400 * log10(3), abs=0.5), "three wins for every loss"
    wide = 1.96 * ELO / (4000 * 0.75 * 0.25) ** 0.5  # of a logit that was estimated from 4000 results
    assert rating.high - rating.value == pytest.approx(wide, rel=0.01)
    assert rating.games == 4000


def test_draws_change_neither_rating_nor_interval() -> None:
    some = [game("chaser", "bot", 1, 0)] * 100 + [game("chaser", "bot", 0, 1)] * 300
    few, many = (rate(Results.of(games))["bot"] for games in (some, some + [game("chaser", "bot", 2, 2)] * 400))
    assert few[:3] == many[:3] and (few.games, many.games) == (400, 800)


def test_players_that_hardly_ever_score_do_not_move_the_ratings_of_others() -> None:
    """Two walls draw nearly always, which says how they play, and not how often others do."""
    rng = np.random.default_rng(6)
    true = {"chaser": 1000.0, "a": 1400.0, "b": 1800.0, "c": 2200.0}
    games = played(true, list(combinations(true, 2)), 2000, 0.1, rng)
    walls = {"chaser": 1000.0, "wall": 700.0, "other wall": 650.0}
    more = played(walls, list(combinations(walls, 2)), 2000, 20.0, rng)
    alone, together = (rate(Results.of(rows)) for rows in (games, [*games, *more]))
    for player in ("a", "b", "c"):
        assert together[player].value == pytest.approx(alone[player].value, abs=0.5)
        assert together[player].low < true[player] < together[player].high


def test_who_only_drew_has_the_rating_of_the_prior() -> None:
    rating = rate(Results.of([game("chaser", "bot", 1, 1)] * 50))["bot"]
    assert rating.value == pytest.approx(1000) and rating.high - rating.value == pytest.approx(1.959964 * 1500)


def test_the_answer_is_the_maximum_that_autograd_finds() -> None:
    rng = np.random.default_rng(0)
    true = {"chaser": 1000.0, "a": 700.0, "b": 1250.0, "c": 1500.0, "d": 1900.0}
    results = Results.of(played(true, list(combinations(true, 2)), 30, 0.7, rng))
    wins = torch.tensor(results.wins)
    anchor = results.players.index("chaser")
    free = torch.tensor([i for i in range(5) if i != anchor])
    unknown = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([unknown], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-15,
                                  line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        value = _loss_of(unknown, wins, free)
        value.backward()
        return value

    optimizer.step(closure)
    ours = rate(results)
    others = [player for player in results.players if player != "chaser"]
    reference = 1000 + ELO * unknown.detach()[:4].numpy()
    np.testing.assert_allclose([ours[player].value for player in others], reference, atol=1e-3)
    hessian = torch.autograd.functional.hessian(lambda x: _loss_of(x, wins, free), unknown.detach())
    spread = ELO * torch.linalg.inv(hessian).diagonal().sqrt().numpy()
    halves = [ours[player].high - ours[player].value for player in others]
    wider = halves / (1.959964 * spread)
    np.testing.assert_allclose(wider, wider[0], rtol=1e-4)
    assert 1.0 <= wider[0] + 1e-6 < 2.0, "results of transitive players scatter about as much as by chance"


def _loss_of(x: torch.Tensor, wins: torch.Tensor, free: torch.Tensor) -> torch.Tensor:
    strength = torch.zeros(5, dtype=torch.float64).index_copy(0, free, x)
    return -(wins * torch.nn.functional.logsigmoid(strength[:, None] - strength)).sum() + (x**2).sum() / (2 * PRIOR**2)


def test_intervals_are_wider_where_strength_is_not_one_number() -> None:
    """Rock, paper, scissors: all are equally strong, and every result is far from even."""
    circle = [("chaser", "a"), ("a", "b"), ("b", "chaser")]
    even = [game(x, y, *goals) for x, y in circle for goals in [(1, 0), (0, 1)] * 50]
    beaten = [game(x, y, *goals) for x, y in circle for goals in [(1, 0), (1, 0), (1, 0), (0, 1)] * 25]
    fair, cyclic = (rate(Results.of(games)) for games in (even, beaten))
    deviance = 3 * 2 * (75 * np.log(75 / 50) + 25 * np.log(25 / 50))  # three pairs, of which two ratings explain two
    for player in ("a", "b"):
        assert cyclic[player].value == pytest.approx(1000, abs=1e-6)
        widths = [ratings[player].high - ratings[player].low for ratings in (fair, cyclic)]
        assert widths[1] / widths[0] == pytest.approx(deviance**0.5, rel=1e-6)


def test_one_sided_results_tell_nothing_about_how_far_results_scatter() -> None:
    """Nobody expects a win of the weaker player here, so that there is none is as it should be."""
    games = [game("chaser", "a", 1, 0), game("chaser", "a", 0, 1)] * 50 + [game("b", "chaser", 1, 0), game("b", "a", 1, 0)] * 20
    alone = rate(Results.of(games[:100]))["a"]
    assert rate(Results.of(games))["a"].high == pytest.approx(alone.high, abs=2.0)


@pytest.mark.parametrize(("nu", "gap"), [(0.0, 80.0), (0.6, 80.0), (3.0, 200.0)])
def test_synthetic_players_are_ordered_right_and_intervals_cover_the_truth(nu: float, gap: float) -> None:
    """Twenty ladders of ten players: neighbours play fifty games, so that strength is known only through the chain."""
    rng, covered, taus = np.random.default_rng(3), [], []
    for _ in range(20):
        names = ["chaser", *(f"bot@{i}" for i in range(9))]
        true = dict(zip(names, 1000 + gap * np.arange(10) + rng.normal(0, 20, 10), strict=True))
        true["chaser"] = 1000.0
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 : i + 4]]
        ratings = rate(Results.of(played(true, pairs, 50, nu, rng)))
        covered += [ratings[name].low <= true[name] <= ratings[name].high for name in names[1:]]
        order = [np.sign((true[a] - true[b]) * (ratings[a].value - ratings[b].value)) for a, b in combinations(names, 2)]
        taus.append(np.mean(order))
    assert np.mean(taus) > 0.9
    # 180 intervals of 95 %, nine of a ladder correlated: three standard errors of twenty independent means.
    by_ladder = np.reshape(covered, (20, 9)).mean(1)
    assert 0.95 - 3 * max(by_ladder.std(), 0.05) / 20**0.5 < by_ladder.mean() <= 1.0


def test_intervals_that_are_too_narrow_would_be_noticed() -> None:
    """The same ladders, with intervals of a third: the negative control of the test above."""
    rng, covered = np.random.default_rng(4), []
    for _ in range(20):
        true = {"chaser": 1000.0, "a": 1100.0, "b": 1200.0}
        ratings = rate(Results.of(played(true, list(combinations(true, 2)), 60, 0.5, rng)))
        off = {name: abs(ratings[name].value - true[name]) for name in ("a", "b")}
        covered += [off[name] < (ratings[name].high - ratings[name].value) / 3 for name in off]
    assert np.mean(covered) < 0.8


def test_the_order_of_games_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    games = played({"chaser": 1000, "a": 1100, "b": 900}, [("chaser", "a"), ("a", "b"), ("b", "chaser")], 40, 0.5, rng)
    assert rate(Results.of(games)) == rate(Results.of(games[::-1]))


def test_blue_and_orange_are_alike() -> None:
    rng = np.random.default_rng(1)
    games = played({"chaser": 1000, "a": 1100, "b": 900}, [("chaser", "a"), ("a", "b"), ("b", "chaser")], 40, 0.5, rng)
    swapped = [game(g.orange, g.blue, g.orange_goals, g.blue_goals) for g in games]
    assert rate(Results.of(games)) == rate(Results.of(swapped))


def test_a_player_without_a_loss_has_a_finite_rating_and_a_wide_interval() -> None:
    rating = rate(Results.of([game("bot", "chaser", 5, 0)] * 200))["bot"]
    assert 1900 < rating.value < 4000 and rating.high - rating.low > 500


def test_who_has_no_chain_to_an_anchor_is_named() -> None:
    games = [game("bot", "chaser", 1, 0), game("lone", "lonely", 1, 0)]
    with pytest.raises(UserError, match=r"no rating for lone, lonely.*Let one of them play chaser"):
        rate(Results.of(games))


def test_anchors_keep_their_ratings() -> None:
    games = [game("idle", "chaser", 0, 5)] * 10 + [game("bot", "idle", 1, 0)] * 3
    ratings = rate(Results.of(games), {"chaser": 1000.0, "idle": 100.0})
    assert ratings["idle"] == pytest.approx((100.0, 100.0, 100.0, 13)) and ratings["chaser"].value == pytest.approx(1000.0)


# Without an anchor


def test_relative_ratings_have_the_mean_1000_and_intervals_that_cover_the_distance_to_it() -> None:
    rng, covered = np.random.default_rng(5), []
    names = [f"bot@{i}" for i in range(6)]
    for _ in range(30):
        true = dict(zip(names, rng.normal(2000, 150, 6), strict=True))
        ratings = rate(Results.of(played(true, list(combinations(names, 2)), 40, 0.5, rng)), {})
        mean = np.mean(list(true.values()))
        assert np.mean([rating.value for rating in ratings.values()]) == pytest.approx(1000, abs=1e-3)
        covered += [ratings[name].low <= true[name] - mean + 1000 <= ratings[name].high for name in names]
    # 180 intervals of 95 %: three standard errors of thirty independent means, each of them at least as wide as one of six.
    assert 0.95 - 3 * 0.1 / 30**0.5 < np.mean(covered) <= 1.0


def test_relative_differences_are_those_of_anchored_ratings() -> None:
    games = played({"chaser": 1000, "a": 1100, "b": 900}, [("chaser", "a"), ("a", "b"), ("b", "chaser")], 400, 0.5,
                   np.random.default_rng(1))
    anchored, relative = rate(Results.of(games)), rate(Results.of(games), {})
    for player in ("a", "b"):
        ours, theirs = (ratings[player].value - ratings["chaser"].value for ratings in (relative, anchored))
        assert ours == pytest.approx(theirs, abs=1.0), "but for the prior, whose middle is another"


def test_relative_ratings_need_a_chain_of_games() -> None:
    games = [game("a", "b", 1, 0), game("lone", "lonely", 1, 0)]
    with pytest.raises(UserError, match=r"no chain of games leads from a to lone, lonely\. Let one of them play a, or"):
        rate(Results.of(games), {})


def test_the_chaser_anchors_ratings_if_it_takes_part() -> None:
    assert anchors_among(["bot", "chaser"]) == {"chaser": 1000.0} and anchors_among(["bot", "idle"]) == {}
    assert scale_of({"chaser": 1000.0}) == "the chaser has 1000 by definition"
    assert scale_of({}).startswith("relative: their mean is 1000, because no chaser played")


def test_many_games_of_many_players_are_counted_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    names = [f"bot@{i}" for i in range(40)]
    goals, pairs = rng.integers(0, 3, (5000, 2)), [rng.choice(40, 2, replace=False) for _ in range(5000)]
    results = Results.of(game(names[a], names[b], *score) for (a, b), score in zip(pairs, goals.tolist(), strict=True))
    wins, draws = np.zeros((40, 40)), np.zeros((40, 40))
    for (a, b), (ours, theirs) in zip(pairs, goals, strict=True):
        i, j = results.players.index(names[a]), results.players.index(names[b])
        wins[i, j] += ours > theirs
        wins[j, i] += theirs > ours
        draws[[i, j], [j, i]] += ours == theirs
    assert (results.wins == wins).all() and (results.draws == draws).all() and results.played.sum() == 2 * 5000


def test_counts_of_two_parts_together_are_the_counts_of_all_games() -> None:
    rng = np.random.default_rng(5)
    first = played({"chaser": 1000, "b": 1100}, [("chaser", "b")], 40, 0.5, rng)
    second = played({"a": 900, "chaser": 1000, "c": 1000}, [("a", "chaser"), ("c", "a")], 40, 0.5, rng)
    together, whole = Results.of(first).plus(Results.of(second)), Results.of([*first, *second])
    assert together.players == whole.players == ["a", "b", "c", "chaser"]
    assert (together.wins == whole.wins).all() and (together.draws == whole.draws).all()
    assert Results.of([]).plus(Results.of(first)).players == ["b", "chaser"]
