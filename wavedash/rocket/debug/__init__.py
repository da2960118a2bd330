"""What the debug switches say about Rocket League: controls and what comes of them, beginnings of episodes, what rewards pay.

Everything here is found in arenas of their own, apart from the training.
"""
from wavedash.rocket.debug.actions import examine_actions
from wavedash.rocket.debug.rewards import examine_rewards
from wavedash.rocket.debug.starts import examine_starts

REPORTS = {"actions": examine_actions, "rewards": examine_rewards, "starts": examine_starts}
"""The function of each switch that Rocket League has something to say about"""
