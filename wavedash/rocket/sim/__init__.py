"""The batched simulator: Rocket League physics in Warp kernels, on a CPU or a GPU.

`tick.py` lists the stages of a tick in their order; each mechanic has a file of its own. Everything is in the game's units (uu,
seconds, radians).
"""
from wavedash.rocket.sim.package import start_warp

start_warp()
