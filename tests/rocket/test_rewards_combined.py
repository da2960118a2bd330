"""Rewards combined: weights, modes, team spirit, zero-sum, and the names that a configuration may give them."""
from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.rocket.random_states import random_state
from tests.rocket.reward_states import game, scene
from wavedash.errors import UserError
from wavedash.rocket import names
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.state import GameState

SPEC = {
    "goal", "concede", "touch", "shot", "save", "demo", "demoed", "boost_pickup", "velocity_ball_to_goal",
    "velocity_player_to_ball", "strong_hit", "face_ball", "jump_shot", "basic_shot", "velocity_ball_to_own_goal", "recovery",
    "landing", "ball_to_goal_distance", "in_air", "save_boost", "collect_boost", "aerial_distance", "flip_reset", "wavedash",
    "align_ball_goal", "speed", "touch_toward_goal",
}


def mix(**options: object) -> tuple[Rewards, GameState, GameState]:
    before = scene(50, 2, 2, seed=3)
    now = scene(50, 2, 2, seed=4, like=before)
    combined = Rewards.named({"goal": 10, "touch": 2.0, "speed": 0.5, "velocity_ball_to_goal": 0.25}, **options)
    combined.bind(now)
    return combined, now, before


def test_shares_are_weighted_and_sum_to_the_total() -> None:
    combined, now, before = mix(scale=2.0)
    total = combined(now, before, now.events)
    shares = combined.shares()
    assert list(shares) == ["goal", "touch", "speed", "velocity_ball_to_goal"]
    touched = (now.events.touches > 0) & now.cars.present
    torch.testing.assert_close(shares["touch"], touched * 4.0)  # weight 2, scale 2
    torch.testing.assert_close(total, sum(shares.values()))
    assert total[~now.cars.present].eq(0).all()


def own_team_mean(own: Tensor, now: GameState, arena: int, team: int) -> float:
    values = [own[arena, c].item() for c in range(4) if now.cars.present[arena, c] and now.cars.team[arena, c] == team]
    return sum(values) / len(values) if values else 0.0


@pytest.mark.parametrize("spirit", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("zero_sum", [False, True])
def test_team_spirit_and_zero_sum(spirit: float, zero_sum: bool) -> None:
    combined, now, before = mix()
    own = combined(now, before, now.events)
    combined, now, before = mix(team_spirit=spirit, zero_sum=zero_sum)
    shared = combined(now, before, now.events)
    torch.testing.assert_close(sum(combined.shares().values()), own)  # the shares are what cars earned themselves
    for arena in range(50):
        for car in range(4):
            if not now.cars.present[arena, car]:
                assert shared[arena, car] == 0
                continue
            team = int(now.cars.team[arena, car])
            expected = (1 - spirit) * own[arena, car] + spirit * own_team_mean(own, now, arena, team)
            if zero_sum:
                expected -= own_team_mean(own, now, arena, 1 - team)
            assert shared[arena, car] == pytest.approx(float(expected), abs=1e-4)


@pytest.mark.parametrize("common", [0.0, 0.3])
def test_a_reward_may_have_its_own_share_of_zero_sum(common: float) -> None:
    """Each car is paid what it earned, less the mean of the opponents for each reward times the share of that reward."""
    before = scene(50, 2, 2, seed=3)
    now = scene(50, 2, 2, seed=4, like=before)
    named = {"goal": {"weight": 10, "zero_sum": True}, "touch": 2.0, "speed": {"weight": 0.5, "zero_sum": 0.0}}
    combined = Rewards.named(named, zero_sum=common, team_spirit=0.4)
    combined.bind(now)

    def by_hand(share_of: dict[str, float]) -> Tensor:
        paid, shares = torch.zeros(50, 4), combined.shares()
        for arena in range(50):
            for car in range(4):
                if not now.cars.present[arena, car]:
                    continue
                team = int(now.cars.team[arena, car])
                for name, own in shares.items():
                    paid[arena, car] += (0.6 * own[arena, car] + 0.4 * own_team_mean(own, now, arena, team)
                                         - share_of[name] * own_team_mean(own, now, arena, 1 - team))
        return paid

    paid = combined(now, before, now.events)
    torch.testing.assert_close(paid, by_hand({"goal": 1.0, "touch": common, "speed": 0.0}), atol=1e-4, rtol=0)
    assert (paid - by_hand({"goal": 1.0, "touch": common, "speed": 1.0})).abs().max() > 0.01  # the control
    combined.set(zero_sum=0.9)
    torch.testing.assert_close(combined(now, before, now.events), by_hand({"goal": 1.0, "touch": 0.9, "speed": 0.0}), atol=1e-4,
                               rtol=0)


def test_zero_sum_rewards_of_even_teams_sum_to_zero() -> None:
    now = random_state(50, 2, 2, seed=5, empty=0.0)
    before = random_state(50, 2, 2, seed=6, empty=0.0)
    combined = Rewards.named({"goal": 10, "touch": 2.0, "speed": 0.5}, zero_sum=True, team_spirit=0.4)
    combined.bind(now)
    paid = combined(now, before, now.events)
    assert paid.abs().max() > 1
    torch.testing.assert_close(paid.sum(-1), torch.zeros(50), atol=1e-4, rtol=0)


def test_a_car_without_opponents_keeps_its_reward() -> None:
    now = game(1, 0)
    now.cars.velocity[0, 0, 0] = 2300
    combined = Rewards.named({"speed": 1}, zero_sum=True)
    combined.bind(now)
    assert combined(now, now, now.events).tolist() == [[1.0]]


def test_a_mode_selects_dense_or_sparse_rewards() -> None:
    results = {}
    for mode, options in {"dense": {}, "sparse": {}, "hybrid": {"dense_scale": 0.2}}.items():
        combined, now, before = mix(mode=mode, **options)
        combined(now, before, now.events)
        results[mode] = {name: share.abs().sum().item() for name, share in combined.shares().items()}
    for name in ("goal", "touch"):
        assert results["sparse"][name] == results["hybrid"][name] == results["dense"][name] > 0
    for name in ("speed", "velocity_ball_to_goal"):
        assert results["sparse"][name] == 0
        assert results["hybrid"][name] == pytest.approx(0.2 * results["dense"][name])


def test_weights_may_change_during_a_run() -> None:
    combined, now, before = mix(mode="hybrid", dense_scale=0.5)
    combined(now, before, now.events)
    old = {name: share.clone() for name, share in combined.shares().items()}
    combined.set_weights({"touch": 6.0, "Speed": 0.0})
    combined(now, before, now.events)
    new = combined.shares()
    torch.testing.assert_close(new["touch"], 3 * old["touch"])
    assert new["speed"].count_nonzero() == 0
    torch.testing.assert_close(new["goal"], old["goal"])
    torch.testing.assert_close(new["velocity_ball_to_goal"], old["velocity_ball_to_goal"])
    with pytest.raises(UserError, match=r"no reward 'demo'.*goal, touch"):
        combined.set_weights({"demo": 1.0})


def test_every_reward_of_the_specification_can_be_named() -> None:
    shipped = names.shipped("reward")
    assert set(shipped) >= SPEC
    for name in shipped:
        found = names.find("reward", name)
        assert found is names.find("reward", found.__name__), "CamelCase and snake_case"
        assert found.__doc__ and "weight" in found.__doc__, f"{name} must say what it pays and a typical weight"


def test_a_users_own_reward_is_named_by_its_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rewards_of_a_test.py").write_text(
        "from wavedash.rocket.parts import Reward\n"
        "class Supersonic(Reward):\n"
        "    def __init__(self, bonus=1.0):\n"
        "        self.bonus = bonus\n"
        "    def __call__(self, state, previous, events):\n"
        "        return self.bonus * state.cars.is_supersonic\n"
        "class Wrong(Reward):\n"
        "    def __call__(self, state, previous, events):\n"
        "        return state.ball.velocity\n"
        "class Other:\n"
        "    pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    now = game()
    now.cars.is_supersonic[0, 1] = True
    combined = Rewards.named({"goal": 10, "own_rewards_of_a_test:Supersonic": {"weight": 0.5, "bonus": 3.0}})
    combined.bind(now)
    assert combined(now, now, now.events).tolist() == [[0.0, 1.5]]
    assert combined.shares()["supersonic"].tolist() == [[0.0, 1.5]]
    with pytest.raises(UserError, match=r"derived from wavedash\.rocket\.parts\.Reward"):
        Rewards.named({"own_rewards_of_a_test:Other": 1})
    with pytest.raises(UserError, match="no_such_module"):
        Rewards.named({"no_such_module:Supersonic": 1})
    wrong = Rewards.named({"own_rewards_of_a_test:Wrong": 1})
    wrong.bind(now)
    with pytest.raises(UserError, match=r"'wrong' returned \[1, 3\].*\[1, 2\]"):
        wrong(now, now, now.events)


def test_one_reward_may_be_used_twice_under_two_names() -> None:
    combined = Rewards.named({"touch": 1, "early_touch": {"reward": "touch", "weight": 2}})
    now = game()
    combined.bind(now)
    now.events.touches[0, 0] = 1
    assert combined(now, now, now.events).tolist() == [[3.0, 0.0]]


@pytest.mark.parametrize(("spec", "message"), [
    ({"velocity_player_to_bal": 1}, "did you mean 'velocity_player_to_ball'"),
    ({"touch": {"weight": 1, "smal": 2}}, "has no option 'smal'; it has none"),
    ({"boost_pickup": {"weight": 1, "smal": 2}}, "did you mean 'small'"),
    ({"boost_pickup": {"small": 2}}, "needs a weight"),
    ({"touch": "lots"}, "needs a weight"),
    ({"touch": True}, "needs a weight"),
    ({"touch": 1, "Touch": 2}, "a name of its own"),
    ({"touch": {"weight": 1, "zero_sum": 2}}, "zero_sum of the reward 'touch' must be from 0"),
    ({"touch": {"weight": 1, "zero_sum": "all"}}, "zero_sum of the reward 'touch' must be from 0"),
    ({}, "at least one"),
])
def test_mistakes_are_explained(spec: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Rewards.named(spec)


@pytest.mark.parametrize(("options", "message"), [
    ({"mode": "spares"}, "modes are: dense, sparse, hybrid"), ({"team_spirit": 1.5}, "from 0 .* to 1"),
])
def test_wrong_options_are_explained(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Rewards.named({"touch": 1}, **options)
