"""nodepiece serve: a run over HTTP, with a page to explore it."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import err, log, stage
from nodepiece.commands.demo import EXPERIMENT, train_quietly, use_one_thread
from nodepiece.errors import InputError

if TYPE_CHECKING:
    from nodepiece.inference.opened_run import Run


def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...",
            show_default=False,
            help="Folders written by nodepiece train. Without any, the graph of countries is "
            "trained, which takes half a minute.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to accept connections.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0: any that is free.")
    ] = 8000,
    writable: Annotated[
        bool, typer.Option("--writable", help="Clients may add and remove facts and nodes.")
    ] = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser, if there is one.")
    ] = False,
) -> None:
    """Answer queries over HTTP, and show a page at / to explore the graph.

    Predictions, scores, vectors, similar nodes and explanations as JSON or Arrow, with the version
    of the graph in every answer. /openapi.json describes all paths.
    """
    from nodepiece.serving.settings import ServeSettings

    try:
        from nodepiece.serving.app import make_app
        from nodepiece.serving.server import serve_app
    except ModuleNotFoundError as error:
        raise InputError(f"serving needs {error.name}; pip install 'nodepiece[serve]'") from error
    opened = [open_run(folder) for folder in runs] if runs else [trained_countries()]
    settings = ServeSettings(writable=writable)

    def started(address: str) -> None:
        log(f"serving {', '.join(str(run.folder) for run in opened)} at {address}")
        err.print("stop it with Ctrl-C")
        if open_page:
            import webbrowser

            webbrowser.open(address)

    serve_app(make_app(opened, settings), settings, host, port, started=started)


def open_run(folder: Path) -> "Run":
    from nodepiece.inference.run import load

    with stage(f"opening {folder}"):
        return load(folder)


def trained_countries() -> "Run":
    """A run of the graph of countries, trained in a temporary folder."""
    use_one_thread()
    folder = Path(tempfile.mkdtemp(prefix="nodepiece-")) / "countries"
    return train_quietly(EXPERIMENT, folder)
