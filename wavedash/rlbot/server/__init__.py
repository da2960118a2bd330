"""The match server: plays matches of RLBot bots in RocketSim and speaks the protocol of RLBot v5.

`serving.py` plays a whole match from the start of its bots to its results. `bot_file.py` reads a bot.toml, `process.py` runs
the program of a bot and `program.py` says how it behaves; `hub.py` and `agent.py` talk to it over `channel.py`. `arena.py` has
the cars, `referee.py` the rules.
"""
