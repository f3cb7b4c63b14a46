"""The encoders that add up few products instead of encoding every node agree with the plain way."""

from itertools import product

import pytest
import torch
from tests.encoders.random_tables import NUM_NODES, random_table
from torch import Tensor

from nodepiece.encoders.gated_sum import GatedSumEncoder
from nodepiece.encoders.mlp import MLPEncoder
from nodepiece.encoders.node_embedding import (
    EncoderSettings,
    NodePieceEmbedding,
    factorized_form,
)
from nodepiece.encoders.pieces import PieceCounts, PieceTables, count_pieces

KINDS = ("mlp", "gated-sum")
SIZES = {
    "all": {},
    "no distances": {"distances": False},
    "no relations": {"relations_per_node": 0},
    "no relations, no distances": {"relations_per_node": 0, "distances": False},
    "no anchors": {"anchors_per_node": 0},
    "fewer distances than anchors": {"anchors_per_node": 8},
}


def embedding(kind: str, sizes: str, *, factorized: bool | None) -> NodePieceEmbedding:
    """The same weights for both ways: the seed is the same."""
    table = random_table(**SIZES[sizes])  # type: ignore[arg-type]
    settings = EncoderSettings(kind=kind, dim=6, hidden_dim=10, dropout=0.0, factorized=factorized)
    generator = torch.Generator().manual_seed(0)
    return NodePieceEmbedding(table, settings, generator=generator).double()


def gradients(model: NodePieceEmbedding, vectors: Tensor) -> dict[str, Tensor]:
    """Of a loss that weighs every number of every vector differently."""
    weight = torch.arange(vectors.numel(), dtype=torch.float64).cos().view_as(vectors)
    (vectors * weight).sum().backward()  # type: ignore[no-untyped-call]
    return {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for name, parameter in model.named_parameters()
    }


@pytest.mark.parametrize(("kind", "sizes"), list(product(KINDS, SIZES)))
def test_factorized_equals_plain_for_all_nodes(kind: str, sizes: str) -> None:
    plain, factorized = (embedding(kind, sizes, factorized=way) for way in (False, True))
    expected, found = plain.all_nodes(), factorized.all_nodes()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(factorized, found), gradients(plain, expected))


@pytest.mark.parametrize(("kind", "sizes"), list(product(KINDS, SIZES)))
def test_factorized_equals_plain_for_some_nodes_with_repeats(kind: str, sizes: str) -> None:
    nodes = torch.tensor([[3, 23, 3], [0, 21, 3]])
    plain, factorized = (embedding(kind, sizes, factorized=way) for way in (False, True))
    expected, found = plain(nodes), factorized(nodes)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(factorized, found), gradients(plain, expected))


@pytest.mark.parametrize("sizes", SIZES)
def test_with_more_products_than_nodes_vectors_are_the_same_without_them(
    sizes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = embedding("gated-sum", sizes, factorized=True).eval()
    chosen = embedding("gated-sum", sizes, factorized=None).eval()
    monkeypatch.setattr("nodepiece.encoders.node_embedding.NODES_AT_ONCE", 5)
    monkeypatch.setattr("nodepiece.encoders.node_embedding.NUMBERS_AT_ONCE", 100)
    monkeypatch.setattr(GatedSumEncoder, "products", lambda *_: pytest.fail("products were made"))
    with torch.no_grad():
        found = chosen.all_nodes()
    monkeypatch.undo()
    torch.testing.assert_close(found, expected.all_nodes())


@pytest.mark.parametrize("sizes", SIZES)
def test_a_gated_sum_of_distinct_pieces_is_that_of_all_pieces(sizes: str) -> None:
    nodes = torch.tensor([3, 23, 3, 0, 21])
    plain, distinct = (embedding("gated-sum", sizes, factorized=False).eval() for _ in range(2))
    distinct.encoder.training = True  # but not its BatchNorm
    expected, found = plain(nodes), distinct(nodes)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(distinct, found), gradients(plain, expected))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factorized", [False, True])
def test_some_nodes_have_the_vectors_they_have_among_all(kind: str, factorized: bool) -> None:
    model = embedding(kind, "all", factorized=factorized).eval()
    nodes = torch.tensor([5, 23, 0])
    torch.testing.assert_close(model(nodes), model.all_nodes()[nodes])


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_product_row_that_is_named_exists(kind: str, sizes: str) -> None:
    model = embedding(kind, sizes, factorized=True)
    encoder = model.encoder
    assert isinstance(encoder, MLPEncoder | GatedSumEncoder)
    products = encoder.products(model.tables.vectors())
    bags = encoder.product_rows(model.token_tensors.tokens())
    assert bags.num_rows == len(products)
    assert bags.members.min() >= 0
    assert bags.members.max() < len(products)


def test_the_mlp_is_two_layers_over_concatenated_pieces_and_distances() -> None:
    model = embedding("mlp", "all", factorized=False)
    encoder, tables = model.encoder, model.tables
    assert isinstance(encoder, MLPEncoder)
    tokens = model.token_tensors.tokens()
    assert tokens.distances is not None
    relations = torch.cat([tables.relations, tables.relation_padding])
    for node in (0, 20, 23):
        pieces = [
            tables.anchors[anchor] + tables.distances[distance]
            for anchor, distance in zip(tokens.anchors[node], tokens.distances[node], strict=True)
        ]
        pieces += [relations[relation] for relation in tokens.relations[node]]
        hidden = (encoder.hidden.weight @ torch.cat(pieces) + encoder.hidden.bias).relu()
        expected = encoder.output.weight @ hidden + encoder.output.bias
        torch.testing.assert_close(model(torch.tensor(node)), expected)


def test_the_gated_sum_scales_each_anchor_by_its_distance() -> None:
    model = embedding("gated-sum", "all", factorized=False).eval()
    encoder, tables = model.encoder, model.tables
    assert isinstance(encoder, GatedSumEncoder)
    tokens = model.token_tensors.tokens()
    assert tokens.distances is not None
    relations = torch.cat([tables.relations, tables.relation_padding])
    node = 20
    total = torch.zeros(6, dtype=torch.float64)
    for anchor, distance in zip(tokens.anchors[node], tokens.distances[node], strict=True):
        total = total + tables.anchors[anchor] * (1 + tables.distances[distance])
    for relation in tokens.relations[node]:
        total = total + relations[relation]
    normed = total / (1 + 1e-5) ** 0.5  # BatchNorm before any training: mean 0, variance 1
    hidden = (encoder.hidden.weight @ normed + encoder.hidden.bias).relu()
    expected = normed + encoder.output.weight @ hidden + encoder.output.bias
    torch.testing.assert_close(model(torch.tensor(node)), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_left_alone_the_lesser_work_is_chosen(kind: str) -> None:
    model = embedding(kind, "all", factorized=None)
    encoder = factorized_form(model.encoder)
    assert encoder is not None
    rows = len(encoder.products(model.tables.vectors()))
    assert encoder.num_products == rows
    assert model._factorized(rows // model.counts.num_pieces) is None
    assert model._factorized(rows // model.counts.num_pieces + 1) is model.encoder


# Sizes of the graphs -> the paper's millions. A distance more or less does not show in them.
PAPER_SIZES = {
    "FB15k-237": (PieceCounts(14505, 1000, 6, 474, 20, 15), 3.18),
    "WN18RR": (PieceCounts(40559, 500, 15, 22, 50, 4), 4.51),
    "CoDEx-L": (PieceCounts(77951, 7000, 8, 138, 20, 6), 3.59),
    "YAGO3-10": (PieceCounts(123143, 10000, 10, 74, 20, 5), 4.10),
}


@pytest.mark.parametrize("name", PAPER_SIZES)
def test_the_mlp_has_as_many_parameters_as_published(name: str) -> None:
    counts, millions = PAPER_SIZES[name]
    generator = torch.Generator().manual_seed(0)
    tables = PieceTables(counts, 200, generator=generator)
    encoder = MLPEncoder(counts, 200, 400, dropout=0.1, generator=generator)
    parts = (*tables.parameters(), *encoder.parameters())
    assert round(sum(parameter.numel() for parameter in parts) / 1e6, 2) == millions


def test_counts_are_those_of_the_table() -> None:
    table = random_table()
    counts = count_pieces(table)
    assert counts.num_nodes == NUM_NODES
    assert (counts.num_anchors, counts.num_relations) == (8, 6)
    assert (counts.anchors_per_node, counts.relations_per_node) == (4, 3)
    assert counts.num_distances == table.distances.max() + 2  # from 0 on, and one for none
