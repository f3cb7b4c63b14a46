import math
from functools import partial

import pytest
import torch
from tests.decoders.path_scores import path_scores
from tests.training.tiny_models import EDGES, NUM_NODES, NUM_RELATIONS, tiny_model
from torch import Tensor
from torch.nn import functional

from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.triple_scores import DECODERS
from nodepiece.decoders.walks import Walks, WalkSettings
from nodepiece.errors import InputError
from nodepiece.training import objectives
from nodepiece.training.batches import FactBatch, QueryBatch
from nodepiece.training.distribution import Processes
from nodepiece.training.hidden_edges import hidden_together
from nodepiece.training.losses import softplus_loss
from nodepiece.training.objectives import (
    corrupted_ends,
    one_vs_all_loss,
    path_loss,
    sampled_negatives_loss,
)
from nodepiece.training.settings import OneVsAllSettings, SampledSettings, TrainingSettings

# Three queries: (0, a) has the answers 1 and 3, (3, b) has 4, (2, inverse of a) has 1.
# The last two of five places are empty.
HEADS, RELATIONS = torch.tensor([0, 3, 2]), torch.tensor([0, 1, 2])
ANSWERS = torch.tensor([[0, 0, 1, 2, 0, 0], [1, 3, 4, 1, 0, 0]], dtype=torch.int32)
WEIGHT = torch.tensor([1.0, 1, 1, 1, 0, 0])
BATCH = QueryBatch(HEADS, RELATIONS, ANSWERS, WEIGHT)
FACTS_OF_ANSWERS = [(0, 0, 1), (0, 0, 3), (3, 1, 4), (2, 2, 1)]


def dense_scores(model: LinkModel) -> Tensor:
    """Every query against every node, one fact at a time."""
    nodes, relations = model.node_vectors(), model.relation_vectors()
    return torch.stack(
        [
            torch.stack([model.decoder.score(nodes[h], relations[r], tail) for tail in nodes])
            for h, r in zip(HEADS, RELATIONS, strict=True)
        ]
    )


def assert_same_value_and_gradients(found: Tensor, expected: Tensor, model: LinkModel) -> None:
    torch.testing.assert_close(found, expected)
    parameters = list(model.parameters())
    gradients = [torch.autograd.grad(loss, parameters) for loss in (found, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("kind", ["distmult", "complex", "rotate"])
@pytest.mark.parametrize("smoothing", [0.0, 0.4])
def test_binary_cross_entropy_is_that_of_a_dense_matrix(kind: str, smoothing: float) -> None:
    model = tiny_model(kind)
    labels = torch.full((3, NUM_NODES), smoothing / (NUM_NODES - 1))
    labels[[0, 0, 1, 2], [1, 3, 4, 1]] = 1 - smoothing
    expected = functional.binary_cross_entropy_with_logits(dense_scores(model), labels)
    training, settings = TrainingSettings(loss="binary-cross-entropy"), OneVsAllSettings(smoothing)
    found = one_vs_all_loss(model, BATCH, training, settings)
    assert_same_value_and_gradients(found, expected, model)


@pytest.mark.parametrize("kind", ["distmult", "rotate"])
def test_cross_entropy_is_the_mean_over_facts(kind: str) -> None:
    model = tiny_model(kind)
    scores = dense_scores(model)
    losses = [-scores[row].log_softmax(0)[tail] for row, tail in [(0, 1), (0, 3), (1, 4), (2, 1)]]
    settings = TrainingSettings(loss="cross-entropy")
    found = one_vs_all_loss(model, BATCH, settings)
    assert_same_value_and_gradients(found, torch.stack(losses).mean(), model)


@pytest.mark.parametrize("kind", ["distmult", "complex"])
def test_predicting_the_relation_of_each_answer_adds_to_the_loss(kind: str) -> None:
    model = tiny_model(kind)
    nodes, relations = model.node_vectors(), model.relation_vectors()
    losses = []
    for head, relation, tail in FACTS_OF_ANSWERS:
        scores = torch.stack([model.decoder.score(nodes[head], r, nodes[tail]) for r in relations])
        assert len(scores) == NUM_RELATIONS
        losses.append(-scores.log_softmax(0)[relation])
    training = TrainingSettings(loss="cross-entropy")
    without = one_vs_all_loss(model, BATCH, training)
    found = one_vs_all_loss(model, BATCH, training, OneVsAllSettings(relation_weight=0.7))
    assert_same_value_and_gradients(found, without + 0.7 * torch.stack(losses).mean(), model)


def test_a_fact_is_asked_for_small_vectors() -> None:
    model = tiny_model()
    nodes, relations = model.node_vectors(), model.relation_vectors()
    cubes = [
        (part.abs() ** 3).sum() / 3
        for head, relation, tail in FACTS_OF_ANSWERS
        for part in (nodes[head], relations[relation], nodes[tail])
    ]
    training = TrainingSettings(loss="cross-entropy")
    without = one_vs_all_loss(model, BATCH, training)
    found = one_vs_all_loss(model, BATCH, training, OneVsAllSettings(regularization=0.2))
    assert_same_value_and_gradients(found, without + 0.2 * sum(cubes) / 4, model)


FACTS = FactBatch(
    torch.tensor([0, 3]), torch.tensor([0, 1]), torch.tensor([1, 4]), edges=torch.tensor([0, 1])
)


def sampled(num_negatives: int, seed: int = 3) -> Tensor:
    """What the loss draws from a generator in this state."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(NUM_NODES, (2, num_negatives), generator=generator)


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("num_negatives", [1, 4, 5])
@pytest.mark.parametrize("separate_masks", [False, True])
def test_half_of_the_negatives_are_tails_and_half_are_heads(
    kind: str, num_negatives: int, separate_masks: bool
) -> None:
    model = tiny_model(kind)
    nodes, relations = model.node_vectors(), model.relation_vectors()
    margin, num_tails = 2.0, math.ceil(num_negatives / 2)
    of_facts, of_negatives = [], []
    for fact, drawn in zip(zip(*FACTS[:3], strict=True), sampled(num_negatives), strict=True):
        head, relation, tail = (int(part) for part in fact)
        corrupted = [(head, node) for node in drawn[:num_tails].tolist()]
        corrupted += [(node, tail) for node in drawn[num_tails:].tolist()]
        score = model.decoder.score(nodes[head], relations[relation], nodes[tail])
        of_facts.append(functional.logsigmoid(margin + score))
        for h, t in corrupted:
            score = model.decoder.score(nodes[h], relations[relation], nodes[t])
            of_negatives.append(functional.logsigmoid(-score - margin))
    # The published loss: the mean over facts and the mean over all negatives, half and half.
    expected = -(torch.stack(of_facts).mean() + torch.stack(of_negatives).mean()) / 2
    settings = SampledSettings(margin, num_negatives, separate_masks=separate_masks)
    generator = torch.Generator().manual_seed(3)
    found = sampled_negatives_loss(model, FACTS, "self-adversarial", settings, generator=generator)
    assert_same_value_and_gradients(found, expected, model)


def test_heads_and_tails_of_negatives_are_given_or_drawn() -> None:
    generator = torch.Generator().manual_seed(3)
    nodes, places = corrupted_ends(FACTS, NUM_NODES, 4, generator=generator)
    drawn = sampled(4)
    heads = [
        [h, h, h, *row[2:].tolist()] for h, row in zip(FACTS.heads.tolist(), drawn, strict=True)
    ]
    tails = [
        [t, *row[:2].tolist(), t, t] for t, row in zip(FACTS.tails.tolist(), drawn, strict=True)
    ]
    assert nodes[places].tolist() == [heads, tails]


def test_processes_take_their_rows_of_the_ends_that_one_process_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes, places = corrupted_ends(FACTS, NUM_NODES, 4, generator=torch.Generator().manual_seed(3))
    for rank in (0, 1):
        own = FactBatch(*(part[rank : rank + 1] for part in FACTS[:4]))
        monkeypatch.setattr(objectives, "current_processes", partial(Processes, rank, 2))
        generator = torch.Generator().manual_seed(3)
        own_nodes, own_places = corrupted_ends(own, NUM_NODES, 4, generator=generator)
        assert torch.equal(own_nodes[own_places], nodes[places][:, rank : rank + 1])


def test_separate_masks_are_refused_for_shared_negatives() -> None:
    with pytest.raises(InputError, match=r"sampled.shared_negatives = false"):
        SampledSettings(shared_negatives=True, separate_masks=True)


@pytest.mark.parametrize("kind", DECODERS)
def test_shared_negatives_are_tails_of_every_fact(kind: str) -> None:
    model = tiny_model(kind)
    nodes, relations = model.node_vectors(), model.relation_vectors()
    drawn = torch.randint(NUM_NODES, (3,), generator=torch.Generator().manual_seed(3))
    scores = torch.stack(
        [
            torch.stack(
                [
                    model.decoder.score(nodes[head], relations[relation], nodes[node])
                    for node in (tail, *drawn.tolist())
                ]
            )
            for head, relation, tail in zip(*(part.tolist() for part in FACTS[:3]), strict=True)
        ]
    )
    expected = softplus_loss(scores[:, 0], scores[:, 1:], margin=2.0, temperature=0.0)
    generator = torch.Generator().manual_seed(3)
    settings = SampledSettings(margin=2.0, num_negatives=3, shared_negatives=True)
    found = sampled_negatives_loss(model, FACTS, "softplus", settings, generator=generator)
    torch.testing.assert_close(found, expected)


def test_negatives_are_uniform_over_all_nodes() -> None:
    drawn = sampled(5000)
    share = torch.bincount(drawn.flatten(), minlength=NUM_NODES) / drawn.numel()
    assert ((share - 0.2).abs() < 0.02).all()  # 5 deviations


def test_another_temperature_or_loss_is_another_loss() -> None:
    model = tiny_model()

    def loss(name: str = "self-adversarial", temperature: float = 0.0) -> float:
        chosen = SampledSettings(margin=1.0, temperature=temperature)
        generator = torch.Generator().manual_seed(0)
        return sampled_negatives_loss(model, FACTS, name, chosen, generator=generator).item()

    losses = [loss(), loss(temperature=50.0), loss("softplus"), loss("margin")]
    assert len(set(losses)) == 4


def test_a_walk_does_not_go_along_the_fact_that_is_asked_for() -> None:
    model = tiny_model(walks=1).double()
    head, relation = torch.tensor([3]), torch.tensor([1])  # of the fact 3, which leads to 4
    there = path_scores(model, head, relation)[0, 4] - path_scores(model, head, relation)[0, 2]
    hidden = torch.ones(8, dtype=torch.float64).index_fill_(0, torch.tensor([3, 7]), 0.0)
    away = path_scores(model, head, relation, hidden)
    assert there > 0.1  # beside 2, where no step leads
    assert away[0, 4] < path_scores(model, head, relation)[0, 4]


def test_the_loss_with_walks_is_that_of_both_scores_together() -> None:
    model = tiny_model(walks=2).double()
    batch = BATCH._replace(edges=torch.tensor([0, 8, 3, 5, 8, 8]), sample_weight=WEIGHT.double())
    settings = TrainingSettings(loss="cross-entropy", hide_targets=True)
    hidden = hidden_together(EDGES, 5, pairs=False)
    weight = torch.tensor([0, 0, 1, 0, 0, 0, 1, 0], dtype=torch.float64)  # fact 2 is visible
    scores = dense_scores(model) + path_scores(model, HEADS, RELATIONS, weight)
    rows = torch.tensor([0, 0, 1, 2])
    expected = functional.cross_entropy(scores[rows], torch.tensor([1, 3, 4, 1]))
    torch.testing.assert_close(
        one_vs_all_loss(model, batch, settings, hidden=hidden).double(),
        expected,
        rtol=1e-5,
        atol=1e-5,
    )


def test_edges_are_hidden_by_the_batch_and_by_a_mask() -> None:
    model = tiny_model(walks=2)
    batch = BATCH._replace(edges=torch.tensor([0, 8, 3, 5, 8, 8]))
    settings = TrainingSettings(loss="cross-entropy", hide_targets=True)
    groups, others = hidden_together(EDGES, 5, pairs=False), torch.tensor([2, 6])
    mask = torch.ones(8).index_fill_(0, others, 0.0)

    found = one_vs_all_loss(model, batch, settings, hidden=groups, edge_mask=mask)

    nothing = one_vs_all_loss(model, batch, settings, edge_mask=torch.zeros(8))
    torch.testing.assert_close(found, nothing)  # the batch hides all edges but 2 and 6


def test_walks_go_along_visible_edges_only() -> None:
    model = tiny_model(walks=2).double()
    batch = BATCH._replace(sample_weight=WEIGHT.double())
    visible = torch.ones(8, dtype=torch.float64).index_fill_(0, torch.tensor([2, 6]), 0.0)
    scores = dense_scores(model) + path_scores(model, HEADS, RELATIONS, visible)
    rows = torch.tensor([0, 0, 1, 2])
    expected = functional.cross_entropy(scores[rows], torch.tensor([1, 3, 4, 1]))
    loss = one_vs_all_loss(model, batch, TrainingSettings(loss="cross-entropy"), edge_mask=visible)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)


def test_apart_walks_and_vectors_each_have_a_loss_of_their_own() -> None:
    model = tiny_model(walks=2).double()
    walks = model.scorers["walks"]
    assert isinstance(walks, Walks)
    walks.settings = WalkSettings(2, separate_losses=True)
    batch = BATCH._replace(sample_weight=WEIGHT.double())
    rows, tails = torch.tensor([0, 0, 1, 2]), torch.tensor([1, 3, 4, 1])
    expected = functional.cross_entropy(dense_scores(model)[rows], tails)
    expected = expected + functional.cross_entropy(
        path_scores(model, HEADS, RELATIONS)[rows], tails
    )
    loss = one_vs_all_loss(model, batch, TrainingSettings(loss="cross-entropy"))
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)


def test_paths_can_be_trained_on_the_first_queries_only() -> None:
    model = tiny_model(walks=2).double()
    walks = model.scorers["walks"]
    assert isinstance(walks, Walks)
    walks.settings = WalkSettings(2, separate_losses=True)
    batch = BATCH._replace(
        sample_weight=WEIGHT.double(), edges=torch.zeros(len(WEIGHT), dtype=torch.int64)
    )
    rows, tails = torch.tensor([0, 0, 1, 2]), torch.tensor([1, 3, 4, 1])
    first, of_first = rows[:3], tails[:3]  # the answers of the first two queries
    expected = functional.cross_entropy(dense_scores(model)[rows], tails)
    expected = expected + functional.cross_entropy(
        path_scores(model, HEADS, RELATIONS)[first], of_first
    )
    settings = OneVsAllSettings(path_queries=2)
    loss = one_vs_all_loss(model, batch, TrainingSettings(loss="cross-entropy"), settings)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)


def test_paths_beside_a_sample_are_trained_on_the_first_facts_without_seeing_them() -> None:
    model, without = tiny_model(walks=2), tiny_model(walks=2)
    heads, relations, tails = EDGES[:3].T
    batch = FactBatch(heads, relations, tails, edges=torch.arange(3))
    loss = path_loss(model, batch, 2, hidden=lambda: hidden_together(EDGES, NUM_NODES, pairs=False))
    without.edges = EDGES[[2, 3, 6, 7]]  # the first two facts and their inverses left out
    scores = path_scores(without, heads[:2], relations[:2])
    expected = functional.cross_entropy(scores, tails[:2])
    torch.testing.assert_close(loss, expected.float(), rtol=1e-5, atol=1e-5)
