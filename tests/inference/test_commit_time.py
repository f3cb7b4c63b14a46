"""A commit copies nothing of the size of the graph, and those who read do not wait for it."""

import threading
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from nodepiece.inference import update as updates
from nodepiece.inference.graph_updates import commit_batch
from nodepiece.inference.links import LinkRun
from nodepiece.inference.node_features import node_features
from nodepiece.inference.run import load_links
from nodepiece.inference.snapshot import Snapshot
from nodepiece.inference.update import update_run
from nodepiece.tokenizer.changing_graph import Change, NamedFact
from nodepiece.tokenizer.token_rows import TokenRows

IDA = ("Ida", "lives in", "town 1")
JO = ("Jo", "lives in", "town 2")


def test_a_commit_shares_all_arrays_with_the_state_before(run: LinkRun) -> None:
    update_run(run, add=[IDA])
    before = run.snapshot
    _ = before.candidates.known_tails, before.candidates.num_facts, before.patched
    update_run(run, add=[JO], remove=[IDA])
    after = run.snapshot
    assert np.shares_memory(
        before.candidates.known_tails.answers, after.candidates.known_tails.answers
    )
    assert before.candidates.num_facts.base is after.candidates.num_facts.base
    assert before.patched.base is after.patched.base
    assert before.patched.patch.data_ptr() == after.patched.patch.data_ptr()
    addresses = [each.names.nodes.buffers()[2].address for each in (before, after)]
    assert addresses[0] == addresses[1]


def test_queries_after_a_commit_do_not_put_all_facts_together(run: LinkRun) -> None:
    candidates = run.snapshot.candidates
    _ = candidates.known_tails, candidates.has_loops
    update_run(run, add=[IDA])
    update_run(run, add=[JO])
    run.predict_many([("Jo", "lives in", None)])
    run.score([("Jo", "lives in", "town 1")])
    run.with_facts([("Kim", "lives in", "town 1")]).predict_many([("Kim", "lives in", None)])
    graph = run.snapshot.dataset.train
    assert "triples" not in graph.__dict__
    assert graph.num_triples == len(graph.triples) == run.task.graph.num_triples + 2


def rows_after(snapshot: Snapshot, added: Sequence[NamedFact]) -> list[TokenRows]:
    """The tokens of all nodes, and those that change, after facts between nodes of a snapshot."""
    names = snapshot.names
    facts = np.array(
        [(names.node_id(h), names.relation_id(r), names.node_id(t)) for h, r, t in added], np.int32
    )
    change = Change.removing(facts[:0])
    change = Change(type(change.batch)(facts, facts[:0]), (), *(facts[:0, 0],) * 2, 0, 0)
    nodes = np.arange(snapshot.dataset.num_nodes, dtype=np.int32)
    return [*snapshot.rows_after(nodes, [change]), snapshot.rows_changed_by(change)]


def test_an_earlier_snapshot_has_its_own_tokens_after_later_updates(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_run(run, add=[IDA])
    earlier = run.snapshot
    assumed = [("Ida", "married to", "person 3"), ("person 1", "lives in", "town 2")]
    known = min(fact for fact in named_facts(run) if fact[1] == "lives in")
    expected, expected_changes = rows_after(earlier, assumed)
    update_run(run, add=[JO, ("Jo", "married to", "Ida"), assumed[0]])
    update_run(run, remove=[known], remove_nodes=["Ida"])
    update_run(run, add=[("Kim", "lives in", "town 1"), known])

    def refuse(_: Snapshot) -> None:
        raise AssertionError("the whole graph was opened again")

    monkeypatch.setattr(Snapshot, "with_separate_graph", refuse)
    found, found_changes = rows_after(earlier, assumed)
    assert_same(found, expected)
    place = np.searchsorted(found_changes.nodes, expected_changes.nodes)
    same = found_changes.part(place)  # others that do not differ may be there
    assert_same(same, expected_changes)


def assert_same(found: TokenRows, expected: TokenRows) -> None:
    np.testing.assert_array_equal(found.nodes, expected.nodes)
    for name in ("anchors", "distances", "relations"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


def named_facts(run: LinkRun) -> set[NamedFact]:
    names = run.dataset.names
    return {
        (names.node(head), names.relation(relation), names.node(tail))
        for head, relation, tail in run.dataset.train.triples.tolist()
    }


def test_assumed_facts_and_explanations_do_not_wait_for_an_update(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_run(run, add=[IDA])
    run.explain(head="Ida", relation="lives in", tail="town 1")  # compiles what it needs
    is_writing, may_write = threading.Event(), threading.Event()
    commit = commit_batch

    def slow_commit(*arguments: object, **options: object) -> None:
        is_writing.set()
        assert may_write.wait(20)
        commit(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(updates, "commit_batch", slow_commit)
    writer = threading.Thread(target=update_run, args=(run,), kwargs={"add": [JO]})
    writer.start()
    assert is_writing.wait(20)
    try:
        answers = run.with_facts([("Kim", "lives in", "town 1")]).predict(
            head="Kim", relation="lives in"
        )
        assert answers and run.explain(head="Ida", relation="lives in", tail="town 1")
        assert run.snapshot.number == 1  # all that was before the update
    finally:
        may_write.set()
        writer.join()
    assert run.snapshot.number == 2


def test_hops_to_anchors_follow_updates(run: LinkRun) -> None:
    update_run(run, add=[IDA])
    assert run.updates is not None
    _ = run.updates.first_distances
    update_run(run, add=[JO, ("Jo", "married to", "person 3")])
    update_run(run, remove=[IDA])
    found, expected = run.updates, load_links(run.folder).updates
    assert found is not None and expected is not None
    nodes = np.arange(run.snapshot.dataset.num_nodes)
    assert "first_distances" in found.__dict__
    np.testing.assert_array_equal(
        found.first_distances.at(nodes), expected.first_distances.at(nodes)
    )
    table = found.table(run.snapshot.adjacency)
    np.testing.assert_array_equal(found.first_distances.at(nodes), table.distances[:, 0])


def test_an_assumed_node_is_the_same_whether_it_was_removed_or_never_there(run: LinkRun) -> None:
    assumed = run.with_facts([IDA]).snapshot
    new = node_features(assumed, np.array([assumed.names.node_id("Ida")]))
    update_run(run, add=[IDA])
    update_run(run, remove_nodes=["Ida"])
    assumed = run.with_facts([IDA]).snapshot
    found = node_features(assumed, np.array([assumed.names.node_id("Ida")]))
    np.testing.assert_array_equal(found, new)


def test_scores_are_those_of_the_decoder(run: LinkRun) -> None:
    update_run(run, add=[IDA])
    snapshot = run.snapshot
    heads, relations = torch.tensor([0, 3]), torch.tensor([1, 0])
    with torch.no_grad():
        vectors = snapshot.model.relation_vectors()[relations]
        expected = snapshot.model.decoder.score_all_tails(
            snapshot.patched.rows(heads), vectors, snapshot.patched.whole
        )
    torch.testing.assert_close(snapshot.score_tails(heads, relations), expected)
