"""A model small enough to check by hand, over a graph of five nodes."""

import torch

from nodepiece.decoders.link_model import DecoderSettings, LinkModel
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.lookup_embedding import LookupEmbedding

# 0 --a--> 1 --a--> 2, 0 --a--> 3, 3 --b--> 4; relations a = 0, b = 1, and their inverses 2, 3
FACTS = torch.tensor([[0, 0, 1], [1, 0, 2], [0, 0, 3], [3, 1, 4]])
EDGES = torch.cat([FACTS, torch.stack([FACTS[:, 2], FACTS[:, 1] + 2, FACTS[:, 0]], dim=1)])
NUM_NODES, NUM_RELATIONS, DIM = 5, 4, 4  # inverses included


def tiny_model(
    kind: str = "distmult", *, query_dropout: float = 0.0, seed: int = 0, walks: int = 0
) -> LinkModel:
    generator = torch.Generator().manual_seed(seed)
    return LinkModel(
        LookupEmbedding(NUM_NODES, DIM, generator=generator),
        EDGES,
        NUM_RELATIONS,
        DecoderSettings(kind, query_dropout=query_dropout),
        GraphLayerSettings(),
        (WalkSettings(steps=walks),),
        generator=generator,
    )
