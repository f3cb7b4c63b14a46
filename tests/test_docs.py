"""The documentation lists the experiments there are, and links to files that are there."""

import re
from pathlib import Path

from scripts.list_experiments import PAGE, page

from nodepiece.settings import experiment_names

ROOT = Path(__file__).parents[1]


def test_the_page_of_experiments_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")

    assert written == page(), "run: python scripts/list_experiments.py"


def test_every_experiment_is_on_it_once() -> None:
    listed = re.findall(r"^\| \[`(.+?)`\]", page(), flags=re.MULTILINE)

    assert sorted(listed) == experiment_names()


def test_the_pages_link_to_files_that_are_there() -> None:
    for path in (ROOT / "docs").glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (path.parent / link).exists(), (path.name, link)
