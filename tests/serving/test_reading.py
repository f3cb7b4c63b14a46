"""Every path that reads answers what the run answers in Python, with the version of the graph."""

from typing import Any

import httpx
import pyarrow as pa
import pytest

from nodepiece.inference.links import LinkRun
from nodepiece.inference.score_facts import PROBABILITIES

RUN = "/v1/runs/couples"
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
QUERY = {"head": "person 1", "relation": "lives in"}
IDA = [["Ida", "lives in", "town 1"], ["Ida", "married to", "person 3"]]


def got(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    content: dict[str, Any] = answer.json()
    return content


def table_of(answer: httpx.Response) -> pa.Table:
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(answer.content).read_all()


def test_the_runs_are_listed_with_their_sizes(client: httpx.Client) -> None:
    assert got(client.get("/v1/runs")) == {
        "runs": [
            {
                "name": "couples",
                "task": "link-prediction",
                "dataset": "couples",
                "num_nodes": 44,
                "num_relations": 2,
                "version": 0,
                "writable": False,
                "calibrated": False,
            }
        ]
    }


def test_a_run_has_its_model_graph_and_metrics(client: httpx.Client) -> None:
    found = got(client.get(RUN))
    assert found["model"]["decoder"] == "distmult" and found["model"]["anchors"] == 20
    assert found["graph"]["facts"] == 70
    assert 0 <= found["metrics"]["mrr"] <= 1


def test_relations_come_most_frequent_first(client: httpx.Client) -> None:
    found = got(client.get(f"{RUN}/relations"))
    relations = [{"name": "lives in", "facts": 40}, {"name": "married to", "facts": 30}]
    assert found == {"version": 0, "relations": relations}


def names_found(client: httpx.Client, **parameters: str | int) -> list[str]:
    found = got(client.get(f"{RUN}/nodes", params=parameters))
    return [node["name"] for node in found["nodes"]]


def test_nodes_are_found_by_the_beginning_of_their_names_then_by_a_part(
    client: httpx.Client,
) -> None:
    assert names_found(client, search="TOWN") == ["town 0", "town 1", "town 2", "town 3"]
    assert names_found(client, search="n 3", limit=3) == ["town 3", "person 3", "person 30"]
    assert names_found(client, search="nobody") == []


def test_without_a_search_nodes_with_most_facts_come_first(client: httpx.Client) -> None:
    assert names_found(client, limit=2) == ["town 0", "town 1"]


def test_a_node_has_its_facts_and_its_pieces(client: httpx.Client, run: LinkRun) -> None:
    found = got(client.get(f"{RUN}/node", params={"name": "person 1"}))
    assert found["num_facts"] == 3 and not found["is_new"]
    assert ["person 1", "lives in", "town 1"] in found["facts"]
    pieces = run.opened.table.pieces(run.dataset.names.node_id("person 1"))
    shown = [f"{each['name']}@{each['distance']}" for each in found["pieces"]["anchors"]]
    shown += [
        "inverse of " * each["inverse"] + each["name"] for each in found["pieces"]["relations"]
    ]
    assert shown == [piece for piece in pieces if piece != "[PAD]"]


def test_a_node_that_is_assumed_has_pieces_in_this_request_only(client: httpx.Client) -> None:
    found = got(client.post(f"{RUN}/node", json={"name": "Ida", "assume": IDA}))
    assert found["is_new"] and found["num_facts"] == 2
    assert {"name": "town 1", "distance": 1} in found["pieces"]["anchors"]
    got(client.get(f"{RUN}/node", params={"name": "Ida"}), 404)


def test_an_answer_to_one_query_is_that_of_the_run(client: httpx.Client, run: LinkRun) -> None:
    found = got(client.get(f"{RUN}/predict", params=QUERY | {"top": 3}))
    expected = [answer.to_json() | {"probability": None} for answer in run.predict(**QUERY, top=3)]  # type: ignore[arg-type]
    (result,) = found["results"]
    assert result["query"] == QUERY | {"tail": None} and result["asked"] == "tail"
    for answer, wanted in zip(result["answers"], expected, strict=True):
        assert answer == pytest.approx(wanted)


def test_many_queries_of_all_kinds_are_answered_in_their_order(
    client: httpx.Client, run: LinkRun
) -> None:
    queries = [
        QUERY,
        {"relation": "lives in", "tail": "town 1"},
        {"head": "person 1", "tail": "person 0"},
    ]
    body = {"queries": queries, "top": 4, "include_known": True, "seen_candidates": True}
    found = got(client.post(f"{RUN}/predict", json=body))
    assert [result["asked"] for result in found["results"]] == ["tail", "head", "relation"]
    for query, result in zip(queries, found["results"], strict=True):
        answers = run.predict(**query, top=4, include_known=True, seen_candidates=True)
        assert [answer["name"] for answer in result["answers"]] == [each.name for each in answers]
        assert [answer["known"] for answer in result["answers"]] == [
            each.is_known for each in answers
        ]


def test_queries_may_assume_facts_about_new_nodes(client: httpx.Client, run: LinkRun) -> None:
    body = {"queries": [{"head": "Ida", "relation": "lives in"}], "assume": IDA, "top": 2}
    found = got(client.post(f"{RUN}/predict", json=body))
    expected = run.with_facts([tuple(f) for f in IDA]).predict(  # type: ignore[misc]
        head="Ida", relation="lives in", top=2
    )
    names = [answer["name"] for answer in found["results"][0]["answers"]]
    assert names == [answer.name for answer in expected]


def test_facts_are_scored_and_ranked(client: httpx.Client, run: LinkRun) -> None:
    facts = [("person 1", "lives in", "town 1"), ("person 3", "lives in", "town 2")]
    found = got(client.post(f"{RUN}/score", json={"facts": facts}))
    for row, expected in zip(found["facts"], run.score(facts).to_pylist(), strict=True):
        nothing = dict.fromkeys(PROBABILITIES)
        assert row == nothing | {k: v for k, v in expected.items() if k != "fact"}


def test_vectors_are_those_of_the_run(client: httpx.Client, run: LinkRun) -> None:
    nodes = ["person 1", "town 0"]
    found = got(client.post(f"{RUN}/embed", json={"nodes": nodes}))
    assert found["nodes"] == nodes and found["vectors"] == run.embed(nodes).tolist()


def test_similar_nodes_are_those_of_the_run(client: httpx.Client, run: LinkRun) -> None:
    expected = run.similar("person 1", top=3).to_pylist()
    for answer in (
        client.get(f"{RUN}/similar", params={"node": "person 1", "top": 3}),
        client.post(f"{RUN}/similar", json={"nodes": ["person 1"], "top": 3}),
    ):
        assert got(answer)["neighbours"] == expected


@pytest.mark.parametrize(
    "path, body",
    [
        ("predict", {"queries": [QUERY], "top": 3}),
        ("score", {"facts": [["person 1", "lives in", "town 1"]]}),
        ("embed", {"nodes": ["person 1"]}),
        ("similar", {"nodes": ["person 1"], "top": 3}),
    ],
)
def test_tables_come_as_arrow_with_their_version(
    client: httpx.Client, path: str, body: dict[str, Any]
) -> None:
    answer = client.post(f"{RUN}/{path}", json=body, headers=ARROW)
    table = table_of(answer)
    assert table.num_rows and table.schema.metadata == {b"version": b"0"}
    assert answer.headers["nodepiece-version"] == "0"


def test_a_run_of_facts_refuses_to_classify(client: httpx.Client) -> None:
    found = got(client.get(f"{RUN}/classify", params={"node": "person 1"}), 422)
    assert "it has no node classes" in found["detail"]


def test_the_server_says_that_it_lives_and_is_ready(client: httpx.Client) -> None:
    assert got(client.get("/healthz")) == {"status": "ok"}
    assert got(client.get("/readyz")) == {"status": "ready", "runs": ["couples"]}


def test_the_page_is_at_the_root(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 200 and "text/html" in answer.headers["content-type"]
