import pytest
import torch
from torch import Tensor

from nodepiece.encoders.graph_layers import GraphLayer, group_neighbours
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.parameters import use_generator
from nodepiece.errors import InputError

#        0 --a--> 1      relations: a = 0, b = 1
#        | \
#        a  b            4 has no edge at all
#        v   v
#        2   3           3 --b--> 3 (a loop)
EDGES = torch.tensor([[0, 0, 2], [0, 1, 3], [0, 0, 1], [3, 1, 3]])
NUM_NODES, NUM_RELATIONS, DIM = 5, 2, 3


def test_relations_of_a_node_share_alike_and_so_do_neighbours_along_one() -> None:
    neighbourhoods = group_neighbours(EDGES, NUM_NODES, NUM_RELATIONS)
    # The pairs, in order: (0, a), (0, b), (3, b)
    assert neighbourhoods.edge_index.target_relations.of_edges.rows.tolist() == [0, 1, 0, 2]
    assert neighbourhoods.share_of_pair.tolist() == [0.25, 0.5, 1]


def layer(**settings: float) -> GraphLayer:
    chosen = GraphLayerSettings(**({"dropout": 0.0} | settings))  # type: ignore[arg-type]
    made = GraphLayer(DIM, chosen, generator=torch.Generator().manual_seed(0)).double()
    use_generator(made, torch.Generator().manual_seed(1))
    return made


def random(num_rows: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_rows, DIM, generator=generator, dtype=torch.float64).requires_grad_()


def slow_messages(nodes: Tensor, relations: Tensor) -> Tensor:
    """For every node the mean over its relations of (mean neighbour along it * relation)."""
    aggregated = []
    for node in range(NUM_NODES):
        messages = []
        for relation in range(NUM_RELATIONS):
            tails = [t for h, r, t in EDGES.tolist() if (h, r) == (node, relation)]
            if tails:
                messages.append(nodes[tails].mean(dim=0) * relations[relation])
        zero = torch.zeros(DIM, dtype=torch.float64)
        aggregated.append(torch.stack(messages).mean(dim=0) if messages else zero)
    return torch.stack(aggregated)


def test_a_layer_is_what_a_loop_over_nodes_and_relations_gives() -> None:
    made, nodes, relations = layer(), random(NUM_NODES, 1), random(NUM_RELATIONS, 2)
    neighbourhoods = group_neighbours(EDGES, NUM_NODES, NUM_RELATIONS)

    found = made(nodes, relations, neighbourhoods)

    update = made.own(nodes) + made.message(slow_messages(nodes, relations))
    variance, mean = torch.var_mean(update, dim=0, correction=0)
    normed = (update - mean) / (variance + made.norm.eps).sqrt()
    expected = nodes + normed.relu()
    torch.testing.assert_close(found, expected)
    parameters = [nodes, relations, *made.own.parameters(), *made.message.parameters()]
    weight = torch.arange(expected.numel(), dtype=torch.float64).cos().view_as(expected)
    torch.testing.assert_close(
        torch.autograd.grad((found * weight).sum(), parameters),
        torch.autograd.grad((expected * weight).sum(), parameters),
    )


def test_edge_dropout_leaves_out_whole_messages() -> None:
    made, nodes, relations = layer(edge_dropout=0.5), random(NUM_NODES, 1), random(2, 2)
    neighbourhoods = group_neighbours(EDGES, NUM_NODES, NUM_RELATIONS)
    aggregated: list[Tensor] = []
    made.message.register_forward_pre_hook(
        lambda module, given: aggregated.append(given[0].detach())
    )
    for _ in range(20):
        made(nodes, relations, neighbourhoods)
    along_a, along_b = nodes[[1, 2]].mean(dim=0) * relations[0], nodes[3] * relations[1]
    # Node 0 has two messages, each kept at double weight or not at all; their mean is over two.
    possible = torch.stack([0 * along_a, along_a, along_b, along_a + along_b]).detach()
    distance = torch.cdist(torch.stack([row[0] for row in aggregated]), possible)
    assert distance.min(dim=1).values.max() < 1e-12
    assert len(distance.argmin(dim=1).unique()) == 4  # type: ignore[no-untyped-call]


def test_layers_in_evaluation_leave_nothing_out() -> None:
    nodes, relations = random(NUM_NODES, 1), random(2, 2)
    neighbourhoods = group_neighbours(EDGES, NUM_NODES, NUM_RELATIONS)
    careful, careless = layer().eval(), layer(dropout=0.9, edge_dropout=0.9).eval()
    torch.testing.assert_close(
        careless(nodes, relations, neighbourhoods), careful(nodes, relations, neighbourhoods)
    )


# Of the edges in EDGES: one of two along a relation, all along a relation, all of a node, all.
EDGE_MASKS = [[0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]


@pytest.mark.parametrize("mask", EDGE_MASKS)
def test_the_weights_of_visible_edges_sum_to_one_at_every_node(mask: list[int]) -> None:
    edge_mask = torch.tensor(mask, dtype=torch.float32)
    neighbourhoods = group_neighbours(EDGES, NUM_NODES, NUM_RELATIONS).with_edge_mask(edge_mask)
    pair = neighbourhoods.edge_index.target_relations.of_edges.rows
    weight = neighbourhoods.share_of_pair[pair] * edge_mask
    total = torch.zeros(NUM_NODES).index_add_(0, EDGES[:, 0], weight)
    visible = EDGES[edge_mask > 0, 0]
    assert total.tolist() == [float(node in visible) for node in range(NUM_NODES)]


def test_an_edge_mask_that_hides_nothing_changes_no_digit() -> None:
    neighbourhoods = group_neighbours(EDGES, NUM_NODES, NUM_RELATIONS)
    masked = neighbourhoods.with_edge_mask(torch.ones(len(EDGES)))
    assert torch.equal(masked.share_of_pair, neighbourhoods.share_of_pair)
    assert masked.share_of_pair.dtype == neighbourhoods.share_of_pair.dtype


@pytest.mark.parametrize("mask", EDGE_MASKS)
def test_a_layer_with_hidden_edges_is_one_over_the_graph_without_them(mask: list[int]) -> None:
    made, nodes, relations = layer(), random(NUM_NODES, 1), random(NUM_RELATIONS, 2)
    edge_mask = torch.tensor(mask, dtype=torch.float64)
    neighbourhoods = group_neighbours(EDGES, NUM_NODES, NUM_RELATIONS).with_edge_mask(edge_mask)
    without = group_neighbours(EDGES[edge_mask > 0], NUM_NODES, NUM_RELATIONS)

    found, expected = made(nodes, relations, neighbourhoods), made(nodes, relations, without)

    torch.testing.assert_close(found, expected)
    weight = torch.arange(expected.numel(), dtype=torch.float64).cos().view_as(expected)
    parameters = [nodes, relations, *made.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad((found * weight).sum(), parameters),
        torch.autograd.grad((expected * weight).sum(), parameters),
    )


def test_edge_dropout_scales_the_weights_over_visible_edges() -> None:
    made, nodes, relations = layer(edge_dropout=0.5), random(NUM_NODES, 1), random(2, 2)
    mask = torch.tensor([0.0, 1, 1, 1])  # node 0 is left with one neighbour along a, one along b
    neighbourhoods = group_neighbours(EDGES, NUM_NODES, NUM_RELATIONS).with_edge_mask(mask)
    aggregated: list[Tensor] = []
    made.message.register_forward_pre_hook(
        lambda module, given: aggregated.append(given[0].detach())
    )
    for _ in range(20):
        made(nodes, relations, neighbourhoods)
    along_a, along_b = nodes[1] * relations[0], nodes[3] * relations[1]
    possible = torch.stack([0 * along_a, along_a, along_b, along_a + along_b]).detach()
    distance = torch.cdist(torch.stack([row[0] for row in aggregated]), possible)
    assert distance.min(dim=1).values.max() < 1e-12
    assert len(distance.argmin(dim=1).unique()) == 4  # type: ignore[no-untyped-call]


@pytest.mark.gpu
@pytest.mark.parametrize("mask", EDGE_MASKS)
def test_an_edge_mask_on_a_gpu_is_captured_and_replayed(mask: list[int]) -> None:
    neighbourhoods = group_neighbours(EDGES.cuda(), NUM_NODES, NUM_RELATIONS)
    edge_mask = torch.ones(len(EDGES), device="cuda")
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        neighbourhoods.with_edge_mask(edge_mask).share_of_pair  # noqa: B018
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = neighbourhoods.with_edge_mask(edge_mask).share_of_pair
    torch.cuda.synchronize()
    edge_mask.copy_(torch.tensor(mask))
    graph.replay()
    on_cpu = group_neighbours(EDGES, NUM_NODES, NUM_RELATIONS)
    expected = on_cpu.with_edge_mask(torch.tensor(mask, dtype=torch.float32)).share_of_pair
    assert torch.equal(captured.cpu(), expected)


@pytest.mark.parametrize("settings", [{"layers": -1}, {"dropout": 1.0}, {"edge_dropout": -0.1}])
def test_impossible_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match="graph"):
        GraphLayerSettings(**settings)  # type: ignore[arg-type]
