"""Rewards are compared with values worked out by hand."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.rocket.reward_states import game
from wavedash.rocket import names, rewards
from wavedash.rocket.parts import Reward
from wavedash.rocket.rewards import Rewards
from wavedash.rocket.state import CONTROLS, GameState

NET_Z = 321.3875  # half of 642.775


def pay(reward: Reward, now: GameState, before: GameState | None = None) -> list[float]:
    """The rewards of the cars of the first arena for the step from `before` (default: the same state)."""
    before = before or now
    one = Rewards([("it", reward, 1.0)])
    one.bind(now)
    one.begin(before, torch.ones(now.arenas, dtype=torch.bool))
    return approx_list(one(now, before, now.events)[0])


def approx_list(values: Tensor) -> list[float]:
    return [round(value, 5) for value in values.tolist()]


def test_goal_pays_the_team_and_with_less_for_mates_the_scorer() -> None:
    now = game(2, 1)
    now.game.goal.fill_(0)
    now.events.goal[0, 0] = True
    assert pay(rewards.Goal(), now) == [1, 1, 0]
    assert pay(rewards.Goal(mates=0.25), now) == [1, 0.25, 0]
    assert pay(rewards.Goal(), game()) == [0, 0]


def test_concede_costs_the_other_team() -> None:
    now = game(2, 1)
    now.game.goal.fill_(1)
    assert pay(rewards.Concede(), now) == [-1, -1, 0]
    assert pay(rewards.Concede(), game()) == [0, 0]


def test_touch_pays_once_a_step() -> None:
    now = game()
    now.events.touches[0] = torch.tensor([3, 0])
    assert pay(rewards.Touch(), now) == [1, 0]


@pytest.mark.parametrize("event", ["shot", "save", "assist"])
def test_shot_save_and_assist_pay_the_car_that_did_it(event: str) -> None:
    now = game()
    getattr(now.events, event)[0, 1] = True
    assert pay(names.make("reward", event), now) == [0, 1]


def test_demo_pays_the_attacker_and_demoed_costs_the_victim_once() -> None:
    before, now = game(), game()
    now.events.demolished[0] = torch.tensor([1, -1])
    now.cars.is_demoed[0, 1] = True
    assert pay(rewards.Demo(), now, before) == [1, 0]
    assert pay(rewards.Demoed(), now, before) == [0, -1]
    assert pay(rewards.Demoed(), now, now) == [0, 0]  # still waiting for the respawn


def test_boost_pickup_counts_pads() -> None:
    now = game()
    now.events.small_pads[0] = torch.tensor([2, 0])
    now.events.big_pads[0] = torch.tensor([0, 1])
    assert pay(rewards.BoostPickup(), now) == [0.6, 1.0]  # 2 x 0.3; 1 x 1
    assert pay(rewards.BoostPickup(small=0.12, big=0.5), now) == [0.24, 0.5]


def test_velocity_of_the_ball_to_goal() -> None:
    now = game()
    now.ball.position[0] = torch.tensor([3000.0, 2000.0, NET_Z])
    now.ball.velocity[0] = torch.tensor([0.0, 3000.0, 0.0])
    # Blue: the way is (-3000, 4000, 0), 5000 long: 0.8 x 3000 / 6000. Orange: (-3000, -8000, 0), 8544.0037 long:
    # -0.93633 x 3000 / 6000
    assert pay(rewards.VelocityBallToGoal(), now) == [0.4, -0.46816]


def test_velocity_of_the_ball_to_the_own_goal_only_costs() -> None:
    now = game()
    now.ball.position[0] = torch.tensor([3000.0, 2000.0, NET_Z])
    now.ball.velocity[0] = torch.tensor([0.0, 3000.0, 0.0])
    assert pay(rewards.VelocityBallToOwnGoal(), now) == [0, -0.4]


def test_a_ball_on_its_way_into_the_net_still_moves_toward_the_goal() -> None:
    now = game()
    now.ball.position[0] = torch.tensor([0.0, 5200.0, NET_Z])  # over the line, 15 uu before it counts
    now.ball.velocity[0] = torch.tensor([0.0, 3000.0, 0.0])
    assert pay(rewards.VelocityBallToGoal(), now) == [0.5, -0.5]


def test_ball_to_goal_distance() -> None:
    now = game()
    now.ball.position[0] = torch.tensor([0.0, 880.0, NET_Z])
    # 5120 and 6880 from the two nets: exp(-1) and exp(-1.34375)
    assert pay(rewards.BallToGoalDistance(), now) == [0.36788, 0.26087]


def test_strong_hit_is_the_change_of_the_balls_velocity() -> None:
    before, now = game(), game()
    before.ball.velocity[0] = torch.tensor([1000.0, 0.0, 0.0])
    now.ball.velocity[0] = torch.tensor([1000.0, 1800.0, 2400.0])
    now.events.touches[0, 1] = 1
    assert pay(rewards.StrongHit(), now, before) == [0, 0.5]  # (0, 1800, 2400) is 3000 long


def shot(speed_before: float, speed: float) -> tuple[GameState, GameState]:
    """Both cars touch a ball that is (-3000, 4000, 0) from blue's target: four fifths of the speed along Y count."""
    before, now = game(), game()
    now.ball.position[0] = torch.tensor([3000.0, 2000.0, NET_Z])
    before.ball.velocity[0, 1], now.ball.velocity[0, 1] = speed_before, speed
    now.events.touches.fill_(1)
    return now, before


def test_basic_shot_is_the_speed_toward_the_goal_that_a_touch_adds() -> None:
    assert pay(rewards.BasicShot(), *shot(1000, 3500)) == [0.33333, 0]  # (2800 - 800) / 6000; orange's goal is the other
    assert pay(rewards.BasicShot(), *shot(-3000, 500)) == [0.06667, 0]  # 400 / 6000: stopping the ball is no shot
    assert pay(rewards.BasicShot(), *shot(3500, 1000)) == [0, 0]
    now, before = shot(1000, 3500)
    now.events.touches.fill_(0)
    assert pay(rewards.BasicShot(), now, before) == [0, 0]


def test_touch_toward_goal_is_the_square_of_the_change_that_a_touch_makes() -> None:
    third = 2000 / 6000  # four fifths of 2500
    orange = -2500 * 8000 / 8544.0037 / 6000  # orange's target is (-3000, -8000, 0) from the ball
    assert pay(rewards.TouchTowardGoal(), *shot(1000, 3500)) == [round(third**2, 5), round(-(orange**2), 5)]
    assert pay(rewards.TouchTowardGoal(power=1.0), *shot(1000, 3500)) == [round(third, 5), round(orange, 5)]
    assert pay(rewards.TouchTowardGoal(power=3.0), *shot(1000, 3500))[0] == round(third**3, 5)
    assert pay(rewards.TouchTowardGoal(), *shot(3500, 1000))[0] == round(-(third**2), 5), "sent back: a minus"
    assert pay(rewards.TouchTowardGoal(), *shot(-3000, -500))[0] == round(third**2, 5), "clearing pays as much as shooting"
    now, before = shot(1000, 3500)
    now.events.touches.fill_(0)
    assert pay(rewards.TouchTowardGoal(), now, before) == [0, 0]


def test_jump_shot_needs_a_car_in_the_air() -> None:
    now, before = shot(1000, 3500)
    assert pay(rewards.JumpShot(), now, before) == [0, 0]
    now.cars.on_ground[0, 0] = False
    assert pay(rewards.JumpShot(), now, before) == [0.33333, 0]


def test_touch_height() -> None:
    now = game()
    now.events.touches[0, 0] = 1
    now.ball.position[0, 2] = 1068.575  # half-way from 93.15 to 2044
    assert pay(rewards.TouchHeight(), now) == [0.5, 0]
    now.ball.position[0, 2] = 91.25
    assert pay(rewards.TouchHeight(), now) == [0, 0]


def test_velocity_of_the_player_to_the_ball() -> None:
    now = game()
    now.ball.position[0] = torch.tensor([300.0, 400.0, 0.0])
    now.cars.velocity[0, 0] = torch.tensor([0.0, 1150.0, 0.0])
    now.cars.velocity[0, 1] = torch.tensor([0.0, -1150.0, 0.0])
    assert pay(rewards.VelocityPlayerToBall(), now) == [0.4, -0.4]  # 0.8 x 1150 / 2300
    assert pay(rewards.VelocityPlayerToBall(leaving=0.25), now) == [0.4, -0.1]
    assert pay(rewards.VelocityPlayerToBall(leaving=0.0), now) == [0.4, 0]


def test_kickoff_pays_until_the_ball_leaves_the_middle() -> None:
    now = game()
    now.cars.position[0] = torch.tensor([[0.0, -3000.0, 0.0], [0.0, 3000.0, 0.0]])
    now.cars.velocity[0, 0, 1] = 2300
    assert pay(rewards.Kickoff(), now) == [1, 0]
    now.ball.position[0, 1] = 50
    assert pay(rewards.Kickoff(), now) == [0, 0]


def test_face_ball() -> None:
    now = game()
    now.ball.position[0] = torch.tensor([300.0, 400.0, 0.0])
    now.cars.rotation[0, 1] = torch.diag(torch.tensor([-1.0, -1.0, 1.0]))
    assert pay(rewards.FaceBall(), now) == [0.6, -0.6]


def test_align_ball_goal() -> None:
    now = game()
    now.cars.position[0, 0] = torch.tensor([4500.0, 0.0, NET_Z])
    now.cars.position[0, 1] = torch.tensor([0.0, 3000.0, NET_Z])
    now.ball.position[0] = torch.tensor([4800.0, 400.0, NET_Z])
    # Blue: ball along (0.6, 0.8), other net along (-0.6, 0.8): 0.28; from its own net along (0.6, 0.8): 1. Half of each: 0.64.
    # Orange: the ball is (4800, -2600) away, 5458.938 long; both nets lie along -Y: 2600 / 5458.938.
    assert pay(rewards.AlignBallGoal(), now) == [0.64, 0.47628]
    assert pay(rewards.AlignBallGoal(offense=1.0, defense=0.0), now) == [0.28, 0.47628]


def test_closest_to_ball_compares_cars_that_play() -> None:
    now = game(3, 1)
    now.cars.position[0, :, 0] = torch.tensor([500.0, -300.0, 100.0, 50.0])
    now.cars.is_demoed[0, 2] = True
    now.cars.present[0, 3] = False
    assert pay(rewards.ClosestToBall(), now) == [0, 1, 0, 0]


def test_speed_in_air_and_save_boost() -> None:
    now = game()
    now.cars.velocity[0, 0] = torch.tensor([690.0, 920.0, 0.0])  # 1150 long
    now.cars.on_ground[0, 1] = False
    now.cars.boost[0] = torch.tensor([25.0, 100.0])
    assert pay(rewards.Speed(), now) == [0.5, 0]
    assert pay(rewards.InAir(), now) == [0, 1]
    assert pay(rewards.SaveBoost(), now) == [0.5, 1]


def test_collect_boost_needs_a_pad() -> None:
    before, now = game(2, 1), game(2, 1)
    before.cars.boost[0] = torch.tensor([10.0, 10.0, 50.0])
    now.cars.boost[0] = torch.tensor([22.0, 33.0, 45.0])  # a small pad; a respawn; a pad, but more was burnt
    now.events.small_pads[0] = torch.tensor([1, 0, 1])
    assert pay(rewards.CollectBoost(), now, before) == [0.12, 0, 0]


def test_landing_pays_the_share_of_the_speed_that_is_kept() -> None:
    before, now = game(5, 1), game(5, 1)
    before.cars.on_ground.fill_(False)
    before.cars.air_time[0] = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.4, 1.0])
    before.cars.velocity[0] = torch.tensor(
        [[1000.0, 0, -800], [0, 0, -900], [1500, 0, -500], [1000, 600, 0], [500, 0, 0], [500, 0, 0]])
    now.cars.velocity[0] = torch.tensor([[800.0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 540, 0], [500, 0, 0], [500, 0, 0]])
    now.cars.rotation[0, 3] = torch.tensor([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # on a wall, roof to +X
    before.cars.is_demoed[0, 5] = True
    # 800 / 1000; a fall straight down: 300 / 300; a full stop: 300 / 1500; 540 / 600 along the wall; a hop; a respawn
    assert pay(rewards.Landing(), now, before) == [0.8, 1, 0.2, 0.9, 0, 0]
    assert pay(rewards.Landing(), now, now) == [0, 0, 0, 0, 0, 0]


class Stepped:
    """A reward that is given one state after the other, in two arenas; an episode begins with the first state."""

    def __init__(self, reward: Reward, first: GameState):
        self.reward, self.last = reward, first.clone()
        reward.bind(first)
        self.begin([True, True])

    def begin(self, arenas: list[bool]) -> None:
        self.reward.begin(self.last, torch.tensor(arenas))

    def step(self, scene: GameState) -> list[float]:
        """The reward of the first car of each arena."""
        paid = self.reward(scene, self.last, scene.events)
        self.last = scene.clone()
        return approx_list(paid[:, 0])


def test_recovery_pays_back_what_falling_on_the_roof_costs() -> None:
    wheels = game(arenas=2)
    air, roof = wheels.clone(), wheels.clone()
    air.cars.on_ground.fill_(False)
    roof.cars.on_ground.fill_(False)
    roof.cars.has_contact.fill_(True)
    roof.cars.contact_normal[..., 2] = 1
    roof.cars.rotation.copy_(torch.diag(torch.tensor([1.0, -1.0, -1.0])))
    stepped = Stepped(rewards.Recovery(), wheels)
    assert stepped.step(air) == [0, 0]
    assert stepped.step(roof) == [-1, -1]
    assert stepped.step(roof) == [0, 0]  # still there
    assert stepped.step(air) == [0, 0]  # jumps off its roof
    stepped.begin([False, True])  # another episode, in the air
    assert stepped.step(wheels) == [1, 0]
    stepped.step(roof)
    stepped.begin([False, True])  # on the roof from the beginning: nothing to pay back
    assert stepped.step(wheels) == [1, 1]
    demolished = roof.clone()
    demolished.cars.is_demoed.fill_(True)
    stepped.step(roof)
    stepped.step(demolished)
    assert stepped.step(wheels) == [0, 0]  # a respawn is no recovery


def test_wavedash_pays_the_speed_that_a_flip_into_the_ground_adds() -> None:
    air = game(arenas=2)
    air.cars.on_ground.fill_(False)
    air.cars.velocity.copy_(torch.tensor([1000.0, 0.0, -300.0]))
    flip, ground = air.clone(), game(arenas=2)
    flip.cars.is_flipping.fill_(True)
    flip.cars.has_flipped.fill_(True)
    flip.cars.flip_time.fill_(0.05)
    flip.cars.velocity.copy_(torch.tensor([1500.0, 0.0, -300.0]))
    ground.cars.velocity.copy_(torch.tensor([1400.0, 0.0, 0.0]))

    stepped = Stepped(rewards.Wavedash(), air)
    assert stepped.step(flip) == [0, 0]
    stepped.begin([False, True])  # there, another episode begins in a flip at 1500 uu/s
    assert stepped.step(ground) == [0.8, 0]  # 1400 - 1000 of 500

    stepped = Stepped(rewards.Wavedash(), air)
    stepped.step(flip)
    late = flip.clone()
    late.cars.flip_time.fill_(0.4)
    stepped.step(late)
    assert stepped.step(ground) == [0, 0]  # an ordinary flip, long ago


def test_wavedash_sees_a_flip_that_begins_and_lands_within_one_step() -> None:
    air = game(arenas=2)
    air.cars.on_ground.fill_(False)
    air.cars.velocity.copy_(torch.tensor([1000.0, 0.0, -300.0]))
    ground = game(arenas=2)
    ground.cars.velocity.copy_(torch.tensor([1250.0, 0.0, 0.0]))
    ground.cars.controls[0, :, CONTROLS.index("jump")] = 1
    ground.cars.controls[..., CONTROLS.index("pitch")] = -1
    assert Stepped(rewards.Wavedash(), air).step(ground) == [0.5, 0]  # 250 of 500; the second did not press jump
    ground.cars.controls[..., CONTROLS.index("pitch")] = 0
    assert Stepped(rewards.Wavedash(), air).step(ground) == [0, 0]  # a double jump


def test_flip_reset_needs_a_used_flip_and_the_ball_at_the_wheels() -> None:
    before, now = game(6, 1), game(6, 1)
    for state in (before, now):
        state.cars.on_ground.fill_(False)
    before.cars.has_flipped[0] = torch.tensor([True, True, True, True, False, False, True])
    before.cars.air_time_since_jump[0, 5] = 1.3  # too late to use it
    now.cars.position[0] = torch.tensor(
        [[0.0, 0, 120], [0, 0, -120], [0, 0, 210], [120, 0, 20], [0, 0, 120], [0, 0, 120], [0, 0, 120]])
    now.cars.position[..., 2] += 1000
    now.ball.position[0, 2] = 1000
    now.cars.has_flipped[0, 6] = True
    # The cars in turn: reset; ball above the roof; too far; ball beside the car; never used; timed out and reset; not reset.
    assert pay(rewards.FlipReset(), now, before) == [1, 0, 0, 0, 0, 1, 0]
    now.cars.position[..., 2] -= 900
    now.ball.position[0, 2] -= 900
    assert pay(rewards.FlipReset(), now, before) == [0] * 7  # a ball on the ground, cars at 220


def test_aerial_distance_pays_height_first_and_then_how_far_the_ball_was_carried() -> None:
    flight = game(1, 2, arenas=2)
    flight.cars.on_ground.fill_(False)
    flight.cars.position[..., 2] = 1280
    flight.cars.present[:, 2] = False
    flight.events.touches[:, 2] = 1  # means nothing in an empty seat
    touch = flight.clone()
    touch.events.touches[:, 0] = 1
    farther = flight.clone()
    farther.ball.position[:, 1] = 1000
    far_touch = touch.clone()
    far_touch.ball.position[:, 1] = 1536

    stepped = Stepped(rewards.AerialDistance(), flight)
    assert stepped.step(touch) == [0.2, 0.2]  # (1280 - 256) / 5120
    assert stepped.step(farther) == [0, 0]
    stepped.begin([False, True])
    assert stepped.step(far_touch) == [0.3, 0.2]  # 1536 / 5120; there, the first touch of an episode
    assert stepped.step(far_touch) == [0, 0]  # again, and the ball has not moved
    stolen = farther.clone()
    stolen.events.touches[:, 1] = 1
    stepped.step(stolen)
    assert stepped.step(far_touch) == [0.2, 0.2]  # from the beginning
    landed = farther.clone()
    landed.cars.on_ground.fill_(True)
    landed.events.touches.fill_(1)
    assert stepped.step(landed) == [0, 0]
    assert stepped.step(far_touch) == [0.2, 0.2]


def test_demolished_cars_get_events_only_and_empty_seats_nothing() -> None:
    now = game(2, 1)
    now.cars.is_demoed[0, 0] = True
    now.cars.present[0, 1] = False
    now.game.goal.fill_(0)
    now.cars.velocity.fill_(500)
    now.cars.velocity[0, 1] = torch.nan  # what lies in an empty seat means nothing
    assert pay(rewards.Goal(), now) == [1, 0, 0]
    assert pay(rewards.Speed(), now) == [0, 0, 0.37653]  # sqrt(3) x 500 / 2300
