"""A drop-in replacement of the embedding lookup: node ids in, node vectors out."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from nodepiece.encoders.bag_sum import Bags, bags_of_width, sum_members
from nodepiece.encoders.gated_sum import GatedSumEncoder
from nodepiece.encoders.mlp import MLPEncoder
from nodepiece.encoders.parameters import use_generator, xavier
from nodepiece.encoders.pieces import PieceCounts, PieceTables, Tokens, TokenTensors
from nodepiece.encoders.transformer import TransformerEncoder
from nodepiece.errors import InputError
from nodepiece.tokenizer.tokens import TokenTable

Encoder = MLPEncoder | GatedSumEncoder | TransformerEncoder

NODES_AT_ONCE = 2**16  # encoded together where all nodes are and no gradient is wanted
KEPT_ROWS = 2**24  # of the bags of all nodes: more take too long to sort


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
    factorized: bool | None = None  # MLP: None: whichever is less work

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


class NodePieceEmbedding(nn.Module):
    """Node vectors computed from the pieces of a token table.

    Called like nn.Embedding: ids of any shape give vectors of that shape and `dim`; an id that is
    not a row of the table is an IndexError, on a GPU a device assertion. `all_nodes()` gives every
    node's vector at once. `tables.relations` are the relations' own vectors, shared with a decoder
    that wants them. Dropout draws from `generator`; a model moved to a GPU needs one there, which
    `nodepiece.use_generator` gives it.
    """

    def __init__(
        self, table: TokenTable, settings: EncoderSettings, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.token_tensors = TokenTensors(table)
        self.counts = self.token_tensors.counts
        self.num_embeddings, self.embedding_dim = table.num_nodes, settings.dim
        self.tables = PieceTables(self.counts, settings.dim, generator=generator)
        self.factorized = settings.factorized
        self.encoder = make_encoder(self.counts, settings, generator=generator)
        use_generator(self, generator)
        self._training_tokens: Tokens | None = None  # None: the canonical ones
        self._bags: dict[bool, tuple[Bags, Bags]] = {}  # of all nodes; key: for training or not

    def forward(self, nodes: Tensor) -> Tensor:
        encoder, flat = self.encoder, nodes.flatten()
        if not flat.is_cuda:  # where this would wait for the device, and the rows are checked there
            check_ids(flat, self.num_embeddings)
        if isinstance(encoder, TransformerEncoder) or not self._pays_to_factorize(len(flat)):
            encoded = encoder(self.tables.vectors(), self._tokens_of(flat))
        else:
            bags = self._bags_of(encoder, flat)
            encoded = encoder.factorized(self.tables.vectors(), bags, bags.transposed())
        return encoded.view(*nodes.shape, self.embedding_dim)

    def encode_rows(self, anchors: Tensor, distances: Tensor, relations: Tensor) -> Tensor:
        """The vectors of nodes that the table lacks, (num_rows, dim), from rows like its own."""
        encoder, vectors = self.encoder, self.tables.vectors()
        tokens = self.token_tensors.of_rows(anchors, distances, relations)
        if isinstance(encoder, TransformerEncoder) or not self._pays_to_factorize(len(anchors)):
            return encoder(vectors, tokens)
        bags = encoder.product_rows(tokens)
        return encoder.factorized(vectors, bags, bags.transposed())

    def all_nodes(self) -> Tensor:
        """(num_nodes, dim); where no gradient is wanted, nothing else grows with the nodes."""
        is_inference = not (self.training or torch.is_grad_enabled())
        if is_inference and self.num_embeddings > NODES_AT_ONCE:
            return self._all_in_chunks()
        vectors = self.tables.vectors()
        if not isinstance(self.encoder, TransformerEncoder) and self._pays_to_factorize(
            self.num_embeddings
        ):
            return self.encoder.factorized(vectors, *self._bags_of_all(self.encoder))
        return self.encoder(vectors, self._tokens())

    def use_training_tokens(self, tokens: Tokens) -> None:
        """Train with these tokens from now on; in evaluation the canonical ones stay in use.

        They are written to where the last ones were, so a recorded CUDA graph sees them.
        """
        mine = self._training_tokens
        if mine is None or mine.anchors.device != tokens.anchors.device:
            self._training_tokens = tokens.clone()
            self._bags.pop(True, None)
            return
        mine.copy_from(tokens)
        if True in self._bags and not isinstance(self.encoder, TransformerEncoder):
            fresh = self.encoder.product_rows(mine)
            for bags, new in zip(self._bags[True], (fresh, fresh.transposed()), strict=True):
                bags.copy_from(new)

    def _all_in_chunks(self) -> Tensor:
        vectors, encoder = self.tables.vectors(), self.encoder
        products: Tensor | None = None
        if not isinstance(encoder, TransformerEncoder) and self._pays_to_factorize(
            self.num_embeddings
        ):
            products = encoder.products(vectors)
        encoded = vectors.relations.new_empty(self.num_embeddings, self.embedding_dim)
        for start in range(0, self.num_embeddings, NODES_AT_ONCE):
            chunk = slice(start, start + NODES_AT_ONCE)
            tokens = self._tokens_of(chunk)
            if products is None or isinstance(encoder, TransformerEncoder):
                encoded[chunk] = encoder(vectors, tokens)
            else:
                sums = sum_members(products, encoder.product_rows(tokens))
                encoded[chunk] = encoder.from_sums(sums)
        return encoded

    def _tokens_of(self, nodes: Tensor | slice) -> Tokens:
        if self.training and self._training_tokens is not None:
            return self._training_tokens.of(nodes)
        return self.token_tensors.of(nodes)

    def _tokens(self) -> Tokens:
        if self.training and self._training_tokens is not None:
            return self._training_tokens
        return self.token_tensors.tokens()

    def _bags_of(self, encoder: MLPEncoder | GatedSumEncoder, nodes: Tensor) -> Bags:
        """The bags of some nodes: copied, where those of all nodes are not too many to keep."""
        counts = self.counts
        if counts.num_nodes * (2 * counts.anchors_per_node + counts.relations_per_node) > KEPT_ROWS:
            return encoder.product_rows(self._tokens_of(nodes))
        bags = self._bags_of_all(encoder)[0]
        rows = bags.members.view(bags.num_bags, -1).index_select(0, nodes)
        return bags_of_width(rows, bags.num_rows)

    def _bags_of_all(self, encoder: MLPEncoder | GatedSumEncoder) -> tuple[Bags, Bags]:
        """The bags of the whole table: made once, and again when the model changes its device."""
        key = self.training and self._training_tokens is not None
        device = self.token_tensors.relations.device
        if key not in self._bags or self._bags[key][0].members.device != device:
            bags = encoder.product_rows(self._tokens())
            self._bags[key] = (bags, bags.transposed())
        return self._bags[key]

    def _pays_to_factorize(self, num_nodes: int) -> bool:
        """One row of products costs what one piece of one node does the plain way."""
        if self.factorized is not None:
            return self.factorized
        if isinstance(self.encoder, TransformerEncoder):
            return False
        return self.encoder.num_products < num_nodes * self.counts.num_pieces


def check_ids(nodes: Tensor, num_nodes: int) -> None:
    """Refuse ids outside of a table, whichever way they would be encoded."""
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
) -> Encoder:
    """From the pieces of a node to its vector."""
    if settings.kind in FACTORIZED:
        return FACTORIZED[settings.kind](
            counts,
            settings.dim,
            settings.hidden_dim,
            dropout=settings.dropout,
            generator=generator,
        )
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


class LookupEmbedding(nn.Module):
    """A trained vector for every node: the shallow baseline."""

    def __init__(self, num_nodes: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_nodes, dim
        self.vectors = xavier(num_nodes, dim, generator=generator)

    def forward(self, nodes: Tensor) -> Tensor:
        return embedding(nodes, self.vectors)

    def all_nodes(self) -> Tensor:
        return self.vectors


FACTORIZED: dict[str, type[MLPEncoder] | type[GatedSumEncoder]] = {
    "mlp": MLPEncoder,
    "gated-sum": GatedSumEncoder,
}
ENCODERS = (*FACTORIZED, "transformer", "lookup")
