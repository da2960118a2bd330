"""Car bodies: the numbers that loadouts have for them, and the hitbox that each gives a car."""
from __future__ import annotations

from types import MappingProxyType

USUAL = "octane"
"""The hitbox of a body that is not listed, and of a loadout without one"""
HITBOX_OF_BODY = MappingProxyType({
    **dict.fromkeys((21, 23, 25, 26, 27, 402, 404, 523, 4284), "octane"),
    **dict.fromkeys((29, 403), "dominus"),
    **dict.fromkeys((24, 803), "plank"),
    22: "breakout", 30: "merc",
    **dict.fromkeys((28, 31), "hybrid"),
})
"""Of the bodies that everybody has, and of Fennec (4284) and Batmobile (803)"""
BODY_OF_HITBOX = MappingProxyType({"octane": 23, "dominus": 403, "plank": 24, "breakout": 22, "hybrid": 28, "merc": 30})
"""A body that everybody has, for each hitbox"""
