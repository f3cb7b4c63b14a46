"""Signs that a file was read in the wrong way."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nodepiece.data.blocks import Columns
from nodepiece.data.columns import as_option
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.fact_blocks import fact_blocks
from nodepiece.graph.names import Names

FEW = 20  # relations: small graphs have all kinds of shapes


def find_doubts(
    triples: IntArray, names: Names, columns: Columns | None, *, is_plain: bool
) -> list[str]:
    """Remarks for the user, with options that would change how the file is read.

    is_plain: quotes have no special meaning in the file.
    """
    return [
        *relation_doubts(triples, names, columns),
        *weight_doubts(triples, names, columns),
        *(quote_doubts(names) if is_plain else []),
    ]


def relation_doubts(triples: IntArray, names: Names, columns: Columns | None) -> list[str]:
    """A remark if the last of three unnamed columns looks more like the relations."""
    num_relations = len(names.relations)
    if columns is None or not isinstance(columns[0], int) or num_relations < FEW:
        return []
    is_tail = np.zeros(len(names.nodes), dtype=bool)
    for block in fact_blocks(triples):
        is_tail[block[:, 2]] = True
    num_tails = int(is_tail.sum())
    if num_relations <= 2 * num_tails:
        return []
    head, relation, tail = columns
    return [
        f"column {relation} has {num_relations:,} names and column {tail} only {num_tails:,}: if "
        f"column {tail} is the relation, give {as_option((head, tail, relation))}"
    ]


def weight_doubts(triples: IntArray, names: Names, columns: Columns | None) -> list[str]:
    """Columns that no header names, as of an edge list with whole numbers for weights.

    All tails are numbers and none is a head, and half of the relations or more are heads.
    """
    if columns is None or not isinstance(columns[0], int) or not len(triples):
        return []
    if not names.nodes[int(triples[0, 2])].as_py().isdecimal():
        return []  # nearly always, at no cost
    heads, tails = np.unique(triples[:, 0]), np.unique(triples[:, 2])
    are_numbers = pc.match_substring_regex(names.nodes.take(pa.array(tails)), "^[0-9]+$")
    if len(np.intersect1d(heads, tails)) or not pc.all(are_numbers).as_py():
        return []
    are_heads = pc.is_in(names.relations, value_set=names.nodes.take(pa.array(heads)))
    if 2 * pc.sum(are_heads).as_py() < len(names.relations):
        return []
    head, relation, tail = columns
    return [
        f"column {tail} has numbers only, and names of column {relation} are in column {head} too: "
        f"if column {tail} has weights, the file has no relations; put a relation in their place"
    ]


def quote_doubts(names: Names) -> list[str]:
    """A remark if names are in quotes and contain doubled quotes, as cells of CSV do."""
    nodes = names.nodes.filter(pc.starts_with(names.nodes, '"'))
    quoted = nodes.filter(pc.match_substring_regex(nodes, '^"(?:[^"]|"")*""(?:[^"]|"")*"$'))
    if not len(quoted):
        return []
    first: pa.LargeStringScalar = quoted[0]
    return [
        f"names such as {first.as_py()[:80]} keep their quotes; if quotes surround cells, give "
        "--format csv --delimiter tab"
    ]
