"""A snapshot that follows a batch is the one that is read from disk."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.evaluation.all_answers import all_answers
from tests.inference.fresh_vectors import facts_of, fresh_vectors

from nodepiece.errors import InputError
from nodepiece.inference import graph_updates
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.inference.update import compact, update_run, use_base, write_compacted
from nodepiece.inference.update_groups import Committed, GraphUpdate, commit_group, groups_of

IDA = ("Ida", "lives in", "town 1")
JO = ("Jo", "lives in", "town 2")


def build_indices(run: LinkRun) -> None:
    candidates = run.snapshot.candidates
    _ = candidates.known_tails, candidates.known_relations, candidates.has_loops
    _ = candidates.num_facts, run.snapshot.patched


def assert_as_on_disk(run: LinkRun) -> None:
    found, expected = run.snapshot, load_links(run.folder).snapshot
    assert facts_of(run) == facts_of(load_links(run.folder))
    for name in ("known_tails", "known_relations"):
        one, other = getattr(found.candidates, name), getattr(expected.candidates, name)
        assert all_answers(one) == all_answers(other), name
    counts = found.candidates.num_facts.whole()
    np.testing.assert_array_equal(counts, expected.candidates.num_facts.whole())
    np.testing.assert_array_equal(found.candidates.has_loops, expected.candidates.has_loops)
    np.testing.assert_array_equal(found.is_present, expected.is_present)
    torch.testing.assert_close(found.patched.whole, expected.patched.whole)
    torch.testing.assert_close(run.node_vectors, fresh_vectors(run))


def test_indices_follow_facts_and_nodes_that_come_and_go(run: LinkRun) -> None:
    build_indices(run)
    update_run(run, add=[IDA, ("town 1", "lives in", "town 1")])
    update_run(run, remove=[("person 0", "lives in", "town 1")], add=[JO])
    update_run(run, remove_nodes=["Ida", "person 3"])
    update_run(run, add=[IDA], remove=[("town 1", "lives in", "town 1")])
    assert_as_on_disk(run)


def test_a_fact_of_the_test_split_stays_known_when_an_update_removes_it(run: LinkRun) -> None:
    names = run.dataset.names
    head, _, tail = (names.node(node) for node in run.dataset.test[0].tolist())
    fact = (head, "married to", tail)
    build_indices(run)
    update_run(run, add=[fact])
    update_run(run, remove=[fact])
    assert_as_on_disk(run)
    assert run.known(head=head, relation="married to") == [tail]


def test_a_reader_follows_the_batches_of_another_process(run: LinkRun) -> None:
    update_run(run, add=[IDA])
    reader = load_links(run.folder)
    build_indices(reader)
    reader.with_facts([JO])  # opens the graph that follows
    update_run(run, add=[JO])
    update_run(run, remove_nodes=["Ida"])
    known = reader.snapshot.candidates.known_tails
    reader.refresh()
    assert reader.snapshot.number == 3
    assert reader.snapshot.candidates.known_tails is not known
    assert_as_on_disk(reader)
    assumed = reader.with_facts([("Kim", "married to", "Jo")])
    torch.testing.assert_close(assumed.node_vectors, fresh_vectors(assumed))


def test_a_reader_that_missed_a_compaction_reads_the_new_base(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_updates, "COMPACT_AFTER", 2)
    update_run(run, add=[IDA])
    reader = load_links(run.folder)
    for n in range(4):
        update_run(run, add=[(f"new {n}", "lives in", "town 1")])
    reader.refresh()
    assert reader.snapshot.number == 5
    assert_as_on_disk(reader)


def test_batches_are_committed_while_earlier_ones_are_compacted(run: LinkRun) -> None:
    update_run(run, add=[IDA])
    before = run.snapshot
    update_run(run, add=[JO])
    use_base(run, write_compacted(run, before))
    assert run.updates is not None
    assert run.updates.state.base_number == 1 and len(run.updates.state.batches) == 1
    assert_as_on_disk(run)
    update_run(run, remove_nodes=["Jo"])
    assert_as_on_disk(run)


def test_a_group_is_one_batch_and_a_refused_update_fails_alone(run: LinkRun) -> None:
    kim = ("Kim", "knows", "Ida")
    group = [GraphUpdate(add=(IDA,)), GraphUpdate(add=(kim,)), GraphUpdate(add=(JO,))]
    first, second, third = commit_group(run, group)
    assert first == Committed(1, 1, 0, 1) and third == Committed(1, 1, 0, 1)
    assert isinstance(second, InputError) and "not seen in training" in str(second)
    assert_as_on_disk(run)


def test_updates_that_affect_each_other_are_not_one_batch() -> None:
    updates = [
        GraphUpdate(add=(IDA,)),
        GraphUpdate(add=(JO,)),
        GraphUpdate(remove=(IDA,)),  # as it is to be added first
        GraphUpdate(remove_nodes=("Jo",)),
        GraphUpdate(add=(JO,)),
        GraphUpdate(add=(JO,)),  # the second one adds nothing
    ]
    sizes = [len(group) for group in groups_of(updates)]
    assert sizes == [2, 2, 1, 1]


def test_groups_have_the_result_of_one_update_after_the_other(
    run: LinkRun, trained: Path, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    updates = []
    for _ in range(40):
        facts = [(f"n {rng.integers(4)}", "lives in", f"town {rng.integers(3)}") for _ in range(2)]
        kind = rng.integers(4)
        removed = (facts[0],) if kind == 1 else ()
        nodes = (facts[0][0],) if kind == 2 else ()
        updates.append(GraphUpdate(tuple(facts) if kind in (0, 3) else (), removed, nodes))
    together = [each for group in groups_of(updates) for each in commit_group(run, group)]
    other = load_links(shutil.copytree(trained, tmp_path / "other"))
    alone = [each for update in updates for each in commit_group(other, [update])]
    assert facts_of(run) == facts_of(other)
    for one, another in zip(together, alone, strict=True):
        if isinstance(one, Committed) and isinstance(another, Committed):
            assert (one.num_added, one.num_removed, one.num_new_nodes) == (
                another.num_added,
                another.num_removed,
                another.num_new_nodes,
            )
        else:
            assert str(one) == str(another)


def test_a_fact_between_two_nodes_that_are_removed_is_counted_once(run: LinkRun) -> None:
    update_run(run, add=[("Ida", "lives in", "new town")])
    updates = [GraphUpdate(remove_nodes=(name,)) for name in ("Ida", "new town")]
    assert list(groups_of(updates)) == [updates]
    assert commit_group(run, updates) == [Committed(2, 0, 1, 0), Committed(2, 0, 0, 0)]


def test_a_base_that_is_written_after_a_later_one_is_not_used(run: LinkRun) -> None:
    update_run(run, add=[IDA])
    snapshot, other = run.snapshot, load_links(run.folder)
    update_run(other, add=[("Kim", "lives in", "town 1")])
    compact(other)  # while another thread of this process writes the base of `snapshot`
    use_base(run, write_compacted(run, snapshot))
    commit_group(run, [GraphUpdate(add=(JO,))])
    assert {"Ida", "Jo", "Kim"} <= set(load_links(run.folder).node_names())
    assert_as_on_disk(run)
