"""nodepiece report: tables and figures of runs, as a page and as Markdown."""

from pathlib import Path
from typing import Annotated

import typer

from nodepiece.commands.console import count, err, log, stage
from nodepiece.commands.outputs import check_output
from nodepiece.errors import InputError

PAGE, TEXT, FIGURES = "report.html", "report.md", "figures"


def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Folders of finished runs.", show_default=False),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="The folder to write."),
    ] = Path("report"),
    results: Annotated[
        Path,
        typer.Option("--results", metavar="FOLDER", help="Without runs: the measured results."),
    ] = Path("results"),
) -> None:
    """Write a report of runs side by side: report.html, report.md and the figures.

    Scores beside the paper's and those of other systems, with the spread over seeds; learning
    curves; scores by relation; the reliability of probabilities, of runs with a calibration;
    parameters and time. The page needs nothing from a network. Without runs, writes the results
    that come with the repository.
    """
    from nodepiece.files import atomic_folder
    from nodepiece.report.document import moved, to_html, to_markdown
    from nodepiece.report.results_page import results_document
    from nodepiece.report.run_report import report_document

    check_output(output, marker=PAGE, kind="report")
    if runs:
        document = report_document(runs, log=lambda words: err.print(words, soft_wrap=True))
    elif results.is_dir():
        docs = results.resolve().parent / "docs"  # where its links start from
        document = moved(results_document(results), docs, output.resolve())
    else:
        raise InputError(f"there is no folder {results} of results; name the runs to report on")
    with stage(f"writing {output}"), atomic_folder(output, marker=PAGE) as folder:
        (folder / PAGE).write_text(to_html(document), encoding="utf-8")
        (folder / TEXT).write_text(to_markdown(document, figures=f"{FIGURES}/"), encoding="utf-8")
        for picture in document.pictures:
            path = folder / FIGURES / f"{picture.name}.svg"
            path.parent.mkdir(exist_ok=True)
            path.write_text(picture.svg, encoding="utf-8")
    rows = count(len(runs), "run") if runs else f"the results in {results}"
    log(f"wrote {output / PAGE}: {rows}")
