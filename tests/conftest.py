"""What several tests share: one thread, where the public benchmarks are, an idle and a busy GPU."""

import os
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest
import torch
from tests.busy_gpu import OtherPrograms


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
