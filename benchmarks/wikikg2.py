"""The paper's WikiKG2 experiment on a generated graph of the same size, from end to end.

    python -m benchmarks.wikikg2 --device cuda --steps 2000 -o results/wikikg2-generated-cuda.json
    python -m benchmarks.wikikg2 --device cpu --steps 20 -o results/wikikg2-generated-cpu.json

Generates 2.5 million nodes, 16 million edges and 535 relations in the layout of OGB, reads them,
tokenizes, trains for some steps at the paper's batch (512 facts, 128 negatives each), ranks test
facts among 500 given negatives each, and 1,000 queries among all nodes. The graph is random: only
time and memory are measured, and the ranks are at chance level.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from benchmarks.generate import HUB_SHARE, generate_graph, hold_out
from benchmarks.measure import peak_memory

from nodepiece.data.ogb_write import write_ogb
from nodepiece.decoders.link_model import LinkModel
from nodepiece.evaluation.known_answers import known_tails
from nodepiece.evaluation.ranking import rank_links
from nodepiece.files import write_json
from nodepiece.inference.run import load
from nodepiece.settings import load_experiment
from nodepiece.tasks.train import train_experiment
from nodepiece.training.memory import keep_freed_memory

NUM_HELD_OUT = 2_000  # facts for valid, and for test
NUM_QUERIES = 1_000  # among all nodes; two for each fact
Result = TypeVar("Result")


class Clock:
    """The seconds of each stage, by its name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], Result]) -> Result:
        start = time.perf_counter()
        result = work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.seconds[name] = round(time.perf_counter() - start, 3)
        print(f"{name}: {self.seconds[name]} s", flush=True)
        return result


def generate(options: argparse.Namespace, folder: Path) -> None:
    rng, hub_degree = np.random.default_rng(0), round(HUB_SHARE * options.edges)
    graph = generate_graph(options.nodes, options.edges, 535, hub_degree=hub_degree, rng=rng)
    write_ogb(hold_out(graph, NUM_HELD_OUT, folder.name), folder, num_negatives=500, rng=rng)


def train(options: argparse.Namespace, data: Path, folder: Path) -> dict[str, Any]:
    """Two epochs: the first one warms up, the second one is what counts."""
    changes = [
        f"dataset={data}",
        "training.epochs=2",
        f"sampled.steps_per_epoch={options.steps // 2}",
        "training.validate_every=0",
        *(options.set or []),
    ]
    experiment = load_experiment("wikikg2-paper", changes)
    metrics = train_experiment(experiment, folder, overwrite=True, device=options.device)
    if metrics is None:
        raise RuntimeError("training was stopped")
    return metrics


def steps_per_second(folder: Path, num_steps: int) -> float:
    lines = (folder / "history.jsonl").read_text().splitlines()
    first, second = (json.loads(line)["seconds"] for line in lines)
    return round(num_steps / (second - first), 2)


def rank_among_all(folder: Path, device: str, clock: Clock) -> None:
    run = load(folder, device=device)
    dataset, model = run.task.dataset, run.model  # type: ignore[attr-defined]
    if not isinstance(model, LinkModel):
        raise TypeError("a run of link prediction has a link model")
    graph, facts = dataset.train, dataset.test[: NUM_QUERIES // 2]
    known = clock.time(
        "known answers",
        lambda: known_tails(dataset.all_triples(), graph.num_nodes, graph.num_relations),
    )
    with torch.no_grad():
        vectors = clock.time("vectors of all nodes", model.node_vectors)
        clock.time(
            f"{NUM_QUERIES} queries among all nodes",
            lambda: rank_links(
                lambda heads, relations: model.score_all_tails(heads, relations, vectors),
                facts,
                known,
                memory_budget=2**30,
                device=vectors.device,
            ),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="WikiKG2's sizes from end to end.")
    parser.add_argument("--nodes", type=int, default=2_500_000)
    parser.add_argument("--edges", type=int, default=16_000_000)
    parser.add_argument("--steps", type=int, default=2_000, help="the second half is timed")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--set", action="append", help="change a setting of the experiment")
    parser.add_argument("-o", "--out", type=Path, help="a JSON file; printed as well")
    options = parser.parse_args()
    clock = Clock()
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as name:
        data, folder = Path(name) / "generated", Path(name) / "run"
        clock.time("generate and write", lambda: generate(options, data))
        memory_to_generate = peak_memory()
        metrics = clock.time(
            "read, tokenize, train, evaluate", lambda: train(options, data, folder)
        )
        rate = steps_per_second(folder, options.steps // 2)
        rank_among_all(folder, options.device, clock)
    on_device = torch.cuda.max_memory_allocated() if options.device == "cuda" else 0
    content = {
        "command": f"python -m benchmarks.wikikg2 --nodes {options.nodes} --edges {options.edges} "
        f"--steps {options.steps} --device {options.device}",
        "settings_changed": options.set or [],
        "nodes": options.nodes,
        "edges": options.edges,
        "parameters": metrics["parameters"],
        "steps_per_second": rate,
        "hours_for_300000_steps": round(300_000 / rate / 3600, 3),
        "seconds": {**metrics["seconds"], **clock.seconds},
        "host_memory_gib": round(peak_memory() / 1024, 2),
        "host_memory_to_generate_gib": round(memory_to_generate / 1024, 2),
        "device_memory_gib": round(on_device / 2**30, 2),
        "device": metrics["device"],
        "versions": metrics["versions"],
    }
    print(json.dumps(content, indent=1))
    if options.out is not None:
        write_json(options.out, content)


if __name__ == "__main__":
    main()
