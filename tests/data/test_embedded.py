"""What the embedded graph promises to everyone who demonstrates or tests something on it."""

from collections import Counter

import numpy as np
import pytest

from nodepiece.data.dataset import SPLITS, Dataset
from nodepiece.data.embedded import load_countries


@pytest.fixture(scope="module")
def countries() -> Dataset:
    return load_countries()


def facts_by_name(dataset: Dataset, split: str) -> list[tuple[str, str, str]]:
    names = dataset.names
    return [
        (names.node(head), names.relation(relation), names.node(tail))
        for head, relation, tail in dataset.part(split)
    ]


def test_it_has_the_size_its_docstring_states(countries: Dataset) -> None:
    assert [len(countries.part(split)) for split in SPLITS] == [3222, 165, 165]
    assert countries.train.num_nodes == 831
    assert countries.train.num_relations == 10


def test_held_out_facts_name_only_what_train_knows(countries: Dataset) -> None:
    assert countries.num_unseen == {"valid": 0, "test": 0}


def test_no_fact_is_stated_twice(countries: Dataset) -> None:
    facts = countries.all_triples()
    assert len(np.unique(facts, axis=0)) == len(facts)


def test_nodes_of_held_out_facts_keep_three_facts_in_train(countries: Dataset) -> None:
    degree = np.bincount(countries.train.triples[:, [0, 2]].ravel())
    held_out = np.concatenate([countries.valid, countries.test])
    assert degree[held_out[:, [0, 2]]].min() >= 3


@pytest.mark.parametrize("split", SPLITS)
def test_both_directions_of_a_symmetric_fact_are_in_the_same_split(
    countries: Dataset, split: str
) -> None:
    facts = set(facts_by_name(countries, split))
    symmetric = {fact for fact in facts if fact[1] in ("borders", "near")}
    assert symmetric
    assert {(tail, relation, head) for head, relation, tail in symmetric} == symmetric


def test_test_facts_are_of_kinds_that_can_be_reasoned_out(countries: Dataset) -> None:
    kinds = Counter(relation for _, relation, _ in facts_by_name(countries, "test"))
    assert "borders" in kinds
    assert not kinds.keys() & {"has capital", "part of"}


def test_well_known_facts_are_there(countries: Dataset) -> None:
    facts = {fact for split in SPLITS for fact in facts_by_name(countries, split)}
    assert ("Germany", "borders", "France") in facts
    assert ("Germany", "has currency", "euro (EUR)") in facts
    assert ("Luxembourg", "has capital", "Luxembourg (city)") in facts
    assert ("Brazil", "has language", "Portuguese") in facts
    assert ("Eastern Africa", "part of", "Sub-Saharan Africa") in facts
