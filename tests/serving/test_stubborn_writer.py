"""The writer goes on after an error that nobody expected."""

from typing import Any

import pytest

from nodepiece.inference.links import LinkRun
from nodepiece.inference.update_groups import GraphUpdate
from nodepiece.serving import writer as writers
from nodepiece.serving.writer import GraphWriter


def adding(name: str) -> GraphUpdate:
    return GraphUpdate(add=((name, "lives in", "town 1"),))


def test_an_error_of_the_program_fails_one_update_and_not_those_after_it(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("a bug")

    writer = GraphWriter(own_run, capacity=4, on_commit=lambda *_: None)
    try:
        for place in ("groups_of", "commit_group"):
            with monkeypatch.context() as patch:
                patch.setattr(writers, place, fail)
                with pytest.raises(RuntimeError, match="a bug"):
                    writer.submit(adding("Ida")).result(20)
        assert writer.submit(adding("Jo")).result(20).version == 1
    finally:
        writer.close()
    assert own_run.known(head="Jo", relation="lives in") == ["town 1"]
