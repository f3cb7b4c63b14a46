"""How many facts are ranked within a budget of minutes, and how long that takes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, cast

from torch import nn

from nodepiece.settings import Experiment
from nodepiece.tasks.budget import Budget
from nodepiece.tasks.path_coefficients import (
    COEFFICIENTS,
    ROUNDS,
    facts_to_choose,
    num_chosen,
    remembered_bytes,
)
from nodepiece.tasks.registry import task_record
from nodepiece.tasks.task import Task

VALIDATION_SHARE = 0.015  # of the time, for one validation at most,
MAX_VALIDATION_SHARE = 0.04  # or, with fewer validations, so much for FEW_VALIDATED facts
FEW_VALIDATED = 500  # facts, of which fewer do not tell good weights from better ones
RANK_DEVIATION = 0.3  # standard deviation of reciprocal ranks, about
EVALUATION_SHARE = 0.08  # of the time, for the result
MIN_FACTS = 50  # that are ranked, however little time there is
LATE_SHARE = 0.02  # of the time, that ranking all planned facts may take after the deadline
VALIDATIONS_TO_CHOOSE = 4  # as long as so many: a coefficient, where paths are scored once
FEW_FACTS, MORE_FACTS = 16, 256  # that are ranked to see how long it takes
MIN_SHARE = 0.02  # of this time, for the facts themselves: less is noise
LINK_PREDICTION = "link-prediction"


@dataclass(frozen=True)
class EvaluationTime:
    """Seconds of a validation while training, and of the evaluation after it."""

    validation: float
    evaluation: float  # all of it
    ranking: float = 0.0  # of it, ranking as many facts for the result as were chosen for the time


def plan_evaluation(
    task: Task[Any],
    model: nn.Module,
    budget: Budget,
    ranked: Mapping[str, int] | None = None,
) -> tuple[Task[Any], EvaluationTime]:
    """The task with as many facts to rank as there is time for, and how long that takes.

    A few facts are ranked to find out. Numbers of facts that the settings give are kept, and so are
    those of `ranked`, which a run has that was stopped (`Progress`).
    """
    num_valid, num_test = task.num_evaluated("valid"), task.num_evaluated("test")
    if not num_valid:
        return task, EvaluationTime(0.0, seconds_of(task, model) if num_test else 0.0)
    settings = task.experiment.evaluation
    if not task_record(task.experiment).reads_setting("evaluation.validation_facts"):
        seconds = seconds_of(task, model)
        return task, EvaluationTime(seconds, seconds * (1 + num_test / num_valid))
    fixed, each = ranking_time(task, model, num_valid, limit=VALIDATION_SHARE * budget.seconds)
    if ranked:
        valid_facts, test_facts = ranked["validation_facts"], ranked["test_facts"]
    else:
        valid_facts = settings.validation_facts or chosen_number(
            num_validated_in(budget.seconds, fixed, each), num_valid
        )
        test_facts = settings.test_facts or chosen_number(
            (EVALUATION_SHARE * budget.seconds / 2 - fixed) / each, max(num_valid, num_test)
        )
    evaluation = replace(settings, validation_facts=valid_facts, test_facts=test_facts)
    experiment = replace(task.experiment, evaluation=evaluation)
    num_ranked = [min(number, test_facts or number) for number in (num_valid, num_test)]
    num_validated = min(num_valid, valid_facts or num_valid)
    if num_validated < min(num_valid, FEW_VALIDATED):  # a small sample
        noise = experiment.training.validation_noise or round(
            RANK_DEVIATION / (2 * num_validated) ** 0.5, 4
        )
        experiment = replace(
            experiment, training=replace(experiment.training, validation_noise=noise)
        )
    on_gpu = any(parameter.is_cuda for parameter in model.parameters())
    choosing = seconds_to_choose(
        experiment, num_validated, task.graph.num_nodes, (fixed, each), on_gpu=on_gpu
    )
    validation = fixed + each * num_validated
    ranking = 2 * fixed + each * sum(num_ranked)
    planned = cast(Task[Any], replace(cast(Any, task), experiment=experiment))
    is_chosen = not settings.test_facts
    total = ranking + choosing
    return planned, EvaluationTime(validation, total, ranking if is_chosen else 0.0)


def num_validated_in(seconds: float, fixed: float, each: float) -> float:
    """How many facts a validation ranks in a run of so many seconds."""
    number = (VALIDATION_SHARE * seconds - fixed) / each
    if number >= FEW_VALIDATED:
        return number
    return min(FEW_VALIDATED, (MAX_VALIDATION_SHARE * seconds - fixed) / each)


def within_time_left(
    task: Task[Any], time: EvaluationTime, validation_seconds: float, budget: Budget
) -> Task[Any]:
    """The task with fewer facts for the result, if ranking has become slower than it was.

    `validation_seconds` are those of the last validation.
    """
    left = max(budget.deadline - perf_counter(), LATE_SHARE * budget.seconds)
    slower = validation_seconds / time.validation if time.validation else 1.0
    needed = slower * time.ranking
    if not needed or needed <= left:
        return task
    settings = task.experiment.evaluation
    number = settings.test_facts or max(map(task.num_evaluated, ("valid", "test")))
    fewer = max(MIN_FACTS, int(number * left / needed))
    if fewer >= number:
        return task
    experiment = replace(task.experiment, evaluation=replace(settings, test_facts=fewer))
    return cast(Task[Any], replace(cast(Any, task), experiment=experiment))


def seconds_to_choose(
    experiment: Experiment,
    num_facts: int,
    num_nodes: int,
    time: tuple[float, float],
    *,
    on_gpu: bool,
) -> float:
    """The seconds of the choice of coefficients, where validation has so many facts.

    time: seconds of any validation, and of each fact. Scores of paths that are remembered are
    computed once, others for every coefficient. Link prediction computes vectors once too, and may
    choose by fewer facts.
    """
    chosen, (fixed, each) = num_chosen(experiment), time
    if not chosen:
        return 0.0
    wanted = chosen * 4 * 2 * num_facts * num_nodes
    kept = remembered_bytes(experiment, num_facts, num_nodes, on_gpu=on_gpu) / max(1, wanted)
    every = len(COEFFICIENTS) * (ROUNDS if chosen > 1 else 1)
    validations = chosen * (VALIDATIONS_TO_CHOOSE * kept + every * (1 - kept))
    if experiment.task != LINK_PREDICTION:
        return validations * (fixed + each * num_facts)
    number = facts_to_choose(experiment, num_facts, on_gpu=on_gpu)
    return fixed + validations * each * number


def ranking_time(
    task: Task[Any], model: nn.Module, num_valid: int, *, limit: float = math.inf
) -> tuple[float, float]:
    """Seconds of any validation, and those of each fact.

    One fact is ranked first, as that may compile. Where a few facts take longer than `limit`
    seconds, one is ranked again, and no more than these few.
    """
    few, one = min(FEW_FACTS, num_valid), with_facts(task, 1)
    seconds_of(one, model)
    small = with_facts(task, few)
    first = seconds_of(small, model)
    if first > limit:
        return fixed_and_each((1, seconds_of(one, model)), (few, first))
    first = min(first, seconds_of(small, model))
    more = min(MORE_FACTS, num_valid, int(few * min(MORE_FACTS, limit / max(1e-9, first))))
    if more == few:
        return fixed_and_each((1, seconds_of(one, model)), (few, first))
    return fixed_and_each((few, first), (more, seconds_of(with_facts(task, more), model)))


def fixed_and_each(few: tuple[int, float], more: tuple[int, float]) -> tuple[float, float]:
    """Seconds of any validation, and those of each fact, from two numbers of facts and seconds."""
    number = more[0] - few[0]
    each = (more[1] - few[1]) / number if number else more[1]
    each = max(each, 1e-9, MIN_SHARE * more[1] / more[0])
    return max(0.0, few[1] - few[0] * each), each


def with_facts(task: Task[Any], number: int) -> Task[Any]:
    """The task with a validation of so many facts."""
    evaluation = replace(task.experiment.evaluation, validation_facts=number)
    experiment = replace(task.experiment, evaluation=evaluation)
    return cast(Task[Any], replace(cast(Any, task), experiment=experiment))


def seconds_of(task: Task[Any], model: nn.Module) -> float:
    start = perf_counter()
    task.validate(model)
    return perf_counter() - start


def chosen_number(affordable: float, there: int) -> int:
    """How many facts to rank; 0: all."""
    number = max(MIN_FACTS, int(affordable))
    return 0 if number >= there else number


def minutes_in_words(minutes: float) -> str:
    number = f"{minutes:.2g}" if minutes < 9.95 else f"{minutes:,.0f}"
    return "1 minute" if number == "1" else f"{number} minutes"


def describe_budget(task: Task[Any], budget: Budget) -> str:
    """What is ranked within a budget, in one sentence."""
    evaluation = task.experiment.evaluation
    num_valid = task.num_evaluated("valid")
    if not num_valid:
        return f"{minutes_in_words(budget.minutes)}, without validation"
    valid = min(num_valid, evaluation.validation_facts or num_valid)
    return (
        f"{minutes_in_words(budget.minutes)}; validation with {valid:,} of {num_valid:,}, "
        f"{describe_result_facts(task)}"
    )


def describe_result_facts(task: Task[Any]) -> str:
    """How many facts are ranked for the result."""
    num_test = task.num_evaluated("test")
    test = min(num_test, task.experiment.evaluation.test_facts or num_test)
    return f"the result with {test:,} of {num_test:,}"
