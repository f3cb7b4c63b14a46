"""The cost of a training step on graphs of 10^4 to 10^7 nodes, with the same settings.

    python -m benchmarks.step_cost -o results/step-cost.json [--largest 10000000] [--device cuda]

A step of sampled softmax has a batch of 1,024 facts and 512 negatives. Measured are pieces with
2,000 anchors, without walks and with those of the automatic choice, pieces with a tenth of the
nodes as anchors, and a lookup encoder, which has a vector for every node; each as it is trained,
and `whole`: with Adam on the whole table. A graph has two
facts for each node. Every measurement is a process of its own. On a CPU the cost is processor time,
which other processes disturb less than the time on the clock. A figure is drawn beside the JSON
file.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.generate import HUB_SHARE, generate_graph
from benchmarks.measure import peak_memory, prefer_to_be_killed

from nodepiece.data.dataset import Dataset
from nodepiece.data.npy import read_mapped_graph
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.files import write_json
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.report.step_cost import plot_step_cost
from nodepiece.settings import Experiment
from nodepiece.tasks.automatic import choose_sampled_walks
from nodepiece.tasks.graph_shape import shape_of
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.memory import keep_freed_memory
from nodepiece.training.settings import SampledSettings, TrainingSettings

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)  # nodes
FACTS_PER_NODE = 2
NUM_RELATIONS = 100
WARM_UP_STEPS, STEPS = 5, 40
WHOLE_UP_TO = 300_000  # nodes; more would take too long and too much memory


@dataclass(frozen=True)
class Variant:
    """A model that is measured on all sizes."""

    encoder: EncoderSettings
    anchor_share: float = 0.0  # of the nodes; 0: 2,000 anchors
    whole: bool = False  # Adam on the whole table
    has_walks: bool = False  # those of the automatic choice

    def experiment(self, graph: KnowledgeGraph) -> Experiment:
        num_anchors = round(self.anchor_share * graph.num_nodes) if self.anchor_share else 2_000
        walks, path_queries = WalkSettings(), 0
        if self.has_walks:
            walks, path_queries = choose_sampled_walks(shape_of(graph))
        has_pieces = self.encoder.has_pieces
        return Experiment(
            name="step-cost",
            dataset="generated",
            task="link-prediction",
            tokenizer=TokenizerSettings(num_anchors=num_anchors if has_pieces else 20),
            encoder=self.encoder,
            decoder=DecoderSettings("complex"),
            walks=walks,
            training=TrainingSettings(
                loss="sampled-softmax", batch_size=1_024, hide_targets=self.has_walks
            ),
            sampled=SampledSettings(
                num_negatives=512,
                path_queries=path_queries,
                steps_per_epoch=WARM_UP_STEPS + STEPS,
                lazy_rows=False if self.whole else None,
            ),
        )


PIECES = EncoderSettings("gated-sum", dim=128, hidden_dim=256)
LOOKUP = EncoderSettings("lookup", dim=32)
VARIANTS = {
    "2,000 anchors": Variant(PIECES),
    "2,000 anchors, with walks": Variant(PIECES, has_walks=True),
    "a tenth of the nodes are anchors": Variant(PIECES, anchor_share=0.1),
    "a vector for every node": Variant(LOOKUP),
    "a tenth of the nodes are anchors, whole": Variant(PIECES, anchor_share=0.1, whole=True),
    "a vector for every node, whole": Variant(LOOKUP, whole=True),
}


def measure(variant: Variant, graph: KnowledgeGraph, device: torch.device) -> dict[str, Any]:
    """Seconds of a step: the median, after a few that warm up."""
    experiment = variant.experiment(graph)
    none = graph.triples[:0]
    dataset = Dataset("generated", graph, none, none, {"valid": 0, "test": 0})
    task = LinkPrediction(experiment, dataset)
    model = task.build_model(tokens_of(graph, experiment)).to(device)
    keep_freed_memory()
    trainer = task.make_trainer(model, generator=torch.Generator(device).manual_seed(0))
    moments: list[tuple[float, float]] = []

    def after_step(done: int, total: int) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        moments.append((time.perf_counter(), time.process_time()))

    trainer.run_epoch(0, after_step)
    seconds, of_processor = np.diff(moments, axis=0)[WARM_UP_STEPS - 1 :].T
    return {
        "nodes": graph.num_nodes,
        "rows": len(model.nodes.start_table),
        "is_lazy": bool(trainer.row_optimizers),
        "seconds": float(np.median(seconds)),
        "processor_seconds": float(np.median(of_processor)),
        "parameters": model.num_parameters(),
        "peak_memory_mib": round(peak_memory()),
    }


def tokens_of(graph: KnowledgeGraph, experiment: Experiment) -> TokenTable:
    rng = np.random.default_rng(0)
    return tokenize(graph, fit_vocabulary(graph, experiment.tokenizer, rng=rng), rng=rng)


def make_facts(num_nodes: int, path: Path) -> None:
    num_edges = FACTS_PER_NODE * num_nodes
    rng, hub_degree = np.random.default_rng(0), round(HUB_SHARE * num_edges)
    graph = generate_graph(num_nodes, num_edges, NUM_RELATIONS, hub_degree=hub_degree, rng=rng)
    np.save(path, graph.triples)


def main() -> None:
    options = parse_options()
    torch.set_num_threads(options.threads)
    if options.measure:
        prefer_to_be_killed()
        path, name = options.measure
        device = torch.device(options.device)
        print(json.dumps(measure(VARIANTS[name], read_mapped_graph(path), device)))
        return
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in options.variants}
    with tempfile.TemporaryDirectory() as folder:
        for num_nodes in (size for size in SIZES if size <= options.largest):
            path = Path(folder) / "facts.npy"
            make_facts(num_nodes, path)
            for name, rows in measured.items():
                if not VARIANTS[name].whole or num_nodes <= WHOLE_UP_TO:
                    rows.append(measured_apart(path, name, options))
                    print(f"{name}: {json.dumps(rows[-1])}", flush=True)
            if options.out is not None:
                write_results(measured, options)


def write_results(measured: dict[str, list[dict[str, Any]]], options: argparse.Namespace) -> None:
    """Write what was measured so far, and the figure."""
    cost = "seconds" if options.device != "cpu" else "processor_seconds"
    command = ["python", "-m", "benchmarks.step_cost", "--largest", str(options.largest)]
    command += ["--device", options.device, "--threads", str(options.threads)]
    if options.variants != list(VARIANTS):
        command += ["--variants", *options.variants]
    content = {
        "command": shlex.join(command),
        "cpus": os.cpu_count(),
        "cost": cost,
        "growth": {name: rows[-1][cost] / rows[0][cost] for name, rows in measured.items() if rows},
        "measured": measured,
    }
    write_json(options.out, content)
    lines = {name: [(row["nodes"], row[cost]) for row in rows] for name, rows in measured.items()}
    plot_step_cost(lines, options.out.with_suffix(".svg"))


def measured_apart(path: Path, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.step_cost", "--measure", str(path), name]
    command += ["--device", options.device, "--threads", str(options.threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The cost of a step on graphs of many sizes.")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="nodes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--variants", nargs="+", choices=tuple(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--measure", nargs=2, metavar=("FILE", "VARIANT"), help="one, in here")
    parser.add_argument("-o", "--out", type=Path, help="a JSON file; the figure is beside it")
    return parser.parse_args()


if __name__ == "__main__":
    main()
