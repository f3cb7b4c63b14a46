"""What other processes do with a run, for test_sharing.py: spawned workers import it."""

from multiprocessing.connection import Connection
from pathlib import Path

from nodepiece.errors import InputError
from nodepiece.inference.links import LinkRun
from nodepiece.inference.opened_run import Prediction
from nodepiece.inference.run import load

QUERY = {"head": "person 0", "relation": "lives in"}


def answer_from(folder: Path) -> list[Prediction]:
    """A worker that opens the run by itself."""
    return list(load(folder).predict(**QUERY))  # type: ignore[arg-type]


def answer_of(run: LinkRun) -> list[Prediction]:
    """A worker that is sent a run."""
    return list(run.predict(**QUERY))  # type: ignore[arg-type]


def forked(run: LinkRun, connection: Connection) -> None:
    try:
        run.predict(**QUERY)  # type: ignore[arg-type]
    except InputError as error:
        connection.send(str(error))
    else:
        connection.send("answered")
