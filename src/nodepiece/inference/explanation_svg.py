"""A drawing of paths from a head to a tail, as SVG: one row for each path, names as text.

It has no script and loads nothing; its colours follow the light or dark scheme of the viewer.
"""

from collections.abc import Sequence
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

from nodepiece.tokenizer.changing_graph import NamedFact

ROW, TOP, MARGIN = 64, 56, 20
NODE_HEIGHT, CHARACTER, MAX_NAME = 30, 7.2, 30
GAP_PADDING, MAX_RELATION = 34, 28

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
    rows = [path_row(fact[0], score, steps, place) for place, (score, steps) in enumerate(paths)]
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


def path_row(head: str, score: float, steps: Sequence[NamedFact], place: int) -> tuple[str, float]:
    """The drawing of one path, and where it ends."""
    middle, x = TOP + ROW * place + 32.0, MARGIN + 70.0
    parts = [label(MARGIN, middle + 4, f"{score:.3f}", "score", anchor="start")]
    drawing, x = draw_node(head, x, middle, is_end=True)
    parts.append(drawing)
    node = head
    for number, (start, relation, end) in enumerate(steps):
        is_forward = start == node
        node = end if is_forward else start
        gap = columns(short(relation, MAX_RELATION)) * 6.4 + GAP_PADDING
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
    """The text on one line, its middle left out if it is too long."""
    text = printable(text)
    if len(text) <= most:
        return text
    return f"{text[: most - most // 3 - 1]}…{text[-(most // 3) :]}"


def printable(text: str) -> str:
    """The text on one line, without characters that XML does not allow."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def columns(text: str) -> int:
    """The width of a text in Latin letters: some characters are twice as wide."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def attribute(escaped: str) -> str:
    return escaped.replace('"', "&quot;")
