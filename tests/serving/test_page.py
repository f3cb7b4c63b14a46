"""The page of `nodepiece serve`, in a real Chromium."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect
from tests.serving.browser import (
    LONG,
    MARKUP,
    PHONE,
    SLASH,
    Visit,
    address,
    chromium,
    visit,
)

__all__ = ["address", "chromium", "visit"]  # fixtures

ATLANTIS = (
    "add?name=Atlantis&fact=Atlantis&fact=borders&fact=Portugal"
    "&fact=Atlantis&fact=has+language&fact=Portuguese"
)
PLACES: tuple[str, ...] = (
    "",
    "ask?head=Libya&relation=borders&explain=Egypt",
    "ask?head=Libia&relation=borders",
)
PLACES += ("ask?head=Libya&relation=borders&tail=Chad", "node", "node?name=Libya", ATLANTIS)
phone = pytest.mark.parametrize("visit", [{"viewport": PHONE}], indirect=True)


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


def test_a_first_visitor_sees_an_example_answered_and_explained(visit: Visit) -> None:
    page = visit.open()
    assert len(answers(page)) == 10
    expect(page.locator(".reasons h2")).to_contain_text(answers(page)[0])
    expect(page.locator("figure.paths svg").first).to_be_visible()


def test_a_node_is_found_as_one_types_and_opened_with_the_keyboard(visit: Visit) -> None:
    page = visit.open("node")
    field = page.get_by_role("combobox", name="Find a node")
    field.press_sequentially("liby")
    first = options(page).first
    expect(first).to_contain_text("Libya")
    field.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant") == first.get_attribute("id")
    field.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Libya")
    expect(page.locator("#live")).to_contain_text("Libya: ")


def test_escape_closes_the_suggestions_and_keeps_what_was_typed(visit: Visit) -> None:
    page = visit.open("node")
    field = page.get_by_role("combobox", name="Find a node")
    field.press_sequentially("liby")
    expect(page.get_by_role("listbox")).to_be_visible()
    field.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    assert field.input_value() == "liby"


def test_a_node_is_drawn_with_its_pieces_and_an_anchor_leads_to_its_own(visit: Visit) -> None:
    page = visit.open("node?name=Libya")
    drawing = page.locator("figure.pieces")
    expect(drawing.locator("a.anchor")).not_to_have_count(0)
    expect(drawing.locator("a.relation")).not_to_have_count(0)
    expect(drawing.locator("ellipse.ring")).not_to_have_count(0)
    anchor = drawing.locator("a.anchor").first
    name = anchor.locator("text").inner_html()
    anchor.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Libya")


def test_names_in_the_drawing_do_not_overlap(visit: Visit) -> None:
    page = visit.open("node?name=Libya")
    boxes = [text.bounding_box() for text in page.locator("a.anchor text").all()]
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            assert one is not None and other is not None
            beside = one["x"] > other["x"] + other["width"] or other["x"] > one["x"] + one["width"]
            assert beside or abs(one["y"] - other["y"]) >= 14


def test_the_facts_of_a_node_are_listed_both_ways(visit: Visit) -> None:
    page = visit.open("node?name=Tripoli")
    facts = page.locator("dl.facts")
    expect(facts).to_contain_text("has capital")
    expect(facts.get_by_role("link", name="Libya", exact=True)).to_be_visible()


def test_a_tail_is_predicted_for_a_head_and_a_relation(visit: Visit) -> None:
    page = visit.open("ask?head=Chad")
    choose(page, "Relation", "bord", "borders")
    expect(page.locator(".results .asked")).to_have_text("Chad borders ?")
    visit.settle()
    assert len(answers(page)) == 10
    shares = [
        bar.evaluate("bar => bar.offsetWidth / bar.parentElement.offsetWidth")
        for bar in page.locator(".results .bar > span").all()
    ]
    texts = page.locator(".results .value").all_inner_texts()
    assert all(text.endswith("%") for text in texts)
    assert shares == sorted(shares, reverse=True)
    expect(page.locator("#live")).to_contain_text("10 answers. First: ")


def test_a_head_is_predicted_for_a_relation_and_a_tail(visit: Visit) -> None:
    page = visit.open("ask?relation=has+language&tail=Arabic")
    expect(page.locator(".results .asked")).to_have_text("? has language Arabic")
    assert len(answers(page)) == 10


def test_a_relation_is_predicted_for_two_nodes(visit: Visit) -> None:
    page = visit.open("ask?head=Libya")
    choose(page, "Tail", "chad", "Chad")
    expect(page.locator(".results .asked")).to_have_text("Libya ? Chad")
    visit.settle()
    assert "borders" in answers(page)


def test_known_answers_are_marked_and_can_be_left_out(visit: Visit) -> None:
    page = visit.open("ask?head=Libya&relation=borders&top=40")
    expect(page.locator(".answer .known").first).to_have_text("✓ known")
    page.get_by_label("Facts that the graph already has").uncheck()
    expect(page.locator(".answer .known")).to_have_count(0)
    assert "known=no" in hash_of(page)


def test_a_whole_fact_gets_its_probability_and_ranks(visit: Visit) -> None:
    page = visit.open("ask?head=Libya&relation=borders&tail=Chad")
    expect(page.locator(".score .big")).to_contain_text("%")
    expect(page.locator(".score")).to_contain_text("The tail ranks")


def test_an_answer_leads_to_its_explanation_drawn_as_paths(visit: Visit) -> None:
    page = visit.open("ask?head=Libya&relation=borders")
    page.locator(".answer").nth(1).click()
    heading = page.locator(".reasons h2")
    expect(heading).to_have_text(f"Why Libya borders {answers(page)[1]}")
    expect(heading).to_be_focused()
    visit.settle()
    expect(page.locator("figure.paths svg path.step").first).to_be_visible()
    expect(page.locator(".reasons .verdict")).to_contain_text("Rank ")
    for part in ("Paths in the graph", "Facts it depends on", "Similar facts in the graph"):
        expect(page.get_by_role("heading", name=part)).to_be_visible()
    page.go_back()
    expect(page.locator(".invitation")).to_be_visible()


def test_an_inverse_relation_is_explained_as_the_fact_that_it_stands_for(visit: Visit) -> None:
    page = visit.open("ask?head=Tripoli&tail=Libya&explain=inverse+of+has+capital")
    expect(page.locator(".reasons h2")).to_have_text("Why Libya has capital Tripoli")


def test_an_unknown_name_is_answered_with_names_to_click(visit: Visit) -> None:
    visit.expected = ("404",)
    page = visit.open("ask?head=Libia&relation=borders")
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("'Libia'")
    problem.get_by_role("link", name="Libya").click()
    expect(page.locator(".results .asked")).to_have_text("Libya borders ?")


def test_facts_about_a_new_node_show_its_pieces_and_predictions_at_once(visit: Visit) -> None:
    page = visit.open("add")
    page.get_by_role("combobox", name="Node, new or known").fill("Atlantis")
    choose(page, "Relation", "bord", "borders")
    choose(page, "Other node", "portu", "Portugal")
    expect(page.locator(".assumed")).to_contain_text("Atlantis borders Portugal")
    visit.settle()
    pieces = page.locator("a.anchor")
    expect(pieces).not_to_have_count(0)
    assert len(answers(page)) == 3
    assert "fact=Portugal" in hash_of(page)


def test_undo_takes_the_last_assumed_fact_back(visit: Visit) -> None:
    page = visit.open(ATLANTIS)
    assert page.locator(".assumed li").count() == 2
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".assumed li")).to_have_count(1)
    page.go_back()
    expect(page.locator(".assumed li")).to_have_count(2)


def test_the_other_node_can_be_the_head(visit: Visit) -> None:
    page = visit.open("add?name=Atlantis")
    page.get_by_role("button", name="Swap").click()
    choose(page, "Relation", "bord", "borders")
    choose(page, "Other node", "portu", "Portugal")
    expect(page.locator(".assumed")).to_contain_text("Portugal borders Atlantis")


def test_committed_facts_are_in_later_answers_and_can_be_undone(visit: Visit) -> None:
    page = visit.open(ATLANTIS)
    page.get_by_role("button", name="Commit to the graph").click()
    expect(page.locator(".notice")).to_contain_text("2 facts committed")
    page.get_by_role("link", name="See the node").click()
    expect(page.locator("dl.facts")).to_contain_text("Portuguese")
    page.go_back()
    visit.open(ATLANTIS.replace("Atlantis", "Mu"))
    page.get_by_role("button", name="Commit to the graph").click()
    page.locator(".notice").get_by_role("button", name="Undo").click()
    expect(page.locator(".assumed li")).to_have_count(2)
    visit.expected = ("404",)
    visit.open("node?name=Mu")
    expect(page.get_by_role("alert")).to_be_visible()


def test_an_example_of_new_facts_is_one_click_away(visit: Visit) -> None:
    page = visit.open("add")
    page.get_by_role("button", name="try an example").click()
    expect(page.locator(".assumed li")).to_have_count(2)


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


@phone
def test_no_view_scrolls_sideways_on_a_phone(visit: Visit) -> None:
    visit.expected = ("404",)
    for place in PLACES:
        page = visit.open(place)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], place


@pytest.mark.parametrize(
    "visit", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=str
)
def test_an_accessibility_check_finds_nothing_serious(visit: Visit) -> None:
    visit.expected = ("404",)
    for place in PLACES:
        found = Axe().run(visit.open(place)).response["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert [(place, each["id"], each["nodes"][0]["html"]) for each in serious] == []


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
