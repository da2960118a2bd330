"""A real browser for the tests of the page, and a real server to open in it."""
from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
NEEDED = "WAVEDASH_NEEDS_BROWSER"
"""Where this variable is set, a missing program is a failure; .ci/run sets it"""
TOKEN = "token-of-the-browser-tests"


def required(*names: str) -> str:
    """The path of the first of these programs that is installed. Without any, the test is left out, or fails where .ci/run has
    said that it must run."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        said = f"tests of the page are left out: none of {', '.join(names)} is installed"
        if os.environ.get(NEEDED):
            pytest.fail(said)
        pytest.skip(said)
    return found


@contextmanager
def launched() -> Iterator[Any]:
    """A headless Chromium that draws WebGL in software."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--enable-unsafe-swiftshader", "--no-sandbox"]  # Chromium has no sandbox for root, who runs tests in CI
        browser = playwright.chromium.launch(executable_path=required(*NAMES), args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class PageServer:
    """`wavedash watch` in a process of its own, as a user starts it."""

    def __init__(self, root: Path, *words: str) -> None:
        command = [sys.executable, "-m", "wavedash", "watch", *words, "--token", TOKEN, "--no-open"]
        self.root, self.log = root, root / "server.log"
        self._errors = self.log.open("w")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True,
                                        env={**os.environ, "WAVEDASH_RUNS": str(root)})
        assert self.process.stdout is not None
        self.printed: list[str] = []
        for line in self.process.stdout:
            self.printed.append(line)
            if "http://" in line:
                self.address = line[line.index("http://"):].split()[0]
                break
        else:
            raise AssertionError(f"the server did not start: {''.join(self.printed)}{self.log.read_text()}")

    @property
    def origin(self) -> str:
        return self.address.partition("/#")[0]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._errors.close()


class Watched:
    """An open page, and everything that went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("console", lambda message: self.wrong.append(f"console: {message.text}") if message.type == "error" else None)

    def open(self, address: str) -> Watched:
        path, mark, hash_ = address.partition("#")
        self.page.goto(f"{path}{'&' if '?' in path else '?'}quality=low{mark}{hash_}")
        self.until("window.wavedash !== undefined")
        return self

    def state(self, tab: str = "watch") -> Any:
        return self.page.evaluate(f"window.wavedash.state()[{tab!r}]")

    def wait(self, condition: str, seconds: float = 60.0) -> Any:
        """Waits until an expression of `s`, the state of the page, is true, and returns its value."""
        return self.until(f"(() => {{ const s = window.wavedash?.state(); return s && ({condition}); }})()", seconds)

    def until(self, expression: str, seconds: float = 60.0) -> Any:
        """Waits until an expression is true, and returns its value. It is asked from here again and again: playwright's own
        waiting evaluates text inside of the page, which the page's policy forbids."""
        end = time.monotonic() + seconds
        while not (value := self.page.evaluate(expression)):
            if time.monotonic() > end:
                now = self.page.evaluate("JSON.stringify(window.wavedash?.state() ?? null)")
                raise AssertionError(f"this did not become true within {seconds:g} s: {expression}\n{self.wrong}\n{now[:3000]}")
            self.page.wait_for_timeout(50)
        return value

    def picture(self, selector: str = ".picture canvas") -> np.ndarray:
        """[height, width, 3] of the picture, without what lies over it."""
        from PIL import Image

        self.page.evaluate("""(selector) => {
            const canvas = document.querySelector(selector);
            for (const one of document.body.querySelectorAll("*")) if (!one.contains(canvas)) one.style.visibility = "hidden";
        }""", selector)
        shot = self.page.locator(selector).first.screenshot()
        self.page.evaluate("""() => {
            for (const one of document.body.querySelectorAll("*")) one.style.visibility = "";
        }""")
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)
