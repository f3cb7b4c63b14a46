"""Nodes on the page: search, pieces, facts."""

from playwright.sync_api import expect
from tests.serving.page.visit import Visit, options


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


def test_a_run_that_classifies_nodes_shows_their_classes_and_asks_for_no_facts(
    visit: Visit,
) -> None:
    page = visit.open("node?run=classes")
    page.locator(".chip").first.click()
    expect(page.locator(".classes .answer").first).to_contain_text("%")
    expect(page.get_by_role("link", name="Ask", exact=True)).to_have_count(0)
    assert page.locator("a.relation").count() == 0
