"""nodepiece discover: the likeliest missing facts of a graph."""

import math
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from nodepiece.commands.bulk import TableFileOption, check_output_file, write_rows
from nodepiece.commands.console import count, err, interrupts, out
from nodepiece.commands.evaluate import RunArgument
from nodepiece.commands.graphs import (
    ColumnsOption,
    DelimiterOption,
    FormatOption,
    HeaderOption,
    read_options,
)
from nodepiece.commands.new_facts import (
    FactsOption,
    OtherGraphOption,
    UnseenRelationsOption,
    read_facts,
    read_names,
)
from nodepiece.commands.progress import counted
from nodepiece.commands.tables import MIXED
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import InputError, Stopped
from nodepiece.graph.short_text import in_table

if TYPE_CHECKING:
    import pyarrow as pa

    from nodepiece.inference.opened_run import Run

FEW = 20  # facts that are printed where no file is given


def discover(
    run: RunArgument,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", min=1, metavar="N", help="How many facts; 1000 in a file, 20 printed."
        ),
    ] = None,
    output: TableFileOption = None,
    relation: Annotated[
        list[str] | None,
        typer.Option("--relation", metavar="NAME", help="Only this relation; may be repeated."),
    ] = None,
    heads: Annotated[
        Path | None,
        typer.Option("--heads", metavar="FILE", help="Only these heads: a file, one name a line."),
    ] = None,
    tails: Annotated[
        Path | None,
        typer.Option("--tails", metavar="FILE", help="Only these tails: a file, one name a line."),
    ] = None,
    head_type: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--head-type",
            metavar="RELATION NODE",
            help="Only heads that have this relation to this node: --head-type 'instance of' city.",
        ),
    ] = None,
    tail_type: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--tail-type", metavar="RELATION NODE", help="Only tails of that kind, likewise."
        ),
    ] = None,
    per_node: Annotated[
        int | None,
        typer.Option(
            "--per-node", min=1, metavar="N", help="At most so many facts with the same node."
        ),
    ] = None,
    min_score: Annotated[
        float | None, typer.Option("--min-score", metavar="S", help="No facts of lower scores.")
    ] = None,
    min_probability: Annotated[
        float,
        typer.Option(
            "--min-probability",
            metavar="P",
            help="No facts of lower probability (runs with calibrated probabilities).",
        ),
    ] = 0.0,
    any_candidate: Annotated[
        bool,
        typer.Option(
            "--any-candidate",
            help="Also nodes that the graph does not have at that end of the relation.",
        ),
    ] = False,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--approximate",
            help="With walks or propagation: score every query, or only candidates, which may miss "
            "facts. By default candidates where all queries would take more than a minute.",
            show_default=False,
        ),
    ] = None,
    graph: OtherGraphOption = None,
    unseen_relations: UnseenRelationsOption = "refuse",
    facts: FactsOption = None,
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Find the likeliest missing facts of the whole graph, or of some relations or nodes.

    Known facts are left out, and so are nodes that no known fact has at that end of the relation,
    unless --any-candidate is given. The search is exact for scores of vectors. With walks or
    propagation an exact search scores every query (head, relation, ?), which takes long in a large
    graph. Where it would take more than a minute, only candidates are scored, unless --exact is
    given: the best facts by the vectors alone, the tails that walks from a head lead to, and the
    likeliest facts between nodes that facts link, such as the inverse of a known fact. Their scores
    are exact, but other facts are missed. Which search it is, the number of queries and about how
    long it takes (with --per-node: each round) are printed before it begins, --relation and --heads
    search fewer, and Ctrl-C ends the search with the best facts so far. The score of a fact is that
    of its tail, given head and relation; scores of different relations compare as well as training
    made them comparable. Where the run has calibrated probabilities, facts come by probability,
    which is that by the query for the tail; nodepiece score also has that by both queries, for tail
    and head.
    """
    from nodepiece.inference.fact_search import scores_queries
    from nodepiece.inference.facts import FactRun
    from nodepiece.inference.run import load
    from nodepiece.tasks.train import choose_device
    from nodepiece.training.interrupts import stop_on_interrupt

    if output is not None:
        check_output_file(output)
    options = read_options(delimiter, header, columns, format)
    chosen = [None if path is None else read_names(path) for path in (heads, tails)]
    opened = load(run, device=choose_device(device))
    if graph is not None:
        opened = opened.on_graph(read_facts(graph, options), unseen_relations=unseen_relations)
    if facts is not None:
        opened = opened.with_facts(read_facts(facts, options))
    chosen = [
        of_type(opened, names, kind)
        for names, kind in zip(chosen, (head_type, tail_type), strict=True)
    ]
    noun = "relations"
    if isinstance(opened, FactRun) and scores_queries(opened.snapshot):
        noun = "queries"
    searched = (0, 0)
    with (
        counted("searching", noun) as advance,
        stop_on_interrupt(
            lambda: True,
            lambda: err.print("stopping with what was found; press Ctrl-C again to stop at once"),
            lambda: interrupts.append(signal.SIGINT),
        ) as should_stop,
    ):

        def count_searched(done: int, total: int) -> None:
            nonlocal searched
            searched = (done, total)
            advance(done, total)

        found = opened.discover(
            top=top or (1000 if output else FEW),
            relations=relation,
            heads=chosen[0],
            tails=chosen[1],
            per_node=per_node,
            min_score=-math.inf if min_score is None else min_score,
            min_probability=min_probability,
            any_candidate=any_candidate,
            exact=exact,
            progress=count_searched,
            should_stop=should_stop,
        )
    stopped = ""
    if should_stop() and searched[0] < searched[1]:
        stopped = f"stopped after {searched[0]:,} of {searched[1]:,} {noun}"
    if not len(found):
        if stopped:
            raise Stopped(f"{stopped}, which have no missing fact of that kind")
        more = "" if any_candidate else ", or allow nodes new to a relation with --any-candidate"
        raise InputError(f"there is no missing fact of that kind; lift some of the limits{more}")
    if output is not None:
        write_rows(output, found.schema, [found])
        if output != "-":
            err.print(f"wrote {output}: {count(len(found), 'fact')}", soft_wrap=True)
    else:
        print_facts(found)
    if stopped:
        raise Stopped(f"{stopped}; these are the best facts so far")


def of_type(run: "Run", names: list[str] | None, kind: tuple[str, str] | None) -> list[str] | None:
    """The nodes with a relation to a node, of given ones if there are some; None: any node."""
    if kind is None:
        return names
    relation, node = kind
    found = run.known(relation=relation, tail=node)
    if not found:
        raise InputError(f"no node has the relation {relation!r} to {node!r}; name another type")
    return found if names is None else [name for name in names if name in set(found)]


def print_facts(found: "pa.Table") -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    for name in ("head", "relation", "tail"):
        table.add_column(name, overflow="fold")
    numbers = [name for name in ("score", "probability") if name in found.column_names]
    for name in numbers:
        table.add_column(name, justify="right")
    for row in found.to_pylist():
        names = (in_table(row[name]) for name in ("head", "relation", "tail"))
        cells = [str(row["rank"]), *names]
        table.add_row(*cells, *(f"{row[name]:.3f}" for name in numbers))
    out.print(table)
    if "probability" in numbers:
        err.print(
            "probabilities are by the query for the tail; nodepiece score has that by both; "
            f"{MIXED}",
            soft_wrap=True,
        )
