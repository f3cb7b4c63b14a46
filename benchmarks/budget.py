"""The same minutes on the same two cores for nodepiece and for PyKEEN.

    python -m benchmarks.budget run --dataset fb15k-237 --contender pykeen-complex-lcwa \
        --minutes 10 --lr 0.01 --batch 512 -o complex.json
    python -m benchmarks.budget run --dataset fb15k-237 --contender nodepiece -o ours.json
    python -m benchmarks.budget collect *.json
    python -m benchmarks.budget all --lanes 8 --minutes 10 -o FOLDER

`run` is one contender on one dataset, in this process, with two threads. The same code ranks for
all contenders: filtered MRR and Hits@10 of all test facts, heads and tails, ties count half.
PyKEEN's minutes are those of its training steps alone: validation, reading and evaluation do not
count. Ours are those of the whole run, from the tokens to the evaluation. `collect` writes
results/budget.json and draws results/budget.svg; of PyKEEN's runs with the most minutes, the one
with the best validation is the opponent, and shorter ones are its search. `all` does both, see
`benchmarks/budget_all.py`.
"""

import argparse
import os
from pathlib import Path

OURS = "nodepiece"
REAL = ("fb15k-237", "wn18rr", "codex-m", "wd50k")
GENERATED = {"planted-75k": "sparse", "planted-150k": "medium", "planted-2.5m": "large"}


def main() -> None:
    options = parse_options()
    if options.command == "collect":
        from benchmarks.budget_results import collect

        collect(options.files, options.out)
        return
    if options.command == "all":
        from benchmarks.budget_all import main_all

        main_all(
            options.datasets,
            options.out,
            lanes=options.lanes,
            minutes=options.minutes,
            finalists=options.finalists,
            phase=options.phase,
        )
        return
    limit_cores(options.threads, options.cores)
    from benchmarks.budget_run import run

    run(options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The same minutes for nodepiece and for PyKEEN.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="train and evaluate one contender on one dataset")
    one.add_argument("--dataset", required=True, help=f"a folder, or {', '.join(names())}")
    one.add_argument("--contender", required=True, help="nodepiece, or pykeen-MODEL-LOOP")
    one.add_argument("--minutes", type=float, default=10.0)
    one.add_argument("--threads", type=int, default=2)
    one.add_argument("--cores", default="", help="processors to run on, such as 0,1; else any")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--no-test", action="store_true", help="validate only, for a search")
    one.add_argument("--test-facts", type=int, default=0, help="0: all, of many nodes 1,000")
    one.add_argument("-o", "--out", type=Path, required=True)
    ours = one.add_argument_group("nodepiece")
    ours.add_argument("--experiment", default="", help="in place of the automatic choice")
    ours.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    ours.add_argument("--folder", type=Path, help="of the run; else it is removed")
    theirs = one.add_argument_group("PyKEEN")
    theirs.add_argument("--dim", type=int, default=100, help="complex numbers count once")
    theirs.add_argument("--lr", type=float, default=1e-3)
    theirs.add_argument("--batch", type=int, default=1024)
    theirs.add_argument("--negatives", type=int, default=16)
    theirs.add_argument("--loss", default="", help="in place of the model's usual one")
    theirs.add_argument("--margin", type=float, default=0.0)
    theirs.add_argument("--norm", type=int, default=1, choices=(1, 2), help="of TransE")
    theirs.add_argument("--decay", action="store_true", help="the rate falls to 0 in the end")
    theirs.add_argument("--smoothing", type=float, default=0.0, help="of labels, with lcwa")
    several = commands.add_parser("collect", help="write results/budget.json and its figure")
    several.add_argument("files", type=Path, nargs="+")
    several.add_argument("--out", type=Path, default=Path("results/budget.json"))
    everything = commands.add_parser("all", help="search and run everyone, several at a time")
    everything.add_argument("--datasets", nargs="+", default=[*REAL, "planted-150k"])
    everything.add_argument("--lanes", type=int, default=1, help="runs at a time, two cores each")
    everything.add_argument("--minutes", type=float, default=10.0)
    everything.add_argument("--finalists", type=int, default=3, help="of PyKEEN, by validation")
    everything.add_argument("--phase", choices=("search", "final", "both"), default="both")
    everything.add_argument("-o", "--out", type=Path, required=True, help="a folder")
    return parser.parse_args()


def names() -> tuple[str, ...]:
    return (*REAL, *GENERATED)


def limit_cores(threads: int, cores: str) -> None:
    """Use so many threads, and only the given processors; before NumPy and PyTorch are imported."""
    for name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    import torch

    import nodepiece.threads

    nodepiece.threads.stop_spinning()
    torch.set_num_threads(threads)


if __name__ == "__main__":
    main()
