"""How many facts of the inductive benchmarks are the only fact of a node.

    python -m benchmarks.only_facts

Of training facts: those that leave a node without facts when they are hidden as targets. Of the
validation and test facts of the graph that is evaluated on: those with a node that has no other
fact there. `one_vs_all.target_degree = 2` leaves the former out. Writes results/only-facts.json.
"""

import json

import numpy as np
from benchmarks.baselines import INDUCTIVE
from benchmarks.tokenization import ROOT

from nodepiece.data.load import load_inductive
from nodepiece.files import write_json
from nodepiece.graph.arrays import IntArray, LongArray

OUTPUT = ROOT / "results" / "only-facts.json"


def main() -> None:
    records = {}
    for name in INDUCTIVE:
        data = load_inductive(name, None)
        training, inference = data.training.train, data.inference
        before = num_facts(inference.train.triples, inference.train.num_nodes)
        records[name] = {
            "training": share(training.triples, num_facts(training.triples, training.num_nodes), 1),
            "valid": share(inference.valid, before, 0),
            "test": share(inference.test, before, 0),
        }
        print(name, json.dumps(records[name]))
    what = "the share of the facts that are the only fact of a node"
    command = "python -m benchmarks.only_facts"
    write_json(OUTPUT, {"what": what, "command": command, "shares": records})


def num_facts(triples: IntArray, num_nodes: int) -> LongArray:
    """The number of facts of each node; one between a node and itself counts once."""
    head, _, tail = triples.T
    return np.bincount(np.concatenate([head, tail[head != tail]]), minlength=num_nodes)


def share(facts: IntArray, number: LongArray, most: int) -> float:
    """Of the facts with a node that has at most so many."""
    return round(float((number[facts[:, ::2]].min(axis=1) <= most).mean()), 4)


if __name__ == "__main__":
    main()
