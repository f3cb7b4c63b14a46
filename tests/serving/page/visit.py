"""A page in Chromium, and what several tests do with it."""

from dataclasses import dataclass, field

from playwright.sync_api import BrowserContext, Dialog, Locator, Page, ViewportSize, expect

expect.set_options(timeout=30_000)  # milliseconds: other programs may keep the machine busy

MARKUP = "<script>alert(1)</script>"
SLASH = "either/or?&#%"
LONG = "long name " * 1000  # 10 kB
HARD_NAMES = (MARKUP, SLASH, LONG)
PHONE: ViewportSize = {"width": 360, "height": 740}
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
ATLANTIS = (
    "add?name=Atlantis&fact=Atlantis&fact=borders&fact=Portugal"
    "&fact=Atlantis&fact=has+language&fact=Portuguese"
)


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


def visit_of(context: BrowserContext, address: str) -> Visit:
    page = context.new_page()
    page.set_default_timeout(30_000)
    visit = Visit(page, address)
    note = visit.complaints.append

    def refuse(dialog: Dialog) -> None:
        note(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("console", lambda line: note(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: note(str(error)))
    page.on("dialog", refuse)
    page.on("request", lambda each: None if each.url.startswith(address) else note(each.url))
    return visit


def answers(page: Page) -> list[str]:
    return page.locator(".answers").first.locator(".answer .name").all_inner_texts()


def choose(page: Page, label: str, text: str, name: str) -> None:
    """Type into a field and click a suggestion."""
    page.get_by_role("combobox", name=label, exact=True).press_sequentially(text)
    options(page).filter(has_text=name).first.click()


def options(page: Page) -> Locator:
    """What the field with the focus suggests; a list of runs also has options."""
    return page.locator("[role=listbox]:not([hidden]) [role=option]")


def hash_of(page: Page) -> str:
    return str(page.evaluate("location.hash"))
