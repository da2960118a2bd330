"""The kinds of parts of a walking task, and their lookup by name."""
from __future__ import annotations

from wavedash.tasks.lookup import Lookup
from wavedash.walk.parts import Action, Command, Ending, Observation, Randomization, Reward, Start

PARTS = Lookup("wavedash.walk.parts", {
    "observation": (Observation, "wavedash.walk.observations"),
    "action": (Action, "wavedash.walk.actions"),
    "command": (Command, "wavedash.walk.commands"),
    "reward": (Reward, "wavedash.walk.rewards"),
    "start": (Start, "wavedash.walk.starts"),
    "ending": (Ending, "wavedash.walk.endings"),
    "randomization": (Randomization, "wavedash.walk.randomize"),
})
