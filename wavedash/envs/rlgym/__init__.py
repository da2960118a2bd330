"""Environments of RLGym, and those with the older interface that rlgym-ppo takes. RLGym itself need not be installed."""
from wavedash.envs.rlgym.env import RLGymEnv as RLGymEnv
