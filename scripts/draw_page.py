"""Draw docs/page-*.png, the pictures of the page of `nodepiece serve`, with Chromium.

    python -m scripts.draw_page [RUN]

Without a run, the graph of countries is trained first, as `nodepiece serve` does.
"""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 200_000
ATLANTIS = (("borders", "Portugal"), ("borders", "Spain"), ("has language", "Portuguese"))


@dataclass(frozen=True)
class Picture:
    """A place of the page, and how it is drawn."""

    name: str
    place: str  # after `#/`
    size: tuple[int, int]  # pixels
    scheme: Literal["light", "dark"]


def added() -> str:
    facts = [f"fact=Atlantis&fact={relation}&fact={other}" for relation, other in ATLANTIS]
    return f"add?name=Atlantis&{'&'.join(facts)}"


PICTURES = (
    Picture("page-ask", "", (1280, 860), "light"),
    Picture("page-node", "node?name=Uruguay", (1280, 800), "light"),
    Picture("page-map", "map", (1280, 980), "dark"),
    Picture("page-phone", added(), (390, 1100), "light"),
)


def main() -> None:
    with served(sys.argv[1:]) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for picture in PICTURES:
            path = draw(browser, address, picture)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


def draw(browser: Browser, address: str, picture: Picture) -> Path:
    path = ROOT / "docs" / f"{picture.name}.png"
    width, height = picture.size
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme=picture.scheme
    )
    page.goto(f"{address}/#/{picture.place}")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1000)  # the map is drawn in slices
    page.locator(".waiting").wait_for(state="detached", timeout=120_000)
    page.wait_for_timeout(500)
    page.screenshot(path=path)
    page.close()
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)  # half the bytes
    if path.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes; at most {MAX_BYTES:,}")
    return path


@contextmanager
def served(runs: list[str]) -> Iterator[str]:
    """A server of the runs, or of the graph of countries; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "nodepiece", "serve", *runs, "--port", str(port), "--writable"]
    server = subprocess.Popen(command)
    try:
        while not answers(f"{address}/readyz"):
            if server.poll() is not None:
                raise SystemExit("the server stopped")
            time.sleep(0.3)
        yield address
    finally:
        server.terminate()
        server.wait()


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    main()
