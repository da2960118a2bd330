"""The names that scripts import from `rlgym_ppo.util`. Worker processes import it, so it must not import torch."""
from wavedash.compat.rlgym_ppo.util.kbhit import KBHit
from wavedash.compat.rlgym_ppo.util.metrics_logger import MetricsLogger
from wavedash.compat.rlgym_ppo.util.rlgym_v2_gym_wrapper import RLGymV2GymWrapper
from wavedash.compat.rlgym_ppo.util.running_stats import WelfordRunningStat

__all__ = ["KBHit", "MetricsLogger", "RLGymV2GymWrapper", "WelfordRunningStat"]
