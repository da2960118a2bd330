"""Terrain: the shapes of the ground that ship, and `Ground`, the height maps of all tiles of a task."""
from wavedash.walk.terrain.ground import Ground
from wavedash.walk.terrain.kinds import Terrain
from wavedash.walk.terrain.layout import LAYOUTS, Layout, tile, track

__all__ = ["LAYOUTS", "Ground", "Layout", "Terrain", "tile", "track"]
