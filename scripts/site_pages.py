"""The parts of the documentation site that are made while it is built; a hook of MkDocs.

Pages are generated: `commands.md` from the command line, `api.md` from the public names, copies of
CONTRIBUTING.md and CHANGELOG.md, and a page for each notebook. Links of pages to files outside
`docs/` become links to copies of these files in the site, so that reading it needs no network.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from scripts import list_api, list_commands, notebook_pages  # noqa: E402

LINK = re.compile(r"(?P<before>\]\()\.\./(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
NOTEBOOKS = "notebooks"  # a folder of docs/
GENERATED: dict[str, Callable[[], str]] = {
    "commands.md": list_commands.page,
    "api.md": list_api.page,
    "contributing.md": lambda: from_root("CONTRIBUTING.md"),
    "changelog.md": lambda: from_root("CHANGELOG.md"),
}


def from_root(name: str) -> str:
    """A page of the repository's root, with the links that it has inside `docs/`."""
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"\]\((?!https?://|docs/|#)([^)]+)\)", r"](../\1)", text)
    return re.sub(r"\]\(docs/", "](", text)


def in_site(path: str) -> str:
    """Where a linked file of the repository is in the site; text files open in a browser."""
    return (
        f"files/{path}" if Path(path).suffix in (".json", ".svg", ".png") else f"files/{path}.txt"
    )


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages that the navigation in mkdocs.yml does not name at the end of the how-to pages."""
    listed = set(re.findall(r"[\w-]+\.md", str(config.nav)))
    found = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert config.nav is not None
    (how_to,) = (each["How to"] for each in config.nav if "How to" in each)
    how_to += sorted(found - listed)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and copies of all files that pages link to."""
    for name, page in GENERATED.items():
        files.append(File.generated(config, name, content=page()))
    for notebook in sorted((ROOT / "docs" / NOTEBOOKS).glob("*.ipynb")):
        name = f"{NOTEBOOKS}/{notebook.stem}.md"
        files.append(File.generated(config, name, content=notebook_pages.page(notebook)))
    linked: set[str] = set()
    for file in files.documentation_pages():
        if file.src_uri.startswith(NOTEBOOKS):  # their links are to pages
            continue
        linked |= {found["path"] for found in LINK.finditer(file.content_string)}
    for path in sorted(linked):
        if (ROOT / path).is_file() and path not in ("README.md",):
            copy = File.generated(config, in_site(path), content=(ROOT / path).read_bytes())
            files.append(copy)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page with links to the copies; a folder is named and not linked."""
    if page.file.src_uri.startswith(NOTEBOOKS):
        return markdown

    def replaced(found: re.Match[str]) -> str:
        path = found["path"]
        if path == "README.md":
            return "](index.md)"
        if path == "CONTRIBUTING.md" or path == "CHANGELOG.md":
            return f"]({path.lower()}{found['anchor'] or ''})"
        if (ROOT / path).is_file():
            return f"]({in_site(path)})"
        return "](FOLDER)"

    text = LINK.sub(replaced, markdown)
    return re.sub(r"\[([^\]]*)\]\(FOLDER\)", r"\1", text)
