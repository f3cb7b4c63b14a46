"""Which answers a query may have: what is known, and what was seen at that end of a relation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from nodepiece.data.dataset import Dataset
from nodepiece.evaluation.changed_answers import answers_after
from nodepiece.evaluation.known_answers import KnownAnswers, known_relations, known_tails
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.graph.linked_pairs import LinkedPairs, confidences, linked_pairs
from nodepiece.inference.computed_once import computed_once
from nodepiece.inference.patched_counts import PatchedCounts
from nodepiece.tokenizer.changing_graph import without
from nodepiece.tokenizer.changing_tokens import Batch

INDICES = ("known_tails", "known_relations", "has_loops", "num_facts")


def presence(absent: LongArray, num_nodes: int) -> NDArray[np.bool_]:
    """(num_nodes,): False for absent nodes."""
    is_present = np.ones(num_nodes, np.bool_)
    is_present[absent] = False
    return is_present


@dataclass(frozen=True, eq=False)
class Candidates:
    """Indices over the facts of a snapshot, each built at its first use."""

    dataset: Dataset
    absent: LongArray  # removed nodes, ascending, which are never answers

    @computed_once
    def is_present(self) -> NDArray[np.bool_]:
        """(num_nodes,): False for removed nodes."""
        return presence(self.absent, self.dataset.num_nodes)

    @computed_once
    def known_tails(self) -> KnownAnswers:
        """The answers that facts of any split state, of queries with a relation or an inverse."""
        graph = self.dataset.train
        return known_tails(self.dataset.all_triples(), graph.num_nodes, graph.num_relations)

    @computed_once
    def known_relations(self) -> KnownAnswers:
        graph = self.dataset.train
        return known_relations(self.dataset.all_triples(), graph.num_nodes, graph.num_relations)

    @computed_once
    def has_loops(self) -> NDArray[np.bool_]:
        """(2 * num_relations,): whether the graph has facts from a node to itself."""
        head, relation, tail = self.dataset.train.triples.T
        direct = np.zeros(self.dataset.train.num_relations, np.bool_)
        direct[relation[head == tail]] = True
        return np.concatenate([direct, direct])

    @computed_once
    def num_facts(self) -> PatchedCounts:
        """The facts of each node in the graph, as head or as tail."""
        ends = self.dataset.train.triples[:, ::2].ravel()
        return PatchedCounts.of(np.bincount(ends, minlength=self.dataset.train.num_nodes))

    @computed_once
    def linked_pairs(self) -> LinkedPairs:
        """The pairs of nodes that facts of the graph link, in both directions."""
        return linked_pairs(self.dataset.train)

    @computed_once
    def confidences(self) -> csc_array:
        """Of the linked pairs with one relation, the share that has another one."""
        return confidences(self.linked_pairs, 2 * self.dataset.train.num_relations)

    def build(self, like: "Candidates") -> "Candidates":
        """Build the indices that another one has, and return this one."""
        for name in INDICES:
            if name in like.__dict__:
                getattr(self, name)
        return self

    def after(self, dataset: Dataset, absent: LongArray, batch: Batch) -> "Candidates":
        """The candidates after an update; the indices that were built follow its facts.

        The time grows with the update, and with the updates since the indices were built.
        """
        later, built = Candidates(dataset, absent), self.__dict__
        num_nodes, added = dataset.train.num_nodes, batch.added
        held_out = np.concatenate([dataset.valid, dataset.test])
        removed = without(batch.removed, held_out)  # those of valid and test remain known
        for name in ("known_tails", "known_relations"):
            if name in built:
                later.__dict__[name] = answers_after(built[name], added, removed, num_nodes)
        if "num_facts" in built:
            ends = np.concatenate([added[:, ::2], batch.removed[:, ::2]]).ravel().astype(np.int64)
            steps = np.repeat([1, -1], [2 * len(added), 2 * len(batch.removed)])
            later.__dict__["num_facts"] = built["num_facts"].plus(ends, steps, num_nodes)
        changed = np.concatenate([added, batch.removed])
        if "has_loops" in built and not (changed[:, 0] == changed[:, 2]).any():
            later.__dict__["has_loops"] = built["has_loops"]
        return later

    @computed_once
    def _seen(self) -> tuple[NDArray[np.int64], IntArray]:
        """Offsets by relation, inverses included, and the tails in the graph, ascending."""
        graph = self.dataset.train
        _, relation, tail = with_inverses(graph).T
        pairs = np.unique(relation.astype(np.int64) * graph.num_nodes + tail)
        relations, tails = np.divmod(pairs, max(1, graph.num_nodes))
        offsets = np.searchsorted(relations, np.arange(2 * graph.num_relations + 1))
        return offsets, tails.astype(np.int32)

    def seen_tails(self, relation: int) -> IntArray:
        """The nodes that are tails of the relation, or of the inverse, in the graph; ascending.

        Facts of valid and test do not count: they are there to be predicted.
        """
        offsets, tails = self._seen
        return tails[offsets[relation] : offsets[relation + 1]]

    def seen_heads(self, relation: int) -> IntArray:
        num_relations = self.dataset.train.num_relations
        return self.seen_tails((relation + num_relations) % (2 * num_relations))
