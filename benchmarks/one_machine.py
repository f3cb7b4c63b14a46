"""`nodepiece tokenize` on graphs of up to 86 million nodes: minutes, memory and disk.

    python -m benchmarks.one_machine --folder DISK -o results/tokenize-one-machine.json
    python -m benchmarks.one_machine --folder DISK --against OLD -o results/tokenize-memory.json

The first generates Parquet files of ids (`benchmarks.generate_ids`; Freebase has 86 million nodes
and 338 million facts) and runs the command on each, from the file to the vocabulary folder, in a
process of its own. The result is written after each size; files are removed. The second runs the
command of another checkout and of this one in turn on a TSV file of 2.5 million nodes and 16
million facts.

Memory is sampled from outside the process: `resident` is all of it, pages of mapped files included;
`private` leaves out pages that are mapped from files, which the system drops when it needs memory.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from benchmarks.generate_ids import write_ids

from nodepiece.files import write_json

ROOT = Path(__file__).parent.parent
SIZES = ((1_000_000, 3_937_050), (10_000_000, 39_370_500), (86_000_000, 338_586_276))
K, M, MAX_ANCHORS = 20, 12, 20_000
SAMPLE_SECONDS = 0.05
STAGE = re.compile(r"^(?P<doing>.+?) \.\.\. (?:.*; )?(?P<seconds>[\d.]+) s$")
MARK, END_MARK = "<!-- table of benchmarks.one_machine -->", "<!-- end of the table -->"
OF_2_5M = ("--nodes", "2500000", "--edges", "16000000", "--relations", "535", "--seed", "0")


def floor_bytes(num_nodes: int, num_facts: int, num_anchors: int) -> dict[str, int]:
    """What the search cannot do without, in bytes."""
    return {
        "neighbours of both directions, once": 2 * num_facts * 4,
        "where the neighbours of a node begin": 8 * (num_nodes + 1),
        "k anchors of every node": num_nodes * K * (2 if num_anchors < 2**16 else 4),
        "k distances of every node": num_nodes * K,
        "a byte and a bit a node: slots in use, open nodes": num_nodes + num_nodes // 8,
    }


def run_watched(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """Run a command: seconds, processor seconds, peaks of memory in bytes, and its stages."""
    start, before = time.perf_counter(), processor_seconds()
    child = subprocess.Popen(
        command, env=os.environ | environment, stderr=subprocess.PIPE, stdout=sys.stderr
    )
    said: list[bytes] = []
    reader = Thread(target=echo, args=(child, said), daemon=True)
    reader.start()
    peaks = {"resident_bytes": 0, "private_bytes": 0}
    while child.poll() is None:
        for name, number in memory_of(child.pid).items():
            peaks[name] = max(peaks[name], number)
        time.sleep(SAMPLE_SECONDS)
    reader.join()
    seconds = time.perf_counter() - start
    if child.returncode:
        sys.exit(f"{' '.join(command)} ended with status {child.returncode}")
    lines = b"".join(said).decode(errors="replace").splitlines()
    stages = [found for line in lines if (found := STAGE.match(line))]
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(processor_seconds() - before, 2),
        **peaks,
        "stages": {found["doing"].split("/")[0]: float(found["seconds"]) for found in stages},
        "said": [re.sub(r"\S*/(?=graph)", "", line) for line in lines if " facts " in line],
    }


def echo(child: subprocess.Popen[bytes], said: list[bytes]) -> None:
    """Show what a process writes to standard error as it writes it."""
    if child.stderr is None:
        return
    while part := os.read(child.stderr.fileno(), 4096):
        said.append(part)
        sys.stderr.buffer.write(part)
        sys.stderr.flush()


def memory_of(pid: int) -> dict[str, int]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return {}
    kib = {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.M)}
    if "VmHWM" not in kib:  # it has ended
        return {}
    return {"resident_bytes": 1024 * kib["VmHWM"], "private_bytes": 1024 * kib["RssAnon"]}


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tokenize_command(graph: Path, output: Path, num_anchors: int) -> list[str]:
    words = ["tokenize", str(graph), "-o", str(output), "--anchors", str(num_anchors)]
    words += ["--anchors-per-node", str(K), "--relations-per-node", str(M)]
    return [sys.executable, "-m", "nodepiece", *words]


def measure(num_nodes: int, num_facts: int, folder: Path) -> dict[str, Any]:
    """One size, from generating the file to the vocabulary folder."""
    graph, output = folder / "graph.parquet", folder / "vocabulary"
    num_anchors = min(MAX_ANCHORS, max(K, num_nodes // 100))
    print(f"generating {num_facts:,} facts about {num_nodes:,} nodes", file=sys.stderr, flush=True)
    start = time.perf_counter()
    write_ids(num_nodes, num_facts, graph)
    generating = time.perf_counter() - start
    found = run_watched(tokenize_command(graph, output, num_anchors), {})
    floor = floor_bytes(num_nodes, num_facts, num_anchors)
    row = {
        "nodes": num_nodes,
        "facts": num_facts,
        "anchors": num_anchors,
        "seconds_to_generate": round(generating, 1),
        "minutes": round(found["seconds"] / 60, 2),
        **found,
        "private_bytes_a_fact": round(found["private_bytes"] / num_facts, 1),
        "floor_bytes": sum(floor.values()),
        "times_the_floor": round(found["private_bytes"] / sum(floor.values()), 2),
        "parquet_bytes": graph.stat().st_size,
        "vocabulary_bytes": sum(p.stat().st_size for p in output.rglob("*") if p.is_file()),
    }
    anchors = np.load(output / "tokens" / "anchors.npy", mmap_mode="r")
    if anchors.shape != (num_nodes, K):
        sys.exit(f"{output} holds anchors of shape {anchors.shape}")
    return row


def compile_first(folder: Path) -> float:
    """Compile the kernels on a tiny graph, so that no measurement includes it."""
    write_ids(2_000, 8_000, folder / "tiny.parquet")
    words = tokenize_command(folder / "tiny.parquet", folder / "tiny", K)
    return float(run_watched(words, {})["seconds"])


def measure_sizes(options: argparse.Namespace, folder: Path) -> None:
    rows: list[dict[str, Any]] = []
    compiling = compile_first(folder)
    for num_nodes, num_facts in SIZES:
        if num_nodes > options.largest:
            continue
        rows.append(measure(num_nodes, num_facts, folder))
        content = {
            "what": "nodepiece tokenize from a Parquet file of ids to a vocabulary folder",
            "command": "python -m benchmarks.one_machine --folder DISK "
            f"--largest {options.largest}",
            "cpus": os.cpu_count(),
            "anchors_per_node": K,
            "relations_per_node": M,
            "seconds_to_compile": round(compiling, 1),
            "measured": rows,
        }
        if options.note:
            content["note"] = options.note
        print(json.dumps(rows[-1]), flush=True)
        print(markdown(rows), flush=True)
        if options.out is not None:
            write_json(options.out, content)
        if options.page is not None:
            write_table(options.page, markdown(rows))


def write_table(page: Path, table: str, *, mark: str = MARK) -> None:
    """Replace the table between the two marks on a page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(mark, 1)
    after = rest.split(END_MARK, 1)[1]
    page.write_text(f"{before}{mark}\n\n{table}\n\n{END_MARK}{after}", encoding="utf-8")


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/scale.md."""
    lines = [
        "| nodes | facts | minutes | minutes of processors | private memory | bytes a fact | "
        "times the floor | vocabulary folder |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['nodes']:,} | {row['facts']:,} | {row['minutes']:.1f} | "
            f"{row['processor_seconds'] / 60:.1f} | "
            f"{row['private_bytes'] / 1e9:.2f} GB | {row['private_bytes_a_fact']:.0f} | "
            f"{row['times_the_floor']:.2f} | {row['vocabulary_bytes'] / 1e9:.1f} GB |"
        )
    return "\n".join(lines)


def compare(options: argparse.Namespace, folder: Path) -> None:
    """The command of another checkout and of this one, in turn, on the same TSV file."""
    graph = folder / "graph.tsv"
    made = [sys.executable, "-m", "benchmarks.generate", *OF_2_5M, "-o", str(graph)]
    subprocess.run(made, check=True, cwd=ROOT)
    found: dict[str, list[dict[str, Any]]] = {"before": [], "now": []}
    for _ in range(options.repeats + 1):  # the first compiles
        for name, root in (("before", options.against), ("now", ROOT)):
            words = tokenize_command(graph, folder / name, MAX_ANCHORS)
            found[name].append(run_watched(words, {"PYTHONPATH": str(root.resolve() / "src")}))
    same = subprocess.run(["diff", "-rq", str(folder / "before"), str(folder / "now")], check=False)
    best = {
        name: {
            key: min(run[key] for run in runs[1:])
            for key in ("seconds", "processor_seconds", "resident_bytes", "private_bytes")
        }
        for name, runs in found.items()
    }
    floor = floor_bytes(2_500_000, 16_000_000, MAX_ANCHORS)
    content = {
        "what": "nodepiece tokenize on 2.5 million nodes and 16 million facts in a TSV file, by "
        "another checkout and by this one; the lowest of several runs in turn",
        "command": "python -m benchmarks.one_machine --folder DISK --against CHECKOUT",
        "commit_before": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=options.against,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip(),
        "cpus": os.cpu_count(),
        "same_bytes": same.returncode == 0,
        **best,
        "ratios": {key: round(best["now"][key] / best["before"][key], 3) for key in best["now"]},
        "floor_bytes": floor,
        "runs": found,
    }
    print(json.dumps({key: value for key, value in content.items() if key != "runs"}, indent=1))
    if options.out is not None:
        write_json(options.out, content)


def main() -> None:
    parser = argparse.ArgumentParser(description="nodepiece tokenize on very large graphs.")
    parser.add_argument("--folder", type=Path, required=True, help="for files; 60 GB for 86M nodes")
    parser.add_argument("--largest", type=int, default=SIZES[-1][0], help="nodes")
    parser.add_argument("--against", type=Path, help="a checkout to compare with, at 2.5M nodes")
    parser.add_argument("--repeats", type=int, default=2, help="of each checkout")
    parser.add_argument("--note", help="about the machine; goes into the result")
    parser.add_argument("--page", type=Path, help="a page whose table is replaced: docs/scale.md")
    parser.add_argument("-o", "--out", type=Path, help="a JSON file; printed as well")
    options = parser.parse_args()
    folder = options.folder / f"one-machine-{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        if options.against is None:
            measure_sizes(options, folder)
        else:
            compare(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
