"""One CompGCN layer forwards and backwards: the fused way beside PyTorch Geometric's.

    python -m benchmarks.compgcn [--device cuda] [--threads 1]

Both are the same layer with the same result (tests/encoders/test_compgcn.py), on the graph of
WD50K-NC and on the training graph of inductive FB15k-237 v1, 100 numbers a node, dropouts on. They
take turns, so that a busy machine slows both; the fastest turn of each counts. On the CPU the
process keeps the memory that a step frees, as `nodepiece train` does.

Writes results/compgcn-DEVICE.json.
"""

import argparse
from importlib.metadata import version
from time import perf_counter
from typing import Any

import torch
from benchmarks.tokenization import ROOT

from nodepiece.data.load import load_inductive, load_labelled_graph
from nodepiece.encoders.compgcn import CompGCN
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.parameters import use_generator
from nodepiece.files import write_json
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.tasks.run_metrics import describe_device
from nodepiece.training.memory import keep_freed_memory

DIM = 100
PACKAGES = ("nodepiece", "torch", "torch-geometric")
LAYERS: dict[str, dict[str, Any]] = {  # name -> settings of the layer
    "attention, 4 heads": {"attention_heads": 4},
    "attention, 2 heads": {"attention_heads": 2},
    "no attention": {"attention_heads": 0},
    "attention, 2 heads, PNA": {"attention_heads": 2, "aggregation": "pna"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU (%(default)s)")
    parser.add_argument("--turns", type=int, default=10, help="of each way (%(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    device = torch.device(options.device)
    measured = [
        measure(graph, name, layer, device, options.turns)
        for name, graph in graphs().items()
        for layer in LAYERS
    ]
    content = {
        "command": f"python -m benchmarks.compgcn --device {device.type} "
        f"--threads {options.threads} --turns {options.turns}",
        "device": describe_device(device),
        "versions": {package: version(package) for package in PACKAGES},
        "measurements": measured,
    }
    write_json(ROOT / "results" / f"compgcn-{device.type}.json", content)


def graphs() -> dict[str, KnowledgeGraph]:
    return {
        "wd50k-nc": load_labelled_graph("wd50k-nc", None).graph,
        "fb15k-237-v1": load_inductive("inductive/fb15k-237-v1", None).training.train,
    }


def measure(
    graph: KnowledgeGraph, name: str, layer: str, device: torch.device, turns: int
) -> dict[str, object]:
    """The fastest of some turns of both ways, in seconds."""
    num_relations = 2 * graph.num_relations
    edges = torch.tensor(with_inverses(graph)).to(device)
    arranged = EdgeIndex(edges, graph.num_nodes, num_relations, "direction")
    generator = torch.Generator().manual_seed(0)
    nodes = torch.randn(graph.num_nodes, DIM, generator=generator).to(device).requires_grad_()
    relations = torch.randn(num_relations, DIM, generator=generator).to(device).requires_grad_()
    ways = {way: make_layer(layer, way == "fused", device) for way in ("fused", "library")}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(turns + 1):  # the first one warms up
        for way, network in ways.items():
            seconds[way].append(turn(network, nodes, relations, arranged))
    fastest = {way: min(taken[1:]) for way, taken in seconds.items()}
    ratio = fastest["library"] / fastest["fused"]
    print(
        f"{name}, {layer}: fused {1000 * fastest['fused']:.2f} ms, library "
        f"{1000 * fastest['library']:.2f} ms, {ratio:.1f} times"
    )
    sizes = {"edges": len(edges), "pairs": len(arranged.pairs.sources.rows)}
    return {"graph": name, "layer": layer, **sizes, "seconds": fastest, "ratio": round(ratio, 2)}


def make_layer(layer: str, fused: bool, device: torch.device) -> CompGCN:
    settings = GraphLayerSettings(
        kind="compgcn",
        layers=1,
        dropout=0.3,
        attention_dropout=0.3,
        fused=fused,
        **LAYERS[layer],
    )
    made = CompGCN(DIM, settings, generator=torch.Generator().manual_seed(0)).to(device)
    use_generator(made, torch.Generator(device).manual_seed(0))
    return made


def turn(network: CompGCN, nodes: torch.Tensor, relations: torch.Tensor, edges: EdgeIndex) -> float:
    wait(nodes.device)
    start = perf_counter()
    found, changed = network(nodes, relations, edges)
    (found.sum() + changed.sum()).backward()
    wait(nodes.device)
    return perf_counter() - start


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
