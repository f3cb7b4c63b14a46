"""nodepiece demo: the whole story, here with models that learned for one epoch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nodepiece import Experiment, load, load_experiment
from nodepiece.commands.demo import QUERIES
from nodepiece.inference.run import load_links

if TYPE_CHECKING:
    from tests.commands.conftest import Nodepiece


@pytest.fixture(autouse=True)
def one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_quick(name: str) -> Experiment:
        return load_experiment(name, ["training.epochs=1"])

    monkeypatch.setattr("nodepiece.settings.load_experiment", load_quick)


def test_it_compares_three_models_answers_queries_and_leaves_a_run(nodepiece: Nodepiece) -> None:
    ran = nodepiece("demo", "-o", "run")

    assert ran.status == 0
    rows = {line.split("  ")[0].strip(): line.split() for line in ran.out.splitlines()}
    learned = load("run").evaluate().scores
    assert rows["NodePiece"][-1] == f"{learned['mrr']:.3f}"
    assert rows["popularity"][-1] == "0.126"
    assert rows["a vector for every node"][5] == "37,532"
    assert "3,222 facts about 831 nodes" in ran.out
    assert "Europe@1" in ran.out and "shares most pieces with" in ran.out
    for words, _ in QUERIES:
        assert words in ran.out
    assert "nodepiece predict run --head Kenya --relation 'has language'" in ran.out
    assert "nodepiece train countries-walks" in ran.out
    assert "nodepiece train graph.tsv -o run --minutes 10" in ran.out and "README" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_run_that_is_there_is_kept(nodepiece: Nodepiece, run: Path) -> None:
    before = (run / "model.safetensors").read_bytes()

    ran = nodepiece("demo", "-o", run)

    assert ran.status == 2
    assert "holds a run already; choose another output" in ran.err
    assert (run / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("query", [query for _, query in QUERIES])
def test_the_truth_of_every_query_is_in_the_test_facts_alone(
    trained: Path, query: dict[str, str]
) -> None:
    run = load_links(trained)

    truth = run.known(**query, splits=("test",))
    assert truth
    assert not set(truth) & set(run.known(**query, splits=("train", "valid")))


def test_both_models_have_about_as_many_parameters(tmp_path: Path) -> None:
    from nodepiece.data.embedded import load_countries
    from nodepiece.encoders.parameters import num_parameters
    from nodepiece.tasks.link_prediction import LinkPrediction
    from nodepiece.tasks.tokens import make_tokens

    dataset, sizes = load_countries(), []
    for name in ("countries", "countries-shallow"):
        experiment = load_experiment(name)
        table = make_tokens(experiment, dataset.train, tmp_path / name)
        sizes.append(num_parameters(LinkPrediction(experiment, dataset).build_model(table)))
    assert sizes[1] == pytest.approx(sizes[0], rel=0.02)
