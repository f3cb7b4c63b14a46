"""The options --engine and those of Spark, for tokenize and embed."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import count, log, stage
from nodepiece.errors import InputError, Stopped

if TYPE_CHECKING:
    from nodepiece.data.blocks import ReadOptions
    from nodepiece.engines.spark_session import SparkOptions
    from nodepiece.tokenizer.settings import TokenizerSettings

NATIVE, SPARK = "native", "spark"
CLUSTER = "A cluster (--engine spark)"  # a box of the help

EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="E",
        help="native: this machine. spark: Apache Spark, with the same result.",
        rich_help_panel=CLUSTER,
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        show_default=False,
        help="Where Spark runs, such as spark://host:7077 or yarn; this machine unless given, or "
        "what spark-submit says.",
        rich_help_panel=CLUSTER,
    ),
]
SparkConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--spark-conf",
        metavar="KEY=VALUE",
        show_default=False,
        help="A setting of Spark, such as spark.executor.memory=8g; may be repeated.",
        rich_help_panel=CLUSTER,
    ),
]
WorkOption = Annotated[
    str | None,
    typer.Option(
        "--work",
        metavar="FOLDER",
        show_default=False,
        help="A folder that all workers see, for finished steps; beside the output unless given. "
        "The same command again continues with the first missing step.",
        rich_help_panel=CLUSTER,
    ),
]


def check_engine(engine: str, **options: object) -> bool:
    """Whether Spark is asked for; its options are refused without it."""
    if engine not in (NATIVE, SPARK):
        raise InputError(f"--engine is {NATIVE} or {SPARK}, got {engine!r}")
    given = [name for name, value in options.items() if value]
    if engine == NATIVE and given:
        option = "--" + given[0].replace("_", "-")
        raise InputError(f"{option} goes with --engine {SPARK}; add that, or leave it out")
    return engine == SPARK


def parse_settings(texts: Sequence[str] | None) -> dict[str, str]:
    settings = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--spark-conf takes KEY=VALUE, got {text!r}")
        settings[name.strip()] = value.strip()
    return settings


def spark_options(master: str | None, settings: Sequence[str] | None) -> "SparkOptions":
    from nodepiece.engines.spark_session import SparkOptions

    return SparkOptions(master, parse_settings(settings))


def default_work(output: str) -> str:
    """A folder beside a local output."""
    place = Path(output).absolute()
    return str(place.parent / f".{place.name}.spark")


def tokenize_by_spark(
    source: str,
    output: Path,
    settings: "TokenizerSettings",
    *,
    seed: int,
    options: "ReadOptions",
    kind: str | None,
    by_ids: bool,
    data: Path | None,
    work: str | None,
    export: str | None,
    part_bytes: int | None,
    spark: "SparkOptions",
) -> None:
    from nodepiece.engines.spark_session import open_session, quiet_imports, spark_errors
    from nodepiece.engines.spark_tokenize import SparkJob, tokenize_on_spark
    from nodepiece.engines.spark_watch import watched_workers

    work = work or default_work(str(output))
    with ExitStack() as opened:
        with stage("starting Spark") as remarks:
            session = open_session(spark)
            remarks.append(session.sparkContext.master)
        if known := known_file(source, data, opened):
            source, kind = str(known), "tsv"
        job = SparkJob(
            *(source, output, settings, seed, work, export, options),
            kind=kind,
            by_ids=by_ids,
            part_bytes=part_bytes,
        )
        again = f"; what is done is in {work}, and the same command continues"
        try:
            with quiet_imports(), watched_workers(session, again), spark_errors(again):
                num_nodes, num_anchors = tokenize_on_spark(session, job, stage)
        except KeyboardInterrupt:
            raise Stopped(f"stopped{again}") from None
    log(f"wrote {output}: {count(num_nodes, 'node')}, {count(num_anchors, 'anchor')}")
    if export is not None:
        log(f"wrote {export}: the tokens by name, as Parquet")
    log(f"look at it with: nodepiece inspect {output}")


def known_file(source: str, data: Path | None, opened: ExitStack) -> Path | None:
    """The training file of a known dataset; None: the source is a path or a table."""
    from nodepiece.data.benchmarks import BENCHMARKS, locate_benchmark
    from nodepiece.data.open import EMBEDDED, is_path

    if source == EMBEDDED and not is_path(source, data):
        folder = opened.enter_context(as_file(files("nodepiece.data") / "countries"))
        return folder / "train.tsv"
    if source in BENCHMARKS and not is_path(source, data):
        found = locate_benchmark(source, data=data).files
        if "train" not in found:
            raise InputError(f"{source} has no file of training facts; use --engine native")
        return found["train"]
    return None


def embed_by_spark(
    run: Path,
    output: str,
    *,
    tokens: str | None,
    work: str | None,
    spark: "SparkOptions",
) -> None:
    from nodepiece.engines.spark_session import open_session, quiet_imports, spark_errors
    from nodepiece.engines.spark_vectors import make_encoder, write_vectors
    from nodepiece.engines.spark_watch import watched_workers
    from nodepiece.inference.run import load
    from nodepiece.tokenizer.export import export_tokens

    opened = load(run)
    encoder = make_encoder(opened)
    own = None
    if tokens is None:
        if getattr(opened, "updates", None) is not None:
            raise InputError(
                f"{run} was updated since it was trained; give its present tokens with --tokens, "
                "or use --engine native"
            )
        place = work or f"{output.rstrip('/')}.tokens"
        if "://" in place:
            raise InputError(
                f"the tokens of {run} are written to a local folder first, and {place} is none; "
                "give one that all workers see with --work, or tokens with --tokens"
            )
        own = Path(place).absolute() / "tokens.parquet"
        with stage(f"writing {own}"):
            export_tokens(opened.opened.table, own)
    try:
        with stage("starting Spark"):
            session = open_session(spark)
        with (
            stage(f"writing {output}") as remarks,
            quiet_imports(),
            watched_workers(session),
            spark_errors(),
        ):
            number = write_vectors(session, encoder, tokens or str(own), output)
            remarks.append(count(number, "row"))
    finally:
        if own is not None:
            own.unlink()
            with suppress(OSError):  # the folder of --work may have other files
                own.parent.rmdir()
    log(f"wrote {output}: {count(number, 'node')}")
