"""Transductive link prediction and relation prediction (section 4.1 and its appendix).

Both train a model of which facts hold. Link prediction then ranks the tail and the head of each
test fact among all nodes, relation prediction its relation among all relations.
"""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

import nodepiece
from nodepiece.data.dataset import Dataset
from nodepiece.decoders.link_model import LinkModel
from nodepiece.encoders.node_embedding import LookupEmbedding, NodePieceEmbedding
from nodepiece.encoders.pieces import resample_relations, shuffle_equidistant
from nodepiece.errors import InputError
from nodepiece.evaluation.metrics import RankingReport
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.settings import Experiment
from nodepiece.tasks.judge import Judge
from nodepiece.tasks.run_folder import (
    CHECKPOINT,
    CONFIG,
    METRICS,
    MODEL,
    SPLITS,
    HistoryFile,
    damaged,
    hash_config,
    read_config,
    read_facts,
    start_run,
    write_history,
    write_json,
)
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.storage import load_tokens, save_tokens
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.checkpoint import FORMAT_VERSION, load_tensors, load_weights, save_tensors
from nodepiece.training.loop import Watcher, fit
from nodepiece.training.trainer import Trainer

NO_ANCHORS = TokenizerSettings(anchors_per_node=0, relations_per_node=1)


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is run, as opposed to what it is."""

    folder: Path
    device: torch.device
    resume: bool = False
    command: str = ""  # that gives this result again, for the record
    watchers: tuple[Watcher, ...] = ()
    say: Callable[[str], None] = lambda sentence: None
    should_stop: Callable[[], bool] = lambda: False


def run_experiment(
    experiment: Experiment, dataset: Dataset, options: RunOptions
) -> dict[str, Any] | None:
    """Tokenize, train, evaluate and write the run folder; returns what metrics.json holds.

    Returns None if it was asked to stop before the end: the folder then holds a checkpoint, and
    the same call with `resume` goes on from there.
    """
    folder, device = options.folder, options.device
    check_splits(experiment, dataset)
    resume = options.resume and (folder / CHECKPOINT).exists()
    if resume:
        check_same(experiment, dataset, folder)
    else:
        start_run(folder, experiment, dataset)
    start = perf_counter()
    table = (
        load_tokens(folder / "vocabulary", graph=dataset.train)
        if resume
        else make_tokens(experiment, dataset, folder)
    )
    tokenize_seconds = perf_counter() - start
    model = build_model(experiment, dataset, table).to(device)
    options.say(f"{model.num_parameters():,} parameters")
    edges = torch.tensor(with_inverses(dataset.train)).to(device)
    generator = torch.Generator(device).manual_seed(experiment.seed)
    trainer = Trainer(model, edges, experiment.training, generator=generator)
    history = HistoryFile(folder)
    judge = Judge(experiment, dataset)
    progress, stopping = fit(
        trainer,
        checkpoint=folder / CHECKPOINT,
        validate=lambda: judge.validate(model),
        before_epoch=partial(refresh_tokens, experiment, table, trainer),
        watchers=[history, *options.watchers],
        should_stop=options.should_stop,
        resume=resume,
    )
    write_history(folder, progress.history)
    if stopping.interrupted:
        return None
    header = {"format_version": str(FORMAT_VERSION), "config_sha256": hash_config(folder)}
    save_tensors(model.state_dict(), folder / MODEL, header)
    options.say(f"training ended after epoch {progress.epoch}: {stopping.reason}")
    start = perf_counter()
    report = judge.report(model, dataset.test) if len(dataset.test) else None
    evaluate_seconds = perf_counter() - start
    valid = judge.report(model, dataset.valid).both if len(dataset.valid) else None
    metrics = {
        **describe_result(experiment, dataset, report),
        "valid": valid.to_json() if valid else None,
        "unseen": dataset.num_unseen,
        "parameters": model.num_parameters(),
        "vocabulary": {
            "nodes": dataset.train.num_nodes,
            "anchors": table.vocabulary.num_anchors,
            "relations": 2 * dataset.train.num_relations,
        },
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "seconds": {
            "tokenize": round(tokenize_seconds, 3),
            "train": round(progress.seconds, 3),
            "evaluate": round(evaluate_seconds, 3),
        },
        "device": describe_device(device),
        "seed": experiment.seed,
        "config_sha256": hash_config(folder),
        "versions": versions(),
        "command": options.command,
    }
    write_json(folder / METRICS, metrics)
    return metrics


def check_splits(experiment: Experiment, dataset: Dataset) -> None:
    if experiment.training.validate_every and not len(dataset.valid):
        raise InputError(
            f"dataset {dataset.name} has no validation facts; add some, or set "
            "training.validate_every = 0 to train without (and training.patience = 0)"
        )


def check_same(experiment: Experiment, dataset: Dataset, folder: Path) -> None:
    if read_config(folder) != experiment:
        raise InputError(
            f"{folder} holds a run with other settings; resume it with the settings it was started "
            "with, or train without --resume"
        )
    before = read_facts(folder)
    if any(not np.array_equal(before.part(name), dataset.part(name)) for name in SPLITS):
        raise InputError(
            f"{folder} holds a run on other facts than {dataset.name} has now; train without "
            "--resume"
        )


def make_tokens(experiment: Experiment, dataset: Dataset, folder: Path) -> TokenTable:
    """The tokens of all nodes, kept in the run folder; hardly any for the shallow baseline."""
    rng = np.random.default_rng(experiment.seed)
    is_shallow = experiment.encoder.kind == "lookup"
    settings = NO_ANCHORS if is_shallow else experiment.tokenizer
    vocabulary = fit_vocabulary(dataset.train, settings, rng=rng)
    table = tokenize(dataset.train, vocabulary, rng=rng)
    save_tokens(table, folder / "vocabulary")
    return table


def build_model(experiment: Experiment, dataset: Dataset, table: TokenTable) -> LinkModel:
    """A fresh model, on the CPU; the seed of the experiment decides its first weights."""
    generator = torch.Generator().manual_seed(experiment.seed)
    encoder = experiment.encoder
    nodes: NodePieceEmbedding | LookupEmbedding = (
        LookupEmbedding(dataset.train.num_nodes, encoder.dim, generator=generator)
        if encoder.kind == "lookup"
        else NodePieceEmbedding(table, encoder, generator=generator)
    )
    return LinkModel(
        nodes,
        torch.tensor(with_inverses(dataset.train)),
        2 * dataset.train.num_relations,
        experiment.decoder,
        experiment.graph,
        generator=generator,
    )


def load_model(folder: Path, experiment: Experiment, dataset: Dataset) -> LinkModel:
    """The trained model of a run folder, on the CPU, ready to answer."""
    if not (folder / MODEL).is_file():
        raise InputError(
            f"{folder} holds no trained model yet; finish it with: "
            f"nodepiece train {folder / CONFIG} --resume -o {folder}"
        )
    try:
        table = load_tokens(folder / "vocabulary", graph=dataset.train)
    except InputError as error:
        raise damaged(folder / "vocabulary", error) from error
    model = build_model(experiment, dataset, table)
    try:
        weights, header = load_tensors(folder / MODEL)
    except InputError as error:
        raise damaged(folder / MODEL, error) from error
    if header.get("config_sha256", hash_config(folder)) != hash_config(folder):
        raise InputError(
            f"{folder / CONFIG} is not the one that {MODEL} was trained with; put that one back, "
            "or train this run again"
        )
    try:
        load_weights(model, weights, folder / MODEL)
    except InputError as error:
        raise damaged(folder / MODEL, error) from error
    return model.eval()


def refresh_tokens(experiment: Experiment, table: TokenTable, trainer: Trainer, epoch: int) -> None:
    """New tokens for an epoch, where the experiment asks for them."""
    nodes, training = trainer.model.nodes, experiment.training
    if not isinstance(nodes, NodePieceEmbedding):
        return
    tokens = nodes.token_tensors.tokens()
    if training.shuffle_anchors:
        tokens = shuffle_equidistant(tokens, generator=trainer.generator)
    if training.resample_relations:
        rng = np.random.default_rng([experiment.seed, epoch])
        tokens = resample_relations(tokens, table, rng=rng)
    if training.shuffle_anchors or training.resample_relations:
        nodes.use_training_tokens(tokens)


def describe_result(
    experiment: Experiment, dataset: Dataset, report: RankingReport | None
) -> dict[str, Any]:
    """What was ranked and how well: the top of metrics.json."""
    return {
        "experiment": experiment.name,
        "task": experiment.task,
        "dataset": experiment.dataset,
        "split": "test" if report else None,
        **(report.to_json(dataset.names.relation) if report else {}),
    }


def describe_device(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU, {torch.get_num_threads()} threads"


def versions() -> dict[str, str]:
    return {
        "nodepiece": nodepiece.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
