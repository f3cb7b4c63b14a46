"""A decoder with weights of its own: trained with the model, saved with it, used by every form."""

import copy
import pickle

import pytest
import torch
from tests.decoders.test_link_model import DIM, link_model
from tests.extending.toy_decoder import PROJECTED
from torch import Tensor, nn

from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.triple_scores import DECODERS


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> LinkModel:
    monkeypatch.setitem(DECODERS, "projected", PROJECTED)
    return link_model("projected")


def test_its_weights_are_parameters_of_the_model(trained: LinkModel) -> None:
    names = [name for name in trained.state_dict() if name.startswith("decoder_weights")]

    assert names == ["decoder_weights.weight", "decoder_weights.bias"]


def test_all_tails_are_scored_as_single_facts_are(trained: LinkModel) -> None:
    heads, relations = torch.tensor([0, 2]), torch.tensor([1, 0])
    vectors = trained.node_vectors()
    every = torch.arange(trained.num_nodes).expand(2, -1)

    torch.testing.assert_close(
        trained.score_all_tails(heads, relations, vectors),
        trained.score_candidates(heads, relations, every, vectors),
    )


def test_a_loss_has_gradients_for_its_weights(trained: LinkModel) -> None:
    first = torch.tensor([0])
    loss = trained.score_all_relations(first, first, trained.node_vectors()).sum()
    loss.backward()  # type: ignore[no-untyped-call]

    weights = trained.decoder_weights
    assert weights is not None
    gradient = next(weights.parameters()).grad
    assert gradient is not None and gradient.shape == (DIM, DIM) and gradient.abs().sum() > 0


def test_a_copied_or_pickled_model_scores_with_weights_of_its_own(trained: LinkModel) -> None:
    first = torch.tensor([0])

    def scores(each: LinkModel) -> Tensor:
        return each.score_all_tails(first, first, each.node_vectors()).detach()

    before = scores(trained)
    others = copy.deepcopy(trained), pickle.loads(pickle.dumps(trained))
    for parameter in trained.parameters():
        nn.init.zeros_(parameter)

    for other in others:
        torch.testing.assert_close(scores(other), before)
    assert not scores(trained).any()
