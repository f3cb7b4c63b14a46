"""Vectors by name: in memory and in files."""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.inference.named_vectors import NamedVectors
from nodepiece.inference.vector_file import write_vectors

ROWS: NDArray[np.float32] = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
VECTORS = NamedVectors(["Chad", "Kenya", "Mali"], ROWS)


def test_a_vector_is_found_by_its_name() -> None:
    assert VECTORS["Kenya"].tolist() == [3, 4]
    assert VECTORS[["Mali", "Chad"]].tolist() == [[5, 6], [1, 2]]
    assert "Kenya" in VECTORS and "Kenia" not in VECTORS and len(VECTORS) == 3


def test_they_are_a_numpy_array() -> None:
    assert np.asarray(VECTORS) is ROWS or np.shares_memory(np.asarray(VECTORS), ROWS)
    assert np.array_equal(np.linalg.norm(VECTORS, axis=1), np.linalg.norm(ROWS, axis=1))
    assert np.asarray(VECTORS, np.float64).dtype == np.float64


def test_an_unknown_name_suggests_similar_ones() -> None:
    with pytest.raises(InputError, match="unknown node 'kenya'; did you mean 'Kenya'"):
        VECTORS["kenya"]


def test_their_repr_is_one_line() -> None:
    assert repr(VECTORS) == "NamedVectors(3 nodes, dim=2: 'Chad', 'Kenya', 'Mali')"


def test_as_many_names_as_vectors_are_needed() -> None:
    with pytest.raises(InputError, match="2 names do not fit 3 vectors"):
        NamedVectors(["a", "b"], ROWS)


def test_as_tables() -> None:
    frame = VECTORS.to_pandas()

    assert VECTORS.to_arrow().to_pydict() == {"node": VECTORS.names, "vector": ROWS.tolist()}
    assert frame.loc["Mali"].tolist() == [5, 6] and frame.index.name == "node"


def test_a_matrix_has_its_names_beside_it(tmp_path: Path) -> None:
    VECTORS.save(tmp_path / "v.npy")

    assert np.array_equal(np.load(tmp_path / "v.npy"), ROWS)
    assert json.loads((tmp_path / "v.names.json").read_text()) == VECTORS.names


def test_other_endings_are_tables_with_names(tmp_path: Path) -> None:
    write_vectors(["r"], ROWS[:1], tmp_path / "v.parquet", kind="relation")
    write_vectors(["r"], ROWS[:1], tmp_path / "v.csv", kind="relation")

    assert pq.read_table(tmp_path / "v.parquet").to_pylist() == [
        {"relation": "r", "vector": [1, 2]}
    ]
    assert (tmp_path / "v.csv").read_text().splitlines()[1] == '"r",1,2'


def test_an_ending_that_is_no_format_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"use one of .*\.npy"):
        write_vectors(["r"], ROWS[:1], tmp_path / "v.xls")


def test_a_pipeline_without_scikit_learn_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "nodepiece.inference.transformer", raising=False)
    with pytest.raises(InputError, match="pip install scikit-learn"):
        import_module("nodepiece.inference.transformer")
