"""`nodepiece.connect` returns a run on a server, whose answers are those of the run on disk."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from tests.serving.live_server import served

import nodepiece
from nodepiece.errors import InputError
from nodepiece.graph.names import UnknownName
from nodepiece.inference.links import LinkRun
from nodepiece.inference.update_groups import Committed
from nodepiece.serving import client as clients
from nodepiece.serving.settings import ServeSettings

QUERIES = [
    ("person 1", "lives in", "?"),
    (None, "lives in", "town 1"),
    ("person 1", "", "person 0"),
]
IDA = ("Ida", "lives in", "town 1")
FLOATS = ("score", "similarity")
TOKEN = "a-token-of-some-letters"


@pytest.fixture(scope="module")
def remote(run: LinkRun) -> Iterator[nodepiece.RemoteRun]:
    with served(run) as address, nodepiece.connect(address) as remote:
        yield remote


def test_predictions_are_those_of_the_run(remote: nodepiece.RemoteRun, run: LinkRun) -> None:
    options = {"top": 4, "include_known": True, "seen_candidates": True}
    found = remote.predict(relation="lives in", tail="town 1", **options)  # type: ignore[arg-type]
    expected = run.predict(relation="lives in", tail="town 1", **options)  # type: ignore[arg-type]
    assert [each.name for each in found] == [each.name for each in expected]
    assert [each.is_known for each in found] == [each.is_known for each in expected]
    assert [e.score for e in found] == pytest.approx([e.score for e in expected], abs=1e-5)


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Scores of batches of other sizes differ in their last digit."""
    assert found.schema == expected.schema
    for name in expected.column_names:
        one, other = found[name].to_pylist(), expected[name].to_pylist()
        assert one == (pytest.approx(other, abs=1e-5) if name in FLOATS else other), name


def test_tables_are_those_of_the_run(
    remote: nodepiece.RemoteRun, run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MAX_ROWS", 2)  # several requests
    assert_same(remote.predict_many(QUERIES, top=3), run.predict_many(QUERIES, top=3))
    facts = [("person 1", "lives in", f"town {n}") for n in range(3)]
    assert_same(remote.score(facts), run.score(facts))
    nodes = ["person 1", "town 0", "town 3"]
    assert_same(remote.similar(nodes, top=3), run.similar(nodes, top=3))
    np.testing.assert_array_equal(remote.embed(nodes), run.embed(nodes))
    assert remote.vectors(nodes).names == nodes


def test_nothing_comes_to_nothing(remote: nodepiece.RemoteRun, run: LinkRun) -> None:
    assert remote.predict_many([]).equals(run.predict_many([]))
    assert remote.score([]).equals(run.score([]))


def test_an_explanation_is_that_of_the_run(remote: nodepiece.RemoteRun, run: LinkRun) -> None:
    found = remote.explain(head="person 1", relation="lives in", tail="town 1")
    expected = run.explain(head="person 1", relation="lives in", tail="town 1")
    assert found.to_json() == expected.to_json()


def test_facts_may_be_assumed(remote: nodepiece.RemoteRun, run: LinkRun) -> None:
    assumed = remote.with_facts([IDA])
    expected = run.with_facts([IDA]).predict(head="Ida", relation="married to", top=3)
    found = assumed.predict(head="Ida", relation="married to", top=3)
    assert [each.name for each in found] == [each.name for each in expected]
    assert assumed.node("Ida")["is_new"]
    with pytest.raises(InputError, match="assumed facts"):
        assumed.update(add=[IDA])


def test_an_error_is_the_sentence_of_the_server(remote: nodepiece.RemoteRun) -> None:
    with pytest.raises(UnknownName, match="did you mean 'person 1'") as caught:
        remote.predict(head="persn 1", relation="lives in")
    assert caught.value.suggestions[0] == "person 1"
    with pytest.raises(InputError, match="exactly two of head, relation and tail"):
        remote.predict(head="person 1")
    with pytest.raises(InputError, match="read-only"):
        remote.update(add=[IDA])
    with pytest.raises(InputError, match="it has no node classes"):
        remote.classify("person 1")
    with pytest.raises(InputError, match="row 0: expected head, relation and tail"):
        remote.score([("a", "b")])


def test_the_run_is_described_and_searched(remote: nodepiece.RemoteRun) -> None:
    assert remote.describe()["num_nodes"] == 44
    assert remote.search("TOWN", top=2) == ["town 0", "town 1"]
    assert "couples" in repr(remote)


def test_a_client_updates_with_its_token_and_reads_its_own_update(own_run: LinkRun) -> None:
    settings = ServeSettings(writable=True, token=TOKEN)
    with served(own_run, settings=settings) as address:
        with nodepiece.connect(address, token=TOKEN) as remote:
            assert remote.update(add=[IDA]) == Committed(1, 1, 0, 1)
            assert remote.node("Ida")["version"] == 1
            assert remote.update(remove_nodes=["Ida"]) == Committed(2, 0, 1, 0)
        with nodepiece.connect(address) as other, pytest.raises(InputError, match="Bearer TOKEN"):
            other.update(add=[IDA])


def test_unknown_names_are_left_out_where_this_is_asked_for(
    remote: nodepiece.RemoteRun, run: LinkRun
) -> None:
    queries = [("nobody", "lives in", None), ("person 0", "lives in", None)]
    found = remote.predict_many(queries, skip_unknown=True)
    assert found.equals(run.predict_many(queries, skip_unknown=True))
    assert set(found["query"].to_pylist()) == {1}
    facts = [("person 0", "lives in", "nowhere"), ("person 0", "lives in", "town 1")]
    assert remote.score(facts, skip_unknown=True)["fact"].to_pylist() == [1]
    with pytest.raises(InputError, match="nobody"):
        remote.predict_many(queries)


def test_known_answers_are_those_of_the_run(remote: nodepiece.RemoteRun, run: LinkRun) -> None:
    query = {"head": "person 0", "relation": "lives in"}
    assert remote.known(**query) == run.known(**query) != []


def test_a_run_is_chosen_by_name(run: LinkRun, own_run: LinkRun) -> None:
    with served(run, own_run) as address:
        with pytest.raises(InputError, match="several runs; choose one of couples, couples-2"):
            nodepiece.connect(address)
        with pytest.raises(InputError, match="no run 'other'"):
            nodepiece.connect(address, "other")
        with nodepiece.connect(address, "couples-2") as remote:
            assert remote.describe()["name"] == "couples-2"


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "127.0.0.1", "http://[", "ftp://x"])
def test_an_address_without_a_server_is_an_input_error(address: str) -> None:
    with pytest.raises(InputError):
        nodepiece.connect(address, seconds=2)


def test_every_request_after_an_update_asks_for_its_version(own_run: LinkRun) -> None:
    with (
        served(own_run, settings=ServeSettings(writable=True)) as address,
        nodepiece.connect(address) as remote,
    ):
        remote.update(add=[IDA])
        asked: list[str | None] = []
        hooks = remote._server.client.event_hooks
        hooks["request"] = [lambda sent: asked.append(sent.headers.get("Nodepiece-Min-Version"))]
        remote._server.client.event_hooks = hooks
        assert remote.search("Ida") == ["Ida"] and remote.describe()["version"] == 1
    assert asked == ["1", "1"]
