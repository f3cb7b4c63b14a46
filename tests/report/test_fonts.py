"""Names in scripts that the usual font lacks: other installed fonts, or one sentence."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from matplotlib.figure import Figure

from nodepiece.report.fonts import use_installed_fonts
from nodepiece.report.style import new_figure, save_figure

FORMATS = ("png", "svg", "pdf")
FIRST, SECOND, NONE = "\U00010600", "\U00010601", "\U00010602"  # Linear A, which few fonts have


def write_font(path: Path, name: str, letters: str) -> Path:
    """A font whose letters are filled squares."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 800), (800, 800), (800, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square = pen.glyph()
    glyphs = [".notdef", *(f"letter{number}" for number in range(len(letters)))]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(glyphs)
    builder.setupCharacterMap(dict(zip(map(ord, letters), glyphs[1:], strict=True)))
    builder.setupGlyf(dict.fromkeys(glyphs, square))
    builder.setupHorizontalMetrics(dict.fromkeys(glyphs, (900, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": name, "styleName": "Regular"})
    builder.setupOS2(usWeightClass=400)
    builder.setupPost()
    builder.save(path)
    return path


@pytest.fixture
def fonts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The files of fonts that were installed after Matplotlib made its list."""
    listed, found = list(font_manager.fontManager.ttflist), []
    found.append(str(write_font(tmp_path / "one.ttf", "Squares A", FIRST)))
    found.append(str(write_font(tmp_path / "both.ttf", "Squares B", FIRST + SECOND)))
    monkeypatch.setattr("nodepiece.report.fonts.findSystemFonts", lambda: found)
    bundled = matplotlib.get_data_path()
    font_manager.fontManager.ttflist[:] = [e for e in listed if e.fname.startswith(bundled)]
    yield found
    font_manager.fontManager.ttflist[:] = listed


def figure_of(*names: str) -> Figure:
    figure = new_figure(3, 2)
    for place, name in enumerate(names):
        figure.text(0.1, 0.2 + 0.2 * place, name)
    return figure


@pytest.mark.parametrize("ending", FORMATS)
def test_letters_that_no_font_has_are_drawn_without_warnings_and_counted_once(
    ending: str, fonts: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(figure_of(NONE + "a", NONE + "é" + NONE), tmp_path / f"map.{ending}")

    assert (tmp_path / f"map.{ending}").stat().st_size
    if ending == "svg":  # its text is text
        assert NONE in (tmp_path / "map.svg").read_text(encoding="utf-8")
        assert not caplog.messages
    else:
        (sentence,) = caplog.messages
        assert f"map.{ending} has boxes in place of 1 letter, such as {NONE}, which no" in sentence
        assert "install a font" in sentence


def test_a_font_that_has_the_letters_is_used_for_them(fonts: list[str]) -> None:
    figure = figure_of("a" + SECOND + FIRST, "plain", FIRST + NONE)
    usual = matplotlib.rcParams["font.family"]

    assert use_installed_fonts(figure) == NONE

    families = [text.get_fontfamily() for text in figure.texts]
    assert families == [[*usual, "Squares B"], usual, [*usual, "Squares B"]]


def test_with_such_a_font_matplotlib_finds_the_letters(fonts: list[str], tmp_path: Path) -> None:
    figure = figure_of("a" + SECOND)
    with pytest.warns(UserWarning, match="missing from font"):
        figure.savefig(tmp_path / "before.png")
    use_installed_fonts(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(tmp_path / "after.png")


def test_text_that_the_usual_font_has_needs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a line break, or a letter that only changes the one before it."""

    def look() -> list[str]:
        raise AssertionError("fonts were searched")

    monkeypatch.setattr("nodepiece.report.fonts.findSystemFonts", look)
    assert use_installed_fonts(figure_of("São Tomé\nМосква", "☀\ufe0f")) == ""


def test_damaged_and_removed_fonts_are_passed_over(fonts: list[str], tmp_path: Path) -> None:
    (tmp_path / "damaged.ttf").write_bytes(b"no font")
    fonts.append(str(tmp_path / "damaged.ttf"))
    use_installed_fonts(figure_of(NONE))
    entry = font_manager.FontEntry(fname=str(tmp_path / "gone.ttf"), name="Gone", weight=400)
    font_manager.fontManager.ttflist.append(entry)
    assert use_installed_fonts(figure_of(FIRST, NONE)) == NONE
