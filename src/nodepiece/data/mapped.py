"""Facts as ids in an array file, for graphs that should not be held in memory as text or facts.

FACTS.npy: (num_facts, 3) int32 of head, relation and tail, counted from 0. The file is mapped into
memory: what reads it goes through it from front to end, and the system drops again what was read.
"""

from pathlib import Path

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph

ENDING = ".npy"


def is_mapped(source: str | Path) -> bool:
    return Path(source).suffix == ENDING and Path(source).is_file()


def read_mapped_graph(path: str | Path) -> KnowledgeGraph:
    """Nodes and relations are known by their ids; as many as the largest id says.

    Facts stated twice are not looked for, which would take all of them in memory: they are edges
    twice, which changes degrees and PageRank, and nothing else.
    """
    try:
        facts = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header may raise anything that a parser can
        raise InputError(f"{path} cannot be read as an array ({error}); write it again") from error
    if facts.ndim != 2 or facts.shape[1] != 3 or facts.dtype != np.int32 or not facts.size:
        raise InputError(
            f"{path} holds {facts.dtype} in shape {facts.shape}; facts are int32 in shape "
            "(num_facts, 3), one at least: head, relation, tail"
        )
    head, relation, tail = (int(largest) for largest in facts.max(axis=0))
    return KnowledgeGraph(facts, max(head, tail) + 1, relation + 1)
