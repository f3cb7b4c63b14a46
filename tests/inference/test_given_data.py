"""Training on facts in memory, and vectors for scikit-learn."""

import logging
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodepiece
from nodepiece.errors import InputError
from nodepiece.inference.facts import fact_run
from nodepiece.inference.opened_run import Run
from nodepiece.inference.transformer import NodeVectorizer

# Twelve people in a ring, each a friend of the next and a colleague of the one after it.
FACTS = [
    (f"person {each}", relation, f"person {(each + step) % 12}")
    for each in range(12)
    for relation, step in (("friend of", 1), ("colleague of", 2))
]
FEW = ["training.epochs=2", "encoder.dim=8", "encoder.hidden_dim=8"]


def trained(source: Any, folder: Path, **options: Any) -> Run:
    return nodepiece.train(source, folder, overrides=FEW, device="cpu", **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(FACTS, tmp_path_factory.mktemp("runs") / "run")


def test_triples_are_trained_on_with_settings_chosen_for_them(run: Run) -> None:
    assert run.num_nodes == 12
    assert "person 1" in run.known(head="person 0", relation="friend of")
    assert len(run.predict(head="person 0", relation="friend of", top=3)) == 3


def test_a_finished_run_on_facts_in_memory_opens_like_any_other(run: Run) -> None:
    again = nodepiece.load(run.folder)

    assert again.experiment.dataset == "list"
    assert np.array_equal(again.embed(), run.embed())


@pytest.mark.parametrize("library", ["to_pandas", "to_networkx", "to_pyg"])
def test_other_objects_train_to_the_same_vectors(run: Run, library: str, tmp_path: Path) -> None:
    source = getattr(nodepiece.graph(FACTS), library)()

    other = trained(source, tmp_path / "run")

    assert np.array_equal(other.embed(run.node_names()), run.embed())


def test_valid_and_test_are_evaluated_on(tmp_path: Path) -> None:
    run = trained(FACTS[2:], tmp_path / "run", valid=FACTS[:1], test=FACTS[1:2])

    for split in ("valid", "test"):
        assert run.evaluate(split).scores["count"] == 2  # a fact, its head and its tail


def test_without_valid_some_facts_are_held_out_of_many(tmp_path: Path) -> None:
    facts = [
        (f"person {each}", "friend of", f"person {(each + step) % 100}")
        for each in range(100)
        for step in (1, 2, 5)
    ]

    run = trained(facts, tmp_path / "run")

    parts = [len(fact_run(run).dataset.part(split)) for split in ("train", "valid", "test")]
    assert sum(parts) == 300 and min(parts) > 0


def test_settings_by_name_go_with_facts_in_memory(tmp_path: Path) -> None:
    few = [*FEW, "tokenizer.num_anchors=3", "tokenizer.anchors_per_node=2"]

    run = nodepiece.train(
        "countries",
        tmp_path / "run",
        data=FACTS[1:],
        valid=FACTS[:1],
        overrides=few,
        device="cpu",
    )

    assert run.experiment.name == "countries" and run.num_nodes == 12


def test_a_finished_run_on_facts_in_memory_stays_as_it_is_without_minutes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "nodepiece")
    nodepiece.train(FACTS, tmp_path / "run", minutes=0.02, device="cpu")
    written = (tmp_path / "run" / "metrics.json").read_text()

    run = nodepiece.train(FACTS, tmp_path / "run", resume=True, device="cpu")

    assert run.num_nodes == 12
    assert (tmp_path / "run" / "metrics.json").read_text() == written
    assert "stays as it is; give minutes=N (--minutes N)" in caplog.messages[-1]


def test_training_goes_on_from_a_checkpoint_on_the_same_facts_alone(tmp_path: Path) -> None:
    trained(FACTS, tmp_path / "run")

    assert trained(FACTS, tmp_path / "run", resume=True).num_nodes == 12
    with pytest.raises(InputError, match="on other facts"):
        trained(FACTS[:-1], tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("countries", {"valid": FACTS}, "valid goes with facts in memory"),
        (FACTS, {"data": FACTS}, "facts were given twice"),
        ([("a", "b")], {}, "not a triple"),
    ],
)
def test_what_does_not_go_together_is_refused(
    source: Any, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        nodepiece.train(source, tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_node_classification_needs_classes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="list has facts and no classes"):
        nodepiece.train("wd50k-100-mlp", tmp_path / "run", data=FACTS, device="cpu")


def test_one_fact_is_enough(tmp_path: Path) -> None:
    run = nodepiece.train([("a", "r", "b")], tmp_path / "run", overrides=FEW, device="cpu")

    assert run.num_nodes == 2


def test_progress_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="nodepiece"):
        trained(FACTS, tmp_path / "run")

    assert any("12 nodes" in line for line in caplog.messages)
    assert sum(line.startswith("epoch ") for line in caplog.messages) == 2


def test_assumed_facts_may_be_a_table(run: Run) -> None:
    table = nodepiece.graph([("person 12", "friend of", "person 0")]).to_arrow()

    assert run.with_facts(table).node_names()[-1] == "person 12"


def test_names_go_in_and_vectors_come_out(run: Run) -> None:
    pandas = pytest.importorskip("pandas")
    vectorizer = NodeVectorizer(run.folder)
    names = ["person 3", "person 0"]

    expected = run.embed(names)

    assert np.array_equal(vectorizer.fit_transform(names), expected)
    assert np.array_equal(vectorizer.transform(np.array(names)[:, None]), expected)
    assert np.array_equal(vectorizer.transform(pandas.Series(names)), expected)
    assert np.array_equal(vectorizer.transform(pandas.DataFrame({"node": names})), expected)
    assert vectorizer.get_feature_names_out().tolist() == [f"vector_{place}" for place in range(8)]


def test_it_is_a_step_of_a_pipeline_that_can_be_cloned_and_cross_validated(run: Run) -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(NodeVectorizer(run), LogisticRegression())
    names = [f"person {each}" for each in range(12)]
    is_even = [each % 2 for each in range(12)]

    assert clone(pipeline).fit(names, is_even).predict(names).shape == (12,)
    assert cross_val_score(pipeline, names, is_even, cv=2).shape == (2,)


def test_unknown_names_are_refused_or_zeros(run: Run) -> None:
    with pytest.raises(InputError, match="unknown node 'person x'"):
        NodeVectorizer(run).transform(["person x"])
    with pytest.raises(InputError, match="it is refuse or zeros"):
        NodeVectorizer(run, unknown="mean").fit()
    with pytest.raises(InputError, match="one column"):
        NodeVectorizer(run).transform([["a", "b"]])
    with pytest.raises(InputError, match="not one name"):
        NodeVectorizer(run).transform("person 1")
    found = NodeVectorizer(run, unknown="zeros").transform(["person x", "person 1"])
    assert not found[0].any() and np.array_equal(found[1:], run.embed(["person 1"]))


def test_a_deep_copy_of_a_run_is_another_handle_on_it(run: Run) -> None:
    assert deepcopy(run).model is run.model
