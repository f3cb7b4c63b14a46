from dataclasses import replace

import pytest
import torch
from tests.encoders.slow_compgcn import Edge, slow_compgcn
from torch import Tensor

from nodepiece.encoders.compgcn import CompGCN
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.parameters import use_generator
from nodepiece.errors import InputError

#        0 --a--> 1      relations: a = 0, b = 1, their inverses 2 and 3
#        | \      |
#        a  b     b      4 has no edge at all
#        v   v    v
#        2   3 <--+      3 --b--> 3 (a loop)
FACTS = [(0, 0, 1), (0, 0, 2), (0, 1, 3), (1, 1, 3), (3, 1, 3)]
EDGES: list[Edge] = FACTS + [(tail, relation + 2, head) for head, relation, tail in FACTS]
NUM_NODES, NUM_RELATIONS, DIM = 5, 4, 8
PLAIN = GraphLayerSettings(
    kind="compgcn", layers=2, dropout=0.0, attention_heads=2, attention_dropout=0.0
)
OPTIONS = {
    "attention": PLAIN,
    "four heads": replace(PLAIN, attention_heads=4),
    "another slope": replace(PLAIN, attention_slope=0.1),
    "no attention": replace(PLAIN, attention_heads=0),
    "residual": replace(PLAIN, residual=True),
    "jumping knowledge": replace(PLAIN, jumping_knowledge=True, residual=True),
    "pna": replace(PLAIN, aggregation="pna"),
    "pna without attention": replace(PLAIN, aggregation="pna", attention_heads=0),
}
WEIGHTS = {
    "all edges": None,
    "one fact hidden": [0.0, 1, 1, 1, 1, 0.0, 1, 1, 1, 1],
    "all of node 1 hidden, the rest weighted": [0, 1, 0.5, 0, 2, 0, 1, 0.5, 0, 2],
}


def random(num_rows: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_rows, DIM, generator=generator, dtype=torch.float64).requires_grad_()


def network(settings: GraphLayerSettings) -> CompGCN:
    made = CompGCN(DIM, settings, generator=torch.Generator().manual_seed(0)).double()
    use_generator(made, torch.Generator().manual_seed(1))
    return made


def edges_of(facts: list[Edge]):  # type: ignore[no-untyped-def]
    return EdgeIndex(torch.tensor(facts), NUM_NODES, NUM_RELATIONS, "direction")


def gradients(outputs: tuple[Tensor, Tensor], of: list[Tensor]) -> tuple[Tensor, ...]:
    """Of a sum in which every number has another weight."""
    total = torch.zeros((), dtype=torch.float64)
    for output in outputs:
        weight = torch.arange(output.numel(), dtype=torch.float64).cos().view_as(output)
        total = total + (output * weight).sum()
    return torch.autograd.grad(total, of)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "library"])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("settings", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("composition", ["rotate", "multiply", "subtract"])
def test_values_and_gradients_are_those_of_a_loop_over_edges(
    composition: str, settings: GraphLayerSettings, weight: list[float] | None, fused: bool
) -> None:
    made = network(replace(settings, composition=composition, fused=fused))
    nodes, relations = random(NUM_NODES, 1), random(NUM_RELATIONS, 2)
    expected = slow_compgcn(made, nodes, relations, EDGES, weight or [1.0] * len(EDGES))
    of = [nodes, relations, *made.parameters()]
    expected_gradients = gradients(expected, of)

    given = None if weight is None else torch.tensor(weight)
    found = made(nodes, relations, edges_of(EDGES), given)

    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(found, of), expected_gradients)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "library"])
@pytest.mark.parametrize("settings", OPTIONS.values(), ids=OPTIONS)
def test_a_hidden_edge_is_an_edge_that_is_not_there(
    settings: GraphLayerSettings, fused: bool
) -> None:
    made = network(replace(settings, fused=fused))
    nodes, relations = random(NUM_NODES, 1), random(NUM_RELATIONS, 2)
    weight = torch.tensor([edge not in (EDGES[0], EDGES[5]) for edge in EDGES]).double()
    fewer = [edge for edge in EDGES if edge not in (EDGES[0], EDGES[5])]

    found = made(nodes, relations, edges_of(EDGES), weight)
    expected = made(nodes, relations, edges_of(fewer))

    torch.testing.assert_close(found, expected)
    of = [nodes, relations, *made.parameters()]
    torch.testing.assert_close(gradients(found, of), gradients(expected, of))


def test_the_order_of_edges_does_not_matter() -> None:
    made = network(PLAIN)
    nodes, relations = random(NUM_NODES, 1), random(NUM_RELATIONS, 2)
    shuffled = [EDGES[position] for position in (3, 8, 1, 9, 0, 5, 7, 2, 6, 4)]
    torch.testing.assert_close(
        made(nodes, relations, edges_of(shuffled)), made(nodes, relations, edges_of(EDGES))
    )


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "library"])
def test_evaluation_leaves_nothing_out(fused: bool) -> None:
    nodes, relations = random(NUM_NODES, 1), random(NUM_RELATIONS, 2)
    careful = replace(PLAIN, fused=fused)
    dropouts = {"dropout": 0.9, "attention_dropout": 0.9, "layer_dropout": 0.9, "edge_dropout": 0.9}
    careless = replace(careful, **dropouts)  # type: ignore[arg-type]
    found = network(careless).eval()(nodes, relations, edges_of(EDGES))
    torch.testing.assert_close(found, network(careful).eval()(nodes, relations, edges_of(EDGES)))


@pytest.mark.parametrize("key", ["dropout", "attention_dropout", "layer_dropout", "edge_dropout"])
def test_every_dropout_leaves_something_out_in_training(key: str) -> None:
    nodes, relations = random(NUM_NODES, 1), random(NUM_RELATIONS, 2)
    careless = network(replace(PLAIN, **{key: 0.5}))  # type: ignore[arg-type]
    first, _ = careless(nodes, relations, edges_of(EDGES))
    second, _ = careless(nodes, relations, edges_of(EDGES))
    assert not torch.equal(first, second)


def test_the_same_weights_serve_another_graph() -> None:
    made = network(PLAIN)
    other = EdgeIndex(torch.tensor([(0, 0, 1), (1, 2, 0)]), 2, NUM_RELATIONS, "direction")
    nodes, relations = made(random(2, 3), random(NUM_RELATIONS, 2), other)
    assert nodes.shape == (2, DIM) and relations.shape == (NUM_RELATIONS, DIM)


def test_a_graph_without_edges_has_no_messages() -> None:
    for settings in OPTIONS.values():
        nodes, relations = random(NUM_NODES, 1), random(NUM_RELATIONS, 2)
        none = EdgeIndex(
            torch.empty(0, 3, dtype=torch.int32), NUM_NODES, NUM_RELATIONS, "direction"
        )
        found, _ = network(settings)(nodes, relations, none)
        assert found.isfinite().all()


def test_both_ways_have_the_same_parameters_by_name() -> None:
    fused, library = network(PLAIN), network(replace(PLAIN, fused=False))
    library.load_state_dict(fused.state_dict())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "gcn"}, "graph.kind = 'gcn' is not known; it is one of mean, compgcn"),
        ({"composition": "add"}, "graph.composition"),
        ({"attention_heads": -1}, "graph.attention_heads must be 0 or more"),
        ({"layer_dropout": 1.0}, r"graph.layer_dropout must be in \[0, 1\)"),
        ({"kind": "mean"}, "graph.attention_heads would do nothing with graph.kind = .mean."),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(PLAIN, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dim", "message"),
    [(9, "a multiple of graph.attention_heads = 2"), (7, "must be even")],
)
def test_a_size_that_cannot_be_cut_up_is_refused(dim: int, message: str) -> None:
    settings = PLAIN if dim == 9 else replace(PLAIN, attention_heads=1)
    with pytest.raises(InputError, match=message):
        CompGCN(dim, settings, generator=torch.Generator())


@pytest.mark.gpu
@pytest.mark.parametrize("settings", OPTIONS.values(), ids=OPTIONS)
def test_values_and_gradients_on_a_gpu_are_those_on_the_cpu(settings: GraphLayerSettings) -> None:
    made, nodes, relations = network(settings).float(), random(NUM_NODES, 1), random(4, 2)
    edges, weight = torch.tensor(EDGES), torch.tensor(WEIGHTS["one fact hidden"])
    found = []
    for device in ("cpu", "cuda"):
        made = made.to(device)
        of = [x.detach().float().to(device).requires_grad_() for x in (nodes, relations)]
        arranged = EdgeIndex(edges.to(device), NUM_NODES, NUM_RELATIONS, "direction")
        outputs = made(*of, arranged, weight.to(device))
        grown = gradients(
            tuple(out.cpu().double() for out in outputs), of + list(made.parameters())
        )
        found.append([out.detach().cpu() for out in (*outputs, *grown)])
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)
