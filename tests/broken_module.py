"""A module that cannot be imported, for tests of what a user then sees."""
raise ValueError("written by half")
