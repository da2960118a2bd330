"""The names that scripts import from `rlgym_ppo.batched_agents`."""
from wavedash.compat.rlgym_ppo.batched_agents.batched_agent_manager import BatchedAgentManager

__all__ = ["BatchedAgentManager"]
