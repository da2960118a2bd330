"""Phases of a run: what each changes, ramps, when to move on, and the listener that does it."""
