"""Maps of runs: which nodes, in which groups, and which anchors are marked."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.golden.write import STORED_RUNS
from tests.inference.test_with_facts import NEW, trained
from tests.tasks.couples import experiment

from nodepiece.errors import InputError
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load
from nodepiece.report import layout
from nodepiece.report.groups import largest_groups
from nodepiece.report.map import MapSettings, map_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LinkRun:
    return trained(tmp_path_factory.mktemp("runs") / "run", experiment(epochs=1))


@pytest.fixture(autouse=True)
def few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "EARLY", 10)
    monkeypatch.setattr(layout, "LATE", 10)


def test_a_map_has_every_node_once_inside_the_unit_square(run: LinkRun) -> None:
    found = map_run(run)
    assert list(found.names) == run.node_names()
    assert np.abs(found.positions).max() == pytest.approx(1)
    assert found.method == "t-SNE" and found.num_nodes_in_run == 44


def test_nodes_are_grouped_by_the_relation_that_most_of_their_facts_have(run: LinkRun) -> None:
    # A town is the tail of many facts with "lives in". Everybody else is a head and a tail of
    # "married to" at most once each, and lives in one town: the first of these counts.
    found = map_run(run).to_json()
    group = dict(zip(found["names"], found["groups"], strict=True))
    assert group["town 0"] == "inverse of lives in"
    assert group["person 0"] == "married to"
    assert found["group_names"][0] == "married to"


def test_nodes_are_grouped_by_their_tail_with_a_relation(run: LinkRun) -> None:
    found = map_run(run, MapSettings(tails_of="lives in")).to_json()
    group = dict(zip(found["names"], found["groups"], strict=True))
    assert found["group_names"] == ["town 0", "town 1", "town 2", "town 3"]  # largest first
    assert (group["person 2"], group["person 3"], group["person 0"]) == ("town 0",) * 2 + (
        "town 1",
    )
    assert group["town 2"] == "town 2"


def test_nodes_are_grouped_by_a_common_anchor_near_them(run: LinkRun) -> None:
    found = map_run(run, MapSettings(group_by="anchor")).to_json()
    anchors = {run.dataset.names.node(a) for a in run.opened.table.vocabulary.anchors}
    assert set(found["group_names"]) <= anchors | {"other"}
    group = dict(zip(found["names"], found["groups"], strict=True))
    for anchor in set(found["group_names"]) - {"other"}:
        assert group[anchor] == anchor  # an anchor is its own nearest


def test_the_commonest_anchors_are_marked(run: LinkRun) -> None:
    table = run.opened.table
    uses = np.bincount(table.anchors[table.anchors < table.vocabulary.num_anchors].ravel())
    most = np.argsort(-uses, kind="stable")[:3]

    found = map_run(run, MapSettings(num_anchors=3))

    assert np.flatnonzero(found.is_anchor).tolist() == sorted(table.vocabulary.anchors[most])


def test_of_too_many_nodes_a_sample_is_drawn_by_the_seed(run: LinkRun) -> None:
    settings = MapSettings(max_nodes=10)
    found = map_run(run, settings)
    assert len(set(found.names)) == 10 and found.num_nodes_in_run == 44
    assert map_run(run, settings).names == found.names
    assert map_run(run, replace(settings, seed=1)).names != found.names


def test_a_map_has_nodes_of_assumed_facts(run: LinkRun) -> None:
    for settings in (MapSettings(), MapSettings(group_by="anchor")):
        assert "person 40" in map_run(run.with_facts(NEW), settings).names


@pytest.mark.parametrize("name", ["classes", "inductive", "out-of-sample", "updated", "walks"])
def test_runs_of_every_task_have_a_map(name: str) -> None:
    opened = load(STORED_RUNS / name)
    content = json.loads(json.dumps(map_run(opened).to_json()))
    lengths = {len(content[key]) for key in ("names", "x", "y", "groups")}
    assert lengths == {len(opened.node_table().nodes)}


def test_largest_groups_are_kept_and_the_rest_is_one() -> None:
    labels = np.array([0, 1, 1, *range(2, 12), -1])
    found = largest_groups(labels, [f"group {n}" for n in range(12)])
    assert found.names == ["group 1", "group 0", *(f"group {n}" for n in range(2, 8)), "other"]
    assert found.group.tolist() == [1, 0, 0, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "pca"}, "choose t-sne or umap"),
        ({"group_by": "colour"}, "choose relation or anchor"),
        ({"max_nodes": 0}, "at least 1 node"),
    ],
)
def test_settings_that_make_no_map_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MapSettings(**settings)  # type: ignore[arg-type]


def test_an_unknown_relation_is_refused(run: LinkRun) -> None:
    with pytest.raises(InputError, match="unknown relation 'lives on'"):
        map_run(run, MapSettings(tails_of="lives on"))


def test_anchors_of_the_training_graph_do_not_group_another_one() -> None:
    with pytest.raises(InputError, match="its anchors are not in this graph"):
        map_run(load(STORED_RUNS / "inductive"), MapSettings(group_by="anchor"))
