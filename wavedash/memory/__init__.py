"""Memory that fits: what a run needs (estimate.py), what a machine has (hardware.py), and the numbers that `auto` means there
(choice.py)."""
