"""Rocket League: the game's state, two simulators of it, and the parts that training tasks are made of."""
