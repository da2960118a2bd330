"""`wavedash diagnose`: where the time of an iteration goes, what holds it up, and which setting to change."""

STAGES = {
    "env": ("env",),
    "inference": ("inference",),
    "update": ("gae", "update"),
    "gpu": (),
    "all": ("env", "inference", "gae", "update", "iteration"),
}
"""What the command can be asked for: the stages that are timed."""
