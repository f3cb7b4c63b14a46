"""Self-contained HTML pages from the templates in `pages/`; all values are data, never markup."""

import html
import json
import re
from importlib.resources import files
from typing import Any


class Markup(str):
    """Text that is HTML already, and is put into a page as it is."""


def fill(template: str, values: dict[str, object]) -> str:
    """The template `pages/NAME` with its {{names}} replaced, in one pass, by escaped values.

    A dict or list becomes JSON for a `<script type="application/json">`, in which nothing can end
    the script.
    """
    text = files("nodepiece.report.pages").joinpath(template).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: _escaped(values[found.group(1)]), text)


def _escaped(value: object) -> str:
    if isinstance(value, Markup):
        return value
    if isinstance(value, dict | list):
        return script_json(value)
    return html.escape(str(value))


def script_json(content: Any) -> str:
    """JSON in which no character has a meaning in HTML."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
