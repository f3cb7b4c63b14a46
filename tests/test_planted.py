"""The rules that are said to be planted in a graph hold in it."""

from collections import defaultdict

import numpy as np
import pytest
from benchmarks.planted import COMMUNITY_SIZE, NUM_HELD_OUT, RELATIONS, planted_dataset

from nodepiece.data.dataset import Dataset

NUM_NODES = 10_000
Targets = dict[str, dict[int, set[int]]]


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return planted_dataset(NUM_NODES, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def known(dataset: Dataset) -> Targets:
    """Relation -> head -> tails, of what is there to learn from."""
    found: Targets = {name: defaultdict(set) for name in RELATIONS}
    for head, relation, tail in dataset.train.triples.tolist():
        found[RELATIONS[relation]][head].add(tail)
    return found


def test_no_fact_is_held_out_and_learned_from(dataset: Dataset) -> None:
    facts = [set(map(tuple, dataset.part(part).tolist())) for part in ("train", "valid", "test")]
    assert len(facts[1]) == len(facts[2]) == NUM_HELD_OUT
    assert len(facts[0] | facts[1] | facts[2]) == sum(map(len, facts))


def test_what_is_held_out_follows_from_what_is_learned_from(
    dataset: Dataset, known: Targets
) -> None:
    members: dict[int, list[int]] = defaultdict(list)
    for node, centres in known["member_of"].items():
        members[next(iter(centres))].append(node)
    for head, relation, tail in dataset.test.tolist():
        match RELATIONS[relation]:
            case "has_member":
                assert head in known["member_of"][tail]
            case "located_in":
                (centre,) = known["member_of"][head]
                assert known["in_region"][centre] == {tail}
            case "works_for":
                (centre,) = known["member_of"][head]
                others = [known["works_for"][node] for node in members[centre]]
                assert {tail} in others
            case "knows":
                assert head in known["knows"][tail]
            case other:
                raise AssertionError(f"{other} follows from nothing")


def test_every_node_is_in_one_community(known: Targets) -> None:
    assert len(known["member_of"]) == NUM_NODES
    assert {len(centres) for centres in known["member_of"].values()} == {1}
    assert len(known["in_region"]) == NUM_NODES // COMMUNITY_SIZE
