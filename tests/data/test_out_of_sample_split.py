"""Out-of-sample splits by the paper's recipe, and their files."""

from pathlib import Path

import numpy as np
import pytest

from nodepiece.data.dataset import Dataset
from nodepiece.data.open import open_out_of_sample
from nodepiece.data.out_of_sample import (
    EVALUATION_SPLITS,
    OutOfSampleDataset,
    edges_of_unseen,
    read_out_of_sample,
    write_out_of_sample,
)
from nodepiece.data.out_of_sample_split import draw_nodes, split_out_of_sample
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

NODES, RELATIONS = [f"n{i}" for i in range(200)], ["likes", "knows", "né à"]


def random_dataset(seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    facts = np.unique(rng.integers((200, 3, 200), size=(700, 3), dtype=np.int32), axis=0)
    train, valid, test = np.split(rng.permutation(facts), [500, 600])
    graph = KnowledgeGraph(train, 200, 3, Names.of(NODES, RELATIONS))
    return Dataset("random", graph, valid, test, {})


def named(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    return {
        (graph.node_name(h), graph.relation_name(r), graph.node_name(t))
        for h, r, t in graph.triples.tolist()
    }


def split(seed: int = 0) -> OutOfSampleDataset:
    return split_out_of_sample(random_dataset(), 0.1, rng=np.random.default_rng(seed))[0]


def test_unseen_nodes_are_in_no_fact_that_is_learned_from_and_lead_to_seen_ones() -> None:
    parts = split()
    seen = {end for head, _, tail in named(parts.train) for end in (head, tail)}
    assert not parts.unseen["valid"].keys() & parts.unseen["test"].keys()
    for part in EVALUATION_SPLITS:
        for node, facts in parts.unseen[part].items():
            assert node not in seen and len(facts) >= 2
            for head, _, tail in facts:
                assert {head, tail} - {node} <= seen


def test_every_fact_goes_to_one_place_or_is_counted() -> None:
    dataset = random_dataset()
    parts, report = split_out_of_sample(dataset, 0.1, rng=np.random.default_rng(0))
    everything = named(KnowledgeGraph(dataset.all_triples(), 200, 3, Names.of(NODES, RELATIONS)))
    judged = [set().union(*parts.unseen[part].values()) for part in EVALUATION_SPLITS]
    places = [named(parts.train), *judged]
    assert sum(map(len, places)) == len(set().union(*places)) and set().union(*places) <= everything
    assert report.num_train == len(places[0]) == parts.train.num_triples
    assert report.num_facts == {"valid": len(judged[0]), "test": len(judged[1])}
    lost = len(everything) - sum(map(len, places))
    assert report.num_between + report.num_lost == lost > 0


def test_the_share_is_of_nodes_with_at_least_two_facts() -> None:
    # 0 - 1 twice, 2 - 3 once, 4 with itself once
    facts = np.array([[0, 0, 1], [0, 1, 1], [2, 0, 3], [4, 0, 4]], np.int32)
    for seed in range(10):
        part_of = draw_nodes(facts, 5, 0.49, rng=np.random.default_rng(seed))
        assert sorted(part_of[:2].tolist()) == [1, 2] and not part_of[2:].any()
    with pytest.raises(InputError, match="less than one node; raise the share"):
        draw_nodes(facts, 5, 0.1, rng=np.random.default_rng(0))


@pytest.mark.parametrize("share", [0.0, -0.1, 0.5, 1.0])
def test_a_share_of_none_or_of_half_the_nodes_and_more_is_refused(share: float) -> None:
    with pytest.raises(InputError, match=r"above 0 and below 0\.5"):
        split_out_of_sample(random_dataset(), share, rng=np.random.default_rng(0))


def test_what_is_left_out_is_counted_by_its_reason() -> None:
    # n0 and n1 are drawn for valid, n2 and n3 for test; the rest is seen, but for n8 and n9.
    part_of = {0: 1, 1: 1, 2: 2, 3: 2}
    facts = np.array(
        [
            *([0, 0, 4], [5, 0, 0]),  # two facts of n0
            *([1, 0, 4], [1, 0, 9]),  # n9 is seen nowhere else: n1 has one fact left, and goes
            *([2, 0, 4], [2, 1, 5], [2, 2, 6]),  # "né à" is in no fact to learn from
            *([3, 0, 0], [3, 0, 4], [3, 1, 4]),  # the first is between valid and test
            *([4, 0, 5], [5, 1, 6], [6, 0, 4]),  # to learn from
        ],
        np.int32,
    )
    graph = KnowledgeGraph(facts, 200, 3, Names.of(NODES, RELATIONS))
    dataset = Dataset("small", graph, np.empty((0, 3), np.int32), np.empty((0, 3), np.int32), {})

    def draw(*arguments: object, **options: object) -> IntArray:
        return np.array([part_of.get(node, 0) for node in range(200)], np.int32)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nodepiece.data.out_of_sample_split.draw_nodes", draw)
        parts, report = split_out_of_sample(dataset, 0.1, rng=np.random.default_rng(0))

    assert report.to_json() == {
        "num_train": 3,
        "num_nodes": 3,
        "num_unseen": {"valid": 1, "test": 2},
        "num_facts": {"valid": 2, "test": 4},
        "num_between": 1,
        "num_lost": 3,  # (n1, likes, n9), (n1, likes, n4), (n2, né à, n6)
        "num_single": 1,
    }
    assert parts.unseen["valid"] == {"n0": (("n0", "likes", "n4"), ("n5", "likes", "n0"))}


def test_the_seed_decides_the_split() -> None:
    assert split(0).unseen == split(0).unseen != split(1).unseen


def test_a_split_is_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    parts = split()
    write_out_of_sample(parts, tmp_path / "split", {"seed": 0})
    again = open_out_of_sample(str(tmp_path / "split"))
    assert again.unseen == parts.unseen and named(again.train) == named(parts.train)


def test_a_dataset_without_unseen_nodes_is_split_when_it_is_opened() -> None:
    parts = open_out_of_sample("countries")
    assert parts.unseen["valid"] and parts.unseen == open_out_of_sample("countries").unseen


def test_edges_start_from_unseen_nodes_and_what_leads_nowhere_is_counted() -> None:
    graph = KnowledgeGraph(
        np.array([[0, 0, 1], [1, 1, 0]], np.int32), 2, 2, Names.of(["a", "b"], ["likes", "knows"])
    )
    facts = (("x", "likes", "a"), ("b", "knows", "x"), ("x", "likes", "y"), ("x", "hates", "a"))
    parts = OutOfSampleDataset("tiny", graph, {"valid": {}, "test": {"x": facts, "y": ()}})
    edges = edges_of_unseen(parts, "test")
    assert edges.offsets.tolist() == [0, 2, 2] and edges.owners.tolist() == [0, 0]
    assert edges.relations.tolist() == [0, 3] and edges.neighbours.tolist() == [0, 1]
    assert edges.num_dropped == 2
    assert edges_of_unseen(parts, "valid").num_edges == 0


def test_a_folder_without_unseen_nodes_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no valid.json and no test.json; make .* nodepiece split"
    ):
        read_out_of_sample(tmp_path)
