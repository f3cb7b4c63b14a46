"""The map on the page."""

import re

from playwright.sync_api import Route, expect
from tests.serving.page.visit import Visit, choose, hash_of

# Counts the points that are drawn: every symbol is copied with drawImage of three arguments.
COUNT_LAYERS = """() => {
  window.drawn = 0;
  const { drawImage } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.drawImage = function (...given) {
    window.drawn += Number(given.length === 3);
    return drawImage.apply(this, given);
  };
}"""


def test_the_map_names_the_node_under_the_pointer_and_opens_it(visit: Visit) -> None:
    page = visit.open("map?name=Libya")
    expect(page.locator(".readout")).to_contain_text("Libya")
    box = page.locator(".map canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".readout a")).to_have_text(re.compile(".+"))
    page.locator(".readout a").click()
    expect(page.locator("figure.pieces")).to_be_visible()


def test_the_map_moves_zooms_and_opens_a_node_with_the_keyboard(visit: Visit) -> None:
    page = visit.open("map")
    page.locator(".map canvas").focus()
    for key in ("+", "+", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator("#live")).to_contain_text("Nearest to the middle: ")
    nearest = page.locator(".readout a").inner_text()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(nearest)


def test_a_group_of_the_map_can_be_singled_out(visit: Visit) -> None:
    page = visit.open("map")
    group = page.locator(".legend button").first
    group.click()
    expect(group).to_have_attribute("aria-pressed", "true")
    expect(group).to_be_focused()


def test_the_map_finds_a_node_by_its_name(visit: Visit) -> None:
    page = visit.open("map")
    choose(page, "Find a node on the map", "liby", "Libya")
    expect(page.locator(".readout")).to_contain_text("Libya")
    assert "name=Libya" in hash_of(page)


def test_dragging_moves_the_map_and_does_not_choose_a_node(visit: Visit) -> None:
    page = visit.open("map")
    canvas = page.locator(".map canvas")
    before = canvas.screenshot()
    canvas.hover(position={"x": 500, "y": 300})
    page.mouse.down()
    page.mouse.move(700, 500, steps=4)
    page.mouse.up()
    assert hash_of(page) in ("", "#/map", "#/map?run=countries")
    page.mouse.move(5, 5)
    page.wait_for_timeout(300)
    assert canvas.screenshot() != before


def test_40_000_points_are_searched_at_once_and_not_drawn_for_every_movement(visit: Visit) -> None:
    side = 200

    def many(route: Route) -> None:
        places = [(i % side, i // side) for i in range(side * side)]
        route.fulfill(
            json={
                "version": 0,
                "method": "t-SNE",
                "names": [f"node {x},{y}" for x, y in places],
                "x": [x for x, _ in places],
                "y": [y for _, y in places],
                "groups": [f"group {(x // 20 + y // 20) % 12}" for x, y in places],
            }
        )

    visit.page.route("**/map", many)
    page = visit.open("map?name=node+100,100")
    expect(page.locator(".readout")).to_contain_text("node 100,100")
    page.evaluate(COUNT_LAYERS)
    canvas = page.locator(".map canvas")
    canvas.hover(position={"x": 500, "y": 300})
    expect(page.locator(".readout a")).to_have_text(re.compile(r"node \d+,\d+"))
    page.mouse.down()
    for step in range(10):
        page.mouse.move(600 + 5 * step, 400)
    drawn = page.evaluate("window.drawn")
    page.mouse.up()
    assert drawn <= 2 * side**2  # the layer is moved, and not drawn for each of ten steps
