"""Graphs from facts in memory: lists of triples, arrays, DataFrames and Arrow tables."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nodepiece.data.blocks import Block, Column, parse_columns
from nodepiece.data.column_names import ROLES
from nodepiece.data.columns import choose_columns
from nodepiece.data.encode import drop_duplicates, encode_facts
from nodepiece.data.parquet import as_names
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph

BLOCK_FACTS = 1 << 20
MAX_SHOWN = 80  # characters of a value in a message


def graph_of_blocks(blocks: Iterable[Block], label: str) -> KnowledgeGraph:
    """The graph of some facts by name; ids by first appearance, a fact stated twice kept once."""
    facts = encode_facts(blocks)
    num_nodes, num_relations = len(facts.names.nodes), len(facts.names.relations)
    triples = drop_duplicates(facts.triples, num_nodes, num_relations)
    if not len(triples):
        raise InputError(f"{label} states no fact between nodes; add some: head, relation, tail")
    return KnowledgeGraph(triples, num_nodes, num_relations, facts.names)


def from_facts(facts: Iterable[Any], columns: Sequence[Column] | str | None) -> KnowledgeGraph:
    """A graph from triples (head, relation, tail) of text or whole numbers, or from dicts."""
    rows = list(facts)
    if rows and all(isinstance(row, dict) for row in rows):
        return from_arrow(arrow_rows(rows), columns, "the list of dicts")
    order = positions(columns)
    return graph_of_blocks(fact_blocks(rows, order), "the list of facts")


def positions(columns: Sequence[Column] | str | None) -> tuple[int, int, int]:
    if columns is None:
        return 0, 1, 2
    head, relation, tail = parse_columns(columns)
    if isinstance(head, int) and isinstance(relation, int) and isinstance(tail, int):
        return head, relation, tail
    raise InputError(
        f"triples have positions and no column names; columns = {columns!r}, give three numbers"
    )


def fact_blocks(rows: list[Any], order: tuple[int, int, int]) -> Iterator[Block]:
    for start in range(0, len(rows), BLOCK_FACTS):
        parts: tuple[list[str], list[str], list[str]] = ([], [], [])
        for number, row in enumerate(rows[start : start + BLOCK_FACTS], start=start + 1):
            if isinstance(row, str | bytes) or not hasattr(row, "__len__") or len(row) < 3:
                raise InputError(
                    f"fact {number:,} is {shown(row)}, not a triple (head, relation, tail); "
                    "leave it out"
                )
            if len(row) > 3 and order == (0, 1, 2):
                raise InputError(
                    f"fact {number:,}, {shown(row)}, has {len(row)} parts; say which are head, "
                    "relation and tail with columns=(0, 1, 2)"
                )
            for part, place, role in zip(parts, order, ROLES, strict=True):
                part.append(name_of(row[place], f"the {role} of fact {number:,}"))
        heads, relations, tails = (pa.array(part, pa.string()) for part in parts)
        yield Block(heads, relations, tails)


def name_of(value: Any, what: str) -> str:
    """A name: text as it is, a whole number by its digits; anything else is refused."""
    if isinstance(value, str) and value:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{what} is {shown(value)}, which is not UTF-8; fix it") from None
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(int(value))
    raise InputError(f"{what} is {shown(value)}, but names are text or whole numbers; convert it")


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def from_array(array: Any, columns: Sequence[Column] | str | None) -> KnowledgeGraph:
    """A graph from an array or tensor of shape (num_facts, 3); whole numbers become names."""
    values = np.asarray(array)
    if values.ndim != 2 or values.shape[1] < 3:
        raise InputError(f"an array of facts has the shape (num_facts, 3), got {values.shape}")
    if not np.issubdtype(values.dtype, np.integer):
        return from_facts(values.tolist(), columns)
    names = [str(place) for place in range(values.shape[1])]
    table = pa.table({name: values[:, place] for place, name in enumerate(names)})
    return from_arrow(table, columns, "the array")


def from_arrow(
    table: pa.Table, columns: Sequence[Column] | str | None, label: str
) -> KnowledgeGraph:
    """A graph from a table of three columns, found by their usual names or given as `columns`."""
    chosen = None if columns is None else parse_columns(columns)
    at = choose_columns(table.column_names, chosen, label, by_position=True)
    return graph_of_blocks(table_blocks(table.select(list(at)), label), label)


def table_blocks(table: pa.Table, label: str) -> Iterator[Block]:
    first_row = 1
    for batch in table.to_batches(max_chunksize=BLOCK_FACTS):
        parts = [
            as_names(plain_text(column), f"the {role} (column {name!r})", first_row, label)
            for role, name, column in zip(ROLES, batch.schema.names, batch.columns, strict=True)
        ]
        yield Block(*parts)
        first_row += len(batch)


def plain_text(column: pa.Array) -> pa.Array:
    """The column with text in Arrow's usual layout, of which polars has another."""
    if pa.types.is_dictionary(column.type):
        column = plain_text(column.dictionary).take(column.indices)
    return column.cast(pa.string()) if column.type == pa.string_view() else column


def from_data_frame(frame: Any, columns: Sequence[Column] | str | None) -> KnowledgeGraph:
    """A graph from a DataFrame of pandas, polars, or anything else that Arrow can read."""
    return from_arrow(arrow_table(frame), columns, f"the {type(frame).__name__}")


def arrow_table(frame: Any) -> pa.Table:
    try:
        if type(frame).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "collect"):  # a polars LazyFrame
            frame = frame.collect()
        return pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"the {type(frame).__name__} cannot be read as a table: {reason}; convert head, "
            "relation and tail to text first"
        ) from error


def arrow_rows(rows: list[dict[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"the dicts do not make a table: {error}; write all alike") from error
