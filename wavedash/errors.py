"""The base of every error that is the user's to fix, not a bug of ours.

The command line prints a `UserError` as a short message without a traceback; its text names the cause and the next step.
Imports nothing, so that any part can raise one.
"""


class UserError(RuntimeError):
    """Something the user can put right: a wrong key, a missing package, a run that does not exist."""

    shows_cause = False
    """Whether the traceback of what caused it helps the user: where it leads into the user's own code."""
