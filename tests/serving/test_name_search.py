"""A search finds the names that a loop over all names finds, those with the most facts first."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.graph.names import Names
from nodepiece.serving import name_search
from nodepiece.serving.name_ids import NameIds
from nodepiece.serving.name_search import NameSearch

names_of_nodes = st.lists(
    st.text(alphabet="aAbBé 世/\x00", min_size=0, max_size=12), min_size=1, max_size=60, unique=True
)


def column(names: list[str]) -> pa.LargeStringArray:
    return pa.array(names, pa.large_string())


@settings(max_examples=80, deadline=None)
@given(names=names_of_nodes, text=st.text(alphabet="abBé 世/", min_size=1, max_size=7), seed=...)
def test_a_search_finds_what_a_loop_finds(names: list[str], text: str, seed: bool) -> None:
    num_facts = np.random.default_rng(seed).integers(0, 5, len(names))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name_search, "MIN_BLOCK", 16)  # many blocks
        search = NameSearch.of(column(names), num_facts)
    by_facts = sorted(range(len(names)), key=lambda node: -num_facts[node])
    for at_start in (True, False):
        expected = [
            node
            for node in by_facts
            if (str.startswith if at_start else str.__contains__)(names[node].lower(), text.lower())
        ]
        assert search.find(text, 100, at_start=at_start) == expected
        assert search.find(text, 2, at_start=at_start) == expected[:2]


def test_names_of_ten_thousand_letters_are_found() -> None:
    names = ["x" * 10_000 + str(number) for number in range(5)]
    search = NameSearch.of(column(names), np.zeros(5, np.int64))
    assert search.find(names[3], 9, at_start=True) == [3]
    assert search.find("x3", 9, at_start=False) == [3]


@settings(max_examples=40, deadline=None)
@given(names=names_of_nodes, more=names_of_nodes)
def test_ids_are_those_of_all_names_and_of_those_added_later(
    names: list[str], more: list[str]
) -> None:
    added = [name for name in more if name not in names]
    ids = NameIds(Names.of(names, ["r", "inverse of s", "s"]))
    for known in (names, names + added, names):  # an earlier state is asked after a later one
        for name in names + added:
            expected = known.index(name) if name in known else -1
            assert ids.node(name, column(known)) == expected
    assert ids.node("nobody", column(names)) == -1 and ids.node(None, column(names)) == -1
    assert [ids.relation(name) for name in ("r", "inverse of r", "inverse of s", "x")] == [
        0,
        3,
        1,
        -1,
    ]
