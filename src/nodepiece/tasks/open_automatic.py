"""Opening a graph that is given without an experiment: reading, choosing settings, resuming."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from nodepiece.data.benchmarks import BENCHMARKS
from nodepiece.data.dataset import Dataset
from nodepiece.data.input_file import STANDARD_INPUT
from nodepiece.data.open import DataSource, open_dataset, refuse_standard_input
from nodepiece.data.read import dataset_name
from nodepiece.errors import InputError
from nodepiece.graph.short_text import plural
from nodepiece.recipes import experiment_names
from nodepiece.settings import Experiment, overridden, to_toml, with_overrides
from nodepiece.tasks.automatic import TimeStep, choose, for_few_facts
from nodepiece.tasks.graph_shape import GraphShape, shape_of, sizes_of_shape
from nodepiece.tasks.link_prediction import LinkPrediction, check_nodes, with_validation
from nodepiece.tasks.machine import Machine
from nodepiece.tasks.run_folder import CONFIG, MODEL, read_config
from nodepiece.tasks.run_place import is_pending, unfinished_folder
from nodepiece.tasks.timing import seconds_a_step
from nodepiece.training.settings import TrainingSettings

TASK = "link-prediction"
FEW_STEPS = 2  # that are timed on a CPU, after as many others
TIMING_SHARE = 0.05  # of the minutes, for the steps of one kind of training
WARM_STEPS = 5  # on a GPU, where the first ones are warm-up and capture


def is_automatic(experiment: object, data: object = None) -> bool:
    """Whether settings are to be chosen: for a file or folder of facts, a benchmark, or `data`.

    A TOML file, a record and the name of an experiment have settings.
    """
    if not experiment:
        return isinstance(data, Dataset)
    if not isinstance(experiment, str | Path) or isinstance(data, Dataset):
        return False
    source = str(experiment)
    if source in experiment_names() or Path(source).suffix == ".toml":
        return False
    return source in BENCHMARKS or source == STANDARD_INPUT or Path(source).exists()


def automatic_name(experiment: str | Path, data: object = None) -> str:
    """The name of the run: that of the dataset."""
    if isinstance(data, Dataset):
        return data.name
    source = str(experiment)
    return source if source in BENCHMARKS else dataset_name(source)


def open_automatic(
    source: str | Path,
    machine: Machine,
    minutes: float,
    *,
    data: DataSource = None,
    overrides: Sequence[str] = (),
    log: Callable[[str], None] = lambda sentence: None,
) -> tuple[LinkPrediction, float]:
    """The task on a graph with the settings that suit it, and the minutes that are enough.

    Logs in a few lines what was chosen, and why.
    """
    name, given = automatic_name(source, data), overridden(overrides)
    if given.get("task", TASK) != TASK:
        raise InputError(
            f"settings are chosen for {TASK} only; write a TOML file for {given['task']}"
        )
    if str(source) == STANDARD_INPUT:
        refuse_standard_input()
    refuse_run(Path(source))
    validated = TrainingSettings(validate_every=1)  # as chosen settings are
    first = with_overrides(
        Experiment(name=name, dataset=str(source) or name, training=validated), overrides
    )
    if not isinstance(data, Dataset):
        log(f"reading {source}")
    dataset = open_dataset(first.dataset, data=data, options=first.reading)
    check_nodes(dataset)
    shape = shape_of(dataset.train)
    choice = choose(
        name,
        first.dataset,
        shape,
        machine,
        minutes,
        time_step=step_timer(shape, machine, minutes, log=log),
        overrides=overrides,
    )
    experiment = choice.experiment
    for reason in choice.reasons:
        log(reason)
    split = with_validation(experiment, dataset)
    if not len(split.valid):
        log(
            f"{plural(shape.num_facts, 'fact')}: none can be held out, so the result is not "
            "evaluated"
        )
        kept = [each for each in overrides if not each.startswith("training.patience")]
        experiment = with_overrides(for_few_facts(experiment), kept)
    return LinkPrediction(experiment, split), choice.minutes


def refuse_run(folder: Path) -> None:
    """Refuse the folder of a run in place of a graph; the error says how to train it further."""
    if not ((folder / CONFIG).is_file() and (folder / MODEL).is_file()):
        return
    graph = read_config(folder).dataset
    more = f"nodepiece.train(facts, {str(folder)!r}, resume=True, minutes=10), with its facts,"
    if graph in BENCHMARKS or Path(graph).exists():
        words = ["nodepiece", "train", graph, "--resume", "--minutes", "10", "-o", str(folder)]
        more = shlex.join(words)
    raise InputError(
        f"{folder} is the folder of a run, not a graph; {more} trains it for ten more minutes"
    )


def step_timer(
    shape: GraphShape,
    machine: Machine,
    minutes: float,
    *,
    log: Callable[[str], None] = lambda sentence: None,
) -> TimeStep:
    """A function that times a few steps of settings on a random graph of this shape, once.

    Beside the first step, which may compile, for a small share of the minutes or a single step.
    """
    num_timed = WARM_STEPS if machine.device.type == "cuda" else FEW_STEPS
    timed: dict[str, float] = {}

    def time_step(experiment: Experiment) -> float:
        key = to_toml(experiment)
        if key not in timed:
            log(f"timing a few steps: {experiment.training.loss}")
            timed[key] = seconds_a_step(
                experiment,
                sizes_of_shape(shape),
                machine.device,
                rng=np.random.default_rng(0),
                num_timed=num_timed,
                limit=TIMING_SHARE * 60 * minutes,
            )
        return timed[key]

    return time_step


def chosen_before(folder: Path) -> Experiment | None:
    """The settings of the run in a folder, to continue it; None if there is none."""
    for place in (unfinished_folder(folder) if is_pending(folder) else folder, folder):
        if (place / CONFIG).is_file():
            return read_config(place)
    return None
