"""Hyperparameter search from Python."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nodepiece.data.blocks import Column
from nodepiece.inference.given_data import LoggedEpochs, Parts, reading_columns, with_data
from nodepiece.tasks.machine import parse_memory
from nodepiece.tasks.open_tuning import tune_source
from nodepiece.tasks.study import BASE
from nodepiece.tasks.train import choose_device
from nodepiece.tasks.trial import TuneOptions
from nodepiece.tasks.tune import Tuned
from nodepiece.training.interrupts import stop_on_interrupt

log = logging.getLogger("nodepiece")


def tune(
    graph: Any,
    output: str | Path,
    *,
    minutes: float = 60.0,
    trial_minutes: float | None = None,
    data: Any = None,
    valid: Any = None,
    test: Any = None,
    columns: Sequence[Column] | str | None = None,
    relation: str | None = None,
    device: str | None = None,
    memory: int | str | None = None,
    overrides: Sequence[str] = (),
    resume: bool = False,
    seed: int = 0,
) -> Tuned:
    """Search for settings for some minutes; the best ones are in `output`/best.toml.

    `graph` is a file, a folder, the name of a benchmark, an experiment or facts in memory, and the
    other arguments say how it is read, as in `nodepiece.train`. The search begins with the settings
    that are chosen for the graph; `overrides` are kept in all trials. A trial takes
    `trial_minutes`, by default a twelfth of the time. With `resume` the search in `output` goes on
    for more minutes. Needs Optuna: pip install 'nodepiece[tune]'.
    """
    source, given = with_data(graph, data, Parts(valid, test, columns, relation), overrides)
    if isinstance(source, str | Path) and not (Path(output) / BASE).is_file():  # it is new
        overrides = [*overrides, *reading_columns(columns)]
    epochs = LoggedEpochs()
    with stop_on_interrupt(
        lambda: epochs.is_under_way, lambda: log.warning("stopping the search")
    ) as should_stop:
        options = TuneOptions(
            Path(output),
            choose_device(device),
            minutes,
            trial_minutes,
            seed,
            callbacks=(epochs,),
            log=epochs.log,
            should_stop=should_stop,
            memory=parse_memory(memory) if isinstance(memory, str) else memory,
        )
        return tune_source(
            source,
            options,
            data=given,
            overrides=overrides,
            resume=resume,
        )
