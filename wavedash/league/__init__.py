"""Who plays against whom: players of any kind by name, and opponents in training."""
