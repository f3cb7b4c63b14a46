"""RDF: N-Triples, Turtle, N-Quads, TriG and RDF/XML."""

import gzip
from pathlib import Path

import pytest
from tests.data.written_facts import facts_of, written

from nodepiece.data.read import read_graph, read_graph_with_report
from nodepiece.errors import InputError

pytest.importorskip("pyoxigraph")

NTRIPLES = b"""# capitals
<http://x/Berlin> <http://x/in> <http://x/Germany> .
<http://x/Berlin> <http://x/name> "Berlin"@de .
_:somewhere <http://x/in> <http://x/Germany> .
"""

TURTLE = b"""@prefix x: <http://x/> .
x:Berlin x:in x:Germany ; x:population 3700000, "many" .
[] x:in x:Germany .
[ x:in x:France ] x:near x:Berlin .
"""


RDF_XML = b"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">
  <rdf:Description rdf:about="http://x/Berlin">
    <x:in rdf:resource="http://x/Germany"/>
    <x:name>Berlin</x:name>
  </rdf:Description>
</rdf:RDF>
"""


NQUADS = b"""<http://x/Berlin> <http://x/in> <http://x/Germany> .
<http://x/Paris> <http://x/in> <http://x/France> <http://x/atlas> .
<http://x/Paris> <http://x/in> <http://x/France> <http://x/another> .
<http://x/Paris> <http://x/name> "Paris . <a> <b>"@fr <http://x/atlas> .
"""

TRIG = b"""@prefix x: <http://x/> .
x:Berlin x:in x:Germany .
x:atlas { x:Paris x:in x:France . }
GRAPH x:another { x:Paris x:in x:France ; x:name "Paris" . }
"""


def complaint(path: Path) -> str:
    """What is said about the file, after its path."""
    with pytest.raises(InputError) as caught:
        read_graph(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).strip()


@pytest.mark.parametrize("name", ["facts.nt", "facts.txt"])
def test_ntriples_keep_blank_nodes_and_count_literals(tmp_path: Path, name: str) -> None:
    graph, report = read_graph_with_report(written(tmp_path, NTRIPLES, name))
    assert facts_of(graph) == [
        ("http://x/Berlin", "http://x/in", "http://x/Germany"),
        ("_:somewhere", "http://x/in", "http://x/Germany"),
    ]
    assert (report.format, report.num_rows, report.num_literals) == ("N-Triples", 3, 1)


@pytest.mark.parametrize("name", ["facts.ttl", "facts"])
def test_nameless_nodes_of_turtle_are_numbered_the_same_each_time(
    tmp_path: Path, name: str
) -> None:
    path = written(tmp_path, TURTLE, name)
    graph, report = read_graph_with_report(path)
    heads = [head for head, _, _ in facts_of(graph)]
    blank = [f"_:{number} of {name}" for number in (1, 2, 2)]
    assert heads == ["http://x/Berlin", *blank]
    assert report.num_literals == 2
    assert graph.fingerprint == read_graph(path).fingerprint


@pytest.mark.parametrize("name", ["facts.rdf", "facts.owl", "facts.xml", "facts.txt", "facts"])
def test_rdf_xml_is_read_and_its_literals_counted(tmp_path: Path, name: str) -> None:
    graph, report = read_graph_with_report(written(tmp_path, RDF_XML, name))
    assert facts_of(graph) == [("http://x/Berlin", "http://x/in", "http://x/Germany")]
    assert (report.format, report.num_literals) == ("RDF/XML", 1)


@pytest.mark.parametrize("content", [b"<?xml version='1.0'?><html/>", RDF_XML[:190], b"a\tr\tb\n"])
def test_an_error_in_rdf_xml_is_reported(tmp_path: Path, content: bytes) -> None:
    assert complaint(written(tmp_path, content, "facts.rdf"))


def test_rdf_xml_that_was_cut_is_not_taken_for_whole(tmp_path: Path) -> None:
    path = written(tmp_path, RDF_XML[:200], "facts.rdf")
    assert complaint(path) == "ends before </rdf:RDF>; copy it again"


def test_gzipped_ntriples_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(NTRIPLES), "facts.nt.gz")
    assert read_graph(path).num_triples == 2


def test_a_mistake_in_rdf_is_named_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, NTRIPLES + b"<http://x/Berlin> <oops> .\n", "facts.nt")
    assert complaint(path).startswith("line 5: No scheme found in an absolute IRI")


def test_rdf_with_nothing_but_literals_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, b'<http://x/a> <http://x/b> "c" .\n', "facts.nt")
    assert "all 1 objects are literals" in complaint(path)


@pytest.mark.parametrize("name", ["facts.nt.gz", "facts.nq.gz"])
def test_a_gzip_file_of_rdf_that_is_cut_short_is_an_error(tmp_path: Path, name: str) -> None:
    assert complaint(written(tmp_path, gzip.compress(NTRIPLES * 1000)[:-20], name))


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("facts.nq", NQUADS, "N-Quads"),
        ("facts.txt", NQUADS, "N-Quads"),
        ("facts.trig", TRIG, "TriG"),
        ("facts", TRIG, "TriG"),
    ],
)
def test_the_graphs_of_a_file_are_read_as_one(
    tmp_path: Path, name: str, content: bytes, format: str
) -> None:
    graph, report = read_graph_with_report(written(tmp_path, content, name))
    assert facts_of(graph) == [
        ("http://x/Berlin", "http://x/in", "http://x/Germany"),
        ("http://x/Paris", "http://x/in", "http://x/France"),
    ]
    assert report.format == f"{format}, all graphs as one"
    assert (report.num_literals, report.num_duplicates) == (1, 1)


def test_ntriples_with_literals_that_look_like_quads_are_ntriples(tmp_path: Path) -> None:
    line = b'<http://x/a> <http://x/b> "<c> <d> ." .\n<http://x/a> <http://x/b> <http://x/c> .\n'
    assert read_graph_with_report(written(tmp_path, line, "facts"))[1].format == "N-Triples"
