import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from nodepiece.data.benchmarks import BENCHMARKS
from nodepiece.data.load import (
    load_benchmark,
    load_inductive,
    load_labelled_graph,
    load_out_of_sample,
    load_training_graph,
)
from nodepiece.errors import InputError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def named_facts(graph_facts: np.ndarray, nodes: list[str], relations: list[str]) -> list[str]:
    return [f"{nodes[h]} {relations[r]} {nodes[t]}" for h, r, t in graph_facts.tolist()]


@pytest.mark.parametrize("ending", ["tsv.gz", "txt"])
def test_a_transductive_benchmark_is_read_under_its_name(tmp_path: Path, ending: str) -> None:
    write(tmp_path / f"umls/train.{ending}", "a\tlikes\tb\nb\tlikes\tc\n")
    write(tmp_path / f"umls/valid.{ending}", "a\tlikes\tc\n")
    write(tmp_path / f"umls/test.{ending}", "c\tlikes\ta\nc\tlikes\tnew\n")
    dataset = load_benchmark("umls", tmp_path)
    assert dataset.name == "umls"
    assert dataset.train.num_triples == 2
    assert len(dataset.test) == 1
    assert dataset.num_unseen == {"valid": 0, "test": 1}


def test_a_first_line_of_telling_words_is_a_fact_all_the_same(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        write(tmp_path / f"umls/{part}.tsv", "head\trelation\ttail\ntail\trelation\thead\n")
    assert load_benchmark("umls", tmp_path).train.num_triples == 2


def test_a_benchmark_of_another_task_is_refused_with_those_that_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"wd50k-nc is for node classification.*fb15k-237"):
        load_benchmark("wd50k-nc", tmp_path)


def write_inductive(folder: Path, ending: str, separator: str = "\t") -> None:
    files = {
        "training/train": ["a likes b", "b knows c"],
        "training/valid": ["a knows b"],
        "training/test": ["a likes c"],
        # knows comes first here, and hates is not in the training graph
        "inference/train": ["x knows y", "y likes z", "z hates x"],
        "inference/valid": ["x likes z"],
        "inference/test": ["z knows x", "z fears x", "z likes nobody"],
    }
    for name, facts in files.items():
        lines = [fact.replace(" ", separator) for fact in facts]
        write(folder / f"{name}.{ending}", "\n".join(lines) + "\n")


@pytest.mark.parametrize("separator", ["\t", " "], ids=["tabs", "blanks"])
def test_the_inference_graph_uses_the_relation_ids_of_training(
    tmp_path: Path, separator: str
) -> None:
    write_inductive(tmp_path / "inductive/wn18rr-v1", "tsv", separator)

    dataset = load_inductive("inductive/wn18rr-v1", tmp_path)

    relations = dataset.training.names.relations.to_pylist()
    nodes = dataset.inference.names.nodes.to_pylist()
    assert relations == ["likes", "knows"]
    assert nodes == ["x", "y", "z"]
    inference = dataset.inference
    assert named_facts(inference.train.triples, nodes, relations) == ["x knows y", "y likes z"]
    assert named_facts(inference.valid, nodes, relations) == ["x likes z"]
    assert named_facts(inference.test, nodes, relations) == ["z knows x"]


def test_inference_facts_with_unknown_relations_are_counted(tmp_path: Path) -> None:
    write_inductive(tmp_path / "inductive/wn18rr-v1", "tsv.gz")
    dataset = load_inductive("inductive/wn18rr-v1", tmp_path)
    assert dataset.num_unknown_relations == 2  # hates, fears
    assert dataset.num_dropped == 1  # z hates x
    assert dataset.inference.num_unseen == {"valid": 0, "test": 2}


def write_labelled(folder: Path) -> None:
    write(folder / "edges.csv", "a,likes,b\nb,likes,c\n")
    write(folder / "train_labels.json", json.dumps({"a": ["person", "artist"], "gone": ["artist"]}))
    write(folder / "valid_labels.json", json.dumps({"b": ["city"]}))
    write(folder / "test_labels.json", json.dumps({"c": []}))


def test_labels_become_node_and_class_ids(tmp_path: Path) -> None:
    write_labelled(tmp_path / "wd50k-nc")
    labelled = load_labelled_graph("wd50k-nc", tmp_path)
    assert labelled.graph.num_triples == 2
    assert labelled.classes == ("artist", "city", "person")
    train = labelled.labels["train"]
    assert [labelled.graph.node_name(node) for node in train.nodes] == ["a"]
    assert train.classes.tolist() == [[0, 2], [0, 0]]
    assert train.num_unseen == 1  # "gone" is not in the graph
    assert labelled.labels["test"].classes.shape == (0, 2)


def test_labels_that_are_no_list_are_refused_with_the_node(tmp_path: Path) -> None:
    write_labelled(tmp_path / "wd50k-nc")
    write(tmp_path / "wd50k-nc/valid_labels.json", json.dumps({"b": "city"}))
    with pytest.raises(InputError, match=r"valid_labels.json: the classes of 'b'"):
        load_labelled_graph("wd50k-nc", tmp_path)


def write_out_of_sample(folder: Path, test: object) -> None:
    write(folder / "train.txt", "a\tlikes\tb\n")
    write(folder / "valid.json", json.dumps({"new": [["new", "likes", "a"]]}))
    write(folder / "test.json", json.dumps(test))


def test_to_learn_from_there_is_the_training_part_of_any_kind_of_benchmark(tmp_path: Path) -> None:
    write_inductive(tmp_path / "inductive/wn18rr-v1", "tsv.gz")
    write_labelled(tmp_path / "wd50k-nc")
    write_out_of_sample(tmp_path / "oyago3-10", {})

    found = {
        name: load_training_graph(name, tmp_path)[0].num_triples
        for name in ("inductive/wn18rr-v1", "wd50k-nc", "oyago3-10")
    }

    assert found == {"inductive/wn18rr-v1": 2, "wd50k-nc": 2, "oyago3-10": 1}


def test_unseen_nodes_keep_their_facts_by_name(tmp_path: Path) -> None:
    write_out_of_sample(tmp_path / "oyago3-10", {"n": [["a", "likes", "n"], ["n", "likes", "b"]]})
    dataset = load_out_of_sample("oyago3-10", tmp_path)
    assert dataset.train.num_nodes == 2
    assert dataset.unseen["valid"] == {"new": (("new", "likes", "a"),)}
    assert dataset.unseen["test"] == {"n": (("a", "likes", "n"), ("n", "likes", "b"))}


@pytest.mark.parametrize("test", [{"n": [["a", "likes"]]}, {"n": [["a", "likes", "b"]]}, {"n": 3}])
def test_a_malformed_fact_of_an_unseen_node_is_refused(tmp_path: Path, test: object) -> None:
    write_out_of_sample(tmp_path / "oyago3-10", test)
    with pytest.raises(InputError, match=r"test.json: .*'n'"):
        load_out_of_sample("oyago3-10", tmp_path)


def test_damaged_json_is_refused_with_the_file(tmp_path: Path) -> None:
    write_out_of_sample(tmp_path / "oyago3-10", {})
    write(tmp_path / "oyago3-10/valid.json", "{")
    with pytest.raises(InputError, match=r"valid.json cannot be read as JSON"):
        load_out_of_sample("oyago3-10", tmp_path)


@pytest.mark.data
@pytest.mark.parametrize("name", ["umls", "kinship", "nations", "codex-s", "wn18rr"])
def test_real_transductive_counts(benchmark_data: Path, name: str) -> None:
    dataset, known = load_benchmark(name, benchmark_data), BENCHMARKS[name]
    assert dataset.train.num_nodes == known.num_nodes
    assert dataset.train.num_relations == known.num_relations
    assert dataset.train.num_triples == known.sizes["train"]
    assert dataset.num_unseen == known.num_unseen
    for part in ("valid", "test"):
        assert len(dataset.part(part)) == known.sizes[part] - known.num_unseen[part]


@pytest.mark.data
@pytest.mark.parametrize("name", ["inductive/fb15k-237-v1", "inductive/nell-995-v1"])
def test_real_inductive_counts(benchmark_data: Path, name: str) -> None:
    dataset, known = load_inductive(name, benchmark_data), BENCHMARKS[name]
    assert dataset.training.train.num_nodes == known.num_nodes
    assert dataset.training.train.num_relations == known.num_relations
    assert dataset.inference.train.num_nodes == known.num_new_nodes["inference"]
    assert dataset.inference.train.num_triples == known.sizes["inference/train"]
    assert len(dataset.inference.test) == known.sizes["inference/test"]
    assert dataset.num_unknown_relations == dataset.num_dropped == 0


@pytest.mark.data
def test_real_labelled_counts(benchmark_data: Path) -> None:
    labelled, known = load_labelled_graph("wd50k-nc", benchmark_data), BENCHMARKS["wd50k-nc"]
    assert labelled.graph.num_nodes == known.num_nodes
    assert labelled.graph.num_relations == known.num_relations
    assert labelled.graph.num_triples == known.sizes["edges"]
    assert len(labelled.classes) == 465
    for part, labels in labelled.labels.items():
        assert len(labels.nodes) == known.sizes[f"{part}_labels"]
        assert labels.num_unseen == 0


@pytest.mark.data
def test_real_out_of_sample_counts(benchmark_data: Path) -> None:
    dataset, known = load_out_of_sample("own18rr", benchmark_data), BENCHMARKS["own18rr"]
    assert dataset.train.num_nodes == known.num_nodes
    assert dataset.train.num_triples == known.sizes["train"]
    for part, unseen in dataset.unseen.items():
        assert len(unseen) == known.num_new_nodes[part]
        assert sum(len(facts) for facts in unseen.values()) == known.sizes[part]
