"""What golden values are taken of, through public names alone; and how they are taken."""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

import nodepiece

TOKENS: dict[str, dict[str, Any]] = {
    "ties per node": {},
    "ties by global order": {"ties": "global"},
    "anchors at random": {"select": "random"},
    "relations in random order": {"relation_order": "random"},
    "relations only": {"num_anchors": 0, "anchors_per_node": 0},
    "an anchor for every component": {"disconnected": "anchor", "mix": {"degree": 1.0}},
    "without distances": {"distances": False, "mix": {"random": 1.0}},
}

FEW_STEPS = """
tokenizer = {num_anchors = 8, anchors_per_node = 3, relations_per_node = 3}
encoder = {dim = 8, hidden_dim = 16}
training = {loss = "cross-entropy", epochs = 2, batch_size = 32, learning_rate = 0.01, \
validate_every = 1}
"""
SAMPLED = ("training.loss=self-adversarial", "training.num_negatives=4", "training.margin=3.0")
INDUCTIVE = (
    "tokenizer.num_anchors=0",
    "tokenizer.anchors_per_node=0",
    "evaluation.num_negatives=10",
)
COMPGCN = ("graph.kind=compgcn", "graph.layers=1", "graph.attention_heads=2")
CLASSES = (
    "training.metric=hard_accuracy",
    "training.loss=binary-cross-entropy",
    "training.batch_size=512",  # a step has all nodes
)

# name: task, dataset, settings
RUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "mlp": (
        "link-prediction",
        "links",
        ("decoder.kind=distmult", "training.loss=binary-cross-entropy"),
    ),
    "mlp, plain, TransE, sampled": (
        "link-prediction",
        "links",
        (*SAMPLED, "encoder.factorized=false", "decoder.kind=transe", "training.subsampling=true"),
    ),
    "gated sum, ComplEx, N3, relations too": (
        "link-prediction",
        "links",
        (
            "encoder.kind=gated-sum",
            "decoder.kind=complex",
            "training.regularization=0.01",
            "training.relation_weight=0.5",
        ),
    ),
    "transformer, RotatE, sampled": (
        "link-prediction",
        "links",
        (*SAMPLED, "encoder.kind=transformer", "encoder.layers=1"),
    ),
    "lookup, RotatE with moduli": (
        "link-prediction",
        "links",
        ("encoder.kind=lookup", "decoder.kind=rotate-moduli"),
    ),
    "PairRE, shared negatives": (
        "link-prediction",
        "links",
        (*SAMPLED, "decoder.kind=pairre", "training.shared_negatives=true"),
    ),
    "AutoSF, new tokens each epoch": (
        "link-prediction",
        "links",
        (
            "decoder.kind=autosf",
            "training.shuffle_anchors=true",
            "training.resample_relations=true",
        ),
    ),
    "TransE with L1": ("link-prediction", "links", ("decoder.kind=transe-l1",)),
    "graph layers": (
        "link-prediction",
        "links",
        (
            "graph.layers=1",
            "graph.edge_dropout=0.2",
            "decoder.kind=complex",
            "decoder.node_norm=true",
        ),
    ),
    "walks": (
        "link-prediction",
        "links",
        ("walks.steps=2", "walks.plain_steps=3", "training.hide_targets=true"),
    ),
    "relations": ("relation-prediction", "links", ("training.relation_weight=1.0",)),
    "inductive, CompGCN": ("inductive-link-prediction", "inductive", (*INDUCTIVE, *COMPGCN)),
    "inductive, CompGCN, PNA, PyTorch Geometric": (
        "inductive-link-prediction",
        "inductive",
        (
            *INDUCTIVE,
            *COMPGCN,
            *SAMPLED,
            "graph.aggregation=pna",
            "graph.composition=subtract",
            "graph.fused=false",
            "decoder.kind=rotate-and-scale",
        ),
    ),
    "inductive, walks": (
        "inductive-link-prediction",
        "inductive",
        (*INDUCTIVE, "walks.steps=2", "training.hide_targets=true"),
    ),
    "classes": ("node-classification", "labelled", CLASSES),
    "classes, CompGCN": (
        "node-classification",
        "labelled",
        (*CLASSES, *COMPGCN, "graph.jumping_knowledge=true", "graph.residual=true"),
    ),
    "out of sample": (
        "out-of-sample",
        "out-of-sample",
        ("decoder.kind=distmult", "training.mask_share=0.3"),
    ),
    "out of sample, walks": (
        "out-of-sample",
        "out-of-sample",
        ("walks.steps=2", "training.mask_share=0.3"),
    ),
    "out of sample, lookup": (
        "out-of-sample",
        "out-of-sample",
        (
            "encoder.kind=lookup",
            "decoder.kind=distmult",
            "training.loss=softplus",
            "training.num_negatives=4",
        ),
    ),
}

# Run folders that are kept, as this version wrote them. "updated" gets a change of its graph too.
STORED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "updated": ("link-prediction", "links", ("decoder.kind=distmult",)),
    "walks": (
        "link-prediction",
        "links",
        (
            "walks.steps=2",
            "walks.apart=true",
            "walks.weight=0.5",
            "walks.choose_weight=true",
            "training.hide_targets=true",
        ),
    ),
    "inductive": ("inductive-link-prediction", "inductive", (*INDUCTIVE, *COMPGCN)),
    "classes": ("node-classification", "labelled", CLASSES),
    "out-of-sample": ("out-of-sample", "out-of-sample", ("training.mask_share=0.3",)),
}
ADDED = [("person 3", "friend of", "newcomer"), ("newcomer", "lives in", "town 2")]
REMOVED = [("person 3", "works for", "firm 1")]

Values = dict[str, Any]


def read_ids(path: Path) -> Values:
    """What reading a file of facts gives: ids, and names in the order of ids."""
    graph = nodepiece.read_graph(path)
    assert graph.names is not None
    return {
        "triples": hashlib.sha256(graph.triples.tobytes()).hexdigest(),
        "nodes": graph.names.nodes.to_pylist(),
        "relations": graph.names.relations.to_pylist(),
        "fingerprint": graph.names.fingerprint,
    }


def token_digests(path: Path, changes: dict[str, Any], folder: Path) -> Values:
    """The digest of every array of the token table, as it is written."""
    chosen = {"num_anchors": 8, "anchors_per_node": 4, "relations_per_node": 3} | changes
    graph, rng = nodepiece.read_graph(path), np.random.default_rng(7)
    vocabulary = nodepiece.fit_vocabulary(graph, nodepiece.TokenizerSettings(**chosen), rng=rng)
    nodepiece.save_tokens(nodepiece.tokenize(graph, vocabulary, rng=rng), folder)
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.npy"))
    }


def train_case(name: str, graphs: Path, folder: Path) -> Values:
    """Train one of `RUNS`: its history, its result, and some of its answers."""
    run = train_run(*RUNS[name], graphs=graphs, folder=folder)
    return {
        "history": [only_numbers(json.loads(line)) for line in lines(folder / "history.jsonl")],
        "metrics": only_numbers(json.loads((folder / "metrics.json").read_text())),
        "answers": answers_of(run),
    }


def train_run(
    task: str, dataset: str, overrides: tuple[str, ...], *, graphs: Path, folder: Path
) -> nodepiece.Run:
    """From the folder of graphs, so that a run knows its dataset by a name without a path."""
    experiment = graphs / f"{dataset}.toml"
    text = f'task = "{task}"\ndataset = "{dataset}"\n{FEW_STEPS}'
    experiment.write_text(text, encoding="utf-8")
    with contextlib.chdir(graphs):
        return nodepiece.train(experiment.name, folder, overrides=overrides, device="cpu")


def stored_values(folder: Path) -> Values:
    """What the runs in a folder answer, and the result they have on the test split."""
    runs = {name: nodepiece.load(folder / name) for name in STORED}
    return {
        name: {"scores": dict(run.evaluate("test").scores), "answers": answers_of(run)}
        for name, run in runs.items()
    }


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def only_numbers(record: Values) -> Values:
    """Losses, ranks and scores: neither seconds, nor counts of processes."""
    return {
        key: value
        for key, value in record.items()
        if isinstance(value, int | float)
        and key not in ("seconds", "processes", "steps", "best_step")
    }


def answers_of(run: nodepiece.Run) -> list[Values]:
    """Best first, by name."""
    task = run.experiment.task
    if task == "node-classification":
        found = run.classify("person 3", top=3)
    elif task == "relation-prediction":
        found = run.predict(head="person 3", tail="town 7", top=3)
    else:
        prefix = "new " if task == "inductive-link-prediction" else ""
        found = run.predict(head=f"{prefix}person 3", relation="friend of", top=3)
    return [answer.to_json() for answer in found]
