"""Matches against several players at once: each has arenas of its own, and a match can be played again."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor

from wavedash.assembly import make_policy
from wavedash.config_file import load_config
from wavedash.envs.kinds import kind_of
from wavedash.evaluate.matches import Match, arenas_of
from wavedash.evaluate.results import PlayedGame
from wavedash.league.frozen import FrozenPolicy
from wavedash.league.games import Game
from wavedash.policy.actor_critic import ActorCritic
from wavedash.rocket.parts import Player, ScriptedPlayer
from wavedash.rocket.players import Chaser, Idle, Random
from wavedash.rocket.state import GameState

SHOTS = "env.rocket.starts={'tests.evaluate.test_matches:Shots': {ends: %s}}"


class Holds(ScriptedPlayer):
    """All of its controls have one value, so that they can be recognised."""

    def __init__(self, value: float) -> None:
        self.value = value

    def controls(self, state: GameState) -> Tensor:
        return torch.full((state.arenas, state.seats, 8), self.value)


def test_each_player_drives_its_cars_in_its_own_arenas():
    duel = Match(arenas_of(2), Holds(0.1), [Holds(0.2), Holds(0.3), Holds(0.4)], games=4)
    duel.env.reset(0)
    duel.env.step(torch.zeros(48, dtype=torch.int64))
    controls = duel.env._shards[0].controls[..., 0]  # [12, 4]
    for arena in range(12):
        first, second = 0.1, 0.2 + 0.1 * (arena // 4)
        expected = [second, second, first, first] if arena % 2 else [first, first, second, second]
        assert controls[arena].tolist() == pytest.approx(expected)
    duel.close()


def test_goals_are_counted_for_the_game_of_their_arena():
    config = load_config("rocket-1v1", [SHOTS % "orange blue orange none blue orange none none"]).env
    duel = Match(config, Idle(), [Idle(), Chaser()], games=4, own_starts=True, limit=2.0)
    first, second = duel.play_all(seed=3)
    assert (first.score.scored, first.score.conceded, first.score.goalless) == (3, 0, 1)
    assert (second.score.scored, second.score.conceded, second.score.goalless) == (0, 2, 2)
    assert [game[:3] for game in first.played] == [(0, 1, 0), (1, 1, 0), (0, 1, 0), (1, 0, 0)]
    *goals, without = [game.seconds for game in first.played]
    assert all(5215 / 4000 < seconds < 1.40 for seconds in goals), "the way to the goal, a little drag, and less than a step"
    assert without == 2.0
    assert sum(game.seconds for game in first.played) == pytest.approx(60 * first.score.minutes)
    rows = second.games("bot@7", "chaser", step=7, time="then")
    ends = [round(game.seconds, 3) for game in second.played]
    assert rows[:2] == [Game("then", 7, "bot@7", "chaser", 1, 0, 1, ends[0], "warp", 3),
                        Game("then", 7, "chaser", "bot@7", 1, 1, 0, ends[1], "warp", 3)]
    duel.close()


def test_every_arena_plays_equally_many_games():
    """With a goal in every other arena, those could have played three times as many."""
    config = load_config("rocket-1v1", [SHOTS % "orange none"]).env
    duel = Match(config, Idle(), [Idle(), Idle()], games=130, own_starts=True, limit=4.0)
    assert (duel.rounds, duel.block, duel.arenas) == (3, 44, 88)
    for result in duel.play_all(seed=1):
        assert result.score.games == len(result.played) == 132
        assert (result.score.scored, result.score.conceded) == (66, 0), "three games in each of 22 arenas"
        assert [game.scored for game in result.played] == [1, 1, 1, 0, 0, 0] * 22
    duel.close()


def network(seed: int, *overrides: str) -> tuple[ActorCritic, FrozenPolicy]:
    """A policy with memory whose choices depend on its weights, and a player that begins with them."""
    config = load_config("rocket-1v1", ["policy.hidden=[8]", "policy.memory={kind: gru, size: 8}", f"seed={seed}", *overrides])
    policy = make_policy(kind_of(config.env).spaces(config.env, torch.device("cpu")), config)
    with torch.no_grad():
        for name, x in policy.head.state_dict().items():
            x.mul_(10_000.0 if name.endswith("weight") else 1.0)
    assert config.env.rocket is not None
    return policy, FrozenPolicy(policy, config.env.rocket, f"policy {seed}")


def end_of(duel: Match, seed: int) -> tuple[list[list[PlayedGame]], Tensor]:
    """The games, and the arenas before the last step, in which those without a goal ended."""
    return [list(result.played) for result in duel.play_all(seed)], duel.env._shards[0].previous.memory.clone()


def same(ours: tuple[list[list[PlayedGame]], Tensor], theirs: tuple[list[list[PlayedGame]], Tensor]) -> bool:
    return ours[0] == theirs[0] and torch.equal(ours[1], theirs[1])


@pytest.mark.slow
def test_a_match_that_is_played_again_is_as_a_new_one():
    """Also with a player that draws random numbers, one that remembers, and after one took over other weights."""
    def made(first: Player) -> Match:
        return Match(arenas_of(1), first, [Random(seed=4), network(1)[1], Chaser()], games=4, limit=3.0)

    duel = made(network(2)[1])
    once, other, again = end_of(duel, 1), end_of(duel, 2), end_of(duel, 1)
    assert same(once, again) and not same(once, other)
    player, exchanged = duel.line_up.players[0], network(3)[0]
    assert isinstance(player, FrozenPolicy)
    player.play_as(exchanged)
    after = end_of(duel, 1)
    assert not same(after, once) and same(after, end_of(made(network(3)[1]), 1))


def test_a_script_decides_as_often_as_its_opponent_whoever_else_plays():
    slow = network(1, "env.rocket.action={lookup_table: {ticks: 12}}")[1]
    duel = Match(arenas_of(1), slow, [Chaser(), network(2)[1]], games=2)
    assert duel.env.step_seconds == pytest.approx(4 / 120)
    assert [driver.every for driver in duel.line_up._drivers()] == [3, 3, 2]
    assert duel.watch.interval.tolist() == [3, 3, 3, 3]
    duel.close()


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_a_match_that_was_warmed_up_plays_the_same_games_bit_for_bit(simulator):
    """Also by players that draw random numbers or remember; the control is another seed."""
    def made() -> Match:
        samples = network(1)[1]
        samples.deterministic = False
        return Match(arenas_of(1, simulator), samples, [Chaser(), Random(seed=4)], games=4, limit=2.0)

    plain, warm = made(), made()
    warm.warm_up()
    once = end_of(warm, 1)
    assert same(once, end_of(plain, 1)) and not same(once, end_of(warm, 2))
    for match in (plain, warm):
        match.close()


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_arenas_that_have_played_their_games_rest_and_the_others_do_not_notice(simulator, monkeypatch):
    """The reference is a match in which none rests. In the control arena 2 rests, which is still playing."""
    monkeypatch.setattr("wavedash.evaluate.matches.MOST_ON_CPU", 4)

    def played(rest: str) -> tuple[list[list[PlayedGame]], list[Tensor], list[int]]:
        """The games, the arenas that still play after each step, and how many cars the first player inferred."""
        config = load_config("rocket-1v1", [SHOTS % "orange none none blue none none orange none",
                                            f"env.rocket.simulator={simulator}"]).env
        match = Match(config, network(1)[1], [network(2)[1], Chaser()], games=8, own_starts=True, limit=2.0)
        assert (match.rounds, match.arenas) == (2, 8)
        if rest != "over":
            monkeypatch.setattr(match, "_rest", lambda: match.line_up.rest(torch.arange(8) == (2 if rest == "playing" else 8)))
        step, first, states, rows = match._step, match.line_up.players[0], [], []
        assert isinstance(first, FrozenPolicy)

        def noted() -> None:
            step()
            states.append(match.env._shards[0].state.memory[~match.tally.over()].clone())
            rows.append(first.rows.numel())

        match._advance = noted
        games = [list(result.played) for result in match.play_all(seed=1)]
        assert games == [list(result.played) for result in match.play_all(seed=1)], "when it is played again, all arenas play"
        match.close()
        return games, states, rows

    games, states, rows = played("over")
    expected, reference, all_rows = played("none")
    assert games == expected and all(torch.equal(x, y) for x, y in zip(states, reference, strict=True))
    assert set(all_rows) == {8} and set(rows) == {8, 5}, "three arenas had goals in both of their games"
    control = played("playing")[1]
    assert not all(torch.equal(x, y) for x, y in zip(control, reference, strict=True))
