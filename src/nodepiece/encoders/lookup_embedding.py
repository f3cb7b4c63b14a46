"""The interface of node vectors, and the simplest implementation: a table of trained vectors."""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from nodepiece.encoders.parameters import xavier
from nodepiece.encoders.pieces import Tokens, TokenTensors
from nodepiece.encoders.rows_in_use import RowsInUse
from nodepiece.errors import InputError

NO_PIECES = (
    "this run has a trained vector for every node, and none for new nodes or facts; train a "
    "run with pieces for that, such as encoder.kind = mlp"
)


class NodeEmbedding(nn.Module):
    """Node vectors by id, called like nn.Embedding; the one interface that models and tasks use."""

    num_embeddings: int
    embedding_dim: int
    token_tensors: TokenTensors | None  # of all nodes; None: no pieces
    rows_in_use: RowsInUse | None = None  # how training looks up `start_table`; None: as a whole

    @property
    def has_pieces(self) -> bool:
        """Whether vectors are computed from pieces, so that new nodes can have one."""
        return self.token_tensors is not None

    @property
    def relation_table(self) -> nn.Parameter | None:
        """The vectors of relation pieces, (num_relations, dim), which a decoder may share."""
        return None

    @property
    def start_table(self) -> nn.Parameter:
        """The vectors of nodes or anchors that `decoder.start_range` initializes."""
        raise NotImplementedError

    @property
    def rows_per_node(self) -> int:
        """How many rows of `start_table` a node uses; 0: none, or their numbers matter too."""
        return 0

    def all_nodes(self) -> Tensor:
        """The vectors of all nodes: (num_nodes, dim)."""
        raise NotImplementedError

    def at_places(self, nodes: Tensor, places: Tensor) -> Tensor:
        """The vectors of nodes[places], each place with dropout masks of its own: (..., dim)."""
        vectors: Tensor = self(nodes[places])
        return vectors

    def encode_rows(self, anchors: Tensor, distances: Tensor, relations: Tensor) -> Tensor:
        """The vectors of nodes that the table lacks, (num_rows, dim), from rows like its own."""
        raise InputError(NO_PIECES)

    def without_rows(self) -> "NodeEmbedding":
        """The weights without the token table, for `encode_rows` in another process."""
        raise InputError(NO_PIECES)

    def use_training_tokens(self, tokens: Tokens) -> None:
        """Train with these tokens from now on; in evaluation the canonical ones stay in use."""
        raise InputError(NO_PIECES)

    def use_training_rows(self, anchors: Tensor, distances: Tensor, relations: Tensor) -> None:
        """Train with the tokens of these rows, one for every node, from now on."""
        raise InputError(NO_PIECES)


class LookupEmbedding(NodeEmbedding):
    """A trained vector for every node: the shallow baseline."""

    def __init__(self, num_nodes: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_nodes, dim
        self.token_tensors = None
        self.vectors = xavier(num_nodes, dim, generator=generator)

    def forward(self, nodes: Tensor) -> Tensor:
        if self.training and self.rows_in_use is not None:
            rows, place = self.rows_in_use.look_up(nodes)
            return embedding(place, rows)
        return embedding(nodes, self.vectors)

    @property
    def start_table(self) -> nn.Parameter:
        return self.vectors

    @property
    def rows_per_node(self) -> int:
        return 1

    def all_nodes(self) -> Tensor:
        return self.vectors
