"""A map of a run: its nodes in two dimensions, near each other if their vectors are similar."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.inference.facts import FactRun
from nodepiece.inference.inductive import InductiveRun
from nodepiece.inference.opened_run import Run
from nodepiece.report.groups import OTHER, Groups, by_anchor, by_relation, by_tail
from nodepiece.report.layout import METHODS, Positions, place

MAX_NODES = 100_000  # of a map; of more nodes, some are drawn at random
NUM_ANCHORS = 100  # the commonest, which a map marks, as many as in the paper's figures
METHOD_NAMES = {"t-sne": "t-SNE", "umap": "UMAP"}
GROUPINGS = ("relation", "anchor")


@dataclass(frozen=True)
class MapSettings:
    """How a map is made."""

    method: str = "t-sne"  # or "umap"
    group_by: str = "relation"  # the commonest of a node; or "anchor", the nearest common one
    tails_of: str | None = None  # group nodes by their tail with this relation instead
    grouped_only: bool = False  # leave out nodes that are in none of the largest groups
    max_nodes: int = MAX_NODES  # at least 1
    num_anchors: int = NUM_ANCHORS  # marked; at least 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"unknown method {self.method!r}; choose {' or '.join(METHODS)}")
        if self.group_by not in GROUPINGS:
            raise InputError(f"cannot group by {self.group_by!r}; choose {' or '.join(GROUPINGS)}")
        if self.max_nodes < 1 or self.num_anchors < 0:
            raise InputError(
                f"a map has at least 1 node and 0 anchors, not {self.max_nodes} and "
                f"{self.num_anchors}"
            )


@dataclass(frozen=True, eq=False)
class NodeMap:
    """Positions of nodes, with their names and groups."""

    method: str  # "t-SNE" or "UMAP"
    names: Sequence[str]  # (num_nodes,)
    positions: Positions  # (num_nodes, 2), centred, the farthest coordinate 1 from the centre
    group_names: Sequence[str]  # largest group first
    group: IntArray  # (num_nodes,) positions in `group_names`
    is_anchor: NDArray[np.bool_]  # (num_nodes,) one of the commonest anchors
    num_nodes_in_run: int  # more than are on the map, if it is a sample

    def __repr__(self) -> str:
        return (
            f"NodeMap({self.method}: {len(self.names):,} nodes in {len(self.group_names)} groups)"
        )

    def to_json(self) -> dict[str, Any]:
        """The map as lists: `groups` has the name of the group of every node."""
        x, y = np.round(self.positions.T.astype(np.float64), 4).tolist()
        return {
            "method": self.method,
            "names": list(self.names),
            "x": x,
            "y": y,
            "groups": [self.group_names[each] for each in self.group.tolist()],
            "group_names": list(self.group_names),
            "anchors": np.flatnonzero(self.is_anchor).tolist(),
            "num_nodes_in_run": self.num_nodes_in_run,
        }


def map_run(
    run: Run, settings: MapSettings | None = None, *, progress: Progress | None = None
) -> NodeMap:
    """The map of the current vectors of a run. `progress` gets iterations done and in all.

    Of more than `max_nodes` nodes a random sample is drawn. At 40,000 nodes t-SNE takes about a
    minute on two cores.
    """
    settings = settings or MapSettings()
    rng = np.random.default_rng(settings.seed)
    table = run.node_table()
    graph = current_graph(run)
    groups = groups_of(run, graph, settings)
    nodes = table.nodes
    if settings.grouped_only:
        is_grouped = np.array([name != OTHER for name in groups.names], np.bool_)
        nodes = nodes[is_grouped[groups.group[nodes]]]
    if len(nodes) > settings.max_nodes:
        nodes = np.sort(rng.choice(nodes, settings.max_nodes, replace=False))
    vectors = table.vectors.detach().cpu().numpy()[nodes]
    seed = settings.seed
    positions = place(vectors, method=settings.method, seed=seed, progress=progress)
    return NodeMap(
        METHOD_NAMES[settings.method],
        table.names.take(nodes).to_pylist(),
        in_unit_square(positions),
        groups.names,
        groups.group[nodes],
        np.isin(nodes, common_anchors(run, nodes, settings.num_anchors)),
        len(table.nodes),
    )


def current_graph(run: Run) -> KnowledgeGraph:
    """The graph that the vectors of a run are of, with updates."""
    return run.snapshot.dataset.train if isinstance(run, FactRun) else run.task.graph


def groups_of(run: Run, graph: KnowledgeGraph, settings: MapSettings) -> Groups:
    """The groups of all nodes of the graph."""
    if graph.names is None:
        raise InputError(f"{run.folder} has no names of nodes, so a map would show nothing")
    if settings.tails_of is not None:
        return by_tail(graph, graph.names, settings.tails_of)
    if settings.group_by == "relation":
        return by_relation(graph, graph.names)
    if isinstance(run, InductiveRun):
        raise InputError(f"{run.folder} is inductive: its anchors are not in this graph")
    return by_anchor(run.opened.table, graph.num_nodes)


def common_anchors(run: Run, nodes: LongArray, number: int) -> LongArray:
    """The node ids of the anchors that most of these nodes have; none in inductive runs."""
    table = run.opened.table
    if isinstance(run, InductiveRun) or not table.anchors_per_node:
        return np.empty(0, np.int64)
    tokens = table.anchors[nodes[nodes < table.num_nodes]]
    uses = np.bincount(tokens[tokens < table.vocabulary.num_anchors].ravel())
    most = np.argsort(-uses, kind="stable")[:number]
    return np.asarray(table.vocabulary.anchors, np.int64)[most[uses[most] > 0]]


def in_unit_square(positions: Positions) -> Positions:
    """Positions around their middle, with the farthest coordinate 1 from it."""
    if not len(positions):
        return positions
    middle = (positions.min(axis=0) + positions.max(axis=0)) / 2
    centred = positions - middle
    return centred / (np.abs(centred).max() or 1.0)
