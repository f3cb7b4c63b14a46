"""nodepiece calibrate: store with a run how its scores become probabilities."""

import json
from typing import Annotated

import typer

from nodepiece.commands.console import JsonOption, count, log
from nodepiece.commands.evaluate import RunArgument
from nodepiece.commands.graphs import (
    ColumnsOption,
    DataOption,
    DelimiterOption,
    FormatOption,
    HeaderOption,
    read_options,
)
from nodepiece.commands.new_facts import read_facts
from nodepiece.commands.progress import counted
from nodepiece.commands.train import DeviceOption

TrueFactsOption = Annotated[
    str | None,
    typer.Option("--facts", metavar="FILE", help="True facts, instead of those of the run."),
]
NegativesOption = Annotated[
    str | None,
    typer.Option(
        "--negatives",
        metavar="FILE",
        help="False facts; else those that the dataset comes with, else drawn ones.",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="Of false facts that are drawn.")
]


def facts_option(default: str) -> object:
    return typer.Option(
        "--num-facts",
        min=0,
        metavar="N",
        show_default=False,
        help=f"At most so many true facts, drawn at random, and false ones; 0: all. {default}",
    )


def calibrate(
    run: RunArgument,
    facts: TrueFactsOption = None,
    negatives: NegativesOption = None,
    num_facts: Annotated[
        int | None,
        facts_option("By default all, but 2,000 with walks or propagation on a CPU."),
    ] = None,
    seed: SeedOption = 0,
    data: DataOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Fit probabilities to validation facts and false ones, and store them with the run.

    From then on, tables of answers and scores have a column probability: the share of facts with
    such a score that is true, among as many false facts as were given. Each relation has its own
    scale where there are enough facts. False facts that are drawn have another head or tail, of
    those that the relation has there. The order of the answers of a query does not change. Nodes
    that arrived after training are calibrated by the number of their facts and their distance to
    the nearest anchor.
    """
    from nodepiece.inference.calibration import FILE, calibrate_run
    from nodepiece.inference.run import load
    from nodepiece.tasks.train import choose_device

    options = read_options(delimiter, header, columns, format)
    true = None if facts is None else read_facts(facts, options)
    false = None if negatives is None else read_facts(negatives, options)
    opened = load(run, device=choose_device(device))
    with counted(f"calibrating {run}", "queries") as advance:
        found = calibrate_run(
            opened,
            facts=true,
            negatives=false,
            data=data,
            num_facts=num_facts,
            seed=seed,
            progress=advance,
        )
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
        return
    platt, isotonic = found.of_nodes.log_losses
    log(f"{count(found.num_true, 'true fact')}, {count(found.num_false, 'false fact')}")
    if found.num_true < found.num_given:
        log(f"the true facts are drawn from {found.num_given:,}; --num-facts 0 takes all of them")
    log(f"negatives {found.negatives}")
    log(f"log-loss in cross-validation: Platt {platt:.4f}, isotonic {isotonic:.4f}")
    log(f"wrote {run / FILE} ({found.of_nodes.kind})")
