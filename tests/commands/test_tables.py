"""Tables for people: long histograms and long names."""

from nodepiece.commands.tables import MAX_BINS, binned
from nodepiece.graph.short_text import MAX_IN_TABLE, in_table


def test_a_short_histogram_has_a_bin_for_each_value() -> None:
    assert binned({0: 3, 2: 1}) == {(0, 0): 3, (2, 2): 1}


def test_a_long_histogram_has_ranges_of_as_many_values() -> None:
    found = binned(dict.fromkeys(range(3_001), 2))
    assert len(found) <= MAX_BINS
    assert sum(found.values()) == 2 * 3_001
    assert next(iter(found)) == (0, 150) and list(found)[-1] == (2869, 3_000)


def test_a_name_is_cut_only_where_it_would_fill_a_page() -> None:
    assert in_table("Doe,  John") == "Doe,  John"
    assert len(in_table("x" * 20_000)) == MAX_IN_TABLE
