"""What several tests share: one thread, public benchmarks, a browser, an idle and a busy GPU."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numba
import pytest
import torch
from tests.busy_gpu import OtherPrograms

hypothesis.settings.register_profile("any speed", deadline=None)
hypothesis.settings.load_profile("any speed")  # a busy machine is no failure

CHROMIUM_OPTIONS = (
    "--no-sandbox",  # containers run tests as root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small graphs and tensors are quickest on one; tests about threads set their own number."""
    before = numba.get_num_threads(), torch.get_num_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    yield
    numba.set_num_threads(before[0])
    torch.set_num_threads(before[1])


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder of public benchmarks; tests marked `data` are skipped without it."""
    return Path(os.environ["NODEPIECE_DATA"])


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for pages, for one module: Playwright keeps an event loop running in the main
    thread, in which later tests could run none of their own."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium here: apt install chromium")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(CHROMIUM_OPTIONS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def other_programs() -> Iterator[OtherPrograms]:
    with OtherPrograms() as programs:
        yield programs


@pytest.fixture(autouse=True)
def gpu_load(request: pytest.FixtureRequest) -> None:
    """Other programs use the GPU, or not: every test marked `gpu` is run both ways."""
    load = getattr(request, "param", None)  # tests without that mark have none
    if load is not None:
        request.getfixturevalue("other_programs").keep_busy(load == "busy")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("gpu"):
        metafunc.parametrize("gpu_load", ["idle", "busy"], indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = {
        "gpu": None if torch.cuda.is_available() else "no CUDA device here",
        "data": None if os.environ.get("NODEPIECE_DATA") else "NODEPIECE_DATA is not set",
    }
    for item in items:
        for marker, reason in reasons.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
