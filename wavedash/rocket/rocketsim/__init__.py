"""RocketSim, the community's simulator, as a `Simulator` with our state: its arenas run in this process or in workers."""
