"""Warp kernels of the sensors, compiled from their text: what they compute for one robot, point or ray."""
