"""How the simulator runs: memory layout, lists, lanes and launches."""
