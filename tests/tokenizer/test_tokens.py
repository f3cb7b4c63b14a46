"""Tokenization as a whole: what stands in every slot of a hash."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import NO_DISTANCE, TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import Vocabulary, fit_vocabulary


def small_graph() -> KnowledgeGraph:
    """Two parts and a node alone.

    a --likes--> b --likes--> c --knows--> d        e --knows--> f        g
    """
    triples = np.array([[0, 0, 1], [1, 0, 2], [2, 1, 3], [4, 1, 5]])
    return KnowledgeGraph(triples, 7, 2, Names.of(list("abcdefg"), ["likes", "knows"]))


def vocabulary_of(
    graph: KnowledgeGraph, anchors: list[int], chosen: TokenizerSettings
) -> Vocabulary:
    return Vocabulary(
        np.array(anchors, dtype=np.int32),
        2 * graph.num_relations,
        graph.num_nodes,
        graph.fingerprint,
        chosen,
        graph.names,
    )


SMALL = TokenizerSettings(num_anchors=2, anchors_per_node=2, relations_per_node=3)


def small_table(chosen: TokenizerSettings = SMALL) -> TokenTable:
    """The small graph with anchors b and d: tokens 0 b, 1 d, 2 to 5 relations, 6 [PAD], 7 [DIS]."""
    graph = small_graph()
    anchors = [1, 3] if chosen.anchors_per_node else []
    return tokenize(graph, vocabulary_of(graph, anchors, chosen), rng=np.random.default_rng(0))


def random_graph(num_nodes: int, num_triples: int, seed: int) -> KnowledgeGraph:
    rng = np.random.default_rng(seed)
    triples = rng.integers((num_nodes, 3, num_nodes), size=(num_triples, 3), dtype=np.int32)
    return KnowledgeGraph(triples, num_nodes, 3)


def true_distances(graph: KnowledgeGraph, sources: IntArray) -> FloatArray:
    """(num_nodes, num_sources), inf where there is no path."""
    heads, _, tails = graph.triples.T
    shape = (graph.num_nodes, graph.num_nodes)
    matrix = csr_array((np.ones(len(heads)), (heads, tails)), shape=shape)
    return shortest_path(matrix, directed=False, unweighted=True, indices=sources).T


def test_the_hashes_of_a_small_graph() -> None:
    table = small_table()
    assert table.anchors.tolist() == [[0, 1], [0, 1], [0, 1], [1, 0], [7, 7], [7, 7], [7, 7]]
    none = [NO_DISTANCE, NO_DISTANCE]
    assert table.distances.tolist() == [[1, 3], [0, 2], [1, 1], [0, 2], none, none, none]
    # likes 2, knows 3, and their inverses 4 and 5
    assert table.relations.tolist() == [
        [2, 6, 6], [2, 4, 6], [3, 4, 6], [5, 6, 6], [3, 6, 6], [5, 6, 6], [6, 6, 6],
    ]  # fmt: skip


def test_pieces_in_words() -> None:
    table = small_table()
    assert table.pieces(2) == ["b@1", "d@1", "knows", "inverse of likes", "[PAD]"]
    assert table.pieces(6) == ["[DISCONNECTED]"] * 2 + ["[PAD]"] * 3


def test_a_node_with_fewer_than_k_anchors_is_padded_and_not_called_disconnected() -> None:
    graph, chosen = small_graph(), TokenizerSettings(num_anchors=3, anchors_per_node=3)
    table = tokenize(graph, vocabulary_of(graph, [1, 3, 4], chosen), rng=np.random.default_rng(0))
    padding, disconnected = table.vocabulary.padding, table.vocabulary.disconnected
    assert table.anchors[0].tolist() == [0, 1, padding]
    assert table.anchors[5].tolist() == [2, padding, padding]
    assert table.distances[5].tolist() == [1, NO_DISTANCE, NO_DISTANCE]
    assert table.anchors[6].tolist() == [disconnected] * 3


def test_without_distances_the_anchors_stay_and_the_distances_go() -> None:
    table = small_table(replace(SMALL, distances=False))
    np.testing.assert_array_equal(table.anchors, small_table().anchors)
    assert (table.distances == NO_DISTANCE).all()


def test_without_anchors_the_relations_stay() -> None:
    table = small_table(replace(SMALL, anchors_per_node=0))
    assert table.anchors.shape == table.distances.shape == (7, 0)
    assert table.pieces(1) == ["likes", "inverse of likes", "[PAD]"]
    fitted = fit_vocabulary(small_graph(), table.vocabulary.settings, rng=np.random.default_rng(0))
    assert fitted.num_anchors == 0


def test_without_relations_the_anchors_stay() -> None:
    table = small_table(replace(SMALL, relations_per_node=0))
    assert table.relations.shape == (7, 0)
    assert table.pieces(0) == ["b@1", "d@3"]
    assert table.relation_sets.of(1).tolist() == [0, 2]  # all of them, for another sample


def test_neither_anchors_nor_relations_is_refused() -> None:
    with pytest.raises(InputError, match="k and m are both 0: a node needs at least one piece"):
        TokenizerSettings(anchors_per_node=0, relations_per_node=0)


def test_more_anchors_a_node_than_there_are_is_refused() -> None:
    with pytest.raises(InputError, match="a node cannot have k=20 of 5 anchors; lower"):
        TokenizerSettings(num_anchors=5, anchors_per_node=20)


@pytest.mark.parametrize(
    ("key", "choices"),
    [
        ("select", "nearest, random"),
        ("ties", "per-node, global"),
        ("disconnected", "token, anchor"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(key: str, choices: str) -> None:
    with pytest.raises(InputError, match=f"{key} = 'x' is not known; it is one of {choices}"):
        TokenizerSettings(**{key: "x"})  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["anchors_per_node", "relations_per_node", "num_anchors"])
def test_negative_numbers_are_refused(key: str) -> None:
    with pytest.raises(InputError, match="cannot be negative"):
        TokenizerSettings(**{key: -1})  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, float("nan")])
def test_a_share_of_anchors_outside_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="anchor share must be above 0 and at most 1"):
        TokenizerSettings(anchor_share=share)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(2, 60),
    st.floats(0, 1.5),
    st.sampled_from(["per-node", "global"]),
    st.integers(0, 2**32 - 1),
)
def test_anchors_hold_themselves_first_and_disconnected_nodes_reach_none(
    num_nodes: int, density: float, ties: str, seed: int
) -> None:
    graph = random_graph(num_nodes, int(density * num_nodes), seed)
    num_anchors = max(1, num_nodes // 6)
    chosen = TokenizerSettings(
        num_anchors=num_anchors, anchors_per_node=max(1, num_anchors // 2), ties=ties
    )
    rng = np.random.default_rng(seed)
    vocabulary = fit_vocabulary(graph, chosen, rng=rng)
    table = tokenize(graph, vocabulary, rng=rng)
    np.testing.assert_array_equal(table.anchors[vocabulary.anchors, 0], range(num_anchors))
    assert (table.distances[vocabulary.anchors, 0] == 0).all()
    lost = np.isinf(true_distances(graph, vocabulary.anchors)).all(axis=1)
    is_disconnected = table.anchors == vocabulary.disconnected
    np.testing.assert_array_equal(is_disconnected.all(axis=1), lost)
    np.testing.assert_array_equal(is_disconnected.any(axis=1), lost)
    holds_anchor = table.anchors < vocabulary.num_anchors
    np.testing.assert_array_equal(holds_anchor, table.distances != NO_DISTANCE)
    assert (np.diff(holds_anchor.astype(int), axis=1) <= 0).all()  # padding comes last


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.floats(0, 1.0), st.integers(0, 2**32 - 1))
def test_an_anchor_for_every_lost_component_leaves_no_node_disconnected(
    num_nodes: int, density: float, seed: int
) -> None:
    graph = random_graph(num_nodes, int(density * num_nodes), seed)
    chosen = TokenizerSettings(num_anchors=1, anchors_per_node=1, disconnected="anchor")
    rng = np.random.default_rng(seed)
    vocabulary = fit_vocabulary(graph, chosen, rng=rng)
    table = tokenize(graph, vocabulary, rng=rng)
    assert not (table.anchors == vocabulary.disconnected).any()
    everyone = np.arange(num_nodes, dtype=np.int32)
    num_parts = len(np.unique(np.isfinite(true_distances(graph, everyone)), axis=0))
    assert vocabulary.num_anchors == num_parts  # one asked for, and one for each of the others


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 120), st.floats(0, 1.5), st.integers(0, 2**32 - 1))
def test_random_anchors_stand_at_their_true_distances_nearest_first(
    num_nodes: int, density: float, seed: int
) -> None:
    graph = random_graph(num_nodes, int(density * num_nodes), seed)
    num_anchors = (num_nodes + 1) // 2
    k = max(1, num_anchors // 3)
    chosen = TokenizerSettings(num_anchors=num_anchors, anchors_per_node=k, select="random")
    rng = np.random.default_rng(seed)
    vocabulary = fit_vocabulary(graph, chosen, rng=rng)
    table = tokenize(graph, vocabulary, rng=rng)
    truth = true_distances(graph, vocabulary.anchors)
    for node in range(num_nodes):
        held = table.anchors[node][table.anchors[node] < num_anchors]
        hops = table.distances[node][: len(held)]
        assert len(set(held.tolist())) == len(held)
        np.testing.assert_array_equal(hops, truth[node, held])
        assert (np.diff(hops) >= 0).all()
        rest = vocabulary.padding if len(held) else vocabulary.disconnected
        assert (table.anchors[node][len(held) :] == rest).all()
        assert (table.distances[node][len(held) :] == NO_DISTANCE).all()


def test_random_anchors_are_as_many_as_k_and_used_alike_where_all_are_reachable() -> None:
    nodes = np.arange(1999)
    path = KnowledgeGraph(np.stack([nodes, 0 * nodes, nodes + 1], axis=1), 2000, 1)
    chosen = TokenizerSettings(num_anchors=100, anchors_per_node=10, select="random")
    rng = np.random.default_rng(0)
    table = tokenize(path, fit_vocabulary(path, chosen, rng=rng), rng=rng)
    assert (table.distances != NO_DISTANCE).all()
    use = np.bincount(table.anchors.ravel(), minlength=100)
    assert use.min() > 130 and use.max() < 270  # 200 each on average, deviation 13


def test_the_same_seed_gives_the_same_table_and_another_seed_another() -> None:
    graph = random_graph(300, 900, seed=0)
    chosen = TokenizerSettings(num_anchors=60, anchors_per_node=5, relations_per_node=2)

    def table(seed: int) -> tuple[bytes, bytes, bytes]:
        rng = np.random.default_rng(seed)
        made = tokenize(graph, fit_vocabulary(graph, chosen, rng=rng), rng=rng)
        return made.anchors.tobytes(), made.distances.tobytes(), made.relations.tobytes()

    assert table(1) == table(1)
    assert all(one != other for one, other in zip(table(1), table(2), strict=True))


def test_an_adjacency_at_hand_changes_nothing() -> None:
    graph, chosen = small_graph(), TokenizerSettings(num_anchors=2, anchors_per_node=2)
    adjacency = build_adjacency(graph)
    rng, other_rng = np.random.default_rng(0), np.random.default_rng(0)
    vocabulary = fit_vocabulary(graph, chosen, rng=rng, adjacency=adjacency)
    table = tokenize(graph, vocabulary, rng=rng, adjacency=adjacency)
    again = tokenize(graph, fit_vocabulary(graph, chosen, rng=other_rng), rng=other_rng)
    assert table.anchors.tobytes() == again.anchors.tobytes()


def test_a_graph_with_other_names_is_refused() -> None:
    graph = small_graph()
    vocabulary = small_table().vocabulary
    other = KnowledgeGraph(graph.triples, 7, 2, Names.of(list("abcdegf"), ["likes", "knows"]))
    with pytest.raises(InputError, match=r"made for another graph \(7 nodes, 2 relations\) than"):
        tokenize(other, vocabulary, rng=np.random.default_rng(0))


def test_a_table_cannot_be_written_to() -> None:
    table = small_table()
    arrays = (table.anchors, table.distances, table.relations, table.vocabulary.anchors)
    assert not any(array.flags.writeable for array in arrays)
