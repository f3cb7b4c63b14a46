"""Every public object is described in a line or two, and completion shows what users need."""

import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import nodepiece
from nodepiece.evaluation.report import Report

FACTS = [("ada", "knows", "bob"), ("bob", "knows", "cy"), ("cy", "likes", "ada")]
SETTINGS = nodepiece.TokenizerSettings(
    num_anchors=1, anchors_per_node=1, relations_per_node=2, mix={"degree": 1.0}
)


@pytest.fixture(scope="module")
def table() -> nodepiece.TokenTable:
    rng, graph = np.random.default_rng(0), nodepiece.graph(FACTS)
    return nodepiece.tokenize(graph, nodepiece.fit_vocabulary(graph, SETTINGS, rng=rng), rng=rng)


def test_a_graph_and_its_names() -> None:
    graph = nodepiece.graph(FACTS)

    assert repr(graph) == (
        "KnowledgeGraph(3 nodes, 2 relations, 3 facts, such as ada - knows - bob)"
    )
    assert repr(graph.names) == (
        "Names(3 nodes: 'ada', 'bob', 'cy'; 2 relations: 'knows', 'likes')"
    )
    assert len(repr(nodepiece.graph([("x" * 500, "r\n", "y")]))) < 200


def test_a_dataset() -> None:
    assert repr(nodepiece.load_countries()).startswith(
        "Dataset('countries': 831 nodes, 10 relations, 3,222 facts to train on, "
    )


def test_tokens_and_vocabulary(table: nodepiece.TokenTable) -> None:
    assert repr(table).startswith("TokenTable(3 nodes as 1 anchor and 2 relations each; ada is '")
    assert repr(table.vocabulary).startswith("Vocabulary(1 anchor: '")
    assert max(len(repr(each)) for each in (table, table.vocabulary)) < 200


def test_a_changing_graph_and_an_embedding(table: nodepiece.TokenTable) -> None:
    changing = nodepiece.ChangingGraph(nodepiece.graph(FACTS), table)
    rows = changing.add([("dan", "knows", "ada")])
    settings = nodepiece.EncoderSettings(dim=8)
    embedding = nodepiece.NodePieceEmbedding(table, settings, generator=torch.Generator())

    assert repr(changing) == ("ChangingGraph(4 nodes, 2 relations; 1 node added, 0 removed)")
    assert repr(rows).endswith("1 anchor and 2 relations each)")
    assert repr(nodepiece.describe_tokens(table)).startswith("TokenStatistics(3 nodes, 1 anchors")
    assert repr(embedding).startswith("NodePieceEmbedding(3, 8: 1 anchors of 1 and 2 relations")


def test_an_experiment_says_what_it_is_and_not_all_its_settings() -> None:
    experiment = nodepiece.load_experiment("countries")

    assert repr(replace(experiment, name="mine")).startswith(
        "Experiment('mine': link-prediction on 'countries', "
    )
    assert len(repr(experiment)) < 160


def test_a_report() -> None:
    report = Report({"mrr": 0.25, "hits@1": 1 / 3}, {"head": {}}, {"relations": {"r": {}}})

    assert repr(report) == "Report(mrr=0.25, hits@1=0.3333; also of head, relations)"


def test_completion_of_the_package_shows_the_public_names_alone() -> None:
    assert set(dir(nodepiece)) == {*nodepiece.__all__, "__version__"}


def test_the_package_logs_nothing_unless_logging_is_configured() -> None:
    code = "import nodepiece, logging; logging.getLogger('nodepiece.locks').warning('a sentence')"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stderr == ""
    assert logging.getLogger("nodepiece").handlers


def test_a_run(tmp_path: Path) -> None:
    overrides = ["training.epochs=1", "encoder.dim=8", "training.validate_every=0"]

    run = nodepiece.train("countries", tmp_path / "run", overrides=overrides, device="cpu")
    assumed = run.with_facts([("Ruritania", "borders", "Kenya")])

    assert repr(run) == (
        f"LinkRun('{tmp_path / 'run'}': link-prediction on 'countries', 831 nodes)"
    )
    assert repr(assumed).endswith("832 nodes, with assumed facts)")
    assert sorted(dir(run)) == sorted(
        [
            *("classify", "compare_baselines", "dataset", "discover", "embed", "evaluate"),
            *("evaluate_baseline", "experiment", "explain", "folder", "graph", "known", "model"),
            *("node_names", "num_nodes", "on_graph", "popularity", "predict", "predict_many"),
            *("refresh", "relation_vectors", "score", "similar", "to", "vectors"),
            *("with_facts", "without_facts"),
        ]
    )


def test_the_command_line_prints_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    from nodepiece import cli

    cli.show_messages()
    cli.show_messages()
    logging.getLogger("nodepiece.locks").warning("no locks here")
    logging.getLogger("nodepiece.locks").info("a detail")

    assert capsys.readouterr().err == "warning: no locks here\n"
