"""Kernels for one block: messages to all targets, and what its nodes keep of those they receive."""

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.hashing import mix
from nodepiece.graph.nearest import insert_by_key

# Which of the equidistant anchors a node keeps is decided by (k, by_hash, salt): the k smallest
# hashes, or the first in the global order.


@njit(cache=True)
def send_anchors(  # type: ignore[no-untyped-def]
    bounds,
    targets,
    offsets,
    sources,
    new_offsets,
    new_anchors,
    bit_offsets,
    full_bits,
    k,
    by_hash,
    salt,
    num_anchors,
):
    """New anchors of a block, for every target that has room: at most k distinct ones each.

    At most as many of the k as a target holds can be anchors that it holds already, so the others
    are at least as many as fit. Returns targets, numbers of anchors, anchors, and where the first
    two and the third begin for each block: (num_blocks + 1, 2).
    """
    num_blocks = len(bounds) - 1
    most_nodes, most_anchors = 0, 0
    for block in range(num_blocks):
        for place in range(bounds[block], bounds[block + 1]):
            if is_set(full_bits, bit_offsets[block], targets[place]):
                continue
            total = 0
            for edge in range(offsets[place], offsets[place + 1]):
                source = sources[edge]
                total += new_offsets[source + 1] - new_offsets[source]
            most_nodes += 1 if total else 0
            most_anchors += min(total, k)
    nodes = np.empty(most_nodes, np.int32)
    counts = np.empty(most_nodes, np.int32)
    anchors = np.empty(most_anchors, np.int32)
    ends = np.zeros((num_blocks + 1, 2), np.int64)
    last_target = np.full(num_anchors, -1, np.int32)
    best, best_key = np.empty(k, np.int32), np.empty(k, np.uint64)
    num_nodes, num_sent = 0, 0
    for block in range(num_blocks):
        for place in range(bounds[block], bounds[block + 1]):
            if is_set(full_bits, bit_offsets[block], targets[place]):
                continue
            node = np.int64(targets[place]) * num_blocks + block
            found = 0
            for edge in range(offsets[place], offsets[place + 1]):
                source = sources[edge]
                for slot in range(new_offsets[source], new_offsets[source + 1]):
                    anchor = new_anchors[slot]
                    if last_target[anchor] == place:
                        continue
                    last_target[anchor] = place
                    key = mix(salt, node, anchor) if by_hash else np.uint64(anchor)
                    found = insert_by_key(best, best_key, found, k, anchor, key)
            if found:
                nodes[num_nodes] = targets[place]
                counts[num_nodes] = found
                anchors[num_sent : num_sent + found] = best[:found]
                num_nodes += 1
                num_sent += found
        ends[block + 1, 0] = num_nodes
        ends[block + 1, 1] = num_sent
    return nodes[:num_nodes], counts[:num_nodes], anchors[:num_sent], ends


@njit(cache=True, inline="always")
def is_set(bits, offset, number):  # type: ignore[no-untyped-def]
    return (bits[offset + (number >> 3)] >> np.uint8(7 - (number & 7))) & np.uint8(1)


@njit(cache=True)
def receive_anchors(  # type: ignore[no-untyped-def]
    block,
    num_blocks,
    nodes,
    counts,
    anchors,
    held,
    offsets_1,
    anchors_1,
    offsets_2,
    anchors_2,
    k,
    by_hash,
    salt,
    num_anchors,
):
    """The anchors that every node of a block accepts: how many, and which, ascending for each.

    Edges lead both ways, so an anchor that a neighbour found one hop ago and the node holds was
    found by the node one or two hops ago (`anchors_1`, `anchors_2`): distances of neighbours to one
    anchor differ by at most 1.
    """
    size = len(held)
    starts = np.zeros(size + 1, np.int64)
    for row in range(len(nodes)):
        starts[nodes[row] + 1] += counts[row]
    most = 0
    for node in range(size):
        most += min(starts[node + 1], k - held[node])
    starts = np.cumsum(starts)
    received = np.empty(starts[-1], np.int32)
    free = starts[:-1].copy()
    slot = 0
    for row in range(len(nodes)):
        node = nodes[row]
        for _ in range(counts[row]):
            received[free[node]] = anchors[slot]
            free[node] += 1
            slot += 1
    new_counts = np.zeros(size, np.int32)
    new_anchors = np.empty(most, np.int32)
    last_node = np.full(num_anchors, -1, np.int32)
    best, best_key = np.empty(k, np.int32), np.empty(k, np.uint64)
    num_new = 0
    for node in range(size):
        room = k - held[node]
        if room <= 0 or starts[node] == starts[node + 1]:
            continue
        for slot in range(offsets_1[node], offsets_1[node + 1]):
            last_node[anchors_1[slot]] = node
        for slot in range(offsets_2[node], offsets_2[node + 1]):
            last_node[anchors_2[slot]] = node
        found = 0
        for slot in range(starts[node], starts[node + 1]):
            anchor = received[slot]
            if last_node[anchor] == node:
                continue
            last_node[anchor] = node
            id = np.int64(node) * num_blocks + block
            key = mix(salt, id, anchor) if by_hash else np.uint64(anchor)
            found = insert_by_key(best, best_key, found, room, anchor, key)
        best[:found].sort()
        new_anchors[num_new : num_new + found] = best[:found]
        new_counts[node] = found
        num_new += found
    return new_counts, new_anchors[:num_new]


@njit(cache=True)
def sum_over_sources(offsets, sources, values):  # type: ignore[no-untyped-def]
    """The sum of the values of the sources of every target: (num_targets,)."""
    sums = np.empty(len(offsets) - 1)
    for place in range(len(sums)):
        total = 0.0
        for edge in range(offsets[place], offsets[place + 1]):
            total += values[sources[edge]]
        sums[place] = total
    return sums


@njit(cache=True)
def least_of_sources(offsets, sources, values, is_new):  # type: ignore[no-untyped-def]
    """The least value of the new sources of every target, and whether it has any."""
    least = np.empty(len(offsets) - 1, np.int64)
    has_new = np.zeros(len(offsets) - 1, np.bool_)
    for place in range(len(least)):
        for edge in range(offsets[place], offsets[place + 1]):
            source = sources[edge]
            if is_new[source] and (not has_new[place] or values[source] < least[place]):
                least[place] = values[source]
                has_new[place] = True
    return least, has_new


@njit(cache=True)
def fill_rows(counts, anchors, hop, filled, nearest, distance):  # type: ignore[no-untyped-def]
    """Append the anchors of a hop to the rows of a block; `filled` counts slots of every row."""
    slot = 0
    for node in range(len(counts)):
        for _ in range(counts[node]):
            nearest[node, filled[node]] = anchors[slot]
            distance[node, filled[node]] = hop
            filled[node] += 1
            slot += 1
