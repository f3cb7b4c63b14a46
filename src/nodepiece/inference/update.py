"""Lasting changes to the graph of a run: whole batches, beside the run, without training."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nodepiece.decoders.row_vectors import encoder_of
from nodepiece.errors import InputError
from nodepiece.inference.changed_vectors import vectors_after
from nodepiece.inference.links import LinkRun
from nodepiece.inference.live_batch import StoredBatch, VectorRows, Vectors
from nodepiece.inference.live_store import (
    commit_batch,
    last_number,
    start_live,
    write_base,
    writing,
)
from nodepiece.inference.opened_run import Run
from nodepiece.tokenizer.changing_graph import Change, NamedFacts
from nodepiece.tokenizer.storage import load_tokens


@dataclass(frozen=True)
class Updated:
    """What an update came to."""

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
    """Let a batch happen to the graph of a run, for good, and let the run answer by it.

    It happens wholly or not at all, whenever the process ends. The first update computes the
    vectors of all nodes and lays them beside the run. One that comes to nothing leaves no trace.
    """
    run = updatable(run)
    with writing(run.folder):
        if not run.is_up_to_date(last_number(run.folder)):
            run.look_again()
        plan = run.graph.plan(
            add=add, remove=remove, add_nodes=add_nodes, remove_nodes=remove_nodes
        )
        batch = None if plan.is_empty else let_happen(run, plan)
    return Updated(
        len(plan.batch.added),
        len(plan.batch.removed),
        len(plan.new_nodes),
        len(plan.gone),
        plan.num_known,
        plan.num_absent,
        0 if batch is None else len(batch.tokens.nodes),
        0 if batch is None else len(batch.vectors.nodes),
    )


def keep_vectors(run: Run) -> int:
    """Lay the vectors of all nodes beside a run, for whoever opens it later; how many were new.

    Without them they are computed at the first question, whenever a run is opened.
    """
    run = updatable(run)
    with writing(run.folder):
        if not run.is_up_to_date(last_number(run.folder)):
            run.look_again()
        if run.live is not None:  # an update has laid them out
            return 0
        lay_out(run)
    return run.dataset.num_nodes


def updatable(run: Run) -> LinkRun:
    if not isinstance(run, LinkRun):
        raise InputError(
            f"{run.folder} is a run of {run.experiment.task} and cannot be updated; a run of link "
            "prediction can"
        )
    if run.is_supposed:
        raise InputError(
            "this run answers as if some facts were known, and they would not last; update the "
            "run itself, with these facts among those to add"
        )
    encoder_of(run.model)
    return run


def let_happen(run: LinkRun, plan: Change) -> StoredBatch:
    """In memory, then on disk; where one of them fails, in neither."""
    if run.live is None:
        lay_out(run)
    try:
        batch = carry_out(run, plan)
        commit_batch(run.folder, (last_number(run.folder) or 0) + 1, batch)
    except BaseException:
        run.look_again()  # at what is on disk, as memory may be ahead of it
        raise
    take_over(run)
    if run.live is not None and run.live.state.wants_folding:
        fold(run, run.live.state.number)
    return batch


def lay_out(run: LinkRun) -> None:
    """The graph and all vectors of a run as it was trained, beside it."""
    table = load_tokens(run.folder / "vocabulary", graph=run.task.graph)
    start_live(run.folder, run.task.graph, table, all_vectors(run), run.model_hash)
    take_over(run)


def carry_out(run: LinkRun, plan: Change) -> StoredBatch:
    """Change the graph of a run in memory, and compute what that changes."""
    before, tokens = run.patched, run.graph.tokens
    rows = run.graph.apply(plan)
    graph = plan.on(run.dataset.train)
    after = vectors_after(run.model, before, rows, tokens=tokens, graph=graph)
    is_whole = bool(run.model.layers)
    nodes = np.arange(graph.num_nodes, dtype=np.int32) if is_whole else rows.nodes
    vectors = after.rows(torch.tensor(nodes, dtype=torch.int64)).cpu().numpy()
    return StoredBatch(plan, rows, VectorRows(nodes, vectors))


def take_over(run: LinkRun) -> None:
    """Let a run answer by what is on disk; its graph is at that state already."""
    graph = run.graph
    run.look_again()
    run.graph = graph


def fold(run: LinkRun, number: int) -> None:
    """Put all batches into a new base."""
    facts, table = run.dataset.train.triples, run.graph.table()
    vectors = all_vectors(run)
    write_base(run.folder, number, facts, run.is_present, table, vectors, run.model_hash)
    take_over(run)


def all_vectors(run: LinkRun) -> Vectors:
    """Those of removed nodes included, as ids stay what they are."""
    return run.vectors.cpu().numpy()
