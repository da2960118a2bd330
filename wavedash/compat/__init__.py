"""Other libraries' interfaces: scripts that were written for them run here with another import."""
