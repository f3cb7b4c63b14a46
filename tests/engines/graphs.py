"""Generated graphs by ids that differ in what is hard for a search by hops."""

import numpy as np

from nodepiece.graph.arrays import IntArray


def skewed(rng: np.random.Generator) -> IntArray:
    """A few hubs that most facts name, parallel edges and loops; one node in ten is alone."""
    hubs = np.minimum(rng.pareto(0.8, size=4000), 499).astype(np.int32)
    facts = np.stack([rng.integers(500, size=4000), rng.integers(20, size=4000), hubs], axis=1)
    return np.concatenate([facts, [[549, 0, 0]]]).astype(np.int32)


def components(rng: np.random.Generator) -> IntArray:
    """300 components of 3 nodes each: most reach no anchor."""
    first = 3 * np.arange(300)
    facts = [np.stack([first, first % 5, first + 1], axis=1)]
    facts.append(np.stack([first + 2, first % 7, first + 1], axis=1))
    return rng.permutation(np.concatenate(facts)).astype(np.int32)


def chains(rng: np.random.Generator) -> IntArray:
    """20 chains of 12 nodes, joined at their ends to one."""
    nodes = np.arange(240).reshape(20, 12)
    inner = np.stack([nodes[:, :-1].ravel(), nodes[:, :-1].ravel() % 3, nodes[:, 1:].ravel()], 1)
    joints = np.stack([nodes[:-1, 11], np.full(19, 3), nodes[1:, 0]], axis=1)
    return rng.permutation(np.concatenate([inner, joints])).astype(np.int32)


GRAPHS = {"skewed": skewed, "components": components, "chains": chains}
