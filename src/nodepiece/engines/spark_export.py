"""Tokens by name as Parquet files, with the columns of `nodepiece export`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from nodepiece.engines.block_edges import array_of
from nodepiece.engines.spark_names import from_bytes
from nodepiece.engines.token_chunks import DTYPES, PARTS, TokenPlan
from nodepiece.engines.work_folder import WorkFolder, spark_path, write_whole
from nodepiece.tokenizer.export import named_batch, piece_names
from nodepiece.tokenizer.vocabulary import Vocabulary

LARGE = pa.schema(  # the types that Spark expects with large cells
    [
        ("node", pa.large_string()),
        ("anchors", pa.list_(pa.large_string())),
        ("distances", pa.list_(pa.int16())),
        ("relations", pa.list_(pa.large_string())),
    ]
)
EXPORT_SCHEMA = (
    "node string, anchors array<string>, distances array<smallint>, relations array<string>"
)


def export_chunks(work: WorkFolder, plan: TokenPlan, vocabulary: Vocabulary, path: str) -> None:
    """Write a folder of Parquet files; an earlier one is replaced."""
    tokens = work.read("tokens")
    if vocabulary.names is None:
        names = tokens.selectExpr("chunk", "cast('' as binary) names")
    else:
        names = work.read("names")
    pieces = work.spark.sparkContext.broadcast(piece_names(vocabulary))
    write = make_named_rows(plan, lambda: pieces.value, has_names=vocabulary.names is not None)
    rows = (
        tokens.groupBy("chunk").cogroup(names.groupBy("chunk")).applyInArrow(write, EXPORT_SCHEMA)
    )
    try:
        write_whole(rows, spark_path(path))
    finally:
        pieces.destroy()


def make_named_rows(
    plan: TokenPlan, pieces: Callable[[], pa.StringArray], *, has_names: bool
) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    settings, blocks = plan.settings, plan.search.blocks
    widths = settings.anchors_per_node, settings.anchors_per_node, settings.relations_per_node

    def named_rows(key: tuple[Any, ...], tokens: pa.Table, names: pa.Table) -> pa.Table:
        nodes = blocks.chunk_nodes(key[0].as_py())
        if has_names:
            labels = from_bytes(names["names"][0].as_buffer()).combine_chunks()
            labels = labels.chunk(0) if isinstance(labels, pa.ChunkedArray) else labels
        else:
            labels = pa.array(np.arange(nodes.start, nodes.stop)).cast(pa.string())
        anchors, distances, relations = (
            array_of(tokens[name][0], dtype).reshape(len(nodes), width)
            for name, dtype, width in zip(PARTS, DTYPES, widths, strict=False)
        )
        batch = named_batch(
            plan.vocabulary, pieces(), labels.cast(pa.string()), anchors, distances, relations
        )
        return pa.Table.from_batches([batch]).cast(LARGE)

    return named_rows
