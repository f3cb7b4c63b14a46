"""Chromium with the page of a server: countries, and some names that pages find hard to show."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.serving.live_server import served

import nodepiece
from nodepiece.serving.settings import ServeSettings

pytest.importorskip("playwright", reason="no playwright here: pip install 'nodepiece[dev]'")
from playwright.sync_api import Browser, Page, expect, sync_playwright

expect.set_options(timeout=20_000)  # milliseconds; the first explanation compiles kernels

MARKUP = "<script>alert(1)</script>"
SLASH = "either/or?&#%"
LONG = "long name " * 1000  # 10 kB
ARGUMENTS = (
    "--no-sandbox",  # containers run tests as root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}
SMALL = ("training.epochs=4", "training.validate_every=4", "encoder.dim=32", "graph.layers=1")


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a writable server of two runs; only the first is calibrated."""
    folder = tmp_path_factory.mktemp("page")
    plain = nodepiece.train("countries", folder / "plain", overrides=SMALL, device="cpu")
    hard = [(name, "borders", "Libya") for name in (MARKUP, SLASH, LONG)]
    nodepiece.update_run(plain, add=hard)
    run = nodepiece.load(shutil.copytree(folder / "plain", folder / "countries"))
    nodepiece.calibrate_run(run)
    with served(run, plain, settings=ServeSettings(writable=True)) as found:
        yield found


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium here: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@dataclass
class Visit:
    """One page in a browser, and what went wrong in it."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)  # errors in the console, dialogs, requests
    expected: tuple[str, ...] = ()  # parts of complaints that belong to the test

    def open(self, place: str = "") -> Page:
        """Open a place such as "node?name=Libya", and wait until everything is there."""
        self.page.goto(f"{self.address}/" + (f"#/{place}" if place else ""))
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until everything is there, also after a change of the address."""
        self.page.evaluate("() => new Promise(requestAnimationFrame)")
        expect(self.page.locator("main[data-state=ready]")).to_be_attached()

    def unexpected(self) -> list[str]:
        return [each for each in self.complaints if not any(part in each for part in self.expected)]


def visit_of(browser: Browser, address: str, **options: Any) -> Visit:
    options = {"viewport": DESKTOP, "color_scheme": "light"} | options
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(15_000)
    visit = Visit(page, address)
    note = visit.complaints.append
    page.on("console", lambda line: note(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: note(str(error)))
    page.on("dialog", lambda dialog: note(f"dialog {dialog.message}"))
    page.on("request", lambda each: None if each.url.startswith(address) else note(each.url))
    return visit


@pytest.fixture
def visit(chromium: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A page of its own for a test, which fails if anything in it complains."""
    options = getattr(request, "param", {})
    visit = visit_of(chromium, address, **options)
    yield visit
    visit.page.context.close()
    assert visit.unexpected() == []
