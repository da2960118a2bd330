"""What Ctrl-C does until a run begins; a run installs its own handler, which saves and stops."""
from __future__ import annotations

import signal


def interrupt_at_ctrl_c() -> None:
    """Raise KeyboardInterrupt, so that a command still prints what it has."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_at_ctrl_c() -> None:
    """End the process at once, without a traceback of what was being imported or built: there is nothing to save yet."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
