"""Write docs/results.md and its figure, from the files of results/.

python -m scripts.write_results
"""

from pathlib import Path

from nodepiece.report.document import to_markdown
from nodepiece.report.results_page import results_document

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "results.md"


def page() -> str:
    return to_markdown(results_document(RESULTS))


if __name__ == "__main__":
    document = results_document(RESULTS)
    PAGE.write_text(to_markdown(document), encoding="utf-8")
    for picture in document.pictures:
        (PAGE.parent / f"{picture.name}.svg").write_text(picture.svg, encoding="utf-8")
