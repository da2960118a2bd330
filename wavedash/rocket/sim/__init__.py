"""The batched simulator: Rocket League physics in Warp kernels, on a CPU or a GPU.

`tick.py` is one tick of an arena from top to bottom; each mechanic is a function in a file of its own. Everything is in the
game's units (uu, seconds, radians), forces are written as accelerations.
"""
from wavedash.rocket.sim.package import start_warp

start_warp()
