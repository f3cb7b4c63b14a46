"""What other processes do with a run, for test_sharing.py: spawned workers import it."""

from multiprocessing.connection import Connection
from pathlib import Path

from nodepiece.errors import InputError
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load

QUESTION = {"head": "person 0", "relation": "lives in"}


def answer_from(folder: Path) -> list[object]:
    """A worker that opens the run by itself."""
    return list(load(folder).predict(**QUESTION))  # type: ignore[arg-type]


def answer_of(run: LinkRun) -> list[object]:
    """A worker that is sent a run."""
    return list(run.predict(**QUESTION))  # type: ignore[arg-type]


def forked(run: LinkRun, connection: Connection) -> None:
    try:
        run.predict(**QUESTION)  # type: ignore[arg-type]
    except InputError as error:
        connection.send(str(error))
    else:
        connection.send("answered")
