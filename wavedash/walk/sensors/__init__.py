"""What a robot sees of its terrain: heights around it (scandots) and depth images, computed on the height map by kernels."""
from wavedash.warp_package import start_warp

start_warp("the sensors of the robot", "pip install 'wavedash[walk]'")
