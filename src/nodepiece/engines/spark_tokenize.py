"""Tokenizing on Spark, from facts to a vocabulary folder, with the tokens of one machine."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nodepiece import __version__
from nodepiece.data.blocks import DETECT_EVERYTHING, ReadOptions
from nodepiece.engines.nearest_steps import Search
from nodepiece.engines.node_blocks import NodeBlocks, blocks_for
from nodepiece.engines.spark_blocks import kept_adjacency, write_blocks
from nodepiece.engines.spark_components import anchors_of_unreached
from nodepiece.engines.spark_export import export_chunks
from nodepiece.engines.spark_names import (
    EncodedFacts,
    collect_names,
    encode_facts,
    ids_as_facts,
    write_name_chunks,
)
from nodepiece.engines.spark_ranks import select_anchors
from nodepiece.engines.spark_search import Stage, find_nearest
from nodepiece.engines.spark_source import Facts, read_facts
from nodepiece.engines.spark_vocabulary import write_folder
from nodepiece.engines.token_chunks import (
    CHUNK_SCHEMA,
    TokenPlan,
    make_tokens_of_block,
    make_whole_chunk,
)
from nodepiece.engines.work_folder import WorkFolder, check_result, spark_path
from nodepiece.engines.work_lock import sole_job
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import Salts
from nodepiece.tokenizer.vocabulary import Vocabulary

BLOCKS_PER_TASK = 2  # blocks of nodes for each task that runs at a time
MAX_BLOCK_EDGES = 16_000_000  # of which a task has all in memory, some 40 bytes each


@dataclass(frozen=True)
class SparkJob:
    """What is tokenized, how, and where the results go."""

    source: str
    output: Path
    settings: TokenizerSettings
    seed: int
    work: str  # a folder that all workers see
    export: str | None = None  # a folder of Parquet files with the columns of `nodepiece export`
    options: ReadOptions = DETECT_EVERYTHING
    kind: str | None = None  # the format of the source; None: that of its ending
    by_ids: bool = False
    num_blocks: int | None = None  # None: by the size of the cluster and of the graph
    part_bytes: int | None = None  # of files of the vocabulary folder; None: each is one file


def tokenize_on_spark(spark: Any, job: SparkJob, stage: Stage) -> tuple[int, int]:
    """Write the vocabulary folder, and the export if wanted; returns numbers of nodes and anchors.

    Steps are kept in `job.work` until all is done: the same call after an interruption continues.
    Another job in the same folder is refused.
    """
    check_supported(job.settings)
    if job.export is not None:
        check_result(spark, spark_path(job.export))
    with sole_job(spark, spark_path(job.work).rstrip("/")):
        return take_steps(spark, job, stage)


def take_steps(spark: Any, job: SparkJob, stage: Stage) -> tuple[int, int]:
    """All steps, one after the other; those that are in the folder are kept."""
    facts = read_facts(spark, job.source, job.options, kind=job.kind, by_ids=job.by_ids)
    work = WorkFolder(spark, spark_path(job.work))
    is_continued = work.start(plan_of(job, facts, work))
    with stage("reading facts" if not is_continued else "continuing an earlier run") as remarks:
        encoded = ids_as_facts(facts) if job.by_ids else encode_facts(work, facts.table)
        blocks = chosen_blocks(work, job, encoded)
        write_blocks(
            work, encoded.table, blocks, encoded.num_relations, drop_duplicates=not job.by_ids
        )
        remarks += describe_facts(work, facts, encoded, blocks)
    adjacency = kept_adjacency(work)
    plan, anchors = choose_anchors(work, adjacency, blocks, job, encoded, stage)
    steps = find_nearest(work, adjacency, plan.search, anchors, stage) if plan.search.k else []
    with stage("writing nodes as pieces"):
        write_tokens(work, plan, steps)
    adjacency.unpersist()
    names = None
    if encoded.relations is not None:
        write_name_chunks(work, blocks)
        names = collect_names(work, encoded.relations)
    fingerprint = f"{blocks.num_nodes} nodes, {encoded.num_relations} relations"
    vocabulary = Vocabulary(
        anchors,
        2 * encoded.num_relations,
        blocks.num_nodes,
        fingerprint if names is None else names.fingerprint,
        job.settings,
        names,
    )
    if job.export is not None:
        with stage(f"writing {job.export}"):
            export_chunks(work, plan, vocabulary, job.export)
    with stage(f"saving {job.output}"):
        write_folder(work, plan, vocabulary, job.output, job.part_bytes)
    work.remove()
    return blocks.num_nodes, len(anchors)


def check_supported(settings: TokenizerSettings) -> None:
    """Refuse what only one machine does: distances to anchors that are not the nearest."""
    if settings.select != "nearest":
        raise InputError(
            "--engine spark finds the nearest anchors; for --select random use --engine native"
        )


def plan_of(job: SparkJob, facts: Facts, work: WorkFolder) -> dict[str, Any]:
    """What the steps depend on: a changed file or setting starts from the beginning."""
    return {
        "version": __version__,
        "source": job.source,
        "files": work.file_states(facts.files),
        "columns": job.options.given(),
        "format": job.kind,
        "by_ids": job.by_ids,
        "settings": asdict(job.settings),
        "seed": job.seed,
        "blocks": job.num_blocks,
    }


def chosen_blocks(work: WorkFolder, job: SparkJob, encoded: EncodedFacts) -> NodeBlocks:
    """The blocks of an earlier run that is continued, or those for the size of the cluster."""
    spark, number = work.spark, job.num_blocks
    if work.has("blocks"):
        number = int(work.read("blocks", "block").count())
    elif number is None:
        partitions = int(spark.conf.get("spark.sql.shuffle.partitions"))
        by_size = -(-2 * encoded.num_facts // MAX_BLOCK_EDGES)
        number = max(
            min(partitions, spark.sparkContext.defaultParallelism) * BLOCKS_PER_TASK, by_size
        )
    return blocks_for(encoded.num_nodes, number)


def describe_facts(
    work: WorkFolder, facts: Facts, encoded: EncodedFacts, blocks: NodeBlocks
) -> list[str]:
    remarks = [f"{facts.layout}; {encoded.num_nodes:,} nodes, {encoded.num_relations:,} relations"]
    remarks.append(f"{blocks.num_blocks:,} blocks")
    repeated = int(
        work.read("blocks", "num_duplicates").selectExpr("sum(num_duplicates)").first()[0]
    )
    if repeated:
        remarks.append(f"left out {repeated:,} facts stated before")
    if encoded.num_literals:
        remarks.append(f"left out {encoded.num_literals:,} facts whose object is a literal")
    return remarks


def choose_anchors(
    work: WorkFolder,
    adjacency: Any,
    blocks: NodeBlocks,
    job: SparkJob,
    encoded: EncodedFacts,
    stage: Stage,
) -> tuple[TokenPlan, IntArray]:
    """The anchors, and the salts of all random choices; both are kept as a step."""
    settings = job.settings
    if not work.has("anchors"):
        rng = np.random.default_rng(job.seed)
        number = settings.anchors_in(blocks.num_nodes)
        found = select_anchors(work, adjacency, blocks, number, settings.mix, rng=rng, stage=stage)
        if settings.disconnected == "anchor" and number:
            with stage("components without anchors") as remarks:
                extra = anchors_of_unreached(work, adjacency, blocks, found)
                found = np.concatenate([found, extra])
                remarks.append(f"{len(extra):,} more anchors")
        salts = Salts.draw(rng)
        drawn = json.dumps([int(salts.relations), int(salts.anchors)])
        row = [(bytearray(found.tobytes()), drawn)]
        work.write(
            work.spark.createDataFrame(row, "nodes binary, salts string").coalesce(1), "anchors"
        )
    stored = work.read("anchors").first()
    anchors = np.frombuffer(bytes(stored.nodes), np.int32)
    salts = Salts(*(np.uint64(value) for value in json.loads(stored.salts)))
    salt = salts.anchors if settings.ties == "per-node" else None
    search = Search(blocks, len(anchors), settings.anchors_per_node, salt)
    return TokenPlan(search, settings, 2 * encoded.num_relations, salts), anchors


def write_tokens(work: WorkFolder, plan: TokenPlan, steps: list[str]) -> None:
    """The step `tokens`: a row for each chunk of nodes."""
    if work.has("tokens"):
        return
    sets = work.read("blocks", "block", "set_counts", "set_values")
    if steps:
        states = work.spark.read.parquet(*(work.place(step) for step in steps))
        states = states.select("block", "hop", "counts", "anchors")
    else:
        states = sets.limit(0).selectExpr(
            "block", "0 hop", "set_counts counts", "set_counts anchors"
        )
    pieces = states.groupBy("block").cogroup(sets.groupBy("block"))
    rows = pieces.applyInArrow(make_tokens_of_block(plan), CHUNK_SCHEMA)
    work.write(rows.groupBy("chunk").applyInArrow(make_whole_chunk(plan), CHUNK_SCHEMA), "tokens")
