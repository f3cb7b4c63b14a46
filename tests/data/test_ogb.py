import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.data.written_facts import facts_of

from nodepiece.data.load import load_training_graph
from nodepiece.data.torch_arrays import load_arrays
from nodepiece.errors import InputError

# Q1 -P31-> Q2, Q3 -P17-> Q1
TRAIN = {"head": np.array([0, 2]), "relation": np.array([0, 1]), "tail": np.array([1, 0])}
NODES = "node idx,entity id\n0,Q1\n1,Q2\n2,Q3\n"
RELATIONS = "reltype,rel id\n0,P31\n1,P17\n"


def write_ogb(place: Path, train: Any = TRAIN, nodes: str = NODES, **save: Any) -> Path:
    folder = place / "ogbl_wikikg2"
    for name in ("split/time", "mapping"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for part in ("train", "valid", "test"):
        torch.save(train, folder / f"split/time/{part}.pt", **save)
    for name, text in (("nodeidx2entityid", nodes), ("reltype2relid", RELATIONS)):
        (folder / f"mapping/{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def facts(place: Path) -> list[tuple[str, str, str]]:
    return facts_of(load_training_graph("ogbl-wikikg2", place)[0])


@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "before torch 1.6"])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_training_facts_are_read_with_their_wikidata_names(
    tmp_path: Path, is_zip: bool, protocol: int
) -> None:
    write_ogb(tmp_path, _use_new_zipfile_serialization=is_zip, pickle_protocol=protocol)
    assert facts(tmp_path) == [("Q1", "P31", "Q2"), ("Q3", "P17", "Q1")]


def test_arrays_pickled_by_an_older_numpy_are_read(tmp_path: Path) -> None:
    folder = write_ogb(tmp_path, _use_new_zipfile_serialization=False)
    path = folder / "split/time/train.pt"
    path.write_bytes(path.read_bytes().replace(b"numpy._core.multi", b"numpy.core.multi"))
    assert len(facts(tmp_path)) == 2


def test_tensors_are_read_like_arrays_strides_and_all(tmp_path: Path) -> None:
    content = {"a": torch.arange(12).view(3, 4).T[1:], "b": torch.arange(4, dtype=torch.int32)[2:]}
    torch.save(content, tmp_path / "x.pt")
    read = load_arrays(tmp_path / "x.pt")
    for key, tensor in content.items():
        np.testing.assert_array_equal(read[key], tensor.numpy())


@pytest.mark.parametrize("cut", [0, 1, 40, -30])
def test_a_file_cut_short_is_refused(tmp_path: Path, cut: int) -> None:
    path = write_ogb(tmp_path) / "split/time/train.pt"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match="cannot be read as plain arrays"):
        facts(tmp_path)


def test_tensors_are_read_like_arrays(tmp_path: Path) -> None:
    write_ogb(tmp_path, {role: torch.from_numpy(ids) for role, ids in TRAIN.items()})
    assert len(facts(tmp_path)) == 2


def test_names_are_ordered_by_their_index(tmp_path: Path) -> None:
    write_ogb(tmp_path, nodes="node idx,entity id\n2,Q3\n0,Q1\n1,Q2\n")
    assert facts(tmp_path)[1] == ("Q3", "P17", "Q1")


class Mischief:
    """Unpickled without care, this creates a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


@pytest.mark.parametrize("is_zip", [True, False])
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_that_would_run_code_is_refused_unrun(
    tmp_path: Path, is_zip: bool, protocol: int
) -> None:
    target = tmp_path / "was-here"
    train = TRAIN | {"x": Mischief(target)}
    write_ogb(tmp_path, train, _use_new_zipfile_serialization=is_zip, pickle_protocol=protocol)
    with pytest.raises(InputError, match=r"train\.pt cannot be read as plain arrays"):
        facts(tmp_path)
    assert not target.exists()


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ({"head": np.array([0])}, "has no 'relation'"),
        (TRAIN | {"tail": np.array([1])}, "differ in length"),
        (TRAIN | {"tail": np.array([0.5, 1.0])}, "'tail' is no column of integers"),
        (TRAIN | {"tail": np.array([1, 3])}, "outside the graph of 3 nodes"),
        (TRAIN | {"tail": np.array([1, 2**32])}, "outside the graph of 3 nodes"),
        ([1, 2], "holds a list"),
    ],
)
def test_unfit_content_is_refused(tmp_path: Path, train: Any, message: str) -> None:
    write_ogb(tmp_path, train)
    with pytest.raises(InputError, match=message):
        facts(tmp_path)


@pytest.mark.parametrize("nodes", ["idx,id\n0,Q1\n2,Q3\n", "idx,id\n0,Q1\nx,Q2\n", "idx\n0\n1\n"])
def test_a_damaged_mapping_is_refused(tmp_path: Path, nodes: str) -> None:
    write_ogb(tmp_path, nodes=nodes)
    with pytest.raises(InputError, match=r"nodeidx2entityid\.csv\.gz"):
        facts(tmp_path)
