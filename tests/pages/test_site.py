"""The documentation site: built strictly, without broken links, and readable without a network."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from inspect import isclass, isroutine
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from scripts import list_api, list_commands
from typer.main import get_command

import nodepiece
from nodepiece.cli import app

ROOT = Path(__file__).parents[2]


class References(HTMLParser):
    """The ids of a page, what its links point to, and what the browser would load."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if found := given.get("id") or given.get("name"):
            self.ids.add(found)
        if tag == "a" and (link := given.get("href")):
            self.links.append(link)
        if tag in ("script", "img", "iframe", "source") and (source := given.get("src")):
            self.loaded.append(source)
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "edit"):
            self.loaded.append(given.get("href") or "")


def read(page: Path) -> References:
    found = References()
    found.feed(page.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if any(find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings")):
        pytest.skip("the site needs the extra docs: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, References]:
    return {page: read(page) for page in site.rglob("*.html")}


def test_every_link_leads_to_a_page_and_a_place_that_is_there(
    site: Path, pages: dict[Path, References]
) -> None:
    broken = []
    for page, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or page.name == "404.html":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchors = pages[target].ids if target in pages else None
            is_place = not parts.fragment or anchors is None or parts.fragment in anchors
            if not target.exists() or not is_place:
                broken.append(f"{page.name}: {link}")
    assert broken == []
    assert len(pages) > 20


def test_nothing_is_loaded_from_a_network(site: Path, pages: dict[Path, References]) -> None:
    loaded = {address for found in pages.values() for address in found.loaded}
    assert [address for address in loaded if re.match(r"(https?:)?//", address)] == []
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", text), style.name


def test_every_page_says_what_to_type_in_its_first_screen() -> None:
    texts = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
    texts |= {"README.md": (ROOT / "README.md").read_text(encoding="utf-8")}
    texts |= {"commands.md": list_commands.page(), "api.md": list_api.page()}
    typed = ("```sh", "```python", "```console")
    for name, text in texts.items():
        assert any(line.startswith(typed) for line in text.splitlines()[:16]), name


def test_the_reference_of_commands_has_every_command_and_option() -> None:
    page = list_commands.page()
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"\n## {name}\n" in page
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        options = [option for each in command.params for option in each.opts if option[0] == "-"]
        assert [option for option in options if f"`{option}`" not in section] == []


def test_the_reference_of_python_has_every_public_name() -> None:
    entries = re.findall(r"^::: \S+\.(\w+)$", list_api.page(), flags=re.MULTILINE)

    assert sorted(entries) == sorted(nodepiece.__all__)


def test_every_public_name_has_a_docstring() -> None:
    without = [name for name in nodepiece.__all__ if not getattr(nodepiece, name).__doc__]

    assert without == []


def test_every_public_method_of_a_public_class_has_a_docstring() -> None:
    without = []
    for name in nodepiece.__all__:
        members = vars(getattr(nodepiece, name)) if isclass(getattr(nodepiece, name)) else {}
        for member, value in members.items():
            is_method = isinstance(value, property | staticmethod | classmethod) or isroutine(value)
            if is_method and not member.startswith("_") and not value.__doc__:
                without.append(f"{name}.{member}")
    assert without == []
