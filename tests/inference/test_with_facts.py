"""Assumed facts: new and changed nodes get vectors without training."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.inference.fresh_vectors import facts_of, fresh_vectors
from tests.tasks.couples import couples, experiment

from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.errors import InputError
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.inference.update import update_run
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment

NEW = [
    ("person 40", "lives in", "town 1"),
    ("person 41", "lives in", "town 1"),
    ("person 40", "married to", "person 41"),
    ("person 0", "lives in", "town 2"),
]


def trained(folder: Path, settings: Experiment) -> LinkRun:
    run_experiment(LinkPrediction(settings, couples()), RunOptions(folder, torch.device("cpu")))
    return load_links(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LinkRun:
    return trained(tmp_path_factory.mktemp("runs") / "run", experiment(epochs=4))


def test_vectors_are_those_of_the_graph_with_the_facts(run: LinkRun) -> None:
    assumed = run.with_facts(NEW)
    torch.testing.assert_close(assumed.node_vectors, fresh_vectors(assumed))
    assert len(assumed.node_vectors) == len(run.node_vectors) + 2
    assert facts_of(assumed) == facts_of(run) | set(NEW)


def test_the_run_itself_stays_as_it_was(run: LinkRun) -> None:
    before, facts = run.node_vectors.clone(), facts_of(run)
    run.with_facts(NEW).predict(head="person 40", relation="married to")
    assert torch.equal(run.node_vectors, before) and facts_of(run) == facts
    with pytest.raises(InputError, match="unknown node 'person 40'"):
        run.predict(head="person 40", relation="married to")


def test_facts_may_be_assumed_on_top_of_assumed_ones(run: LinkRun) -> None:
    twice = run.with_facts(NEW[:2]).with_facts(NEW[2:])
    torch.testing.assert_close(twice.node_vectors, run.with_facts(NEW).node_vectors)


def test_a_new_node_can_be_queried_and_be_an_answer(run: LinkRun) -> None:
    assumed = run.with_facts(NEW)
    answers = assumed.predict(head="person 40", relation="married to", include_known=True, top=60)
    assert {answer.name for answer in answers} >= {"person 41", "person 0"}
    known = [answer.name for answer in answers if answer.is_known]
    assert known == ["person 41"] == assumed.known(head="person 40", relation="married to")
    back = assumed.predict(relation="married to", tail="person 41", include_known=True, top=60)
    scores = {answer.name: answer.score for answer in back}
    vectors, names = assumed.node_vectors, assumed.dataset.names
    inverse = run.model.relation_vectors()[names.relation_id("inverse of married to")]
    for name in ("person 40", "person 5"):
        pair = vectors[names.node_id("person 41")], vectors[names.node_id(name)]
        expected = run.model.decoder.score(pair[0], inverse, pair[1]).item()
        assert scores[name] == pytest.approx(expected, abs=1e-5)


def test_vectors_by_name_are_rows_of_the_whole(run: LinkRun) -> None:
    assumed = run.with_facts(NEW)
    ids = [assumed.dataset.names.node_id(name) for name in ("person 41", "town 0", "person 0")]
    rows = torch.from_numpy(assumed.embed(["person 41", "town 0", "person 0"]))
    assert torch.equal(rows, assumed.node_vectors[ids])
    assert torch.equal(torch.from_numpy(assumed.embed()), assumed.node_vectors)


def test_with_graph_layers_everything_is_computed_over_the_new_edges(tmp_path: Path) -> None:
    settings = replace(experiment(epochs=2), graph=GraphLayerSettings(layers=2))
    run = trained(tmp_path / "run", settings)
    torch.testing.assert_close(run.node_vectors, fresh_vectors(run))
    assumed = run.with_facts(NEW)
    torch.testing.assert_close(assumed.node_vectors, fresh_vectors(assumed))


def test_what_no_piece_stands_for_is_refused(run: LinkRun, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'born in' was not seen in training"):
        run.with_facts([("person 40", "born in", "town 1")])
    base = experiment(epochs=1)
    shallow = replace(base, encoder=replace(base.encoder, kind="lookup"))
    with pytest.raises(InputError, match="a trained vector for every node"):
        trained(tmp_path / "shallow", shallow).with_facts(NEW)


def test_walks_go_along_assumed_facts(tmp_path: Path) -> None:
    settings = replace(
        experiment(epochs=4, loss="cross-entropy", hide_targets=True), walks=WalkSettings(steps=2)
    )
    run = trained(tmp_path / "run", settings)
    asked = {"head": "person 40", "relation": "lives in", "top": 40, "include_known": True}
    assumed = run.with_facts(NEW).predict(**asked)  # type: ignore[arg-type]
    update_run(run, add=NEW)
    for answering in (run, load_links(run.folder)):
        lasting = answering.predict(**asked)  # type: ignore[arg-type]
        assert [answer.name for answer in lasting] == [answer.name for answer in assumed]
        assert [answer.score for answer in lasting] == pytest.approx(
            [answer.score for answer in assumed], rel=1e-5
        )
