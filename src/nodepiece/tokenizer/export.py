"""Export of token tables by name, in the format that the ending of the file says."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.data.table_file import check_ending, write_table
from nodepiece.files import atomic_file
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.names import INVERSE_PREFIX
from nodepiece.graph.nearest import Distances
from nodepiece.tokenizer.tokens import TokenTable
from nodepiece.tokenizer.vocabulary import Vocabulary

MATRIX = ".npy"
ROWS_AT_ONCE = 1 << 16  # nodes in a row group; one group is in memory at a time

SCHEMA = pa.schema(
    [
        pa.field("node", pa.string(), nullable=False),
        pa.field("anchors", pa.list_(pa.string()), nullable=False),
        pa.field("distances", pa.list_(pa.int16())),
        pa.field("relations", pa.list_(pa.string()), nullable=False),
    ]
)


def export_tokens(table: TokenTable, path: str | Path) -> None:
    """Write one row for each node, in the order of ids: its name and its pieces by name.

    Lists hold pieces only: [PAD] is left out, and a [DISCONNECTED] node has no anchors and no
    distances (it keeps its relations). `distances` corresponds to `anchors`, nearest first; it
    is null where the vocabulary was made without distances. The format is that of the ending:
    .parquet, .csv, .tsv, .jsonl, or .npy for ids without names: a matrix of the token ids of
    anchors, then distances, then the token ids of relations. The file is written atomically.
    """
    path = Path(path)
    check_token_file(path)
    table.check()
    if path.suffix.lower() != MATRIX:
        write_table(SCHEMA, named_rows(table), path)
        return
    ids = np.concatenate([table.anchors, table.distances, table.relations], axis=1, dtype=np.int32)
    with atomic_file(path) as partial, partial.open("wb") as file:
        np.save(file, ids, allow_pickle=False)


def check_token_file(path: Path) -> None:
    """Refuse a file name whose ending is no format for tokens."""
    check_ending(path, MATRIX)


def named_rows(table: TokenTable) -> Iterator[pa.RecordBatch]:
    """The rows of the table in blocks of ROWS_AT_ONCE."""
    vocabulary = table.vocabulary
    pieces = piece_names(vocabulary)
    for start in range(0, table.num_nodes, ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, table.num_nodes))
        tokens = table.anchors[rows], table.distances[rows], table.relations[rows]
        yield named_batch(vocabulary, pieces, node_names(vocabulary, rows), *tokens)


def named_batch(
    vocabulary: Vocabulary,
    pieces: pa.StringArray,  # of `piece_names`
    names: pa.StringArray,
    anchors: IntArray,
    distances: Distances,
    relations: IntArray,
) -> pa.RecordBatch:
    """The rows of some nodes: their names, and their tokens by name."""
    is_anchor = anchors < vocabulary.num_anchors
    is_relation = relations < vocabulary.padding
    hops = pa.nulls(len(is_anchor), pa.list_(pa.int16()))
    if vocabulary.settings.distances:
        hops = to_list_array(pa.array(distances[is_anchor]), is_anchor)
    columns = [
        names,
        to_list_array(pieces.take(pa.array(anchors[is_anchor])), is_anchor),
        hops,
        to_list_array(pieces.take(pa.array(relations[is_relation])), is_relation),
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def piece_names(vocabulary: Vocabulary) -> pa.StringArray:
    """The name of every piece, without the special ones; the position is the token id."""
    if vocabulary.names is None:
        relations = pa.array(np.arange(vocabulary.num_relations)).cast(pa.string())
        return pa.concat_arrays([pa.array(vocabulary.anchors).cast(pa.string()), relations])
    anchors = vocabulary.names.nodes.take(pa.array(vocabulary.anchors))
    direct = vocabulary.names.relations.to_pylist()
    inverse = [INVERSE_PREFIX + name for name in direct]
    return pa.concat_arrays([anchors.cast(pa.string()), pa.array(direct + inverse, pa.string())])


def node_names(vocabulary: Vocabulary, rows: slice) -> pa.StringArray:
    if vocabulary.names is None:
        return pa.array(np.arange(rows.start, rows.stop)).cast(pa.string())
    return vocabulary.names.nodes[rows.start : rows.stop].cast(pa.string())


def to_list_array(values: pa.Array, is_there: NDArray[np.bool_]) -> pa.ListArray:
    """Lists of the values of each row, in order; `is_there`: (num_rows, slots)."""
    offsets = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)
