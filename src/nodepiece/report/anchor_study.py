"""How anchors are spread in a graph: by strategy, by their number, and by anchors of a node.

The numbers behind figures of the paper's appendix on anchor selection, for any graph.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.settings import PAPER_MIX, TokenizerSettings
from nodepiece.tokenizer.statistics import TokenStatistics, describe_tokens
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

STRATEGIES = {
    "mix": dict(PAPER_MIX),
    "degree": {"degree": 1.0},
    "PageRank": {"pagerank": 1.0},
    "random": {"random": 1.0},
}
SELECTIONS = ("nearest", "random")


@dataclass(frozen=True)
class StudySettings:
    """Which tokenizations are compared."""

    num_anchors: int = 1000  # |A| where strategies are compared
    anchors_per_node: int = 20  # k where strategies and numbers of anchors are compared
    relations_per_node: int = 12  # m, everywhere
    anchor_numbers: tuple[int, ...] = (25, 50, 100, 500, 1000)  # |A| of the grid
    per_node: tuple[int, ...] = (5, 10, 20, 30, 50)  # k of the grid
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.anchor_numbers or not self.per_node:
            raise InputError("the grid needs at least one number of anchors and one k")
        if min(*self.anchor_numbers, *self.per_node, self.num_anchors, self.anchors_per_node) < 1:
            raise InputError("the numbers of anchors and of anchors per node are 1 or more")
        if self.anchors_per_node > self.num_anchors:
            raise InputError(
                f"a node cannot have {self.anchors_per_node} of {self.num_anchors} anchors"
            )


@dataclass(frozen=True)
class Tokenization:
    """What one tokenization of the graph gives."""

    strategy: str  # a name in STRATEGIES
    select: str  # which k anchors a node gets
    num_anchors: int
    anchors_per_node: int
    histogram: dict[int, int]  # hops -> slots
    mean_distance: float | None  # over all slots that hold an anchor
    distinct_hashes: float  # share of the number of nodes


@dataclass(frozen=True)
class AnchorStudy:
    """All tokenizations that the figures show."""

    graph: str
    num_nodes: int
    num_facts: int
    settings: StudySettings
    by_strategy: tuple[Tokenization, ...]
    by_number: tuple[Tokenization, ...]
    grid: tuple[Tokenization, ...]  # the mix and the nearest anchors

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def study_anchors(
    graph: KnowledgeGraph, settings: StudySettings, *, name: str, progress: Progress | None = None
) -> AnchorStudy:
    """Tokenize a graph in all the ways that the figures compare.

    Cells of the grid with more anchors per node than anchors, or more anchors than nodes, are left
    out. `progress` gets the tokenizations done and in all.
    """
    if settings.num_anchors > graph.num_nodes:
        raise InputError(
            f"{settings.num_anchors:,} anchors were asked of {graph.num_nodes:,} nodes; give fewer"
        )
    adjacency = build_adjacency(graph)
    wanted = list(tokenizations(settings, graph.num_nodes))
    found = []
    for done, (strategy, chosen) in enumerate(wanted):
        found.append(one_tokenization(graph, adjacency, strategy, chosen, settings.seed))
        if progress is not None:
            progress(done + 1, len(wanted))
    first = len(STRATEGIES) * len(SELECTIONS)
    second = first + len(SELECTIONS) * len(numbers(settings, graph.num_nodes))
    return AnchorStudy(
        name,
        graph.num_nodes,
        graph.num_triples,
        settings,
        tuple(found[:first]),
        tuple(found[first:second]),
        tuple(found[second:]),
    )


def numbers(settings: StudySettings, num_nodes: int) -> list[int]:
    """The numbers of anchors that a node can have k of, and the graph has nodes for."""
    k = settings.anchors_per_node
    return [number for number in settings.anchor_numbers if k <= number <= num_nodes]


def tokenizations(
    settings: StudySettings, num_nodes: int
) -> Iterator[tuple[str, TokenizerSettings]]:
    """All of them, in the order of the fields of the study."""
    usual = TokenizerSettings(
        num_anchors=settings.num_anchors,
        anchors_per_node=settings.anchors_per_node,
        relations_per_node=settings.relations_per_node,
    )
    for strategy, mix in STRATEGIES.items():
        for select in SELECTIONS:
            yield strategy, replace(usual, mix=mix, select=select)
    for number in numbers(settings, num_nodes):
        for select in SELECTIONS:
            yield "mix", replace(usual, num_anchors=number, select=select)
    for number in settings.anchor_numbers:
        for k in settings.per_node:
            if k <= number <= num_nodes:
                yield "mix", replace(usual, num_anchors=number, anchors_per_node=k)


def one_tokenization(
    graph: KnowledgeGraph,
    adjacency: Adjacency,
    strategy: str,
    settings: TokenizerSettings,
    seed: int,
) -> Tokenization:
    rng = np.random.default_rng(seed)
    vocabulary = fit_vocabulary(graph, settings, rng=rng, adjacency=adjacency)
    statistics: TokenStatistics = describe_tokens(
        tokenize(graph, vocabulary, rng=rng, adjacency=adjacency)
    )
    return Tokenization(
        strategy,
        settings.select,
        statistics.num_anchors,
        statistics.anchors_per_node,
        statistics.distance_histogram,
        statistics.mean_distance,
        statistics.distinct_hashes / statistics.num_nodes,
    )
