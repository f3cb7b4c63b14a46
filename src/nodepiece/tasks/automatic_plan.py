"""What the automatic choice would be for several numbers of minutes, and what it would need."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodepiece.data.open import open_dataset
from nodepiece.settings import Experiment, changed_settings, with_overrides
from nodepiece.tasks.automatic import TRAINING_SHARE, Choice, choose
from nodepiece.tasks.budget import Budget
from nodepiece.tasks.fit_memory import gigabytes, memory_of
from nodepiece.tasks.graph_shape import shape_of, sizes_of_shape
from nodepiece.tasks.link_prediction import check_nodes
from nodepiece.tasks.machine import Machine
from nodepiece.tasks.memory_estimate import Memory
from nodepiece.tasks.open_automatic import automatic_name, step_timer
from nodepiece.tasks.plan import count_parameters, input_from_sizes
from nodepiece.tasks.timing import count_steps


@dataclass(frozen=True)
class PlannedChoice:
    """The settings for some minutes, and what they need."""

    minutes: float
    choice: Choice
    parameters: int
    memory: Memory
    step_seconds: float
    steps: int  # in the time there is for training
    passes: float  # over all facts

    @property
    def sentences(self) -> list[str]:
        return [
            *self.choice.reasons,
            f"{self.parameters:,} parameters, {gigabytes(self.memory.peak)} at the peak; about "
            f"{self.steps:,} steps of {1000 * self.step_seconds:,.0f} ms, {self.passes:.1f} passes "
            "over the facts",
        ]

    def to_json(self) -> dict[str, object]:
        return {
            "minutes": self.minutes,
            "settings": changed_settings(self.choice.experiment),
            "reasons": list(self.choice.reasons),
            "parameters": self.parameters,
            "memory": {**vars(self.memory), "peak": self.memory.peak},
            "seconds": {"step": self.step_seconds},
            "steps": self.steps,
            "passes": self.passes,
        }


def plan_choices(
    source: str,
    machine: Machine,
    minutes: Sequence[float],
    *,
    data: Path | None = None,
    overrides: Sequence[str] = (),
) -> list[PlannedChoice]:
    """What would be chosen for a graph, for each number of minutes; equal settings timed once."""
    name = automatic_name(source)
    for number in minutes:
        Budget(number, 0.0)  # refuses what is no time
    first = with_overrides(Experiment(name=name, dataset=source), overrides)
    dataset = open_dataset(source, data=data, options=first.reading)
    check_nodes(dataset)
    shape = shape_of(dataset.train)
    sizes, time_step = sizes_of_shape(shape), step_timer(shape, machine, max(minutes))

    def planned(number: float) -> PlannedChoice:
        choice = choose(
            name, source, shape, machine, number, time_step=time_step, overrides=overrides
        )
        experiment = choice.experiment
        seconds = time_step(experiment)
        steps = int(TRAINING_SHARE * 60 * choice.minutes / max(1e-9, seconds))
        pass_steps = max(1, count_steps(experiment, sizes) // experiment.training.epochs)
        return PlannedChoice(
            number,
            choice,
            count_parameters(input_from_sizes(experiment, sizes)),
            memory_of(experiment, sizes),
            seconds,
            steps,
            steps / pass_steps,
        )

    return [planned(number) for number in minutes]
