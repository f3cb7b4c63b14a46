"""A random split of facts: every node and relation of valid and test occurs in training."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from nodepiece.compiled import njit
from nodepiece.data.blocks import ReadOptions
from nodepiece.data.dataset import SPLITS, Dataset
from nodepiece.errors import InputError
from nodepiece.files import atomic_folder
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.short_text import plural

MARKER = "split.json"  # in a folder that was written here: how it was made
AS_WRITTEN = ReadOptions(delimiter="tab", header=False, format="tsv")  # whatever the names are
MAX_HELD_OUT = 20_000  # facts for valid, and for test, where a dataset has none
UNWRITABLE = ("\t", "\n", "\r")  # in a name, for a file of tab-separated values


def split_facts(
    dataset: Dataset, shares: Mapping[str, float], *, rng: np.random.Generator
) -> Dataset:
    """All facts of a dataset, merged and split at random: shares of "valid" and of "test".

    A fact is held out only if each of its nodes and its relation has another fact in training. So
    there may be fewer than asked for; none at all is refused.
    """
    facts = dataset.all_triples()
    check_shares(shares)
    numbers = {split: round(share * len(facts)) for split, share in shares.items()}
    for split, number in numbers.items():
        if shares[split] and not number:
            raise InputError(
                f"a share of {shares[split]:g} of {plural(len(facts), 'fact')} is none for "
                f"{split}; give a larger one"
            )
    graph = KnowledgeGraph(facts, dataset.num_nodes, dataset.train.num_relations, dataset.names)
    merged = replace(dataset, train=graph, valid=facts[:0], test=facts[:0])
    held_out = hold_out_facts(merged, numbers, rng=rng)
    for split, number in numbers.items():
        if number and not len(held_out.part(split)):
            raise InputError(
                f"no fact of {dataset.name} can be held out for {split}: each is the only one of a "
                "node or a relation; add facts, or lower the shares"
            )
    return held_out


def check_shares(shares: Mapping[str, float]) -> None:
    for split, share in shares.items():
        if not 0 <= share < 1:
            raise InputError(f"the share of facts for {split} must be in [0, 1), got {share}")
    if not 0 < sum(shares.values()) < 1:
        raise InputError(
            "the shares of facts for valid and test must be above 0 and below 1 together, got "
            f"{sum(shares.values())}"
        )


def hold_out_facts(
    dataset: Dataset, numbers: Mapping[str, int], *, rng: np.random.Generator
) -> Dataset:
    """The dataset with so many facts of train moved to "valid" and to "test".

    They are drawn at random from facts whose nodes and relation have other facts in train. Where
    these run out, every split gets its share of them, valid the first.
    """
    train, total = dataset.train.triples, sum(numbers.values())
    order = rng.permutation(len(train))
    chosen = choose_facts(train, order, total, dataset.num_nodes, dataset.train.num_relations)
    is_left = np.ones(len(train), bool)
    is_left[chosen] = False
    ends = np.ceil(np.cumsum(list(numbers.values())) / max(1, total) * len(chosen)).astype(int)
    parts = dict(zip(numbers, np.split(chosen, ends[:-1]), strict=True))
    return replace(
        dataset,
        train=replace(dataset.train, triples=train[is_left]),
        valid=np.concatenate([dataset.valid, train[np.sort(parts.get("valid", chosen[:0]))]]),
        test=np.concatenate([dataset.test, train[np.sort(parts.get("test", chosen[:0]))]]),
        num_held_out={split: len(places) for split, places in parts.items()},
    )


@njit(cache=True)
def choose_facts(
    triples: IntArray, order: LongArray, number: int, num_nodes: int, num_relations: int
) -> LongArray:
    """The first facts in an order that leave a fact to their nodes and relation, up to a number."""
    of_node = np.zeros(num_nodes, np.int64)
    of_relation = np.zeros(num_relations, np.int64)
    for fact in range(len(triples)):
        head, relation, tail = triples[fact]
        of_relation[relation] += 1
        of_node[head] += 1
        if tail != head:
            of_node[tail] += 1
    chosen = np.empty(min(number, len(triples)), np.int64)
    found = 0
    for place in range(len(order)):
        if found == len(chosen):
            break
        head, relation, tail = triples[order[place]]
        if of_relation[relation] > 1 and of_node[head] > 1 and of_node[tail] > 1:
            of_relation[relation] -= 1
            of_node[head] -= 1
            if tail != head:
                of_node[tail] -= 1
            chosen[found] = order[place]
            found += 1
    return chosen[:found]


def hold_out_lacking(dataset: Dataset, share: float, *, rng: np.random.Generator) -> Dataset:
    """The dataset with a share of train held out for valid, and for test, if it has none."""
    lacking = [split for split in SPLITS if not len(dataset.part(split))]
    number = min(MAX_HELD_OUT, max(1, round(share * dataset.train.num_triples)))
    return hold_out_facts(dataset, dict.fromkeys(lacking, number), rng=rng) if lacking else dataset


def write_split(dataset: Dataset, folder: Path, remarks: Mapping[str, object]) -> None:
    """Write train.tsv, valid.tsv and test.tsv; an earlier folder of this kind is replaced whole.

    A split without facts has no file.
    """
    nodes, relations = dataset.names.nodes.to_pylist(), dataset.names.relations.to_pylist()
    for name in (*nodes, *relations):
        if any(letter in name for letter in UNWRITABLE):
            raise InputError(
                f"the name {name!r} has a tab or a line break, which a TSV file cannot have; "
                "rename it"
            )
    with atomic_folder(folder, marker=MARKER) as partial:
        for split in [split for split in SPLITS if len(dataset.part(split))]:
            lines = (
                f"{nodes[head]}\t{relations[relation]}\t{nodes[tail]}\n"
                for head, relation, tail in dataset.part(split).tolist()
            )
            with (partial / f"{split}.tsv").open("w", encoding="utf-8") as file:
                file.writelines(lines)
        text = json.dumps(dict(remarks), indent=1, ensure_ascii=False)
        (partial / MARKER).write_text(text + "\n", encoding="utf-8")
