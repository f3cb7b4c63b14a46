"""The command line: which commands there are, and how errors are reported.

Exit status: 0 done; 1 an error of the system, or a bug in nodepiece; 2 an error that the user can
fix, such as a wrong path; 130 stopped with Ctrl-C. Each command is a file in `commands/`.
"""

import errno
import logging
import signal
import sys
import traceback
from collections.abc import Callable
from inspect import cleandoc
from types import FrameType
from typing import Annotated, NoReturn

import typer

from nodepiece import __version__
from nodepiece.commands.calibrate import calibrate
from nodepiece.commands.classify_triples import classify_triples
from nodepiece.commands.console import err, interrupts, out
from nodepiece.commands.convert import convert
from nodepiece.commands.datasets import datasets
from nodepiece.commands.demo import demo
from nodepiece.commands.discover import discover
from nodepiece.commands.embed import embed
from nodepiece.commands.evaluate import evaluate
from nodepiece.commands.experiments import experiments
from nodepiece.commands.explain import explain as explain_fact
from nodepiece.commands.export import export
from nodepiece.commands.figures import figures
from nodepiece.commands.inspect import inspect
from nodepiece.commands.label import label
from nodepiece.commands.map import map as draw_map
from nodepiece.commands.plan import plan
from nodepiece.commands.predict import predict
from nodepiece.commands.report import report
from nodepiece.commands.score import score
from nodepiece.commands.serve import serve
from nodepiece.commands.similar import similar
from nodepiece.commands.split import split
from nodepiece.commands.sweep import sweep
from nodepiece.commands.tokenize import tokenize
from nodepiece.commands.train import train
from nodepiece.commands.tune import tune
from nodepiece.commands.update import update
from nodepiece.errors import STOPPED, InputError, Stopped, one_line

# Errors of the system for a path that is wrong: missing, or of the wrong kind.
UNFIT_PATHS = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"nodepiece {__version__}")
        raise typer.Exit


@app.callback(epilog="Start with: nodepiece demo")
def nodepiece(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback when something goes wrong.")
    ] = False,
) -> None:
    """The tokenizer for knowledge graphs: every node as a few anchors, distances and relations."""


def add_command(command: Callable[..., None], *, example: str, name: str | None = None) -> None:
    """Register a command; its help is its docstring, rewrapped to the width of the terminal."""
    paragraphs = cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(name, help=text, epilog=f"Example: {example}")(command)


add_command(demo, example="nodepiece demo")
add_command(tokenize, example="nodepiece tokenize graph.tsv -o vocabulary --anchors 1000")
add_command(inspect, example="nodepiece inspect vocabulary --plot distances.png")
add_command(figures, example="nodepiece figures fb15k-237 -o figures")
add_command(export, example="nodepiece export vocabulary tokens.parquet")
add_command(plan, example="nodepiece plan wikikg2-paper")
add_command(train, example="nodepiece train countries -o run --set training.epochs=5")
add_command(sweep, example="nodepiece sweep fb15k-237-paper -o sweep --jobs 4")
add_command(tune, example="nodepiece tune graph.tsv --minutes 60 -o search")
add_command(evaluate, example="nodepiece evaluate run --per-relation")
add_command(predict, example='nodepiece predict run --head Kenya --relation "has language"')
add_command(score, example="nodepiece score run triples.tsv -o scores.parquet")
add_command(discover, example="nodepiece discover run --top 1000 -o missing.parquet")
add_command(calibrate, example="nodepiece calibrate run --negatives false.tsv")
add_command(classify_triples, example="nodepiece classify-triples run --plot reliability.png")
add_command(similar, example="nodepiece similar run --node Kenya")
add_command(
    explain_fact,
    name="explain",
    example="nodepiece explain run --head Kenya --relation near --tail Uganda --svg paths.svg",
)
add_command(draw_map, example="nodepiece map run -o map.html")
add_command(report, example="nodepiece report runs/* -o report")
add_command(convert, example="nodepiece convert graph.tsv -o folder --held-out 1000")
add_command(embed, example="nodepiece embed run -o vectors.parquet --facts new.tsv")
add_command(update, example="nodepiece update run --add new.tsv --remove old.tsv")
add_command(serve, example="nodepiece serve run --open")
add_command(split, example="nodepiece split graph.tsv -o folder --valid 0.05 --test 0.05")
add_command(datasets, example="nodepiece datasets fetch fb15k-237")
add_command(experiments, example="nodepiece experiments show fb15k-237-paper")
add_command(label, example="nodepiece label graph.tsv classes.tsv -o dataset --drop-relation P31")


class Messages(logging.Handler):
    """Prints what the library logs to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = f"{record.levelname.lower()}: " if record.levelno > logging.INFO else ""
        err.print(f"{kind}{record.getMessage()}", soft_wrap=True)


def show_messages() -> None:
    """Print warnings and errors, and the progress of reading a file."""
    for name, level in (("nodepiece", logging.WARNING), ("nodepiece.reading", logging.INFO)):
        logger = logging.getLogger(name)
        if not any(isinstance(handler, Messages) for handler in logger.handlers):
            logger.addHandler(Messages(level))
    logger.setLevel(logging.INFO)


def main() -> None:
    show_messages()
    arguments = sys.argv[1:]
    wants_traceback = "--debug" in arguments  # at any position
    watch_interrupts()
    try:
        app([argument for argument in arguments if argument != "--debug"], prog_name="nodepiece")
    except SystemExit as end:
        if end.code and (interrupts or end.code == STOPPED[0]):
            fail(*STOPPED)
        raise
    except Stopped as stopped:
        fail(STOPPED[0], str(stopped))
    except Exception as error:
        if interrupts:
            fail(*STOPPED)
        if wants_traceback:
            traceback.print_exc()
        fail(*explain(error))


def watch_interrupts() -> None:
    """Record Ctrl-C in a list, as its exception may be swallowed on the way here."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    interrupts.clear()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, interrupt)


def fail(status: int, sentence: str) -> NoReturn:
    err.print(sentence, style="red", soft_wrap=True)
    sys.exit(status)


def explain(error: Exception) -> tuple[int, str]:
    """Return the exit status and a one-sentence message for an error that stopped a command."""
    if isinstance(error, InputError):
        return 2, f"error: {error}"
    if isinstance(error, MemoryError):
        return 1, "error: not enough memory; use fewer anchors a node, or a larger machine"
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        status = 2 if error.errno in UNFIT_PATHS else 1
        return status, one_line(
            f"error: {place}{error.strerror or error}; "
            "check the path, its permissions and the space on the disk"
        )
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return 1, f"error: {what}; this is a bug in nodepiece; run again with --debug and report it"
