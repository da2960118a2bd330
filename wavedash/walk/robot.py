"""The robot: the names of its joints, and how it stands. Masses, lengths and limits are in a1.xml."""
from __future__ import annotations

from pathlib import Path

MJCF = Path(__file__).with_name("a1.xml")
LEGS = ("FR", "FL", "RR", "RL")
"""Front and rear, right and left, in the order of Unitree's SDK"""
JOINTS = tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("hip", "thigh", "calf"))
"""The order of joints in states and actions"""
HOME = (0.0, 0.9, -1.8) * len(LEGS)
"""rad: the angles of all joints of a standing robot. Actions are relative to them"""
JOINT_RANGES = ((-0.802851, 0.802851), (-1.0472, 4.18879), (-2.69653, -0.916298)) * len(LEGS)
"""rad: the limits of all joints, as a1.xml has them"""
STANDING = 0.28
"""m: the height of the trunk's centre above flat ground when a robot begins to stand; it settles by 4 cm under its weight"""
KP, KD = 40.0, 0.5
"""N m/rad, N m s/rad: gains of the PD control of all joints, in the middle of the range that Agarwal et al. 2022 draw from"""
MAX_TORQUE = 33.5
"""N m: limit of every joint"""
FOOT = 0.02
"""m: the radius of a foot, as a1.xml has it"""
TOUCH = 1.0
"""N: the force from which a foot is on the ground"""
SUBSTEP = 0.005
"""s: a step of physics"""
SUBSTEPS = 4
"""Steps of physics in a step of the policy, which decides 50 times a second"""
STEP = SUBSTEP * SUBSTEPS
"""s: the time from one decision to the next"""
