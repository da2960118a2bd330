"""A module that cannot be imported, for tests of the message that a user then gets."""
raise ValueError("written by half")
