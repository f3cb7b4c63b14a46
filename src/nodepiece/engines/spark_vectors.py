"""Vectors of nodes on Spark: every worker has the model; tokens in, vectors out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nodepiece.encoders.lookup_embedding import NodeEmbedding
from nodepiece.engines.work_folder import spark_path, write_whole
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.inference.opened_run import Run
from nodepiece.tokenizer.export import piece_names
from nodepiece.tokenizer.tokens import NO_DISTANCE

COLUMNS = ("node", "anchors", "distances", "relations")
VECTOR_SCHEMA = "node string, vector array<float>"
VECTORS = pa.schema([("node", pa.large_string()), ("vector", pa.list_(pa.float32()))])
Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, eq=False)
class TokenEncoder:
    """The part of a trained model that turns tokens by name into vectors. It can be pickled."""

    nodes: NodeEmbedding
    norm: nn.Module | None
    pieces: pa.StringArray  # names; the position is the token
    num_anchors: int
    padding: int
    disconnected: int
    anchors_per_node: int
    relations_per_node: int
    has_distances: bool

    @torch.no_grad()
    def __call__(self, batch: pa.RecordBatch) -> NDArray[np.float32]:
        """(num_rows, dim) of rows with the columns of `nodepiece export`."""
        anchors, is_anchor = self.tokens(batch, "anchors", self.anchors_per_node)
        relations, _ = self.tokens(batch, "relations", self.relations_per_node)
        anchors[~is_anchor.any(axis=1)] = self.disconnected
        distances = np.full(anchors.shape, NO_DISTANCE, np.int16)
        if self.has_distances:
            distances[is_anchor] = self.distances(batch, int(is_anchor.sum()))
        rows = (torch.from_numpy(each) for each in (anchors, distances, relations))
        vectors: Tensor = self.nodes.encode_rows(*rows)
        return (vectors if self.norm is None else self.norm(vectors)).numpy()

    def tokens(
        self, batch: pa.RecordBatch, name: str, most: int
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """The tokens of a column of names, filled up with [PAD], and where there is a name."""
        column = batch.column(name)
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        if len(lengths) and lengths.max() > most:
            row = int(lengths.argmax())
            raise InputError(
                f"{batch.column('node')[row].as_py()!r} has {lengths[row]} {name}, and the run has "
                f"{most} a node; tokenize with the settings of the run"
            )
        is_anchor = name == "anchors"
        names = self.pieces[: self.num_anchors] if is_anchor else self.pieces[self.num_anchors :]
        values = pc.list_flatten(column)
        found = pc.index_in(values.cast(names.type), value_set=names)
        if found.null_count:
            self.refuse(batch, name, values[pc.index(found.is_null(), True).as_py()].as_py())
        tokens = np.full((len(lengths), most), self.padding, np.int32)
        is_there = np.arange(most) < lengths[:, None]
        tokens[is_there] = found.to_numpy() + (0 if is_anchor else self.num_anchors)
        return tokens, is_there

    def refuse(self, batch: pa.RecordBatch, name: str, value: str | None) -> None:
        kind = name.removesuffix("s")
        lists = zip(batch.column("node").to_pylist(), batch.column(name).to_pylist(), strict=True)
        node = next(node for node, values in lists if value in (values or ()))
        raise InputError(
            f"the {kind} {value!r} of {node!r} is none of those that the run was trained with; "
            f"tokenize with the vocabulary of the run, or leave out facts of other {name}"
        )

    def distances(self, batch: pa.RecordBatch, count: int) -> NDArray[np.int16]:
        found = pc.list_flatten(batch.column("distances")).cast(pa.int16())
        if len(found) != count or found.null_count:
            raise InputError(
                "anchors and distances of the tokens are not of equal length; write them again"
            )
        return found.to_numpy()


def make_encoder(run: Run) -> TokenEncoder:
    """The encoder of a run; one whose vectors need more than the tokens of a node is refused."""
    model, vocabulary = run.model, run.opened.table.vocabulary
    nodes: NodeEmbedding | None = getattr(model, "nodes", None)
    if nodes is None or not nodes.has_pieces:
        raise InputError(f"{run.folder} has no pieces, and vectors are computed from pieces")
    if getattr(model, "layers", None):
        raise InputError(
            f"{run.folder} has graph layers, whose vectors need the neighbours of a node; embed it "
            "with --engine native"
        )
    settings = vocabulary.settings
    return TokenEncoder(
        nodes.without_rows(),
        getattr(model, "node_norm", None),
        piece_names(vocabulary),
        vocabulary.num_anchors,
        vocabulary.padding,
        vocabulary.disconnected,
        settings.anchors_per_node,
        settings.relations_per_node,
        settings.distances,
    )


def write_vectors(spark: Any, encoder: TokenEncoder, tokens: str, output: str) -> int:
    """Write a folder of Parquet files: node, vector. Returns the number of nodes."""
    table = spark.read.parquet(spark_path(tokens))
    if missing := set(COLUMNS) - set(table.columns):
        raise InputError(
            f"{tokens} has no column {sorted(missing)[0]!r}; tokens are written by nodepiece "
            "export or nodepiece tokenize --engine spark --export"
        )
    number, most = table.selectExpr("count(*)", "max(size(anchors))").first()
    if not number:
        raise InputError(f"{tokens} has no rows; write it again")
    if encoder.anchors_per_node and not most:
        raise InputError(
            f"none of the {number:,} nodes in {tokens} reaches an anchor; tokenize the whole "
            "graph, with the anchors of the run"
        )
    shared = spark.sparkContext.broadcast(encoder)
    try:
        rows = table.select(*COLUMNS).mapInArrow(make_encode(lambda: shared.value), VECTOR_SCHEMA)
        write_whole(rows, spark_path(output))
    finally:
        shared.destroy()
    return int(number)


def make_encode(encoder: Callable[[], TokenEncoder]) -> Batches:
    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        torch.set_num_threads(1)  # a task has one core
        model = encoder()
        for batch in batches:
            vectors = np.ascontiguousarray(model(batch))
            offsets = np.arange(len(vectors) + 1, dtype=np.int32) * vectors.shape[1]
            lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(vectors.ravel()))
            names = batch.column("node").cast(pa.large_string())
            yield pa.record_batch([names, lists], schema=VECTORS)

    return encode
