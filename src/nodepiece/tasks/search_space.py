"""What a hyperparameter search may change, around the settings it starts from."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nodepiece.settings import Experiment, settings_by_name, to_literal, with_overrides
from nodepiece.training.losses import SAMPLED_SOFTMAX

RATE_FACTOR = 5.0  # the learning rate may be this many times larger or smaller
DIMS = (64, 128, 192, 256)
DROPOUTS = (0.0, 0.1, 0.2, 0.3)
QUERY_DROPOUTS = (0.0, 0.2, 0.3, 0.5)
SMOOTHINGS = (0.0, 0.1, 0.2)
DECODERS = ("complex", "distmult", "rotate", "transe")
ANCHORS_PER_NODE = (8, 16, 20)
WALK_STEPS = (3, 4, 5)
SMALLEST_BATCH = 16


@dataclass(frozen=True)
class Choices:
    """Values of which one is chosen."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class LogRange:
    """Numbers between two bounds, equally likely on a logarithmic scale."""

    low: float
    high: float


Space = dict[str, Choices | LogRange]  # by the dotted name of a setting


def search_space(base: Experiment, num_nodes: int, num_facts: int, fixed: Collection[str]) -> Space:
    """The space around `base`, which is in it; settings named in `fixed` stay as they are."""
    training, tokenizer, rate = base.training, base.tokenizer, base.training.learning_rate
    space: Space = {
        "training.learning_rate": LogRange(rate / RATE_FACTOR, rate * RATE_FACTOR),
        "training.batch_size": scaled(
            training.batch_size, (0.5, 1, 2), SMALLEST_BATCH, max(SMALLEST_BATCH, num_facts)
        ),
        "encoder.dim": around(base.encoder.dim, DIMS),
        "encoder.dropout": around(base.encoder.dropout, DROPOUTS),
        "decoder.kind": Choices(tuple(dict.fromkeys((base.decoder.kind, *DECODERS)))),
    }
    if base.encoder.has_pieces and tokenizer.num_anchors and tokenizer.anchors_per_node:
        anchors = scaled(
            tokenizer.num_anchors, (0.25, 0.5, 1, 2), tokenizer.anchors_per_node, num_nodes
        )
        space["tokenizer.num_anchors"] = anchors
        fitting = [k for k in ANCHORS_PER_NODE if k <= min(anchors.values)]
        space["tokenizer.anchors_per_node"] = around(tokenizer.anchors_per_node, fitting)
    if training.is_one_vs_all:
        space["decoder.query_dropout"] = around(base.decoder.query_dropout, QUERY_DROPOUTS)
        if training.loss != "filtered-cross-entropy":
            space["one_vs_all.smoothing"] = around(base.one_vs_all.smoothing, SMOOTHINGS)
    elif training.loss == SAMPLED_SOFTMAX or base.sampled.shared_negatives:
        space["sampled.num_negatives"] = scaled(
            base.sampled.num_negatives, (0.5, 1, 2, 4), 1, max(1, num_nodes)
        )
    if base.walks.steps:
        space["walks.steps"] = around(base.walks.steps, WALK_STEPS)
    return {name: part for name, part in space.items() if name not in fixed}


def within(space: Space, base: Experiment, fits: Callable[[Experiment], bool]) -> Space:
    """The space without values that do not fit if they alone are changed."""
    start = start_of(base, space)

    def fitting(name: str, part: Choices) -> Choices:
        is_kept = [
            value == start[name] or fits(with_values(base, {name: value})) for value in part.values
        ]
        return Choices(
            tuple(value for value, kept in zip(part.values, is_kept, strict=True) if kept)
        )

    return {
        name: fitting(name, part) if isinstance(part, Choices) else part
        for name, part in space.items()
    }


def around(value: Any, others: Iterable[Any]) -> Choices:
    """Some values and the one to start from, ascending."""
    return Choices(tuple(sorted({value, *others})))


def scaled(value: int, factors: Iterable[float], lowest: int, highest: int) -> Choices:
    """Multiples of a number within bounds, and the number itself, ascending."""
    multiples = (min(highest, max(lowest, round(factor * value))) for factor in factors)
    return Choices(tuple(sorted({value, *multiples})))


def start_of(base: Experiment, space: Space) -> dict[str, Any]:
    """The values of `base` in the space."""
    values = settings_by_name(base)
    return {name: values[name] for name in space}


def with_values(base: Experiment, values: Mapping[str, Any]) -> Experiment:
    """The experiment with some settings changed; the hidden layer keeps its ratio to `dim`."""
    changed = dict(values)
    if "encoder.dim" in changed:
        ratio = base.encoder.hidden_dim / base.encoder.dim
        changed["encoder.hidden_dim"] = max(1, round(ratio * changed["encoder.dim"]))
    return with_overrides(base, [f"{name}={to_literal(value)}" for name, value in changed.items()])
