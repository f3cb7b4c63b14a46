"""Vocabularies on disk: the same after a round trip, refused when damaged, never half there."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.statistics import describe_tokens
from nodepiece.tokenizer.storage import (
    FORMAT_VERSION,
    HEADER,
    load_tokens,
    save_tokens,
)
from nodepiece.tokenizer.tokens import TokenTable, tokenize, tokenize_by
from nodepiece.tokenizer.vocabulary import fit_vocabulary

SETTINGS = TokenizerSettings(num_anchors=8, anchors_per_node=3, relations_per_node=2)
ARRAYS = [
    "anchors.npy",
    "tokens/anchors.npy",
    "tokens/distances.npy",
    "tokens/relations.npy",
    "tokens/relation_sets_offsets.npy",
    "tokens/relation_sets_values.npy",
]


def named_graph(prefix: str = "node", num_nodes: int = 40) -> KnowledgeGraph:
    rng = np.random.default_rng(0)
    size = (num_nodes + 5, 3)
    triples = rng.integers((num_nodes, 3, num_nodes), size=size, dtype=np.int32)
    names = Names.of([f"{prefix} {i}" for i in range(num_nodes)], ["is", "has", "né à"])
    return KnowledgeGraph(triples, num_nodes, 3, names)


def make_table(
    graph: KnowledgeGraph, chosen: TokenizerSettings = SETTINGS, seed: int = 0
) -> TokenTable:
    rng = np.random.default_rng(seed)
    return tokenize(graph, fit_vocabulary(graph, chosen, rng=rng), rng=rng)


def files_in(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def arrays_of(table: TokenTable) -> dict[str, NDArray[np.integer]]:
    sets, vocabulary = table.relation_sets, table.vocabulary
    arrays = (vocabulary.anchors, table.anchors, table.distances, table.relations)
    return dict(zip(ARRAYS, (*arrays, sets.offsets, sets.values), strict=True))


def assert_same(table: TokenTable, other: TokenTable) -> None:
    for name, array in arrays_of(table).items():
        np.testing.assert_array_equal(array, arrays_of(other)[name], strict=True)
    assert table.vocabulary.settings == other.vocabulary.settings
    assert table.vocabulary.fingerprint == other.vocabulary.fingerprint
    assert len(table.vocabulary) == len(other.vocabulary)
    assert table.num_nodes == other.num_nodes == other.vocabulary.num_nodes


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_tokens(make_table(named_graph()), tmp_path / "vocab")
    return tmp_path / "vocab"


@settings(max_examples=40, deadline=None)
@given(
    num_nodes=st.integers(3, 30),
    k=st.integers(0, 3),
    m=st.integers(1, 3),
    distances=st.booleans(),
    with_names=st.booleans(),
)
def test_a_table_is_the_same_after_saving_and_loading(
    tmp_path_factory: pytest.TempPathFactory,
    num_nodes: int,
    k: int,
    m: int,
    distances: bool,
    with_names: bool,
) -> None:
    graph = named_graph(num_nodes=num_nodes)
    if not with_names:
        graph = KnowledgeGraph(graph.triples, num_nodes, 3)
    chosen = TokenizerSettings(
        num_anchors=3, anchors_per_node=k, relations_per_node=m, distances=distances
    )
    table = make_table(graph, chosen)
    folder = tmp_path_factory.mktemp("round") / "trip"
    save_tokens(table, folder)
    loaded = load_tokens(folder, graph=graph)
    assert_same(table, loaded)
    assert [loaded.pieces(node) for node in range(num_nodes)] == [
        table.pieces(node) for node in range(num_nodes)
    ]


def test_a_graph_without_facts_survives_too(tmp_path: Path) -> None:
    graph = KnowledgeGraph(np.empty((0, 3), dtype=np.int32), 4, 0, Names.of(list("abcd"), []))
    table = make_table(graph, TokenizerSettings(num_anchors=2, anchors_per_node=2))
    save_tokens(table, tmp_path / "vocab")
    assert_same(table, load_tokens(tmp_path / "vocab", graph=graph))


def test_counts_that_come_from_numpy_can_be_saved(tmp_path: Path) -> None:
    graph = KnowledgeGraph(named_graph().triples, np.int64(40), np.int64(3))  # type: ignore[arg-type]
    chosen = TokenizerSettings(num_anchors=np.int64(8), anchors_per_node=3)  # type: ignore[arg-type]
    save_tokens(make_table(graph, chosen), tmp_path / "vocab")
    assert load_tokens(tmp_path / "vocab").vocabulary.num_anchors == 8


def test_the_arrays_stay_on_disk_and_cannot_be_written_to(saved: Path) -> None:
    for array in arrays_of(load_tokens(saved)).values():
        assert not array.flags.writeable
        base: object = array
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)


def test_the_kernels_work_on_arrays_that_are_on_disk(saved: Path) -> None:
    table, loaded = make_table(named_graph()), load_tokens(saved)
    assert describe_tokens(loaded) == describe_tokens(table)
    rng, other_rng = np.random.default_rng(5), np.random.default_rng(5)
    sample = loaded.relation_sets.sample(1, 6, rng=rng)
    np.testing.assert_array_equal(sample, table.relation_sets.sample(1, 6, rng=other_rng))


def test_a_vocabulary_without_tokens_is_refused(saved: Path) -> None:
    shutil.rmtree(saved / "tokens")
    with pytest.raises(InputError, match="has a vocabulary without tokens; run nodepiece tok"):
        load_tokens(saved)


def test_the_same_seed_writes_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        save_tokens(make_table(named_graph(), seed=seed), tmp_path / name)
    assert files_in(tmp_path / "one") == files_in(tmp_path / "two")
    assert files_in(tmp_path / "one") != files_in(tmp_path / "three")


def test_saving_again_replaces_the_whole_earlier_vocabulary(saved: Path) -> None:
    graph = named_graph("other", num_nodes=20)
    save_tokens(make_table(graph), saved)
    assert_same(make_table(graph), load_tokens(saved, graph=graph))
    assert [path.name for path in saved.parent.iterdir()] == ["vocab"]


def test_a_table_can_be_saved_over_the_files_it_was_loaded_from(saved: Path) -> None:
    before = files_in(saved)
    loaded = load_tokens(saved)
    save_tokens(loaded, saved)
    assert files_in(saved) == before
    assert_same(loaded, load_tokens(saved))


def test_a_folder_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match=f"exists and is not a folder written by .* no {HEADER}"):
        save_tokens(make_table(named_graph()), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_newer_format_is_refused_whatever_else_it_holds(saved: Path) -> None:
    (saved / HEADER).write_text(json.dumps({"format_version": FORMAT_VERSION + 1}))
    sentence = f"format version {FORMAT_VERSION + 1}, this nodepiece reads up to {FORMAT_VERSION}; "
    with pytest.raises(InputError, match=sentence + "install a newer nodepiece"):
        load_tokens(saved)


def test_another_graph_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match=r"made for another graph \(40 nodes, 3 relations\)"):
        load_tokens(saved, graph=named_graph("other"))
    with pytest.raises(InputError, match="made for another graph"):
        load_tokens(saved, graph=named_graph(num_nodes=41))


def test_a_folder_that_is_no_vocabulary_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match=f"{folder} is not a vocabulary folder .* no {HEADER}"):
            load_tokens(folder)


@pytest.mark.parametrize("name", [*ARRAYS, "names/nodes.arrow", "names/relations.arrow"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut off", "garbage"])
def test_a_damaged_file_is_refused_by_its_name(saved: Path, name: str, damage: str) -> None:
    whole = (saved / name).read_bytes()
    (saved / name).unlink()
    if damage != "missing":
        contents = {"empty": b"", "cut off": whole[:-3], "garbage": b"garbage" * 99}
        (saved / name).write_bytes(contents[damage])
    with pytest.raises(InputError, match=name):
        load_tokens(saved)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_another_shape_or_type_is_refused_by_its_name(saved: Path, name: str) -> None:
    array = np.load(saved / name)
    for other in (array[:-1], array.astype(np.float64), array.astype(np.uint8)):
        np.save(saved / name, other)
        with pytest.raises(InputError, match=f"{name} is damaged or incomplete"):
            load_tokens(saved)


@pytest.mark.parametrize(
    ("name", "position", "value"),
    [
        ("anchors.npy", 2, 40),
        ("anchors.npy", 2, -1),
        ("tokens/relation_sets_offsets.npy", 0, 1),
        ("tokens/relation_sets_offsets.npy", 5, 2**40),
        ("tokens/relation_sets_offsets.npy", 5, -1),
    ],
)
def test_ids_outside_the_graph_and_offsets_that_do_not_ascend_are_refused(
    saved: Path, name: str, position: int, value: int
) -> None:
    array = np.load(saved / name)
    array[position] = value
    np.save(saved / name, array)
    with pytest.raises(InputError, match=f"{name} is damaged or incomplete"):
        load_tokens(saved)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_objects_is_refused_unread(saved: Path, name: str) -> None:
    array = np.load(saved / name)
    np.save(saved / name, array.astype(object), allow_pickle=True)
    with pytest.raises(InputError, match=f"{name} is damaged or incomplete"):
        load_tokens(saved)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "7", "{}", '{"format_version": "x"}', '{"format_version": 1}', "\xff"],
)
def test_a_header_that_is_not_ours_is_refused_by_its_name(saved: Path, text: str) -> None:
    (saved / HEADER).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=f"{HEADER} is damaged or incomplete"):
        load_tokens(saved)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_nodes", "40"),
        ("num_nodes", None),
        ("num_anchors", [8]),
        ("fingerprint", 5),
        ("has_names", "yes"),
        ("settings", None),
        ("settings", ["mix"]),
        ("settings", {"anchors_per_nod": 3}),
        ("settings", {"anchors_per_node": "3"}),
        ("settings", {"anchors_per_node": -3}),
        ("settings", {"mix": []}),
        ("settings", {"mix": {"degree": "x"}}),
    ],
)
def test_a_header_with_a_wrong_value_is_refused_by_its_name(
    saved: Path, field: str, value: object
) -> None:
    header = json.loads((saved / HEADER).read_text())
    (saved / HEADER).write_text(json.dumps(header | {field: value}))
    with pytest.raises(InputError, match=f"{HEADER} is damaged or incomplete"):
        load_tokens(saved)


def test_swapped_names_are_refused_by_their_folder(saved: Path) -> None:
    nodes, relations = saved / "names/nodes.arrow", saved / "names/relations.arrow"
    nodes.rename(saved / "aside")
    relations.rename(nodes)
    (saved / "aside").rename(relations)
    with pytest.raises(InputError, match=r"names is damaged .* not those the vocabulary was made"):
        load_tokens(saved)


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flipped") / "vocab"
    save_tokens(make_table(named_graph(num_nodes=12)), folder)
    return folder


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_flipped_bytes_are_refused_or_change_nothing_but_values(
    saved_once: Path, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(files_in(saved_once))))
    whole = (saved_once / name).read_bytes()
    flipped = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        flipped[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (saved_once / name).write_bytes(flipped)
    try:
        table = load_tokens(saved_once)
        assert table.anchors.shape == (12, 3) and table.anchors.dtype == np.int32
    except InputError as error:
        assert str(saved_once) in str(error)
    finally:
        (saved_once / name).write_bytes(whole)


SLOW_SAVE = """
import sys, time
from pathlib import Path
import numpy as np
from nodepiece.tokenizer.storage import load_tokens, save_tokens

source, target = map(Path, sys.argv[1:])
table = load_tokens(source)
save = np.save

def slow_save(path, array):
    print(Path(path).name, flush=True)
    time.sleep(0.05)
    save(path, array)
    print("done", flush=True)
    time.sleep(0.05)

np.save = slow_save
save_tokens(table, target)
print("all", flush=True)
"""


@pytest.mark.parametrize("is_replacing", [False, True])
@pytest.mark.parametrize("lines_before_kill", [1, 4, 8, 12])
def test_a_killed_save_leaves_the_old_vocabulary_or_nothing(
    tmp_path: Path, lines_before_kill: int, is_replacing: bool
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    save_tokens(make_table(named_graph(), seed=1), source)
    if is_replacing:
        save_tokens(make_table(named_graph(), seed=2), target)
    before = files_in(target)
    command = [sys.executable, "-c", SLOW_SAVE, str(source), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(lines_before_kill):
            assert child.stdout.readline() != "all\n"
        child.send_signal(signal.SIGKILL)
    if is_replacing:
        assert files_in(target) in (before, files_in(source))
        load_tokens(target)
    else:
        assert not target.exists() or files_in(target) == files_in(source)
    save_tokens(load_tokens(source), target)  # leftovers of killed processes do no harm
    assert files_in(target) == files_in(source)


def test_what_was_random_is_kept_and_a_table_without_it_loads_too(saved: Path) -> None:
    table = load_tokens(saved)
    assert table.salts is not None and table.salts == make_table(named_graph()).salts
    again = tokenize_by(table.salts, build_adjacency(named_graph()), table.vocabulary)
    assert_same(table, again)
    (saved / "tokens" / "salts.npy").unlink()
    assert load_tokens(saved).salts is None


@pytest.mark.parametrize("number", [-2, 2, 2**70])
def test_a_header_with_another_number_of_relations_is_refused(saved: Path, number: int) -> None:
    header = json.loads((saved / "vocabulary.json").read_text())
    assert header["num_relations"] not in (2, 2**70)
    (saved / "vocabulary.json").write_text(json.dumps(header | {"num_relations": number}))
    with pytest.raises(InputError, match="it says"):
        load_tokens(saved)
