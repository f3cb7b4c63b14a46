"""Walks after updates, assumed facts and facts left out, against the graph sorted afresh."""

import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tasks.couples import couples, experiment
from torch import Tensor

from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.inference import graph_updates
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.inference.snapshot import Snapshot
from nodepiece.inference.update import update_run
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tokenizer.changing_graph import NamedFact

IDA = ("Ida", "lives in", "town 1")
JO = ("Jo", "lives in", "town 2")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    walks = WalkSettings(steps=3, counts=False, max_degree=12)  # town 0 has more
    chosen = replace(experiment(epochs=1, hide_targets=True), walks=walks)
    run_experiment(LinkPrediction(chosen, couples()), RunOptions(folder, torch.device("cpu")))
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> LinkRun:
    return load_links(shutil.copytree(trained, tmp_path / "run"))


def scores(snapshot: Snapshot) -> Tensor:
    """The scores of all queries with one relation and one inverse."""
    heads = torch.arange(snapshot.dataset.num_nodes)
    relations = torch.arange(4).repeat(len(heads))[: len(heads)]
    return snapshot.score_tails(heads, relations)


def scores_of_all_edges(snapshot: Snapshot) -> Tensor:
    """The same, with walks over an edge index of all facts."""
    graph, model = snapshot.dataset.train, snapshot.model
    index = EdgeIndex(torch.tensor(with_inverses(graph)), graph.num_nodes, model.num_relations)
    followed = PathGraph(index, model.relation_vectors())
    other = replace(snapshot)
    other.__dict__.update(snapshot.__dict__)
    object.__setattr__(other, "path_graph", lambda: followed)
    return scores(other)


def random_update(run: LinkRun, rng: np.random.Generator) -> None:
    names, facts = run.snapshot.names, run.snapshot.dataset.train.triples
    gone = facts[rng.choice(len(facts), 3, replace=False)]
    present = np.flatnonzero(run.snapshot.is_present)
    ends = [names.node(node) for node in rng.choice(present, 4)]
    ends.append(f"new {rng.integers(4)}")
    add: list[NamedFact] = [
        (ends[rng.integers(5)], names.relation(int(rng.integers(2))), ends[rng.integers(5)])
        for _ in range(4)
    ]
    remove = [(names.node(h), names.relation(r), names.node(t)) for h, r, t in gone.tolist()]
    remove = [fact for fact in remove if fact not in add]
    touched = {end for fact in add for end in (fact[0], fact[2])}
    nodes = [names.node(node) for node in rng.choice(present, 1) if rng.random() < 0.3]
    nodes = [node for node in nodes if node not in touched]
    remove = [fact for fact in remove if not {fact[0], fact[2]} & set(nodes)]
    update_run(run, add=add, remove=remove, remove_nodes=nodes)


@pytest.mark.parametrize("seed", range(3))
def test_scores_follow_updates_and_earlier_snapshots_keep_theirs(run: LinkRun, seed: int) -> None:
    rng, states = np.random.default_rng(seed), [(run.snapshot, scores(run.snapshot))]
    for _ in range(6):
        random_update(run, rng)
        assert "edge_rows" in run.snapshot.__dict__
        states.append((run.snapshot, scores(run.snapshot)))
        torch.testing.assert_close(states[-1][1], scores(load_links(run.folder).snapshot))
    for snapshot, before in states:
        assert torch.equal(scores(snapshot), before)


def test_queries_after_an_update_put_no_facts_and_no_edges_together(run: LinkRun) -> None:
    candidates = run.snapshot.candidates
    _ = candidates.known_tails, candidates.has_loops, run.snapshot.edge_rows
    update_run(run, add=[IDA])
    update_run(run, add=[JO])
    run.predict_many([("Ida", "lives in", None)])
    run.with_facts([("Kim", "lives in", "town 1")]).predict_many([("Kim", "lives in", None)])
    snapshot = run.snapshot
    assert "edge_index" not in snapshot.__dict__
    assert "triples" not in snapshot.dataset.train.__dict__
    assert snapshot.edge_rows.num_nodes == snapshot.dataset.num_nodes


def test_walks_follow_assumed_facts(run: LinkRun) -> None:
    assumed = run.with_facts([IDA, ("Ida", "married to", "person 3")]).snapshot
    torch.testing.assert_close(scores(assumed), scores_of_all_edges(assumed))
    assert "edge_index" not in assumed.__dict__


def test_walks_do_not_follow_facts_that_are_left_out(run: LinkRun) -> None:
    update_run(run, add=[IDA, ("Ida", "married to", "person 3")])
    facts = [("person 0", "married to", "person 1"), ("Ida", "married to", "person 3")]
    less = run.without_facts(facts).snapshot
    found = scores(less)
    torch.testing.assert_close(found, scores_of_all_edges(less))
    assert "edge_index" not in run.snapshot.__dict__  # no mask of all edges was needed
    graph = less.path_graph()
    assert graph.edge_mask is not None and int((graph.edge_mask == 0).sum()) == 4
    assert not torch.equal(found, scores(run.snapshot))
    again = run.with_facts([JO]).without_facts([JO]).snapshot
    torch.testing.assert_close(scores(again)[:45, :45], scores(run.snapshot)[:45, :45])


def test_a_compaction_sorts_the_rows_again(run: LinkRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_updates, "COMPACT_AFTER", 2)
    _ = run.snapshot.edge_rows
    update_run(run, add=[IDA])
    assert not run.snapshot.edge_rows.is_base
    update_run(run, add=[JO])
    assert run.snapshot.edge_rows.is_base
    torch.testing.assert_close(scores(run.snapshot), scores(load_links(run.folder).snapshot))
    update_run(run, remove=[JO])
    torch.testing.assert_close(scores(run.snapshot), scores(load_links(run.folder).snapshot))


def test_readers_of_an_earlier_snapshot_are_not_disturbed_by_updates(run: LinkRun) -> None:
    update_run(run, add=[IDA])
    snapshot, is_done = run.snapshot, threading.Event()
    expected, differences = scores(snapshot), []

    def read() -> None:
        while not is_done.is_set():
            differences.append(not torch.equal(scores(snapshot), expected))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(20):
            update_run(run, add=[(f"new {number}", "married to", "Ida")])
    finally:
        is_done.set()
        reader.join()
    assert differences and not any(differences)
    torch.testing.assert_close(scores(run.snapshot), scores(load_links(run.folder).snapshot))


def test_an_explanation_has_the_facts_of_its_graph_after_updates(run: LinkRun) -> None:
    update_run(run, add=[IDA, ("Ida", "married to", "person 3")])
    update_run(run, remove=[("person 0", "married to", "person 1")], add=[JO])
    one = run.explain(head="person 3", relation="lives in", tail="town 1")
    other = load_links(run.folder).explain(head="person 3", relation="lives in", tail="town 1")
    assert [path.steps for path in one.paths] == [path.steps for path in other.paths]
    assert [path.score for path in one.paths] == pytest.approx([p.score for p in other.paths])
    assert one.necessary == other.necessary
