"""The names that scripts and RLBot packages import from `rlgym_ppo.ppo`: networks, which load its files, and PPOLearner."""
from wavedash.compat.rlgym_ppo.ppo.continuous_policy import ContinuousPolicy
from wavedash.compat.rlgym_ppo.ppo.discrete_policy import DiscreteFF
from wavedash.compat.rlgym_ppo.ppo.experience_buffer import ExperienceBuffer
from wavedash.compat.rlgym_ppo.ppo.multi_discrete_policy import MultiDiscreteFF
from wavedash.compat.rlgym_ppo.ppo.ppo_learner import PPOLearner
from wavedash.compat.rlgym_ppo.ppo.value_estimator import ValueEstimator

__all__ = ["ContinuousPolicy", "DiscreteFF", "ExperienceBuffer", "MultiDiscreteFF", "PPOLearner", "ValueEstimator"]
