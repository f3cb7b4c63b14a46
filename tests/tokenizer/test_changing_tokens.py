"""Tokens that follow a changing graph against tokenizing it again, after every batch."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.graph.changes import Batch as History
from tests.graph.changes import histories

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.changing_tokens import NO_FACTS, Batch, ChangingTokens
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import TokenTable, tokenize, tokenize_by
from nodepiece.tokenizer.vocabulary import fit_vocabulary

Histories = tuple[KnowledgeGraph, list[History], np.random.Generator]


def table_of(graph: KnowledgeGraph, chosen: TokenizerSettings) -> TokenTable:
    rng = np.random.default_rng(0)
    return tokenize(graph, fit_vocabulary(graph, chosen, rng=rng), rng=rng)


@st.composite
def chosen(draw: st.DrawFn, max_anchors: int) -> TokenizerSettings:
    k = draw(st.integers(0, min(4, max_anchors)))
    return TokenizerSettings(
        num_anchors=draw(st.integers(k, max_anchors)),
        anchors_per_node=k,
        relations_per_node=draw(st.integers(0 if k else 1, 4)),
        ties=draw(st.sampled_from(["per-node", "global"])),
        select=draw(st.sampled_from(["nearest", "nearest", "random"])),
        relation_order=draw(st.sampled_from(["ascending", "random"])),
        distances=draw(st.booleans()),
    )


def columns(table: TokenTable | TokenRows) -> tuple[np.ndarray, ...]:
    return table.anchors, table.distances, table.relations


@pytest.mark.parametrize("large", [50_000, 0])
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(history=histories(max_nodes=30), data=st.data())
def test_after_every_batch_the_tokens_equal_a_fresh_tokenization(
    monkeypatch: pytest.MonkeyPatch, large: int, history: Histories, data: st.DataObject
) -> None:
    monkeypatch.setattr("nodepiece.tokenizer.changing_tokens.LARGE", large)
    graph, batches, _ = history
    before = table_of(graph, data.draw(chosen(graph.num_nodes)))
    tokens = ChangingTokens(build_adjacency(graph), before)
    for happening in batches:
        batch = Batch(happening.inserted, happening.removed, happening.num_new_nodes)
        asked, applied = tokens.changed_by(batch), tokens.apply(batch)
        vocabulary = replace(before.vocabulary, num_nodes=tokens.num_nodes)
        fresh = tokenize_by(tokens.salts, tokens.adjacency.compact(), vocabulary)
        now = tokens.rows_of(np.arange(tokens.num_nodes, dtype=np.int32))
        for mine, theirs in zip(columns(now), columns(fresh), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        is_new = np.arange(tokens.num_nodes) >= before.num_nodes
        for old, new in zip(columns(before), columns(fresh), strict=True):
            is_new[: len(old)] |= (old != new[: len(old)]).any(axis=1)
        np.testing.assert_array_equal(applied.nodes, np.flatnonzero(is_new))
        for mine, theirs in zip(columns(applied), columns(fresh), strict=True):
            np.testing.assert_array_equal(mine, theirs[applied.nodes])
        for preview, done in zip(asked, applied, strict=True):
            np.testing.assert_array_equal(preview, done)
        before = fresh


def path() -> KnowledgeGraph:
    # 0 - 1 - 2 - 3, all by relation 0 of 2
    return KnowledgeGraph(np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3]], np.int32), 4, 2)


def path_with_anchors() -> TokenTable:
    """The path with 0 and 3 as anchors, two anchors and one relation a node."""
    settings_ = TokenizerSettings(num_anchors=2, anchors_per_node=2, relations_per_node=1)
    table = table_of(path(), settings_)
    vocabulary = replace(table.vocabulary, anchors=np.array([0, 3], np.int32))
    assert table.salts is not None
    return tokenize_by(table.salts, build_adjacency(path()), vocabulary)


def test_a_new_node_is_one_hop_farther_than_its_neighbours_and_has_its_own_relations() -> None:
    tokens = ChangingTokens(build_adjacency(path()), path_with_anchors())
    rows = tokens.changed_by(Batch(np.array([[4, 1, 1]], np.int32), NO_FACTS, 1))
    assert rows.nodes.tolist()[-1] == 4
    assert rows.distances[-1].tolist() == [2, 3] and rows.anchors[-1].tolist() == [0, 1]
    assert rows.relations[-1].tolist() == [2 + 1]  # relation 1, after two anchors


def test_new_nodes_may_be_tied_to_each_other_only_or_to_nothing() -> None:
    tokens = ChangingTokens(build_adjacency(path()), path_with_anchors())
    facts = np.array([[4, 1, 0], [5, 1, 4]], np.int32)
    rows = tokens.apply(Batch(facts, NO_FACTS, 3))
    assert rows.distances[-3:].tolist() == [[1, 4], [2, 5], [-1, -1]]
    disconnected, padding = tokens.vocabulary.disconnected, tokens.vocabulary.padding
    assert rows.anchors[-1].tolist() == [disconnected] * 2 and rows.relations[-1] == [padding]


def test_a_table_that_forgot_what_was_random_cannot_follow() -> None:
    table = replace(path_with_anchors(), salts=None)
    with pytest.raises(InputError, match="tokenize the graph again"):
        ChangingTokens(build_adjacency(path()), table)


def test_a_batch_that_is_refused_leaves_everything_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokens = ChangingTokens(build_adjacency(path()), path_with_anchors())
    batch = Batch(np.array([[4, 1, 1]], np.int32), path().triples[:1], 1)
    expected = tokens.changed_by(batch)

    def refuse(*_: object) -> None:
        raise InputError("too far")

    with monkeypatch.context() as patch:
        patch.setattr(tokens.nearest, "changed_by", refuse)
        for attempt in (tokens.apply, tokens.changed_by):
            with pytest.raises(InputError, match="too far"):
                attempt(batch)
    assert tokens.num_nodes == 4
    assert sorted(tokens.adjacency.facts().tolist()) == path().triples.tolist()
    for mine, theirs in zip(tokens.apply(batch), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
