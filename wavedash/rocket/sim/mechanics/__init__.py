"""The game's rules for cars, the ball and pads: each mechanic has a file of its own."""
