"""The edges that walks may follow from a head to a tail, cut out of a graph of any size.

Explanations look at the same few edges again and again. So these are numbered and copied once, and
whatever is then computed of them has the size of what walks reach, and not of the graph.
"""

from dataclasses import dataclass

import numpy as np

from nodepiece.compiled import njit
from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.graph.arrays import BoolArray, FloatArray, IntArray, LongArray

Rows = tuple[LongArray, IntArray, IntArray]  # see `EdgeIndex.rows_by_source`
EVERYTHING: BoolArray = np.empty(0, np.bool_)  # the edge mask of a graph that hides nothing
IN_ORDER: IntArray = np.empty(0, np.int32)  # the ids of edges that are positions in the rows
ROW_LENGTHS: LongArray = np.empty(0, np.int64)  # the degrees, where nothing is hidden

# Offsets of the edges by the node that they leave; where they lead to, and their relations; and
# how many nodes walks reach within each number of steps.
LocalEdges = tuple[LongArray, IntArray, IntArray, LongArray]


@dataclass(frozen=True, eq=False)
class ReachedEdges:
    """Edges of walks from a head to a tail.

    Nodes have numbers in the order in which walks reach them, the head 0. The last step only leads
    to the tail: of nodes that are not reached before it, other edges are left out.
    """

    local: LocalEdges
    degrees: LongArray  # (num_leaving,) of the nodes that have offsets, in the whole graph
    edges: LongArray  # (num_local_edges,) which edges of the graph these are
    tail: int  # its number; -1: no walk reaches it

    @property
    def num_nodes(self) -> int:
        return int(self.local[3][-1])

    @property
    def num_steps(self) -> int:
        """The length of the longest walks."""
        return len(self.local[3]) - 1

    def shares(self, max_degree: int = 0) -> FloatArray:
        """The transition probability of the edges of a node, in the first step and in later ones.

        (2, num_leaving): 1 / degree; later steps do not leave nodes with more edges than
        `max_degree`, unless it is 0.
        """
        share = 1.0 / np.maximum(self.degrees, 1)
        is_end = (self.degrees > max_degree) & (max_degree > 0)
        return np.stack([share, np.where(is_end, 0.0, share)])


def reached_edges(
    graph: PathGraph, head: int, tail: int, num_steps: int, max_degree: int
) -> ReachedEdges:
    """The edges of a graph without query edges, by their places in its edge index."""
    index = graph.edge_index
    rows, places = index.rows_by_source, index.edges_by_source
    if graph.edge_mask is None:
        return cut_out(rows, places, (head, tail), num_steps, max_degree)
    visible = graph.edge_mask.cpu().numpy() != 0
    hidden = index.given(np.flatnonzero(~visible))
    degrees = np.diff(rows[0])
    np.subtract.at(degrees, index.edges[hidden, 0].cpu().numpy(), 1)
    return cut_out(rows, places, (head, tail), num_steps, max_degree, visible, degrees)


def cut_out(
    rows: Rows,
    ids: IntArray,  # (num_edges,) of the edges in `rows`; IN_ORDER: their positions there
    ends: tuple[int, int],
    num_steps: int,
    max_degree: int = 0,  # of all walks; see `WalkSettings`
    visible: BoolArray = EVERYTHING,  # (num_edges,) by id
    degrees: LongArray = ROW_LENGTHS,  # (num_nodes,) without hidden edges
) -> ReachedEdges:
    """The edges of compressed rows that walks of at most so many steps follow between two nodes."""
    numbers: IntArray = np.zeros(len(rows[0]) - 1, np.int32)  # memory is used where it is written
    arrays = _cut_out(rows, ids, visible, degrees, numbers, ends, num_steps, max_degree)
    offsets, targets, relations, counts, of_nodes, edges = arrays
    local = offsets, targets, relations, counts
    return ReachedEdges(local, of_nodes, edges, int(numbers[ends[1]]) - 1)


@njit(cache=True)
def _cut_out(rows, ids, visible, degrees, numbers, ends, num_steps, max_degree):  # type: ignore[no-untyped-def]
    """Breadth-first search; numbers: (num_nodes,) zeros, to which 1 + the number is written."""
    offsets, targets, relations = rows
    head, tail = ends
    of_head = degrees[head] if len(degrees) else offsets[head + 1] - offsets[head]
    if max_degree > 0 and of_head > max_degree:
        num_steps = 1
    nodes, counts = [head], np.ones(num_steps + 1, np.int64)
    numbers[head] = 1
    local_offsets, of_nodes = [0], [0]
    there, along, edges = [np.int32(0)], [np.int32(0)], [0]  # the first is not used
    for step in range(num_steps):
        for place in range(counts[step - 1] if step > 0 else 0, counts[step]):
            node = nodes[place]
            degree = degrees[node] if len(degrees) else offsets[node + 1] - offsets[node]
            of_nodes.append(degree)
            if step == 0 or max_degree == 0 or degree <= max_degree:
                for position in range(offsets[node], offsets[node + 1]):
                    target = targets[position]
                    if step + 1 == num_steps and target != tail:
                        continue
                    edge = int(ids[position]) if len(ids) else position
                    if len(visible) and not visible[edge]:
                        continue
                    if numbers[target] == 0:
                        nodes.append(target)
                        numbers[target] = len(nodes)
                    there.append(np.int32(numbers[target] - 1))
                    along.append(relations[position])
                    edges.append(edge)
            local_offsets.append(len(edges) - 1)
        counts[step + 1] = len(nodes)
    local = np.array(local_offsets), np.array(there)[1:], np.array(along)[1:], counts
    return local[0], local[1], local[2], local[3], np.array(of_nodes)[1:], np.array(edges)[1:]
