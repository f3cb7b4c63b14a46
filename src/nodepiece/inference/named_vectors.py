"""Vectors of nodes or relations, with their names."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.graph.names import Names, unknown_name
from nodepiece.graph.short_text import few, plural


@dataclass(frozen=True, eq=False)
class NamedVectors:
    """A matrix with a name for each row.

    `vectors["Kenya"]` is a row, `vectors[["Kenya", "Chad"]]` some rows; `numpy.asarray(vectors)` is
    the whole matrix, as `vectors.values` is.
    """

    names: list[str]  # (num_names,)
    values: NDArray[np.float32]  # (num_names, dim)
    kind: str = "node"  # or relation

    def __post_init__(self) -> None:
        if len(self.names) != len(self.values):
            raise InputError(f"{len(self.names)} names do not fit {len(self.values)} vectors")

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __getitem__(self, names: str | Sequence[str]) -> NDArray[np.float32]:
        """The vector of a name, (dim,), or of several, (num_names, dim)."""
        if isinstance(names, str):
            return self.values[self._row(names)]
        return self.values[[self._row(name) for name in names]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        count, dim = self.values.shape
        return f"NamedVectors({plural(count, self.kind)}, dim={dim}: {few(self.names)})"

    def to_arrow(self) -> pa.Table:
        """A table of two columns: the name, and the vector as a list of fixed size."""
        from nodepiece.inference.vector_file import vector_batches, vector_schema

        schema = vector_schema(self.values.shape[1], self.kind)
        return pa.Table.from_batches(vector_batches(self.names, self.values, schema), schema)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each name, which is its index."""
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise InputError("to_pandas needs pandas; pip install pandas") from error
        return pandas.DataFrame(self.values, index=pandas.Index(self.names, name=self.kind))

    def save(self, path: str | Path) -> None:
        """Write a file: .parquet, .csv, .tsv, .jsonl, or .npy with the names beside it."""
        from nodepiece.inference.vector_file import write_vectors

        write_vectors(self.names, self.values, path, kind=self.kind)

    def _row(self, name: str) -> int:
        if name in self._rows:
            return self._rows[name]
        raise unknown_name(name, pa.array(self.names, pa.large_string()), self.kind)


def named_relations(names: Names, vectors: Tensor) -> NamedVectors:
    """The vectors of all relations and inverses, (2 * num_relations, dim), by name."""
    labels = [names.relation(relation) for relation in range(2 * len(names.relations))]
    return NamedVectors(labels, vectors.detach().cpu().numpy(), "relation")
