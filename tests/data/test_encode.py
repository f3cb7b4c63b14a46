"""Names and ids to ids by first appearance, in memory and through files."""

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.data import delimited, encode, id_table, name_table
from nodepiece.data.name_table import NameTable
from nodepiece.data.read import read_graph, read_graph_with_report
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph

names = st.text(max_size=20)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.tuples(names, names), max_size=20), max_size=5))
def test_names_get_ids_by_first_appearance_whatever_the_blocks(
    blocks: list[list[tuple[str, str]]],
) -> None:
    known: dict[str, int] = {}
    table = NameTable()
    for block in blocks:
        columns = [pa.array([pair[side] for pair in block], pa.string()) for side in (0, 1)]
        expected = [[known.setdefault(name, len(known)) for name in pair] for pair in block]
        found = table.encode(*columns)
        assert np.stack(found, axis=1).tolist() == expected
    assert table.names().to_pylist() == list(known)


def test_many_names_have_different_ids_while_the_table_grows() -> None:
    table = NameTable()
    words = [f"{i}" for i in range(3 * name_table.FIRST_SLOTS)]  # many collisions, and growth
    (ids,) = table.encode(pa.array(words))
    assert ids.tolist() == list(range(len(words)))
    (again,) = table.encode(pa.array(words[::-1], pa.large_string()))
    assert again.tolist() == ids[::-1].tolist()


@pytest.mark.parametrize("length", [50, 40_000])
def test_one_column_of_long_names_makes_the_text_grow(length: int) -> None:
    words = [f"{i:0{length}}" for i in range(2_000 if length < 100 else 5)]
    table = NameTable()
    (ids,) = table.encode(pa.array(words))
    assert ids.tolist() == list(range(len(words)))
    assert table.names().to_pylist() == words


def test_heads_and_tails_may_be_integers_of_different_types(tmp_path: Path) -> None:
    columns = {
        "head": pa.array([5, 7], pa.uint64()),
        "relation": pa.array([0, 1], pa.uint64()),
        "tail": pa.array([7, 9], pa.int32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "facts.parquet")
    graph = read_graph(tmp_path / "facts.parquet")
    assert graph.triples.tolist() == [[0, 0, 1], [1, 1, 2]]
    assert graph.names is not None and graph.names.nodes.to_pylist() == ["5", "7", "9"]


def random_ids(num_facts: int, largest: int = 90) -> np.ndarray:
    return np.random.default_rng(0).integers(0, [largest, 5, largest], size=(num_facts, 3))


def write_parquet(path: Path, facts: np.ndarray, **options: object) -> Path:
    columns = dict(zip(("head", "relation", "tail"), facts.T, strict=True))
    pq.write_table(
        pa.table({name: pa.array(ids) for name, ids in columns.items()}), path, **options
    )
    return path


def assert_same(one: KnowledgeGraph, two: KnowledgeGraph) -> None:
    np.testing.assert_array_equal(one.triples, two.triples)
    assert one.names is not None and two.names is not None
    assert one.names.nodes.equals(two.names.nodes)
    assert one.names.relations.equals(two.names.relations)
    assert one.fingerprint == two.fingerprint


@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_integers_are_read_as_their_digits_would_be(
    tmp_path: Path, dtype: type, spilled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_table, "BLOCK_IDS", 7)
    facts: np.ndarray = random_ids(3000).astype(dtype)
    as_text = tmp_path / "facts.tsv"
    as_text.write_text("".join("\t".join(map(str, fact)) + "\n" for fact in facts.tolist()))
    spill = tmp_path / "spill"
    spill.mkdir()
    path = write_parquet(tmp_path / "facts.parquet", facts, row_group_size=100)
    found, report = read_graph_with_report(path, spill=spill if spilled else None)
    assert_same(found, read_graph(as_text))
    assert report.num_duplicates == 3000 - len(np.unique(facts, axis=0)) > 0


def test_facts_are_mapped_from_the_folder_that_was_given(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "facts.parquet", np.unique(random_ids(50), axis=0))
    graph = read_graph_with_report(path, spill=tmp_path)[0]
    base = graph.triples
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    assert (tmp_path / "facts").stat().st_size == 12 * graph.num_triples


@pytest.mark.parametrize("change", [10**12, -100])
def test_sparse_or_negative_integers_are_read_as_text(tmp_path: Path, change: int) -> None:
    facts = random_ids(50)
    facts[7, 2] = change
    graph = read_graph(write_parquet(tmp_path / "facts.parquet", facts))
    assert graph.names is not None
    assert str(change) in graph.names.nodes.to_pylist()


def test_files_without_statistics_are_read_too(tmp_path: Path) -> None:
    facts = random_ids(50)
    known = read_graph(write_parquet(tmp_path / "with.parquet", facts))
    plain = write_parquet(tmp_path / "without.parquet", facts, write_statistics=False)
    assert_same(read_graph(plain), known)


def test_an_integer_that_is_missing_is_refused_with_its_row(tmp_path: Path) -> None:
    table = pa.table({"head": [1, 2, None], "relation": [0, 0, 0], "tail": [2, 3, 4]})
    pq.write_table(table, tmp_path / "facts.parquet")
    with pytest.raises(InputError, match=r"row 3: the head .* is empty"):
        read_graph(tmp_path / "facts.parquet")


@pytest.mark.parametrize("spilled", [False, True])
def test_facts_with_large_ids_are_distinct_too(
    tmp_path: Path, spilled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "MAX_KEY", 1000)
    path = write_parquet(tmp_path / "facts.parquet", random_ids(3000, largest=20))
    graph = read_graph_with_report(path, spill=tmp_path if spilled else None)[0]
    monkeypatch.undo()
    assert_same(graph, read_graph(path))


def test_distinct_facts_with_large_ids_take_eight_bytes_each() -> None:
    rng, num_facts = np.random.default_rng(0), 1_000_000
    facts = rng.integers((2**31 - 2, 20_000, 2**31 - 2), size=(num_facts, 3), dtype=np.int32)
    encode.drop_duplicates(facts[:100], 2**31 - 1, 20_000)  # compile
    tracemalloc.start()
    kept = encode.drop_duplicates(facts, 2**31 - 1, 20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(kept) == num_facts and peak < 17 * num_facts  # and 8 for the hashes of a block
    facts[-5:] = facts[:5]
    again = encode.drop_duplicates(facts, 2**31 - 1, 20_000)
    np.testing.assert_array_equal(again, facts[:-5])


def test_different_facts_with_the_same_hash_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = np.array([[0, 0, 1], [0, 0, 2], [0, 0, 1], [5, 1, 3]], np.int32)
    by_salt = {0: [7, 7, 7, 1], 1: [3, 4, 3, 2]}  # the first salt has a collision
    monkeypatch.setattr(encode, "_hashes", lambda block, salt: np.array(by_salt[salt]))
    kept = encode.drop_duplicates_by_hash(facts, None)
    np.testing.assert_array_equal(kept, facts[[0, 1, 3]])


def test_a_line_longer_than_a_small_block_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = [f"n{i}\tr\tn{i + 1}\n" for i in range(300)]
    facts[200] = "x" * 4000 + "\tr\ty\n"
    (tmp_path / "facts.tsv").write_text("".join(facts))
    whole = read_graph(tmp_path / "facts.tsv")
    monkeypatch.setattr(delimited, "SMALL_BLOCK_BYTES", 500)
    assert_same(read_graph(tmp_path / "facts.tsv"), whole)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("file", ["facts", "nodes-text"])
def test_a_full_disk_is_not_blamed_on_the_file_that_is_read(tmp_path: Path, file: str) -> None:
    path = write_parquet(tmp_path / "facts.parquet", random_ids(50))
    (tmp_path / file).symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"temporary file .* cannot be written: No space left"):
        read_graph_with_report(path, spill=tmp_path)
