"""The entries of metrics.json, and the command in it."""

import platform
import shlex

import numpy as np
import torch
from torch import nn

import nodepiece
from nodepiece.encoders.parameters import num_parameters
from nodepiece.evaluation.report import Report
from nodepiece.settings import Experiment, settings_by_name, to_literal
from nodepiece.tasks.budget import Budget
from nodepiece.tasks.task import Model, Task
from nodepiece.tokenizer.tokens import TokenTable


def describe_result(
    task: Task[Model], test: Report | None, valid: Report | None
) -> dict[str, object]:
    """The first entries of metrics.json: task, dataset and scores."""
    experiment, popularity = task.experiment, task.popularity("test")
    popularity_valid = task.popularity("valid") if valid else None
    return {
        "experiment": experiment.name,
        "task": experiment.task,
        "dataset": experiment.dataset,
        "split": "test" if test else None,
        **(test.to_json() if test else {}),
        "valid": valid.scores if valid else None,
        "popularity": popularity.scores if popularity else None,  # on the test facts
        "popularity_valid": popularity_valid.scores if popularity_valid else None,
        **task.remarks(),
    }


def describe_model(model: nn.Module, table: TokenTable) -> dict[str, object]:
    vocabulary = table.vocabulary
    return {
        "parameters": num_parameters(model),
        "vocabulary": {
            "nodes": table.num_nodes,
            "anchors": vocabulary.num_anchors,
            "relations": vocabulary.num_relations,
        },
    }


def describe_device(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    number = torch.get_num_threads()
    return f"CPU, {number} thread{'s' if number > 1 else ''}"


def versions() -> dict[str, str]:
    return {
        "nodepiece": nodepiece.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def with_changes(command: str, experiment: Experiment, budget: Budget | None) -> str:
    """The command with what followed from a budget as settings, so that it needs no clock."""
    if budget is None:
        return command
    values = settings_by_name(experiment)
    names = (
        *("training.stages", "training.validate_steps", "training.validation_noise"),
        *("evaluation.validation_facts", "evaluation.test_facts"),
    )
    words = [word for name in names for word in ("--set", f"{name}={to_literal(values[name])}")]
    before, output, after = command.rpartition(" -o ")
    return f"{before} {shlex.join(words)}{output}{after}"
