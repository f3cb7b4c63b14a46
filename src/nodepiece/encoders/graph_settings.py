"""Settings of message passing."""

from dataclasses import dataclass, fields
from typing import ClassVar

from nodepiece.encoders.composition import COMPOSITIONS
from nodepiece.errors import InputError

KINDS = ("mean", "compgcn")
AGGREGATIONS = ("sum", "pna")
SHARED = ("kind", "layers", "dropout", "edge_dropout")  # the other settings are CompGCN's


@dataclass(frozen=True)
class GraphLayerSettings:
    """Message passing over the graph, on top of the node vectors."""

    kind: str = "mean"  # "mean": plain layers of means; "compgcn": the paper's
    layers: int = 0  # 0: none
    dropout: float = 0.1  # on the update of a mean layer, the messages of CompGCN; in [0, 1)
    # share left out of a step, in [0, 1): of edges; in mean layers of (target, relation) pairs
    edge_dropout: float = 0.0
    composition: str = "rotate"  # of neighbour and relation: "rotate", "multiply" or "subtract"
    attention_heads: int = 4  # dim must be a multiple of it; 0: a graph convolution's fixed weights
    attention_dropout: float = 0.1  # on the weights of attention, in [0, 1)
    # slope of attention's leaky ReLU, in [0, 1]; published: 0.2 for classification, 0.1 for links
    attention_slope: float = 0.2
    layer_dropout: float = 0.0  # on what comes out of a layer, in [0, 1)
    aggregation: str = "sum"  # or "pna": mean, deviation, smallest and largest at three scales
    residual: bool = False  # a layer adds to the node vectors, in place of replacing them
    jumping_knowledge: bool = False  # the vectors after all layers, side by side, projected twice
    fused: bool = True  # False: messages by PyTorch Geometric, with the same result

    switch: ClassVar[str] = "layers"  # the setting that is 0 where there are no layers

    def __post_init__(self) -> None:
        for key, value, choices in (
            ("kind", self.kind, KINDS),
            ("composition", self.composition, tuple(COMPOSITIONS)),
            ("aggregation", self.aggregation, AGGREGATIONS),
        ):
            if value not in choices:
                raise InputError(
                    f"graph.{key} = {value!r} is not known; it is one of {', '.join(choices)}"
                )
        for key in ("dropout", "edge_dropout", "attention_dropout", "layer_dropout"):
            if not 0 <= getattr(self, key) < 1:
                raise InputError(f"graph.{key} must be in [0, 1), got {getattr(self, key)}")
        if not 0 <= self.attention_slope <= 1:
            raise InputError(f"graph.attention_slope must be in [0, 1], got {self.attention_slope}")
        for key in ("layers", "attention_heads"):
            if getattr(self, key) < 0:
                raise InputError(f"graph.{key} must be 0 or more, got {getattr(self, key)}")
        if self.kind != "compgcn":
            self._refuse_compgcn_settings()

    def _refuse_compgcn_settings(self) -> None:
        for key in fields(self):
            if key.name not in SHARED and getattr(self, key.name) != key.default:
                raise InputError(
                    f"graph.{key.name} would do nothing with graph.kind = {self.kind!r}; set "
                    'graph.kind = "compgcn", or leave it out'
                )

    def check_dim(self, dim: int) -> None:
        """Refuse a size of node vectors that CompGCN cannot cut into heads or complex numbers."""
        parts = max(1, self.attention_heads)
        if dim % parts:
            raise InputError(
                f"encoder.dim = {dim} must be a multiple of graph.attention_heads = {parts}"
            )
        if self.composition == "rotate" and dim % 2:
            raise InputError(f"encoder.dim = {dim} must be even for graph.composition = 'rotate'")
