"""A run as it is served: its name and its current state."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from starlette.responses import Response

from nodepiece.encoders.parameters import num_parameters
from nodepiece.errors import InputError
from nodepiece.graph.names import UnknownName
from nodepiece.inference.answer_index import ApproximateAnswers, open_answer_index
from nodepiece.inference.computed_once import computed_once
from nodepiece.inference.facts import FactRun
from nodepiece.inference.graph_updates import UpdateUnderWay, last_base, last_number
from nodepiece.inference.links import LinkRun
from nodepiece.inference.neighbour_index import IndexPlace
from nodepiece.inference.opened_run import Run
from nodepiece.inference.snapshot import Snapshot
from nodepiece.inference.update import updatable, use_base_on_disk
from nodepiece.serving.answers import PredictOptions, State, current_state, predict
from nodepiece.serving.batch_answers import AskedTogether, Unanswered, answer_together
from nodepiece.serving.batching import Batcher
from nodepiece.serving.follower import Follower
from nodepiece.serving.metrics import Metrics
from nodepiece.serving.models import NamedFact
from nodepiece.serving.name_ids import NameIds
from nodepiece.serving.node_finder import NodeFinder
from nodepiece.serving.node_record import graph_of, names_of
from nodepiece.serving.problems import Problem
from nodepiece.serving.service_pool import ComputePool
from nodepiece.serving.settings import ServeSettings
from nodepiece.serving.stored_map import StoredMap
from nodepiece.serving.versions import Versions
from nodepiece.serving.writer import GraphWriter
from nodepiece.tasks.run_folder import METRICS


class ServedRun:
    """A run that any number of requests read, each from one state."""

    def __init__(
        self, name: str, run: Run, settings: ServeSettings, pool: ComputePool, metrics: Metrics
    ) -> None:
        self.name, self.run, self.settings, self.metrics = name, run, settings, metrics
        self.batcher = Batcher(self.state, pool, self._answer, metrics.count_batch)
        why = why_not_writable(run) if settings.writable else "it is read-only"
        self.why_not_writable = self._without_folder(why)
        self.versions = Versions(lambda: self.version)
        self.approximate: ApproximateAnswers | None = None
        self.writer: GraphWriter | None = None
        self.follower: Follower | None = None

    @property
    def writable(self) -> bool:
        return not self.why_not_writable

    @property
    def version(self) -> int:
        """The number of the last update that answers have."""
        return (self.run.snapshot.number or 0) if isinstance(self.run, LinkRun) else 0

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Errors have the name of the run in place of its folder, which clients need not see."""
        try:
            yield
        except UnknownName:
            raise
        except InputError as error:
            kind = UpdateUnderWay if isinstance(error, UpdateUnderWay) else InputError
            raise kind(self._without_folder(str(error))) from error

    def _without_folder(self, text: str) -> str:
        folder = self.run.folder
        is_name = len(folder.parts) < 2  # "run" or ".", which say nothing about the machine
        return text if is_name else text.replace(str(folder), self.name)

    def state(self, assume: Sequence[NamedFact] = ()) -> State:
        return current_state(self.run, assume)

    def prepare(self) -> None:
        """Compute what the first requests would wait for, and start the writer."""
        state = self.state()
        if isinstance(state.run, FactRun):
            candidates = state.run.snapshot.candidates
            _ = candidates.known_tails, candidates.has_loops, candidates.num_facts
        if self.settings.approximate:
            self.approximate = approximate_answers(state.run)
        self._warm_up(state)
        _ = self.finder, self.ids
        if not isinstance(self.run, LinkRun):
            return
        if not self.writable or self.settings.forward_to is not None:
            self.follower = Follower(self.refresh, self.run.folder)
        else:
            self.writer = GraphWriter(
                self.run,
                capacity=self.settings.limits.queue,
                on_commit=self.metrics.count_commit,
                on_publish=self.versions.published,
            )

    def _warm_up(self, state: State) -> None:
        """Load what the first query and the first update use: compiled code, vectors, the graph."""
        graph, names = graph_of(state.run), names_of(state.run)
        state.run.embed(names.nodes[:1].to_pylist())
        if not graph.num_triples or not isinstance(state.run, FactRun):
            return
        head, relation, tail = graph.triples[0].tolist()
        fact = (names.node(head), names.relation(relation), names.node(tail))
        predict(state, [(fact[0], fact[1], None)], PredictOptions())
        if isinstance(self.run, LinkRun) and not why_not_writable(self.run):
            self.run.with_facts([(fact[0] + " ", fact[1], fact[2])])

    def close(self) -> None:
        """Commit the updates that were accepted."""
        if self.writer is not None:
            self.writer.close()
        if self.follower is not None:
            self.follower.close()

    async def wait_for(self, version: int, seconds: float) -> None:
        """Return when the run has a version, or raise a problem when it takes too long."""
        if not await self.versions.wait_for(version, seconds):
            raise Problem(
                503,
                f"version {version} of {self.name} is not here after {seconds:g} s; the graph "
                f"has version {self.version}",
                headers={"Retry-After": "1"},
            )

    def refresh(self) -> None:
        """Read updates of other processes from disk, if there are any."""
        run = self.run
        if self.writer is not None:
            return  # which does it between two batches
        if not isinstance(run, LinkRun):
            return
        if not run.is_up_to_date(last_number(run.folder)):
            run.refresh()
        self.versions.published()
        if (base := last_base(run.folder)) is not None:
            use_base_on_disk(run, base)  # else the batches of all updates would stay in memory

    @computed_once
    def map(self) -> StoredMap:
        return StoredMap(self.run)

    @computed_once
    def ids(self) -> NameIds:
        """Nodes and relations by name."""
        return NameIds(names_of(self.run))

    def _answer(
        self, state: State, asked: Sequence[AskedTogether], options: PredictOptions
    ) -> list[Response | Unanswered]:
        with self.named_errors():
            return answer_together(self.ids, state, asked, options, self.approximate)

    @computed_once
    def finder(self) -> NodeFinder:
        return NodeFinder(self.state())

    def record(self) -> dict[str, Any]:
        """What the list of runs has about the run."""
        return self._record(self.state())

    def _record(self, state: State) -> dict[str, Any]:
        run, graph = state.run, graph_of(state.run)
        return {
            "name": self.name,
            "task": run.experiment.task,
            "dataset": run.experiment.dataset,
            "num_nodes": run.num_nodes,
            "num_relations": graph.num_relations,
            "version": state.version,
            "writable": self.writable,
            "calibrated": isinstance(run, FactRun) and run.calibrated is not None,
        }

    def _approximate_record(self, state: State) -> dict[str, Any] | None:
        if self.approximate is None or not isinstance(state.run, LinkRun):
            return None
        return self.approximate.to_json(state.run.snapshot)

    def details(self) -> dict[str, Any]:
        """The record of the run with its model, its graph and its metrics."""
        state = self.state()
        experiment, graph = state.run.experiment, graph_of(state.run)
        return self._record(state) | {
            "model": {
                "encoder": experiment.encoder.kind,
                "decoder": experiment.decoder.kind,
                "dim": experiment.encoder.dim,
                "parameters": num_parameters(state.run.model),
                "anchors": state.run.opened.table.vocabulary.num_anchors,
            },
            "graph": {"facts": graph.num_triples, "nodes": state.run.num_nodes},
            "approximate": self._approximate_record(state),
            "metrics": read_metrics(self.run),
        }


def approximate_answers(run: Run) -> ApproximateAnswers:
    """The index of a run, whose recall is measured."""
    return open_answer_index(*index_place(run))


def index_place(run: Run) -> tuple[Snapshot, IndexPlace | None]:
    """The vectors of a run, and where their index is; a run that can have none is refused."""
    if not isinstance(run, LinkRun):
        raise InputError(
            f"{run.folder} is a run of {run.experiment.task}, which has no index of answers; leave "
            "out --approximate"
        )
    place = run.node_table().place
    return run.snapshot, None if place is None else place.for_answers()


def why_not_writable(run: Run) -> str:
    """Why the graph of a run cannot be updated; "" if it can."""
    try:
        updatable(run)
    except InputError as error:
        return str(error)
    return ""


def read_metrics(run: Run) -> dict[str, Any]:
    """The metrics after training; {} if the run was stopped before."""
    try:
        content: dict[str, Any] = json.loads((run.folder / METRICS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content
