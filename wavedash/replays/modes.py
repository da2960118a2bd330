"""Which mode of the game a file is of. Many modes are played in arenas as large as the standard one: Rumble, Heatseeker, other
balls. Their physics is not that of our simulator, and positions and speeds do not tell. The names of objects do, which a file
lists as text.
"""
from __future__ import annotations

import re

GAME = re.compile(rb"Archetypes\.GameEvent\.GameEvent_(\w+)|\.GameInfo\.GameInfo_(\w+)", re.IGNORECASE)
BALL = re.compile(rb"Archetypes\.Ball\.((?!BallComponent)\w+)", re.IGNORECASE)
PICKUPS = b"Archetypes.SpecialPickups."
STANDARD = ("soccar", "soccarlan", "soccarprivate", "soccarsplitscreen", "season")
STANDARD_BALLS = ("ball_default", "ball_worldcup", "ball_trajectory")
"""A ball that looks otherwise and moves the same, and the one that shows where it will land"""
NAMES = {"items": "Rumble", "basketball": "Hoops", "hockey": "Snow Day", "breakout": "Dropshot", "godball": "Heatseeker",
         "ball_god": "Heatseeker", "ball_puck": "Snow Day"}


def other_mode(data: bytes) -> str:
    """The name of the mode that the content of a file is of, where this is not the standard one; else empty."""
    games = {(event or info).decode().lower() for event, info in GAME.findall(data)}
    balls = {ball.decode().lower() for ball in BALL.findall(data)}
    if others := [*sorted(games - set(STANDARD)), *sorted(balls - set(STANDARD_BALLS))]:
        return NAMES.get(others[0], others[0])
    return "Rumble" if PICKUPS in data else ""
