"""The whole files and folders that are damaged: a graph in every format, a run of each task."""

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nodepiece

Fact = tuple[str, str, str]
RELATIONS = ("likes", "knows", "lives in")
SETTINGS = """
[tokenizer]
num_anchors = 6
anchors_per_node = 3
relations_per_node = 3

[encoder]
dim = 8
hidden_dim = 8

[training]
epochs = 1
batch_size = 32
"""
TASKS = {
    "run-links": ("link-prediction", "dataset", ()),
    "run-relations": ("relation-prediction", "dataset", ("one_vs_all.relation_weight=1.0",)),
    "run-unseen": ("out-of-sample", "unseen", ()),
    "run-classes": (
        "node-classification",
        "labelled",
        (
            "training.metric=hard_accuracy",
            "training.loss=binary-cross-entropy",
            "training.batch_size=512",
        ),
    ),
    "run-inductive": (
        "inductive-link-prediction",
        "inductive",
        (
            "tokenizer.num_anchors=0",
            "tokenizer.anchors_per_node=0",
            "evaluation.num_negatives=5",
            "graph.kind=compgcn",
            "graph.layers=1",
        ),
    ),
}


def make_materials(folder: Path) -> None:
    """Write all of them; paths inside are relative to `folder`, or absolute."""
    facts = some_facts(Random(0), prefix="n")
    write_files(folder, facts)
    write_datasets(folder, facts)
    graph = nodepiece.read_graph(folder / "graph.tsv")
    settings = nodepiece.TokenizerSettings(num_anchors=6, anchors_per_node=3, relations_per_node=3)
    compile_kernels(graph)
    rng = np.random.default_rng(0)
    vocabulary = nodepiece.fit_vocabulary(graph, settings, rng=rng)
    nodepiece.save_tokens(nodepiece.tokenize(graph, vocabulary, rng=rng), folder / "vocabulary")
    for name, (task, dataset, overrides) in TASKS.items():
        text = f'name = "{name}"\ndataset = "{folder / dataset}"\ntask = "{task}"\n{SETTINGS}'
        (folder / f"{name}.toml").write_text(text)
        nodepiece.train(folder / f"{name}.toml", folder / name, overrides=overrides)
    run = nodepiece.load(folder / "run-links")
    nodepiece.update_run(run, add=[("n1", "likes", "new"), ("new", "knows", "n2")])
    nodepiece.update_run(run, remove_nodes=["n3"])


def compile_kernels(graph: nodepiece.KnowledgeGraph) -> None:
    """Tokenize in every way once, so that no input has to wait for a compiler."""
    changes: list[dict[str, Any]] = [
        {"ties": "global"},
        {"select": "random"},
        {"relation_order": "random"},
        {"disconnected": "anchor"},
        {"mix": {"random": 1.0}},
        {"num_anchors": 0, "anchors_per_node": 0},
    ]
    for change in changes:
        settings = nodepiece.TokenizerSettings(
            **{"num_anchors": 6, "anchors_per_node": 3, "relations_per_node": 3} | change
        )
        rng = np.random.default_rng(0)
        nodepiece.tokenize(graph, nodepiece.fit_vocabulary(graph, settings, rng=rng), rng=rng)


def some_facts(rng: Random, *, prefix: str, number: int = 120, num_nodes: int = 40) -> list[Fact]:
    """Distinct facts in which every node occurs."""
    facts: dict[Fact, None] = {}
    for node in range(num_nodes):
        facts[f"{prefix}{node}", rng.choice(RELATIONS), f"{prefix}{(node + 1) % num_nodes}"] = None
    while len(facts) < number:
        head, tail = (f"{prefix}{rng.randrange(num_nodes)}" for _ in range(2))
        facts[head, rng.choice(RELATIONS), tail] = None
    return list(facts)


def write_files(folder: Path, facts: list[Fact]) -> None:
    tsv = lines(facts, "\t")
    (folder / "graph.tsv").write_bytes(tsv)
    (folder / "graph.tsv.gz").write_bytes(gzip.compress(tsv))
    (folder / "graph.csv").write_bytes(b"head,relation,tail\n" + lines(facts, ","))
    (folder / "graph.nt").write_bytes(
        b"".join(
            f"<http://x/{h}> <http://x/{r.replace(' ', '_')}> <http://x/{t}> .\n".encode()
            for h, r, t in facts
        )
    )
    turtle = "".join(f":{h} :{r.replace(' ', '_')} :{t} .\n" for h, r, t in facts)
    (folder / "graph.ttl").write_text("@prefix : <http://x/> .\n" + turtle)
    rows = [dict(zip(("head", "relation", "tail"), fact, strict=True)) for fact in facts]
    (folder / "graph.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    described = "".join(
        f'<rdf:Description rdf:about="http://x/{h}"><p:{r.replace(" ", "_")} '
        f'rdf:resource="http://x/{t}"/></rdf:Description>\n'
        for h, r, t in facts
    )
    spaces = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:p="http://x/"'
    (folder / "graph.rdf").write_text(f"<rdf:RDF {spaces}>\n{described}</rdf:RDF>\n")
    pq.write_table(pa.Table.from_pylist(rows), folder / "graph.parquet")
    rng = np.random.default_rng(0)
    np.save(folder / "graph.npy", rng.integers(0, 9, (30, 3)).astype(np.int32))
    (folder / "names.txt").write_text("n1\nn2\nn4\n")
    (folder / "new.tsv").write_bytes(b"n1\tlikes\tsomebody\nsomebody\tknows\tn2\n")
    (folder / "labels.tsv").write_bytes(b"".join(b"n%d\tc%d\n" % (n, n % 3) for n in range(40)))
    (folder / "labels.csv").write_bytes(b"".join(b"n%d,c%d\n" % (n, n % 3) for n in range(40)))
    (folder / "labels.json").write_text(json.dumps({f"n{n}": [f"c{n % 3}"] for n in range(40)}))


def write_datasets(folder: Path, facts: list[Fact]) -> None:
    write_splits(folder / "dataset", facts)
    write_splits(folder / "inductive" / "training", facts)
    write_splits(folder / "inductive" / "inference", some_facts(Random(1), prefix="m"))
    labelled = folder / "labelled"
    labelled.mkdir()
    (labelled / "edges.tsv").write_bytes(lines(facts, "\t"))
    for number, part in enumerate(("train", "valid", "test")):
        rows = {f"n{n}": [f"c{n % 2}"] for n in range(40) if min(n % 4, 2) == number}
        (labelled / f"{part}_labels.json").write_text(json.dumps(rows))
    unseen = folder / "unseen"
    unseen.mkdir()
    (unseen / "train.tsv").write_bytes(lines(facts, "\t"))
    for part in ("valid", "test"):
        unseen_facts = {
            f"{part}{n}": [[f"{part}{n}", "likes", f"n{n + k}"] for k in range(3)] for n in range(4)
        }
        (unseen / f"{part}.json").write_text(json.dumps(unseen_facts))


def write_splits(folder: Path, facts: list[Fact]) -> None:
    folder.mkdir(parents=True)
    for part, rows in (("train", facts), ("valid", facts[60:70]), ("test", facts[70:80])):
        (folder / f"{part}.tsv").write_bytes(lines(rows, "\t"))


def lines(facts: list[Fact], delimiter: str) -> bytes:
    return "".join(delimiter.join(fact) + "\n" for fact in facts).encode()
