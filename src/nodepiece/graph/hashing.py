"""Pseudo-random numbers that depend on what they are drawn for, not on when.

Sampling by hash gives the same result for any number of threads and any order of nodes, and a
node keeps its sample when other parts of the graph change.
"""

import numpy as np

from nodepiece.compiled import njit


@njit(cache=True, inline="always")
def mix(salt, node, item):  # type: ignore[no-untyped-def]
    """64 well-mixed bits of (salt, node, item): two rounds of a multiply-xorshift finalizer."""
    bits = salt + np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    bits = _scramble(bits) ^ (np.uint64(item) * np.uint64(0xC2B2AE3D27D4EB4F))
    return _scramble(bits)


@njit(cache=True, inline="always")
def _scramble(bits):  # type: ignore[no-untyped-def]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def draw_salt(rng: np.random.Generator) -> np.uint64:
    """A salt for `mix`: one draw from a generator determines all samples made with it."""
    return rng.integers(2**64, dtype=np.uint64)
