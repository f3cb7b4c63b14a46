"""The speed of `nodepiece serve` on this machine: queries, updates, kills, and a soak test.

    nodepiece train fb15k-237-paper -o RUN --set training.epochs=1
    python -m benchmarks.serving --run RUN --part load -o results/serving-fb15k-237.json
    python -m benchmarks.serving --run RUN --part updates -o results/serving-updates.json
    python -m benchmarks.serving --run RUN --part kills --kills 50 -o results/serving-kills.json
    python -m benchmarks.serving --run RUN --part soak --minutes 10 -o results/serving-soak.json

    python -m benchmarks.serving_large --nodes 2500000 -o LARGE
    python -m benchmarks.serving --run LARGE --part load search --approximate --clients 1 4 16 \\
        -o results/serving-2.5m.json

The server is a process of its own, and serves a copy of the run at a free port of 127.0.0.1. All
clients are in this process, and send one request after the other over open connections.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import numpy as np
from benchmarks.serving_load import Answers, Connection, Request, closed_loop, get, post
from benchmarks.serving_soak import memory_of, misbehave, mixed_load
from tests.serving.killed_server import Sent, check_facts, kill_under_load, server_process

from nodepiece.files import write_json
from nodepiece.inference.facts import fact_run
from nodepiece.inference.run import load
from nodepiece.serving.name_search import NameSearch

NUM_QUERIES = 2_000  # different ones
CLIENTS = (1, 2, 4, 8, 16, 32, 64)
UPDATES_PER_SECOND = 100
PARTS = ("load", "updates", "kills", "soak", "search")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=["load", "updates"])
    parser.add_argument("--clients", type=int, nargs="+", default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--minutes", type=float, default=10, help="of the soak test")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--approximate", action="store_true", help="answers from an index")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    queries = Queries(options.run)
    measured: dict[str, Any] = {
        "what": "nodepiece serve under load on one machine; clients and server share its cores",
        "command": f"python -m benchmarks.serving {' '.join(given(options.run))}",
        "cpus": os.cpu_count(),
        "run": options.run.name,
        "nodes": queries.num_nodes,
        "facts": queries.num_facts,
        "workers": options.workers,
    }
    for part in options.part:
        measured[part] = MEASUREMENTS[part](options, queries)
        print(json.dumps({part: measured[part]}, indent=1))
    if options.output is not None:
        write_json(options.output, measured)


def given(run: Path) -> list[str]:
    """The arguments of this program, with the name of the run in place of its folder."""
    return [run.name if argument == str(run) else argument for argument in sys.argv[1:]]


class Queries:
    """Queries of facts of a run, by name, and what they cost without a server."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        self.run = fact_run(load(folder))
        graph, names = self.run.dataset.train, self.run.dataset.names
        self.num_nodes, self.num_facts = graph.num_nodes, graph.num_triples
        drawn = graph.triples[rng.integers(0, graph.num_triples, NUM_QUERIES)].tolist()
        self.facts = [
            (names.node(head), names.relation(relation), names.node(tail))
            for head, relation, tail in drawn
        ]

    def requests(self, name: str) -> list[Request]:
        path = f"/v1/runs/{name}/predict"
        return [get(path, {"head": head, "relation": r}) for head, r, _ in self.facts]

    def raw_milliseconds(self, number: int) -> dict[str, Any]:
        """The same work in a loop, one query at a time."""
        times = []
        self.run.predict_many([(*self.facts[0][:2], None)])
        for head, relation, _ in self.facts[:number]:
            start = perf_counter()
            self.run.predict_many([(head, relation, None)])
            times.append(1000 * (perf_counter() - start))
        return {
            "p50_ms": round(float(np.percentile(times, 50)), 2),
            "p99_ms": round(float(np.percentile(times, 99)), 2),
        }


@contextmanager
def serving(
    options: argparse.Namespace, *arguments: str
) -> Iterator[tuple[int, tuple[str, int], str]]:
    """A server of a copy of the run: its process, its address, and the name of the run."""
    with tempfile.TemporaryDirectory() as place:
        folder = copy_of(options.run, Path(place) / "served")
        more = ["--workers", str(options.workers)] if options.workers > 1 else []
        more += ["--approximate"] if options.approximate else []
        with server_process(folder, *arguments, *more, seconds=900) as (process, address):
            host, _, port = address.removeprefix("http://").partition(":")
            yield process.pid, (host, int(port)), folder.name


def copy_of(run: Path, folder: Path) -> Path:
    """A copy of a run, whose large files are links: no file of a run is ever changed."""

    def copy(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:  # on another file system
            shutil.copy2(source, target)

    is_large = sum(path.stat().st_size for path in run.rglob("*")) > 2**29
    copied = shutil.copytree(run, folder, copy_function=copy if is_large else shutil.copy2)
    os.sync()  # else the system writes the copy while updates wait for the disk
    return copied


def measure_load(options: argparse.Namespace, queries: Queries) -> dict[str, Any]:
    """Queries a second and their times, by the number of clients."""
    raw = queries.raw_milliseconds(200 if queries.num_nodes < 100_000 else 20)
    found: dict[str, Any] = {"raw": raw, "clients": {}}
    with serving(options) as (process, address, name):
        found["memory_mb"] = round(memory_of(process) / 2**20)
        if options.approximate:
            found["approximate"] = asyncio.run(described(address, name))["approximate"]
        requests = queries.requests(name)
        for number in options.clients:
            answers = Answers()
            end = perf_counter() + options.seconds
            start = perf_counter()
            asyncio.run(
                closed_loop(
                    address,
                    requests,
                    num_clients=number,
                    until=lambda end=end: perf_counter() > end,  # type: ignore[misc]
                    answers=answers,
                )
            )
            found["clients"][str(number)] = answers.to_json(perf_counter() - start)
    return found


async def described(address: tuple[str, int], name: str) -> dict[str, Any]:
    """What the server states about the run."""
    connection = Connection(*address)
    _, content = await connection.send(get(f"/v1/runs/{name}"))
    await connection.close()
    found: dict[str, Any] = json.loads(content)
    return found


def measure_updates(options: argparse.Namespace, queries: Queries) -> dict[str, Any]:
    """Readers beside 100 updates a second, and how soon an update is in answers."""
    with serving(options, "--writable") as (_, address, name):
        return asyncio.run(update_beside_readers(options.seconds, address, name, queries))


async def update_beside_readers(
    seconds: float, address: tuple[str, int], name: str, queries: Queries
) -> dict[str, Any]:
    requests = queries.requests(name)
    _, relation, tail = queries.facts[0]
    acknowledged, visible = Answers(), Answers()
    readers = Answers()
    num_late = 0

    async def update(number: int, connection: Connection) -> None:
        node = f"added {number}"
        path = f"/v1/runs/{name}"
        start = perf_counter()
        body = {"add": [[node, relation, tail]]}
        status, content = await connection.send(post(f"{path}/update", body))
        acknowledged.add(status, perf_counter() - start)
        if status == 200:
            version = json.loads(content)["version"]
            query = {"head": node, "relation": relation, "top": 1}
            status, _ = await connection.send(
                get(f"{path}/predict", query, Nodepiece_Min_Version=str(version))
            )
            visible.add(status, perf_counter() - start)

    async def updates() -> None:
        """One update every 10 ms, over as many connections as are needed."""
        nonlocal num_late
        free: list[Connection] = []
        tasks: set[asyncio.Task[None]] = set()

        async def one(number: int) -> None:
            connection = free.pop() if free else Connection(*address)
            await update(number, connection)
            free.append(connection)

        start = perf_counter()
        for number in range(int(seconds * UPDATES_PER_SECOND)):
            wait = start + number / UPDATES_PER_SECOND - perf_counter()
            num_late += wait < -0.05
            await asyncio.sleep(max(0.0, wait))
            task = asyncio.create_task(one(number))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    warm = Connection(*address)
    await update(-1, warm)
    before = Answers()
    end = perf_counter() + seconds
    await closed_loop(
        address, requests, num_clients=4, until=lambda: perf_counter() > end, answers=before
    )
    is_done = False
    start = perf_counter()
    reading = asyncio.create_task(
        closed_loop(address, requests, num_clients=4, until=lambda: is_done, answers=readers)
    )
    await updates()
    wall = perf_counter() - start
    is_done = True
    await reading
    return {
        "updates_per_second": UPDATES_PER_SECOND,
        "readers": 4,
        "acknowledged": acknowledged.to_json(wall),
        "in_answers": visible.to_json(wall),
        "readers_beside_updates": readers.to_json(wall),
        "readers_alone": before.to_json(seconds),
        "sent_late": num_late,
    }


def measure_kills(options: argparse.Namespace, queries: Queries) -> dict[str, Any]:
    """Servers killed under load: acknowledged updates that are lost, and halves of updates."""
    rng, sent = Random(0), Sent()
    _, relation, tail = queries.facts[0]
    other = next(fact[2] for fact in queries.facts if fact[2] != tail)
    lost = half = 0
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(options.run, Path(place) / "served")
        for number in range(options.kills):
            kill_under_load(
                folder,
                relation,
                (tail, other),
                sent,
                num_updates=rng.randint(1, 60),
                label=str(number),
            )
            run = fact_run(load(folder))
            names = run.dataset.names
            new = run.dataset.train.triples[run.dataset.train.triples[:, 0] >= run.num_trained]
            facts = {(names.node(h), names.relation(r), names.node(t)) for h, r, t in new.tolist()}
            lost, half = check_facts(facts, 2, sent)
    return {
        "kills": options.kills,
        "acknowledged": len(sent.acknowledged),
        "sent": len(sent.sent),
        "acknowledged_and_lost": lost,
        "half_applied": half,
    }


def measure_soak(options: argparse.Namespace, queries: Queries) -> dict[str, Any]:
    """Minutes of mixed load with misbehaving clients, and the memory of the server."""
    with serving(options, "--writable") as (process, address, name):
        return asyncio.run(soak(60 * options.minutes, process, address, name, queries))


async def soak(
    seconds: float, process: int, address: tuple[str, int], name: str, queries: Queries
) -> dict[str, Any]:
    start = perf_counter()
    answers, rng = Answers(), Random(0)
    memory: list[tuple[float, int]] = []

    def until() -> bool:
        return perf_counter() - start > seconds

    async def sample() -> None:
        while not until():
            memory.append((perf_counter() - start, memory_of(process)))
            await asyncio.sleep(min(5.0, seconds / 50))

    clients = [
        mixed_load(address, mixed_requests(name, queries), until, answers, Random(number))
        for number in range(8)
    ]
    misbehaving = asyncio.gather(*(misbehave(address, name, until, rng) for _ in range(4)))
    await asyncio.gather(sample(), *clients, misbehaving)
    warm = [size for at, size in memory if at > seconds / 5]
    early, late = np.mean(warm[: len(warm) // 5 + 1]), np.mean(warm[-(len(warm) // 5 + 1) :])
    return answers.to_json(perf_counter() - start) | {
        "minutes": round(seconds / 60, 2),
        "misbehaving_requests": sum(misbehaving.result()),
        "memory_mb": [round(size / 2**20) for _, size in memory[:: max(1, len(memory) // 20)]],
        "memory_growth_percent": round(float(100 * (late / early - 1)), 2),
    }


def mixed_requests(name: str, queries: Queries) -> list[Request]:
    """Requests to all paths. Updates add facts of a few nodes, and remove them again."""
    path, facts = f"/v1/runs/{name}", queries.facts
    requests = queries.requests(name)[:100]
    for number, (head, relation, tail) in enumerate(facts[:10]):
        fact = [f"visitor {number}", relation, tail]
        requests += [
            get(f"{path}/node", {"name": head}),
            get(f"{path}/nodes", {"search": head[:4]}),
            get(f"{path}/similar", {"node": tail}),
            get(f"{path}/relations"),
            post(f"{path}/score", {"facts": [[head, relation, tail]]}),
            post(f"{path}/embed", {"nodes": [head, tail]}),
            post(f"{path}/predict", {"queries": [{"head": head, "relation": relation}] * 8}),
            post(
                f"{path}/predict",
                {"queries": [{"head": fact[0], "relation": relation}], "assume": [fact]},
            ),
            post(f"{path}/update", {"add": [fact]}),
            post(f"{path}/update", {"remove": [fact]}),
        ]
    return requests


def measure_search(options: argparse.Namespace, queries: Queries) -> dict[str, Any]:
    """Milliseconds of searches among the names of a run, by beginnings and parts of names."""
    names, rng = queries.run.dataset.names.nodes, Random(0)
    start = perf_counter()
    search = NameSearch.of(names, queries.run.snapshot.candidates.num_facts.whole())
    build = perf_counter() - start
    found: dict[str, Any] = {"build_seconds": round(build, 2), "bytes": len(search.text)}
    for kind in ("beginning", "part", "absent"):
        times = []
        for _ in range(300):
            name = names[rng.randrange(len(names))].as_py()
            length = rng.randint(1, max(1, len(name)))
            first = 0 if kind == "beginning" else rng.randint(0, len(name) - length)
            text = name[first : first + length] + ("\x01" if kind == "absent" else "")
            start = perf_counter()
            search.find(text, 20, at_start=kind == "beginning")
            times.append(1000 * (perf_counter() - start))
        found[kind] = {
            "p50_ms": round(float(np.percentile(times, 50)), 3),
            "p99_ms": round(float(np.percentile(times, 99)), 3),
        }
    return found


MEASUREMENTS = {
    "load": measure_load,
    "updates": measure_updates,
    "kills": measure_kills,
    "soak": measure_soak,
    "search": measure_search,
}

if __name__ == "__main__":
    main()
