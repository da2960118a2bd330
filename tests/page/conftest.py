"""One browser for all tests of a process."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.page.browser import Watched, launched


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Watched]]:
    """Opens addresses in pages of their own: `open_page(address, width=390, color_scheme="light")`. At the end of the test
    nothing may have gone wrong in any of them, but for what the test has taken out of `wrong`."""
    contexts, pages = [], []

    def open_one(address: str, width: int = 640, height: int = 400, **options: Any) -> Watched:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        pages.append(Watched(contexts[-1].new_page()))
        return pages[-1].open(address)

    yield open_one
    for context in contexts:
        context.close()
    assert [page.wrong for page in pages] == [[] for _ in pages]
