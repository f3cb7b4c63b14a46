"""Updates of several clients that are committed as one batch, each with its own result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nodepiece.errors import InputError
from nodepiece.inference.links import LinkRun
from nodepiece.inference.update import commit, exclusive_update, updatable
from nodepiece.tokenizer.changing_graph import Change, NamedFact

MAX_FACTS = 10_000  # of the updates of one batch


@dataclass(frozen=True)
class GraphUpdate:
    """Facts to add and to remove, and nodes to remove, by name."""

    add: tuple[NamedFact, ...] = ()
    remove: tuple[NamedFact, ...] = ()
    remove_nodes: tuple[str, ...] = ()

    @property
    def facts(self) -> set[NamedFact]:
        return {*self.add, *self.remove}

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
        gone = set(update.remove_nodes)
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
        self._gone |= set(update.remove_nodes)

    def merged(self) -> GraphUpdate:
        return GraphUpdate(
            tuple(fact for update in self.updates for fact in update.add),
            tuple(fact for update in self.updates for fact in update.remove),
            tuple(node for update in self.updates for node in update.remove_nodes),
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
    results: list[Change | InputError] = []
    with exclusive_update(run):
        with run.snapshot.slot.reading():
            for update in updates:
                try:
                    results.append(plan(run, update))
                except InputError as error:
                    results.append(error)
                    continue
                group.append(update)
            planned = [each for each in results if isinstance(each, Change)]
            whole = planned[0] if len(planned) == 1 else plan(run, group.merged())
        if not whole.is_empty:
            commit(run, whole, compacts=False)
        version = run.snapshot.number or 0
    return committed(results, version)


def plan(run: LinkRun, update: GraphUpdate) -> Change:
    return run.graph.plan(add=update.add, remove=update.remove, remove_nodes=update.remove_nodes)


def committed(results: Sequence[Change | InputError], version: int) -> list[Committed | InputError]:
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
        batch, names = result.batch, set(result.new_nodes) - new
        removed = set(map(tuple, batch.removed.tolist())) - gone
        found.append(Committed(version, len(batch.added), len(removed), len(names)))
        new, gone = new | names, gone | removed
    return found
