"""One measurement of training or ranking in a separate process, so that its memory can be measured.

python -m benchmarks.measure_training EXPERIMENT STEP COUNT THREADS

measures COUNT steps of training, or ranks COUNT test facts (0: all), and prints one line of JSON.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from benchmarks.measure import peak_memory, prefer_to_be_killed
from benchmarks.tokenization import Measured

from nodepiece.data.dataset import Dataset
from nodepiece.data.open import open_dataset
from nodepiece.decoders.link_model import LinkModel
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.settings import Experiment, load_experiment
from nodepiece.tasks.evaluator import LinkEvaluator
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.links import link_trainer
from nodepiece.training.memory import keep_freed_memory

LARGE_BATCH = 128  # facts that PyKEEN ranks at a time, unless it chooses


class EnoughSteps(Exception):
    """Raised out of a training loop when all wanted steps are timed."""


@dataclass
class Clock:
    """Step times: `tick` is called at the same point of every step."""

    num_warm_up: int  # steps not counted
    num_steps: int
    moments: list[float] = field(default_factory=list)

    def tick(self) -> None:
        self.moments.append(time.perf_counter())
        if len(self.moments) > self.num_warm_up + self.num_steps:
            raise EnoughSteps

    def seconds(self) -> list[float]:
        return np.diff(self.moments)[self.num_warm_up :].tolist()


def train(experiment: Experiment, dataset: Dataset, num_steps: int) -> Measured:
    model = our_model(experiment, dataset)
    generator = torch.Generator().manual_seed(experiment.seed)
    edges = torch.tensor(with_inverses(dataset.train))
    keep_freed_memory()  # as `nodepiece train` does
    trainer = link_trainer(
        model,
        edges,
        experiment.training,
        one_vs_all=experiment.one_vs_all,
        sampled=experiment.sampled,
        generator=generator,
    )
    clock = Clock(num_warm_up=3, num_steps=num_steps)
    with suppress(EnoughSteps):
        trainer.run_epoch(0, lambda done, total: clock.tick())
    return step_times(clock, model)


def rank(experiment: Experiment, dataset: Dataset, num_facts: int) -> Measured:
    """From the weights on: the filter, the vectors of all nodes, the ranks, the metrics."""
    model = our_model(experiment, dataset)
    first_ten, first_all = (with_test_facts(experiment, number) for number in (10, num_facts))
    LinkEvaluator(first_ten, dataset).report(model, "test")  # warm-up
    facts = first_facts(dataset, num_facts)
    return rank_times(facts, lambda: LinkEvaluator(first_all, dataset).report(model, "test"))


def with_test_facts(experiment: Experiment, number: int) -> Experiment:
    return replace(experiment, evaluation=replace(experiment.evaluation, test_facts=number))


def our_model(experiment: Experiment, dataset: Dataset) -> LinkModel:
    rng = np.random.default_rng(experiment.seed)
    vocabulary = fit_vocabulary(dataset.train, experiment.tokenizer, rng=rng)
    table = tokenize(dataset.train, vocabulary, rng=rng)
    return LinkPrediction(experiment, dataset).build_model(table)


def pykeen_train(experiment: Experiment, dataset: Dataset, num_steps: int) -> Measured:
    from pykeen.training import LCWATrainingLoop, SLCWATrainingLoop
    from pykeen.training.callbacks import TrainingCallback

    clock = Clock(num_warm_up=1, num_steps=num_steps)

    class Ticks(TrainingCallback):
        def pre_batch(self, **_: Any) -> None:
            clock.tick()

    settings, facts = experiment.training, pykeen_facts(dataset, dataset.train.triples)
    model = pykeen_model(experiment, facts)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    common = {
        "model": model,
        "triples_factory": facts,
        "optimizer": optimizer,
        "automatic_memory_optimization": False,  # it would try out smaller batches first
    }
    loop = (
        LCWATrainingLoop(**common)
        if settings.is_one_vs_all
        else SLCWATrainingLoop(
            **common, negative_sampler_kwargs={"num_negs_per_pos": experiment.sampled.num_negatives}
        )
    )
    with suppress(EnoughSteps):
        loop.train(
            facts,
            num_epochs=1,
            batch_size=settings.batch_size,
            label_smoothing=experiment.one_vs_all.smoothing,
            callbacks=Ticks(),  # type: ignore[no-untyped-call]
            use_tqdm=False,
        )
    return step_times(clock, model)


def pykeen_rank(batch_size: int | None) -> Callable[[Experiment, Dataset, int], Measured]:
    """`batch_size`: facts at a time; None: as many as PyKEEN chooses."""

    def step(experiment: Experiment, dataset: Dataset, num_facts: int) -> Measured:
        from pykeen.evaluation import RankBasedEvaluator

        model = pykeen_model(experiment, pykeen_facts(dataset, dataset.train.triples))
        facts = first_facts(dataset, num_facts)
        triples, known = (
            torch.tensor(part, dtype=torch.long) for part in (facts, dataset.all_triples())
        )
        evaluator = RankBasedEvaluator(filtered=True)

        def run() -> None:
            evaluator.evaluate(
                model,
                triples,
                batch_size=batch_size,
                additional_filter_triples=known,
                use_tqdm=False,
            )

        return rank_times(facts, run)

    return step


def pykeen_facts(dataset: Dataset, triples: IntArray) -> Any:
    """The facts, to which PyKEEN adds their inverses."""
    from pykeen.triples import CoreTriplesFactory

    return CoreTriplesFactory(
        torch.tensor(triples, dtype=torch.long),
        num_entities=dataset.train.num_nodes,
        num_relations=dataset.train.num_relations,
        create_inverse_triples=True,
    )


def pykeen_model(experiment: Experiment, facts: Any) -> Any:
    from pykeen.losses import BCEWithLogitsLoss, NSSALoss
    from pykeen.models import NodePiece

    tokenizer, training, sampled = experiment.tokenizer, experiment.training, experiment.sampled
    if experiment.encoder.hidden_dim != 2 * experiment.encoder.dim:
        raise ValueError("the hidden layer of PyKEEN's MLP has twice the size of its output")
    return NodePiece(
        triples_factory=facts,
        num_tokens=[tokenizer.anchors_per_node, tokenizer.relations_per_node],
        tokenizers=["AnchorTokenizer", "RelationTokenizer"],
        tokenizers_kwargs=[
            {
                "selection": "MixtureAnchorSelection",
                "selection_kwargs": {
                    "selections": list(tokenizer.mix),
                    "ratios": list(tokenizer.mix.values()),
                    "num_anchors": tokenizer.num_anchors,
                },
                "searcher": "CSGraph",
            },
            {},
        ],
        embedding_dim=experiment.encoder.dim,
        aggregation="mlp",
        interaction="rotate",
        relation_initializer="init_phases",
        relation_constrainer="complex_normalize",
        loss=BCEWithLogitsLoss()
        if training.is_one_vs_all
        else NSSALoss(margin=sampled.margin, adversarial_temperature=sampled.temperature),
        random_seed=experiment.seed,
    )


def first_facts(dataset: Dataset, num_facts: int) -> IntArray:
    return dataset.test[:num_facts] if num_facts else dataset.test


def step_times(clock: Clock, model: torch.nn.Module) -> Measured:
    seconds = clock.seconds()
    return {
        "seconds": float(np.median(seconds)),
        "all_seconds": seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def rank_times(facts: IntArray, run: Callable[[], object]) -> Measured:
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "facts": len(facts), "facts_per_second": len(facts) / seconds}


STEPS: dict[str, Callable[[Experiment, Dataset, int], Measured]] = {
    "train": train,
    "rank": rank,
    "pykeen-train": pykeen_train,
    "pykeen-rank": pykeen_rank(None),
    "pykeen-rank-large-batch": pykeen_rank(LARGE_BATCH),
}


def main() -> None:
    name, step, count, threads = sys.argv[1:]
    prefer_to_be_killed()
    warnings.simplefilter("ignore")  # PyKEEN's, about viewing pairs of numbers as complex ones
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)  # PyKEEN draws from the global generator
    experiment = load_experiment(name)
    dataset = open_dataset(experiment.dataset, data=None)
    measured = STEPS[step](experiment, dataset, int(count))
    print(json.dumps(measured | {"peak_memory_mib": peak_memory()}))


if __name__ == "__main__":
    main()
