"""A server that is killed under load, and what must be on disk afterwards.

Every update adds two facts about a node of its own, so a half of an update would be seen.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from time import monotonic, sleep

import httpx

START_SECONDS = 120.0


@dataclass
class Sent:
    """The updates of all rounds: names of new nodes."""

    sent: set[str] = field(default_factory=set)
    acknowledged: dict[str, int] = field(default_factory=dict)  # with the version
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def server_process(
    folder: Path,
    *options: str,
    environment: dict[str, str] | None = None,
    seconds: float = START_SECONDS,
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own at a free port; yields the process and the address."""
    command = [sys.executable, "-m", "nodepiece", "serve", str(folder), "--port", "0", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"} | (environment or {}),
    )
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    output = process.stdout

    def read() -> None:
        for line in output:
            lines.put(line)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield process, address_in(process, lines, seconds)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join()
        output.close()


def address_in(
    process: subprocess.Popen[str], lines: "Queue[str]", seconds: float = START_SECONDS
) -> str:
    """The address that a server prints."""
    end, seen = monotonic() + seconds, ""
    while monotonic() < end:
        try:
            seen += lines.get(timeout=0.1)
        except Empty:
            assert process.poll() is None, seen
        if found := re.search(r"at (http://[\d.]+:\d+)/", seen):
            return found.group(1)
    raise AssertionError(f"the server did not start: {seen}")


def update_without_end(
    address: str, run: str, prefix: str, relation: str, nodes: tuple[str, str], sent: Sent
) -> None:
    """Send updates one after the other, until the server does not answer."""
    with httpx.Client(base_url=address, timeout=30, trust_env=False) as client:
        for number in range(10**9):
            name = f"{prefix}-{number}"
            with sent.lock:
                sent.sent.add(name)
            facts = [[name, relation, node] for node in nodes]
            try:
                answer = client.post(f"/v1/runs/{run}/update", json={"add": facts})
            except httpx.HTTPError:
                return
            if answer.status_code == 200:
                with sent.lock:
                    sent.acknowledged[name] = answer.json()["version"]


def kill_under_load(
    folder: Path,
    relation: str,
    nodes: tuple[str, str],
    sent: Sent,
    *,
    num_updates: int,
    label: str,
    num_clients: int = 4,
    options: tuple[str, ...] = ("--writable",),
) -> None:
    """Start a server, send updates from some clients, and kill it after so many answers."""
    before = len(sent.acknowledged)
    with server_process(folder, *options) as (process, address):
        threads = [
            threading.Thread(
                target=update_without_end,
                args=(address, folder.name, f"new-{label}-{number}", relation, nodes, sent),
            )
            for number in range(num_clients)
        ]
        for thread in threads:
            thread.start()
        end = monotonic() + START_SECONDS
        while len(sent.acknowledged) < before + num_updates and monotonic() < end:
            sleep(0.001)
        process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join()


def check_facts(facts: set[tuple[str, str, str]], num_each: int, sent: Sent) -> tuple[int, int]:
    """Numbers of acknowledged updates that are lost, and of updates that are there by half."""
    counts: dict[str, int] = {}
    for head, _, _ in facts:
        if head.startswith("new-"):
            counts[head] = counts.get(head, 0) + 1
    assert set(counts) <= sent.sent, "there are facts that nobody sent"
    lost = sum(name not in counts for name in sent.acknowledged)
    half = sum(count != num_each for count in counts.values())
    return lost, half
