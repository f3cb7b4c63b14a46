"""Draw docs/figures/page-report.png and page-map.png: the pages of a report and of a map.

    python -m scripts.draw_reports

Trains the graph of countries, and twice more for 10 epochs with other seeds, writes a report of the
three runs and a map of the first, and opens both in Chromium.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
SHORT = ("--set", "training.epochs=10")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = [f"{folder}/countries", f"{folder}/countries-1", f"{folder}/countries-2"]
        nodepiece("train", "countries", "-o", runs[0])
        for seed, run in enumerate(runs[1:], start=1):
            nodepiece("train", "countries", *SHORT, "--set", f"seed={seed}", "-o", run)
        nodepiece("calibrate", runs[0])
        nodepiece("report", *runs, "-o", f"{folder}/report")
        nodepiece("map", runs[0], "-o", f"{folder}/map.html", "--tails-of", "in region")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            draw_report(browser, Path(folder) / "report" / "report.html")
            draw_map(browser, Path(folder) / "map.html")
            browser.close()


def nodepiece(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "nodepiece", *words], check=True)


def draw_report(browser: Browser, path: Path) -> None:
    page = browser.new_page(viewport={"width": 900, "height": 900}, color_scheme="dark")
    page.goto(path.as_uri())
    page.screenshot(path=FIGURES / "page-report.png")


def draw_map(browser: Browser, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1100, "height": 680}, color_scheme="light")
    page.goto(path.as_uri())
    page.locator("#find").fill("kenya")
    page.locator("#found button").first.click()
    page.locator("canvas").dblclick(position={"x": 20, "y": 20})  # show all nodes again
    page.wait_for_timeout(1000)
    page.screenshot(path=FIGURES / "page-map.png")


if __name__ == "__main__":
    main()
