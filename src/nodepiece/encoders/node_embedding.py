"""A drop-in replacement of the embedding lookup: node ids in, node vectors out."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from nodepiece.encoders.bag_sum import Bags, bags_of_width, sum_members
from nodepiece.encoders.gated_sum import GatedSumEncoder
from nodepiece.encoders.lookup_embedding import LookupEmbedding, NodeEmbedding
from nodepiece.encoders.mlp import MLPEncoder
from nodepiece.encoders.parameters import use_generator
from nodepiece.encoders.pieces import PieceCounts, PieceTables, Tokens, TokenTensors
from nodepiece.encoders.rows_in_use import RowsInUse
from nodepiece.encoders.transformer import TransformerEncoder
from nodepiece.errors import InputError
from nodepiece.tokenizer.tokens import TokenTable

FactorizedEncoder = MLPEncoder | GatedSumEncoder

NODES_AT_ONCE = 2**16  # chunk size for encoding all nodes without a gradient
NUMBERS_AT_ONCE = 2**21  # of the pieces of a chunk, where they are not shared between nodes
PRODUCTS_PER_NODE = 0.25  # at most, without a gradient, so that the vectors take the most memory
KEPT_ROWS = 2**24  # limit for keeping the bags of all nodes: more take too long to sort


@dataclass(frozen=True)
class EncoderSettings:
    """How pieces become a node vector."""

    kind: str = "mlp"  # a name in ENCODERS; "lookup": a trained vector for every node
    dim: int = 200  # d, of pieces and of node vectors
    hidden_dim: int = 400  # width of the hidden layer
    layers: int = 2  # of the Transformer; the MLP has two
    heads: int = 4  # of the Transformer's attention
    dropout: float = 0.1  # inside the encoder, in [0, 1)
    masked: bool = True  # Transformer: leave padding out; False: as published
    zero_padding: bool = False  # [PAD] of relations is the zero vector, as published, not trained
    factorized: bool | None = None  # MLP: multiply each piece once; None: if that is less work

    def __post_init__(self) -> None:
        if self.kind not in ENCODERS:
            raise InputError(f"unknown encoder {self.kind!r}; it is one of {', '.join(ENCODERS)}")
        for key, count in (
            ("dim", self.dim),
            ("hidden_dim", self.hidden_dim),
            ("layers", self.layers),
            ("heads", self.heads),
        ):
            if count < 1:
                raise InputError(f"encoder.{key} must be at least 1, got {count}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"encoder.dropout must be in [0, 1), got {self.dropout}")
        if self.kind == "transformer" and self.dim % self.heads:
            raise InputError(
                f"encoder.dim = {self.dim} must be a multiple of encoder.heads = {self.heads}"
            )

    @property
    def has_pieces(self) -> bool:
        """Whether vectors are computed from pieces; False: each node has a trained one."""
        return ENCODERS[self.kind] is not None


class NodePieceEmbedding(NodeEmbedding):
    """Node vectors computed from the pieces of a token table.

    Called like nn.Embedding: ids of any shape give vectors of that shape and `dim`; an id that is
    not a row of the table is an IndexError, on a GPU a device assertion. `all_nodes()` returns the
    vectors of all nodes. `relation_table` has the vectors of relations, which a decoder may share.
    Dropout draws from `generator`; a model moved to a GPU needs one there, set with
    `nodepiece.use_generator`.
    """

    token_tensors: TokenTensors

    def __init__(
        self, table: TokenTable, settings: EncoderSettings, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.token_tensors = TokenTensors(table)
        self.counts = self.token_tensors.counts
        self.num_embeddings, self.embedding_dim = table.num_nodes, settings.dim
        self.tables = PieceTables(
            self.counts, settings.dim, zero_padding=settings.zero_padding, generator=generator
        )
        self.factorized = settings.factorized
        self.encoder = make_encoder(self.counts, settings, generator=generator)
        use_generator(self, generator)
        self._training_tokens: Tokens | None = None  # None: the canonical ones
        self._bags: dict[bool, tuple[Bags, Bags]] = {}  # of all nodes; key: for training or not

    def __repr__(self) -> str:
        counts, encoder = self.counts, type(self.encoder).__name__
        return (
            f"NodePieceEmbedding({self.num_embeddings}, {self.embedding_dim}: "
            f"{counts.anchors_per_node} anchors of {counts.num_anchors} and "
            f"{counts.relations_per_node} relations of {counts.num_relations} a node, {encoder})"
        )

    def forward(self, nodes: Tensor) -> Tensor:
        """The vectors of nodes: (...,) of ids -> (..., dim)."""
        flat = nodes.flatten()
        if not flat.is_cuda:  # where this would wait for the device, and the rows are checked there
            check_ids(flat, self.num_embeddings)
        encoder = self._factorized(len(flat))
        if self.training and self.rows_in_use is not None:
            encoded = self._encode_rows_in_use(self.rows_in_use, flat)
        elif encoder is None:
            encoded = self.encoder(self.tables.vectors(), self._tokens_of(flat))
        else:
            bags = self._bags_of(encoder, flat)
            encoded = encoder.factorized(self.tables.vectors(), bags, bags.transposed())
        return encoded.view(*nodes.shape, self.embedding_dim)

    def at_places(self, nodes: Tensor, places: Tensor) -> Tensor:
        """See NodeEmbedding; the MLP, whose pieces have no dropout, adds up those of a node once.

        nodes: (num_nodes,), places: (...) -> (..., dim).
        """
        if not isinstance(self.encoder, MLPEncoder) or self.rows_in_use is not None:
            return super().at_places(nodes, places)
        if not nodes.is_cuda:
            check_ids(nodes, self.num_embeddings)
        vectors = self.tables.vectors()
        if self._factorized(len(nodes)) is None:
            hidden = self.encoder.hidden_layer(vectors, self._tokens_of(nodes))
        else:
            bags = self._bags_of(self.encoder, nodes)
            hidden = self.encoder.factorized_hidden(vectors, bags, bags.transposed())
        return self.encoder.finish(embedding(places, hidden))

    def _encode_rows_in_use(self, used: RowsInUse, nodes: Tensor) -> Tensor:
        """Encode nodes with a small table of their anchors in place of that of all anchors."""
        tokens, vectors = self._tokens_of(nodes), self.tables.vectors()
        anchors, place = used.look_up(tokens.anchors)
        return cast(
            Tensor,
            self.encoder(replace(vectors, anchors=anchors), replace(tokens, anchors=place)),
        )

    @property
    def relation_table(self) -> nn.Parameter:
        """The vectors of relations as pieces, inverses included."""
        return self.tables.relations

    @property
    def start_table(self) -> nn.Parameter:
        """The vectors of anchors."""
        return self.tables.anchors

    @property
    def rows_per_node(self) -> int:
        """How many rows of `start_table` a node uses; 0: none, or their numbers matter too."""
        has_sum = factorized_form(self.encoder) is not None  # others look for the number of [PAD]
        return self.counts.anchors_per_node if has_sum else 0

    def encode_rows(self, anchors: Tensor, distances: Tensor, relations: Tensor) -> Tensor:
        """The vectors of nodes outside the table, from their token rows: (num_rows, dim)."""
        encoder, vectors = self._factorized(len(anchors)), self.tables.vectors()
        tokens = self.token_tensors.of_rows(anchors, distances, relations)
        if encoder is None:
            return self.encoder(vectors, tokens)
        bags = encoder.product_rows(tokens)
        return encoder.factorized(vectors, bags, bags.transposed())

    def without_rows(self) -> "NodePieceEmbedding":
        """The weights without the token table, for `encode_rows` in another process."""
        encoder = copy(self)
        encoder._modules = {**self._modules, "token_tensors": self.token_tensors.without_rows()}
        encoder._bags, encoder._training_tokens = {}, None
        return encoder

    def all_nodes(self) -> Tensor:
        """All node vectors, (num_nodes, dim); without a gradient, encoded chunk by chunk."""
        is_inference = not (self.training or torch.is_grad_enabled())
        is_large = self.num_embeddings > NODES_AT_ONCE
        if is_inference and (is_large or self._has_many_products()):
            return self._all_in_chunks()
        vectors = self.tables.vectors()
        encoder = self._factorized(self.num_embeddings)
        if encoder is not None:
            return encoder.factorized(vectors, *self._bags_of_all(encoder))
        return self.encoder(vectors, self._tokens())

    def use_training_tokens(self, tokens: Tokens) -> None:
        """Train with these tokens from now on; evaluation still uses the canonical ones.

        They are copied to the memory of the last ones, so a captured CUDA graph uses them.
        """
        mine = self._training_tokens
        if mine is None or mine.anchors.device != tokens.anchors.device:
            self._training_tokens = tokens.clone()
            self._bags.pop(True, None)
            return
        mine.copy_from(tokens)
        encoder = factorized_form(self.encoder)
        if True in self._bags and encoder is not None:
            fresh = encoder.product_rows(mine)
            for bags, new in zip(self._bags[True], (fresh, fresh.transposed()), strict=True):
                bags.copy_from(new)

    def use_training_rows(self, anchors: Tensor, distances: Tensor, relations: Tensor) -> None:
        """Train with these rows of tokens from now on; evaluation uses the canonical ones."""
        self.use_training_tokens(self.token_tensors.of_rows(anchors, distances, relations))

    def _all_in_chunks(self) -> Tensor:
        vectors, encoder = self.tables.vectors(), self._factorized(self.num_embeddings)
        if self._has_many_products():
            encoder = None
        products = None if encoder is None else encoder.products(vectors)
        at_once = NODES_AT_ONCE
        if products is None:
            each = self.counts.num_pieces * self.embedding_dim
            at_once = max(1, min(NODES_AT_ONCE, NUMBERS_AT_ONCE // max(1, each)))
        encoded = vectors.relations.new_empty(self.num_embeddings, self.embedding_dim)
        for start in range(0, self.num_embeddings, at_once):
            chunk = slice(start, start + at_once)
            tokens = self._tokens_of(chunk)
            if products is None or encoder is None:
                encoded[chunk] = self.encoder(vectors, tokens)
            else:
                sums = sum_members(products, encoder.product_rows(tokens))
                encoded[chunk] = encoder.from_sums(sums)
        return encoded

    def _has_many_products(self) -> bool:
        """Whether products would take much memory without saving much work.

        In a graph of long distances a gated sum has many: one for each anchor and distance.
        """
        if self.factorized is not None or not isinstance(self.encoder, GatedSumEncoder):
            return False
        limit = max(NODES_AT_ONCE, PRODUCTS_PER_NODE * self.num_embeddings)
        return self.encoder.num_products > limit

    def _tokens_of(self, nodes: Tensor | slice) -> Tokens:
        if self.training and self._training_tokens is not None:
            return self._training_tokens.of(nodes)
        return self.token_tensors.of(nodes)

    def _tokens(self) -> Tokens:
        if self.training and self._training_tokens is not None:
            return self._training_tokens
        return self.token_tensors.tokens()

    def _bags_of(self, encoder: FactorizedEncoder, nodes: Tensor) -> Bags:
        """The bags of some nodes, copied from those of all nodes if these are kept."""
        counts = self.counts
        if counts.num_nodes * (2 * counts.anchors_per_node + counts.relations_per_node) > KEPT_ROWS:
            return encoder.product_rows(self._tokens_of(nodes))
        bags = self._bags_of_all(encoder)[0]
        rows = bags.members.view(bags.num_bags, -1).index_select(0, nodes)
        return bags_of_width(rows, bags.num_rows)

    def _bags_of_all(self, encoder: FactorizedEncoder) -> tuple[Bags, Bags]:
        """The bags of all nodes: made once, and again when the model moves to another device."""
        key = self.training and self._training_tokens is not None
        device = self.token_tensors.relations.device
        if key not in self._bags or self._bags[key][0].members.device != device:
            bags = encoder.product_rows(self._tokens())
            self._bags[key] = (bags, bags.transposed())
        return self._bags[key]

    def _factorized(self, num_nodes: int) -> FactorizedEncoder | None:
        """The encoder, if it has a factorized form that is less work for this many nodes.

        A row of products costs as much as a piece of a node costs otherwise.
        """
        encoder = factorized_form(self.encoder)
        if encoder is None or self.factorized is False:
            return None
        pays = encoder.num_products < num_nodes * self.counts.num_pieces
        return encoder if self.factorized or pays else None


def check_ids(nodes: Tensor, num_nodes: int) -> None:
    """Raise an IndexError for ids that are not in a table of `num_nodes` rows."""
    if not len(nodes):
        return
    lowest, highest = (int(end) for end in nodes.aminmax())
    if lowest < 0 or highest >= num_nodes:
        raise IndexError(
            f"node id {lowest if lowest < 0 else highest} is not in the table; its {num_nodes} "
            f"nodes have ids from 0 to {num_nodes - 1}"
        )


def make_encoder(
    counts: PieceCounts, settings: EncoderSettings, *, generator: torch.Generator
) -> nn.Module:
    """The encoder that the settings name: PieceVectors, Tokens -> (batch, dim)."""
    make = ENCODERS[settings.kind]
    if make is None:
        raise InputError(f"encoder.kind = {settings.kind!r} has no pieces; set it to mlp")
    return make(counts, settings, generator)


def make_node_embedding(
    table: TokenTable, settings: EncoderSettings, *, generator: torch.Generator
) -> NodeEmbedding:
    """The module that gives node vectors: from pieces, or from a table with one for every node."""
    if settings.has_pieces:
        return NodePieceEmbedding(table, settings, generator=generator)
    return LookupEmbedding(table.num_nodes, settings.dim, generator=generator)


def factorized_form(encoder: nn.Module) -> FactorizedEncoder | None:
    """The encoder if it has a factorized form, which sums products shared between nodes."""
    return encoder if isinstance(encoder, FactorizedEncoder) else None


def make_mlp(
    counts: PieceCounts, settings: EncoderSettings, generator: torch.Generator
) -> MLPEncoder:
    sizes = settings.dim, settings.hidden_dim
    return MLPEncoder(counts, *sizes, dropout=settings.dropout, generator=generator)


def make_gated_sum(
    counts: PieceCounts, settings: EncoderSettings, generator: torch.Generator
) -> GatedSumEncoder:
    sizes = settings.dim, settings.hidden_dim
    return GatedSumEncoder(counts, *sizes, dropout=settings.dropout, generator=generator)


def make_transformer(
    counts: PieceCounts, settings: EncoderSettings, generator: torch.Generator
) -> TransformerEncoder:
    return TransformerEncoder(
        counts,
        settings.dim,
        settings.hidden_dim,
        num_layers=settings.layers,
        num_heads=settings.heads,
        dropout=settings.dropout,
        masked=settings.masked,
        generator=generator,
    )


MakeEncoder = Callable[[PieceCounts, EncoderSettings, torch.Generator], nn.Module]

ENCODERS: dict[str, MakeEncoder | None] = {
    "mlp": make_mlp,
    "gated-sum": make_gated_sum,
    "transformer": make_transformer,
    "lookup": None,  # a trained vector for every node, and no pieces
}
