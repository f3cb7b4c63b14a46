"""Stored changes to the graph of a run, in atomic batches and without training."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from nodepiece.decoders.unseen_nodes import refuse_without_pieces
from nodepiece.encoders.edge_rows import EdgeRows
from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.inference.candidates import Candidates
from nodepiece.inference.forked import refuse_after_fork
from nodepiece.inference.graph_update import StoredBatch, VectorRows, Vectors
from nodepiece.inference.graph_updates import (
    StoredState,
    commit_batch,
    is_latest,
    last_base,
    last_number,
    open_base,
    write_base,
    write_lock,
    write_trained_base,
)
from nodepiece.inference.links import LinkRun
from nodepiece.inference.opened_run import Run
from nodepiece.inference.patched_vectors import all_vectors_after, vectors_of
from nodepiece.inference.snapshot import Snapshot, switch
from nodepiece.tasks.run_folder import METRICS
from nodepiece.tokenizer.changing_graph import Change, NamedFacts
from nodepiece.tokenizer.changing_tokens import Consequences


@dataclass(frozen=True)
class Updated:
    """The counts of an update."""

    num_added: int  # facts
    num_removed: int  # facts, those of removed nodes included
    num_new_nodes: int
    num_gone_nodes: int
    num_known: int  # facts to add that were there already, left out
    num_absent: int  # facts to remove that were not there, left out
    num_tokens: int  # nodes whose pieces are new or different
    num_vectors: int  # nodes whose vectors were computed


def update_run(
    run: Run,
    *,
    add: NamedFacts = (),
    remove: NamedFacts = (),
    add_nodes: Sequence[str] = (),
    remove_nodes: Sequence[str] = (),
) -> Updated:
    """Commit a batch of changes to the graph of a run; later queries use the new graph.

    The commit is atomic. The first update computes the vectors of all nodes and stores them with
    the run. An update that changes nothing writes nothing.
    """
    run = updatable(run)
    with exclusive_update(run):
        slot = run.snapshot.slot
        with slot.reading():
            plan = run.graph.plan(
                add=add, remove=remove, add_nodes=add_nodes, remove_nodes=remove_nodes
            )
        batch = None if plan.is_empty else commit(run, plan)
    return Updated(
        len(plan.batch.added),
        len(plan.batch.removed),
        len(plan.new_nodes),
        len(plan.removed_nodes),
        plan.num_known,
        plan.num_absent,
        0 if batch is None else len(batch.tokens.nodes),
        0 if batch is None else len(batch.vectors.nodes),
    )


def keep_vectors(run: Run) -> int:
    """Store the vectors of all nodes with a run; returns the number of vectors computed.

    Otherwise they are computed at the first query, each time a run is opened.
    """
    run = updatable(run)
    with exclusive_update(run):
        if run.updates is not None:  # an update has stored them
            return 0
        write_first_base(run)
    return run.dataset.num_nodes


def updatable(run: Run) -> LinkRun:
    refuse_after_fork()
    if not isinstance(run, LinkRun):
        raise InputError(
            f"{run.folder} is a run of {run.experiment.task} and cannot be updated; "
            f"{run.for_other_facts()}"
        )
    if not (run.folder / METRICS).is_file():
        raise InputError(f"{run.folder} is not finished; finish it before its graph is updated")
    if run.is_hypothetical:
        raise InputError(
            "this run has assumed facts, or facts left out, which are not stored; update the run "
            "itself, and add or remove these facts"
        )
    refuse_without_pieces(run.model)
    return run


@contextmanager
def exclusive_update(run: LinkRun) -> Iterator[None]:
    """Hold the write lock of a run that is up to date; refuse a folder that was replaced."""
    run.opened.files.check()  # before a lock is created in the folder of another run
    with write_lock(run.folder):
        run.opened.files.check()
        is_latest_state = run.updates is not None and is_latest(run.folder, run.updates.state)
        if not (is_latest_state or run.is_up_to_date(last_number(run.folder))):
            run.refresh()
        yield


def commit(run: LinkRun, plan: Change, *, compacts: bool = True) -> StoredBatch:
    """Apply a planned change to the graph in memory, and commit it as a batch on disk.

    compacts: merge batches into a new base when there are many; else the caller does.

    After an error the run has the state on disk again: without the batch, unless the error came
    after its commit.
    """
    if run.updates is None:
        write_first_base(run)
    snapshot = run.snapshot
    slot = snapshot.slot
    try:
        with slot.reading():  # others read too, until the graph itself is changed
            found = snapshot.graph.tokens.consequences(plan.batch)
            vectors = changed_vectors(snapshot, plan, found)
        batch = StoredBatch(plan, found.rows, vectors)
        is_first = snapshot.version == 0  # since the run was opened
        commit_batch(run.folder, (snapshot.number or 0) + 1, batch, cleans=is_first)
        switch(snapshot, snapshot.after(batch), batch, found, run.publish)
    except BaseException:
        slot.drop()  # as memory and disk may differ
        run.snapshot = run.snapshot_on_disk()
        raise
    if compacts and run.updates is not None and run.updates.state.needs_compaction:
        compact(run)
    return batch


def write_first_base(run: LinkRun) -> None:
    """Write the graph and all vectors of a run, as it was trained, to the run folder."""
    opened = run.opened
    write_trained_base(
        run.folder, run.task.graph, opened.table, all_vectors(run), opened.files.model_hash
    )
    run.snapshot = run.snapshot.rebased(open_base(run.folder, 0, opened.files.model_hash))


def changed_vectors(snapshot: Snapshot, plan: Change, found: Consequences) -> VectorRows:
    """The vectors that are new or different after a change; with graph layers, those of all."""
    model, rows = snapshot.model, found.rows
    if not model.layers:
        return VectorRows(rows.nodes, vectors_of(model, rows).cpu().numpy())
    graph, tokens = plan.on(snapshot.dataset.train), snapshot.graph.tokens
    vectors = all_vectors_after(model, rows, tokens=tokens, graph=graph)
    return VectorRows(np.arange(graph.num_nodes, dtype=np.int32), vectors.cpu().numpy())


def compact(run: LinkRun) -> None:
    """Merge all batches into a new base."""
    use_base(run, write_compacted(run, run.snapshot))


@dataclass(frozen=True, eq=False)
class Compacted:
    """A base, opened, and the indices of its facts."""

    state: StoredState
    candidates: Candidates | None = None  # None: those of the current snapshot are kept
    edge_rows: EdgeRows | None = None  # None: the same


def write_compacted(run: LinkRun, snapshot: Snapshot) -> Compacted:
    """Write a base of an updated snapshot, and open it.

    Other threads may commit further batches meanwhile, as a snapshot does not change.
    """
    updates = snapshot.updates
    if updates is None:
        raise ValueError("a run without updates has no batches")
    number, model_hash = updates.state.number, run.opened.files.model_hash
    table = updates.table(build_adjacency(updates.graph))
    vectors = snapshot.patched.whole.cpu().numpy()
    write_base(
        run.folder, number, updates.graph.triples, snapshot.is_present, table, vectors, model_hash
    )
    candidates = Candidates(snapshot.dataset, snapshot.absent).build(snapshot.candidates)
    rows = EdgeRows.of_graph(updates.graph) if "edge_rows" in snapshot.__dict__ else None
    return Compacted(open_base(run.folder, number, model_hash), candidates, rows)


def use_base(run: LinkRun, base: Compacted) -> None:
    """Replace the base of the current snapshot, and the batches up to it, by a later base.

    Unless another process has written a still later one: `is_latest` relies on that removing this.
    """
    if not is_later_base(run, base.state.number) or last_base(run.folder) != base.state.number:
        return
    snapshot = run.snapshot
    state = snapshot.updates.state if snapshot.updates is not None else base.state
    later = state.batches[base.state.number - state.base_number :]
    based = replace(base.state, number=state.number, batches=later)
    run.snapshot = snapshot.rebased(based, base.candidates, base.edge_rows)


def use_base_on_disk(run: LinkRun, number: int) -> None:
    """Use a base that another process wrote."""
    if is_later_base(run, number):
        use_base(run, Compacted(open_base(run.folder, number, run.opened.files.model_hash)))


def is_later_base(run: LinkRun, number: int) -> bool:
    """Whether a base is not in use already, nor of batches that are not read yet."""
    updates = run.snapshot.updates
    return updates is not None and updates.state.base_number < number <= updates.state.number


def all_vectors(run: LinkRun) -> Vectors:
    """The vectors of all nodes, removed ones included, as ids do not change."""
    return run.node_vectors.cpu().numpy()
