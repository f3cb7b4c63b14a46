"""The kernels of blocks, one block after the other, against the tokenizer of one machine."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nodepiece.engines.block_edges import array_of, build_block
from nodepiece.engines.nearest_steps import (
    Search,
    anchor_rows,
    first_state,
    make_receive,
    make_send,
)
from nodepiece.engines.node_blocks import NodeBlocks, blocks_for
from nodepiece.engines.spark_components import (
    first_keys,
    ids_of,
    label_table,
    own_keys,
    receive_least,
    send_least,
)
from nodepiece.graph.adjacency import build_adjacency, distinct_relations
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.graph.nearest import Distances, nearest_sources
from nodepiece.tokenizer.anchors import anchors_of_unreached_components

EDGES = ("bounds", "targets", "offsets", "sources")


def random_graph(seed: int) -> KnowledgeGraph:
    rng = np.random.default_rng(seed)
    num_nodes, num_facts = int(rng.integers(5, 80)), int(rng.integers(3, 160))
    nodes = rng.integers(num_nodes, size=(2, num_facts))
    triples = np.stack([nodes[0], rng.integers(3, size=num_facts), nodes[1]], axis=1)
    return KnowledgeGraph(triples.astype(np.int32), num_nodes, 3)


def edges_of(graph: KnowledgeGraph, blocks: NodeBlocks, block: int) -> pa.Table:
    edges = with_inverses(graph)
    owner, number = blocks.split(edges[:, 0])
    mine = owner == block
    arrays = number[mine], edges[mine, 1], edges[mine, 2]
    built = build_block(
        blocks, block, arrays, num_direct=graph.num_relations, drop_duplicates=False
    ).edges
    schema = pa.schema([(name, pa.large_binary()) for name in EDGES])
    return pa.table([[getattr(built, name).tobytes()] for name in EDGES], schema=schema)


def search_in_blocks(
    graph: KnowledgeGraph, anchors: IntArray, search: Search
) -> tuple[IntArray, Distances]:
    """What Spark does, without Spark."""
    blocks, numbers = search.blocks, range(search.blocks.num_blocks)
    edges = [edges_of(graph, blocks, block) for block in numbers]
    states = [[first_state(search, anchors, block)] for block in numbers]
    hop = 0
    while any(history[-1]["num_new"][0].as_py() for history in states):
        hop += 1
        bits = np.concatenate(
            [np.frombuffer(history[-1]["full"][0].as_py(), np.uint8) for history in states]
        )
        send, receive = make_send(search, lambda bits=bits: bits), make_receive(search, hop)  # type: ignore[misc]
        messages = pa.concat_tables([send(edges[block], states[block][-1]) for block in numbers])
        for block in numbers:
            mine = messages.filter(pc.equal(messages["block"], block))
            states[block].append(receive(mine, pa.concat_tables(states[block][-2:])))
    nearest = np.empty((graph.num_nodes, search.k), np.int32)
    distances = np.empty((graph.num_nodes, search.k), np.int16)
    for block in numbers:
        rows = slice(block, None, blocks.num_blocks)
        nearest[rows], distances[rows] = anchor_rows(search, block, pa.concat_tables(states[block]))
    return nearest, distances


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("salt", [None, np.uint64(7)], ids=["global", "per-node"])
def test_blocks_that_send_each_anchor_once_find_the_anchors_of_one_machine(
    seed: int, salt: np.uint64 | None
) -> None:
    graph, rng = random_graph(seed), np.random.default_rng(seed)
    num_anchors = int(rng.integers(1, graph.num_nodes))
    anchors = rng.choice(graph.num_nodes, num_anchors, replace=False).astype(np.int32)
    k = int(rng.integers(1, min(num_anchors, 7) + 1))
    search = Search(blocks_for(graph.num_nodes, int(rng.integers(1, 6))), num_anchors, k, salt)

    nearest, distances = search_in_blocks(graph, anchors, search)

    expected = nearest_sources(build_adjacency(graph), anchors, k, salt=salt)
    np.testing.assert_array_equal(nearest, expected[0])
    np.testing.assert_array_equal(distances, expected[1])


def more_anchors_in_blocks(
    graph: KnowledgeGraph, anchors: IntArray, blocks: NodeBlocks
) -> IntArray:
    """What Spark does for components without anchors, without Spark."""
    numbers, degrees = range(blocks.num_blocks), build_adjacency(graph).degrees.astype(np.int64)
    edges = [edges_of(graph, blocks, block) for block in numbers]
    states = []
    for block in numbers:
        keys = first_keys(blocks, block, degrees[block :: blocks.num_blocks], anchors)
        states.append(label_table(block, keys, np.ones(len(keys), np.bool_)))
    while any(state["num_new"][0].as_py() for state in states):
        messages = pa.concat_tables([send_least(edges[b], states[b]) for b in numbers])
        states = [
            receive_least(messages.filter(pc.equal(messages["block"], block)), states[block])
            for block in numbers
        ]
    own = [own_keys(blocks, b, array_of(states[b]["keys"][0], np.int64)) for b in numbers]
    return ids_of(np.sort(np.concatenate(own)))


@pytest.mark.parametrize("seed", range(20))
def test_blocks_find_the_anchors_of_components_that_one_machine_finds(seed: int) -> None:
    graph, rng = random_graph(seed), np.random.default_rng(seed)
    anchors = rng.choice(graph.num_nodes, int(rng.integers(1, 4)), replace=False).astype(np.int32)
    blocks = blocks_for(graph.num_nodes, int(rng.integers(1, 6)))
    found = more_anchors_in_blocks(graph, anchors, blocks)
    expected = anchors_of_unreached_components(build_adjacency(graph), anchors)
    np.testing.assert_array_equal(found, expected)


def test_a_block_counts_degrees_and_relations_of_its_nodes_and_leaves_out_repeated_facts() -> None:
    # 0 -a-> 1 twice, 1 -b-> 2, 2 -a-> 2 (a loop)
    triples = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 2], [2, 0, 2]], np.int32)
    distinct = KnowledgeGraph(triples[1:], 3, 2)
    adjacency = build_adjacency(distinct)
    offsets, values = distinct_relations(adjacency)
    blocks, edges = blocks_for(3, 2), with_inverses(KnowledgeGraph(triples, 3, 2))
    owner, number = blocks.split(edges[:, 0])
    repeated = 0
    for block in range(2):
        mine = owner == block
        arrays = number[mine], edges[mine, 1], edges[mine, 2]
        built = build_block(blocks, block, arrays, num_direct=2, drop_duplicates=True)
        nodes = np.arange(block, 3, 2)
        assert built.degrees.tolist() == adjacency.degrees[nodes].tolist()
        expected = [values[offsets[node] : offsets[node + 1]].tolist() for node in nodes]
        cuts = np.cumsum(built.set_counts)[:-1]
        assert [part.tolist() for part in np.split(built.set_values, cuts)] == expected
        repeated += built.num_duplicates
    assert repeated == 1
