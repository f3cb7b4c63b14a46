"""What holds for all views of the page: names, runs, keyboard, phone, colours, errors."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.serving.page.visit import ATLANTIS, LONG, MARKUP, PHONE, SLASH, Visit, hash_of, options

PLACES: tuple[str, ...] = (
    "",
    "ask?head=Libya&relation=borders&explain=Egypt",
    "ask?head=Libia&relation=borders",
    "ask?head=Libya&relation=borders&tail=Chad",
    "node",
    "node?name=Libya",
    ATLANTIS,
    "map",
)


@pytest.mark.parametrize("name", [MARKUP, SLASH, LONG], ids=["markup", "slash", "long"])
def test_any_name_is_shown_as_text(visit: Visit, name: str) -> None:
    page = visit.open("node")
    field = page.get_by_role("combobox", name="Find a node")
    field.fill(name[:30])
    options(page).first.click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text(name[:25])
    expect(page.locator("dl.facts")).to_contain_text("Libya")
    page.locator("a.relation").first.click()
    expect(page.locator(".results .asked")).to_contain_text(name[:25])
    visit.settle()
    assert page.locator("main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_another_run_is_selected_and_stays_in_links(visit: Visit) -> None:
    page = visit.open("ask?head=Libya&relation=borders")
    page.get_by_role("combobox", name="Run").select_option("plain")
    expect(page.locator("#about")).to_contain_text("Run plain")
    expect(page.get_by_text("Scores, higher is better.")).to_be_visible()
    page.get_by_role("link", name="Add facts").click()
    assert "run=plain" in hash_of(page)


def test_a_run_that_is_not_here_is_answered_with_those_that_are(visit: Visit) -> None:
    page = visit.open("node?run=gone&name=Libya")
    expect(page.get_by_role("alert")).to_contain_text("There is no run gone here.")
    page.get_by_role("alert").get_by_role("link", name="plain").click()
    expect(page.locator("#about")).to_contain_text("Run plain")


def test_the_keyboard_reaches_an_answer_and_its_explanation(visit: Visit) -> None:
    page = visit.open("ask")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    head = page.get_by_role("combobox", name="Head")
    expect(head).to_be_focused()
    head.fill("Liby")
    expect(options(page).first).to_contain_text("Libya")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".results .asked")).to_contain_text("Libya")
    visit.settle()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.answer')"):
            break
    page.keyboard.press("Enter")
    expect(page.locator(".reasons h2")).to_be_focused()


@pytest.mark.parametrize("visit", [{"viewport": PHONE}], indirect=True)
def test_no_view_scrolls_sideways_on_a_phone(visit: Visit) -> None:
    visit.expected = ("404",)
    for place in PLACES:
        page = visit.open(place)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], place


def serious(page: Page) -> list[str]:
    """What an accessibility check finds."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html']}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def test_an_accessibility_check_finds_nothing_serious(visit: Visit) -> None:
    visit.expected = ("404",)
    for place in PLACES:
        assert serious(visit.open(place)) == [], place


@pytest.mark.parametrize("visit", [{"color_scheme": "dark"}], indirect=True)
def test_nor_does_it_in_dark(visit: Visit) -> None:
    for place in ("", "node?name=Libya", ATLANTIS, "map"):
        assert serious(visit.open(place)) == [], place


@pytest.mark.parametrize("visit", [{"color_scheme": "dark"}], indirect=True)
def test_dark_is_taken_from_the_system_and_the_button_changes_it(visit: Visit) -> None:
    page = visit.open("node?name=Libya")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Use light colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.reload()
    expect(page.get_by_role("button", name="Use dark colours")).to_be_visible()


@pytest.mark.parametrize("visit", [{"reduced_motion": "reduce"}], indirect=True)
def test_nothing_moves_where_the_system_asks_for_that(visit: Visit) -> None:
    page = visit.open()
    page.evaluate("document.querySelector('main').append(document.createElement('p'))")
    page.evaluate("document.querySelector('main').lastChild.className = 'waiting'")
    assert page.evaluate("document.getAnimations().length") == 0


def test_a_server_that_does_not_answer_is_a_sentence_with_a_way_on(visit: Visit) -> None:
    visit.expected = ("ERR_FAILED",)
    page = visit.open("node")
    page.route("**/v1/**", lambda route: route.abort())
    page.get_by_role("link", name="Libya", exact=True).or_(
        page.locator(".chip").first
    ).first.click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    page.unroute("**/v1/**")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("figure.pieces")).to_be_visible()
