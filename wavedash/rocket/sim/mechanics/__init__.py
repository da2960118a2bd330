"""The game's rules for cars, ball and pads, one file per mechanic."""
