"""A drawing of paths from a head to a tail, as SVG: one row for each path, names as text.

It has no script and loads nothing; its colours follow the light or dark scheme of the viewer.
"""

from collections.abc import Sequence
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

from nodepiece.tokenizer.changing_graph import NamedFact

ROW, TOP, MARGIN = 64, 56, 20
NODE_HEIGHT, CHARACTER, MAX_NAME = 30, 7.2, 30
GAP_PADDING, RELATION_CHARACTER, MAX_RELATION = 34, 6.4, 28
MIN_PART = 3  # letters of the last part of an IRI that can stand for the whole

STYLE = """
  svg { --ink: #1f2933; --faint: #616e7c; --line: #9aa5b1; --node: #ffffff; --end: #d9e8f7;
        --paper: #fbfcfd; color-scheme: light dark; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e9eef3; --faint: #a6b1bd; --line: #6b7885; --node: #26313c; --end: #1d4568;
          --paper: #161c22; }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); }
  .relation, .score { font-size: 11.5px; fill: var(--faint); }
  .title { font-size: 15px; font-weight: 600; }
  .node { fill: var(--node); stroke: var(--line); }
  .end { fill: var(--end); stroke: var(--line); }
  .edge { stroke: var(--line); stroke-width: 1.5; fill: none; }
  .tip { fill: var(--line); }
"""


def draw_paths(fact: NamedFact, paths: Sequence[tuple[float, Sequence[NamedFact]]]) -> str:
    """The text of an SVG file of paths, given with their scores, best first."""
    scores = [f"{score:.3f}" for score, _ in paths]
    start = MARGIN + max([70.0, *(columns(score) * RELATION_CHARACTER + 14 for score in scores)])
    rows = [
        path_row(fact[0], scores[place], steps, start, TOP + ROW * place + 32.0)
        for place, (_, steps) in enumerate(paths)
    ]
    title = " — ".join(short(part, 40) for part in fact)
    lengths = [length for _, length in rows] + [columns(title) * 8.6 + 2 * MARGIN, 320.0]
    width, height = round(max(lengths)), TOP + ROW * max(1, len(rows))
    body = "\n".join(drawing for drawing, _ in rows)
    if not rows:
        body = label(MARGIN, TOP + 20, "no path was found", "relation", anchor="start")
    full = escape(printable(" — ".join(fact)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{attribute(full)}">\n'
        f"<title>Paths for {full}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" fill="var(--paper)"/>\n'
        f"{label(MARGIN, 34, title, 'title', anchor='start')}\n{body}\n</svg>\n"
    )


def path_row(
    head: str, score: str, steps: Sequence[NamedFact], start: float, middle: float
) -> tuple[str, float]:
    """The drawing of one path, whose first node begins at `start`, and where it ends."""
    parts = [label(MARGIN, middle + 4, score, "score", anchor="start")]
    drawing, x = draw_node(head, start, middle, is_end=True)
    parts.append(drawing)
    node = head
    for number, (first, relation, second) in enumerate(steps):
        is_forward = first == node
        node = second if is_forward else first
        gap = columns(short(relation, MAX_RELATION)) * RELATION_CHARACTER + GAP_PADDING
        parts.append(draw_edge(x, x + gap, middle, relation, is_forward))
        drawing, x = draw_node(node, x + gap, middle, is_end=number == len(steps) - 1)
        parts.append(drawing)
    return "\n".join(parts), x + MARGIN


def draw_node(name: str, x: float, middle: float, *, is_end: bool) -> tuple[str, float]:
    """A node as a box with its name, and the right side of the box."""
    text = short(name, MAX_NAME)
    width = columns(text) * CHARACTER + 24
    top, kind = middle - NODE_HEIGHT / 2, "end" if is_end else "node"
    box = (
        f'<rect class="{kind}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{NODE_HEIGHT}" rx="8"/>'
    )
    text_element = label(x + width / 2, middle + 4.5, text, "name")
    return f"<g><title>{escape(printable(name))}</title>{box}{text_element}</g>", x + width


def draw_edge(start: float, end: float, middle: float, relation: str, is_forward: bool) -> str:
    """An arrow in the direction of the fact, and the relation above it."""
    tip, base = (end, end - 8) if is_forward else (start, start + 8)
    line_start, line_end = (start, end - 6) if is_forward else (start + 6, end)
    arrow = f"{tip:.1f},{middle:.1f} {base:.1f},{middle - 4:.1f} {base:.1f},{middle + 4:.1f}"
    text = label((start + end) / 2, middle - 9, short(relation, MAX_RELATION), "relation")
    return (
        f"<g><title>{escape(printable(relation))}</title>"
        f'<line class="edge" x1="{line_start:.1f}" y1="{middle:.1f}" x2="{line_end:.1f}" '
        f'y2="{middle:.1f}"/><polygon class="tip" points="{arrow}"/>{text}</g>'
    )


def label(x: float, y: float, text: str, kind: str, *, anchor: str = "middle") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def short(text: str, most: int) -> str:
    """The text on one line; of one that is too long, the last part of an IRI, or both its ends."""
    text = printable(text)
    if len(text) <= most:
        return text
    last = max(text.rstrip("/#").rfind(mark) for mark in "/#") + 1
    if last and len(text) - last >= MIN_PART:
        text = f"…{text[last - 1 :]}"
    if len(text) <= most:
        return text
    return f"{text[: most - most // 3 - 1]}…{text[-(most // 3) :]}"


def printable(text: str) -> str:
    """The text on one line, without characters that XML does not allow."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def columns(text: str) -> float:
    """The width of a text in small Latin letters: capitals and other characters are wider."""
    return sum(map(width_of, text))


def width_of(character: str) -> float:
    if east_asian_width(character) in "WF":
        return 2.0
    if character in "MWmw@%—…":
        return 1.75
    return 1.35 if character.isupper() else 1.0


def attribute(escaped: str) -> str:
    return escaped.replace('"', "&quot;")
