"""The edges that a batch hides."""

import torch

from nodepiece.training.hidden_edges import hidden_together

# 0 -> 1, 1 -> 0, 1 -> 2, 2 -> 2, and the inverses in the same order
FACTS = torch.tensor([[0, 0, 1], [1, 1, 0], [1, 1, 2], [2, 0, 2]])
EDGES = torch.cat([FACTS, torch.stack([FACTS[:, 2], FACTS[:, 1] + 2, FACTS[:, 0]], dim=1)])
NONE = len(EDGES)


def test_facts_are_hidden_with_their_inverses_and_nothing_else() -> None:
    hidden = hidden_together(EDGES, 3, pairs=False)
    assert hidden.mask_without(torch.tensor([0, 6, NONE])).tolist() == [0, 1, 0, 1, 0, 1, 0, 1]


def test_all_edges_between_two_nodes_are_hidden_together() -> None:
    hidden = hidden_together(EDGES, 3, pairs=True)
    assert hidden.mask_without(torch.tensor([5, NONE])).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert hidden.mask_without(torch.tensor([3])).tolist() == [1, 1, 1, 0, 1, 1, 1, 0]


def test_padding_hides_nothing() -> None:
    for pairs in (False, True):
        hidden = hidden_together(EDGES, 3, pairs=pairs)
        assert hidden.mask_without(torch.tensor([NONE, NONE])).tolist() == [1] * NONE
