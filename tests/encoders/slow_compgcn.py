"""A slow CompGCN, edge by edge: the reference of the fast implementations."""

import math

import torch
from torch import Tensor

from nodepiece.encoders.compgcn import CompGCN, CompGCNLayer
from nodepiece.encoders.message_statistics import SMALLEST_VARIANCE

Edge = tuple[int, int, int]


def slow_compgcn(
    network: CompGCN, nodes: Tensor, relations: Tensor, edges: list[Edge], weight: list[float]
) -> tuple[Tensor, Tensor]:
    """In training mode, without dropout."""
    outputs = []
    for layer in network.layers:
        assert isinstance(layer, CompGCNLayer)
        update, relations = slow_layer(layer, nodes, relations, edges, weight)
        nodes = nodes + update if network.residual else update
        outputs.append(nodes)
    if network.jump is not None:
        first, _, second = network.jump
        hidden = torch.cat(outputs, dim=1) @ first.weight.T + first.bias  # type: ignore[operator]
        nodes = hidden.clamp_min(0) @ second.weight.T + second.bias  # type: ignore[operator]
    return nodes, relations


def slow_layer(
    layer: CompGCNLayer, nodes: Tensor, relations: Tensor, edges: list[Edge], weight: list[float]
) -> tuple[Tensor, Tensor]:
    num_direct = len(relations) // 2
    seen = [(edge, w) for edge, w in zip(edges, weight, strict=True) if w > 0]
    direct = [(edge, w) for edge, w in seen if edge[1] < num_direct]
    inverse = [(edge, w) for edge, w in seen if edge[1] >= num_direct]
    aggregated = [
        torch.stack(
            [hear(layer, nodes, relations, part, matrix, node) for node in range(len(nodes))]
        )
        for part, matrix in (
            (direct, layer.messages.weight_in),
            (inverse, layer.messages.weight_out),
        )
    ]
    if layer.condense is not None:
        scaled = [
            scale(statistics, part)
            for statistics, part in zip(aggregated, (direct, inverse), strict=True)
        ]
        both = (scaled[0] + scaled[1]) @ layer.condense.weight.T + layer.condense.bias
    else:
        both = aggregated[0] + aggregated[1]
    own = torch.stack([compose(layer, node, layer.loop[0]) for node in nodes]) @ layer.weight_loop
    total = (both + own) / 3
    variance, mean = torch.var_mean(total, dim=0, correction=0)
    normed = (total - mean) / (variance + layer.norm.eps).sqrt()
    normed = normed * layer.norm.weight + layer.norm.bias
    return normed.clamp_min(0), relations @ layer.weight_relation


def compose(layer: CompGCNLayer, node: Tensor, relation: Tensor) -> Tensor:
    match layer.messages.compose.__name__:
        case "multiply":
            return node * relation
        case "subtract":
            return node - relation
    half = len(node) // 2
    product = torch.complex(node[:half], node[half:]) * torch.complex(
        relation[:half], relation[half:]
    )
    return torch.cat([product.real, product.imag])


def hear(
    layer: CompGCNLayer,
    nodes: Tensor,
    relations: Tensor,
    edges: list[tuple[Edge, float]],  # of one direction
    matrix: Tensor,
    node: int,
) -> Tensor:
    """The sum, or the four statistics, of the messages to a node in one direction."""
    own = [(edge, w) for edge, w in edges if edge[0] == node]
    dim = nodes.shape[1]
    if not own:
        return torch.zeros(dim * (4 if layer.messages.statistics else 1), dtype=nodes.dtype)
    messages = torch.stack(
        [
            compose(layer, nodes[tail], relations[relation]) @ matrix
            for (_, relation, tail), _ in own
        ]
    )
    shares = share(layer, nodes[node], messages, [w for _, w in own])
    if layer.messages.attention is None and not layer.messages.statistics:
        total = sum(w for _, w in own)
        ways = [sum(w for (_, _, t), w in edges if t == tail) for (_, _, tail), _ in own]
        shares = torch.tensor(
            [[w / math.sqrt(total * way)] for (_, w), way in zip(own, ways, strict=True)],
            dtype=nodes.dtype,
        )
    per_column = shares.repeat_interleave(dim // shares.shape[1], dim=1)
    mean = (per_column * messages).sum(dim=0)
    if not layer.messages.statistics:
        return mean
    variance = (per_column * messages.square()).sum(dim=0) - mean.square()
    deviation = (variance.clamp_min(0) + SMALLEST_VARIANCE).sqrt()
    return torch.cat([mean, deviation, messages.amin(dim=0), messages.amax(dim=0)])


def share(layer: CompGCNLayer, node: Tensor, messages: Tensor, weight: list[float]) -> Tensor:
    """(num_edges of the node, heads)."""
    weights = torch.tensor(weight, dtype=node.dtype)[:, None]
    attention = layer.messages.attention
    if attention is None:
        return weights / weights.sum()
    heads = len(attention)
    scores = torch.stack(
        [
            torch.stack(
                [
                    torch.cat([node.chunk(heads)[head], message.chunk(heads)[head]])
                    @ attention[head]
                    for head in range(heads)
                ]
            )
            for message in messages
        ]
    )
    powers = weights * torch.where(scores > 0, scores, layer.messages.slope * scores).exp()
    return powers / powers.sum(dim=0)


def scale(statistics: Tensor, edges: list[tuple[Edge, float]]) -> Tensor:
    degree = torch.zeros(len(statistics), dtype=statistics.dtype)
    for (head, _, _), w in edges:
        degree[head] += w
    usual = (degree + 1).log().mean()
    amplified = statistics * ((degree + 1).log() / usual)[:, None]
    attenuated = statistics * (usual / (degree.clamp_min(1) + 1).log())[:, None]
    return torch.cat([statistics, amplified, attenuated], dim=1)
