"""The drawing of paths: well-formed, with names as text, whatever they contain."""

from xml.etree import ElementTree

import pytest

from nodepiece.inference.explanation_svg import draw_paths, short

SVG = "{http://www.w3.org/2000/svg}"
FACT = ("Kenya", "in region", "Africa")
PATHS = [(1.5, [FACT]), (0.5, [("Uganda", "near", "Kenya"), ("Uganda", "in region", "Africa")])]


def texts(drawing: str) -> list[str]:
    root = ElementTree.fromstring(drawing)
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_every_node_and_relation_of_every_path_is_text() -> None:
    found = texts(draw_paths(FACT, PATHS))
    assert found == [
        *("Kenya — in region — Africa", "1.500", "Kenya", "in region", "Africa"),
        *("0.500", "Kenya", "near", "Uganda", "in region", "Africa"),
    ]


def test_arrows_have_the_direction_of_the_facts() -> None:
    root = ElementTree.fromstring(draw_paths(FACT, PATHS))
    tips = [polygon.attrib["points"].split() for polygon in root.iter(f"{SVG}polygon")]
    points_right = [float(tip.split(",")[0]) > float(base.split(",")[0]) for tip, base, _ in tips]
    assert points_right == [True, False, True]


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "\"' onload='x'",
        "a&b]]>",
        "line\nbreak\ttab\x00\x1b\ud800",
        "x" * 10_000,
        "東京都" * 20,
    ],
)
def test_any_name_is_text_and_nothing_else(name: str) -> None:
    fact = (name, name, name)
    drawing = draw_paths(fact, [(1.0, [fact])])
    root = ElementTree.fromstring(drawing.encode())
    allowed = {"svg", "title", "style", "rect", "g", "line", "polygon", "text"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == allowed
    assert not [key for element in root.iter() for key in element.attrib if key.startswith("on")]
    assert len(drawing.split("<text", 2)[1]) < 500


def test_without_paths_it_says_so() -> None:
    assert texts(draw_paths(FACT, []))[-1] == "no path was found"


def test_long_names_keep_their_beginning_and_end() -> None:
    assert short("abcdefghijklmnopqrstuvwxyz", 12) == "abcdefg…wxyz"


def test_of_a_long_iri_the_last_part_is_shown() -> None:
    iri = "http://dbpedia.org/resource/The_Return_of_the_King"
    assert short(iri, 30) == "…/The_Return_of_the_King"
    assert short(f"{iri}/", 30) == "…/The_Return_of_the_King/"
    assert short("/award/nominated_work/award_nominations./nominated_for", 28) == "…/nominated_for"
    assert short(f"{iri}_extended", 20) == "…/The_Return_…tended"
    assert short("http://www.wikidata.org/entity/a", 20) == "http://www.wi…tity/a"


@pytest.mark.parametrize("letter", ["W", "M", "A", "H", "東", "m"])
def test_a_box_is_as_wide_as_its_name(letter: str) -> None:
    """In DejaVu Sans, a wide font, of 13 pixels."""
    pixels = {"W": 12.9, "M": 11.3, "A": 8.9, "H": 9.8, "東": 13.0, "m": 12.7}[letter]
    fact = (letter * 30, "r", "x")
    root = ElementTree.fromstring(draw_paths(fact, [(1.0, [fact])]))
    box = next(each for each in root.iter(f"{SVG}rect") if each.attrib.get("class") == "end")
    assert float(box.attrib["width"]) > 30 * pixels


def test_scores_do_not_reach_the_first_node() -> None:
    root = ElementTree.fromstring(draw_paths(FACT, [(-1234567.891, [FACT]), (1.0, [FACT])]))
    ends = [each for each in root.iter(f"{SVG}rect") if each.attrib.get("class") == "end"]
    assert float(ends[0].attrib["x"]) == float(ends[2].attrib["x"]) > 20 + 6.4 * 12
