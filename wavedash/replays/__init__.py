"""Replays of Rocket League: reading them, sorting out what is no play, states to start from, demonstrations."""
