"""One measurement in a separate process, so that its peak memory can be measured.

python -m benchmarks.measure CASE STEP FOLDER

runs a step on the inputs that `benchmarks.cases` wrote to FOLDER and prints one line of JSON. The
step first runs on a tiny graph: imports and compilation are in `warm_up_seconds`, not in `seconds`.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cases import CASES, SEED, Case, Inputs, load_inputs, prepare

from nodepiece.data.read import read_graph
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.nearest import UNREACHED, distances_to_chosen, nearest_sources
from nodepiece.tokenizer.anchors import select_anchors
from nodepiece.tokenizer.context import relation_sets
from nodepiece.tokenizer.settings import PAPER_MIX
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

Run = Callable[[], Any]  # what is timed; its result is not

TINY_GRAPH = (2_000, 12_000, 10)  # nodes, edges, relations
KIB = 1 if sys.platform == "darwin" else 1024  # bytes in a unit of ru_maxrss


def search(inputs: Inputs) -> Run:
    """The k nearest anchors of every node, from the facts on."""
    salt, k = np.uint64(SEED), inputs.case.anchors_per_node
    return lambda: nearest_sources(build_adjacency(inputs.graph), inputs.anchors, k, salt=salt)


def select(inputs: Inputs) -> Run:
    """The paper's mix of anchors, from the facts on."""
    num_anchors, rng = len(inputs.anchors), np.random.default_rng(SEED)
    return lambda: select_anchors(build_adjacency(inputs.graph), num_anchors, PAPER_MIX, rng=rng)


def context(inputs: Inputs) -> Run:
    """m relations of every node, from the facts on."""
    m, padding = inputs.case.relations_per_node, 2 * inputs.graph.num_relations
    rng = np.random.default_rng(SEED)
    return lambda: relation_sets(build_adjacency(inputs.graph)).sample(m, padding, rng=rng)


def whole(inputs: Inputs) -> Run:
    return lambda: tokenize_graph(inputs.graph, inputs.case)


def read(inputs: Inputs) -> Run:
    """Facts and names as ids, duplicates dropped."""
    return lambda: read_graph(inputs.folder / "graph.tsv")


def whole_from_file(inputs: Inputs) -> Run:
    return lambda: tokenize_graph(read_graph(inputs.folder / "graph.tsv"), inputs.case)


def tokenize_graph(graph: KnowledgeGraph, case: Case) -> TokenTable:
    rng = np.random.default_rng(SEED)
    adjacency = build_adjacency(graph)
    vocabulary = fit_vocabulary(graph, case.settings, rng=rng, adjacency=adjacency)
    return tokenize(graph, vocabulary, rng=rng, adjacency=adjacency)


def compile_kernels(inputs: Inputs) -> Run:
    """The first run of everything, on a tiny graph: nearly all of it is compilation."""
    return lambda: warm_up(inputs.case, "whole")


def pykeen_search(searcher_name: str) -> Callable[[Inputs], Run]:
    """A searcher of PyKEEN; those that rank by distance are comparable with ours."""

    def step(inputs: Inputs) -> Run:
        from pykeen.nn.node_piece.anchor_search import anchor_searcher_resolver

        searcher = anchor_searcher_resolver.make(searcher_name)
        edges = inputs.graph.triples[:, [0, 2]].T.astype(np.int64)
        k, num_nodes = inputs.case.anchors_per_node, inputs.graph.num_nodes
        return lambda: searcher(edges, inputs.anchors, k, num_nodes)

    return step


def pykeen_select(inputs: Inputs) -> Run:
    from pykeen.nn.node_piece.anchor_selection import MixtureAnchorSelection

    selection = MixtureAnchorSelection(
        list(PAPER_MIX), ratios=list(PAPER_MIX.values()), num_anchors=len(inputs.anchors)
    )
    edges = inputs.graph.triples[:, [0, 2]].T.astype(np.int64)
    return lambda: selection(edges)


def pykeen_context(inputs: Inputs) -> Run:
    import torch
    from pykeen.nn.node_piece.tokenization import RelationTokenizer

    triples = torch.tensor(inputs.graph.triples, dtype=torch.long)
    sizes = (inputs.case.relations_per_node, inputs.graph.num_nodes, inputs.graph.num_relations)
    return lambda: RelationTokenizer()(triples, *sizes)


def compare(inputs: Inputs) -> Run:
    """Of the nodes, the share to which a PyKEEN searcher gave anchors at the distances of ours."""
    return lambda: {
        name: share_with_same_distances(inputs, name)
        for name in STEPS
        if name.startswith("pykeen-search") and (inputs.folder / f"{name}.npy").exists()
    }


def share_with_same_distances(inputs: Inputs, name: str) -> float:
    chosen = np.sort(np.load(inputs.folder / f"{name}.npy").astype(np.int32), axis=1)
    distances = distances_to_chosen(
        build_adjacency(inputs.graph), inputs.anchors, np.maximum(chosen, 0)
    )
    distances[chosen < 0] = UNREACHED
    ours = np.load(inputs.folder / "search.npy")
    same = np.sort(distances, axis=1) == np.sort(ours, axis=1)
    return float(same.all(axis=1).mean())


STEPS: dict[str, Callable[[Inputs], Run]] = {
    "compile": compile_kernels,
    "search": search,
    "select": select,
    "context": context,
    "whole": whole,
    "read": read,
    "whole-from-file": whole_from_file,
    "pykeen-search-csgraph": pykeen_search("csgraph"),
    "pykeen-search-scipy-sparse": pykeen_search("scipysparse"),
    "pykeen-search-sparse-bfs": pykeen_search("sparsebfssearcher"),
    "pykeen-select": pykeen_select,
    "pykeen-context": pykeen_context,
    "compare": compare,
}
ONCE = ("compile", "compare")  # steps without warm-up and repetition


def main() -> None:
    case, step, folder = CASES[sys.argv[1]], sys.argv[2], Path(sys.argv[3])
    prefer_to_be_killed()
    start = time.perf_counter()
    if step not in ONCE:
        warm_up(case, step)
    warm_up_seconds = time.perf_counter() - start
    run = STEPS[step](load_inputs(case, folder))
    start_memory, seconds = peak_memory(), []
    for _ in range(1 if step in ONCE else case.num_repeats):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    measured = {
        "seconds": sorted(seconds)[len(seconds) // 2],
        "all_seconds": seconds,
        "warm_up_seconds": warm_up_seconds,
        "start_memory_mib": start_memory,
        "peak_memory_mib": peak_memory(),
    }
    if step == "search":
        np.save(folder / "search.npy", result[1])
    elif step.startswith("pykeen-search"):
        np.save(folder / f"{step}.npy", result)
    elif step == "compare":
        measured["result"] = result
    print(json.dumps(measured))


def warm_up(case: Case, step: str) -> None:
    tiny = replace(case, num_anchors=200, benchmark=None, generated=TINY_GRAPH)
    with tempfile.TemporaryDirectory() as name:
        prepare(tiny, Path(name))
        STEPS[step](load_inputs(tiny, Path(name)))()


def prefer_to_be_killed() -> None:
    """Make the system stop this process, and no other, when memory runs out."""
    preference = Path("/proc/self/oom_score_adj")
    if preference.exists():
        preference.write_text("1000")


def peak_memory() -> float:
    """The peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB / 2**20


if __name__ == "__main__":
    main()
