"""Interfaces of other libraries: scripts that were written for them run here with another import."""
