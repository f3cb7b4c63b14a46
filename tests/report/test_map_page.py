"""The page and the pictures of a map."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodepiece.report.map import NodeMap
from nodepiece.report.map_output import draw_map, map_page, write_map

HOSTILE = '</script><img src=x onerror="alert(1)">{{title}}'
NAMES = ["Kenya", "Uganda", "Peru", HOSTILE]


def small_map() -> NodeMap:
    positions = np.array([[-1, 0], [-1, 0.8], [0.5, 0], [1, -0.8]], np.float32)
    group = np.array([0, 0, 1, 2], np.int32)
    is_anchor = np.array([True, False, False, True])
    return NodeMap("t-SNE", NAMES, positions, ["Africa", "A & B", "other"], group, is_anchor, 4)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "map.html"
    write_map(small_map(), path, title="Map of <countries>", grouping="in region")
    return path


def point_at(page: Any, node: int) -> None:
    """Move the mouse to a node."""
    box = page.tab.locator("canvas").bounding_box()
    x, y = small_map().positions[node].tolist()
    half = min(box["width"], box["height"]) / 2 * 0.94
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.tab.mouse.move(middle[0] + x * half, middle[1] - y * half)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hovering_shows_the_name_and_nothing_goes_wrong(
    page: Path, scheme: str, open_page: Callable[..., Any]
) -> None:
    opened = open_page(page, scheme)
    opened.tab.wait_for_selector("canvas[data-milliseconds]")
    point_at(opened, 0)
    assert opened.tab.locator("#tip").inner_text() == "Kenya\nAfrica · a common anchor"
    point_at(opened, 2)
    assert opened.tab.locator("#tip").inner_text() == "Peru\nA & B"
    assert opened.errors == [] and opened.requests == [page.as_uri()]


def test_names_are_shown_as_they_are_and_never_run(
    page: Path, open_page: Callable[..., Any]
) -> None:
    opened = open_page(page)
    opened.tab.wait_for_selector("canvas[data-milliseconds]")
    point_at(opened, 3)
    assert opened.tab.locator("#tip").inner_text().splitlines()[0] == HOSTILE
    assert opened.tab.locator("img").count() == 0
    assert opened.tab.title() == "Map of <countries>"


def test_a_searched_node_is_moved_to_the_middle(page: Path, open_page: Callable[..., Any]) -> None:
    opened = open_page(page)
    opened.tab.fill("#find", "PERU")
    opened.tab.click("#found button")
    box = opened.tab.locator("canvas").bounding_box()
    opened.tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert opened.tab.locator("#tip").inner_text().startswith("Peru")


def test_a_group_that_is_switched_off_is_not_found_by_the_mouse(
    page: Path, open_page: Callable[..., Any]
) -> None:
    opened = open_page(page)
    opened.tab.wait_for_selector("canvas[data-milliseconds]")
    opened.tab.click("text=Africa")
    point_at(opened, 0)
    assert opened.tab.locator("#tip").inner_text() == ""
    assert opened.tab.locator("button[aria-pressed=false]").inner_text() == "Africa\n2"


def test_the_wheel_zooms_around_the_mouse(page: Path, open_page: Callable[..., Any]) -> None:
    opened = open_page(page)
    opened.tab.wait_for_selector("canvas[data-milliseconds]")
    point_at(opened, 1)
    opened.tab.mouse.wheel(0, -200)
    opened.tab.mouse.wheel(0, -200)
    opened.tab.wait_for_timeout(100)
    assert opened.tab.locator("#tip").inner_text().startswith("Uganda")  # still under the mouse
    opened.tab.mouse.move(0, 0)
    point_at(opened, 1)
    assert opened.tab.locator("#tip").inner_text().startswith("Uganda")
    point_at(opened, 0)  # moved away from where it was
    assert opened.tab.locator("#tip").inner_text() == ""


def test_the_name_is_gone_when_the_map_moves_away(
    page: Path, open_page: Callable[..., Any]
) -> None:
    opened = open_page(page)
    opened.tab.wait_for_selector("canvas[data-milliseconds]")
    point_at(opened, 1)
    opened.tab.locator("canvas").press("ArrowLeft")
    assert opened.tab.locator("#tip").inner_text() == ""


def test_forty_thousand_nodes_are_drawn_in_a_fraction_of_a_second(
    tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(0)
    positions = rng.uniform(-1, 1, (40_000, 2)).astype(np.float32)
    names = [f"node {n}" for n in range(40_000)]
    group = rng.integers(0, 3, 40_000).astype(np.int32)
    many = NodeMap("UMAP", names, positions, ["a", "b", "c"], group, group == 3, 50_000)
    (tmp_path / "map.html").write_text(map_page(many, title="Map", grouping="relation"))

    opened = open_page(tmp_path / "map.html")

    canvas = opened.tab.wait_for_selector("canvas[data-milliseconds]")
    opened.tab.mouse.wheel(0, -50)  # the first frame includes compilation
    assert float(canvas.get_attribute("data-milliseconds")) < 300
    assert "40,000 of 50,000 nodes" in opened.tab.locator("aside").inner_text()
    assert opened.errors == []


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_map_is_drawn_as_a_picture(ending: str, tmp_path: Path) -> None:
    write_map(small_map(), tmp_path / f"map.{ending}", title="Map of $x$", grouping="")
    start = (tmp_path / f"map.{ending}").read_bytes()[:5]
    assert start in (b"\x89PNG\r", b"<?xml", b"%PDF-")


def test_a_picture_has_all_nodes_and_names_of_anchors() -> None:
    figure = draw_map(small_map(), title="Map")
    (axes,) = figure.axes
    assert (
        sum(len(np.asarray(each.get_offsets())) for each in axes.collections) == 4 + 2
    )  # and rings
    assert {text.get_text() for text in axes.texts} == {"Kenya", HOSTILE[:27] + "…"}
