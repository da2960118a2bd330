"""What `rlgym_ppo.batched_agents` offers to scripts."""
from wavedash.compat.rlgym_ppo.batched_agents.batched_agent_manager import BatchedAgentManager

__all__ = ["BatchedAgentManager"]
