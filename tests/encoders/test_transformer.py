import pytest
import torch
from torch import Tensor, nn

from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.encoders.pieces import PieceCounts, PieceTables, PieceVectors, Tokens
from nodepiece.encoders.transformer import TransformerEncoder, TransformerLayer
from nodepiece.errors import InputError

DIM, HIDDEN, HEADS = 8, 12, 2
COUNTS = PieceCounts(
    num_nodes=3,
    num_anchors=5,
    num_distances=4,
    num_relations=4,
    anchors_per_node=3,
    relations_per_node=2,
)
PAD, DISCONNECTED, NO_RELATION, NONE = 5, 6, 4, 3

# One node without padding, one with fewer pieces than there is room for, one that reaches nothing.
TOKENS = Tokens(
    torch.tensor([[0, 3, 1], [2, PAD, PAD], [DISCONNECTED] * 3]),
    torch.tensor([[0, 1, 2], [1, NONE, NONE], [NONE] * 3]),
    torch.tensor([[0, 3], [1, NO_RELATION], [NO_RELATION] * 2]),
)


def encoder(*, masked: bool = True, num_layers: int = 2) -> TransformerEncoder:
    return TransformerEncoder(
        COUNTS,
        DIM,
        HIDDEN,
        num_layers=num_layers,
        num_heads=HEADS,
        dropout=0.0,
        masked=masked,
        generator=torch.Generator().manual_seed(0),
    ).double()


def vectors() -> PieceVectors:
    return PieceTables(COUNTS, DIM, generator=torch.Generator().manual_seed(1)).double().vectors()


def with_other_padding(pieces: PieceVectors) -> PieceVectors:
    anchors, relations = pieces.anchors.clone(), pieces.relations.clone()
    anchors[PAD] += 1
    relations[NO_RELATION] -= 1
    return PieceVectors(anchors, pieces.distances, relations)


def test_padding_has_no_influence() -> None:
    model = encoder()
    found, expected = model(with_other_padding(vectors()), TOKENS), model(vectors(), TOKENS)
    torch.testing.assert_close(found, expected)


def test_a_padded_node_is_encoded_as_if_there_were_no_room_left() -> None:
    model = encoder()
    one = torch.tensor([1])
    short = Tokens(torch.tensor([[2]]), torch.tensor([[1]]), torch.tensor([[1]]))
    torch.testing.assert_close(model(vectors(), TOKENS.of(one)), model(vectors(), short))


def test_disconnected_is_a_piece_like_others() -> None:
    other = vectors().anchors.clone()
    other[DISCONNECTED] += 1
    changed = PieceVectors(other, vectors().distances, vectors().relations)
    model = encoder()
    difference = (model(changed, TOKENS) - model(vectors(), TOKENS)).abs().amax(dim=1)
    assert (difference > 1e-6).tolist() == [False, False, True]


def test_without_mask_padding_counts_as_published() -> None:
    model = encoder(masked=False)
    difference = (model(with_other_padding(vectors()), TOKENS) - model(vectors(), TOKENS)).abs()
    assert (difference.amax(dim=1) > 1e-6).tolist() == [False, True, True]


def test_masked_or_not_is_the_same_without_padding() -> None:
    first = TOKENS.of(torch.tensor([0]))
    found, expected = (encoder(masked=masked)(vectors(), first) for masked in (True, False))
    torch.testing.assert_close(found, expected)


def test_the_order_of_the_pieces_does_not_matter() -> None:
    shuffled = Tokens(
        TOKENS.anchors[:, [2, 0, 1]],
        TOKENS.distances[:, [2, 0, 1]],  # type: ignore[index]
        TOKENS.relations[:, [1, 0]],
    )
    torch.testing.assert_close(encoder()(vectors(), shuffled), encoder()(vectors(), TOKENS))


def test_a_node_of_nothing_but_padding_is_the_zero_vector() -> None:
    nothing = Tokens(
        torch.full((1, 3), PAD), torch.full((1, 3), NONE), torch.full((1, 2), NO_RELATION)
    )
    assert encoder()(vectors(), nothing).tolist() == [[0.0] * DIM]


def copied_layer(layer: TransformerLayer) -> nn.TransformerEncoderLayer:
    """PyTorch's own layer with the same weights: post-norm, ReLU, no dropout."""
    theirs = nn.TransformerEncoderLayer(DIM, HEADS, HIDDEN, 0.0, batch_first=True).double()
    weights = {
        "self_attn.in_proj_weight": layer.project.weight,
        "self_attn.in_proj_bias": layer.project.bias,
        "self_attn.out_proj.weight": layer.merge.weight,
        "self_attn.out_proj.bias": layer.merge.bias,
        "linear1.weight": layer.widen.weight,
        "linear1.bias": layer.widen.bias,
        "linear2.weight": layer.narrow.weight,
        "linear2.bias": layer.narrow.bias,
        "norm1.weight": layer.attention_norm.weight,
        "norm1.bias": layer.attention_norm.bias,
        "norm2.weight": layer.norm.weight,
        "norm2.bias": layer.norm.bias,
    }
    theirs.load_state_dict({name: value.detach() for name, value in weights.items()})
    return theirs


def random_pieces() -> Tensor:
    return torch.randn(4, 5, DIM, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def test_a_layer_is_that_of_pytorch() -> None:
    layer = encoder().layers[0]
    assert isinstance(layer, TransformerLayer)
    pieces = random_pieces()
    everything = torch.ones(4, 5, dtype=torch.bool)
    torch.testing.assert_close(layer(pieces, everything), copied_layer(layer)(pieces))


def test_a_masked_layer_is_that_of_pytorch_where_there_are_pieces() -> None:
    layer = encoder().layers[0]
    assert isinstance(layer, TransformerLayer)
    pieces, is_piece = random_pieces(), torch.tensor([[True] * 3 + [False] * 2] * 4)
    found = layer(pieces, is_piece)[is_piece]
    expected = copied_layer(layer)(pieces, src_key_padding_mask=~is_piece)[is_piece]
    torch.testing.assert_close(found, expected)


def test_layers_follow_each_other_and_the_mean_comes_last() -> None:
    model, first = encoder(), TOKENS.of(torch.tensor([0]))
    pieces = vectors().of(first)
    for layer in model.layers:
        assert isinstance(layer, TransformerLayer)
        pieces = copied_layer(layer)(pieces)
    torch.testing.assert_close(model(vectors(), first), pieces.mean(dim=1))


def test_heads_that_do_not_divide_the_size_are_refused() -> None:
    with pytest.raises(InputError, match="must be a multiple of"):
        EncoderSettings(kind="transformer", dim=50, heads=4)
