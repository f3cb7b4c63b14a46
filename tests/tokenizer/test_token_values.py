"""Which values of a token table are valid indices."""

import numpy as np
import pytest

from nodepiece.tokenizer import token_values
from nodepiece.tokenizer.token_values import _first_outside

SMALLEST, LARGEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max


@pytest.mark.parametrize("gap", [None, (5, 8)])
@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize(
    "value", [SMALLEST, -1, 0, 2, 3, 4, 5, 7, 8, 9, 10, LARGEST, LARGEST - 4, SMALLEST + 6]
)
def test_a_value_outside_the_range_or_in_its_gap_is_found(
    monkeypatch: pytest.MonkeyPatch, start: int, gap: tuple[int, int] | None, value: int
) -> None:
    monkeypatch.setattr(token_values, "BLOCK", 4)  # so that it is not in the first block
    values = np.array([[3, 4, 9], [9, 8, 4], [3, value, 8]], np.int32)
    is_valid = start <= value < 10 and (gap is None or not gap[0] <= value < gap[1])
    found = _first_outside(values, start, 10, gap=gap)
    assert found is None if is_valid else found == value


def test_an_empty_table_has_no_invalid_value() -> None:
    assert _first_outside(np.empty((0, 3), np.int32), 0, 10) is None
