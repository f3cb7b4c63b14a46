"""The study of anchors behind the figures."""

import numpy as np
import pytest

from nodepiece.data.embedded import load_countries
from nodepiece.errors import InputError
from nodepiece.report.anchor_figures import draw_grid, draw_numbers, draw_strategies
from nodepiece.report.anchor_study import AnchorStudy, StudySettings, study_anchors
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.statistics import describe_tokens
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

SETTINGS = StudySettings(40, 8, 6, anchor_numbers=(5, 20, 40), per_node=(4, 8))


@pytest.fixture(scope="module")
def study() -> AnchorStudy:
    return study_anchors(load_countries().train, SETTINGS, name="countries")


def test_every_way_to_choose_anchors_is_there_once(study: AnchorStudy) -> None:
    assert [(each.strategy, each.select) for each in study.by_strategy] == [
        (strategy, select)
        for strategy in ("mix", "degree", "PageRank", "random")
        for select in ("nearest", "random")
    ]
    assert [(each.num_anchors, each.select) for each in study.by_number] == [
        (number, select) for number in (20, 40) for select in ("nearest", "random")
    ]
    grid = [(each.num_anchors, each.anchors_per_node) for each in study.grid]
    assert grid == [(5, 4), (20, 4), (20, 8), (40, 4), (40, 8)]


def test_the_numbers_are_those_of_tokenizing(study: AnchorStudy) -> None:
    graph, rng = load_countries().train, np.random.default_rng(0)
    settings = TokenizerSettings(num_anchors=20, anchors_per_node=4, relations_per_node=6)
    vocabulary = fit_vocabulary(graph, settings, rng=rng)
    expected = describe_tokens(tokenize(graph, vocabulary, rng=rng))

    found = study.grid[1]

    assert found.histogram == expected.distance_histogram
    assert found.mean_distance == expected.mean_distance
    assert found.distinct_hashes == expected.distinct_hashes / graph.num_nodes


def test_nearest_anchors_are_nearer_than_random_ones(study: AnchorStudy) -> None:
    means = [each.mean_distance or 0.0 for each in study.by_strategy]
    assert all(nearest < other for nearest, other in zip(means[::2], means[1::2], strict=True))


def test_figures_show_the_means(study: AnchorStudy) -> None:
    for draw, found in ((draw_strategies, study.by_strategy), (draw_numbers, study.by_number)):
        shown = [text.get_text() for axes in draw(study).axes for text in axes.texts]
        assert shown == [f"mean {each.mean_distance:.2f}" for each in found]


def test_the_grid_has_a_number_in_every_cell(study: AnchorStudy) -> None:
    far, distinct = draw_grid(study).axes
    assert {text.get_text() for text in far.texts} == {
        f"{each.mean_distance:.2f}" for each in study.grid
    }
    assert len(distinct.texts) == len(study.grid)


def test_progress_gets_the_tokenizations_done_and_in_all() -> None:
    calls: list[tuple[int, int]] = []
    settings = StudySettings(5, 2, anchor_numbers=(5,), per_node=(2,))
    study_anchors(
        load_countries().train,
        settings,
        name="countries",
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(number, 11) for number in range(1, 12)]


def test_more_anchors_than_nodes_are_refused() -> None:
    with pytest.raises(InputError, match="5,000 anchors were asked of 831 nodes"):
        study_anchors(load_countries().train, StudySettings(5000), name="countries")


def test_a_node_cannot_have_more_anchors_than_there_are() -> None:
    with pytest.raises(InputError, match="20 of 10 anchors"):
        StudySettings(10, 20)
