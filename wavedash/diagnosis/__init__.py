"""`wavedash diagnose` measures where the time of an iteration goes, finds the bottleneck and suggests settings to change."""

STAGES = {
    "env": ("env",),
    "inference": ("inference",),
    "update": ("gae", "update"),
    "gpu": (),
    "all": ("env", "inference", "gae", "update", "iteration"),
}
"""The stages that are timed, by the argument of the command"""
