"""Large scale-free graphs for measurements.

    python -m benchmarks.generate --nodes 2500000 --edges 16000000 --relations 535 --seed 0 \\
        -o graph.tsv
    python -m benchmarks.generate --nodes 2500000 --edges 16000000 --relations 535 --seed 0 \\
        --held-out 10000 -o graph-ogb

The second one is a folder in the layout of OGB, with so many facts held out for valid and for test.

Heads and tails are drawn by power laws: the most frequent tail is a hub of the wanted degree, and
heads are distributed more evenly, as in encyclopedic graphs, where many nodes have a few outgoing
facts each and some are the tails of very many. Relations follow Zipf's law. Every node occurs; one
in a hundred is in a small component, nearly all others are in a giant one. Facts are in random
order and hubs have random ids, so that no algorithm profits from locality.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from nodepiece.data.dataset import Dataset
from nodepiece.data.ogb_write import write_ogb
from nodepiece.errors import InputError
from nodepiece.files import atomic_file
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph

HUB_SHARE = 300_000 / 16_000_000  # of all edges: the largest hub unless asked otherwise
HEAD_DECAY = 0.5  # the head of rank r is drawn with probability in proportion to r ** -HEAD_DECAY
SMALL_SHARE = 0.01  # of all nodes, in components of SMALL_SIZE
SMALL_SIZE = 4
MAX_ROUNDS = 100
ROWS_PER_WRITE = 1_000_000


def generate_graph(
    num_nodes: int,
    num_edges: int,
    num_relations: int,
    *,
    hub_degree: int,
    rng: np.random.Generator,
) -> KnowledgeGraph:
    """A graph of exactly `num_edges` distinct facts without self-loops, in which every node occurs.

    The hub's degree is `hub_degree` up to chance; relation 0 is the most frequent one. A fact is
    one number, so that a sort finds those drawn twice; they are drawn again.
    """
    if num_edges < num_nodes:
        raise InputError(f"{num_edges} edges cannot reach {num_nodes} nodes; ask for more edges")
    small, popular_tails = np.split(rng.permutation(num_nodes), [num_small_nodes(num_nodes)])
    popular_heads = rng.permutation(popular_tails)
    decay = decay_of_top_share(hub_degree / num_edges, len(popular_tails))
    centres = np.repeat(small[::SMALL_SIZE], SMALL_SIZE)
    is_ray = centres != small  # a small component is a star

    # Every node is the head of one fact, but for the centres of stars, which are tails.
    heads = np.concatenate([small[is_ray], popular_tails])
    tails = np.concatenate([centres[is_ray], draw_tails(popular_tails, popular_tails, decay, rng)])
    facts = encode(heads, draw_relations(len(heads), num_relations, rng), tails, num_nodes)
    for _ in range(MAX_ROUNDS):
        num_missing = num_edges - len(facts)
        if num_missing == 0:
            return decode(facts, num_nodes, num_relations, rng)
        heads = popular_heads[draw_ranks(num_missing, len(popular_heads), HEAD_DECAY, rng)]
        tails = draw_tails(heads, popular_tails, decay, rng)
        relations = draw_relations(num_missing, num_relations, rng)
        facts = distinct(np.concatenate([facts, encode(heads, relations, tails, num_nodes)]))
    raise InputError(
        f"{num_edges} distinct edges do not fit {num_nodes} nodes, {num_relations} relations and "
        f"a hub of degree {hub_degree}; ask for fewer edges or a smaller hub"
    )


def num_small_nodes(num_nodes: int) -> int:
    return int(SMALL_SHARE * num_nodes) // SMALL_SIZE * SMALL_SIZE


def decay_of_top_share(share: float, count: int) -> float:
    """The decay under which rank 0 of `count` is drawn with this probability; by bisection."""
    low, high = 0.0, 8.0
    if not top_share(low, count) < share < top_share(high, count):
        raise InputError(
            f"a hub in {share:.2e} of the edges is no hub among {count} nodes, or leaves nothing "
            f"to the others; its share must be above {top_share(low, count):.2e} and below 1"
        )
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if top_share(middle, count) < share else (low, middle)
    return (low + high) / 2


def top_share(decay: float, count: int) -> float:
    """The probability of rank 0: the integral of x ** -decay from 1 to 2 over that to count + 1."""
    power = 1 - decay or 1e-12
    return float(np.expm1(power * np.log(2)) / np.expm1(power * np.log1p(count)))


def draw_ranks(num: int, count: int, decay: float, rng: np.random.Generator) -> LongArray:
    """Ranks below `count`, rank r in proportion to (r + 1) ** -decay: the integral, inverted."""
    power = 1 - decay or 1e-12
    position = np.log1p(rng.random(num) * np.expm1(power * np.log1p(count))) / power
    return np.minimum(np.expm1(position), count - 1).astype(np.int64)


def draw_tails(
    heads: LongArray, popular: LongArray, decay: float, rng: np.random.Generator
) -> LongArray:
    """A tail for each head; a head that draws itself gets the next in popularity."""
    ranks = draw_ranks(len(heads), len(popular), decay, rng)
    tails = popular[ranks]
    is_loop = tails == heads
    tails[is_loop] = popular[(ranks[is_loop] + 1) % len(popular)]
    return tails


def draw_relations(num: int, num_relations: int, rng: np.random.Generator) -> LongArray:
    """Zipf's law: relation r in proportion to 1 / (r + 1)."""
    cumulative = np.cumsum(1 / np.arange(1, num_relations + 1))
    return np.searchsorted(cumulative / cumulative[-1], rng.random(num), side="right")


def encode(heads: LongArray, relations: LongArray, tails: LongArray, num_nodes: int) -> LongArray:
    return (relations * num_nodes + heads) * num_nodes + tails


def distinct(facts: LongArray) -> LongArray:
    """Each number once, ascending (np.unique hashes, which takes much longer)."""
    facts.sort()
    return facts[np.diff(facts, prepend=-1) > 0]


def decode(
    facts: LongArray, num_nodes: int, num_relations: int, rng: np.random.Generator
) -> KnowledgeGraph:
    rng.shuffle(facts)
    triples = np.empty((len(facts), 3), np.int32)
    rest, triples[:, 2] = np.divmod(facts, num_nodes)
    triples[:, 1], triples[:, 0] = np.divmod(rest, num_nodes)
    return KnowledgeGraph(triples, num_nodes, num_relations)


def write_graph(graph: KnowledgeGraph, path: Path) -> None:
    """One line for each fact: Q<node>, P<relation>, Q<node>, with tabs between."""
    nodes = pa.array([f"Q{node}" for node in range(graph.num_nodes)])
    relations = pa.array([f"P{relation}" for relation in range(graph.num_relations)])
    schema = pa.schema([(column, pa.string()) for column in ("head", "relation", "tail")])
    options = pa.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    with (
        atomic_file(path) as partial,
        pa.csv.CSVWriter(partial, schema, write_options=options) as writer,
    ):
        for start in range(0, graph.num_triples, ROWS_PER_WRITE):
            head, relation, tail = graph.triples[start : start + ROWS_PER_WRITE].T
            columns = [nodes.take(pa.array(head)), relations.take(pa.array(relation))]
            writer.write_batch(
                pa.record_batch([*columns, nodes.take(pa.array(tail))], schema=schema)
            )


def hold_out(graph: KnowledgeGraph, num_held_out: int, name: str) -> Dataset:
    """The last facts, which come in random order, for valid and for test."""
    train, valid, test = np.split(
        graph.triples, [graph.num_triples - 2 * num_held_out, graph.num_triples - num_held_out]
    )
    learned = KnowledgeGraph(train, graph.num_nodes, graph.num_relations)
    return Dataset(name, learned, valid, test, {"valid": 0, "test": 0})


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a large scale-free graph.")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--edges", type=int, required=True)
    parser.add_argument("--relations", type=int, required=True)
    parser.add_argument("--hub-degree", type=int, help="of the largest hub; default: 1.9% of edges")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--held-out", type=int, help="facts for valid and test: OGB's layout")
    parser.add_argument("--negatives", type=int, default=500, help="for each fact held out")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    graph = generate_graph(
        options.nodes,
        options.edges,
        options.relations,
        hub_degree=options.hub_degree or round(HUB_SHARE * options.edges),
        rng=rng,
    )
    if options.held_out:
        dataset = hold_out(graph, options.held_out, options.out.name)
        write_ogb(dataset, options.out, num_negatives=options.negatives, rng=rng)
    else:
        write_graph(graph, options.out)
    print(f"wrote {options.out}: {graph.num_triples:,} facts about {graph.num_nodes:,} nodes")


if __name__ == "__main__":
    main()
