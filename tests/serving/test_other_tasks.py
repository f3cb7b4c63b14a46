"""Runs of other tasks answer what they can, and refuse the rest in a sentence."""

from pathlib import Path
from time import sleep
from typing import Any

import httpx
import torch
from tests.serving.live_server import client_of
from tests.serving.test_reading import got
from tests.tasks.citizens import experiment as inductive_experiment
from tests.tasks.citizens import two_worlds
from tests.tasks.professions import experiment as class_experiment
from tests.tasks.professions import professions

from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load, load_links
from nodepiece.serving.settings import ServeSettings
from nodepiece.serving.stored_map import FILE
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.node_classification import NodeClassification
from nodepiece.tasks.runner import RunOptions, run_experiment

RUN = "/v1/runs/run"


def test_a_run_of_classes_classifies_and_refuses_facts(tmp_path: Path) -> None:
    task = NodeClassification(class_experiment(epochs=1), professions())
    run_experiment(task, RunOptions(tmp_path / "run", torch.device("cpu")))
    run = load(tmp_path / "run")
    node = run.node_names()[0]
    with client_of(run, settings=ServeSettings(writable=True)) as client:
        found = got(client.get(f"{RUN}/classify", params={"node": node, "top": 2}))
        expected = run.classify(node, top=2)
        assert [each["name"] for each in found["classes"]] == [each.name for each in expected]
        assert got(client.get("/v1/runs"))["runs"][0]["writable"] is False
        assert got(client.get(f"{RUN}/node", params={"name": node}))["name"] == node
        got(client.post(f"{RUN}/embed", json={"nodes": [node]}))
        got(client.get(f"{RUN}/similar", params={"node": node}))
        body: dict[str, Any] = {"queries": [{"head": node, "relation": "x"}]}
        for path, content in (
            ("predict", body),
            ("score", {"facts": [[node, "x", node]]}),
            ("explain", {"head": node, "relation": "x", "tail": node}),
        ):
            refused = got(client.post(f"{RUN}/{path}", json=content), 422)
            assert "it predicts no facts" in refused["detail"]
            assert str(tmp_path) not in refused["detail"]
        refused = got(client.post(f"{RUN}/update", json={}), 403)
        assert "cannot be updated" in refused["detail"]


def test_an_inductive_run_answers_for_its_inference_graph(tmp_path: Path) -> None:
    task = InductiveLinkPrediction(inductive_experiment(epochs=1), two_worlds())
    run_experiment(task, RunOptions(tmp_path / "run", torch.device("cpu")))
    run = load(tmp_path / "run")
    names = run.dataset.names  # type: ignore[attr-defined]
    node, relation = names.node(0), names.relation(0)
    with client_of(run) as client:
        found = got(client.get(f"{RUN}/predict", params={"head": node, "relation": relation}))
        expected = run.predict(head=node, relation=relation)
        names_found = [answer["name"] for answer in found["results"][0]["answers"]]
        assert names_found == [each.name for each in expected]
        pieces = got(client.get(f"{RUN}/node", params={"name": node}))["pieces"]
        assert pieces["relations"] and not pieces["anchors"]
        body = {"queries": [{"head": node, "relation": relation}], "assume": [["a", "b", "c"]]}
        refused = got(client.post(f"{RUN}/predict", json=body), 422)["detail"]
        assert "takes no more facts; it answers on any graph: give one with all facts" in refused


def wait_for_map(client: httpx.Client) -> dict[str, Any]:
    for _ in range(600):
        answer = client.get("/v1/runs/couples/map")
        if answer.status_code == 200:
            return got(answer)
        assert got(answer, 202) == {"status": "computing"}
        sleep(0.05)
    raise AssertionError("the map is not there after half a minute")


def test_a_map_is_computed_once_and_stored_with_the_run(own_run: LinkRun) -> None:
    with client_of(own_run) as client:
        found = wait_for_map(client)
    assert found["version"] == 0 and found["method"] == "t-SNE"
    assert sorted(found["names"]) == sorted(own_run.node_names())
    assert len(found["x"]) == len(found["y"]) == len(found["groups"]) == 44
    assert (own_run.folder / FILE).is_file()
    with client_of(load_links(own_run.folder)) as client:
        assert got(client.get("/v1/runs/couples/map")) == found  # at once
