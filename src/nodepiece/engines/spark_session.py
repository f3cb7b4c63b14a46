"""A Spark session, and errors of Spark as sentences."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from nodepiece.errors import InputError, MissingExtra

JAVA = 17  # the oldest that Spark 4 runs on
LOCAL = "local[*]"
PARTITIONS, PARTITIONS_PER_CORE = "spark.sql.shuffle.partitions", 3

# Sizes are planned here, so Spark must not merge partitions; a cell may hold gigabytes.
SETTINGS = {
    "spark.app.name": "nodepiece",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.driver.maxResultSize": "0",
    "spark.ui.showConsoleProgress": "false",
}
REMOTE_INPUT_ERROR = re.compile(r"nodepiece\.errors\.\w+: (.*)")


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs, and its settings."""

    master: str | None = None  # such as spark://host:7077; None: spark-submit's, or this machine
    settings: Mapping[str, str] = field(default_factory=dict)  # of Spark, such as executor memory


def open_session(options: SparkOptions) -> Any:
    """A `SparkSession`, the current one if there is one (under spark-submit, in a notebook)."""
    session = import_session()
    if (current := session.getActiveSession()) is not None:
        for name, value in SETTINGS.items():
            if name.startswith("spark.sql."):
                current.conf.set(name, value)
        return with_partitions(current)
    check_java()
    builder = session.builder
    chosen = {**SETTINGS, **options.settings}
    os.environ.setdefault("PYSPARK_PYTHON", chosen.get("spark.pyspark.python", sys.executable))
    if options.master is not None:
        chosen["spark.master"] = options.master
    elif "SPARK_ENV_LOADED" not in os.environ:
        chosen.setdefault("spark.master", LOCAL)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    with quiet_imports(), spark_errors(), same_interrupts():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return with_partitions(spark)


@contextmanager
def same_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C, which PySpark replaces with its own."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def with_partitions(spark: Any) -> Any:
    """The session, with partitions for its cores unless their number was given.

    Spark's own number, 200, makes a small cluster slow.
    """
    context = spark.sparkContext
    if not context.getConf().contains(PARTITIONS):
        spark.conf.set(PARTITIONS, str(PARTITIONS_PER_CORE * context.defaultParallelism))
    return spark


def import_session() -> Any:
    try:
        with quiet_imports():
            from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise MissingExtra("--engine spark needs PySpark", "spark") from error
    return SparkSession


@contextmanager
def quiet_imports() -> Iterator[None]:
    """Ignore warnings of PySpark about newer versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pyspark")
        yield


def check_java() -> None:
    """Refuse to start where Spark's Java is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    advice = (
        f"install Java {JAVA} (Debian: apt install openjdk-{JAVA}-jre-headless), or set JAVA_HOME"
    )
    if program is None:
        raise InputError(f"Spark needs Java, and there is no program java; {advice}")
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"Spark needs Java, and {program} cannot be run; {advice}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    if found is not None and int(found[1]) < JAVA:
        raise InputError(
            f"Spark needs Java {JAVA} or newer, and {program} is Java {found[1]}; {advice}"
        )


@contextmanager
def spark_errors(again: str = "") -> Iterator[None]:
    """Turn errors of Spark in the block into one sentence; `again` says how to continue."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise as_sentence(str(error), again) from error


def as_sentence(text: str, again: str) -> Exception:
    """The error for a message of Spark, which may have the traceback of a worker in it."""
    if remote := REMOTE_INPUT_ERROR.search(text):
        return InputError(remote[1])
    if "No space left on device" in text:
        return OSError(errno.ENOSPC, f"Spark: no space left on a disk of the cluster{again}")
    if "OutOfMemoryError" in text or "MemoryError" in text:
        return MemoryError(f"Spark: not enough memory{again}")
    if "ModuleNotFoundError: No module named" in text:
        module = re.search(r"No module named '([^']+)'", text)
        return InputError(
            f"the workers of Spark have no {module[1] if module else 'nodepiece'}; install "
            "nodepiece on all of them, and set spark.pyspark.python to their Python"
        )
    lost = re.search(r"ExecutorLostFailure[^\n]*|Master removed our application[^\n]*", text)
    if lost or "All masters are unresponsive" in text or "SparkContext was shut down" in text:
        advice = again or "; look whether they run, and run the command again"
        return InputError(f"Spark cannot reach its workers or its master{advice}")
    missing = re.search(r"\[PATH_NOT_FOUND\] ([^\n]*?)\.? SQLSTATE", text)
    if missing:
        return InputError(f"{missing[1]}; check the path, which Spark must be able to read")
    table = re.search(r"\[TABLE_OR_VIEW_NOT_FOUND\] ([^\n.]*)", text)
    if table:
        return InputError(f"{table[1]}; check its name")
    first = next((line for line in text.splitlines() if line.strip()), "unknown error")
    return RuntimeError(f"Spark: {first}{again}")
