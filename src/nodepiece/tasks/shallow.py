"""The shallow baseline of a run: a vector for every node, of the same size, trained as long."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from nodepiece.decoders.triple_scores import DECODERS
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.errors import InputError
from nodepiece.evaluation.report import Report
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.plan import count_parameters, input_from_sizes, sizes_of
from nodepiece.tasks.run_folder import METRICS, read_metrics
from nodepiece.tasks.run_weights import load_trained
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.training.loop import Callback


@dataclass(frozen=True)
class ShallowResult:
    """What the shallow baseline of a run has learned."""

    report: Report
    parameters: int
    dim: int
    steps: int

    def to_json(self) -> dict[str, Any]:
        about = {"parameters": self.parameters, "dim": self.dim, "steps": self.steps}
        return about | self.report.scores


def train_shallow(
    task: LinkPrediction,
    folder: Path,
    split: str,
    device: torch.device,
    *,
    callbacks: tuple[Callback, ...] = (),
    log: Callable[[str], None] = lambda sentence: None,
) -> ShallowResult:
    """Train the shallow baseline of a finished run in a temporary folder, and evaluate it."""
    metrics = finished_metrics(folder)
    shallow = shallow_settings(task, metrics["parameters"], metrics["steps"], metrics["epochs"])
    own = replace(task, experiment=shallow)
    with TemporaryDirectory() as place:
        run = Path(place) / "shallow"
        found = run_experiment(own, RunOptions(run, device, callbacks=callbacks, log=log))
        assert found is not None  # there is nothing that stops it
        model, _ = load_trained(own, run)
        report = own.evaluate(model.to(device), split)
    assert report is not None  # the run itself was evaluated on this split
    return ShallowResult(report, found["parameters"], shallow.encoder.dim, found["steps"])


def finished_metrics(folder: Path) -> dict[str, Any]:
    """The contents of metrics.json; a run that is not finished is refused."""
    path = folder / METRICS
    if not path.is_file():
        raise InputError(f"{folder} is not finished, so its number of steps is open; finish it")
    metrics = read_metrics(folder)
    if metrics.get("steps") is None:  # of a run that is older than this entry
        raise InputError(f"{path} has no number of steps; train this run again")
    return metrics


def shallow_settings(
    task: LinkPrediction, num_parameters: int, num_steps: int, num_epochs: int
) -> Experiment:
    """The settings of the shallow baseline of a run, with its decoder, loss and batches.

    Its vectors are as long as `num_parameters` allow. What needs pieces or the graph is left out.
    """
    experiment = task.experiment
    training = replace(
        experiment.training,
        epochs=max(1, num_epochs),  # 0: a run of minutes was over before the first was
        stages=ended_after(experiment.training.stages, num_steps),
        patience=0,
        hide_targets=False,
        shuffle_anchors=False,
        resample_relations=False,
    )
    without_paths: dict[str, Any] = {each.name: type(each)() for each in experiment.scorers}
    shallow = replace(
        experiment,
        name=f"{experiment.name}-shallow",
        graph=GraphLayerSettings(),
        training=training,
        one_vs_all=replace(
            experiment.one_vs_all, path_queries=0, hide_pairs=False, target_degree=1
        ),
        sampled=replace(experiment.sampled, path_queries=0),
        **without_paths,
    )
    return with_size(shallow, task, num_parameters)


def with_size(experiment: Experiment, task: LinkPrediction, num_parameters: int) -> Experiment:
    """The experiment with the longest vectors for every node that have so many parameters."""
    sizes, unit = sizes_of(task), DECODERS[experiment.decoder.kind].num_parts

    def of_length(number: int) -> Experiment:
        return replace(experiment, encoder=EncoderSettings("lookup", dim=number * unit))

    def is_within(number: int) -> bool:
        return count_parameters(input_from_sizes(of_length(number), sizes)) <= num_parameters

    low, high = 1, max(2, num_parameters // (unit * max(1, sizes.num_nodes)) + 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return of_length(low)


def ended_after(stages: tuple[int, ...], num_steps: int) -> tuple[int, ...]:
    """The stages of a run that ended after so many steps, maybe before its last stage was over."""
    if not stages or num_steps >= stages[-1]:
        return stages
    num_done = 2 * sum(end <= num_steps for end in stages[1::2])
    done, begin = stages[:num_done], stages[num_done]
    end = max(num_steps, (done[-1] if done else 0) + 2)  # a stage has a step before the rate falls
    return (*done, min(begin, end - 1), end)
