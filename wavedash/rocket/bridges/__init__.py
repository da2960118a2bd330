"""Viewers: RocketSimVis and RLViser show games of any Rocket League environment."""
from wavedash.rocket.bridges.rlgym_renderer import RLGymRenderer
from wavedash.rocket.bridges.rlviser import RLViser
from wavedash.rocket.bridges.rocketsimvis import RocketSimVis
from wavedash.rocket.bridges.viewer import Pace, Viewer

__all__ = ["Pace", "RLGymRenderer", "RLViser", "RocketSimVis", "Viewer"]
