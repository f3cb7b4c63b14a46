"""Updates of several clients that are committed as one batch, each with its own result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nodepiece.errors import InputError
from nodepiece.inference.links import LinkRun
from nodepiece.inference.update import commit, exclusive_update, updatable
from nodepiece.tokenizer.changing_graph import Change, ChangingGraph, NamedFact

MAX_FACTS = 10_000  # of the updates of one batch


@dataclass(frozen=True)
class GraphUpdate:
    """Facts to add and to remove, and nodes to remove, by name."""

    add: tuple[NamedFact, ...] = ()
    remove: tuple[NamedFact, ...] = ()
    remove_nodes: tuple[str, ...] = ()
    remove_if_empty: tuple[str, ...] = ()  # nodes to remove if no facts about them are left

    @property
    def facts(self) -> set[NamedFact]:
        return {*self.add, *self.remove}

    @property
    def gone(self) -> set[str]:
        """The nodes that it may remove."""
        return {*self.remove_nodes, *self.remove_if_empty}

    @property
    def nodes(self) -> set[str]:
        """The nodes that its facts name."""
        return {node for head, _, tail in self.facts for node in (head, tail)}


@dataclass(frozen=True)
class Committed:
    """What a committed update did."""

    version: int  # the number of the batch, or of the last one if the update changed nothing
    num_added: int  # facts
    num_removed: int  # facts, those of removed nodes included
    num_new_nodes: int
    added: tuple[NamedFact, ...] = field(default=(), compare=False)  # that were not there before
    new_nodes: tuple[str, ...] = field(default=(), compare=False)  # not there, or removed before


@dataclass
class Group:
    """Updates with the same result as one batch or one after the other.

    No two of them have a fact in common, none names a node that another removes, and none removes
    facts of a node that another one adds facts about.
    """

    updates: list[GraphUpdate] = field(default_factory=list)
    _facts: set[NamedFact] = field(default_factory=set)
    _nodes: set[str] = field(default_factory=set)
    _added_nodes: set[str] = field(default_factory=set)  # named by facts to add, maybe new
    _gone: set[str] = field(default_factory=set)

    def takes(self, update: GraphUpdate) -> bool:
        """Whether an update may be added to the group."""
        if not self.updates:
            return True
        removed = {node for head, _, tail in update.remove for node in (head, tail)}
        gone = update.gone
        return not (
            len(self._facts) + len(update.facts) > MAX_FACTS
            or update.facts & self._facts
            or removed & self._added_nodes
            or gone & (self._nodes | self._gone)
            or update.nodes & self._gone
        )

    def append(self, update: GraphUpdate) -> None:
        self.updates.append(update)
        self._facts |= update.facts
        self._nodes |= update.nodes
        self._added_nodes |= {node for head, _, tail in update.add for node in (head, tail)}
        self._gone |= update.gone

    def merged(self) -> GraphUpdate:
        return GraphUpdate(
            tuple(fact for update in self.updates for fact in update.add),
            tuple(fact for update in self.updates for fact in update.remove),
            tuple(node for update in self.updates for node in update.remove_nodes),
            tuple(node for update in self.updates for node in update.remove_if_empty),
        )


def groups_of(updates: Sequence[GraphUpdate]) -> Iterator[list[GraphUpdate]]:
    """The updates in order, as many together as may be one batch."""
    group = Group()
    for update in updates:
        if not group.takes(update):
            yield group.updates
            group = Group()
        group.append(update)
    if group.updates:
        yield group.updates


def commit_group(run: LinkRun, updates: Sequence[GraphUpdate]) -> list[Committed | InputError]:
    """Commit a group of `groups_of` as one batch; updates that are refused are left out.

    Returns the result of each update, or its error, when the batch is on disk. Batches are not
    compacted: see `nodepiece.inference.update.write_compacted`.
    """
    run = updatable(run)
    group = Group()
    results: list[Planned | InputError] = []
    with exclusive_update(run):
        with run.snapshot.slot.reading():
            for update in updates:
                try:
                    change = plan(run, update)
                except InputError as error:
                    results.append(error)
                    continue
                added = added_facts(run.graph, update, change)
                results.append(Planned(change, added, returning_nodes(run.graph, update)))
                group.append(update)
            changes = [each.change for each in results if isinstance(each, Planned)]
            whole = changes[0] if len(changes) == 1 else plan(run, group.merged())
        if not whole.is_empty:
            commit(run, whole, compacts=False)
        version = run.snapshot.number or 0
    return committed(results, version)


@dataclass(frozen=True, eq=False)
class Planned:
    """An update by ids, and the facts and removed nodes that it adds by name."""

    change: Change
    added: tuple[NamedFact, ...]
    returning: tuple[str, ...]


def plan(run: LinkRun, update: GraphUpdate) -> Change:
    empty = [name for name in update.remove_if_empty if is_empty_after(run.graph, name, update)]
    return run.graph.plan(
        add=update.add, remove=update.remove, remove_nodes=(*update.remove_nodes, *empty)
    )


def is_empty_after(graph: ChangingGraph, name: str, update: GraphUpdate) -> bool:
    """Whether the graph has a node, and no facts about it after an update."""
    facts = graph.facts_about(name)
    is_named = any(name in (head, tail) for head, _, tail in update.add)
    return facts is not None and not is_named and facts <= set(update.remove)


def added_facts(graph: ChangingGraph, update: GraphUpdate, change: Change) -> tuple[NamedFact, ...]:
    """The facts of an update that the graph did not have, each once."""
    if not change.num_known:
        return tuple(dict.fromkeys(update.add))
    return tuple(fact for fact in dict.fromkeys(update.add) if not graph.has_fact(fact))


def returning_nodes(graph: ChangingGraph, update: GraphUpdate) -> tuple[str, ...]:
    """The nodes that were removed, and that the facts of an update add again."""
    named = dict.fromkeys(node for head, _, tail in update.add for node in (head, tail))
    return tuple(name for name in named if graph.was_removed(name))


def committed(
    results: Sequence[Planned | InputError], version: int
) -> list[Committed | InputError]:
    """The counts of every update.

    A node that several of them add is new in the first, and a fact between nodes that two of them
    remove is removed by the first.
    """
    new: set[str] = set()
    gone: set[tuple[int, ...]] = set()
    found: list[Committed | InputError] = []
    for result in results:
        if isinstance(result, InputError):
            found.append(result)
            continue
        change = result.change
        added = (*change.new_nodes, *result.returning)
        batch, names = change.batch, [name for name in added if name not in new]
        removed = set(map(tuple, batch.removed.tolist())) - gone
        counts = len(batch.added), len(removed), len(names)
        found.append(Committed(version, *counts, result.added, tuple(names)))
        new, gone = new | set(names), gone | removed
    return found
