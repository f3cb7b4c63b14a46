"""A run of a large generated graph, ready to be served: with stored vectors and an index.

    python -m benchmarks.serving_large --nodes 2500000 -o LARGE
    python -m benchmarks.serving --run LARGE --part load search --approximate --clients 1 4 16 \\
        -o results/serving-2.5m.json

The graph has planted rules (`benchmarks.planted_graphs`), and the model of the paper for FB15k-237
is trained for some steps with sampled negatives: it is there to measure time and memory.
"""

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.measure import peak_memory
from benchmarks.planted_graphs import GraphSizes, planted_split

from nodepiece.data.random_split import write_split
from nodepiece.inference.answer_index import AnswerIndex
from nodepiece.inference.run import load
from nodepiece.inference.update import keep_vectors
from nodepiece.serving.served_run import index_place
from nodepiece.settings import load_experiment
from nodepiece.tasks.train import train_experiment
from nodepiece.training.memory import keep_freed_memory

FACTS_PER_NODE = 6.4  # as in WikiKG2


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2_500_000)
    parser.add_argument("--relations", type=int, default=535)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--set", action="append", help="change a setting of the experiment")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder of the run")
    options = parser.parse_args()
    keep_freed_memory()
    sizes = GraphSizes(options.nodes, round(FACTS_PER_NODE * options.nodes), options.relations)
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "graph"
        held_out = 100 / sizes.num_facts  # evaluated among all nodes, which takes long
        write_split(planted_split(sizes, seed=0, held_out=held_out), data, {"sizes": vars(sizes)})
        done("generated")
        changes = [
            f"dataset={data}",
            "training.epochs=1",
            "training.loss=self-adversarial",
            "one_vs_all.smoothing=0.0",
            "sampled.num_negatives=32",
            f"sampled.steps_per_epoch={options.steps}",
            *(options.set or []),
        ]
        experiment = load_experiment("fb15k-237-paper", changes)
        train_experiment(experiment, options.output, overwrite=True)
        done("trained")
    run = load(options.output)
    keep_vectors(run)
    done("computed and stored all vectors")
    snapshot, index = index_place(run)
    AnswerIndex(snapshot, index).prepare()
    done("built and stored the index")


def done(what: str) -> None:
    print(f"{perf_counter() - START:.0f} s: {what}; {peak_memory():.0f} MB at most", flush=True)


START = perf_counter()

if __name__ == "__main__":
    main()
