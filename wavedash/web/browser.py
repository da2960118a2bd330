"""Opens the page in the user's browser, where there is one and a user who sees it."""
from __future__ import annotations

import os
import sys
import threading
import webbrowser
from contextlib import suppress


def open_soon(link: str) -> None:
    """Opens it from a thread of its own: a browser may take long to start, or fail, and nobody waits for it."""
    if _has_screen():
        threading.Thread(target=_open, args=(link,), daemon=True, name="opens the browser").start()


def _open(link: str) -> None:
    with suppress(Exception):  # of all kinds of browsers
        webbrowser.open(link)


def _has_screen() -> bool:
    """Whether this process has a terminal, and a screen beside it. Without a screen, `webbrowser` would start a browser of
    text in the terminal; over SSH, it would open where nobody sits."""
    try:
        if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ:
            return False
    except ValueError:  # it is closed
        return False
    return sys.platform in ("win32", "darwin") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
