"""A changing graph by name."""

import numpy as np
import pytest

from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.tokenizer.changing_graph import ChangingGraph, without
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

SETTINGS = TokenizerSettings(num_anchors=2, anchors_per_node=2, relations_per_node=2)


def family() -> KnowledgeGraph:
    names = Names.of(["Ann", "Bea", "Cem"], ["likes", "knows"])
    return KnowledgeGraph(np.array([[0, 0, 1], [1, 1, 2]], np.int32), 3, 2, names)


def changing() -> ChangingGraph:
    rng = np.random.default_rng(0)
    graph = family()
    return ChangingGraph(graph, tokenize(graph, fit_vocabulary(graph, SETTINGS, rng=rng), rng=rng))


def names_of(graph: ChangingGraph) -> list[str]:
    return graph.names.nodes.to_pylist()


def facts_of(graph: ChangingGraph) -> set[str]:
    return {graph.fact_name(fact) for fact in graph.graph().triples.tolist()}


def assert_fresh(graph: ChangingGraph) -> None:
    table = graph.table()
    now = graph.tokens.rows_of(np.arange(graph.num_nodes, dtype=np.int32))
    np.testing.assert_array_equal(now.anchors, table.anchors)
    np.testing.assert_array_equal(now.distances, table.distances)
    np.testing.assert_array_equal(now.relations, table.relations)
    table.vocabulary.check_fits(graph.graph())


def test_added_facts_bring_their_nodes_with_the_next_ids() -> None:
    graph = changing()
    rows = graph.add([("Dan", "likes", "Ann"), ("Eve", "knows", "Dan")])
    assert names_of(graph) == ["Ann", "Bea", "Cem", "Dan", "Eve"]
    assert {3, 4} <= set(rows.nodes.tolist())
    assert "Eve — knows — Dan" in facts_of(graph)
    assert_fresh(graph)


def test_a_node_may_come_without_facts() -> None:
    graph = changing()
    assert graph.add(nodes=["Dan", "Ann"]).nodes.tolist() == [3]
    assert names_of(graph) == ["Ann", "Bea", "Cem", "Dan"]


def test_a_removed_node_keeps_its_id_and_comes_back_with_a_fact() -> None:
    graph = changing()
    graph.remove(nodes=["Bea"])
    assert facts_of(graph) == set() and names_of(graph) == ["Ann", "Bea", "Cem"]
    assert graph.is_present.tolist() == [True, False, True]
    assert_fresh(graph)
    graph.add([("Bea", "likes", "Cem")])
    assert graph.is_present.all() and facts_of(graph) == {"Bea — likes — Cem"}
    assert_fresh(graph)


def test_a_removed_node_comes_back_by_its_name_alone() -> None:
    graph = changing()
    graph.remove(nodes=["Bea"])
    assert not graph.add(nodes=["Bea"]).nodes.size  # it has no facts, as before
    assert graph.is_present.all() and names_of(graph) == ["Ann", "Bea", "Cem"]


def test_a_batch_that_is_refused_brings_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = changing()

    def refuse(*_: object) -> None:
        raise InputError("too far")

    with monkeypatch.context() as patch:
        patch.setattr(graph.tokens, "consequences", refuse)
        with pytest.raises(InputError, match="too far"):
            graph.add([("Dan", "likes", "Ann")])
    assert names_of(graph) == ["Ann", "Bea", "Cem"] and len(graph.is_present) == 3
    graph.add([("Eve", "likes", "Ann")])
    assert "Eve — likes — Ann" in facts_of(graph)
    assert_fresh(graph)


def test_the_node_of_an_anchor_may_go_and_the_anchor_stays_a_piece() -> None:
    graph = changing()
    anchors = graph.tokens.vocabulary.anchors.tolist()
    name = names_of(graph)[anchors[0]]
    graph.remove(nodes=[name])
    assert graph.table().vocabulary.anchors.tolist() == anchors
    assert_fresh(graph)


def test_what_is_there_already_or_not_there_is_left_out_and_counted() -> None:
    graph = changing()
    plan = graph.plan(
        add=[("Ann", "likes", "Bea"), ("Ann", "likes", "Cem"), ("Ann", "likes", "Cem")],
        remove=[("Cem", "likes", "Ann"), ("Bea", "knows", "Cem")],
    )
    assert (len(plan.batch.added), len(plan.batch.removed)) == (1, 1)
    assert (plan.num_known, plan.num_absent) == (1, 1)
    graph.apply(plan)
    assert facts_of(graph) == {"Ann — likes — Bea", "Ann — likes — Cem"}


def test_a_loop_comes_and_goes() -> None:
    graph = changing()
    graph.add([("Ann", "likes", "Ann")])
    assert_fresh(graph)
    graph.remove(nodes=["Ann"])
    assert facts_of(graph) == {"Bea — knows — Cem"}
    assert_fresh(graph)


def test_facts_may_come_as_a_graph_with_names_of_its_own() -> None:
    graph = changing()
    names = Names.of(["Dan", "Cem"], ["knows"])
    graph.add(KnowledgeGraph(np.array([[0, 0, 1]], np.int32), 2, 1, names))
    assert "Dan — knows — Cem" in facts_of(graph)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"add": [("Ann", "hates", "Bea")]}, "'hates' was not seen in training.*'likes', 'knows'"),
        ({"add": [("Ann", "like", "Bea")]}, "no piece for it [(]did you mean 'likes'[?][)]; leave"),
        ({"remove": [("Anne", "likes", "Bea")]}, "unknown node 'Anne'; did you mean 'Ann'"),
        ({"remove_nodes": ["Anne"]}, "unknown node 'Anne'"),
        (
            {"add": [("Ann", "likes", "Bea")], "remove": [("Ann", "likes", "Bea")]},
            "Ann — likes — Bea is to be added and removed at once",
        ),
        (
            {"add": [("Ann", "likes", "Dan")], "remove_nodes": ["Ann"]},
            "'Ann' is to be removed, and it or facts about it are to be added",
        ),
        ({"add_nodes": ["Ann"], "remove_nodes": ["Ann"]}, "'Ann' is to be removed, and it"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    arguments: dict[str, list[str]], message: str
) -> None:
    graph = changing()
    with pytest.raises(InputError, match=message):
        graph.plan(**arguments)  # type: ignore[arg-type]
    assert names_of(graph) == ["Ann", "Bea", "Cem"] and len(facts_of(graph)) == 2


def test_facts_are_taken_out_one_by_one_and_the_rest_keeps_its_order() -> None:
    facts = np.array([[2, 0, 0], [0, 0, 2], [0, 1, 0], [1, 0, 0], [0, 2, 1]], np.int32)
    assert without(facts, np.array([[0, 2, 0], [0, 1, 1], [1, 1, 1]], np.int32)).tolist() == (
        facts.tolist()
    )
    for number, fact in enumerate(facts):
        rest = without(facts, fact[None]).tolist()
        assert rest == facts.tolist()[:number] + facts.tolist()[number + 1 :]


def test_facts_are_distinguished_where_there_are_more_relations_than_nodes() -> None:
    facts = np.array([[1, 0, 0]], np.int32)
    assert without(facts, np.array([[0, 1, 0]], np.int32)).tolist() == [[1, 0, 0]]
