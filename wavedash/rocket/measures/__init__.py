"""Measures: each says how often an attempt at a mechanic succeeds. They pay nothing and change nothing; their rates are metrics
of the environment. `Measures` calls those of a task."""
from __future__ import annotations

from wavedash.rocket.measures.air_dribble import AirDribble
from wavedash.rocket.measures.combine import Measures
from wavedash.rocket.measures.dribble import Dribble
from wavedash.rocket.measures.flip_reset import FlipReset
from wavedash.rocket.measures.jump_challenge import JumpChallenge
from wavedash.rocket.measures.turtle import Turtle
from wavedash.rocket.measures.wall import Wall

__all__ = ["AirDribble", "Dribble", "FlipReset", "JumpChallenge", "Measures", "Turtle", "Wall"]
