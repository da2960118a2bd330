"""How the simulator runs: memory layout, lists of classes, cooperative lanes and kernel launches."""
