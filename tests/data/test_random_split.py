"""A random split of facts, and facts held out where a dataset has no splits."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.commands.conftest import Nodepiece, nodepiece

from nodepiece.data.dataset import Dataset
from nodepiece.data.open import open_dataset
from nodepiece.data.random_split import hold_out_facts, hold_out_lacking, split_facts
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

__all__ = ["nodepiece"]  # a fixture
NO_FACTS = np.empty((0, 3), np.int32)


def dataset(facts: list[tuple[int, int, int]] | IntArray, num_nodes: int) -> Dataset:
    triples = np.array(facts, np.int32)
    num_relations = int(triples[:, 1].max()) + 1
    names = Names.of(
        [f"node {number}" for number in range(num_nodes)],
        [f"relation {number}" for number in range(num_relations)],
    )
    graph = KnowledgeGraph(triples, num_nodes, num_relations, names)
    return Dataset("facts", graph, NO_FACTS, NO_FACTS, {})


def random_dataset(seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    facts = np.unique(rng.integers((40, 4, 40), size=(120, 3)), axis=0)
    nodes, ends = np.unique(facts[:, ::2], return_inverse=True)
    facts[:, ::2] = ends.reshape(-1, 2)
    return dataset(facts.astype(np.int32), len(nodes))


@pytest.mark.parametrize("seed", range(5))
def test_every_node_and_relation_that_is_evaluated_occurs_in_training(seed: int) -> None:
    whole = random_dataset(seed)

    split = split_facts(whole, {"valid": 0.2, "test": 0.3}, rng=np.random.default_rng(seed))

    held_out = np.concatenate([split.valid, split.test])
    assert set(held_out[:, ::2].ravel()) <= set(split.train.triples[:, ::2].ravel())
    assert set(held_out[:, 1]) <= set(split.train.triples[:, 1])
    together = np.concatenate([split.train.triples, held_out])
    assert sorted(map(tuple, together.tolist())) == sorted(map(tuple, whole.train.triples.tolist()))


def test_shares_are_kept_where_there_are_enough_facts() -> None:
    facts = [(head, 0, tail) for head in range(20) for tail in range(20)]

    split = split_facts(
        dataset(facts, 20), {"valid": 0.05, "test": 0.1}, rng=np.random.default_rng(0)
    )

    assert (len(split.valid), len(split.test), split.train.num_triples) == (20, 40, 340)
    assert split.num_held_out == {"valid": 20, "test": 40}


def test_the_seed_decides_which() -> None:
    whole, shares = random_dataset(0), {"valid": 0.1, "test": 0.1}
    first, again, other = (
        split_facts(whole, shares, rng=np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert first.test.tolist() == again.test.tolist()
    assert first.test.tolist() != other.test.tolist()


def test_the_only_fact_of_a_node_or_a_relation_stays_in_training() -> None:
    #  0 - 1 - 2 - 0 by relation 0, 2 - 0 by relation 1 alone, 0 - 3 alone; 3 about itself
    facts = [(0, 0, 1), (1, 0, 2), (2, 0, 0), (2, 1, 0), (0, 0, 3), (3, 0, 3)]
    for seed in range(20):
        held = hold_out_facts(
            dataset(facts, 4), {"valid": 6, "test": 0}, rng=np.random.default_rng(seed)
        )
        left = {tuple(fact) for fact in held.train.triples.tolist()}
        assert (2, 1, 0) in left  # the only one of relation 1
        assert {(0, 0, 3), (3, 0, 3)} & left  # one of the two that name node 3
        assert len(held.test) == 0


def test_a_graph_whose_facts_are_all_needed_is_refused_by_a_split() -> None:
    star = dataset([(0, 0, leaf) for leaf in range(1, 6)], 6)
    with pytest.raises(InputError, match="no fact of facts can be held out for test"):
        split_facts(star, {"valid": 0.0, "test": 0.2}, rng=np.random.default_rng(0))


def test_a_share_of_few_facts_that_is_none_is_refused_by_a_split() -> None:
    star = dataset([(0, 0, leaf) for leaf in range(1, 5)], 5)
    with pytest.raises(InputError, match=r"a share of 0.1 of 4 facts is none for valid"):
        split_facts(star, {"valid": 0.1, "test": 0.0}, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ({"valid": -0.1, "test": 0.1}, r"for valid must be in \[0, 1\), got -0.1"),
        ({"valid": 0.5, "test": 0.5}, "above 0 and below 1 together, got 1.0"),
        ({"valid": 0.0, "test": 0.0}, "above 0 and below 1 together, got 0.0"),
    ],
)
def test_impossible_shares_are_refused(shares: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        split_facts(random_dataset(0), shares, rng=np.random.default_rng(0))


def test_only_the_splits_that_a_dataset_lacks_are_filled() -> None:
    whole = random_dataset(0)
    given = hold_out_facts(whole, {"test": 10}, rng=np.random.default_rng(0))

    filled = hold_out_lacking(given, 0.1, rng=np.random.default_rng(0))

    assert filled.test.tolist() == given.test.tolist()
    assert len(filled.valid) == round(0.1 * given.train.num_triples)
    assert filled.num_held_out == {"valid": len(filled.valid)}


def test_large_datasets_have_no_more_held_out_than_can_be_ranked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nodepiece.data.random_split.MAX_HELD_OUT", 3)
    filled = hold_out_lacking(random_dataset(0), 0.1, rng=np.random.default_rng(0))
    assert (len(filled.valid), len(filled.test)) == (3, 3)


def test_the_command_writes_a_folder_that_is_read_as_it_was_split(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    ran = nodepiece("split", "countries", "-o", "split", "--valid", 0.05, "--test", 0.1, "--json")

    assert ran.status == 0, ran.err
    printed = json.loads(ran.out)
    found = open_dataset(str(tmp_path / "split"))
    sizes = {part: len(found.part(part)) for part in ("train", "valid", "test")}
    assert printed["facts"] == sizes
    assert found.num_unseen == {"valid": 0, "test": 0}
    assert sizes["test"] == round(0.1 * sum(sizes.values()))
    again = nodepiece("split", "countries", "-o", "split", "--test", 0.1)
    assert "0 for valid" in again.out and not (tmp_path / "split/valid.tsv").exists()


def test_shares_of_nodes_and_of_facts_do_not_go_together(nodepiece: Nodepiece) -> None:
    ran = nodepiece("split", "countries", "-o", "split", "--valid", 0.05, "--share", 0.1)

    assert ran.status == 2
    assert "--share takes nodes out, --valid and --test take facts out" in ran.err


def test_a_name_that_a_tsv_file_cannot_have_is_refused(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    facts = [{"head": f"a\tb{n % 3}", "relation": "r", "tail": f"c{n % 2}"} for n in range(6)]
    text = "".join(json.dumps(fact) + "\n" for fact in facts)
    (tmp_path / "graph.jsonl").write_text(text, encoding="utf-8")

    ran = nodepiece("split", "graph.jsonl", "-o", "split", "--test", 0.2)

    assert ran.status == 2
    assert "has a tab or a line break" in ran.err
