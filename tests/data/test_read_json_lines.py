"""JSON lines: objects and arrays."""

import gzip
import json
from pathlib import Path

import pytest
from tests.data.written_facts import facts_of, written

from nodepiece.data.read import read_graph, read_graph_with_report
from nodepiece.errors import InputError

CAPITALS = [("Berlin", "capital_of", "Germany"), ("Paris", "capital_of", "France")]
OBJECTS = "".join(
    json.dumps({"year": 1, "dst": tail, "label": relation, "src": head}) + "\n"
    for head, relation, tail in CAPITALS
)


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        read_graph(path, **options)  # type: ignore[arg-type]
    return str(caught.value).removeprefix(str(path)).strip()


@pytest.mark.parametrize(
    "name", ["facts.jsonl", "facts.ndjson", "facts.json", "facts.txt", "facts"]
)
def test_objects_are_read_by_their_keys(tmp_path: Path, name: str) -> None:
    graph, report = read_graph_with_report(written(tmp_path, OBJECTS, name))
    assert facts_of(graph) == CAPITALS
    assert report.columns == ("src", "label", "dst")


def test_arrays_are_head_relation_and_tail(tmp_path: Path) -> None:
    text = "".join(json.dumps(fact) + "\n\n" for fact in CAPITALS)
    assert facts_of(read_graph(written(tmp_path, text, "facts.jsonl"))) == CAPITALS


def test_gzipped_json_lines_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(OBJECTS.encode()), "facts.jsonl.gz")
    assert facts_of(read_graph(path)) == CAPITALS


def test_keys_are_chosen_as_asked(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": "Germany", "b": "Berlin", "c": "capital_of"}\n', "f.jsonl")
    assert facts_of(read_graph(path, columns="b,c,a")) == CAPITALS[:1]


def test_places_in_arrays_are_chosen_as_asked(tmp_path: Path) -> None:
    path = written(tmp_path, '[7, "Berlin", "Germany", "capital_of"]\n', "f.jsonl")
    assert facts_of(read_graph(path, columns=(1, 3, 2))) == CAPITALS[:1]


def test_an_array_of_known_names_is_a_header(tmp_path: Path) -> None:
    text = '["src", "dst", "type"]\n["Berlin", "Germany", "capital_of"]\n'
    assert facts_of(read_graph(written(tmp_path, text, "f.jsonl"))) == CAPITALS[:1]


def test_whole_numbers_become_names(tmp_path: Path) -> None:
    path = written(tmp_path, "[1, 0, -2]\n", "f.jsonl")
    assert facts_of(read_graph(path)) == [("1", "0", "-2")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('["a", "r", "b"]\nnothing\n', "line 2 is not JSON"),
        ('["a", "r", "b"]\n\n["a", "r"]\n', "line 3: expected an array of 3, got one of 2"),
        ('["a", "r", "b", "c"]\n', "line 1: expected head, relation and tail, got an array of 4"),
        ('["a", "r", "b"]\n{"s": 1}\n', "line 2: expected an array as in the first line"),
        ('{"s": "a", "p": "r", "o": "b"}\n{"s": "a", "p": "r"}\n', "line 2: there is no tail"),
        ('{"s": "a", "p": "r", "o": null}\n', "line 1: the tail ('o') is 'null', but names"),
        ('{"s": "a", "p": "r", "o": 1.5}\n', "line 1: the tail ('o') is '1.5', but names"),
        ('{"s": "a", "p": "", "o": "b"}\n', "line 1: the relation ('p') is empty"),
        ('{"x": "a", "y": "r", "z": "b"}\n', ": cannot tell which columns are head"),
        ('{"s": "a", "p": "r", "o": "\\ud800"}\n', ": a name holds half of a character"),
        ("[" * 100_000 + "\n", "line 1 is not JSON"),
        ("7\n", "line 1: expected an object or an array"),
        ("\n\n", "has only blank lines"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(written(tmp_path, text, "f.jsonl")).startswith(said)


def test_a_json_document_is_refused_with_what_to_write(tmp_path: Path) -> None:
    path = written(tmp_path, '[\n ["a", "r", "b"],\n ["b", "r", "c"]\n]\n', "facts.json")
    assert refusal(path).startswith("is not JSON lines: write a fact on each line")


def test_text_that_only_begins_like_json_is_text(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": 1}\tis\t[b]\n', "facts.txt")
    assert facts_of(read_graph(path)) == [('{"a": 1}', "is", "[b]")]


@pytest.mark.parametrize("name", ["facts.json", "facts.jsonl"])
@pytest.mark.parametrize(
    "facts", [[{"head": "a", "relation": "r", "tail": "b"}] * 3, [["a", "r", "b"]] * 2]
)
def test_a_whole_file_as_one_array_is_refused_with_what_to_do(
    tmp_path: Path, name: str, facts: list[object]
) -> None:
    said = refusal(written(tmp_path, json.dumps(facts), name))
    assert said.startswith(f"line 1 is one array of {len(facts)} ")
    assert said.endswith("jq -c '.[]'")
