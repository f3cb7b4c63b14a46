"""nodepiece serve: runs over HTTP, with a page to explore them."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodepiece.commands.console import err, log, stage
from nodepiece.commands.demo import EXPERIMENT, train_quietly, use_one_thread
from nodepiece.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from fastapi import FastAPI

    from nodepiece.inference.opened_run import Run
    from nodepiece.serving.settings import ServeSettings

LOCAL = ("localhost", "127.0.0.1", "::1")  # in the Host header of requests of this machine
MIN_TOKEN = 16  # characters


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
        str,
        typer.Option("--host", metavar="ADDRESS", help="0.0.0.0: other machines may connect."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0: any that is free.")
    ] = 8000,
    writable: Annotated[
        bool, typer.Option("--writable", help="Clients may add and remove facts and nodes.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="A file with a token that updates must carry, as Authorization: Bearer TOKEN. "
            "Needed for --writable where other machines may connect.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, metavar="N", help="Processes that answer.")
    ] = 1,
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Answers from an index of vectors, which is built at the first start: quick for "
            "millions of nodes, and most of the best ones. The measured recall is printed, and in "
            "the description of the run.",
        ),
    ] = False,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            show_default=False,
            help="Pages of this server may use it too, such as https://example.org. May be "
            "repeated.",
        ),
    ] = None,
    access_log: Annotated[
        bool,
        typer.Option("--access-log", help="A line of JSON for every request, on standard error."),
    ] = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser, if there is one.")
    ] = False,
) -> None:
    """Answer queries over HTTP, with a page at / to explore the graph.

    Predictions, scores, vectors, similar nodes and explanations as JSON or Arrow, with the version
    of the graph in every answer. /openapi.json describes all paths. With --writable, an update is
    on disk when it is acknowledged.
    """
    try:
        from nodepiece.serving.app import make_app
        from nodepiece.serving.server import serve_app
        from nodepiece.serving.workers import serve_workers
    except ModuleNotFoundError as error:
        raise MissingExtra(f"serving needs {error.name}", "serve") from error
    settings = settings_of(host, writable, token_file, tuple(allow_origin or ()), access_log)
    settings = replace(settings, approximate=approximate)
    folders = list(runs) if runs else [train_countries()]

    def started(address: str) -> None:
        log(f"serving {', '.join(map(str, folders))} at {address}")
        for name, stated in stated_recalls() if approximate else ():
            err.print(recall_line(name, stated))
        err.print("stop it with Ctrl-C")
        prepare_explanations(opened)
        if open_page:
            import webbrowser

            webbrowser.open(address)

    opened: list[Run] = []
    apps: list[FastAPI] = []

    def stated_recalls() -> list[tuple[str, dict[str, Any]]]:
        served = [run for app in apps for run in app.state.service.runs.values()]
        return [(run.name, run.approximate.to_json()) for run in served if run.approximate]

    if workers > 1:
        if approximate:
            for folder in folders:  # once, as all workers use the same files
                build_index(open_run(folder))
        serve_workers(folders, settings, host, port, num_workers=workers, started=started)
        return
    opened += [open_run(folder) for folder in folders]
    if approximate:
        for run in opened:
            build_index(run)
    apps.append(make_app(opened, settings))
    serve_app(apps[0], settings, host, port, started=started)


def settings_of(
    host: str,
    writable: bool,
    token_file: Path | None,
    origins: tuple[str, ...],
    access_log: bool,
) -> "ServeSettings":
    """Refuse what would let anybody change the graph."""
    from nodepiece.serving.settings import ServeSettings

    if token_file is not None and not writable:
        raise InputError("--token-file is for updates; give --writable too, or leave it out")
    token = None if token_file is None else read_token(token_file)
    is_local = is_loopback(host)
    if writable and token is None and not is_local:
        raise InputError(
            f"--writable at {host} would let any machine change the graph; give --token-file FILE, "
            "or leave out --host"
        )
    return ServeSettings(
        writable=writable,
        token=token,
        hosts=tuple(dict.fromkeys((*LOCAL, host))) if is_local else (),
        origins=origins,
        access_log=access_log,
    )


def read_token(path: Path) -> str:
    token = path.read_text(encoding="utf-8").strip()
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            f"{path} must have one token of at least {MIN_TOKEN} letters and digits; make one with "
            "python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def open_run(folder: Path) -> "Run":
    from nodepiece.inference.run import load

    with stage(f"opening {folder}"):
        return load(folder)


def build_index(run: "Run") -> None:
    """Build and store the index of approximate answers, unless the run has it.

    If updates have changed too many nodes for the index of the base, they are compacted first.
    """
    from nodepiece.inference.answer_index import MAX_MOVED, AnswerIndex
    from nodepiece.inference.graph_updates import UpdateUnderWay
    from nodepiece.inference.links import LinkRun
    from nodepiece.inference.update import compact, exclusive_update
    from nodepiece.serving.served_run import index_place

    with stage(f"indexing {run.folder}"):
        snapshot, place = index_place(run)
        if isinstance(run, LinkRun) and len(snapshot.patched.nodes) > MAX_MOVED:
            with suppress(UpdateUnderWay, OSError), exclusive_update(run):
                compact(run)
            snapshot, place = index_place(run)
        AnswerIndex(snapshot, place).prepare()


def recall_line(name: str, stated: Mapping[str, Any]) -> str:
    if stated["recall_at_10"] is None:
        return f"{name}: the recall of approximate answers was not measured, for want of facts"
    return (
        f"{name}: approximate answers have {100 * stated['recall_at_10']:.1f} % of the exact ten "
        f"best, measured with {stated['queries']} queries"
    )


def prepare_explanations(runs: Sequence["Run"]) -> Thread:
    """Explain a fact of each run, in a thread that is returned.

    The first explanation on a machine compiles code for up to a minute. Meanwhile the server
    answers everything else.
    """
    from nodepiece.inference.facts import FactRun

    def explain() -> None:
        for run in runs:
            if not isinstance(run, FactRun) or not run.dataset.train.num_triples:
                continue
            names = run.dataset.names
            head, relation, tail = run.dataset.train.triples[0].tolist()
            with suppress(InputError):  # a request says what is wrong
                run.explain(
                    head=names.node(head), relation=names.relation(relation), tail=names.node(tail)
                )

    thread = Thread(target=explain, name="nodepiece-explanations", daemon=True)
    thread.start()
    return thread


def train_countries() -> Path:
    """Train the graph of countries in a temporary folder, and return that."""
    from nodepiece.inference.calibration import calibrate_run

    use_one_thread()
    folder = Path(tempfile.mkdtemp(prefix="nodepiece-")) / "countries"
    run = train_quietly(EXPERIMENT, folder)
    with stage("calibrating"):
        calibrate_run(run)  # for probabilities beside the scores
    return folder
