"""Opens the page in the user's browser, where there is one and a user who sees it."""
from __future__ import annotations

import os
import sys
import webbrowser
from contextlib import suppress


def open_browser(link: str) -> bool:
    """Returns whether a browser was asked. It never fails; it may take long, so call it in a thread of its own."""
    if not _has_screen():
        return False
    with suppress(Exception):  # of all kinds of browsers
        return webbrowser.open(link)
    return False


def _has_screen() -> bool:
    """Whether this process has a terminal, and a screen beside it. Without a screen, `webbrowser` would start a browser of
    text in the terminal; over SSH, it would open where nobody sits."""
    try:
        if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ:
            return False
    except ValueError:  # it is closed
        return False
    return sys.platform in ("win32", "darwin") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
