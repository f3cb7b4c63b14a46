"""The paper's other encoder: a Transformer over the pieces, averaged (section 3.3)."""

import torch
from torch import Tensor, nn

from nodepiece.encoders.parameters import Dropout, linear
from nodepiece.encoders.pieces import PieceCounts, PieceVectors, Tokens


class TransformerEncoder(nn.Module):
    """Post-norm Transformer layers without positions; the mean over the pieces.

    Padding is neither attended to nor averaged; `masked=False` does both, as published.
    """

    def __init__(
        self,
        counts: PieceCounts,
        dim: int,
        hidden_dim: int,
        *,
        num_layers: int,
        num_heads: int,
        dropout: float,
        masked: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.counts, self.masked = counts, masked
        self.layers = nn.ModuleList(
            TransformerLayer(dim, hidden_dim, num_heads, dropout=dropout, generator=generator)
            for _ in range(num_layers)
        )

    def forward(self, vectors: PieceVectors, tokens: Tokens) -> Tensor:
        pieces = vectors.of(tokens)  # (batch, k + m, dim)
        is_piece = self._is_piece(tokens)  # (batch, k + m)
        for layer in self.layers:
            pieces = layer(pieces, is_piece)
        weight = is_piece.to(pieces.dtype)[:, :, None]
        return (pieces * weight).sum(dim=1) / weight.sum(dim=1).clamp_min(1)

    def _is_piece(self, tokens: Tokens) -> Tensor:
        if not self.masked:
            return torch.ones(
                len(tokens.anchors),
                self.counts.num_pieces,
                dtype=torch.bool,
                device=tokens.anchors.device,
            )
        # [PAD] is the index after the anchors, and after the relations; [DISCONNECTED] is a piece.
        is_anchor = tokens.anchors != self.counts.num_anchors
        is_relation = tokens.relations != self.counts.num_relations
        return torch.cat([is_anchor, is_relation], dim=1)


class TransformerLayer(nn.Module):
    """Self-attention and a two-layer network, each added to its input and normalized after."""

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        num_heads: int,
        *,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.project = linear(dim, 3 * dim, generator=generator)
        self.merge = linear(dim, dim, generator=generator)
        self.widen = linear(dim, hidden_dim, generator=generator)
        self.narrow = linear(hidden_dim, dim, generator=generator)
        self.attention_norm, self.norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.dropout = Dropout(dropout)

    def forward(self, pieces: Tensor, is_piece: Tensor) -> Tensor:
        # (batch, num_pieces, dim), (batch, num_pieces) -> (batch, num_pieces, dim)
        pieces = self.attention_norm(pieces + self.dropout(self._attend(pieces, is_piece)))
        widened = self.dropout(self.widen(pieces).relu())
        return self.norm(pieces + self.dropout(self.narrow(widened)))

    def _attend(self, pieces: Tensor, is_piece: Tensor) -> Tensor:
        batch, num_pieces, dim = pieces.shape
        sizes = (3, self.num_heads, dim // self.num_heads)
        split = self.project(pieces).view(batch, num_pieces, *sizes)
        # each (batch, heads, num_pieces, head_dim)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(~is_piece[:, None, None, :], torch.finfo(scores.dtype).min)
        attended = self.dropout(scores.softmax(dim=-1)) @ value
        return self.merge(attended.transpose(1, 2).reshape(batch, num_pieces, dim))
