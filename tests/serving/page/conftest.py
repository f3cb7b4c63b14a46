"""Chromium with the page of a server: countries, and some names that pages find hard to show."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext
from tests.serving.live_server import served
from tests.serving.page.visit import DESKTOP, HARD_NAMES, Visit, visit_of

import nodepiece
from nodepiece.serving.settings import ServeSettings

GOLDEN = Path(__file__).parents[2] / "golden" / "runs-0.1"
SMALL = ("training.epochs=4", "training.validate_every=4", "encoder.dim=32", "graph.layers=1")


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a writable server.

    Its runs: `countries`, which is calibrated, `plain`, which is not, and `classes`.
    """
    folder = tmp_path_factory.mktemp("page")
    plain = nodepiece.train("countries", folder / "plain", overrides=SMALL, device="cpu")
    hard = [(name, "borders", "Libya") for name in HARD_NAMES]
    nodepiece.update_run(plain, add=hard)
    run = nodepiece.load(shutil.copytree(folder / "plain", folder / "countries"))
    nodepiece.calibrate_run(run)
    run.explain(
        head="Libya", relation="borders", tail="Chad"
    )  # compiles what a visit would wait for
    labelled = nodepiece.load(shutil.copytree(GOLDEN / "classes", folder / "classes"))
    with served(run, plain, labelled, settings=ServeSettings(writable=True)) as found:
        yield found


@pytest.fixture(scope="module")
def desktop(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser at a desk, which most tests share: it caches the files of the page."""
    with chromium.new_context(viewport=DESKTOP, color_scheme="light") as context:
        yield context


@pytest.fixture
def visit(
    chromium: Browser, desktop: BrowserContext, address: str, request: pytest.FixtureRequest
) -> Iterator[Visit]:
    """A page for a test, which fails if anything in it complains.

    Its parameter: options of a browser of its own, such as another size.
    """
    options = getattr(request, "param", None)
    context = desktop if options is None else chromium.new_context(**options)
    visit = visit_of(context, address)
    yield visit
    visit.page.close()
    if context is not desktop:
        context.close()
    assert visit.unexpected() == []
