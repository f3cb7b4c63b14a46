"""Settings that fit a memory: smaller ones, or a sentence that says what would fit."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from nodepiece.errors import InputError
from nodepiece.settings import Experiment
from nodepiece.tasks.memory_estimate import Memory, Sizes, estimate_memory
from nodepiece.tasks.plan import PlanInput, count_parameters, input_from_sizes

MARGIN = 0.85  # of the memory that is planned with, as estimates may be too low
MIN_BATCH = 32
MIN_ANCHORS = 100
EVALUATION_SHARE = 0.15  # of the memory, for scores in evaluation; paths keep half as much
MAX_EVALUATION_GIGABYTES = 1.0

Change = Callable[[Experiment], Experiment]


def memory_of(experiment: Experiment, sizes: Sizes) -> Memory:
    """The estimated memory of link prediction on a graph of these sizes."""
    return estimate_memory(experiment, sizes, count_parameters(input_from_sizes(experiment, sizes)))


def as_it_is(experiment: Experiment) -> Experiment:
    return experiment


def fitted(
    experiment: Experiment, sizes: Sizes, memory: int, *, given: Change = as_it_is
) -> Experiment | None:
    """The experiment, or the first of `smaller` ones, that fits; None if none does.

    `given` sets what must not be made smaller.
    """
    limit = min(MAX_EVALUATION_GIGABYTES, EVALUATION_SHARE * memory / 2**30)
    evaluation = replace(experiment.evaluation, memory_gigabytes=round(max(0.01, limit), 3))
    first = replace(experiment, evaluation=evaluation)
    for candidate in map(given, (first, *smaller(first))):
        if memory_of(candidate, sizes).peak <= MARGIN * memory:
            return candidate
    return None


def least_memory(
    experiment: Experiment, sizes: Sizes, too_little: int, *, given: Change = as_it_is
) -> int:
    """The least memory that `fitted` finds settings for, in units of 100 MB."""
    unit = 10**8
    low, high = too_little // unit, 2 * (too_little // unit) + 1
    while fitted(experiment, sizes, high * unit, given=given) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if fitted(experiment, sizes, middle * unit, given=given) is None:
            low = middle
        else:
            high = middle
    return high * unit


def smaller(experiment: Experiment) -> Iterator[Experiment]:
    """The experiment with smaller batches, then fewer anchors and shorter vectors."""
    for batch_size in halved(experiment.training.batch_size, MIN_BATCH):
        experiment = with_batch(experiment, batch_size)
        yield experiment
    for num_anchors in halved(experiment.tokenizer.num_anchors or 0, MIN_ANCHORS):
        tokenizer = replace(experiment.tokenizer, num_anchors=num_anchors)
        encoder, dim = experiment.encoder, max(32, experiment.encoder.dim // 2)
        experiment = replace(
            experiment, tokenizer=tokenizer, encoder=replace(encoder, dim=dim, hidden_dim=dim)
        )
        yield experiment


def with_batch(experiment: Experiment, batch_size: int) -> Experiment:
    one_vs_all = experiment.one_vs_all
    if one_vs_all.path_queries:
        queries = min(one_vs_all.path_queries, max(8, batch_size // 8))
        one_vs_all = replace(one_vs_all, path_queries=queries)
    training = replace(experiment.training, batch_size=batch_size)
    return replace(experiment, training=training, one_vs_all=one_vs_all)


def halved(number: int, least: int) -> Iterator[int]:
    while number // 2 >= least:
        number //= 2
        yield number


def refuse_too_large(inputs: PlanInput, memory: int) -> None:
    """Refuse link prediction that does not fit; the error names a batch size that would."""
    experiment, sizes = inputs.experiment, inputs.sizes
    needed = estimate_memory(experiment, sizes, count_parameters(inputs)).peak
    if needed <= memory:
        return
    hint = "it would not fit with smaller batches either"
    for batch_size in halved(experiment.training.batch_size, 1):
        training = replace(experiment.training, batch_size=batch_size)
        if memory_of(replace(experiment, training=training), sizes).peak <= memory:
            hint = f"--set training.batch_size={batch_size} would fit"
            break
    raise InputError(
        f"{experiment.name} on {sizes.num_nodes:,} nodes needs about {gigabytes(needed)}, and "
        f"{gigabytes(memory)} may be used; {hint}"
    )


def gigabytes(number: int) -> str:
    return f"{number / 1e9:,.1f} GB" if number >= 10**8 else f"{number / 1e6:,.0f} MB"
