"""Notebooks as pages of the documentation site, with the output that is stored in them."""

import json
import re
from pathlib import Path
from typing import Any


def page(path: Path) -> str:
    """A notebook as Markdown: text, code, and what the code printed."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"\.ipynb\)", ".md)", source))
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [shown(output) for output in cell["outputs"]]
    download = f"[The notebook as a file]({path.name}){{ download }}"
    return "\n\n".join([*parts, download]) + "\n"


def shown(output: dict[str, Any]) -> str:
    """One output of a cell: a picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        image = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="What the cell above draws" src="data:image/png;base64,{image}">'
    if "text/html" in data:
        table = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        table = re.sub(r"<table[^>]*>", "<table>", table)
        return re.sub(r"\n\s*", "", table)
    text = "".join(output.get("text") or data["text/plain"])
    return f"```text\n{text.rstrip()}\n```"
