"""Facts from anything that Spark reads, as a DataFrame of head, relation and tail."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nodepiece.data.blocks import ReadOptions
from nodepiece.data.columns import choose_columns
from nodepiece.data.delimited import find_layout
from nodepiece.data.input_file import InputFile
from nodepiece.data.malformed import BLANKS, TextLayout
from nodepiece.data.read import is_folder, split_files
from nodepiece.engines.work_folder import spark_path
from nodepiece.errors import InputError

TEXT = {"tsv": "\t,; ", "txt": "\t,; ", "csv": ",;\t "}  # candidates for the delimiter
OTHERS = {"parquet": "parquet", "orc": "orc", "json": "json", "jsonl": "json", "avro": "avro"}
TRIPLES = "nt"
TABLE = "table"
KNOWN = ("tsv", "csv", TRIPLES, *OTHERS, TABLE)
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy")
SAMPLE_LINES = 10_000
COLUMNS = ("head", "relation", "tail")
ROW_BITS = 33  # of monotonically_increasing_id: the row in a partition
FACTS_SCHEMA = "head string, relation string, tail string, position long, is_literal boolean"


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts by name or by id, and the files that they come from."""

    table: Any  # DataFrame of head, relation, tail, and position where there are names
    by_ids: bool
    files: list[str]
    layout: str  # in words
    sizes: tuple[int, int, int] | None = None  # facts, nodes and relations, where they are ids


def read_facts(
    spark: Any, source: str, options: ReadOptions, *, kind: str | None, by_ids: bool
) -> Facts:
    """The facts of a path or a table. `by_ids`: three columns of integers, counted from 0.

    `kind` is the format, one of KNOWN; None: that of the ending.

    `position` is the place of a fact in its files, by which nodes get their ids: files in the
    order of their names, then lines. Where a table has no files it is null for all, and nodes get
    their ids in the order of their names.
    """
    if kind is None and is_folder(source) and not any(Path(source).glob("*.parquet")):
        source = str(split_files(Path(source))["train"])
    kind = format_of(source, kind)
    place = source if kind == TABLE else spark_path(source)
    if kind in TEXT:
        table, layout = read_text(spark, place, options, TEXT[kind])
    elif kind == TRIPLES:
        table, layout = parse_triples(with_position(spark.read.text(place))), "N-Triples"
    else:
        loaded = (
            spark.table(place) if kind == TABLE else spark.read.format(OTHERS[kind]).load(place)
        )
        at = choose_columns(loaded.columns, options.chosen, source)
        named = [
            loaded[loaded.columns[place]].alias(role)
            for place, role in zip(at, COLUMNS, strict=True)
        ]
        table, layout = named_columns(loaded, named, by_ids), kind
    if not by_ids:
        return Facts(table, by_ids, table.inputFiles(), layout)
    checked, sizes = checked_ids(table, source)
    return Facts(checked, by_ids, table.inputFiles(), layout, sizes)


def format_of(source: str, given: str | None) -> str:
    """The format that is given, or that of the ending."""
    path = source.rstrip("/")
    for ending in COMPRESSED:
        path = path.removesuffix(ending)
    kind = given or Path(path).suffix.removeprefix(".").lower()
    if not kind and is_folder(source):
        kind = "parquet"
    if kind not in (*TEXT, *OTHERS, TRIPLES, TABLE):
        raise InputError(
            f"Spark cannot read {source} as {kind or 'a file without an ending'}; give --format, "
            f"one of {', '.join(KNOWN)}"
        )
    return kind


def with_position(table: Any) -> Any:
    """The table with a column `position`: the file and where it is cut, then the row."""
    from pyspark.sql import functions as F

    if not table.inputFiles():
        return table.withColumn("position", F.lit(None).cast("long"))
    file, start = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    splits = sorted(tuple(row) for row in table.select(file, start).distinct().collect())
    spark = table.sparkSession
    order = spark.createDataFrame(
        [(*split, number) for number, split in enumerate(splits)],
        "split_file string, split_start long, split_number long",
    )
    row = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << ROW_BITS) - 1))
    numbered = table.select("*", file.alias("file"), start.alias("start"), row.alias("row"))
    joined = numbered.join(
        F.broadcast(order),
        (numbered["file"] == order["split_file"]) & (numbered["start"] == order["split_start"]),
    )
    position = F.shiftleft(F.col("split_number"), ROW_BITS) + F.col("row")
    return joined.select(*table.columns, position.alias("position"))


def named_columns(table: Any, columns: list[Any], by_ids: bool) -> Any:
    from pyspark.sql import functions as F

    if by_ids:
        return table.select(*columns)
    hidden = ["_metadata"] if table.inputFiles() else []
    packed = with_position(table.select(F.struct(*columns).alias("named"), *hidden))
    text = [F.col(f"named.{role}").cast("string").alias(role) for role in COLUMNS]
    return packed.select(*text, "position", F.lit(False).alias("is_literal"))


def checked_ids(table: Any, source: str) -> tuple[Any, tuple[int, int, int]]:
    """The table as int32, and its sizes; other types, and ids that do not fit, are refused."""
    from pyspark.sql import functions as F

    for role in COLUMNS:
        kind = table.schema[role].dataType.typeName()
        if kind not in ("byte", "short", "integer", "long"):
            raise InputError(
                f"{source}: the {role} is {kind}, and --ids takes integers; leave out --ids to "
                "read names"
            )
    ranges = [bound(F.col(role)) for role in COLUMNS for bound in (F.min, F.max)]
    is_missing = [F.col(role).isNull() for role in COLUMNS]
    missing = F.count_if(is_missing[0] | is_missing[1] | is_missing[2])
    *limits, num_missing, num_facts = table.agg(*ranges, missing, F.count("*")).first()
    if num_missing or None in limits or min(limits) < 0 or max(limits) >= 2**31 - 1:
        raise InputError(
            f"{source}: ids count from 0 to at most {2**31 - 2:,}, and no fact lacks one; found "
            f"{limits} (smallest and largest head, relation, tail) and {num_missing or 0:,} rows "
            "without"
        )
    checked = table.select(*(F.col(role).cast("int").alias(role) for role in COLUMNS))
    return checked, (num_facts, max(limits[1], limits[5]) + 1, limits[3] + 1)


def read_text(spark: Any, place: str, options: ReadOptions, candidates: str) -> tuple[Any, str]:
    """Lines with a delimiter, cut as on one machine: by the first lines."""
    from pyspark.sql import functions as F

    lines = spark.read.text(place)
    layout, first = sampled_layout(lines, place, options, candidates)
    names = [f"column {number}" for number in range(layout.num_columns)]
    if layout.is_quoted:
        schema = ", ".join(f"`{name}` string" for name in names)
        rows = spark.read.csv(
            place, schema=schema, sep=layout.delimiter, quote='"', escape='"', mode="FAILFAST"
        )
        cells = [F.col(f"`{name}`") for name in names]
    else:
        rows = lines.where(F.trim("value") != "")
        text = F.regexp_replace(F.col("value"), "^\ufeff", "")
        blanks = layout.delimiter == BLANKS
        split = (
            F.split(F.trim(text), " +") if blanks else F.split(text, f"\\Q{layout.delimiter}\\E")
        )
        cut = F.when(F.size(split) == layout.num_columns, split).otherwise(
            F.raise_error(
                F.concat(
                    F.lit(
                        f"nodepiece.errors.InputError: {place}: a line does not have "
                        f"{layout.num_columns} columns separated by {layout.words}: "
                    ),
                    F.substring(text, 1, 80),
                    F.lit("; fix the line"),
                )
            )
        )
        cells = [cut.getItem(number) for number in range(layout.num_columns)]
    chosen = [F.trim(cells[at]) if layout.has_blanks else cells[at] for at in layout.positions]
    named = [cell.alias(role) for cell, role in zip(chosen, COLUMNS, strict=True)]
    facts = with_position(rows.select(*named, "_metadata")).drop("_metadata")
    if first is not None:
        header = [
            F.col(role) != first[at] for role, at in zip(COLUMNS, layout.positions, strict=True)
        ]
        facts = facts.where(header[0] | header[1] | header[2])
    return facts.withColumn("is_literal", F.lit(False)), f"text separated by {layout.words}"


def sampled_layout(
    lines: Any, place: str, options: ReadOptions, candidates: str
) -> tuple[TextLayout, list[str] | None]:
    """The layout of the first lines, and the cells of the header if there is one."""
    sample = [row.value for row in lines.limit(SAMPLE_LINES).collect()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "first-lines"
        path.write_text("".join(f"{line}\n" for line in sample), encoding="utf-8")
        layout, names = find_layout(InputFile(path, place, is_gzip=False), options, candidates)
    if not layout.header_line:
        return layout, None
    cells: dict[int, str] = dict(zip(layout.positions, map(str, names), strict=True))
    return layout, [cells.get(number, "") for number in range(layout.num_columns)]


def parse_triples(lines: Any) -> Any:
    return lines.mapInArrow(parsed_batches, FACTS_SCHEMA)


def parsed_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Names of N-Triples, line by line; literals are marked, to be counted and left out."""
    from nodepiece.data.rdf import import_parser

    rdf = import_parser("N-Triples")
    for batch in batches:
        rows: list[tuple[str, str, str, int | None, bool]] = []
        for line, position in zip(
            *(batch.column(n).to_pylist() for n in ("value", "position")), strict=True
        ):
            try:
                found = list(rdf.parse(input=line, format=rdf.RdfFormat.N_TRIPLES))
            except SyntaxError as error:
                raise InputError(
                    f"{line[:80]!r} is no line of N-Triples: {error.msg}; fix it"
                ) from error
            for fact in found:
                is_literal = isinstance(fact.object, rdf.Literal)
                tail = "" if is_literal else name_of(fact.object)
                rows.append(
                    (name_of(fact.subject), fact.predicate.value, tail, position, is_literal)
                )
        columns = list(zip(*rows, strict=True)) or [()] * 5
        kinds = (pa.large_string(),) * 3 + (pa.int64(), pa.bool_())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=[*COLUMNS, "position", "is_literal"])


def name_of(term: Any) -> str:
    """An IRI, or _: and the label of a blank node."""
    if not hasattr(term, "value"):
        raise InputError(f"{term} is a fact about a fact; remove it first")
    return str(term) if str(term).startswith("_:") else str(term.value)
