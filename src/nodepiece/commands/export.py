"""nodepiece export: write the tokens of all nodes, by name, to a file."""

from pathlib import Path
from typing import Annotated

import typer

from nodepiece.commands.console import count, log, readable_bytes, stage

VocabularyArgument = Annotated[
    Path,
    typer.Argument(
        metavar="VOCAB", show_default=False, help="A folder written by nodepiece tokenize."
    ),
]


def export(
    vocabulary: VocabularyArgument,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="The file to write: .parquet, .csv, .tsv, .jsonl, or .npy for ids.",
        ),
    ],
) -> None:
    """Write the tokens of every node to a file, by name.

    Columns: node; anchors and distances, two lists of equal length, nearest first; relations.
    \\[PAD] is left out of the lists, and a node that reaches no anchor (\\[DISCONNECTED]) has empty
    lists of anchors and distances. The ending of FILE says the format; in .csv and .tsv lists are
    JSON arrays, and .npy has token ids instead of names.
    """
    from nodepiece.tokenizer.export import check_token_file, export_tokens
    from nodepiece.tokenizer.storage import load_tokens

    check_token_file(output)
    table = load_tokens(vocabulary)
    with stage(f"writing {output}") as remarks:
        export_tokens(table, output)
        remarks.append(count(table.num_nodes, "row"))
    log(
        f"wrote {output}: {count(table.num_nodes, 'node')}, {readable_bytes(output.stat().st_size)}"
    )
