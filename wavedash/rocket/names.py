"""The kinds of parts of a Rocket League task, and their lookup by name."""
from __future__ import annotations

from wavedash.rocket.parts import Action, Ending, Measure, Observation, Player, Reward, Start
from wavedash.tasks.lookup import Lookup

PARTS = Lookup("wavedash.rocket.parts", {
    "observation": (Observation, "wavedash.rocket.observations"),
    "action": (Action, "wavedash.rocket.actions"),
    "reward": (Reward, "wavedash.rocket.rewards"),
    "start": (Start, "wavedash.rocket.starts"),
    "ending": (Ending, "wavedash.rocket.endings"),
    "measure": (Measure, "wavedash.rocket.measures"),
    "player": (Player, "wavedash.rocket.players"),
})
make, find, shipped, kind_of = PARTS.make, PARTS.find, PARTS.shipped, PARTS.kind_of
