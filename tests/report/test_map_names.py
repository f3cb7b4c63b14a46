"""Names in pictures of maps: where they are, and which are left out."""

from itertools import combinations

import numpy as np

from nodepiece.report.map_names import MAX_COVERED, MAX_LETTERS, overlap, place_names

GROUND = (2.0, 2.0)


def test_names_cover_neither_each_other_nor_many_nodes() -> None:
    positions = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    names = [f"node {number}" for number in range(300)]
    found = place_names(names, positions, range(60), units=0.26, ground=GROUND)

    assert len(found) > 5
    assert not any(overlap(one, other) for one, other in combinations(found, 2))
    for label in found:
        inside = np.abs(positions - label.centre) < np.divide(label.size, 2)
        assert inside.all(axis=1).sum() <= MAX_COVERED


def test_a_name_at_the_right_edge_is_to_the_left_of_its_node() -> None:
    (label,) = place_names(["Kenya"], np.array([[0.98, 0.0]]), [0], units=0.26, ground=GROUND)

    assert label.centre[0] + label.size[0] / 2 < 0.98


def test_a_name_goes_where_no_node_is() -> None:
    beside = [[0.1, 0.0], [0.15, 0.0], [-0.1, 0.0], [0.0, 0.04]]
    positions = np.array([[0.0, 0.0], *beside])
    (label,) = place_names(["Kenya"] * 5, positions, [0], units=0.26, ground=GROUND)

    assert label.centre[1] < 0


def test_a_long_name_is_shortened() -> None:
    (label,) = place_names(["x" * 100], np.array([[-0.9, 0.0]]), [0], units=0.1, ground=GROUND)

    assert label.text == "x" * (MAX_LETTERS - 1) + "…"
