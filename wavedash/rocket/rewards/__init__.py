"""Rewards: each is a small class that can be copied and changed; `Rewards` combines them."""
from __future__ import annotations

from wavedash.rocket.rewards.ball import (
    BallToGoalDistance,
    BasicShot,
    JumpShot,
    StrongHit,
    TouchHeight,
    TouchTowardGoal,
    VelocityBallToGoal,
    VelocityBallToOwnGoal,
)
from wavedash.rocket.rewards.car import (
    AlignBallGoal,
    ClosestToBall,
    CollectBoost,
    FaceBall,
    InAir,
    Kickoff,
    SaveBoost,
    Speed,
    VelocityPlayerToBall,
)
from wavedash.rocket.rewards.combine import Rewards
from wavedash.rocket.rewards.events import Assist, BoostPickup, Concede, Demo, Demoed, Goal, Save, Shot, Touch
from wavedash.rocket.rewards.mechanics import AerialDistance, FlipReset, Landing, Recovery, Wavedash

__all__ = [
    "AerialDistance", "AlignBallGoal", "Assist", "BallToGoalDistance", "BasicShot", "BoostPickup", "ClosestToBall",
    "CollectBoost", "Concede", "Demo", "Demoed", "FaceBall", "FlipReset", "Goal", "InAir", "JumpShot", "Kickoff", "Landing",
    "Recovery", "Rewards", "Save", "SaveBoost", "Shot", "Speed", "StrongHit", "Touch", "TouchHeight", "TouchTowardGoal",
    "VelocityBallToGoal", "VelocityBallToOwnGoal", "VelocityPlayerToBall", "Wavedash",
]
