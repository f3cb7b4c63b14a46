"""What a server refuses: in a problem with a sentence, and never with a traceback."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.serving.live_server import client_of, served
from tests.serving.test_reading import QUERY, RUN, got

from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.serving import timed_protocol
from nodepiece.serving.settings import Limits, ServeSettings

TOKEN = "a-token-of-some-letters"
SMALL = Limits(
    body=2_000, batch=3, top=12, answers=20, assumed=2, name=50, seconds=5, body_seconds=0.3
)
IDA = {"add": [["Ida", "lives in", "town 1"]]}


@pytest.fixture(scope="module")
def small(run: LinkRun) -> Iterator[httpx.Client]:
    with client_of(run, settings=ServeSettings(limits=SMALL)) as client:
        yield client


def assert_problem(answer: httpx.Response, status: int, words: str) -> None:
    found = got(answer, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert found["status"] == status and found["title"] and found["type"] == "about:blank"
    assert words in found["detail"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "path, body, words",
    [
        ("predict", {"queries": [QUERY] * 4}, "4 queries at once; send up to 3"),
        ("predict", {"queries": [QUERY], "top": 13}, "ask for up to 12"),
        ("predict", {"queries": [QUERY] * 3, "top": 12}, "up to 20 answers in a request"),
        ("predict", {"queries": [QUERY], "top": 0}, "top"),
        ("predict", {"queries": [{"head": "x" * 51, "relation": "r"}]}, "51 characters"),
        ("predict", {"queries": [{"head": "person 1"}]}, "exactly two of head, relation and tail"),
        ("predict", {"queries": [QUERY], "assume": [["a", "r", "b"]] * 3}, "3 assumed facts"),
        ("predict", {"queries": [QUERY], "assume": [["a", "r", "b"]]}, "not seen in training"),
        ("predict", {"queries": QUERY}, "queries"),
        ("predict", {"queries": [QUERY], "limit": 3}, "limit"),
        ("score", {"facts": [["a", "b"]]}, "facts.0"),
        ("node", {"name": "person 1", "limit": 10_001}, "limit"),
        ("embed", {"nodes": "person 1"}, "nodes"),
        ("embed", {}, "nodes"),
        ("similar", {"nodes": ["x"], "top": "many"}, "top"),
        ("explain", {"head": "person 1"}, "relation"),
    ],
)
def test_a_wrong_value_is_refused_in_a_sentence(
    small: httpx.Client, path: str, body: dict[str, Any], words: str
) -> None:
    assert_problem(small.post(f"{RUN}/{path}", json=body), 422, words)


@pytest.mark.parametrize(
    "path, parameters",
    [
        ("node", {"name": "persn 1"}),
        ("predict", {"head": "persn 1", "relation": "lives in"}),
        ("similar", {"node": "persn 1"}),
    ],
)
def test_an_unknown_name_is_not_found_and_similar_ones_are_named(
    client: httpx.Client, path: str, parameters: dict[str, str]
) -> None:
    answer = client.get(f"{RUN}/{path}", params=parameters)
    assert_problem(answer, 404, "unknown node 'persn 1'; did you mean 'person 1'")
    assert answer.json()["suggestions"][0] == "person 1"


def test_one_unknown_name_does_not_keep_other_requests_from_being_answered(
    client: httpx.Client,
) -> None:
    queries = [QUERY, {"head": "person 1", "relation": "lies in"}]
    answer = client.post(f"{RUN}/predict", json={"queries": queries})
    assert_problem(answer, 404, "query 1: unknown relation 'lies in'; did you mean 'lives in'")


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe\x00", b"[1, 2]", b'"text"', b"", b"nul" * 99])
def test_garbage_is_refused(client: httpx.Client, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"{RUN}/embed", content=body, headers=headers)
    assert answer.status_code in (400, 422)
    assert_problem(answer, answer.status_code, "body")


def test_a_lone_surrogate_is_refused(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    body = b'{"nodes": ["\\ud800"]}'
    answer = client.post(f"{RUN}/embed", content=body, headers=headers)
    assert answer.status_code in (404, 422)
    assert_problem(answer, answer.status_code, "")


def test_numbers_beyond_all_limits_are_refused(client: httpx.Client) -> None:
    for top in (10**30, -1, 1.5):
        body = {"queries": [QUERY], "top": top}
        assert_problem(client.post(f"{RUN}/predict", json=body), 422, "top")
    deep = b'{"nodes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"{RUN}/embed", content=deep, headers=headers)
    assert answer.status_code in (400, 422)


def test_a_body_of_another_type_is_refused(client: httpx.Client) -> None:
    for headers in ({"Content-Type": "text/plain"}, {}):
        answer = client.post(f"{RUN}/embed", content=b'{"nodes": []}', headers=headers)
        assert_problem(answer, 415, "send application/json")


def test_an_oversized_body_is_refused_before_it_is_read(small: httpx.Client) -> None:
    body = {"nodes": ["x" * 3_000]}
    assert_problem(small.post(f"{RUN}/embed", json=body), 413, "larger than 2,000 bytes")

    def chunks() -> Iterator[bytes]:
        yield from [b"[" * 500] * 6

    headers = {"Content-Type": "application/json"}
    answer = small.post(f"{RUN}/embed", content=chunks(), headers=headers)
    assert_problem(answer, 413, "larger than 2,000 bytes")


def test_what_is_not_there_is_not_found(client: httpx.Client) -> None:
    assert_problem(client.get("/v1/runs/other"), 404, "there is no run 'other'")
    assert_problem(client.get("/v2"), 404, "nothing at /v2")
    assert_problem(client.get("/static/../app.py"), 404, "nothing at")
    assert_problem(client.get("/static/%2e%2e/app.py"), 404, "nothing at")
    assert_problem(client.delete(f"{RUN}/predict"), 405, "Method")


def test_an_error_of_the_program_is_a_problem_without_a_traceback(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a secret path")

    monkeypatch.setattr("nodepiece.serving.routes.node_record", fail)
    answer = client.get(f"{RUN}/node", params={"name": "person 1"})
    assert_problem(answer, 500, "its log has the cause")
    assert "secret" not in answer.text


def test_an_error_of_the_program_has_headers_that_protect_the_page(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.serving.routes.relation_list", lambda state: 1 / 0)
    with client_of(run) as client:
        answer = client.get("/v1/runs/couples/relations")
    assert answer.status_code == 500
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_answer_that_takes_too_long_is_a_problem(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.serving.routes.node_record", lambda *_: time.sleep(0.5))
    settings = ServeSettings(limits=Limits(seconds=0.1))
    with client_of(run, settings=settings) as client:
        answer = client.get(f"{RUN}/node", params={"name": "person 1"})
    assert_problem(answer, 504, "no answer within 0.1 s")


def test_more_requests_than_may_wait_are_refused(run: LinkRun) -> None:
    settings = ServeSettings(limits=Limits(waiting=0))
    with client_of(run, settings=settings) as client:
        for answer in (
            client.get(f"{RUN}/node", params={"name": "person 1"}),
            client.get(f"{RUN}/predict", params=QUERY),
        ):
            assert_problem(answer, 503, "requests are waiting already")
            assert answer.headers["retry-after"] == "1"


def send_raw(address: str, data: bytes, seconds: float) -> bytes:
    """What a server answers to some bytes before it closes the connection."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as connection:
        connection.sendall(data)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
        return found


def test_a_body_that_does_not_arrive_is_refused(run: LinkRun) -> None:
    head = f"POST {RUN}/embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: 100\r\n\r\n{{".encode()
    with served(run, settings=ServeSettings(limits=SMALL)) as address:
        assert b"408" in send_raw(address, request, 5).splitlines()[0]


def test_a_connection_without_a_request_is_closed(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_protocol, "HEADER_SECONDS", 0.2)
    with served(run) as address:
        for data in (b"", b"GET /healthz HTTP/1.1\r\nHost: local"):
            assert send_raw(address, data, 5) == b""
        assert b"400" in send_raw(address, b"\x16\x03\x01 no HTTP\r\n\r\n", 5).splitlines()[0]


def test_a_client_that_leaves_disturbs_nobody(run: LinkRun) -> None:
    with served(run) as address:
        host, port = address.removeprefix("http://").split(":")
        for _ in range(20):
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(
                    f"GET {RUN}/relations HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
                )
        assert httpx.get(f"{address}/healthz", trust_env=False).status_code == 200


def test_pages_of_other_servers_are_not_allowed_to_read_or_write(own_run: LinkRun) -> None:
    other = {"Origin": "https://other.example"}
    with client_of(own_run, settings=ServeSettings(writable=True)) as client:
        assert "access-control-allow-origin" not in client.get("/v1/runs", headers=other).headers
        answer = client.post(f"{RUN}/update", json=IDA, headers=other)
        assert_problem(answer, 403, "https://other.example may not update")
        same = {"Origin": str(client.base_url).rstrip("/")}
        assert got(client.post(f"{RUN}/update", json=IDA, headers=same))["version"] == 1


def test_pages_that_are_listed_may_use_the_server(own_run: LinkRun) -> None:
    settings = ServeSettings(writable=True, origins=("https://other.example",))
    other = {"Origin": "https://other.example"}
    with client_of(own_run, settings=settings) as client:
        found = client.get("/v1/runs", headers=other).headers
        assert found["access-control-allow-origin"] == "https://other.example"
        assert got(client.post(f"{RUN}/update", json=IDA, headers=other))["version"] == 1


def test_another_host_name_is_refused(run: LinkRun) -> None:
    """A page of evil.example whose address was changed to 127.0.0.1 sends its own name."""
    with client_of(run, settings=ServeSettings(hosts=("127.0.0.1", "localhost"))) as client:
        assert client.get("/healthz").status_code == 200
        answer = client.get("/healthz", headers={"Host": "evil.example:8000"})
        assert_problem(answer, 421, "this server is not 'evil.example'")


def test_updates_need_the_token(own_run: LinkRun) -> None:
    with client_of(own_run, settings=ServeSettings(writable=True, token=TOKEN)) as client:
        for given in ({}, {"Authorization": "Bearer other"}, {"Authorization": TOKEN}):
            answer = client.post(f"{RUN}/update", json=IDA, headers=given)
            assert_problem(answer, 401, "Bearer TOKEN")
        given = {"Authorization": f"Bearer {TOKEN}"}
        assert got(client.post(f"{RUN}/update", json=IDA, headers=given))["version"] == 1


def test_every_answer_has_headers_that_protect_the_page(client: httpx.Client) -> None:
    for path in ("/", "/v1/runs", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "a/b?c#d&e=f", "../../etc/passwd", "x" * 10_000, "\u202e✓\x00\n"],
)
def test_names_are_data(writing: httpx.Client, name: str) -> None:
    fact = [name, "lives in", "town 1"]
    assert got(writing.post(f"{RUN}/update", json={"add": [fact]}))["new_nodes"] == 1
    found = writing.get(f"{RUN}/node", params={"name": name})
    assert got(found)["facts"] == [fact] and found.headers["content-type"] == "application/json"
    search = got(writing.get(f"{RUN}/nodes", params={"search": name[:200]}))
    assert [each["name"] for each in search["nodes"]] == [name]
    query = {"head": name, "relation": "lives in"}
    answered = got(writing.post(f"{RUN}/predict", json={"queries": [query]}))
    assert answered["results"][0]["query"]["head"] == name
    scored = got(writing.post(f"{RUN}/score", json={"facts": [fact]}))
    assert scored["facts"][0]["head"] == name
    unknown = got(writing.get(f"{RUN}/node", params={"name": name + "!"}), 404)
    assert len(json.dumps(unknown)) < 60_000


def test_metrics_count_requests_by_path_and_not_by_name(client: httpx.Client) -> None:
    got(client.get(f"{RUN}/predict", params=QUERY))
    client.get("/some/other/path")
    text = client.get("/metrics").text
    assert 'nodepiece_requests_total{method="GET",path="/v1/runs/{run}/predict"' in text
    assert "nodepiece_batch_queries_count" in text and "nodepiece_version" in text
    assert "/some/other/path" not in text and "person" not in text


def test_methods_that_are_made_up_are_counted_together(client: httpx.Client) -> None:
    for number in range(3):
        assert client.request(f"MADEUP{number}", "/healthz").status_code == 405
    text = client.get("/metrics").text
    assert "MADEUP" not in text and 'method="other"' in text


def test_an_origin_that_is_no_address_is_refused(own_run: LinkRun) -> None:
    with client_of(own_run, settings=ServeSettings(writable=True)) as client:
        for origin in ("http://[", "null", ""):
            answer = client.post(f"{RUN}/update", json=IDA, headers={"Origin": origin})
            assert_problem(answer, 403, "may not update the graph")


def test_errors_of_a_run_in_the_current_folder_keep_their_words(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_run.folder)
    body = {"queries": [QUERY], "assume": [["a", "St. r", "b"]]}
    with client_of(load_links(Path())) as client:
        assert_problem(client.post(f"{RUN}/predict", json=body), 422, "relation 'St. r' was not")
