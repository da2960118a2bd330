"""Debug switches (`debug.actions=true`, `debug.all=true`): reports about the first iterations of a run, to find its mistakes.

Each switch is a listener in a file of its own. They look between iterations at what is there, and play a few steps in
environments of their own (`trial.py`); the training is the same with and without them, bit for bit. What only one kind of
environment can say is asked of it, `Kind.debug_report`.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wavedash.config import DebugConfig
    from wavedash.ppo.listener import Listener
    from wavedash.runs.folder import RunFolder

REPORTS = {
    "actions": "wavedash.debug.actions:Actions",
    "learning": "wavedash.debug.learning:Learning",
    "checkpoints": "wavedash.debug.checkpoints:Checkpoints",
    "starts": "wavedash.debug.starts:Starts",
    "rewards": "wavedash.debug.rewards:Rewards",
}
"""The listener of each switch, imported where it is on"""


def listeners(config: DebugConfig, run: RunFolder) -> list[Listener]:
    """Makes the listeners of the switches that are on."""
    paths = [REPORTS[switch].split(":") for switch in config.switches]
    return [getattr(importlib.import_module(module), name)(run, config.iterations) for module, name in paths]
