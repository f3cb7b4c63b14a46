"""A trained run of any task, opened for queries by name."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import nn

from nodepiece.data.dataset import SPLITS
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.report import Report, Scores
from nodepiece.graph.short_text import plural
from nodepiece.inference.explanation import Explanation
from nodepiece.inference.forked import refuse_after_fork
from nodepiece.inference.named_vectors import NamedVectors
from nodepiece.inference.opened_files import OpenedFiles
from nodepiece.inference.search_progress import ShouldStop
from nodepiece.inference.similar import SIMILAR_SCHEMA, NodeVectors, similar_in_batches
from nodepiece.settings import Experiment
from nodepiece.tasks.task import Task
from nodepiece.tasks.train import choose_device
from nodepiece.tokenizer.changing_graph import NamedFacts
from nodepiece.tokenizer.tokens import TokenTable

EVALUATED = ("valid", "test")  # splits that may be empty

INTERNAL = {  # attributes of runs that other modules use, and users do not
    *("address", "encoded", "evaluator", "is_present", "is_up_to_date", "node_vectors", "opened"),
    *("patched", "other_graph", "snapshot", "snapshot_on_disk", "task", "updates"),
    *("answer_many", "answer_settings", "calibrated", "no_facts", "node_table", "num_trained"),
    *("for_other_facts", "is_hypothetical", "publish", "score_many", "similar_many"),
}


@dataclass(frozen=True)
class Prediction:
    """One possible answer. Higher scores are more plausible within one query."""

    name: str
    score: float
    is_known: bool  # stated in the training, validation or test facts
    probability: float | None = None  # of the fact, by this query; None: the run is not calibrated

    def to_json(self) -> dict[str, object]:
        """The answer as a dict, with its probability where there is one."""
        calibrated = {} if self.probability is None else {"probability": self.probability}
        return {"name": self.name, "score": self.score, **calibrated, "known": self.is_known}


@dataclass(frozen=True, eq=False)
class Opened:
    """What a run was opened from. Arrays are mapped, so they do not change."""

    files: OpenedFiles
    table: TokenTable  # of the graph that was trained on
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Address:
    """All that another process needs to open the same run."""

    folder: Path
    device: str
    overrides: tuple[str, ...]
    model_hash: str


class Run:
    """A run folder opened for queries; its task decides which queries are possible.

    Any number of threads may query one run: it answers from an immutable snapshot, each call uses
    the snapshot that is current when it begins, and an update (`update_run`) replaces it in one
    assignment. So a call sees the state before or after an update, never a mixture. `with_facts`
    and `on_graph` return another run and do not change this one. Only `to` moves the run itself:
    call it before threads share the run. A second update at the same time is refused.

    A run keeps using the files it opened, even if they are replaced later; an update of a folder
    that holds another run by then is refused.

    Processes: a spawned process opens the run itself, or receives it pickled by its folder, device
    and overrides, and opens it again in its latest state. The arrays are mapped, so processes share
    their memory. A process that was forked after runs were used lacks the threads of OpenMP, and a
    call there raises an InputError: fork before, or use spawn.
    """

    def __init__(self, opened: Opened, task: Task[Any], model: nn.Module) -> None:
        self.opened, self.task, self.model = opened, task, model

    def __repr__(self) -> str:
        size = plural(self.num_nodes, "node")
        return (
            f"{type(self).__name__}({str(self.folder)!r}: {self.experiment.task} on "
            f"{self.experiment.dataset!r}, {size}{self._state()})"
        )

    def __dir__(self) -> list[str]:
        """What users need; the rest serves the other modules of nodepiece."""
        return [name for name in super().__dir__() if name not in INTERNAL and name[:1] != "_"]

    def _state(self) -> str:
        """What else there is to say of the graph of the run, for `repr`."""
        return ""

    @property
    def num_nodes(self) -> int:
        """The number of nodes that the run knows."""
        return self.task.graph.num_nodes

    @property
    def num_trained(self) -> int:
        """The number of nodes that were trained on: those with larger ids arrived later."""
        return self.opened.table.num_nodes

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.opened.files.folder

    @property
    def address(self) -> Address:
        """What another process needs to open the same run."""
        device = next(self.model.parameters()).device
        files = self.opened.files
        return Address(
            files.folder.absolute(), str(device), self.opened.overrides, files.model_hash
        )

    def __copy__(self) -> Self:
        """Another handle on the opened run, without opening it again as unpickling does."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Another handle on the opened run: snapshots are immutable, so they are not copied."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        from nodepiece.inference.run import reopen  # imports this file

        return reopen, (self.address,)

    @property
    def experiment(self) -> Experiment:
        """The settings of the run."""
        return self.task.experiment

    def predict(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        top: int = 10,
        include_known: bool = False,
        seen_candidates: bool = False,
    ) -> list[Prediction]:
        """The likeliest answers to a fact with one part left out, best first, by name."""
        raise InputError(self.no_facts())

    def predict_many(
        self,
        queries: object,
        *,
        top: int = 10,
        include_known: bool = False,
        seen_candidates: bool = False,
        skip_unknown: bool = False,
        progress: Progress | None = None,
    ) -> pa.Table:
        """The likeliest answers to many queries, in their order, best first, as an Arrow table.

        `queries` are (head, relation, tail) by name with "?", "" or None for the part that is asked
        for, in any mix; an array of such rows; or a table (Arrow, pandas, polars) with these three
        columns. The columns of the result are `query` (the position of the query, from 0), `asked`,
        `head`, `relation`, `tail`, `score`, `rank`, in a run with a calibration `probability` (by
        this query alone), and with `include_known` also `known`. Answers are those of `predict`.
        `seen_candidates` leaves out nodes that the graph does not have at that end of the relation.
        A query that cannot be answered is an InputError; with `skip_unknown`, those that name
        unknown nodes or relations are left out.
        """
        raise InputError(self.no_facts())

    def score(
        self, facts: object, *, skip_unknown: bool = False, progress: Progress | None = None
    ) -> pa.Table:
        """Scores and filtered ranks of facts, known or not, in their order, as an Arrow table.

        `facts` are (head, relation, tail) by name, an array of such rows, or a table with these
        three columns. The columns of the result are `fact` (the position, from 0), `head`,
        `relation`, `tail`, `score` (of the tail, given the other two), `tail_rank` and `head_rank`
        (among all nodes without other known answers, ties counted half, as in `evaluate`) and
        `known`. A run with a calibration also has `tail_probability` and `head_probability`, by the
        query for the tail and by that for the head, as `predict` has them, and `probability`, by
        both. `skip_unknown` leaves out facts that name unknown nodes or relations.
        """
        raise InputError(self.no_facts())

    def discover(
        self,
        *,
        top: int = 1000,
        relations: Sequence[str] | None = None,
        heads: Sequence[str] | None = None,
        tails: Sequence[str] | None = None,
        per_node: int | None = None,
        min_score: float = -np.inf,
        min_probability: float = 0.0,
        any_candidate: bool = False,
        exact: bool | None = None,
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> pa.Table:
        """The likeliest missing facts of the whole graph, best first, as an Arrow table.

        The columns are `head`, `relation`, `tail`, `score`, `rank`, and where the run has a
        calibration `probability`, by the query for the tail. A fact may have any relation, or one
        of `relations`; its head is one of `heads`, and a node that the graph has as a head of the
        relation, unless `any_candidate`; likewise its tail. `per_node`: a node occurs in at most so
        many facts, those of highest score. `progress` gets the numbers of relations searched and of
        all, or of queries (head, relation, ?) with walks or propagation. `should_stop` is called
        between two steps of the search; if it returns True, the best facts so far are returned.

        The search is exact for scores of vectors. With walks or propagation an exact search scores
        every query. Where that would take more than a minute, only candidates are scored by
        default: the best facts by the vectors alone, the tails that walks from a head lead to, and
        the likeliest facts between nodes that facts link. Their scores are exact, but other facts
        are missed. Where the vectors of all queries would take more than five minutes, those of a
        part of them are searched. `exact`: True scores every query, False only candidates. The
        metadata of the table state which it was, as `search`, and that part, as `vectors`. The time
        is logged first.

        The score is that of the tail, given head and relation. Scores of different queries compare
        as well as training made them comparable; probabilities, where there are some, do.
        """
        raise InputError(self.no_facts())

    def explain(
        self,
        *,
        head: str,
        relation: str,
        tail: str,
        paths: int = 5,
        pieces: int = 8,
        facts: int = 4,
        similar: int = 5,
    ) -> Explanation:
        """Why the run scores a fact as it does, whether it is known or not.

        The explanation has the best paths from head to tail, the pieces that both nodes share and
        those that carry the score, the few facts without which the answer would fall (found by
        taking facts out and computing tokens and vectors again, without training), and similar
        facts of the graph; at most so many of each as given. The run does not change.
        """
        raise InputError(self.no_facts())

    def no_facts(self) -> str:
        """Why this run does not complete facts, in words."""
        return (
            f"{self.folder} is a run of {self.experiment.task}: it predicts no facts; ask for the "
            "classes of a node (nodepiece predict RUN --node NAME, or run.classify)"
        )

    def known(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        splits: Sequence[str] = SPLITS,
    ) -> list[str]:
        """The known answers to a query, by name, which `predict` leaves out."""
        raise InputError(self.no_facts())

    def classify(self, node: str, *, top: int = 10) -> list[Prediction]:
        """The likeliest classes of a node, best first, by name."""
        raise InputError(
            f"{self.folder} is a run of {self.experiment.task}: it has no node classes; "
            "give two of head, relation and tail"
        )

    def with_facts(self, facts: NamedFacts) -> "Run":
        """A run that answers as if these facts, by name, were in its graph too."""
        raise InputError(
            f"{self.folder} is a run of {self.experiment.task} and takes no more facts; "
            f"{self.for_other_facts()}"
        )

    def without_facts(self, facts: NamedFacts) -> "Run":
        """A run that answers as if these facts, by name, were not in its graph."""
        raise InputError(
            f"{self.folder} is a run of {self.experiment.task}, and its facts cannot be left out; "
            f"{self.for_other_facts()}"
        )

    def for_other_facts(self) -> str:
        """What to do about other facts than those of the run, where it does not take them."""
        return "use a run of link prediction"

    def node_names(self) -> list[str]:
        """The names of the nodes that have vectors, in the order of ids."""
        raise InputError(f"{self.folder} is a run of {self.experiment.task}: it gives no vectors")

    def embed(self, nodes: Sequence[str] | None = None) -> NDArray[np.float32]:
        """The vectors of some nodes by name, or of all of them: (num_nodes, dim)."""
        raise InputError(f"{self.folder} is a run of {self.experiment.task}: it gives no vectors")

    def similar(
        self,
        nodes: str | Sequence[str] | None = None,
        *,
        top: int = 10,
        exact: bool | None = None,
        progress: Progress | None = None,
    ) -> pa.Table:
        """The nodes with the most similar vectors, nearest first, as an Arrow table.

        `nodes` is a name, a list of names, or None for all nodes. The columns are `node`,
        `neighbour`, `similarity` (the cosine of the two vectors) and `rank`. By default the result
        is exact for up to ten billion pairs of nodes, such as all pairs of 100,000 nodes, and for
        more an index is used, which may miss some neighbours (`exact` chooses one of the two). The
        index is built at its first use and stored with the run; it stays in use after updates, as
        nodes that have changed are compared exactly.
        """
        tables = self.similar_many(nodes, top, exact=exact, progress=progress)
        return pa.concat_tables([SIMILAR_SCHEMA.empty_table(), *tables])

    def similar_many(
        self,
        nodes: str | Sequence[str] | None,
        top: int,
        *,
        exact: bool | None = None,
        progress: Progress | None = None,
    ) -> Iterator[pa.Table]:
        """Tables of the most similar nodes, some nodes at a time."""
        refuse_after_fork()
        if top < 1:
            raise InputError(f"top must be at least 1, got {top}")
        table = self.node_table()
        names = [nodes] if isinstance(nodes, str) else nodes
        ids = table.nodes if names is None else table.ids(node_list(names))
        return similar_in_batches(table, ids, top, exact=exact, progress=progress)

    def node_table(self) -> NodeVectors:
        """The vectors of all nodes of the current graph."""
        raise InputError(f"{self.folder} is a run of {self.experiment.task}: it gives no vectors")

    def vectors(self, nodes: Sequence[str] | None = None) -> NamedVectors:
        """The vectors of some nodes, or of all of them, as a NumPy array with their names."""
        names = self.node_names() if nodes is None else node_list(nodes)
        return NamedVectors(names, self.embed(names))

    def relation_vectors(self) -> NamedVectors:
        """The vectors of all relations and then of their inverses, with their names."""
        raise InputError(f"{self.folder} is a run of {self.experiment.task}: it gives no vectors")

    def on_graph(self, graph: Any, *, unseen_relations: str = "refuse") -> "Run":
        """A run with these weights on another graph with the relations of training.

        The graph is anything that `nodepiece.graph` reads. Relations that training did not have are
        refused, or get the "mean" of all.
        """
        raise InputError(
            f"{self.folder} is a run of {self.experiment.task} and answers for its own graph only; "
            "a run of inductive-link-prediction answers for others"
        )

    def evaluate(self, split: str = "test", *, progress: Progress | None = None) -> Report:
        """The metrics of the model on a split, computed as after training."""
        refuse_after_fork()
        report = self.task.evaluate(self.model, split, progress=progress)
        if report is None:
            raise InputError(f"{self.folder} has no {split} facts; choose another split")
        return report

    def evaluate_baseline(self, split: str = "test") -> Report:
        """The metrics of a simple baseline without training, where the task has one.

        That is popularity: frequent tails of a relation score higher, whatever the head; where
        relations are ranked, relations with many facts, whatever the pair.
        """
        if (report := self.popularity(split)) is None:
            raise InputError(f"there is no baseline for {self.experiment.task}; leave it out")
        return report

    def compare_baselines(
        self, split: str = "test", *, progress: Progress | None = None
    ) -> dict[str, Scores]:
        """The metrics of baselines on the same facts, by name, and where the model helps.

        Popularity counts the tails of a relation, personalized PageRank finds near nodes, and
        half-links follow one other fact of the same two nodes, or a relation's frequent tails. The
        last two entries are of the model: on the queries that half-links answer right, and on the
        others. Where relations are ranked, naive Bayes takes the place of PageRank; classes of
        nodes have the baselines of `evaluation/class_baselines.py`, and no shortcuts.
        """
        refuse_after_fork()
        if split in EVALUATED and not self.task.num_evaluated(split):
            raise InputError(f"{self.folder} has no {split} facts; choose another split")
        return self.task.compare_baselines(self.model, split, progress=progress)

    def popularity(self, split: str = "test") -> Report | None:
        """The metrics of popularity on the same facts; None where the task has no such baseline."""
        refuse_after_fork()
        return self.task.popularity(split)

    def to(self, device: torch.device | str) -> Self:
        """Move this run to another device; not while other threads use it.

        Its model is copied: copies of the run, and runs made from it or that it was made from
        (`with_facts`, `on_graph`), stay where they are.
        """
        chosen = choose_device(device)
        if next(self.model.parameters()).device != chosen:
            self.model = deepcopy(self.model).to(chosen)
        return self


def node_list(nodes: Sequence[str]) -> list[str]:
    """The names as a list; a single string, which is also a sequence, is refused."""
    if isinstance(nodes, str | bytes):
        raise InputError(f"give a list of node names, such as [{nodes!r}], and not one name")
    return list(nodes)
