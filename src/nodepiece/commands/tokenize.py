"""nodepiece tokenize: turn a graph into a vocabulary and a table of tokens."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import count, log, stage
from nodepiece.commands.engine import (
    CLUSTER,
    NATIVE,
    EngineOption,
    MasterOption,
    SparkConfOption,
    WorkOption,
    check_engine,
    spark_options,
    tokenize_by_spark,
)
from nodepiece.commands.graphs import (
    ColumnsOption,
    DataOption,
    DelimiterOption,
    FormatOption,
    GraphArgument,
    HeaderOption,
    read_options,
)
from nodepiece.commands.outputs import check_output
from nodepiece.errors import InputError, SettingError
from nodepiece.tokenizer.settings import PAPER_MIX, TokenizerSettings

if TYPE_CHECKING:
    from nodepiece.graph.knowledge_graph import KnowledgeGraph
    from nodepiece.tokenizer.to_folder import TokenizedFolder
    from nodepiece.tokenizer.tokens import TokenTable

DEFAULTS = TokenizerSettings()
OPTIONS = {
    "num_anchors": "--anchors",
    "anchors_per_node": "--anchors-per-node",
    "relations_per_node": "--relations-per-node",
}
DEFAULT_MIX = ",".join(f"{strategy}={share:g}" for strategy, share in PAPER_MIX.items())


def tokenize(
    graph: GraphArgument,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="VOCAB",
            show_default=False,
            help="The folder to write; an earlier vocabulary there is replaced.",
        ),
    ],
    anchors: Annotated[
        int | None, typer.Option("--anchors", metavar="N", help="How many nodes become anchors.")
    ] = None,
    anchor_share: Annotated[
        float | None,
        typer.Option(
            "--anchor-share",
            metavar="S",
            help=f"Anchors as a share of the nodes; {DEFAULTS.anchor_share} unless --anchors "
            "is given, and never fewer than K.",
        ),
    ] = None,
    anchors_per_node: Annotated[
        int,
        typer.Option(
            "--anchors-per-node", metavar="K", help="Anchors that a node is written with; may be 0."
        ),
    ] = DEFAULTS.anchors_per_node,
    relations_per_node: Annotated[
        int,
        typer.Option(
            "--relations-per-node",
            metavar="M",
            help="Relations that a node is written with; may be 0.",
        ),
    ] = DEFAULTS.relations_per_node,
    mix: Annotated[
        str,
        typer.Option(
            "--mix",
            metavar="SHARES",
            show_default=False,
            help=f"How anchors are chosen, in shares that add up to 1; {DEFAULT_MIX} unless given.",
        ),
    ] = DEFAULT_MIX,
    select: Annotated[
        str,
        typer.Option(
            "--select", metavar="HOW", help="Which K anchors a node gets: nearest or random."
        ),
    ] = DEFAULTS.select,
    ties: Annotated[
        str,
        typer.Option(
            "--ties",
            metavar="HOW",
            help="How ties between equally near anchors are broken: by a separate order for each "
            "node (per-node), or by one order for all (global).",
        ),
    ] = DEFAULTS.ties,
    relation_order: Annotated[
        str,
        typer.Option(
            "--relation-order",
            metavar="HOW",
            help="The order of a node's relations: ascending, or random for each node.",
        ),
    ] = DEFAULTS.relation_order,
    disconnected: Annotated[
        str,
        typer.Option(
            "--disconnected",
            metavar="HOW",
            help="Nodes of a component without an anchor are written as \\[DISCONNECTED] (token), "
            "or the component gets an additional anchor (anchor).",
        ),
    ] = DEFAULTS.disconnected,
    no_distances: Annotated[
        bool, typer.Option("--no-distances", help="Leave out the distances to the anchors.")
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same bytes.")
    ] = 0,
    part_size: Annotated[
        str | None,
        typer.Option(
            "--part-size",
            metavar="SIZE",
            show_default=False,
            help="Cut the files of the token table into parts of at most this size, such as 4GB; "
            "they are used as one table.",
        ),
    ] = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
    data: DataOption = None,
    engine: EngineOption = NATIVE,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
    work: WorkOption = None,
    ids: Annotated[
        bool,
        typer.Option(
            "--ids",
            help="The three columns are ids counted from 0, and there are no names.",
            rich_help_panel=CLUSTER,
        ),
    ] = False,
    export: Annotated[
        str | None,
        typer.Option(
            "--export",
            metavar="FOLDER",
            show_default=False,
            help="Write the tokens by name as well: Parquet files with the columns of nodepiece "
            "export.",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
) -> None:
    """Write every node of GRAPH as pieces: its nearest anchors, how far they are, its relations.

    With --engine spark, GRAPH is anything that Spark reads: Parquet, ORC, JSON, text, N-Triples,
    or a table (--format table). The result is the same, byte for byte.
    """
    import numpy as np

    from nodepiece.data.open import open_graph
    from nodepiece.files import atomic_folder
    from nodepiece.tokenizer.storage import HEADER
    from nodepiece.tokenizer.to_folder import tokenize_into

    start = perf_counter()
    with settings_by_options():
        settings = TokenizerSettings(
            num_anchors=anchors,
            anchor_share=chosen_share(anchors, anchor_share),
            anchors_per_node=anchors_per_node,
            relations_per_node=relations_per_node,
            mix=parse_mix(mix),
            select=select,
            ties=ties,
            relation_order=relation_order,
            distances=not no_distances,
            disconnected=disconnected,
        )
    part_bytes = None if part_size is None else parse_part_size(part_size)
    check_output(output, marker=HEADER, kind="vocabulary")
    is_spark = check_engine(
        engine, master=master, spark_conf=spark_conf, work=work, ids=ids, export=export
    )
    if is_spark:
        text_format = format if format in ("tsv", "csv") else None
        with settings_by_options():
            tokenize_by_spark(
                graph,
                output,
                settings,
                seed=seed,
                options=read_options(delimiter, header, columns, text_format),
                kind=format,
                by_ids=ids,
                data=data,
                work=work,
                export=export,
                part_bytes=part_bytes,
                spark=spark_options(master, spark_conf),
            )
        return
    options = read_options(delimiter, header, columns, format)
    with ExitStack() as stack:
        partial = stack.enter_context(atomic_folder(output, marker=HEADER))
        spill = stack.enter_context(TemporaryDirectory(dir=partial))
        with stage("reading " + ("standard input" if graph == "-" else graph)) as remarks:
            facts, sentences = open_graph(graph, options=options, data=data, spill=Path(spill))
            remarks += [*sentences, f"{facts.num_nodes:,} nodes, {facts.num_relations:,} relations"]
        rng = np.random.default_rng(seed)
        with settings_by_options():
            written = tokenize_into(
                partial, facts, settings, rng=rng, stage=stage, part_bytes=part_bytes
            )
        with stage(f"saving {output}"):
            stack.close()
    for sentence in summary(written, output, perf_counter() - start):
        log(sentence)


@contextmanager
def settings_by_options() -> Iterator[None]:
    """Make errors in the block name the options of this command instead of settings."""
    try:
        yield
    except SettingError as error:
        raise error.named(OPTIONS.__getitem__) from error


def chosen_share(anchors: int | None, anchor_share: float | None) -> float:
    if anchors is not None and anchor_share is not None:
        raise InputError("--anchors and --anchor-share both set the number of anchors; give one")
    return DEFAULTS.anchor_share if anchor_share is None else anchor_share


def parse_mix(text: str) -> dict[str, float]:
    """Parse shares such as "degree=0.4,pagerank=0.4,random=0.2"."""
    mix = {}
    for part in text.split(","):
        strategy, _, share = part.partition("=")
        try:
            mix[strategy.strip()] = float(share)
        except ValueError:
            raise InputError(f"--mix takes shares such as {DEFAULT_MIX}; got {text!r}") from None
    return mix


def parse_part_size(text: str) -> int:
    from nodepiece.tasks.machine import parse_memory
    from nodepiece.tokenizer.array_parts import checked_part_bytes

    return checked_part_bytes(parse_memory(text))


def tokenize_in_stages(
    graph: "KnowledgeGraph", settings: TokenizerSettings, seed: int
) -> "TokenTable":
    import numpy as np

    from nodepiece.graph.adjacency import build_adjacency
    from nodepiece.tokenizer.tokens import tokenize
    from nodepiece.tokenizer.vocabulary import fit_vocabulary

    rng = np.random.default_rng(seed)
    with stage("choosing anchors") as remarks:
        adjacency = build_adjacency(graph)
        vocabulary = fit_vocabulary(graph, settings, rng=rng, adjacency=adjacency)
        remarks.append(count(vocabulary.num_anchors, "anchor"))
    with stage("writing nodes as pieces") as remarks:
        table = tokenize(graph, vocabulary, rng=rng, adjacency=adjacency)
        remarks.append(
            f"{count(table.anchors_per_node, 'anchor')} and "
            f"{count(table.relations_per_node, 'relation')} for each"
        )
    return table


def summary(written: "TokenizedFolder", output: Path, seconds: float) -> list[str]:
    vocabulary, sharing = written.vocabulary, written.num_sharing
    share = "no node has" if not sharing else f"{count(sharing, 'node')} have"
    return [
        f"wrote {output}: {count(vocabulary.num_nodes, 'node')} as sequences of pieces, "
        f"{len(vocabulary):,} different ones, in {seconds:.1f} s",
        f"{share} exactly the same pieces as another node",
        f"look at it with: nodepiece inspect {output}",
    ]
