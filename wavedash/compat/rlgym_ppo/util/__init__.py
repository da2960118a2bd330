"""What `rlgym_ppo.util` offers to scripts. Imported by worker processes, so it must not import torch."""
from wavedash.compat.rlgym_ppo.util.kbhit import KBHit
from wavedash.compat.rlgym_ppo.util.metrics_logger import MetricsLogger
from wavedash.compat.rlgym_ppo.util.rlgym_v2_gym_wrapper import RLGymV2GymWrapper
from wavedash.compat.rlgym_ppo.util.running_stats import WelfordRunningStat

__all__ = ["KBHit", "MetricsLogger", "RLGymV2GymWrapper", "WelfordRunningStat"]
