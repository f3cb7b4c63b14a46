"""Graphs from facts in memory and from other libraries, and back.

The graph, unless a test says otherwise: ada knows bob, bob knows cy, cy likes ada.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import nodepiece
from nodepiece.data.any_graph import graph, make_dataset
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph

FACTS = [("ada", "knows", "bob"), ("bob", "knows", "cy"), ("cy", "likes", "ada")]
COLUMNS = {
    "tail": [tail for _, _, tail in FACTS],  # not in the usual order: columns are found by name
    "head": [head for head, _, _ in FACTS],
    "relation": [relation for _, relation, _ in FACTS],
}


def facts_of(found: KnowledgeGraph) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in found.to_arrow().to_pylist()]


def test_triples_make_a_graph_with_ids_by_first_appearance() -> None:
    found = nodepiece.graph([*FACTS, FACTS[0]])

    assert found.triples.tolist() == [[0, 0, 1], [1, 0, 2], [2, 1, 0]]
    assert facts_of(found) == FACTS


def test_a_generator_and_whole_numbers_do_too() -> None:
    assert facts_of(graph((1, "r", np.int64(node)) for node in range(2, 4))) == [
        ("1", "r", "2"),
        ("1", "r", "3"),
    ]


def test_dicts_are_rows_of_a_table() -> None:
    rows = [{"object": "bob", "subject": "ada", "predicate": "knows"}]

    assert facts_of(graph(rows)) == FACTS[:1]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([("ada", "knows")], r"fact 1 is \('ada', 'knows'\), not a triple"),
        (["ada knows bob"], "fact 1 is 'ada knows bob', not a triple"),
        ([FACTS[0], ("ada", "knows", None)], "the tail of fact 2 is None, but names are text"),
        ([("ada", 1.5, "bob")], "the relation of fact 1 is 1.5, but names"),
        ([("", "knows", "bob")], "the head of fact 1 is ''"),
        ([("ada", "knows", "bob", 3)], r"has 4 parts; say which .* columns=\(0, 1, 2\)"),
        ([("a", "r", "\ud800")], "not UTF-8"),
        ([], "states no fact between nodes"),
        (3, "cannot make a graph of a builtins.int; give a path, triples"),
        ({"ada": "bob"}, "cannot make a graph of a builtins.dict"),
    ],
)
def test_what_is_no_graph_is_refused(facts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        graph(facts)


def test_other_positions_of_a_tuple_are_chosen_by_columns() -> None:
    assert facts_of(graph([("id", "ada", "bob", "knows")], columns=(1, 3, 2))) == FACTS[:1]
    with pytest.raises(InputError, match="give three numbers"):
        graph(FACTS, columns="head,relation,tail")


@pytest.mark.parametrize("array", [np.array([[0, 0, 1], [1, 0, 2]]), torch.tensor([[0, 0, 1]])])
def test_an_array_of_ids_has_numbers_for_names(array: Any) -> None:
    assert facts_of(graph(array))[0] == ("0", "0", "1")


def test_an_array_of_text_is_read_by_name_and_another_shape_is_refused() -> None:
    assert facts_of(graph(np.array(FACTS))) == FACTS
    with pytest.raises(InputError, match=r"has the shape \(num_facts, 3\), got \(3,\)"):
        graph(np.arange(3))


@pytest.mark.parametrize("as_batch", [False, True])
def test_an_arrow_table_is_read_by_its_columns(as_batch: bool) -> None:
    table = pa.table(COLUMNS)

    assert facts_of(graph(table.to_batches()[0] if as_batch else table)) == FACTS


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_is_read_and_written(library: str) -> None:
    frames = pytest.importorskip(library)
    frame = frames.DataFrame(COLUMNS)

    found = graph(frame)
    again = getattr(found, f"to_{library}")()

    assert facts_of(found) == FACTS and facts_of(graph(again)) == FACTS
    assert list(again.columns) == ["head", "relation", "tail"]


def test_columns_of_other_names_are_given() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["ada"], "b": ["bob"], "c": ["knows"], "when": [1.5]})

    assert facts_of(graph(frame, columns=("a", "c", "b"))) == FACTS[:1]
    with pytest.raises(InputError, match="the DataFrame: cannot tell which columns"):
        graph(frame)


def test_a_data_frame_with_an_index_a_missing_value_or_mixed_types_is_understood() -> None:
    pandas = pytest.importorskip("pandas")
    indexed = pandas.DataFrame(COLUMNS, index=["x", "y", "z"])
    missing = pandas.DataFrame({"head": ["ada", None], "relation": ["r", "r"], "tail": ["b", "c"]})
    mixed = pandas.DataFrame({"head": ["ada", 3], "relation": ["r", "r"], "tail": ["b", "c"]})

    assert facts_of(graph(indexed)) == FACTS
    with pytest.raises(InputError, match=r"row 2: the head \(column 'head'\) is empty"):
        graph(missing)
    with pytest.raises(InputError, match="convert head, relation and tail to text first"):
        graph(mixed)


def test_categories_and_lazy_frames_of_polars_are_read() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(COLUMNS).with_columns(polars.col("relation").cast(polars.Categorical))

    assert facts_of(graph(frame)) == FACTS and facts_of(graph(frame.lazy())) == FACTS


def test_a_networkx_graph_comes_back_with_its_lonely_nodes() -> None:
    networkx = pytest.importorskip("networkx")
    source = networkx.MultiDiGraph()
    source.add_node("dan")
    source.add_edge("ada", "bob", label="knows", weight=2)
    source.add_edge("ada", "bob", label="likes")

    found = graph(source)

    assert found.num_nodes == 3 and found.node_name(0) == "dan"
    assert facts_of(found) == [("ada", "knows", "bob"), ("ada", "likes", "bob")]
    again = found.to_networkx()
    assert set(again.edges(data="relation")) == {("ada", "bob", "knows"), ("ada", "bob", "likes")}
    assert facts_of(graph(again)) == facts_of(found)


def test_edges_of_networkx_are_labelled_by_attribute_by_key_or_not_at_all() -> None:
    networkx = pytest.importorskip("networkx")
    keyed, plain = networkx.MultiDiGraph([("a", "b", "r")]), networkx.path_graph(3)
    named = networkx.DiGraph()
    named.add_edge("a", "b", kind="r", verb="s")

    assert facts_of(graph(keyed)) == [("a", "r", "b")]
    assert facts_of(graph(plain)) == [("0", "edge", "1"), ("1", "edge", "2")]
    assert facts_of(graph(named)) == [("a", "r", "b")]
    assert facts_of(graph(named, relation="verb")) == [("a", "s", "b")]
    with pytest.raises(InputError, match="the edge 'a' - 'b' has no attribute 'x'"):
        graph(named, relation="x")
    named.add_edge("a", "c", kind="r", type="s")
    with pytest.raises(InputError, match="edges have kind and type; choose one with relation="):
        graph(named)


def test_nodes_of_networkx_with_one_name_are_refused() -> None:
    networkx = pytest.importorskip("networkx")

    with pytest.raises(InputError, match="two nodes of the networkx graph are called '1'"):
        graph(networkx.Graph([(1, "1")]))
    with pytest.raises(InputError, match=r"a node of the graph is \(0, 0\), but names are text"):
        graph(networkx.grid_2d_graph(2, 2))


def test_data_of_pytorch_geometric_keeps_its_node_ids() -> None:
    data = pytest.importorskip("torch_geometric.data")
    edges = torch.tensor([[2, 0], [0, 1]])

    plain = graph(data.Data(edge_index=edges, num_nodes=4))
    typed = graph(data.Data(edge_index=edges, edge_type=torch.tensor([1, 0]), num_nodes=4))

    assert plain.num_nodes == 4 and facts_of(plain) == [("2", "edge", "0"), ("0", "edge", "1")]
    assert typed.triples.tolist() == [[2, 1, 0], [0, 0, 1]]


def test_data_of_pytorch_geometric_comes_back_by_name() -> None:
    pytest.importorskip("torch_geometric")
    found = graph(FACTS)

    data = found.to_pyg()

    assert data.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]] and data.num_nodes == 3
    assert data.edge_type.tolist() == [0, 0, 1]
    assert facts_of(graph(data)) == FACTS
    data.node_names = ["x", "x", "y"]
    with pytest.raises(InputError, match="node_names has 2 different names, and 3 are needed"):
        graph(data)


def test_hetero_data_names_nodes_by_type_and_relations_by_edge_type() -> None:
    data = pytest.importorskip("torch_geometric.data")
    source = data.HeteroData()
    source["author"].num_nodes, source["paper"].num_nodes = 2, 3
    source["author", "writes", "paper"].edge_index = torch.tensor([[0, 1], [2, 2]])
    source["paper", "to", "paper"].edge_index = torch.tensor([[0], [1]])
    source["author", "to", "paper"].edge_index = torch.tensor([[1], [0]])

    found = graph(source)

    assert found.num_nodes == 5
    assert facts_of(found) == [
        ("author:0", "writes", "paper:2"),
        ("author:1", "writes", "paper:2"),
        ("paper:0", "paper__to__paper", "paper:1"),
        ("author:1", "author__to__paper", "paper:0"),
    ]


def test_data_without_edges_is_refused() -> None:
    data = pytest.importorskip("torch_geometric.data")

    with pytest.raises(InputError, match="has no edge_index"):
        graph(data.Data(x=torch.ones(2, 2)))
    with pytest.raises(InputError, match="has no edges"):
        graph(data.Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=2))


def test_a_triples_factory_comes_back_with_its_ids() -> None:
    triples = pytest.importorskip("pykeen.triples")
    factory = triples.TriplesFactory.from_labeled_triples(
        np.array(FACTS), create_inverse_triples=True
    )

    found = graph(factory)
    again = found.to_pykeen()

    assert sorted(facts_of(found)) == sorted(FACTS) and found.num_relations == 2
    assert again.entity_to_id == factory.entity_to_id
    assert torch.equal(again.mapped_triples, factory.mapped_triples)


def test_a_triples_factory_without_labels_has_ids_for_names() -> None:
    triples = pytest.importorskip("pykeen.triples")
    factory = triples.CoreTriplesFactory(torch.tensor([[0, 0, 2]]), num_entities=3, num_relations=1)

    assert facts_of(graph(factory)) == [("0", "0", "2")] and graph(factory).num_nodes == 3


def test_an_rdflib_graph_comes_back_without_literals() -> None:
    rdflib = pytest.importorskip("rdflib")
    source = rdflib.Graph()
    ada, knows = rdflib.URIRef("http://e.org/ada"), rdflib.URIRef("http://e.org/knows")
    source.add((ada, knows, rdflib.BNode("b1")))
    source.add((ada, knows, rdflib.Literal(36)))

    found = graph(source)

    assert facts_of(found) == [("http://e.org/ada", "http://e.org/knows", "_:b1")]
    assert set(found.to_rdflib()) == {(ada, knows, rdflib.BNode("b1"))}


def test_the_graphs_of_an_rdflib_dataset_are_read_together() -> None:
    rdflib = pytest.importorskip("rdflib")
    source = rdflib.Dataset()
    name = rdflib.Namespace("http://e.org/")
    source.graph(name.one).add((name.a, name.r, name.b))
    source.default_graph.add((name.b, name.r, name.c))

    assert len(facts_of(graph(source))) == 2


def test_names_that_are_no_iris_need_a_namespace() -> None:
    rdflib = pytest.importorskip("rdflib")
    found = graph([("New York", "in", "http://e.org/usa")])

    with pytest.raises(InputError, match="'New York' is not an IRI; give a namespace"):
        found.to_rdflib()
    (fact,) = found.to_rdflib(namespace="http://x.org/")
    assert fact[0] == rdflib.URIRef("http://x.org/New%20York")
    assert fact[2] == rdflib.URIRef("http://e.org/usa")


def test_a_path_a_name_a_dataset_and_a_graph_are_graphs_already(tmp_path: Any) -> None:
    (tmp_path / "facts.tsv").write_text("ada\tknows\tbob\n")
    countries = nodepiece.load_countries()

    assert facts_of(graph(tmp_path / "facts.tsv")) == FACTS[:1]
    assert graph("countries").num_nodes == countries.num_nodes
    assert graph(countries) is countries.train and graph(countries.train) is countries.train


def test_options_that_do_nothing_are_refused() -> None:
    networkx = pytest.importorskip("networkx")

    with pytest.raises(InputError, match="relation names an edge attribute"):
        graph(FACTS, relation="r")
    with pytest.raises(InputError, match="leave them out for networkx"):
        graph(networkx.path_graph(2), columns=(0, 1, 2))


def test_a_graph_without_names_is_written_with_its_ids() -> None:
    plain = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)

    assert facts_of(plain) == [("0", "0", "1")]
    assert make_dataset(plain).names.nodes.to_pylist() == ["0", "1"]


def test_a_dataset_has_parts_by_the_ids_of_train_and_counts_what_train_lacks() -> None:
    found = make_dataset(
        FACTS, valid=[("bob", "likes", "ada"), ("bob", "likes", "eve")], test=[], name="friends"
    )

    assert found.valid.tolist() == [[1, 1, 0]] and not len(found.test)
    assert found.num_unseen == {"valid": 1, "test": 0} and found.name == "friends"
    assert make_dataset(found) is found


def test_the_package_of_graphs_is_also_the_function_of_that_name() -> None:
    from nodepiece.graph.names import Names

    assert nodepiece.graph.names.Names is Names  # type: ignore[attr-defined]
    assert nodepiece.graph(FACTS).num_nodes == 3
