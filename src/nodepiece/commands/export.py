"""nodepiece export: write the tokens of all nodes, by name, to a Parquet file."""

from pathlib import Path
from typing import Annotated

import typer

from nodepiece.commands.console import count, log, readable_bytes, stage
from nodepiece.errors import InputError

VocabularyArgument = Annotated[
    Path,
    typer.Argument(
        metavar="VOCAB", show_default=False, help="A folder written by nodepiece tokenize."
    ),
]


def export(
    vocabulary: VocabularyArgument,
    output: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="The Parquet file to write.")
    ],
) -> None:
    """Write the tokens of every node to a Parquet file, by name.

    Columns: node; anchors and distances, two lists of equal length, nearest first; relations.
    \\[PAD] is left out of the lists, and a node that reaches no anchor (\\[DISCONNECTED]) has empty
    lists of anchors and distances.
    """
    from nodepiece.files import check_parquet
    from nodepiece.tokenizer.export import export_tokens
    from nodepiece.tokenizer.storage import load_tokens

    if output.is_dir():
        raise InputError(f"{output} is a folder; name a file, such as {output}/tokens.parquet")
    check_parquet(output)
    table = load_tokens(vocabulary)
    with stage(f"writing {output}") as remarks:
        export_tokens(table, output)
        remarks.append(count(table.num_nodes, "row"))
    log(
        f"wrote {output}: {count(table.num_nodes, 'node')}, {readable_bytes(output.stat().st_size)}"
    )
