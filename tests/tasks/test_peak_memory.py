"""The peak of memory of a run stays below the memory that it was given."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from benchmarks.planted_graphs import GraphSizes, planted_graph

MEMORY = 10**9
TRAIN = """
import json, sys
from pathlib import Path
from nodepiece.tasks.peak import peak_of_process
from nodepiece.tasks.train import train_experiment
from nodepiece.training.memory import keep_freed_memory

keep_freed_memory()
graph, folder, memory = sys.argv[1:]
sentences = []
train_experiment(
    graph, Path(folder), minutes=0.03, memory=int(memory), device="cpu", log=sentences.append
)
print(json.dumps({"peak": peak_of_process(), "sentences": sentences}))
"""


def test_a_run_in_its_own_process_keeps_the_memory_that_it_was_given(tmp_path: Path) -> None:
    sizes = GraphSizes(4_900, 15_000, 20)  # against all nodes, in batches of 512 if they fit
    facts = planted_graph(sizes, rng=np.random.default_rng(0)).triples
    lines = "".join(f"n{head}\tr{relation}\tn{tail}\n" for head, relation, tail in facts)
    (tmp_path / "graph.tsv").write_text(lines, encoding="utf-8")
    words = [str(tmp_path / "graph.tsv"), str(tmp_path / "run"), str(MEMORY)]
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert any("1.0 GB" in each for each in found["sentences"])
    assert found["peak"] < MEMORY
