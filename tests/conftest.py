"""What several tests share: where the public benchmarks are, and whether there is a GPU."""

import os
from pathlib import Path

import pytest
import torch


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder of public benchmarks; tests marked `data` are skipped without it."""
    return Path(os.environ["NODEPIECE_DATA"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = {
        "gpu": None if torch.cuda.is_available() else "no CUDA device here",
        "data": None if os.environ.get("NODEPIECE_DATA") else "NODEPIECE_DATA is not set",
    }
    for item in items:
        for marker, reason in reasons.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
