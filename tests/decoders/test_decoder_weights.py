"""A decoder with weights of its own: trained with the model, saved with it, used by every form."""

import copy
import pickle
from dataclasses import replace

import pytest
import torch
from tests.decoders.test_link_model import DIM, link_model
from tests.extending.toy_decoder import PROJECTED, Projection
from torch import Tensor, nn

from nodepiece.decoders import pairwise_distances
from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.triple_scores import DECODERS
from nodepiece.encoders.parameters import use_generator
from nodepiece.errors import InputError


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> LinkModel:
    monkeypatch.setitem(DECODERS, "projected", PROJECTED)
    return link_model("projected")


def test_its_weights_are_parameters_of_the_model(trained: LinkModel) -> None:
    names = [name for name in trained.state_dict() if name.startswith("decoder_weights")]

    assert names[:2] == ["decoder_weights.linear.weight", "decoder_weights.linear.bias"]


def test_all_tails_are_scored_as_single_facts_are(trained: LinkModel) -> None:
    trained.eval()
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
    trained.eval()
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


@pytest.mark.parametrize("candidates", ["tails", "relations"])
def test_dropout_and_batch_norm_in_training_are_those_of_one_call(
    candidates: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pairwise_distances.CHUNK_CELLS, "cpu", 1)  # a candidate in each chunk
    generator = torch.Generator().manual_seed(0)
    query, other = (torch.randn(3, 1, DIM, generator=generator) for _ in range(2))
    rows = torch.randn(5, DIM, generator=generator)

    def gradients(in_chunks: bool) -> list[Tensor]:
        weights = PROJECTED.new_weights(DIM, torch.Generator().manual_seed(1))
        assert isinstance(weights, Projection)
        use_generator(weights, torch.Generator().manual_seed(2))
        decoder = PROJECTED.with_weights(weights)
        if candidates == "tails":
            fast, arguments = decoder.score_all_tails, (query, other, rows)
        else:
            fast, arguments = decoder.score_all_relations, (query, rows, other)
        first, second = query[:, 0], other[:, 0]
        scores = fast(first, second, rows) if in_chunks else decoder.score(*arguments)
        scores.square().sum().backward()  # type: ignore[no-untyped-call]
        assert weights.norm.num_batches_tracked == 1
        return [each.grad for each in weights.parameters() if each.grad is not None]

    torch.testing.assert_close(gradients(in_chunks=True), gradients(in_chunks=False))


def test_weights_out_of_training_are_called_in_chunks(
    trained: LinkModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pairwise_distances.CHUNK_CELLS, "cpu", 1)
    trained.eval()
    assert trained.decoder_weights is not None
    calls: list[None] = []
    trained.decoder_weights.register_forward_hook(lambda *_: calls.append(None))
    first = torch.tensor([0])

    with torch.no_grad():
        trained.score_all_tails(first, first, trained.node_vectors())

    assert len(calls) == trained.num_nodes


def test_dropout_of_pytorch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = replace(PROJECTED, make_weights=lambda dim, generator: nn.Dropout(0.5))
    monkeypatch.setitem(DECODERS, "projected", decoder)

    with pytest.raises(InputError, match="draws from PyTorch's global generator"):
        link_model("projected")
