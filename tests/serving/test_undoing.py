"""What an update really changed, and removing only that."""

import httpx
import pytest

IDA = ["Ida", "lives in", "town 1"]
JO = ["Ida", "married to", "Jo"]


def update(client: httpx.Client, **body: object) -> dict[str, object]:
    answer = client.post("/v1/runs/couples/update", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


def facts_of(client: httpx.Client, name: str) -> list[list[str]] | None:
    """None: there is no such node."""
    answer = client.get("/v1/runs/couples/node", params={"name": name})
    return answer.json()["facts"] if answer.status_code == 200 else None


def undo(client: httpx.Client, done: dict[str, object]) -> dict[str, object]:
    return update(client, remove=done["added_facts"], remove_if_empty=done["new_node_names"])


def test_an_update_states_the_facts_and_nodes_that_were_not_there(writing: httpx.Client) -> None:
    first = update(writing, add=[IDA, IDA])
    assert first["added_facts"] == [IDA] and first["new_node_names"] == ["Ida"]
    second = update(writing, add=[IDA, JO])
    assert second["added_facts"] == [JO] and second["new_node_names"] == ["Jo"]
    third = update(writing, add=[IDA])
    assert third["added_facts"] == [] == third["new_node_names"]


def test_undoing_an_update_leaves_what_others_added(writing: httpx.Client) -> None:
    mine = update(writing, add=[IDA])
    update(writing, add=[JO])  # by somebody else, about the node that I added
    undo(writing, mine)
    assert facts_of(writing, "Ida") == [JO]


def test_undoing_an_update_removes_nodes_that_are_left_without_facts(
    writing: httpx.Client,
) -> None:
    mine = update(writing, add=[IDA, JO])
    undo(writing, mine)
    assert facts_of(writing, "Ida") is None and facts_of(writing, "Jo") is None
    undo(writing, mine)  # a second time does no harm


def test_undoing_again_removes_nodes_that_came_back(writing: httpx.Client) -> None:
    undo(writing, update(writing, add=[IDA, JO]))
    again = update(writing, add=[IDA, JO])
    assert again["new_nodes"] == 2 and again["new_node_names"] == ["Ida", "Jo"]
    undo(writing, again)
    assert facts_of(writing, "Ida") is None and facts_of(writing, "Jo") is None


def test_updates_that_wait_together_keep_each_other_s_facts(writing: httpx.Client) -> None:
    mine = update(writing, add=[IDA])
    done = update(writing, add=[JO], remove=mine["added_facts"], remove_if_empty=["Ida", "Kim"])
    assert done["removed"] == 1 and facts_of(writing, "Ida") == [JO]


@pytest.mark.parametrize("relation", ["lives in", None])
def test_a_removed_node_is_not_found_by_queries(
    writing: httpx.Client, relation: str | None
) -> None:
    update(writing, remove_nodes=["person 0"])
    tail = None if relation else "town 1"
    query = {"head": "person 0", "relation": relation, "tail": tail}
    for more in ({}, {"assume": [IDA]}):
        body = {"queries": [query], **more}
        answer = writing.post("/v1/runs/couples/predict", json=body)
        assert answer.status_code == 404
        assert "'person 0' was removed from the graph" in answer.json()["detail"]


def test_a_node_without_a_name_is_refused(writing: httpx.Client) -> None:
    body = {"add": [["", "lives in", "town 1"]]}
    answer = writing.post("/v1/runs/couples/update", json=body)
    assert answer.status_code == 422 and "needs a name" in answer.json()["detail"]
