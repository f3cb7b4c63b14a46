"""A generated graph with rules, and how well pieces, or a vector for every node, learn them.

    python -m benchmarks.planted -o results/planted-200k.json [--nodes 200000] [--device cuda]
    python -m benchmarks.planted --only "shallow, 4" --rate 0.01 -o results/planted-200k-rates.json

All models have the same steps, batches and, unless --rate changes it, learning rate.

Nodes live in communities, each with a centre, and communities in regions, each with a centre too.
What holds follows from rules; for ten facts that a rule gives there is one that is noise:

    member_of     node -> centre of its community             identifies the node
    has_member    centre -> node                              the inverse of member_of
    in_region     centre of a community -> that of its region
    located_in    node -> centre of its region                member_of, then in_region
    works_for     node -> centre of the community that its community works for
    knows         node -> node of its community               symmetric
    related_to    node -> any node                            noise

Held out are facts that a rule gives from facts that are not. They are ranked among 500 given
negatives and among all nodes. Beside NodePiece with 1 % of the nodes as anchors stand two shallow
models: one that may have more parameters than NodePiece, but no fewer, and one of full size.
"""

import argparse
import json
import shlex
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nodepiece.data.dataset import Dataset
from nodepiece.data.encode import drop_duplicates
from nodepiece.data.ogb_write import write_ogb
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.evaluation.settings import EvaluationSettings
from nodepiece.files import write_json
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.inference.run import load
from nodepiece.settings import Experiment
from nodepiece.tasks.train import train_experiment
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.training.settings import SampledSettings, TrainingSettings

RELATIONS = (
    "member_of",
    "has_member",
    "in_region",
    "located_in",
    "works_for",
    "knows",
    "related_to",
)
COMMUNITY_SIZE = 100
COMMUNITIES_PER_REGION = 20
ACQUAINTANCES = 3  # that a node knows, each of whom knows it back
NOISE = 0.1  # facts of related_to for each fact that a rule gives
NUM_HELD_OUT = 5_000  # facts for valid, and for test
NUM_NEGATIVES = 500


def planted_dataset(num_nodes: int, *, rng: np.random.Generator) -> Dataset:
    """Nodes in random order; centres are nodes like all others."""
    node = rng.permutation(num_nodes)
    community = np.arange(num_nodes) // COMMUNITY_SIZE  # of the node at each place of `node`
    num_communities = int(community[-1]) + 1
    centre = node[np.arange(num_communities) * COMMUNITY_SIZE]
    region = np.arange(num_communities) // COMMUNITIES_PER_REGION
    region_centre = centre[region * COMMUNITIES_PER_REGION]
    employer = rng.permutation(num_communities)
    given = [
        facts("member_of", node, centre[community]),
        facts("in_region", centre, region_centre),
    ]
    by_rule = [
        facts("has_member", centre[community], node),
        facts("located_in", node, region_centre[community]),
        facts("works_for", node, centre[employer[community]]),
    ]
    friend = node[befriend(num_nodes, rng)]  # (num_nodes, ACQUAINTANCES)
    everyone = np.repeat(node, ACQUAINTANCES)
    given.append(facts("knows", everyone, friend.ravel()))
    by_rule.append(facts("knows", friend.ravel(), everyone))
    num_noise = int(NOISE * sum(map(len, by_rule)))
    given.append(facts("related_to", *rng.integers(num_nodes, size=(2, num_noise))))
    return split(np.concatenate(given), np.concatenate(by_rule), num_nodes, rng=rng)


def facts(relation: str, heads: LongArray, tails: LongArray) -> IntArray:
    kind = np.full(len(heads), RELATIONS.index(relation))
    return np.stack([heads, kind, tails], axis=1).astype(np.int32)


def befriend(num_nodes: int, rng: np.random.Generator) -> LongArray:
    """Places of nodes of the same community, for the node at every place."""
    place = np.arange(num_nodes)[:, None]
    start = place // COMMUNITY_SIZE * COMMUNITY_SIZE
    size = np.minimum(COMMUNITY_SIZE, num_nodes - start)
    step = rng.integers(1, COMMUNITY_SIZE, size=(num_nodes, ACQUAINTANCES))
    return start + (place - start + step) % size


def split(
    given: IntArray, by_rule: IntArray, num_nodes: int, *, rng: np.random.Generator
) -> Dataset:
    """Hold out facts that rules give; what they give them from stays."""
    every = drop_duplicates(np.concatenate([given, by_rule]), num_nodes, len(RELATIONS))
    num_given = len(drop_duplicates(given, num_nodes, len(RELATIONS)))
    derived = every[num_given:][rng.permutation(len(every) - num_given)]
    valid, test, rest = np.split(derived, [NUM_HELD_OUT, 2 * NUM_HELD_OUT])
    learned = np.concatenate([every[:num_given], rest])
    names = Names.of([f"n{node}" for node in range(num_nodes)], RELATIONS)
    train = KnowledgeGraph(learned, num_nodes, len(RELATIONS), names)
    return Dataset("planted", train, valid, test, {"valid": 0, "test": 0})


def experiments(dataset: Path, num_nodes: int, epochs: int) -> dict[str, Experiment]:
    nodepiece = Experiment(
        name="planted",
        dataset=str(dataset),
        tokenizer=TokenizerSettings(
            num_anchors=num_nodes // 100, anchors_per_node=10, relations_per_node=6
        ),
        encoder=EncoderSettings(dim=100, hidden_dim=200, dropout=0.0),
        decoder=DecoderSettings("complex"),
        training=TrainingSettings(
            loss="self-adversarial",
            epochs=epochs,
            batch_size=1_024,
            learning_rate=2e-3,
            schedule="cosine",
            precision="tf32",
            checkpoint_seconds=3_600.0,
        ),
        sampled=SampledSettings(
            steps_per_epoch=1_000,
            shared_negatives=True,
            num_negatives=1_024,
            temperature=1.0,
            margin=0.0,
        ),
        evaluation=EvaluationSettings(candidates="given"),
    )

    def shallow(dim: int) -> Experiment:
        return replace(nodepiece, encoder=EncoderSettings(kind="lookup", dim=dim))

    budget = nodepiece_parameters(num_nodes)
    small = 2 * -(-budget // (2 * num_nodes))  # the least even number that is no fewer parameters
    return {
        "NodePiece": nodepiece,
        f"shallow, {small} numbers a node": shallow(small),
        "shallow, 100 numbers a node": shallow(100),
    }


def chosen_experiments(
    every: dict[str, Experiment], only: str, rates: list[float]
) -> dict[str, Experiment]:
    """Those whose names contain `only`, with each of the rates where some are asked for."""
    found = {name: experiment for name, experiment in every.items() if only in name}
    if not rates:
        return found
    return {
        f"{name}, rate {rate}": replace(each, training=replace(each.training, learning_rate=rate))
        for name, each in found.items()
        for rate in rates
    }


def nodepiece_parameters(num_nodes: int) -> int:
    """Anchors and the encoder; relations and distances are a few more."""
    return num_nodes // 100 * 100 + (16 * 100 + 1) * 200 + 201 * 100


def measure(experiment: Experiment, folder: Path, device: str | None) -> dict[str, Any]:
    """Train, then rank the test facts both ways."""
    given = train_experiment(experiment, folder, overwrite=True, device=device)
    if given is None:
        raise RuntimeError("training was stopped")
    run = load(folder, device=device or "cpu")
    scores = {"500 negatives": ranks(given), "all nodes": ranks(rank_all(run, experiment))}
    return {
        "parameters": given["parameters"],
        "learning_rate": experiment.training.learning_rate,
        "ranked among": scores,
        "seconds": given["seconds"],
        "device": given["device"],
    }


def rank_all(run: Any, experiment: Experiment) -> dict[str, Any]:
    evaluation = replace(experiment.evaluation, candidates="all")
    task = replace(run.task, experiment=replace(experiment, evaluation=evaluation))
    scores: dict[str, Any] = task.evaluate(run.model, "test").scores
    return scores


def ranks(scores: dict[str, Any]) -> dict[str, float]:
    return {key: round(scores[key], 4) for key in ("mrr", "hits@1", "hits@3", "hits@10")}


def main() -> None:
    parser = argparse.ArgumentParser(description="Who learns the rules of a generated graph.")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=15, help="of 1,000 steps each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="models whose names contain this")
    parser.add_argument("--rate", type=float, action="append", help="another learning rate to try")
    parser.add_argument("--device", help="cpu or cuda")
    parser.add_argument("-o", "--out", type=Path, help="a JSON file; printed as well")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    dataset = planted_dataset(options.nodes, rng=rng)
    content: dict[str, Any] = {
        "nodes": options.nodes,
        "facts": {part: len(dataset.part(part)) for part in ("train", "valid", "test")},
        "steps": 1_000 * options.epochs,
        "models": {},
    }
    with tempfile.TemporaryDirectory() as place:
        write_ogb(dataset, Path(place) / "planted", num_negatives=NUM_NEGATIVES, rng=rng)
        every = experiments(Path(place) / "planted", options.nodes, options.epochs)
        chosen = chosen_experiments(every, options.only, options.rate or [])
        for number, (name, experiment) in enumerate(chosen.items()):
            folder = Path(place) / f"run-{number}"
            content["models"][name] = measure(experiment, folder, options.device)
            print(f"{name}: {json.dumps(content['models'][name])}", flush=True)
    words = ["--nodes", options.nodes, "--epochs", options.epochs, "--seed", options.seed]
    words += ["--only", options.only] if options.only else []
    words += [word for rate in options.rate or [] for word in ("--rate", rate)]
    content["command"] = shlex.join(["python", "-m", "benchmarks.planted", *map(str, words)])
    if options.out is not None:
        write_json(options.out, content)


if __name__ == "__main__":
    main()
