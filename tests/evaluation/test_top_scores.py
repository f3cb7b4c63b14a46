"""The best candidates of every row, by a slow sort."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.evaluation.top_scores import top_scores

SCORES = st.sampled_from([-np.inf, 0.0, 0.5, 1.0, 2.0, np.nan])
ROWS = st.lists(st.lists(SCORES, min_size=9, max_size=9), min_size=1, max_size=4)


@settings(deadline=None)
@given(ROWS, st.integers(1, 12))
def test_the_best_of_every_row_come_first_and_of_equals_the_first(
    rows: list[list[float]], top: int
) -> None:
    expected = []
    for number, row in enumerate(rows):
        ids = [c for c, score in enumerate(row) if score > -np.inf]
        best = sorted(ids, key=lambda c, row=row: (-row[c], c))[:top]  # type: ignore[misc]
        expected += [(number, place, c, row[c]) for place, c in enumerate(best, start=1)]

    found = top_scores(torch.tensor(rows), top)

    columns = (found.row, found.place, found.candidate, found.score)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


def test_many_random_scores_are_sorted() -> None:
    scores = torch.randn(3, 5000, generator=torch.Generator().manual_seed(0))

    found = top_scores(scores, 100)

    assert found.candidate.reshape(3, 100).tolist() == scores.topk(100).indices.tolist()
