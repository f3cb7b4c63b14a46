"""Numbers in a damaged folder that no kernel may follow: an error instead of a dead interpreter."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from nodepiece.errors import InputError
from nodepiece.inference.graph_updates import UPDATES_FOLDER
from nodepiece.inference.run import load_links
from nodepiece.inference.update import update_run
from nodepiece.tokenizer.export import export_tokens
from nodepiece.tokenizer.similarity import shared_pieces
from nodepiece.tokenizer.statistics import describe_tokens
from nodepiece.tokenizer.storage import load_tokens

FACT = [("Ida", "lives in", "town 1")]


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def updated(folder: Path) -> Path:
    run = load_links(folder)
    for n in range(2):
        update_run(run, add=[(f"new {n}", "lives in", "town 1")])
    return folder


def put_into(path: Path, value: int, place: int = 5) -> None:
    array = np.load(path)
    array.reshape(-1)[place] = value
    np.save(path, array)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("anchors", -2_000_000_000),
        ("anchors", 2_000_000_000),
        ("anchors", -1),
        ("anchors", 21),  # a relation: there are 20 anchors
        ("distances", -2),
        ("relations", 3),  # an anchor
        ("relations", 25),  # [DISCONNECTED]
        ("relations", -2_000_000_000),
    ],
)
def test_a_token_that_there_is_not_is_refused_when_a_run_is_opened(
    folder: Path, name: str, value: int
) -> None:
    put_into(folder / "vocabulary" / "tokens" / f"{name}.npy", value)
    with pytest.raises(InputError, match=rf"vocabulary is damaged .*{value:,} among the {name}"):
        load_links(folder)


def test_a_table_full_of_negative_tokens_is_refused_whatever_is_done_with_it(folder: Path) -> None:
    path = folder / "vocabulary" / "tokens" / "anchors.npy"
    np.save(path, np.full_like(np.load(path), -2_000_000_000))
    table = load_tokens(folder / "vocabulary")  # maps it, and reads nothing yet
    for use in (
        describe_tokens,
        lambda table: export_tokens(table, folder / "tokens.parquet"),
        lambda table: shared_pieces(table, 0),
    ):
        with pytest.raises(InputError, match=r"the tokens are damaged .*run nodepiece tokenize"):
            use(table)


def test_a_distance_without_an_anchor_is_refused_before_the_graph_changes(folder: Path) -> None:
    tokens = folder / "vocabulary" / "tokens"
    place = int(np.flatnonzero(np.load(tokens / "distances.npy").reshape(-1) >= 0)[0])
    put_into(tokens / "distances.npy", -1, place)
    with pytest.raises(InputError, match="some anchors have no distance"):
        load_links(folder).with_facts(FACT)


@pytest.mark.parametrize("value", [-1, 4, 2_000_000_000])
def test_relation_sets_that_name_no_relation_are_refused(folder: Path, value: int) -> None:
    put_into(folder / "vocabulary" / "tokens" / "relation_sets_values.npy", value)
    table = load_tokens(folder / "vocabulary")
    with pytest.raises(InputError, match=f"damaged .{value:,} among the relations"):
        table.relation_sets.check(table.vocabulary.num_relations)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("value", [-1, 2_000_000_000])
def test_facts_outside_the_graph_are_refused(folder: Path, split: str, value: int) -> None:
    put_into(folder / "facts" / f"{split}.npy", value)
    with pytest.raises(InputError, match=rf"{split}.npy is damaged .* outside the graph"):
        load_links(folder)


def test_tokens_of_a_damaged_base_are_refused_before_they_are_used(updated: Path) -> None:
    (base,) = (updated / UPDATES_FOLDER).glob("base-*")
    put_into(base / "tokens" / "anchors.npy", -2_000_000_000)
    with pytest.raises(InputError, match="-2,000,000,000 among the anchors"):
        load_links(updated).with_facts(FACT)


@pytest.mark.parametrize("value", [-1, 2_000_000_000])
def test_facts_of_a_damaged_base_are_refused(updated: Path, value: int) -> None:
    (base,) = (updated / UPDATES_FOLDER).glob("base-*")
    put_into(base / "facts.npy", value)
    with pytest.raises(InputError, match="outside the graph"):
        load_links(updated).predict(head="person 0", relation="lives in")


@pytest.mark.parametrize("name", ["facts", "present", "vectors"])
def test_arrays_of_another_shape_are_refused(updated: Path, name: str) -> None:
    (base,) = (updated / UPDATES_FOLDER).glob("base-*")
    np.save(base / f"{name}.npy", np.load(base / f"{name}.npy")[:-1].astype(np.float64))
    with pytest.raises(InputError, match=rf"base-0000.* is damaged \({name}.npy is"):
        load_links(updated)


@pytest.mark.parametrize(
    "name", ["added", "nodes", "anchors", "distances", "relations", "vector_nodes"]
)
def test_ids_in_a_damaged_batch_are_refused(updated: Path, name: str) -> None:
    path = updated / UPDATES_FOLDER / "000002.safetensors"
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        arrays = {key: file.get_tensor(key).copy() for key in file.keys()}  # noqa: SIM118
    arrays[name].reshape(-1)[-1] = -30_000
    save_file(arrays, path, metadata=metadata)
    with pytest.raises(InputError, match=r"000002.safetensors is damaged"):
        load_links(updated)
