"""A document of paragraphs, tables and figures, written as Markdown or as a page of HTML.

Paragraphs are Markdown with nothing but `code`, **bold**, [links](...), lists and blocks of code
without empty lines; cells of tables are plain text with the same. What comes from a graph, such as
names, is put in by `plain`.
"""

import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nodepiece.report.page import Markup, fill

INLINE = re.compile(
    r"`([^`]+)`|\*\*(.+?)\*\*|\[((?:[^\]\\]|\\.)*)\]\(([^)]+)\)|\\(.)|<sup>(.+?)</sup>"
)
SPECIAL = re.compile(r"([\\`*\[\]|<>_])")


@dataclass(frozen=True)
class Table:
    """Rows of cells below their columns; the first column says what a row is of."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()  # below the table, numbered from 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells in a table of {len(self.columns)}")


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, which a page contains and Markdown links to."""

    name: str  # of its file, without ending
    alt: str  # what it shows, in words
    svg: str


Part = str | Table | Picture


@dataclass(frozen=True)
class Section:
    """A heading and what is below it; without a title, more of the section before."""

    title: str
    parts: Sequence[Part]
    level: int = 2


@dataclass(frozen=True)
class Document:
    title: str
    introduction: str
    sections: Sequence[Section] = field(default_factory=list)

    @property
    def pictures(self) -> list[Picture]:
        parts = [part for section in self.sections for part in section.parts]
        return [part for part in parts if isinstance(part, Picture)]


def moved(document: Document, old: Path, new: Path) -> Document:
    """The document with links from a page in another folder: relative ones are rewritten."""

    def rewritten(text: str) -> str:
        def target(found: re.Match[str]) -> str:
            link = found.group(1)
            if link.startswith(("#", "https:")):
                return found.group()
            return f"]({Path(os.path.relpath(old / link, new)).as_posix()})"

        return re.sub(r"\]\(([^)]+)\)", target, text)

    def part(each: Part) -> Part:
        if isinstance(each, Table):
            rows = [[rewritten(cell) for cell in row] for row in each.rows]
            return replace(each, rows=rows, notes=[rewritten(note) for note in each.notes])
        return rewritten(each) if isinstance(each, str) else each

    sections = [replace(each, parts=[part(p) for p in each.parts]) for each in document.sections]
    return replace(document, introduction=rewritten(document.introduction), sections=sections)


def plain(text: str) -> str:
    """Text of any characters, so that it is shown as it is."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def to_markdown(document: Document, *, figures: str = "") -> str:
    """The document as Markdown; `figures` is where its pictures are, such as "figures/"."""
    parts = [f"# {document.title}", document.introduction]
    for section in document.sections:
        if section.title:
            parts.append("#" * section.level + f" {section.title}")
        parts += [_markdown(part, figures) for part in section.parts]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _markdown(part: Part, figures: str) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Picture):
        return f"![{part.alt}]({figures}{part.name}.svg)"
    if not part.rows:
        return ""
    lines = [f"| {' | '.join(part.columns)} |", "|---" * len(part.columns) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in part.rows]
    below = [f"<sup>{number}</sup> {note}" for number, note in enumerate(part.notes, start=1)]
    return "\n".join(lines) + ("\n\n" + "\\\n".join(below) if below else "")


def to_html(document: Document) -> str:
    """The document as one page that needs nothing else."""
    contents: list[str] = []
    body: list[str] = []
    used: set[str] = set()
    for section in document.sections:
        if section.level == 2:
            target, title = anchor(section.title), html.escape(section.title)
            contents.append(f'<li><a href="#{target}">{title}</a></li>')
        if section.title:
            tag, target = f"h{section.level}", anchor(section.title)
            place = "" if target in used else f' id="{target}"'  # the first of several
            used.add(target)
            body.append(f"<{tag}{place}>{inline(section.title)}</{tag}>")
        body += [_html(part) for part in section.parts]
    return fill(
        "report.html",
        {
            "title": document.title,
            "introduction": Markup(paragraphs(document.introduction)),
            "contents": Markup("\n".join(contents)),
            "body": Markup("\n".join(body)),
        },
    )


def _html(part: Part) -> str:
    if isinstance(part, str):
        return paragraphs(part)
    if isinstance(part, Picture):
        alt = html.escape(part.alt)
        return f'<figure role="img" aria-label="{alt}">{inline_svg(part)}</figure>'
    if not part.rows:
        return ""
    head = "".join(f'<th scope="col">{inline(column)}</th>' for column in part.columns)
    rows = "".join(
        f'<tr><th scope="row">{inline(first)}</th>'
        + "".join(f"<td>{inline(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in part.rows
    )
    notes = "".join(f"<li>{inline(note)}</li>" for note in part.notes)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="wide" tabindex="0">{table}</div>' + (
        f'<ol class="notes">{notes}</ol>' if notes else ""
    )


def anchor(title: str) -> str:
    """The anchor of a heading, as pages of Markdown have it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def paragraphs(text: str) -> str:
    """Paragraphs, lists and blocks of code as HTML, without comments."""
    found = []
    for block in re.split(r"\n\s*\n", re.sub(r"<!--.*?-->\n?", "", text).strip("\n")):
        lines = block.strip().split("\n")
        if lines[0].startswith("- "):
            items = re.split(r"\n- ", block.strip()[2:])
            found.append("<ul>" + "".join(f"<li>{inline(item)}</li>" for item in items) + "</ul>")
        elif lines[0].startswith("```"):
            code = html.escape("\n".join(lines[1:-1]))
            found.append(f"<pre><code>{code}</code></pre>")
        elif block.strip():
            found.append(f"<p>{inline(' '.join(lines))}</p>")
    return "\n".join(found)


def inline(text: str) -> str:
    """Code, bold, links and raised numbers as HTML; everything else is escaped."""
    parts, end = [], 0
    for found in INLINE.finditer(text):
        parts.append(html.escape(text[end : found.start()]))
        code, bold, label, target, escaped, raised = found.groups()
        if code is not None:
            parts.append(f"<code>{html.escape(code)}</code>")
        elif bold is not None:
            parts.append(f"<strong>{inline(bold)}</strong>")
        elif label is not None:
            parts.append(f'<a href="{html.escape(target)}">{inline(label)}</a>')
        elif raised is not None:
            parts.append(f"<sup>{html.escape(raised)}</sup>")
        else:
            parts.append(html.escape(escaped))
        end = found.end()
    return "".join(parts) + html.escape(text[end:])


def inline_svg(picture: Picture) -> str:
    """The SVG without its prologue, with ids of its own, and text in the colour of the page."""
    from nodepiece.report.style import INK

    svg = picture.svg[picture.svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    names = set(re.findall(r'\bid="([^"]+)"', svg))
    for name in names:
        svg = svg.replace(f'id="{name}"', f'id="{picture.name}-{name}"')
        svg = svg.replace(f'"#{name}"', f'"#{picture.name}-{name}"')
        svg = svg.replace(f"url(#{name})", f"url(#{picture.name}-{name})")
    return svg.replace(INK, "currentColor")
