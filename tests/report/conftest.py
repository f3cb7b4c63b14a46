"""Pages in a browser, for tests that look at them as a person would."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class Page:
    """A page in a tab of its own, with what went wrong in it and what it asked of a network."""

    def __init__(self, browser: Any, path: Path, scheme: str) -> None:
        self.tab = browser.new_page(
            viewport={"width": 1100, "height": 760}, color_scheme=scheme, offline=True
        )
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.tab.on("console", lambda message: self.errors.append(message.text))
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.goto(path.as_uri())


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Any]:
    opened: list[Page] = []

    def open_page(path: Path, scheme: str = "light") -> Page:
        opened.append(Page(chromium, path, scheme))
        return opened[-1]

    yield open_page
    for page in opened:
        page.tab.close()
