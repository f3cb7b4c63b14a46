"""nodepiece predict: the likeliest answers to a query, by name."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from nodepiece.commands.bulk import BULK, OutputOption, SkipUnknownOption, write_tables
from nodepiece.commands.console import JsonOption, count, err, out
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
)
from nodepiece.commands.tables import MIXED
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import InputError
from nodepiece.graph.short_text import in_table

if TYPE_CHECKING:
    from nodepiece.inference.run import Prediction


def predict(
    run: RunArgument,
    head: Annotated[
        str | None, typer.Option("--head", metavar="NAME", help="The node that a fact starts from.")
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option("--relation", metavar="NAME", help='The relation, or "inverse of" one.'),
    ] = None,
    tail: Annotated[
        str | None, typer.Option("--tail", metavar="NAME", help="The node that a fact leads to.")
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NAME",
            help="The node to classify (runs of node classification).",
        ),
    ] = None,
    graph: OtherGraphOption = None,
    unseen_relations: UnseenRelationsOption = "refuse",
    facts: FactsOption = None,
    top: Annotated[int, typer.Option("--top", min=1, metavar="N", help="How many answers.")] = 10,
    include_known: Annotated[
        bool,
        typer.Option("--include-known", help="Also show answers that known facts state."),
    ] = False,
    seen_candidates: Annotated[
        bool,
        typer.Option(
            "--seen-candidates",
            help="Only nodes that the graph has at that end of the relation.",
        ),
    ] = False,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Answer many queries: head, relation and tail on each line, with ? or nothing for "
            "the part that is asked for. TSV, CSV, JSON lines, Parquet, or - for standard input.",
            rich_help_panel=BULK,
        ),
    ] = None,
    output: OutputOption = "-",
    skip_unknown: SkipUnknownOption = False,
    as_json: JsonOption = False,
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Complete a fact: give two of --head, --relation and --tail, and get the third.

    The likeliest answers come first; the node that is given is none of them, unless the graph has
    that fact (nodepiece score, explain and evaluate rank it, as benchmarks do). Scores can be
    compared within one query only; after nodepiece calibrate, answers also have a probability, by
    this query alone (nodepiece score and explain also have that by both queries of a fact, for its
    tail and for its head). With --node, prints the classes of a node and their probabilities. With
    --facts, a query may name new nodes that these facts describe.

    With --queries, answers every line of a file, and writes a table with the columns query (the
    line), asked, head, relation, tail, score and rank to --output. A bad line is reported and does
    not keep the others from being answered; the exit status is then 2.
    """
    from nodepiece.inference.facts import fact_run
    from nodepiece.inference.run import load
    from nodepiece.tasks.train import choose_device

    if queries is None and (output != "-" or skip_unknown):
        raise InputError("--output and --skip-unknown go with --queries; use --json for one query")
    options = read_options(delimiter, header, columns, format)
    opened = load(run, device=choose_device(device))
    if graph is not None:
        opened = opened.on_graph(read_facts(graph, options), unseen_relations=unseen_relations)
    if facts is not None:
        opened = opened.with_facts(read_facts(facts, options))
    if queries is not None:
        if any(part is not None for part in (head, relation, tail, node)):
            raise InputError("--queries has all queries; leave out --head, --relation and --tail")
        if as_json:
            raise InputError("--queries writes a table; leave out --json, or give -o FILE.jsonl")
        facts_run = fact_run(opened)
        settings = facts_run.answer_settings(top, include_known, seen_candidates)
        write_tables(
            queries,
            output,
            options,
            schema=settings.schema,
            noun="queries",
            skip_unknown=skip_unknown,
            tables_of=lambda file, refuse, progress: facts_run.answer_many(
                file.rows, settings, on_refused=refuse, progress=progress
            ),
        )
        return
    if node is not None:
        if head is not None or relation is not None or tail is not None:
            raise InputError("--node predicts classes; leave out --head, --relation and --tail")
        print_classes(node, opened.classify(node, top=top), as_json=as_json)
        return
    answers = opened.predict(
        head=head,
        relation=relation,
        tail=tail,
        top=top,
        include_known=include_known,
        seen_candidates=seen_candidates,
    )
    if as_json:
        query = {"head": head, "relation": relation, "tail": tail}
        content = query | {"answers": [answer.to_json() for answer in answers]}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    out.print(f"\n{head or '?'} — {relation or '?'} — {tail or '?'}", style="bold")
    out.print(answer_table(answers, with_known=include_known))
    number = len(opened.known(head=head, relation=relation, tail=tail))
    if number and not include_known:
        err.print(f"{count(number, 'known answer')} left out; --include-known shows them")
    if any(answer.probability is not None for answer in answers):
        also = "" if relation is None else "; nodepiece explain also has that by both queries"
        err.print(f"probabilities are by this query alone{also}; {MIXED}", soft_wrap=True)


def print_classes(node: str, answers: "list[Prediction]", *, as_json: bool) -> None:
    if as_json:
        classes = [
            {"name": answer.name, "probability": answer.score, "known": answer.is_known}
            for answer in answers
        ]
        content = {"node": node, "classes": classes}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    out.print(f"\n{node}", style="bold")
    out.print(answer_table(answers, with_known=True, words=("class", "probability")))


def answer_table(
    answers: "list[Prediction]", *, with_known: bool, words: tuple[str, str] = ("answer", "score")
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column(words[0], overflow="fold")
    table.add_column(words[1], justify="right")
    is_calibrated = any(answer.probability is not None for answer in answers)
    if is_calibrated:
        table.add_column("probability", justify="right")
    if with_known:
        table.add_column("known")
    for place, answer in enumerate(answers, start=1):
        cells = [str(place), in_table(answer.name), f"{answer.score:.3f}"]
        cells += [f"{answer.probability:.3f}"] if is_calibrated else []
        table.add_row(*cells, *(["yes" if answer.is_known else ""] if with_known else []))
    return table
