"""The stage: a process that plays a game, or a walk, for the page.

`process.py` is what runs in the process, `protocol.py` how it talks to the server, `base.py` what a stage of any kind does.
"""
