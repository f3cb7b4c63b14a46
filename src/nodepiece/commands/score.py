"""nodepiece score: scores and ranks of given facts."""

from typing import Annotated

import typer

from nodepiece.commands.bulk import OutputOption, SkipUnknownOption, write_tables
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
from nodepiece.commands.train import DeviceOption


def score(
    run: RunArgument,
    triples: Annotated[
        str,
        typer.Argument(
            metavar="TRIPLES",
            show_default=False,
            help="Facts, known or not: TSV, CSV, JSON lines, Parquet, or - for standard input.",
        ),
    ],
    output: OutputOption = "-",
    skip_unknown: SkipUnknownOption = False,
    graph: OtherGraphOption = None,
    unseen_relations: UnseenRelationsOption = "refuse",
    facts: FactsOption = None,
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Score given facts, and rank their heads and tails.

    Writes a table with the columns fact (the line), head, relation, tail, score, tail_rank,
    head_rank and known. The score is that of the tail, given head and relation. The ranks are among
    all nodes, other known answers left out (filtered), ties counted half, as nodepiece evaluate has
    them. After nodepiece calibrate there are three more columns: tail_probability and
    head_probability, by the query for the tail and by that for the head, as nodepiece predict has
    them, and probability, by both queries, which is more accurate. A bad line is reported and does
    not keep the others from being scored; the exit status is then 2.
    """
    from nodepiece.inference.facts import fact_run
    from nodepiece.inference.run import load
    from nodepiece.inference.score_facts import score_schema
    from nodepiece.tasks.train import choose_device

    options = read_options(delimiter, header, columns, format)
    opened = load(run, device=choose_device(device))
    if graph is not None:
        opened = opened.on_graph(read_facts(graph, options), unseen_relations=unseen_relations)
    if facts is not None:
        opened = opened.with_facts(read_facts(facts, options))
    scoring = fact_run(opened)
    write_tables(
        triples,
        output,
        options,
        schema=score_schema(scoring.calibrated),
        noun="facts",
        skip_unknown=skip_unknown,
        tables_of=lambda file, refuse, progress: scoring.score_many(
            file.rows, on_refused=refuse, progress=progress
        ),
    )
