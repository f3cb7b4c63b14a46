"""A token table in several files is one table, of which only the rows in use are read."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from nodepiece.encoders.node_embedding import EncoderSettings, NodePieceEmbedding
from nodepiece.engines.spark_vocabulary import new_array
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.array_file import save_array
from nodepiece.tokenizer.array_parts import PART_UNIT, checked_part_bytes, load_parts, part_paths
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.storage import load_array, load_tokens, read_header, save_tokens
from nodepiece.tokenizer.to_folder import tokenize_into
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

NUM_NODES = 20_000
SETTINGS = TokenizerSettings(num_anchors=100, anchors_per_node=8, relations_per_node=4)
NAMES = ("anchors", "distances", "relations", "relation_sets_offsets", "relation_sets_values")


def ring() -> KnowledgeGraph:
    """Node i -> node i + 1, and to some node far away."""
    node, rng = np.arange(NUM_NODES), np.random.default_rng(0)
    next_nodes = np.stack([node, node % 7, (node + 1) % NUM_NODES], axis=1)
    others = np.stack([node, node % 5, rng.permutation(NUM_NODES)], axis=1)
    return KnowledgeGraph(np.concatenate([next_nodes, others]).astype(np.int32), NUM_NODES, 7)


@pytest.fixture(scope="module")
def table() -> TokenTable:
    rng = np.random.default_rng(1)
    return tokenize(ring(), fit_vocabulary(ring(), SETTINGS, rng=rng), rng=rng)


@pytest.fixture(scope="module")
def whole(table: TokenTable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    save_tokens(table, folder := tmp_path_factory.mktemp("whole") / "vocabulary")
    return folder


@pytest.fixture
def cut(table: TokenTable, tmp_path: Path) -> Path:
    save_tokens(table, tmp_path / "cut", part_bytes=PART_UNIT)
    return tmp_path / "cut"


def joined(folder: Path, name: str) -> bytes:
    return b"".join(path.read_bytes() for path in part_paths(folder / "tokens" / f"{name}.npy"))


def test_parts_have_the_bytes_of_one_file(whole: Path, cut: Path) -> None:
    for name in NAMES:
        assert joined(cut, name) == (whole / "tokens" / f"{name}.npy").read_bytes()
    assert len(part_paths(cut / "tokens" / "anchors.npy")) == 10  # 640,128 bytes
    assert not (cut / "tokens" / "anchors.npy").exists()


def test_a_table_in_parts_is_that_of_one_file(whole: Path, cut: Path) -> None:
    one, parts = load_tokens(whole), load_tokens(cut)
    for name in NAMES[:3]:
        np.testing.assert_array_equal(getattr(one, name), getattr(parts, name))
        assert not getattr(parts, name).flags.writeable
    np.testing.assert_array_equal(one.relation_sets.values, parts.relation_sets.values)


def test_tokenizing_into_a_folder_writes_the_same_parts(cut: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    (tmp_path / "now").mkdir()
    tokenize_into(tmp_path / "now", ring(), SETTINGS, rng=rng, part_bytes=PART_UNIT + 1)
    for path in (cut / "tokens").iterdir():
        assert (tmp_path / "now" / "tokens" / path.name).read_bytes() == path.read_bytes()
    header = (cut / "vocabulary.json").read_text()
    assert (tmp_path / "now" / "vocabulary.json").read_text() == header


def test_only_a_folder_with_parts_has_the_version_that_older_ones_refuse(
    whole: Path, cut: Path
) -> None:
    assert [read_header(folder)["format_version"] for folder in (whole, cut)] == [1, 2]


def resident_parts(folder: Path) -> set[str]:
    """The parts of which this process has pages in memory."""
    name, found = "", set()
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if address := re.match(r"[0-9a-f]+-[0-9a-f]+ [^/]*(.*)$", line):
            name = address[1]
        elif line.startswith("Rss:") and name.startswith(f"{folder}/") and line.split()[1] != "0":
            found.add(Path(name).name)
    return found


def test_a_process_whose_table_is_checked_reads_only_the_rows_of_its_nodes(cut: Path) -> None:
    stored = load_tokens(cut).as_checked(30)
    nodes = NodePieceEmbedding(
        stored, EncoderSettings(dim=4, hidden_dim=4), generator=torch.Generator()
    )
    place = cut / "tokens"
    before = {name for name in resident_parts(place) if not name.startswith("relation_sets")}
    assert before <= {f"{name}.npy.00000" for name in NAMES}  # at most the headers
    nodes(torch.tensor([9_000, 9_001]))
    now = {name for name in resident_parts(place) if not name.startswith("relation_sets")} - before
    # 9,000 nodes have 8 x 4, 8 x 2 and 4 x 4 bytes before them
    assert now == {"anchors.npy.00004", "distances.npy.00002", "relations.npy.00002"}


def test_a_table_of_gigabytes_takes_the_memory_of_the_rows_that_are_read(tmp_path: Path) -> None:
    rows = 1 << 26  # of 64 bytes: 4 GB, as files with holes that take no disk
    path, part = tmp_path / "anchors.npy", 1 << 30
    save_array(path, np.zeros((1, 16), np.int32), PART_UNIT)
    header = (tmp_path / "anchors.npy.00000").read_bytes()[:128]
    shape = f"({rows}, 16)".encode()
    changed = header.replace(b"(1, 16)", shape)[:-1].rstrip(b" \n").ljust(127) + b"\n"
    for number in range(5):
        with (tmp_path / f"anchors.npy.{number:05}").open("wb") as file:
            file.write(changed if number == 0 else b"")
            file.truncate(part if number < 4 else 128)
    before = resident_bytes()
    table = load_array(path, (rows, 16), np.int32)
    read = table[np.arange(0, rows, rows // 20)]
    assert not read.any()
    assert resident_bytes() - before < 32 << 20


def resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]


def test_a_part_may_be_on_another_disk(whole: Path, cut: Path, tmp_path: Path) -> None:
    part = cut / "tokens" / "anchors.npy.00003"
    part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    np.testing.assert_array_equal(load_tokens(cut).anchors, load_tokens(whole).anchors)


@pytest.mark.parametrize(
    ("number", "size", "words"),
    [
        (3, None, r"its part anchors\.npy\.00003 is missing"),
        (9, 100, "its parts have 589,924 bytes instead of 640,128"),
        (9, None, "its parts have 589,824 bytes instead of 640,128"),
        (0, 20, "anchors.npy is damaged"),
    ],
)
def test_missing_bytes_are_one_sentence(
    cut: Path, number: int, size: int | None, words: str
) -> None:
    part = cut / "tokens" / f"anchors.npy.{number:05}"
    if size is None:
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:size])
    with pytest.raises(InputError, match=words):
        load_tokens(cut)


def test_the_last_view_of_a_table_releases_its_memory(cut: Path) -> None:
    loaded = load_parts(part_paths(cut / "tokens" / "anchors.npy"))
    row = loaded[5]
    place = str(cut / "tokens")
    del loaded
    assert place in Path("/proc/self/maps").read_text() and row.shape == (8,)
    del row
    assert place not in Path("/proc/self/maps").read_text()


def test_an_array_that_is_written_in_any_order_has_the_bytes_of_one_file(tmp_path: Path) -> None:
    values = np.random.default_rng(2).integers(2**31, size=(50_000, 3), dtype=np.int32)
    array = new_array(tmp_path / "new.npy", values.shape, np.int32, PART_UNIT)
    array[20_000:], array[:20_000] = values[20_000:], values[:20_000]
    parts = part_paths(tmp_path / "new.npy")
    np.save(tmp_path / "whole.npy", values)
    assert len(parts) == 10
    assert b"".join(path.read_bytes() for path in parts) == (tmp_path / "whole.npy").read_bytes()


def test_parts_smaller_than_a_page_are_refused() -> None:
    assert checked_part_bytes(PART_UNIT + 5) == PART_UNIT
    with pytest.raises(InputError, match="at least 65,536 bytes, got 1,000"):
        checked_part_bytes(1000)
