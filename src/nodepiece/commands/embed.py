"""nodepiece embed: write node or relation vectors, by name, to a file."""

from pathlib import Path
from typing import Annotated

import typer

from nodepiece.commands.console import count, log, readable_bytes, stage
from nodepiece.commands.engine import (
    CLUSTER,
    NATIVE,
    EngineOption,
    MasterOption,
    SparkConfOption,
    WorkOption,
    check_engine,
    embed_by_spark,
    spark_options,
)
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
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import InputError


def embed(
    run: RunArgument,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            show_default=False,
            help="The file to write: .parquet, .csv, .tsv, .jsonl, or .npy with names beside it.",
        ),
    ],
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", metavar="FILE", help="Only these nodes: a file, one name a line."),
    ] = None,
    relations: Annotated[
        bool,
        typer.Option("--relations", help="The vectors of relations and their inverses instead."),
    ] = False,
    facts: FactsOption = None,
    graph: OtherGraphOption = None,
    unseen_relations: UnseenRelationsOption = "refuse",
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
    engine: EngineOption = NATIVE,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
    work: WorkOption = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            "--tokens",
            metavar="FILES",
            show_default=False,
            help="The nodes, as Parquet of tokenize --export or of export; those of the run unless "
            "given.",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
) -> None:
    """Write the vectors of all nodes, of some, or of all relations to a file.

    The ending of FILE says the format. A .npy file has the matrix alone, and its names are in
    a .names.json file beside it. With --facts, new nodes get vectors too, without training. With
    --graph, writes the vectors of all nodes of another graph.

    With --engine spark, every worker has the model, and FILE is a folder of Parquet files.
    """
    from nodepiece.inference.run import load
    from nodepiece.inference.vector_file import check_vector_file
    from nodepiece.tasks.train import choose_device

    if check_engine(engine, master=master, spark_conf=spark_conf, work=work, tokens=tokens):
        if nodes or relations or facts or graph:
            raise InputError(
                "--engine spark writes the nodes of --tokens; leave out --nodes, --relations, "
                "--facts and --graph"
            )
        options_of_spark = spark_options(master, spark_conf)
        embed_by_spark(run, output, tokens=tokens, work=work, spark=options_of_spark)
        return
    file = Path(output)
    check_vector_file(file)
    if relations and nodes is not None:
        raise InputError("--relations writes no nodes; leave out --nodes")
    names = None if nodes is None else read_names(nodes)
    options = read_options(delimiter, header, columns, format)
    opened = load(run, device=choose_device(device))
    if graph is not None:
        opened = opened.on_graph(read_facts(graph, options), unseen_relations=unseen_relations)
    if facts is not None:
        opened = opened.with_facts(read_facts(facts, options))
    with stage(f"writing {output}") as remarks:
        vectors = opened.relation_vectors() if relations else opened.vectors(names)
        vectors.save(file)
        remarks.append(count(len(vectors), "row"))
    size = readable_bytes(file.stat().st_size)
    log(f"wrote {output}: {count(len(vectors), vectors.kind)}, {size}")
