"""nodepiece convert: write a dataset in the layout of the Open Graph Benchmark (OGB)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import count, log, stage
from nodepiece.commands.graphs import (
    ColumnsOption,
    DataOption,
    DelimiterOption,
    FormatOption,
    GraphArgument,
    HeaderOption,
    read_options,
)
from nodepiece.commands.outputs import check_output
from nodepiece.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from nodepiece.data.dataset import Dataset


def convert(
    graph: GraphArgument,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            show_default=False,
            help="The folder to write; an earlier one in this layout is replaced.",
        ),
    ],
    held_out: Annotated[
        int,
        typer.Option(
            "--held-out",
            min=0,
            metavar="N",
            help="Facts taken out at random for valid, and as many for test, where GRAPH has none.",
        ),
    ] = 0,
    negatives: Annotated[
        int,
        typer.Option(
            "--negatives",
            min=1,
            metavar="N",
            help="Nodes that each side of a fact is ranked against.",
        ),
    ] = 500,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same facts.")
    ] = 0,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
    data: DataOption = None,
) -> None:
    """Write GRAPH in the layout of ogbl-wikikg2: test facts with negatives to rank them among.

    `nodepiece train` and `nodepiece tokenize` read the folder again, and so do programs that were
    written for OGB. A negative is a node drawn at random that makes no fact of the dataset.
    """
    import numpy as np

    from nodepiece.data.ogb_write import MARKER, write_ogb
    from nodepiece.data.open import open_dataset

    check_output(output, marker=MARKER, kind="folder in the layout of OGB")
    rng = np.random.default_rng(seed)
    options = read_options(delimiter, header, columns, format)
    with stage(f"reading {graph}") as remarks:
        dataset = open_dataset(graph, data=data, options=options)
        remarks += [dataset.layout] if dataset.layout else []
        dataset = hold_out(dataset, held_out, rng)
        remarks += [
            f"{len(dataset.part(part)):,} for {part}" for part in ("train", "valid", "test")
        ]
    with stage(f"writing {output}") as remarks:
        write_ogb(dataset, output, num_negatives=negatives, rng=rng)
        remarks.append(f"{count(negatives, 'negative')} for each side of a fact")
    log(f"wrote {output}; train on it with: nodepiece train EXPERIMENT --set dataset={output}")


def hold_out(dataset: "Dataset", number: int, rng: "np.random.Generator") -> "Dataset":
    """Return the dataset with `number` facts moved from train to valid, and as many to test.

    A dataset that has facts for valid or test is returned unchanged; `number` must be 0 then.
    """
    from dataclasses import replace

    import numpy as np

    if len(dataset.valid) or len(dataset.test):
        if number:
            raise InputError(
                f"{dataset.name} has facts for valid or test already; leave out --held-out"
            )
        return dataset
    facts = dataset.train.triples
    if not 0 < 2 * number < len(facts):
        raise InputError(
            f"{dataset.name} has {len(facts):,} facts and none for valid and test; set "
            f"--held-out to the number to take out for each, below {len(facts) // 2:,}"
        )
    order = rng.permutation(len(facts))
    taken, kept = order[: 2 * number], np.sort(order[2 * number :])
    return replace(
        dataset,
        train=replace(dataset.train, triples=facts[kept]),
        valid=facts[taken[:number]],
        test=facts[taken[number:]],
    )
