"""Approximate answers over HTTP, with the recall that was measured."""

import pytest
from tests.serving.live_server import client_of

from nodepiece.inference.links import LinkRun
from nodepiece.serving.settings import ServeSettings

pytest.importorskip("usearch")


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
