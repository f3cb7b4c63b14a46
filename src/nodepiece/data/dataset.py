"""A graph to train on and facts to evaluate on."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, read_only
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.graph.short_text import plural

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False)
class GivenNegatives:
    """The negatives that a dataset gives for the facts of a split."""

    heads: IntArray  # (num_facts, num_negatives) nodes that replace the head
    tails: IntArray  # (num_facts, num_negatives)

    def __post_init__(self) -> None:
        for side in ("heads", "tails"):
            object.__setattr__(self, side, read_only(getattr(self, side)))


@dataclass(frozen=True, eq=False)
class Dataset:
    """A split dataset for transductive tasks. Ids and names are those of the training graph."""

    name: str
    train: KnowledgeGraph
    valid: IntArray  # (num_valid, 3)
    test: IntArray  # (num_test, 3)
    num_unseen: dict[str, int]  # facts of "valid" and "test" left out: train lacks their names
    num_repeated: int = 0  # facts left out because their file states them twice
    num_literals: int = 0  # facts left out because their object is a literal
    num_held_out: dict[str, int] = field(default_factory=dict)  # facts of train moved to splits
    layout: str = ""  # how the training file was read, in words: format and columns
    negatives: Callable[[str], GivenNegatives] | None = None
    """Reads the given negatives of "valid" or "test"; None: the dataset has none."""

    def __post_init__(self) -> None:
        for part in ("valid", "test"):
            object.__setattr__(self, part, read_only(getattr(self, part)))

    def __repr__(self) -> str:
        counts = (
            plural(self.train.num_nodes, "node"),
            plural(self.train.num_relations, "relation"),
            f"{plural(self.train.num_triples, 'fact')} to train on",
            f"{len(self.valid):,} for valid",
            f"{len(self.test):,} for test",
        )
        return f"Dataset({self.name!r}: {', '.join(counts)})"

    @property
    def num_nodes(self) -> int:
        """Nodes of the training graph."""
        return self.train.num_nodes

    @property
    def names(self) -> Names:
        """Names of nodes and relations; a dataset without names is refused."""
        if self.train.names is None:
            raise InputError(f"dataset {self.name} has no names; read it from files")
        return self.train.names

    def part(self, split: str) -> IntArray:
        """The facts of "train", "valid" or "test"."""
        parts = {"train": self.train.triples, "valid": self.valid, "test": self.test}
        if split not in parts:
            raise InputError(f"unknown split {split!r}; it is one of {', '.join(parts)}")
        return parts[split]

    def all_triples(self) -> IntArray:
        """The facts of all splits, which filtered ranking leaves out."""
        return np.concatenate([self.train.triples, self.valid, self.test])
