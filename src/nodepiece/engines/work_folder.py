"""The steps that are done, as Parquet in a folder that all workers see."""

import json
import re
from pathlib import Path
from typing import Any

from nodepiece.errors import InputError

PLAN = "plan"  # the settings that the other steps were made with
STEP = re.compile(rf"{PLAN}|facts|nodes|names|blocks|anchors|tokens|(rank|label|hop)-\d+|\..*\.crc")


class WorkFolder:
    """Results of steps; a step counts when Spark has written its marker.

    Each step is written as a whole, so a job that was stopped continues with the first missing
    step. The path is one of Spark: local, HDFS, an object store.
    """

    def __init__(self, spark: Any, path: str) -> None:
        self.spark, self.path = spark, path.rstrip("/")
        jvm = spark._jvm
        self._paths = jvm.org.apache.hadoop.fs.Path
        self._files = self._paths(self.path).getFileSystem(spark._jsc.hadoopConfiguration())

    def place(self, step: str) -> str:
        return f"{self.path}/{step}"

    def has(self, step: str) -> bool:
        return bool(self._files.exists(self._paths(f"{self.path}/{step}/_SUCCESS")))

    def read(self, step: str, *columns: str) -> Any:
        table = self.spark.read.parquet(self.place(step))
        return table.select(*columns) if columns else table

    def write(self, table: Any, step: str) -> None:
        table.write.mode("overwrite").option("parquet.enable.dictionary", "false").parquet(
            self.place(step)
        )

    def remove(self, step: str | None = None) -> None:
        """Remove a step, or all."""
        self._files.delete(self._paths(self.path if step is None else self.place(step)), True)

    def start(self, plan: dict[str, Any]) -> bool:
        """Whether the folder has steps of this plan; those of another one are removed first.

        A folder with anything else in it is refused, as it would be removed too.
        """
        text = json.dumps(plan, sort_keys=True)
        if self.has(PLAN):
            stored = "".join(row.value for row in self.spark.read.text(self.place(PLAN)).collect())
            if stored == text:
                return True
        if self._files.exists(self._paths(self.path)) and self._is_foreign():
            raise InputError(
                f"{self.path} has other files than steps of an earlier run, and is removed in the "
                "end; choose another --work folder"
            )
        self.remove()
        self.spark.createDataFrame([(text,)], "value string").coalesce(1).write.text(
            self.place(PLAN)
        )
        return False

    def last_number(self, prefix: str) -> int | None:
        """The largest number of the finished steps whose names begin so; None: there are none."""
        names = [
            entry.getPath().getName() for entry in self._files.listStatus(self._paths(self.path))
        ]
        numbers = [
            int(name.removeprefix(prefix))
            for name in names
            if name.startswith(prefix) and self.has(name)
        ]
        return max(numbers, default=None)

    def _is_foreign(self) -> bool:
        entries = [
            entry.getPath().getName() for entry in self._files.listStatus(self._paths(self.path))
        ]
        return not all(map(STEP.fullmatch, entries))

    def file_states(self, paths: list[str]) -> list[list[Any]]:
        """URI, length and time of change of files, to recognize changed ones."""
        found = []
        for path in sorted(paths):
            place = self._paths(self.spark._jvm.java.net.URI(path))
            status = place.getFileSystem(self.spark._jsc.hadoopConfiguration()).getFileStatus(place)
            found.append([path, status.getLen(), status.getModificationTime()])
        return found


def check_result(spark: Any, path: str) -> None:
    """Refuse a place for a result where there is something that Spark did not write."""
    make = spark._jvm.org.apache.hadoop.fs.Path
    target = make(path)
    files = target.getFileSystem(spark._jsc.hadoopConfiguration())
    if not files.exists(target) or files.exists(make(f"{path.rstrip('/')}/_SUCCESS")):
        return
    if files.isFile(target) or len(files.listStatus(target)):
        raise InputError(
            f"{path} exists and is not a result of Spark (it has no _SUCCESS); choose another "
            "output, or remove it yourself"
        )


def write_whole(table: Any, path: str) -> None:
    """Write a folder of Parquet files that replaces an earlier one when it is complete."""
    spark = table.sparkSession
    check_result(spark, path)
    make = spark._jvm.org.apache.hadoop.fs.Path
    target, partial = make(path), make(f"{path.rstrip('/')}.partial")
    files = target.getFileSystem(spark._jsc.hadoopConfiguration())
    try:
        table.write.mode("overwrite").parquet(partial.toString())
        files.delete(target, True)
        if not files.rename(partial, target):
            raise OSError(f"{path} cannot be replaced; choose another place")
    finally:
        files.delete(partial, True)


def spark_path(path: str) -> str:
    """A path for Spark: without a scheme, such as hdfs://, it is local, and made absolute."""
    return path if "://" in path else f"file://{Path(path).absolute()}"  # blanks stay as they are
