"""Names: found letter by letter, fingerprinted in order, the same after a trip to disk."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.errors import InputError
from nodepiece.graph.names import Names, load_names, save_names

NAMES = Names.of(["Côte d'Ivoire", "New Zealand", "new zealand ", ""], ["borders", "capital of"])
texts = st.lists(st.text(max_size=4), unique=True, max_size=5)


def test_ids_and_names_lead_to_each_other() -> None:
    for node_id, name in enumerate(NAMES.nodes.to_pylist()):
        assert NAMES.node_id(name) == node_id and NAMES.node(node_id) == name


def test_many_nodes_are_found_at_once_or_the_first_unknown_one_is_named() -> None:
    assert NAMES.node_ids(["", "New Zealand", ""]).tolist() == [3, 1, 3]
    assert NAMES.node_ids([]).tolist() == []
    with pytest.raises(InputError, match="unknown node 'Zealand'; did you mean 'New Zealand'"):
        NAMES.node_ids(["New Zealand", "Zealand", "xyz"])


def test_ids_past_the_relations_are_inverses_by_name_too() -> None:
    assert NAMES.relation(3) == "inverse of capital of"
    assert NAMES.relation_id("inverse of capital of") == 3
    own = Names.of([], ["r", "inverse of r"])
    assert own.relation_id("inverse of r") == 1  # a relation that is really called so


def test_an_unknown_name_is_refused_with_near_misses() -> None:
    with pytest.raises(InputError, match="unknown node 'NEW zealand'; did you mean 'New Zealand'"):
        NAMES.node_id("NEW zealand")
    with pytest.raises(InputError, match="unknown relation 'bordres'; did you mean 'borders'"):
        NAMES.relation_id("bordres")
    with pytest.raises(InputError, match="unknown node 'xyz'; names are compared letter by letter"):
        NAMES.node_id("xyz")


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("Kenya", "ex:Kenya"),
        ("kenya", "ex:Kenya"),
        ("<http://other.org/Kenya>", "ex:Kenya"),
        ("South Africa", "<http://example.org/South_Africa>"),
        ("dbr:South_Africa", "<http://example.org/South_Africa>"),
        ("Tanzania", "http://x.org/y#Tanzania"),
        ("Kenia", "Kenia in Sweden"),
    ],
)
def test_a_name_without_its_prefix_is_found_before_longer_names(asked: str, first: str) -> None:
    longer = [f"Kenya Airways flight {number}" for number in range(9)]
    iris = ["ex:Kenya", "<http://example.org/South_Africa>", "http://x.org/y#Tanzania"]
    names = Names.of([*longer, "Kenya Airways", "Kenia in Sweden", *iris], [])
    with pytest.raises(InputError, match=r"did you mean " + re.escape(repr(first))):
        names.node_id(asked)


def test_a_relation_without_its_prefix_is_found_too() -> None:
    names = Names.of([], ["http://x.org/capitalOf", "http://x.org/borders"])
    with pytest.raises(InputError, match=r"did you mean 'http://x\.org/borders'"):
        names.relation_id("Borders")


def test_a_misspelt_name_is_found_among_very_many() -> None:
    names = Names.of([f"node {number}" for number in range(50_000)] + ["Tanzania"], [])
    with pytest.raises(InputError, match="did you mean 'Tanzania'"):
        names.node_id("Tanzanya")


@pytest.mark.parametrize(
    "asked", ["", "(", "[a-", "\\", "\ud800", "x" * 100_000, "a\x00b", ":", "<>"]
)
def test_any_text_may_be_asked_for(asked: str) -> None:
    with pytest.raises(InputError, match="unknown node"):
        Names.of(["a", "b"], []).node_id(asked)


@settings(deadline=None)
@given(texts, texts, texts, texts)
def test_two_fingerprints_agree_exactly_where_all_names_agree_in_order(
    nodes: list[str], relations: list[str], other_nodes: list[str], other_relations: list[str]
) -> None:
    one, other = Names.of(nodes, relations), Names.of(other_nodes, other_relations)
    agree = (nodes, relations) == (other_nodes, other_relations)
    assert (one.fingerprint == other.fingerprint) == agree


def test_a_slice_of_a_longer_array_has_the_fingerprint_of_its_own_names() -> None:
    column = pa.array(["x", "a", "bc", "y"], pa.large_string())
    relations = pa.array(["r"], pa.large_string())
    assert Names(column[1:3], relations).fingerprint == Names.of(["a", "bc"], ["r"]).fingerprint


@settings(deadline=None)
@given(texts, texts)
def test_names_are_the_same_after_saving_and_loading(
    tmp_path_factory: pytest.TempPathFactory, nodes: list[str], relations: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("names")
    save_names(Names.of(nodes, relations), folder)
    loaded = load_names(folder)
    assert (loaded.nodes.to_pylist(), loaded.relations.to_pylist()) == (nodes, relations)


def test_a_damaged_file_of_names_is_refused_by_its_path(tmp_path: Path) -> None:
    save_names(NAMES, tmp_path)
    whole = (tmp_path / "nodes.arrow").read_bytes()
    for damage in (b"", b"garbage", whole[: len(whole) // 2]):
        (tmp_path / "nodes.arrow").write_bytes(damage)
        with pytest.raises(InputError, match=r"cannot read the names in .*nodes\.arrow"):
            load_names(tmp_path)
    (tmp_path / "nodes.arrow").unlink()
    with pytest.raises(InputError, match=r"nodes\.arrow"):
        load_names(tmp_path)


def test_a_file_of_numbers_instead_of_names_is_refused(tmp_path: Path) -> None:
    save_names(NAMES, tmp_path)
    table = pa.table({"name": [1, 2]})
    with pa.ipc.new_file(tmp_path / "relations.arrow", table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match=r"relations\.arrow are int64, not text"):
        load_names(tmp_path)


def test_names_are_saved_into_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    names = Names(pa.array(["a"], pa.large_string()), pa.array(["r"], pa.large_string()))
    save_names(names, tmp_path / "new" / "folder")
    assert load_names(tmp_path / "new" / "folder").nodes.to_pylist() == ["a"]


def test_where_no_relation_is_similar_some_are_listed() -> None:
    names = Names.of(["a"], [f"P{number}" for number in range(12)])
    with pytest.raises(
        InputError, match=r"unknown relation 'borders'; .*; the graph has 'P0', 'P1'"
    ):
        names.relation_id("borders")
