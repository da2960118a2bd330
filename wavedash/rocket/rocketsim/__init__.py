"""RocketSim, the community's simulator, behind our own state: arenas in this process or in worker processes."""
