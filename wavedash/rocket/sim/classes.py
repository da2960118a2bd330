"""Classes of cars and arenas: they decide which stages of a tick (`tick.py`) a car or arena takes part in.

On a GPU each class is a list, so that neighboring threads do the same work.
"""
from __future__ import annotations

import warp as wp

FLYING = wp.constant(0)
"""Cars that are out of reach of everything."""
DRIVING = wp.constant(1)
"""Cars that can reach the floor, and nothing else."""
IN_CONTACT = wp.constant(2)
"""All other cars: near a wall, the ball or another car, demolished, or absent."""
NEAR_MESH = wp.constant(3)
"""Cars in a cell of the arena's grid that lists triangles: those within reach decide which of the first three classes it is."""
MESH_IN_REACH = wp.constant(4)
"""Cars near the mesh to which a triangle may be close enough."""
AT_ARENA = wp.constant(5)
"""Cars in contact whose body may touch the arena."""
COLLIDING = wp.constant(6)
"""Arenas in which cars may touch each other or the ball."""
BALL_BOUNCING = wp.constant(7)
"""Arenas in which the ball is far from all cars and touches more of the arena than one plane."""
CLASS_COUNT = wp.constant(8)
NO_CLASS = wp.constant(-1)
"""An arena in which nothing collides."""
