"""Where the names of nodes are in a picture of a map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

MAX_NAMES = 24  # in a picture
MAX_LETTERS = 28  # of a name
MAX_COVERED = 3  # nodes below a name
LETTER_POINTS = 8.5  # the size of the letters
LETTER_WIDTH, LINE_HEIGHT = 0.6, 1.3  # in sizes of letters
GAP = 0.07  # between a node and its name, in inches


@dataclass(frozen=True)
class Label:
    """A name and the box around it, in the units of the map."""

    text: str
    centre: tuple[float, float]
    size: tuple[float, float]


def place_names(
    names: Sequence[str],
    positions: np.ndarray,  # (num_nodes, 2), around 0
    nodes: Sequence[int],  # whose names are wanted, the most important first
    *,
    units: float,  # of the map, in an inch
    ground: tuple[float, float],  # width and height of the map
) -> list[Label]:
    """The names that fit: beside, above or below their node, where they cover the fewest nodes.

    A name that would cover another one, a node whose name is shown, or more than MAX_COVERED
    nodes is left out.
    """
    kept: list[Label] = []
    named: list[int] = []
    for node in nodes:
        found = []
        for label in labels_around(names[node], positions[node].tolist(), units):
            inside = np.abs(positions - label.centre) < np.divide(label.size, 2)
            covered = np.flatnonzero(inside.all(axis=1))
            is_free = not np.isin(covered, named).any() and not any(
                overlap(label, other) for other in kept
            )
            if is_free and is_within(label, ground) and len(covered) <= MAX_COVERED:
                found.append((len(covered), label))
        if found and len(kept) < MAX_NAMES:
            kept.append(min(found, key=lambda each: each[0])[1])
            named.append(node)
    return kept


def labels_around(name: str, position: Sequence[float], units: float) -> Iterator[Label]:
    """The name to the right and to the left of a position, above and below it."""
    text = name if len(name) <= MAX_LETTERS else name[: MAX_LETTERS - 1] + "…"
    letter = LETTER_POINTS / 72 * units
    wide, high = (len(text) * LETTER_WIDTH + 0.4) * letter, LINE_HEIGHT * letter
    x, y = position
    for right, up in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        centre = (x + right * (wide / 2 + GAP * units), y + up * (high / 2 + GAP * units))
        yield Label(text, centre, (wide, high))


def is_within(label: Label, ground: tuple[float, float]) -> bool:
    return all(
        abs(centre) + size / 2 <= whole / 2
        for centre, size, whole in zip(label.centre, label.size, ground, strict=True)
    )


def overlap(one: Label, other: Label) -> bool:
    return all(
        abs(a - b) < (first + second) / 2
        for a, b, first, second in zip(one.centre, other.centre, one.size, other.size, strict=True)
    )
