"""What happened in games by hand, and in real ones, is told as it was."""
from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.rocket.recording.games import STEP, nothing, players
from tests.rocket.test_env import simulated
from wavedash.rocket.recording.events import BETWEEN_TOUCHES, Narrator, happened_in, spoken_names, with_success
from wavedash.rocket.recording.frames import RocketFrames
from wavedash.rocket.state import GameState


def told(happened, *names: str, measures: tuple[str, ...] = ()) -> list[tuple[int, str, int | None, str]]:
    events = Narrator(players(*(names or ("ann", "bob"))), STEP, measures).tell(happened)
    return [(one["frame"], one["kind"], one["car"], one["text"]) for one in events]


def test_every_deed_is_an_event_of_its_car():
    game = nothing(6)
    game["touch"][1, 0] = game["shot"][1, 0] = True
    game["touch"][2, 1] = game["save"][2, 1] = True
    game["demolished"][3, 0] = 1
    game["bumped"][4, 1] = 0
    game["goal"][5, 1], game["goal_of"][5] = True, 1
    assert told(game) == [
        (1, "touch", 0, "ann touches the ball"), (1, "shot", 0, "ann shoots at the goal"),
        (2, "touch", 1, "bob touches the ball"), (2, "save", 1, "bob saves"),
        (3, "demo", 0, "ann demolishes bob"), (4, "bump", 1, "bob bumps ann"), (5, "goal", 1, "bob scores")]
    assert told(nothing(6)) == []


def test_an_own_goal_is_nobodys():
    game = nothing(2)
    game["goal_of"][1] = 0
    assert told(game) == [(1, "goal", None, "an own goal for blue")]


def test_a_dribble_is_told_twice_a_second_and_each_new_toucher_at_once():
    game = nothing(60)
    game["touch"][:30, 0] = True  # two seconds of contact
    every = round(BETWEEN_TOUCHES / STEP)
    assert [frame for frame, *_ in told(game)] == list(range(0, 30, every + (every * STEP < BETWEEN_TOUCHES)))
    game["touch"][10, 1] = True
    assert (10, "touch", 1, "bob touches the ball") in told(game)
    both = nothing(30)
    both["touch"][:7] = True  # a ball that is pinched by both
    assert [(frame, car) for frame, _, car, _ in told(both)] == [(0, 0), (0, 1)]
    turns = nothing(30)
    turns["touch"][[0, 2, 4, 6], [0, 1, 0, 1]] = True
    assert [(frame, car) for frame, _, car, _ in told(turns)] == [(0, 0), (2, 1), (4, 0), (6, 1)]


def test_a_game_that_is_told_in_pieces_is_told_the_same():
    rng = np.random.default_rng(0)
    game = nothing(200, 4)
    for name in ("touch", "shot", "save", "goal"):
        game[name] = rng.random(game[name].shape) < 0.1
    game["bumped"] = np.where(rng.random((200, 4)) < 0.05, 2, -1)
    names = players("a", "b", "c", "d")
    whole, narrator = Narrator(names, STEP).tell(game), Narrator(names, STEP)
    pieces = [one for start, stop in ((0, 1), (1, 50), (50, 51), (51, 200)) for one in narrator.tell(game[start:stop], start)]
    assert pieces == whole and len(whole) > 100


def test_a_mechanic_is_told_of_the_car_that_did_it():
    game = with_success(nothing(3), np.array([[[0, 0]], [[0, 1]], [[0, 0]]], np.bool_))
    assert told(game, measures=("flip_reset",)) == [(1, "mechanic", 1, "bob: flip reset")]


def test_cars_of_one_name_are_told_apart():
    assert spoken_names(players("a", "b")) == ["a", "b"]
    assert spoken_names(players("me", "me")) == ["me (blue)", "me (orange)"]
    assert spoken_names(players("me", "me", "me", "you")) == ["me (blue 1)", "me (blue 2)", "me (orange)", "you"]


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_a_real_goal_is_told_and_a_real_touch(simulator):
    """The ball rolls into orange's goal, after blue's car has touched it; then nobody has."""
    env = simulated("env.count=2", simulator=simulator)
    env.reset(0)
    state = env.states[0]
    state.ball.position[:] = torch.tensor([0.0, 4700.0, 93.0])
    state.ball.velocity[:] = torch.tensor([0.0, 1500.0, 0.0])
    state.cars.position[:, 0] = torch.tensor([0.0, 4560.0, 17.0])
    state.cars.velocity[:, 0] = torch.tensor([0.0, 2000.0, 0.0])
    state.cars.rotation[:, 0] = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    state.cars.position[1, 0] = torch.tensor([0.0, -4560.0, 17.0])  # too far away in the second arena
    state.cars.position[:, 1] = torch.tensor([3000.0, 0.0, 17.0])
    env._shards[0].simulator.place(torch.ones(2, dtype=torch.bool))
    frames, narrators = RocketFrames.of(state), [Narrator(players("ann", "bob"), STEP) for _ in range(2)]
    shard, told_of = env._shards[0], [[], []]
    for step in range(40):
        shard.previous.copy_(state)
        shard.simulator.step(torch.zeros(2, 2, 8), 8, 0)
        happened = happened_in(state, frames)
        for arena in (0, 1):
            told_of[arena] += narrators[arena].tell(happened[arena:arena + 1], step)
        if int(state.game.goal.min()) >= 0:
            break
    kinds = [[(one["kind"], one["car"]) for one in events] for events in told_of]
    assert ("touch", 0) in kinds[0] and ("goal", 0) in kinds[0]
    assert set(kinds[1]) == {("goal", None)}
    env.close()


def test_empty_seats_are_no_cars():
    """Cars are counted without them, also as somebody who is bumped."""
    state = GameState.empty(1, 4)
    state.clear_events()
    state.cars.present[0] = torch.tensor([True, False, True, True])
    state.cars.team[0] = torch.tensor([0, 0, 1, 1])
    state.events.bumped[0] = torch.tensor([3, 3, -1, -1])
    state.events.touches[0] = torch.tensor([0, 5, 2, 0])
    happened = happened_in(state, RocketFrames.of(state))
    assert happened["bumped"].tolist() == [[2, -1, -1]] and happened["touch"].tolist() == [[False, True, False]]
