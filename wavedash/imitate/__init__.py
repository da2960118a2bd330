"""Imitation: a policy learns from demonstrations what others did (behaviour cloning), and PPO may go on from there."""
