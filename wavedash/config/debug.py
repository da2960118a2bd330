"""Options of the debug switches."""
from __future__ import annotations

from wavedash.config.section import Positive, Section

SWITCHES = ("actions", "learning", "checkpoints", "starts", "rewards")
"""The switches, in the order in which their reports are made"""


class DebugConfig(Section):
    """Reports about the first iterations of a run that does nothing sensible. Each is printed, and is in `debug/<switch>.txt`
    of the run folder; what looks wrong is a warning. The training is the same with and without them, bit for bit."""

    actions: bool = False
    """What can be chosen, what the first steps chose and what came of it; in Rocket League also which controls the action
    parser covers, and whether their order is right."""
    learning: bool = False
    """How far each update moves the policy, entropy, advantages, values beside their targets, and observations that never
    change or are huge."""
    checkpoints: bool = False
    """When checkpoints are due, whether they are written and can be read back, how large they are and whether they grow."""
    starts: bool = False
    """How the first episodes begin, and how many of them end at once; in Rocket League also cars in the floor, on their roof,
    in the air, and what becomes of them without any control."""
    rewards: bool = False
    """Every term of the reward in the first steps, and the share of each; in Rocket League also what a goal and a drive to the
    ball pay, and whether blue and orange are paid alike."""
    all: bool = False
    """All of these."""
    iterations: Positive = 10
    """How many iterations after the start of the process are looked at, and how many checkpoints. More: surer reports, which
    come later."""

    @property
    def switches(self) -> list[str]:
        """The switches that are on."""
        return [name for name in SWITCHES if self.all or getattr(self, name)]
