"""A Spark cluster on this machine: a master and workers, each a separate process."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

ADDRESS = "127.0.0.1"
WAIT = 180  # seconds for a process to start, on a busy machine


def free_port() -> int:
    with socket.socket() as found:
        found.bind((ADDRESS, 0))
        return int(found.getsockname()[1])


def proportional_memory(process: Path) -> int:
    """Resident bytes; pages that processes share are divided among them."""
    for line in (process / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def memory_of_groups(groups: set[int]) -> int:
    """The resident memory of all processes of some process groups, in bytes."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            group = int(stat.read_text().rpartition(")")[2].split()[2])
            if group in groups:
                total += proportional_memory(stat.parent)
        except OSError:
            continue  # it has ended
    return total


def missing_parts() -> str | None:
    """Why there can be no cluster here; None: there can be one."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "no PySpark here: pip install 'nodepiece[spark]'"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Java here: apt install openjdk-17-jre-headless"
    return None


@dataclass
class Cluster:
    """A master and its workers."""

    folder: Path  # of logs and of the workers' files
    worker_memory: str = "1g"  # that a worker may give to executors
    port: int = field(default_factory=free_port)
    page: int = field(default_factory=free_port)
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"spark://{ADDRESS}:{self.port}"

    def start(self, num_workers: int) -> None:
        self.launch(
            "master",
            "master.Master",
            *("--host", ADDRESS, "--port", str(self.port), "--webui-port", str(self.page)),
        )
        for number in range(num_workers):
            self.start_worker(f"worker-{number}")
        self.wait_for(num_workers)

    def start_worker(self, name: str) -> None:
        place = self.folder / name
        size = ("--cores", "1", "--memory", self.worker_memory)
        options = ("--host", ADDRESS, "--webui-port", "0", "--work-dir", str(place))
        self.launch(name, "worker.Worker", *size, *options, self.url)

    def launch(self, name: str, program: str, *arguments: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}"]
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "SPARK_LOCAL_DIRS": str(self.folder / "shuffle"),
            "SPARK_NO_DAEMONIZE": "1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "OMP_NUM_THREADS": "1",
        }
        with (self.folder / f"{name}.log").open("ab") as file:
            self.processes[name] = subprocess.Popen(
                [*command, *arguments],
                env=environment,
                stdout=file,
                stderr=file,
                start_new_session=True,  # so that its executors are ended with it
            )

    def memory(self) -> int:
        """The resident memory of all processes, those that they started included, in bytes."""
        return memory_of_groups({process.pid for process in self.processes.values()})

    def kill(self, name: str) -> None:
        """End a process and all that it started, at once."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def num_workers(self) -> int:
        try:
            with urllib.request.urlopen(f"http://{ADDRESS}:{self.page}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except OSError:
            return 0

    def wait_for(self, num_workers: int) -> None:
        end = time.monotonic() + WAIT
        while self.num_workers() < num_workers:
            if time.monotonic() > end:
                logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
                raise RuntimeError(f"the cluster did not start within {WAIT} s: {logs}")
            time.sleep(0.2)

    def stop(self) -> None:
        for name in list(self.processes):
            self.kill(name)
