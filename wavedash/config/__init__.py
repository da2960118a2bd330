"""Typed configuration: one model per section, every option with what it does and what happens when it is raised.

This folder must import without torch, so that a mistake in a file is answered at once. Reading YAML, presets and overrides into
these models is in `config_file.py`.
"""
from wavedash.config.curriculum import LimitConfig, PhaseConfig, UntilConfig
from wavedash.config.debug import DebugConfig
from wavedash.config.distill import DistillConfig
from wavedash.config.env import EnvConfig
from wavedash.config.imitate import ImitateConfig, PriorConfig
from wavedash.config.league import OpponentsConfig, RatingConfig
from wavedash.config.policy import EncoderConfig, GSDEConfig, MemoryConfig, PolicyConfig
from wavedash.config.ppo import DecayConfig, PPOConfig, ScheduleConfig
from wavedash.config.recordings import RecordingsConfig
from wavedash.config.rocket import LaneConfig, RocketConfig, TeamSize
from wavedash.config.run import CheckpointConfig, MilestonesConfig, ReportConfig, RunConfig
from wavedash.config.section import AUTO, AutoPositive, Fraction, Named, NonNegative, Positive, Section
from wavedash.config.walk import WalkConfig

__all__ = [
    "AUTO", "AutoPositive", "CheckpointConfig", "DebugConfig", "DecayConfig", "DistillConfig", "EncoderConfig", "EnvConfig",
    "Fraction", "GSDEConfig", "ImitateConfig", "LaneConfig", "LimitConfig", "MemoryConfig", "MilestonesConfig", "Named",
    "NonNegative", "OpponentsConfig", "PPOConfig", "PhaseConfig", "PolicyConfig", "Positive", "PriorConfig", "RatingConfig",
    "RecordingsConfig", "ReportConfig", "RocketConfig", "RunConfig", "ScheduleConfig", "Section", "TeamSize", "UntilConfig",
    "WalkConfig",
]
