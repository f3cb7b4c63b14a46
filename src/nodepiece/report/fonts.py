"""Fonts for names in any script: other installed ones for letters that the usual one lacks."""

import unicodedata
from contextlib import suppress
from operator import attrgetter

from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, findSystemFonts, fontManager, get_font
from matplotlib.text import Text

PLACEHOLDERS = "Last Resort High-Efficiency"  # a font of Matplotlib: a box for every letter


def use_installed_fonts(figure: Figure) -> str:
    """Add families to texts whose font lacks letters; returns the letters that no font has.

    Other texts keep their font, so figures without such letters are the same on every machine.
    """
    lacking = {text: letters for text in texts_of(figure) if (letters := letters_lacking(text))}
    families, missing = families_with(set().union(*lacking.values()))
    for text in lacking:
        text.set_fontfamily([*text.get_fontfamily(), *families])
    return "".join(sorted(missing))


def texts_of(figure: Figure) -> list[Text]:
    return [each for each in figure.findobj(Text) if isinstance(each, Text)]


def letters_lacking(text: Text) -> set[str]:
    """The letters of a text that its font lacks; marks without a width are not counted."""
    letters = {
        letter
        for letter in text.get_text()
        if not letter.isascii() and letter.isprintable() and unicodedata.category(letter) != "Mn"
    }
    if not letters:
        return letters
    return letters - letters_in(findfont(text.get_fontproperties()), letters)


def families_with(letters: set[str]) -> tuple[list[str], set[str]]:
    """Installed families with these letters, those with the most first, and letters of none."""
    fonts = regular_fonts() if letters else {}
    found = {name: letters_in(path, letters) for name, path in fonts.items()}
    families: list[str] = []
    missing = set(letters)
    while best := max(found, key=lambda name: len(found[name] & missing), default=""):
        if not found[best] & missing:
            break
        families.append(best)
        missing -= found.pop(best)
    return families, missing


def regular_fonts() -> dict[str, str]:
    """The file of every installed family, also of those that Matplotlib has not listed yet."""
    listed = {entry.fname for entry in fontManager.ttflist}
    for path in set(findSystemFonts()) - listed:
        with suppress(OSError, RuntimeError, ValueError):  # a font that Matplotlib cannot read
            fontManager.addfont(path)
    return {
        entry.name: entry.fname
        for entry in sorted(fontManager.ttflist, key=attrgetter("name", "fname"))
        if (entry.style, entry.weight) == ("normal", 400) and entry.name != PLACEHOLDERS
    }


def letters_in(path: str, letters: set[str]) -> set[str]:
    """Those of some letters that a font has; none if it cannot be drawn at any size."""
    try:
        font = get_font(path)
        known = font.get_charmap() if font.scalable else {}
    except (OSError, RuntimeError, ValueError):  # removed since the list was made, or damaged
        return set()
    return {letter for letter in letters if ord(letter) in known}
