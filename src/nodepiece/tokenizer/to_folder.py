"""A graph tokenized into a vocabulary folder, with little more memory than the search needs.

The folder is byte for byte that of `fit_vocabulary`, `tokenize` and `save_tokens`. At the peak,
memory holds the neighbours of every node and, for each of its k slots, an anchor and a distance in
three bytes; everything else is on disk, or there before or after.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.neighbours import build_neighbours
from nodepiece.graph.short_text import plural
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.statistics import count_repeated
from nodepiece.tokenizer.storage import write_salts, write_vocabulary
from nodepiece.tokenizer.token_files import assign_in_few_bytes, write_anchors, write_relations
from nodepiece.tokenizer.tokens import Salts
from nodepiece.tokenizer.vocabulary import Vocabulary, fit_vocabulary

Stage = Callable[[str], AbstractContextManager[list[str]]]  # what is done -> remarks on the result


@dataclass(frozen=True, eq=False)
class TokenizedFolder:
    """What was written to a folder."""

    vocabulary: Vocabulary
    num_sharing: int  # nodes with exactly the same pieces as some other node


def silent_stage(doing: str) -> AbstractContextManager[list[str]]:
    return nullcontext([])


def tokenize_into(
    folder: Path,
    graph: KnowledgeGraph,
    settings: TokenizerSettings,
    *,
    rng: np.random.Generator,
    stage: Stage = silent_stage,
    part_bytes: int | None = None,
) -> TokenizedFolder:
    """Write the files of a vocabulary and of the tokens of all nodes into an empty folder.

    With `part_bytes` the files of tokens are cut into parts of at most this size.
    """
    (folder / "tokens").mkdir()
    hashes = np.zeros(graph.num_nodes, np.uint64)
    with stage("choosing anchors") as remarks:
        neighbours = build_neighbours(graph)
        vocabulary = fit_vocabulary(graph, settings, rng=rng, adjacency=neighbours)
        write_vocabulary(vocabulary, folder, in_parts=part_bytes is not None)
        remarks.append(plural(vocabulary.num_anchors, "anchor"))
    salts = Salts.draw(rng)
    write_salts(salts, folder)
    with stage("searching the anchors of every node") as remarks:
        found = assign_in_few_bytes(neighbours, vocabulary, salts)
        del neighbours  # the largest arrays; not needed while tables are written
        remarks.append(f"{plural(settings.anchors_per_node, 'anchor')} for each")
    with stage("writing nodes as pieces") as remarks:
        write_anchors(found, vocabulary, folder / "tokens", hashes, part_bytes=part_bytes)
        del found
        write_relations(graph, vocabulary, salts, folder / "tokens", hashes, part_bytes=part_bytes)
        remarks.append(
            f"{plural(settings.anchors_per_node, 'anchor')} and "
            f"{plural(settings.relations_per_node, 'relation')} for each"
        )
    return TokenizedFolder(vocabulary, count_repeated(hashes))
