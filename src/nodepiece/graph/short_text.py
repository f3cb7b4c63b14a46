"""Short text for people: counts with their nouns, and long names cut."""

MAX_LETTERS = 40  # of a name within a line
MAX_IN_TABLE = 300


def plural(number: int, noun: str) -> str:
    """A number and its noun, such as "1 fact" or "1,440 facts"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def short(name: str) -> str:
    """A name on one line, cut where it is long."""
    line = " ".join(name.split())
    return line if len(line) <= MAX_LETTERS else line[: MAX_LETTERS - 3] + "..."


def in_table(name: str) -> str:
    """A name in a table: as it is, but cut where it would fill a page."""
    return name if len(name) <= MAX_IN_TABLE else name[: MAX_IN_TABLE - 3] + "..."


def few(names: list[str], most: int = 3) -> str:
    """The first names of a list, quoted."""
    return ", ".join(repr(short(name)) for name in names[:most]) + ", ..." * (len(names) > most)
