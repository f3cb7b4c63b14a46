"""Answers by name are the decoder's own scores in order, without what is known."""

from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.couples import couples, experiment

from nodepiece.errors import InputError
from nodepiece.inference.facts import best_first
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load, load_links
from nodepiece.inference.update import update_run
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LinkRun:
    folder = tmp_path_factory.mktemp("runs") / "run"
    task = LinkPrediction(experiment(epochs=3), couples())
    run_experiment(task, RunOptions(folder, torch.device("cpu")))
    return load_links(folder)


def score(run: LinkRun, head: str, relation: str, tail: str) -> float:
    """One fact scored on its own; "inverse of ..." is a relation of its own here."""
    names, vectors = run.dataset.names, run.node_vectors
    relation_vector = run.model.relation_vectors()[names.relation_id(relation)]
    head_vector, tail_vector = vectors[names.node_id(head)], vectors[names.node_id(tail)]
    return run.model.decoder.score(head_vector, relation_vector, tail_vector).item()


def test_tails_come_in_the_order_of_their_scores_without_the_known_and_the_asked(
    run: LinkRun,
) -> None:
    known = run.known(head="person 0", relation="married to")
    assert known == ["person 1"]
    nodes = set(run.dataset.names.nodes.to_pylist()) - {"person 0", "person 1"}
    expected = sorted(
        nodes, key=lambda node: score(run, "person 0", "married to", node), reverse=True
    )
    answers = run.predict(head="person 0", relation="married to", top=5)
    assert [answer.name for answer in answers] == expected[:5]
    assert answers[0].score == pytest.approx(
        score(run, "person 0", "married to", expected[0]), abs=1e-5
    )


def test_heads_are_scored_with_the_inverse_relation(run: LinkRun) -> None:
    best = run.predict(relation="lives in", tail="town 1", top=1)[0]
    assert best.score == pytest.approx(
        score(run, "town 1", "inverse of lives in", best.name), abs=1e-5
    )


def test_the_relations_of_a_pair_are_scored_each_on_its_own(run: LinkRun) -> None:
    answers = run.predict(head="person 0", tail="person 1", include_known=True)
    assert len(answers) == 4  # two relations, both ways
    for answer in answers:
        assert answer.score == pytest.approx(
            score(run, "person 0", answer.name, "person 1"), abs=1e-5
        )
    assert {answer.name for answer in answers if answer.is_known} == set(
        run.known(head="person 0", tail="person 1")
    )


def test_known_answers_can_be_limited_to_splits(run: LinkRun) -> None:
    assert run.known(head="person 31", relation="married to", splits=("train",)) == []
    assert run.known(head="person 31", relation="married to", splits=("test",)) == ["person 30"]


def test_one_fact_is_asked_about_at_a_time(run: LinkRun) -> None:
    with pytest.raises(InputError, match=r"head must be one name, got \['person 0', 'person 1'\]"):
        run.predict(head=["person 0", "person 1"], relation="lives in")  # type: ignore[arg-type]


def test_one_name_is_not_taken_for_a_list_of_letters(run: LinkRun) -> None:
    with pytest.raises(InputError, match=r"give a list of node names, such as \['town 0'\]"):
        run.embed("town 0")


@pytest.mark.parametrize("device", ["gpu", "mps"])
def test_an_unknown_device_is_named_with_those_there_are(run: LinkRun, device: str) -> None:
    with pytest.raises(InputError, match=f"unknown device '{device}'; it is cpu, cuda or cuda:N"):
        load(run.folder, device=device)
    with pytest.raises(InputError, match=f"unknown device '{device}'"):
        run.to(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_gpu_that_is_not_there_is_an_error_that_says_what_to_do(run: LinkRun) -> None:
    with pytest.raises(InputError, match="there is no CUDA device here; leave the device out"):
        load(run.folder, device=torch.device("cuda"))


@given(st.lists(st.sampled_from([-np.inf, 0.0, 0.5, 1.0]), max_size=12), st.integers(1, 15))
def test_the_best_come_first_and_of_equals_the_first(scores: list[float], top: int) -> None:
    expected = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:top]
    assert best_first(np.array(scores), top).tolist() == expected


def test_vectors_come_with_their_names(run: LinkRun) -> None:
    vectors, relations = run.vectors(), run.relation_vectors()

    assert vectors.names == run.node_names() and np.array_equal(vectors, run.embed())
    assert np.array_equal(run.vectors(["town 1"]), vectors[["town 1"]])
    assert relations.names[:3] == ["married to", "lives in", "inverse of married to"]
    np.testing.assert_array_equal(
        relations["lives in"], run.model.relation_vectors()[1].detach().numpy()
    )


def test_vectors_of_an_updated_run_leave_removed_nodes_out(tmp_path: Path, run: LinkRun) -> None:
    opened = load_links(copytree(run.folder, tmp_path / "run"))

    update_run(opened, remove_nodes=["town 1"])
    vectors = opened.vectors()

    assert "town 1" not in vectors and vectors.names == opened.node_names()
    np.testing.assert_array_equal(vectors["town 0"], opened.embed(["town 0"])[0])
