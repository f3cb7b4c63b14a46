"""What a plan says beforehand is what comes out."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.tasks.couples import couples, experiment

from nodepiece.encoders.parameters import num_parameters
from nodepiece.settings import Experiment, load_experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.plan import LIKELY_DISTANCE, Sizes, count_parameters, plan, shallow, sizes_of
from nodepiece.tasks.tokens import NO_ANCHORS
from nodepiece.tasks.trial import count_steps, seconds_to_rank, try_out
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.batches import QueryBatches

EXPERIMENT = experiment()
WIKIKG2 = Sizes(2_500_604, 16_109_182, 535, 598_543)


def tokens(chosen: Experiment) -> TokenTable:
    rng, graph = np.random.default_rng(0), couples().train
    settings = NO_ANCHORS if chosen.encoder.kind == "lookup" else chosen.tokenizer
    return tokenize(graph, fit_vocabulary(graph, settings, rng=rng), rng=rng)


@pytest.mark.parametrize("kind", ["mlp", "gated-sum", "transformer", "lookup"])
def test_parameters_are_those_of_the_model_but_for_distances(kind: str) -> None:
    chosen = replace(EXPERIMENT, encoder=replace(EXPERIMENT.encoder, kind=kind))
    table = tokens(chosen)
    model = LinkPrediction(chosen, couples()).build_model(table)
    surplus = 0
    if kind != "lookup":
        surplus = (LIKELY_DISTANCE - int(table.distances.max())) * chosen.encoder.dim
    assert count_parameters(chosen, sizes_of(couples())) == num_parameters(model) + surplus


def test_the_papers_parameters_up_to_special_rows() -> None:
    """Published: 20,006 rows for anchors, 23 for distances, 1,071 for relations, the MLP, 2 more.

    Six of the first are special tokens, of which we have two; we have a row for "no distance".
    With as many distances (0 to 22) ours are 602 fewer.
    """
    published = (20_006 + 23 + 1_071) * 200 + (32 * 200 + 1) * 400 + (400 + 1) * 200 + 2
    assert published == 6_860_602
    missing_distances = (22 - LIKELY_DISTANCE) * 200
    found = count_parameters(load_experiment("wikikg2-paper"), WIKIKG2) + missing_distances
    assert found == 6_860_000 == published - 4 * 200 + 200 - 2


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("wikikg2-paper-no-relations", 5.9),
        ("wikikg2-paper-no-distances", 6.9),
        ("wikikg2-paper-relations-only", 1.3),
        ("wikikg2-autosf", 500),
        ("wikikg2-pairre", 501),
        ("wikikg2-rotate", 1251),
        ("wikikg2-transe", 1251),
    ],
)
def test_the_rows_of_the_papers_table_have_its_sizes(name: str, millions: float) -> None:
    found = count_parameters(load_experiment(name), WIKIKG2) / 1e6
    assert found == pytest.approx(millions, abs=max(0.05, 0.002 * millions))


def test_a_vector_for_every_node_takes_more_of_everything_but_tokens() -> None:
    chosen = load_experiment("wikikg2-paper")
    pieces, lookup = plan(chosen, WIKIKG2), plan(shallow(chosen), WIKIKG2)
    assert lookup.parameters > 70 * pieces.parameters
    assert lookup.training > 3 * pieces.training
    assert pieces.token_table == 2_500_604 * (20 * 6 + 12 * 4)
    assert lookup.token_table == 0


@pytest.mark.parametrize("loss", ["cross-entropy", "self-adversarial"])
def test_the_number_of_steps_is_that_of_the_batches(loss: str) -> None:
    chosen = experiment(loss=loss, epochs=3)
    task = LinkPrediction(chosen, couples())
    model = task.build_model(tokens(chosen))
    trainer = task.make_trainer(model, generator=torch.Generator())
    assert isinstance(trainer.batches, QueryBatches) == (loss == "cross-entropy")
    assert count_steps(chosen, sizes_of(couples())) == 3 * trainer.batches.num_batches


@pytest.mark.parametrize("loss", ["cross-entropy", "self-adversarial"])
@pytest.mark.parametrize("is_shallow", [False, True])
def test_a_trial_times_every_stage(
    loss: str, is_shallow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.tasks.trial.TRIAL_NODES", 300)
    sizes = Sizes(num_nodes=1_000, num_facts=5_000, num_relations=3, num_test_facts=10)
    chosen = experiment(loss=loss)
    chosen = shallow(chosen) if is_shallow else chosen
    rng = np.random.default_rng(0)
    duration = try_out(chosen, sizes, torch.device("cpu"), rng=rng)
    assert (duration.tokenizing > 0) == (not is_shallow)
    assert duration.step > 0
    assert duration.ranking > 0
    assert duration.training == duration.step * duration.num_steps


def test_ranking_is_timed_among_the_nodes_and_facts_that_the_experiment_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nodepiece.tasks.trial.seconds_of", lambda work: (work(), 1.0)[1])
    monkeypatch.setattr("nodepiece.tasks.trial.TRIAL_NODES", 100)
    sizes = Sizes(num_nodes=1_000, num_facts=5_000, num_relations=3, num_test_facts=64)

    def seconds(**evaluation: object) -> float:
        judged = replace(EXPERIMENT.evaluation, **evaluation)  # type: ignore[arg-type]
        chosen, rng = replace(EXPERIMENT, evaluation=judged), np.random.default_rng(0)
        return seconds_to_rank(chosen, sizes, torch.device("cpu"), rng=rng)

    # Ten times 100 nodes are encoded in 10 s; 64 queries take 1 s, ten times that among all.
    assert seconds(candidates="given") == pytest.approx(10 + 2)
    assert seconds(candidates="all") == pytest.approx(10 + 20)
    assert seconds(candidates="all", test_facts=32) == pytest.approx(10 + 10)


def test_weights_of_facts_are_counted() -> None:
    chosen = load_experiment("wikikg2-paper")
    without = replace(chosen, training=replace(chosen.training, subsampling=False))
    surplus = plan(chosen, WIKIKG2).training - plan(without, WIKIKG2).training
    assert surplus == 2 * 4 * WIKIKG2.num_facts
