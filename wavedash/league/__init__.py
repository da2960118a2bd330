"""Players of any kind by name, for matches and as opponents in training."""
