"""Approximate answers over HTTP, with the recall that was measured."""

from time import sleep

import httpx
import pytest
from tests.serving.live_server import client_of

from nodepiece.commands.serve import build_index
from nodepiece.inference import answer_index
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load
from nodepiece.serving.settings import ServeSettings

pytest.importorskip("usearch")


def changed_nodes(client: httpx.Client) -> int:
    """How many nodes changed since the index was built, which another thread finds out."""
    for _ in range(2_000):
        number = client.get("/v1/runs/couples").json()["approximate"]["changed_nodes"]
        if number is not None:
            return int(number)
        sleep(0.01)
    raise AssertionError("the vectors were not compared")


def test_a_run_states_the_recall_of_its_approximate_answers(own_run: LinkRun) -> None:
    query: dict[str, str | int] = {"head": "person 0", "relation": "lives in", "top": 5}
    with client_of(own_run) as client:
        exact = client.get("/v1/runs/couples/predict", params=query).json()
        assert client.get("/v1/runs/couples").json()["approximate"] is None
    with client_of(own_run, settings=ServeSettings(approximate=True, writable=True)) as client:
        stated = client.get("/v1/runs/couples").json()["approximate"]
        assert stated["recall_at_10"] == 1.0 and stated["queries"] > 0
        found = client.get("/v1/runs/couples/predict", params=query).json()
        assert [each["name"] for each in found["results"][0]["answers"]] == [
            each["name"] for each in exact["results"][0]["answers"]
        ]
        body = {"add": [["Ida", "lives in", "town 1"]]}
        assert client.post("/v1/runs/couples/update", json=body).status_code == 200
        query["head"] = "Ida"
        assert client.get("/v1/runs/couples/predict", params=query).json()["version"] == 1
        assert stated["changed_nodes"] == 0 and stated["exact_from"] == 20_001
        assert changed_nodes(client) > 0


def test_an_index_that_many_updates_left_behind_is_reported_once(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(answer_index, "MAX_MOVED", 2)
    query: dict[str, str | int] = {"head": "person 0", "relation": "lives in", "top": 5}
    with client_of(own_run, settings=ServeSettings(approximate=True, writable=True)) as client:
        for number in range(4):
            body = {"add": [[f"new {number}", "lives in", "town 1"]]}
            assert client.post("/v1/runs/couples/update", json=body).status_code == 200
            assert changed_nodes(client) > number
            assert client.get("/v1/runs/couples/predict", params=query).status_code == 200
    reported = [each for each in caplog.messages if "since the index was built" in each]
    assert len(reported) == 1 and reported[0].startswith("3 nodes")


def test_assumed_facts_that_change_many_nodes_are_not_reported(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(answer_index, "MAX_MOVED", 2)
    body = {
        "queries": [{"head": "new 0", "relation": "lives in"}],
        "assume": [[f"new {number}", "lives in", "town 1"] for number in range(4)],
    }
    with client_of(own_run, settings=ServeSettings(approximate=True)) as client:
        assert client.post("/v1/runs/couples/predict", json=body).status_code == 200
    assert not [each for each in caplog.messages if "since the index was built" in each]


def test_another_start_builds_an_index_with_the_nodes_that_updates_changed(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ServeSettings(approximate=True, writable=True)
    with client_of(own_run, settings=settings) as client:
        body = {"add": [[f"new {number}", "lives in", "town 1"] for number in range(4)]}
        assert client.post("/v1/runs/couples/update", json=body).status_code == 200
    monkeypatch.setattr(answer_index, "MAX_MOVED", 2)
    again = load(own_run.folder)
    build_index(again)
    with client_of(again, settings=settings) as client:
        found = client.get("/v1/runs/couples").json()
    assert found["approximate"]["changed_nodes"] == 0 and found["version"] == 1
