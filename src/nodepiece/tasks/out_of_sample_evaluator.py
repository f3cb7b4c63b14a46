"""Ranking for out-of-sample nodes.

Each fact of an unseen node is left out in turn; the node is described by its other facts, and its
neighbour in the left-out fact is ranked among all seen nodes, without other known answers.
"""

from typing import cast

import numpy as np
import torch
from torch import Tensor

from nodepiece.data.out_of_sample import UnseenEdges
from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.path_scorers import PathGraph, QueryEdges
from nodepiece.decoders.unseen_nodes import averages_without_one, encode_rows
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.evaluation.baselines import (
    HALF_LINKS,
    PAGERANK,
    POPULARITY,
    Ranks,
    compare_ranks,
)
from nodepiece.evaluation.half_links import half_links_of
from nodepiece.evaluation.known_answers import KnownAnswers, known_tails_of
from nodepiece.evaluation.metrics import RankingReport, report_queries
from nodepiece.evaluation.personalized_pagerank import walk_over
from nodepiece.evaluation.popularity import count_tails
from nodepiece.evaluation.ranking import Progress, rank_queries
from nodepiece.evaluation.report import Scores
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray, positions_of_runs
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.settings import Experiment
from nodepiece.tokenizer.new_nodes import tokens_of_new
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import TokenTable, stored_anchors
from nodepiece.training.loop import Metrics


class OutOfSampleEvaluator:
    """Ranks the neighbours of unseen nodes, for validation and for the final result."""

    def __init__(
        self, experiment: Experiment, graph: KnowledgeGraph, unseen: dict[str, UnseenEdges]
    ) -> None:
        self.settings, self.graph, self.unseen = experiment.evaluation, graph, unseen
        self._rows: dict[str, TokenRows] = {}
        self._edge_index: EdgeIndex | None = None

    def validate(self, model: LinkModel, table: TokenTable) -> Metrics:
        report = self._report(model, table, "valid", self.settings.validation_facts, None)
        return report.both.to_json()

    def report(
        self, model: LinkModel, table: TokenTable, split: str, progress: Progress | None = None
    ) -> RankingReport:
        return self._report(model, table, split, self.settings.test_facts, progress)

    def popularity(self, split: str) -> RankingReport:
        """The baseline on the same facts: counts over the seen graph."""
        queries, known = self._queries(split, self.settings.test_facts)
        ranks = count_tails(self.graph).rank(queries, known)
        return report_queries(ranks, queries[:, 1], self.graph.num_relations)

    def compare_baselines(
        self, model: LinkModel, table: TokenTable, split: str, progress: Progress | None = None
    ) -> dict[str, Scores]:
        """The metrics of baselines by name, and of the model with and without shortcuts."""
        baselines = self.rank_baselines(split, progress)
        queries, known = self._queries(split, self.settings.test_facts)
        return compare_ranks(self._rank(model, table, split, queries, known, progress), baselines)

    def rank_baselines(self, split: str, progress: Progress | None = None) -> Ranks:
        """The ranks of baselines, which know the other edges of an unseen node, by name."""
        edges = self.unseen[split]
        queries, known = self._queries(split, self.settings.test_facts)
        half_links, walk = half_links_of(self.graph), walk_over(self.graph)

        def score_half_links(query_rows: Tensor, relations: Tensor) -> Tensor:
            return half_links.score_from(*other_edges(edges, query_rows.numpy()), relations)

        def score_pagerank(query_rows: Tensor, relations: Tensor) -> Tensor:
            query, _, neighbours = other_edges(edges, query_rows.numpy())
            return walk.score_from(query, neighbours, len(query_rows))

        ranked = {
            name: rank_queries(
                score,
                queries,
                known,
                memory_budget=self.settings.memory_budget,
                device="cpu",
                progress=progress,
            )
            for name, score in ((HALF_LINKS, score_half_links), (PAGERANK, score_pagerank))
        }
        return {POPULARITY: half_links.popularity.rank(queries, known), **ranked}

    def _queries(self, split: str, max_facts: int) -> tuple[IntArray, KnownAnswers]:
        """The first `max_facts` edges of unseen nodes, 0 for all; and the known answers of all."""
        edges, graph = self.unseen[split], self.graph
        queries = np.stack([edges.owners, edges.relations, edges.neighbours], axis=1)
        known = known_tails_of(queries, graph.num_nodes, graph.num_relations)
        return queries[: max_facts or None], known

    def _report(
        self,
        model: LinkModel,
        table: TokenTable,
        split: str,
        max_facts: int,
        progress: Progress | None,
    ) -> RankingReport:
        """The report on the first `max_facts` facts of a split; 0: on all."""
        queries, known = self._queries(split, max_facts)
        ranks = self._rank(model, table, split, queries, known, progress)
        return report_queries(ranks, queries[:, 1], self.graph.num_relations)

    def _rank(
        self,
        model: LinkModel,
        table: TokenTable,
        split: str,
        queries: IntArray,
        known: KnownAnswers,
        progress: Progress | None,
    ) -> FloatArray:
        edges = self.unseen[split]
        model.eval()
        with torch.no_grad():
            seen, heads = model.node_vectors(), self._heads(model, table, split)
            relations = model.relation_vectors()

            def score_tails(query_rows: Tensor, relation: Tensor) -> Tensor:
                scores = model.decoder.score_all_tails(heads[query_rows], relations[relation], seen)
                return self._add_paths(model, edges, query_rows, relation, scores)

            return rank_queries(
                score_tails,
                queries,
                known,
                memory_budget=self.settings.memory_budget,
                device=seen.device,
                progress=progress,
            )

    def _heads(self, model: LinkModel, table: TokenTable, split: str) -> Tensor:
        """The vector of the node of every edge, described by its other edges: (num_edges, dim)."""
        edges = self.unseen[split]
        if not model.nodes.has_pieces:
            relations = model.relation_vectors()
            columns = (edges.owners, edges.relations, edges.neighbours)
            owner, relation, neighbour = (
                torch.tensor(column, dtype=torch.int64, device=relations.device)
                for column in columns
            )
            vectors = model.node_vectors()
            return averages_without_one(vectors, relations, (owner, relation, neighbour))
        if split not in self._rows:
            self._rows[split] = rows_without_one(table, self.graph, edges)
        return model.vectors_from(encode_rows(model, self._rows[split]), None)

    def _add_paths(
        self,
        model: LinkModel,
        edges: UnseenEdges,
        query_rows: Tensor,
        relations: Tensor,
        scores: Tensor,
    ) -> Tensor:
        """The scores with those of paths from the nodes of some edges: (num_queries, num_nodes).

        The graph of a query has the seen nodes, its unseen node, and the edges between them, both
        ways, without the predicted one.
        """
        new = self.graph.num_nodes  # the same id in every query, as these graphs are separate

        def path_graph() -> PathGraph:
            columns = edges_without_one(
                edges, query_rows.cpu().numpy(), new, self.graph.num_relations
            )
            query_edges = QueryEdges(
                *(torch.tensor(each, dtype=torch.int64, device=scores.device) for each in columns)
            )
            return model.path_graph(
                edge_index=self._edge_index_with_new_node(model), query_edges=query_edges
            )

        heads = torch.full_like(query_rows, new)
        for _, found in model.scorers.all_scores(heads, relations, path_graph):
            scores = scores + found[:, :new]
        return scores

    def _edge_index_with_new_node(self, model: LinkModel) -> EdgeIndex:
        """The edges of seen nodes, in a graph with one more node, which has no edges."""
        edges = cast(Tensor, model.edges)
        if self._edge_index is None or self._edge_index.target.rows.device != edges.device:
            self._edge_index = EdgeIndex(edges, self.graph.num_nodes + 1, model.num_relations)
        return self._edge_index


def edges_without_one(
    edges: UnseenEdges, query_rows: LongArray, new: int, num_relations: int
) -> tuple[LongArray, LongArray, LongArray, LongArray]:
    """The other edges of the nodes of some edges, and inverses: query, head, relation, tail.

    query_rows: (num_queries,) the position in `edges` of each query; new: the id of its unseen
    node.
    """
    query, relation, neighbour = other_edges(edges, query_rows)
    inverse = (relation + num_relations) % (2 * num_relations)
    itself = np.full_like(neighbour, new)
    return (
        np.concatenate([query, query]),
        np.concatenate([itself, neighbour]),
        np.concatenate([relation, inverse]),
        np.concatenate([neighbour, itself]),
    )


def other_edges(edges: UnseenEdges, query_rows: LongArray) -> tuple[LongArray, IntArray, IntArray]:
    """The other edges of the nodes of some edges: query, relation, neighbour."""
    owners = edges.owners[query_rows]
    first = edges.offsets[owners]
    query, place = positions_of_runs(first, edges.offsets[owners + 1] - first)
    query, place = (column[place != query_rows[query]] for column in (query, place))
    return query, edges.relations[place], edges.neighbours[place]


def rows_without_one(table: TokenTable, graph: KnowledgeGraph, edges: UnseenEdges) -> TokenRows:
    """The tokens of the node of every edge, from its other edges: (num_edges,) rows."""
    owners = edges.owners
    return tokens_of_new(
        table,
        stored_anchors(table, build_adjacency(graph)),
        (graph.num_nodes + owners).astype(np.int32),
        edges.offsets[owners],
        edges.offsets[owners + 1],
        np.arange(edges.num_edges, dtype=np.int64),
        edges.relations,
        edges.neighbours,
    )
