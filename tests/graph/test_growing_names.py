"""Names that are added to a graph leave the names of earlier states as they are."""

import pickle
from copy import deepcopy

import pyarrow as pa

from nodepiece.graph.growing_names import GrowingNames, grown
from nodepiece.graph.names import Names


def names() -> Names:
    whole = pa.array(["left out", "Ann", "Bea", "", "Zoë"], pa.large_string())
    return Names(whole[1:], pa.array(["likes"], pa.large_string()))


def test_new_names_follow_the_names_before() -> None:
    first = grown(names(), ["Cem"])
    second = grown(first, ["Dörte", "", "Eve"])
    assert first.nodes.to_pylist() == ["Ann", "Bea", "", "Zoë", "Cem"]
    assert second.nodes.to_pylist() == ["Ann", "Bea", "", "Zoë", "Cem", "Dörte", "", "Eve"]
    assert second.node_id("Dörte") == 5
    second.nodes.validate(full=True)
    assert second.fingerprint == Names.of(second.nodes.to_pylist(), ["likes"]).fingerprint


def test_the_text_of_all_names_is_copied_once() -> None:
    first = grown(names(), ["Cem"])
    second = grown(first, ["Dan"])
    assert first.nodes.buffers()[2].address == second.nodes.buffers()[2].address


def test_two_states_that_follow_the_same_one_do_not_share_names() -> None:
    first = grown(names(), ["Cem"])
    second, other = grown(first, ["Dan"]), grown(first, ["Eve"])
    assert second.nodes.to_pylist()[-1] == "Dan" and other.nodes.to_pylist()[-1] == "Eve"
    assert first.nodes.to_pylist()[-1] == "Cem"


def test_names_that_do_not_fit_move_to_a_larger_store() -> None:
    found: Names = names()
    for number in range(3):
        found = grown(found, [f"{number}" * 50_000])
    assert isinstance(found, GrowingNames)
    assert [len(name) for name in found.nodes.to_pylist()] == [3, 3, 0, 3, *[50_000] * 3]
    many = grown(found, [f"n{number}" for number in range(2_000)])
    assert len(grown(many, ["last"]).nodes) == 2_008


def test_without_new_names_nothing_changes() -> None:
    before = names()
    assert grown(before, []) is before


def test_names_that_grow_are_pickled_and_copied() -> None:
    first = grown(names(), ["Cem"])
    grown(first, ["Dan"])
    for other in (pickle.loads(pickle.dumps(first)), deepcopy(first)):
        assert other.nodes.to_pylist() == ["Ann", "Bea", "", "Zoë", "Cem"]
        assert grown(other, ["Eve"]).nodes.to_pylist()[-1] == "Eve"
