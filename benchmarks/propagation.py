"""Link prediction by propagation alone: how far it comes in how many seconds, on one GPU.

    python -m benchmarks.propagation fb15k-237 --hide pairs --seconds 880
    python -m benchmarks.propagation wn18rr --hide facts --target-share 1 --rank 32 --seconds 200

Trains `decoders/propagation.py` without NodePiece vectors: every distinct query (head, relation, ?)
of the training facts and their inverses once a pass. In each pass some of its answers are targets,
at most MAX_TARGETS; these are scored against all nodes that are no answer, and their edges are
hidden from the whole batch (--hide pairs: every edge between the two nodes, as in FB15k-237, whose
test facts have no such edge). The other answers stay edges. The learning rate falls along a cosine
of the seconds; --stop ends earlier. Prints validation now and then, then the test; writes them to
--output.
"""

import argparse
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from nodepiece.data.dataset import Dataset
from nodepiece.data.load import load_benchmark
from nodepiece.decoders.propagation import Propagation, PropagationSettings
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.evaluation.known_answers import KnownAnswers, known_tails
from nodepiece.evaluation.metrics import summarize
from nodepiece.evaluation.ranking import rank_links
from nodepiece.files import write_json
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.tasks.runner import describe_device

MAX_TARGETS = 32
WARMUP_STEPS = 300
SMALLEST_RATE = 0.01  # of the learning rate, at the end
MEMORY_BUDGET = 2**30


@dataclass(frozen=True)
class Batch:
    """Queries, all their answers in training, and which of these are targets."""

    heads: Tensor  # (num_queries,)
    relations: Tensor  # (num_queries,)
    rows: Tensor  # (num_answers,) the query of each answer
    answers: Tensor  # (num_answers,) nodes
    targets: Tensor  # (num_targets,) places among the answers
    target_weights: Tensor  # (num_targets,) one over the root of the targets of the query
    hidden: Tensor  # (num_targets,) groups of edges


class Queries:
    """The distinct queries of a graph, in shuffled batches."""

    def __init__(self, edges: IntArray, num_relations: int, groups: LongArray) -> None:
        head, relation, tail = edges.astype(np.int64).T
        key = head * num_relations + relation
        order = np.argsort(key, kind="stable")
        distinct, self.start, self.count = np.unique(
            key[order], return_index=True, return_counts=True
        )
        self.head, self.relation = np.divmod(distinct, num_relations)
        self.tail, self.group = tail[order], groups[order]

    def shuffled(
        self, batch_size: int, target_share: float, rng: np.random.Generator, device: torch.device
    ) -> "list[Batch]":
        """One pass; what does not fill the last batch is left for another."""
        chosen = rng.permutation(len(self.count))
        count = self.count[chosen]
        first = np.cumsum(count) - count
        query = np.repeat(np.arange(len(chosen)), count)
        place = np.arange(len(query)) - first[query] + self.start[chosen][query]
        order = np.lexsort((rng.random(len(query)), query))
        rank = np.empty(len(query), np.int64)
        rank[order] = np.arange(len(query)) - first[query[order]]
        num_targets = np.clip(np.round(count * target_share), 1, MAX_TARGETS)
        is_target = rank < num_targets[query]
        head, relation, answer, group, row = (
            torch.tensor(array, device=device)
            for array in (
                self.head[chosen],
                self.relation[chosen],
                self.tail[place],
                self.group[place],
                query % batch_size,
            )
        )
        weight = torch.tensor((num_targets**-0.5)[query], dtype=torch.float32, device=device)
        ends = np.append(first, len(query))
        batches = []
        for start in range(0, len(chosen) - batch_size + 1, batch_size):
            stop = start + batch_size
            mine = slice(ends[start], ends[stop])
            target = torch.tensor(np.flatnonzero(is_target[mine]), device=device)
            batches.append(
                Batch(
                    head[start:stop],
                    relation[start:stop],
                    row[mine],
                    answer[mine],
                    target,
                    weight[mine][target],
                    group[mine][target],
                )
            )
        return batches


def hidden_together(edges: IntArray, num_nodes: int, hide: str) -> LongArray:
    """(num_edges,) a number that edges share which are hidden together, inverses included."""
    num_facts = len(edges) // 2
    if hide == "facts":
        return np.arange(len(edges), dtype=np.int64) % num_facts
    ends = np.sort(edges[:, [0, 2]].astype(np.int64), axis=1)
    _, pair = np.unique(ends[:, 0] * num_nodes + ends[:, 1], return_inverse=True)
    return pair.astype(np.int64)


def batch_loss(scores: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy of each target against all nodes that are no answer in training."""
    no_answer = scores.index_put(
        (batch.rows, batch.answers), torch.tensor(-torch.inf, device=scores.device)
    )
    others = no_answer.logsumexp(dim=1)
    row, answer = batch.rows[batch.targets], batch.answers[batch.targets]
    losses = softplus(others[row] - scores[row, answer])
    return (losses * batch.target_weights).sum() / batch.target_weights.sum()


def measure(
    model: Propagation,
    edges: EdgeIndex,
    triples: IntArray,
    known: KnownAnswers,
    *,
    at_once: int,
    dtype: torch.dtype,
) -> dict[str, float]:
    """Filtered metrics over both sides, with realistic ranks."""
    device = edges.device
    visible = torch.ones(edges.num_edges, device=device)

    def score(heads: Tensor, relations: Tensor) -> Tensor:
        parts = (slice(start, start + at_once) for start in range(0, len(heads), at_once))
        return torch.cat(
            [
                model.score_tails(heads[part], relations[part], edges, visible, dtype)
                for part in parts
            ]
        )

    ranks = rank_links(score, triples, known, memory_budget=MEMORY_BUDGET, device=device)
    return summarize(np.concatenate([ranks.head, ranks.tail])).to_json()


def train(dataset: Dataset, options: argparse.Namespace) -> dict[str, Any]:
    device = torch.device(options.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    graph, rng = dataset.train, np.random.default_rng(options.seed)
    facts = with_inverses(graph)
    groups = hidden_together(facts, graph.num_nodes, options.hide)
    # A fact is a message from its head to its tail.
    edges = EdgeIndex(
        torch.tensor(facts[:, [2, 1, 0]], device=device),
        graph.num_nodes,
        2 * graph.num_relations,
        "target",
    )
    group_of_edge = torch.tensor(groups, device=device)[edges.order]
    queries = Queries(facts, 2 * graph.num_relations, groups)
    settings = PropagationSettings(options.layers, options.dim, options.rank)
    model = Propagation(
        2 * graph.num_relations, settings, generator=torch.Generator().manual_seed(options.seed)
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    parts = [dataset.part(part) for part in ("train", "valid", "test")]
    known = known_tails(np.concatenate(parts), graph.num_nodes, graph.num_relations)
    chosen = rng.permutation(len(parts[1]))[: options.validate_facts]
    valid = parts[1][np.sort(chosen)]
    step, seconds, history = 0, 0.0, list[dict[str, Any]]()
    end = min(options.seconds, options.stop)
    while seconds < end:
        for batch in queries.shuffled(options.batch_size, options.target_share, rng, device):
            start = perf_counter()
            done = min(1.0, seconds / options.seconds)
            rate = max(SMALLEST_RATE, (1 + math.cos(math.pi * done)) / 2)
            for group in optimizer.param_groups:
                group["lr"] = options.learning_rate * rate * min(1.0, (step + 1) / WARMUP_STEPS)
            is_hidden = torch.zeros(int(groups.max()) + 1, dtype=torch.bool, device=device)
            is_hidden[batch.hidden] = True
            edge_mask = (~is_hidden[group_of_edge]).float()
            scores = model.score_tails(batch.heads, batch.relations, edges, edge_mask, dtype)
            loss = batch_loss(scores, batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            if device.type == "cuda":
                torch.cuda.synchronize()
            before, seconds = seconds, seconds + perf_counter() - start
            if seconds >= end or before // options.every < seconds // options.every:
                found = measure(
                    model, edges, valid, known, at_once=2 * options.batch_size, dtype=dtype
                )
                record = {"step": step, "seconds": round(seconds, 1), "valid_mrr": found["mrr"]}
                history.append(record)
                print(record, f"{1000 * seconds / step:.1f} ms a step", flush=True)
            if seconds >= end:
                break
    found = measure(model, edges, parts[2], known, at_once=2 * options.batch_size, dtype=dtype)
    return found | {
        "dataset": options.dataset,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "propagation": asdict(settings),
        "steps": step,
        "queries": len(queries.count),
        "passes": step * options.batch_size / len(queries.count),
        "seconds": round(seconds, 1),
        "device": describe_device(device),
        "history": history,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("dataset", help="a benchmark of link prediction, such as fb15k-237")
    parser.add_argument("--hide", choices=["pairs", "facts"], default="facts")
    parser.add_argument("--target-share", type=float, default=0.5, help="of a query's answers")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--dim", type=int, default=32, help="a power of 2")
    parser.add_argument("--rank", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32, help="queries")
    parser.add_argument("--learning-rate", type=float, default=0.003)
    parser.add_argument("--seconds", type=float, default=600.0, help="of training, planned")
    parser.add_argument("--stop", type=float, default=math.inf, help="end after so many of these")
    parser.add_argument("--every", type=float, default=100.0, help="seconds between validations")
    parser.add_argument("--validate-facts", type=int, default=2000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--output", type=Path, default=Path("propagation.json"))
    options = parser.parse_args()
    result = train(load_benchmark(options.dataset, options.data), options)
    write_json(options.output, result)
    print({name: result[name] for name in ("mrr", "hits@10", "parameters", "seconds", "passes")})


if __name__ == "__main__":
    main()
