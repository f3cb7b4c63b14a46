"""Writing a dataset in the layout of the Open Graph Benchmark."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from nodepiece.data.benchmarks import OGB_FILES
from nodepiece.data.column_names import ROLES
from nodepiece.data.dataset import Dataset, GivenNegatives
from nodepiece.data.encode import fact_keys
from nodepiece.errors import InputError
from nodepiece.files import atomic_folder
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph

MARKER = OGB_FILES["train"][0]
PICKLE_PROTOCOL = 4  # arrays may be longer than 4 GiB
MAX_ROUNDS = 100


def write_ogb(
    dataset: Dataset, folder: Path, *, num_negatives: int, rng: np.random.Generator
) -> None:
    """Write all splits, with negatives for head and tail of each fact of valid and test.

    A negative is a uniformly drawn node that gives no fact of any split. An earlier folder in
    this layout is replaced.
    """
    if num_negatives < 1:
        raise InputError(f"a fact needs at least 1 negative, got {num_negatives}")
    train = dataset.train
    known = np.sort(fact_keys(dataset.all_triples(), train.num_nodes, train.num_relations))
    with atomic_folder(folder, marker=MARKER) as partial:
        save_arrays(partial / OGB_FILES["train"][0], train.triples)
        for part in ("valid", "test"):
            facts = dataset.part(part)
            negatives = sample_negatives(facts, known, train, num_negatives, rng=rng)
            save_arrays(partial / OGB_FILES[part][0], facts, negatives)
        save_mapping(partial / OGB_FILES["nodes"][0], node_names(train), "node idx,entity id")
        save_mapping(partial / OGB_FILES["relations"][0], relation_names(train), "reltype,rel id")


def sample_negatives(
    facts: IntArray,
    known: LongArray,  # sorted keys of all facts that hold
    graph: KnowledgeGraph,
    num_negatives: int,
    *,
    rng: np.random.Generator,
) -> GivenNegatives:
    sides = []
    for column in (0, 2):
        drawn = rng.integers(graph.num_nodes, size=(len(facts), num_negatives), dtype=np.int32)
        wrong = np.arange(drawn.size)
        for _ in range(MAX_ROUNDS):
            wrong = wrong[is_fact(facts, column, drawn, wrong, known, graph)]
            if not len(wrong):
                break
            drawn.flat[wrong] = rng.integers(graph.num_nodes, size=len(wrong), dtype=np.int32)
        else:
            raise InputError(
                f"{len(wrong)} negatives were drawn {MAX_ROUNDS} times and were facts each time; "
                "the graph is too dense for negatives"
            )
        sides.append(drawn)
    return GivenNegatives(*sides)


def is_fact(
    facts: IntArray,
    column: int,
    drawn: IntArray,
    places: LongArray,  # in the flattened `drawn`
    known: LongArray,
    graph: KnowledgeGraph,
) -> LongArray:
    """Whether a fact whose `column` is replaced by the drawn node is known."""
    changed = facts[places // drawn.shape[1]]
    changed[:, column] = drawn.flat[places]
    keys = fact_keys(changed, graph.num_nodes, graph.num_relations)
    order = np.argsort(keys)  # sorted lookups use the cache better
    nearest = np.empty_like(order)
    nearest[order] = np.searchsorted(known, keys[order])
    return known[nearest.clip(max=len(known) - 1)] == keys


def save_arrays(path: Path, facts: IntArray, negatives: GivenNegatives | None = None) -> None:
    import torch  # takes a second, and only writing needs it

    arrays = {role: facts[:, i].astype(np.int64) for i, role in enumerate(ROLES)}
    if negatives is not None:
        arrays |= {"head_neg": negatives.heads.astype(np.int64)}
        arrays |= {"tail_neg": negatives.tails.astype(np.int64)}
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(arrays, path, pickle_protocol=PICKLE_PROTOCOL)


def node_names(graph: KnowledgeGraph) -> pa.Array:
    if graph.names is None:
        return pa.array(np.char.add("Q", np.arange(graph.num_nodes).astype(str)))
    return graph.names.nodes


def relation_names(graph: KnowledgeGraph) -> pa.Array:
    if graph.names is None:
        return pa.array([f"P{relation}" for relation in range(graph.num_relations)])
    return graph.names.relations


def save_mapping(path: Path, names: pa.Array, header: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"index": np.arange(len(names)), "name": names})
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(f"{header}\n".encode())
        options = pa_csv.WriteOptions(include_header=False)
        pa_csv.write_csv(table, file, write_options=options)
