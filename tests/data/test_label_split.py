from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodepiece.data.label_file import read_label_file
from nodepiece.data.label_split import LabelSplitSettings, split_labels, without_relations
from nodepiece.data.labelled_graph import read_labelled_folder, write_labelled_folder
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

#  a --is--> city    b --is--> city       c --is--> town        "is" states classes
#  a --near--> b --near--> c --in--> d                          city and town have no other fact
NODES = ("a", "city", "b", "c", "town", "d")
GRAPH = KnowledgeGraph(
    np.array([[0, 0, 1], [2, 0, 1], [3, 0, 4], [0, 1, 2], [2, 1, 3], [3, 2, 5]], dtype=np.int32),
    6,
    3,
    Names.of(NODES, ("is", "near", "in")),
)
LABELS = {
    "a": ["city", "place"],
    "b": ["city", "place"],
    "c": ["place"],
    "d": ["odd"],
    "e": ["city"],
}


def split(  # type: ignore[no-untyped-def]
    settings: LabelSplitSettings, seed: int = 0, *, only: tuple[str, ...] = tuple(LABELS)
):
    labels = {node: LABELS[node] for node in only}
    return split_labels(GRAPH, labels, settings, name="tiny", rng=np.random.default_rng(seed))


def test_class_facts_go_and_with_them_nodes_that_have_no_others() -> None:
    graph, num_dropped = without_relations(GRAPH, ["is"])
    assert num_dropped == 3
    assert graph.names is not None and graph.names.nodes.to_pylist() == ["a", "b", "c", "d"]
    assert graph.names.relations.to_pylist() == ["near", "in"]
    assert graph.triples.tolist() == [[0, 0, 1], [1, 0, 2], [2, 1, 3]]


def test_everything_that_is_left_out_is_counted() -> None:
    settings = LabelSplitSettings(("is",), least_nodes=2, valid_share=0.3, test_share=0.3)
    labelled, report = split(settings)
    assert report.to_json() == {
        "num_class_facts": 3,
        "num_disconnected": 2,  # city, town
        "num_facts": 3,
        "num_nodes": 4,
        "num_outside": 1,  # e
        "num_rare_classes": 1,  # odd
        "num_rare_labels": 1,
        "num_unlabelled": 1,  # d
        "num_classes": 2,
        "num_labelled": {"train": 1, "valid": 1, "test": 1},
    }
    assert labelled.classes == ("city", "place")
    nodes = np.concatenate([labels.nodes for labels in labelled.labels.values()])
    assert sorted(labelled.names.node(node) for node in nodes) == ["a", "b", "c"]


def test_the_seed_decides_the_split() -> None:
    settings = LabelSplitSettings(least_nodes=1, valid_share=0.25, test_share=0.25)
    splits = {tuple(split(settings, seed)[0].labels["valid"].nodes) for seed in range(20)}
    assert len(splits) > 1
    again = split(settings, 3)[0].labels["test"].nodes
    assert again.tolist() == split(settings, 3)[0].labels["test"].nodes.tolist()


def test_a_written_folder_is_read_back_the_same(tmp_path: Path) -> None:
    settings = LabelSplitSettings(("is",), least_nodes=1, valid_share=0.25, test_share=0.25)
    labelled, _ = split(settings)
    write_labelled_folder(labelled, tmp_path)
    again = read_labelled_folder(tmp_path)
    assert again.classes == labelled.classes
    assert again.names.nodes.equals(labelled.names.nodes)
    assert again.graph.triples.tolist() == labelled.graph.triples.tolist()
    for part, labels in labelled.labels.items():
        assert again.labels[part].nodes.tolist() == labels.nodes.tolist()
        assert again.labels[part].classes.tolist() == labels.classes.tolist()


def test_labels_of_some_nodes_keep_their_classes() -> None:
    labelled, _ = split(LabelSplitSettings(least_nodes=1, valid_share=0.0, test_share=0.0))
    train = labelled.labels["train"]  # a: city, place; b: city, place; c: place; d: odd
    some = train.only(np.array([3, 0], dtype=np.int32))
    assert [labelled.names.node(node) for node in some.nodes] == ["d", "a"]
    words = [(position, labelled.classes[label]) for position, label in some.classes.tolist()]
    assert words == [(0, "odd"), (1, "city"), (1, "place")]


def test_label_files_of_every_format_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text('{"a b": ["x", "y", "x"], "c": ["y"]}')
    (tmp_path / "labels.tsv").write_text("a b\tx\na b\ty\nc\ty\n\na b\tx\n")
    (tmp_path / "labels.csv").write_text('"a b",x\na b,y\nc,y\n')
    for ending in ("json", "tsv", "csv"):
        labels = read_label_file(tmp_path / f"labels.{ending}")
        assert labels == {"a b": ["x", "y"], "c": ["y"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a\tx\nb\n",
            r"labels.tsv line 2: expected a node and a class .* by a tab, got \['b'\]",
        ),
        ("a\tx\ty\n", "line 1: expected a node and a class"),
        ("\n", "has no labels"),
    ],
)
def test_a_malformed_label_file_is_refused_with_the_line(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "labels.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_label_file(tmp_path / "labels.tsv")


def test_the_defaults_of_a_split_are_the_papers() -> None:
    settings = LabelSplitSettings()
    assert (settings.least_nodes, settings.valid_share, settings.test_share) == (50, 0.1, 0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"least_nodes": 0},
        {"valid_share": -0.1},
        {"test_share": -0.1},
        {"valid_share": 0.4, "test_share": 0.6},
        {"valid_share": 1.0, "test_share": 0.0},
    ],
)
def test_each_wrong_setting_of_a_split_is_refused_by_itself(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"at least 1 node|0 or more and leave something"):
        LabelSplitSettings(**wrong)


def test_the_smallest_settings_of_a_split_are_accepted() -> None:
    settings = LabelSplitSettings(("is",), least_nodes=1, valid_share=0.0, test_share=0.0)
    labelled, report = split(settings)
    assert report.num_labelled == {"train": 4, "valid": 0, "test": 0}
    assert report.num_rare_classes == report.num_rare_labels == report.num_unlabelled == 0
    assert set(labelled.classes) == {"city", "place", "odd"}


def test_a_share_is_rounded_and_its_nodes_keep_their_order() -> None:
    nodes = [f"n{number:02}" for number in range(10)]
    ring = np.array([[n, 0, (n + 1) % 10] for n in range(10)], np.int32)
    graph = KnowledgeGraph(ring, 10, 1, Names.of(nodes, ["next"]))
    labels = {node: ["round"] for node in nodes}
    settings = LabelSplitSettings(least_nodes=10, valid_share=0.26, test_share=0.34)
    labelled, report = split_labels(
        graph, labels, settings, name="ring", rng=np.random.default_rng(0)
    )
    assert report.num_labelled == {"train": 4, "valid": 3, "test": 3}
    places = [labelled.labels[part].nodes.tolist() for part in ("train", "valid", "test")]
    assert all(place == sorted(place) for place in places)
    assert sorted(np.concatenate(places).tolist()) == list(range(10))


def test_what_leaves_nothing_over_is_refused() -> None:
    with pytest.raises(InputError, match=r"no class has 50 nodes of the graph \(4 of 5"):
        split(LabelSplitSettings())
    with pytest.raises(InputError, match="no fact is left"):
        without_relations(GRAPH, ["is", "near", "in"])
    with pytest.raises(InputError, match="unknown relation 'iss'"):
        without_relations(GRAPH, ["iss"])
    with pytest.raises(InputError, match=r"train on, got 0\.4 and 0\.6"):
        LabelSplitSettings(valid_share=0.4, test_share=0.6)
    with pytest.raises(InputError, match="2 labelled nodes are too few for shares of"):
        split(LabelSplitSettings(least_nodes=2, valid_share=0.5, test_share=0.4), only=("a", "b"))


@pytest.mark.parametrize("text", ['{"": ["x"]}', '{"a": ["x", ""]}', '{"a": "x"}', '{"a": [1]}'])
def test_names_in_json_are_texts_and_not_empty(text: str, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(InputError, match=r"labels.json: the classes of .* must be a list of names"):
        read_label_file(tmp_path / "labels.json")


def test_a_label_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "labels.tsv").write_bytes("Köln\tcity\n".encode("latin-1"))
    with pytest.raises(InputError, match="write it again as UTF-8"):
        read_label_file(tmp_path / "labels.tsv")


def test_a_folder_without_labels_is_refused_with_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "edges.tsv").write_text("a\tnear\tb\n")
    with pytest.raises(InputError, match=r"train_labels\.json"):
        read_labelled_folder(tmp_path)
