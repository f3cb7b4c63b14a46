"""Whole steps and scores of recipes with the kernels for GPUs, and with the code for CPUs.

Kernels have tests of their own, with tensors that a test makes. Here they get those of a training
step and of an evaluation, with the strides and types that they have there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest
import torch
from tests.encoders.interpreter import check_interpreted
from tests.tasks import citizens, professions
from tests.tasks.couples import couples
from tests.tasks.newcomers import task as with_newcomers
from torch import Tensor

from nodepiece.encoders import message_moments_cpu
from nodepiece.encoders.bag_sum import HAS_TRITON
from nodepiece.settings import Experiment, load_experiment, with_overrides
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.node_classification import NodeClassification
from nodepiece.tasks.task import Task
from nodepiece.tasks.tokens import tokenize_for
from nodepiece.training.trainer import Trainer

Numbers = dict[str, Tensor]
SMALL = (
    "encoder.dim=16",
    "encoder.hidden_dim=24",
    "encoder.dropout=0",
    "training.batch_size=8",
    "training.precision=float32",
    "evaluation.num_draws=1",
)
ANCHORS = ("tokenizer.num_anchors=20", "tokenizer.anchors_per_node=6")
PATHS = ("propagation.layers=2", "propagation.rank=2")
GRAPH = ("graph.dropout=0", "graph.edge_dropout=0")
COMPGCN = (*GRAPH, "graph.attention_dropout=0", "graph.layer_dropout=0")


def recipe(name: str, *overrides: str) -> Experiment:
    return with_overrides(load_experiment(name), (*SMALL, *overrides))


def links(name: str, *overrides: str) -> Task[Any]:
    return LinkPrediction(recipe(name, *ANCHORS, *overrides), couples())


def inductive(name: str, *overrides: str) -> Task[Any]:
    return InductiveLinkPrediction(recipe(name, *COMPGCN, *overrides), citizens.two_worlds())


NO_DROPOUT = "decoder.query_dropout=0"
TASKS: dict[str, Callable[[], Task[Any]]] = {
    "propagation": lambda: links("fb15k-237-best", NO_DROPOUT, *PATHS),
    "propagation and walks": lambda: links("wn18rr-best", NO_DROPOUT, *PATHS, "walks.steps=3"),
    "walks": lambda: links("fb15k-237-best-walks", NO_DROPOUT, "graph.layers=0"),
    "graph layers": lambda: links("wn18rr-best-no-walks", NO_DROPOUT, *GRAPH),
    "pieces": lambda: links("fb15k-237-paper"),
    "sampled negatives": lambda: links("wn18rr-paper", "sampled.num_negatives=4"),
    "inductive": lambda: inductive(
        "inductive-fb15k-237-v1-best", *PATHS, "walks.steps=2", "walks.plain_steps=2"
    ),
    "inductive, of the paper": lambda: inductive(
        "inductive-nell-995-v1-paper", "sampled.num_negatives=4"
    ),
    "out of sample": lambda: with_newcomers(
        recipe("own18rr-best", *ANCHORS, NO_DROPOUT, *PATHS, "out_of_sample.mask_share=0.3")
    ),
    "classes": lambda: NodeClassification(
        recipe("wd50k-10-paper", *COMPGCN, *ANCHORS[1:], "tokenizer.num_anchors=10"),
        professions.professions(),
    ),
}
ROUNDING = 3e-5  # of gradients that would be 0, such as those of a bias before a norm
DRAWS_NEGATIVES = ("sampled negatives", "inductive, of the paper")  # others for each device


def prepared(task: Task[Any], device: str) -> tuple[Any, Trainer[Any]]:
    """A model whose weights are not those of a beginning, some of which are 0; and its trainer."""
    table = tokenize_for(task.experiment, task.graph)
    model = task.build_model(table)
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.05 * torch.randn(weight.shape, generator=noise)
    generator = torch.Generator(device).manual_seed(0)
    trainer = task.make_trainer(model.to(device), generator=generator)
    task.before_epoch(model, table, 0, generator=generator)
    return model, trainer


def first_batch(trainer: Trainer[Any]) -> Any:
    trainer.start_epoch(0)
    trainer._prepare_epoch(0)
    return trainer.batches.take(trainer.step_of_epoch)


def written_to(places: Any, batch: Any) -> Any:
    """The batch on another device, with the strides of a batch that was made there."""

    def written(place: Any, part: Any) -> Any:
        if not isinstance(part, Tensor):
            return part
        return place.copy_(part) if place.shape == part.shape else part.to(place.device)

    return type(batch)(*map(written, places, batch))


def step_and_metrics(
    task: Task[Any], model: Any, trainer: Trainer[Any], batch: Any
) -> tuple[Numbers, dict[str, float]]:
    """The loss and the gradients of a step, and the metrics of the facts for validation."""
    model.train()
    trainer.generator.manual_seed(0)  # of negatives
    trainer.optimizer.zero_grad(set_to_none=True)
    loss = trainer.loss(batch)
    loss.backward()  # type: ignore[no-untyped-call]
    weights = model.named_parameters()
    found = {name: weight.grad.cpu() for name, weight in weights if weight.grad is not None}
    model.eval()
    return found | {"loss": loss.detach().cpu()}, dict(task.validate(model))


def assert_same(
    name: str,
    found: tuple[Numbers, dict[str, float]],
    expected: tuple[Numbers, dict[str, float]],
) -> None:
    (numbers, metrics), (others, other_metrics) = found, expected
    assert numbers.keys() == others.keys(), name
    for key, value in others.items():
        scale = float(value.abs().max()) if value.numel() else 0.0
        torch.testing.assert_close(
            numbers[key],
            value,
            rtol=1e-3,
            atol=1e-4 * scale + ROUNDING,
            msg=f"{name}: {key}: ".__add__,
        )
    assert metrics == pytest.approx(other_metrics, rel=1e-3), name


def check(name: str) -> None:
    task = TASKS[name]()
    model, trainer = prepared(task, "cpu")
    batch = first_batch(trainer)
    expected = step_and_metrics(task, model, trainer, batch)
    model, trainer = prepared(task, "cpu")  # as statistics of norms change in a step
    first_batch(trainer)
    with kernels_for_gpus():
        found = step_and_metrics(task, model, trainer, batch)
    assert_same(name, found, expected)


@contextmanager
def kernels_for_gpus() -> Iterator[None]:
    """Tensors say that they are on a GPU, so that Triton's kernels get them; interpreted here."""
    on_gpu = patch.object(Tensor, "is_cuda", PropertyMock(return_value=True))
    with on_gpu, patch.object(message_moments_cpu, "has_kernel", lambda *values: False):
        yield


def check_kernels() -> None:
    """In Triton's interpreter: the same batch by both kinds of code."""
    for name in TASKS:
        check(name)


@pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed")
def test_steps_with_the_kernels_for_gpus_are_those_on_a_cpu() -> None:
    check_interpreted("tests.tasks.test_kernels_in_steps")


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in TASKS if name not in DRAWS_NEGATIVES])
def test_steps_on_a_gpu_are_those_on_the_cpu(name: str) -> None:
    task = TASKS[name]()
    model, trainer = prepared(task, "cpu")
    batch = first_batch(trainer)
    expected = step_and_metrics(task, model, trainer, batch)
    model, trainer = prepared(task, "cuda")
    batch = written_to(first_batch(trainer), batch)
    found = step_and_metrics(task, model, trainer, batch)
    assert_same(name, found, expected)
