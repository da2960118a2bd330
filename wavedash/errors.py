"""The base of every error that the user can fix, as opposed to a bug.

The command line prints a `UserError` as a short message without a traceback; its text names the cause and the next step.
This file imports nothing, so that any part can raise one.
"""


class UserError(RuntimeError):
    """Something the user can put right: a wrong key, a missing package, a run that does not exist."""

    shows_cause = False
    """Whether the command line prints the traceback of the cause, because it leads into the user's own code."""
