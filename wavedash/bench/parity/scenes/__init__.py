"""The scenes of `wavedash bench parity`: one per mechanic, each a batch of random starts with the controls that are pressed.

All are one against one, so that one pair of simulators plays all of them. A car or ball that has no part in a scene is parked
in a corner of the field. What a scene is about happens within its first 8 ticks wherever that is possible: there it is judged,
before small differences grow.
"""
from wavedash.bench.parity.scene import Scene
from wavedash.bench.parity.scenes import air, ball, bumps, floor, game, hits, roof, walls

SCENES: dict[str, Scene] = {}
"""All scenes by name, in the order of the table."""
for family in (floor, walls, air, roof, ball, hits, bumps, game):
    SCENES |= family.scenes
