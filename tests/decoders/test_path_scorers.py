"""What every path scorer has to do, by a small one and by its base class."""

import pytest
import torch
from tests.extending.toy_path_scorer import Neighbours, NeighbourSettings
from torch import Tensor

from nodepiece.decoders.path_scorers import PathGraph, PathScorer, QueryEdges
from nodepiece.encoders.edge_index import EdgeIndex

NODES, RELATIONS = 4, 2  # one relation and its inverse
FACTS = [(0, 0, 1), (0, 0, 2)]
EDGES = torch.tensor(FACTS + [(tail, 1, head) for head, _, tail in FACTS])


def scorer() -> Neighbours:
    generator = torch.Generator().manual_seed(0)
    return Neighbours(RELATIONS, NeighbourSettings(rank=3), generator=generator).eval()


def neighbours(graph: PathGraph) -> list[list[int]]:
    """The nodes with a score for the queries (0, 0, ?) and (3, 0, ?)."""
    with torch.no_grad():
        scores: Tensor = scorer()(torch.tensor([0, 3]), torch.tensor([0, 0]), graph)
    return [row.nonzero().flatten().tolist() for row in scores]


def test_a_scorer_without_scores_cannot_be_made() -> None:
    class Unfinished(PathScorer):
        def queries_at_once(self, graph: PathGraph) -> int:
            return 1

    with pytest.raises(TypeError, match=r"abstract method '?scores'?"):
        Unfinished(NeighbourSettings())  # type: ignore[abstract]


@pytest.mark.parametrize("sorted_by", [None, "target", "direction"])
def test_the_edge_mask_is_in_the_order_of_the_index(sorted_by: str | None) -> None:
    index = EdgeIndex(EDGES, NODES, RELATIONS, sorted_by=sorted_by)  # type: ignore[arg-type]
    mask = torch.tensor([1.0, 0.0, 1.0, 0.0]).index_select(0, index.order)  # hides (0, 0, 2)

    assert neighbours(PathGraph(index, torch.zeros(2, 1))) == [[1, 2], []]
    assert neighbours(PathGraph(index, torch.zeros(2, 1), mask)) == [[1], []]


def test_edges_of_one_query_are_not_followed_for_another() -> None:
    index = EdgeIndex(EDGES, NODES, RELATIONS)
    both = torch.tensor([[1, 3, 0, 2], [1, 2, 1, 3]])  # of query 1: (3, 0, 2) and its inverse
    own = QueryEdges(*both.T)

    assert neighbours(PathGraph(index, torch.zeros(2, 1), query_edges=own)) == [[1, 2], [2]]
