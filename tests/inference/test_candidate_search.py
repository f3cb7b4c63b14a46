"""Missing facts in two stages: candidates by vectors and by linked pairs, then their scores."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from benchmarks.planted_graphs import GraphSizes, planted_split
from tests.golden.write import STORED_RUNS
from tests.inference.test_discover import with_probabilities
from tests.inference.test_with_facts import NEW, trained
from tests.tasks.couples import experiment

from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.propagation import PropagationSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.errors import InputError
from nodepiece.inference import candidate_search, discover, pair_search
from nodepiece.inference.candidate_search import (
    Plan,
    by_links,
    candidates_of_relation,
    edge_estimates,
    fact_scores,
    followed_pairs,
)
from nodepiece.inference.discover import BY_CANDIDATES, EXACT, DiscoverSettings, scope_of
from nodepiece.inference.fact_search import allowed_facts
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.pair_search import NOTHING
from nodepiece.inference.run import load, load_links
from nodepiece.inference.search_progress import SearchProgress
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment

WALKS = WalkSettings(steps=2, counts=False, max_degree=30)
SCORERS: dict[str, dict[str, Any]] = {
    "walks of reached nodes": {"walks": WALKS},
    "walks with counts": {"walks": WalkSettings(steps=2)},
    "propagation": {"propagation": PropagationSettings(layers=2, dim=4)},
    "both": {"walks": WALKS, "propagation": PropagationSettings(layers=2, dim=4)},
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> FactRun:
    """A run on a generated graph with rules, with walks of the nodes that they reach."""
    dataset = planted_split(GraphSizes(250, 1500, 8), seed=0)
    settings = replace(experiment(epochs=4, hide_targets=True), walks=WALKS)
    folder = tmp_path_factory.mktemp("planted") / "run"
    run_experiment(LinkPrediction(settings, dataset), RunOptions(folder, torch.device("cpu")))
    return load_links(folder)


@pytest.fixture(scope="module")
def couples_run(tmp_path_factory: pytest.TempPathFactory) -> FactRun:
    settings = replace(experiment(epochs=2, hide_targets=True), walks=WALKS)
    return trained(tmp_path_factory.mktemp("couples") / "run", settings)


def facts_of(table: pa.Table) -> list[tuple[str, str, str]]:
    return [(row["head"], row["relation"], row["tail"]) for row in table.to_pylist()]


def check_same(found: pa.Table, expected: pa.Table) -> None:
    """The same facts, though nearly equal ones may change places."""
    for name in ("score", "probability"):
        if name in expected.column_names:
            np.testing.assert_allclose(
                found[name].to_numpy(), expected[name].to_numpy(), rtol=1e-4, atol=1e-4
            )
    assert len(set(facts_of(found))) == len(found) == len(expected)


@pytest.mark.parametrize("name", SCORERS)
def test_with_all_facts_as_candidates_the_result_is_exact(name: str, tmp_path: Path) -> None:
    run = trained(
        tmp_path / "run", replace(experiment(epochs=1, hide_targets=True), **SCORERS[name])
    )

    found, exact = (run.discover(top=300, exact=exact) for exact in (False, True))

    check_same(found, exact)


@pytest.mark.parametrize("name", ["walks", "inductive"])
def test_stored_runs_are_searched_by_candidates_too(name: str) -> None:
    run = fact_run(load(STORED_RUNS / name))

    check_same(run.discover(top=30, exact=False), run.discover(top=30, exact=True))


def test_few_candidates_have_nearly_all_of_the_best_facts(
    planted: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recall of the best 50 of all missing facts, with 100 candidates a relation."""
    monkeypatch.setattr(candidate_search, "A_RELATION", 50)
    monkeypatch.setattr(candidate_search, "TIMES_TOP", 5)
    exact = facts_of(planted.discover(top=50, exact=True))

    found = facts_of(planted.discover(top=50, exact=False))

    assert len(set(exact) & set(found)) / len(exact) >= 0.9


def test_each_kind_of_candidates_finds_facts_that_the_other_misses(
    planted: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidate_search, "A_RELATION", 10)
    monkeypatch.setattr(candidate_search, "TIMES_TOP", 1)
    both = set(facts_of(planted.discover(top=100, exact=False)))
    monkeypatch.setattr(candidate_search, "by_links", lambda *_: NOTHING)

    alone = set(facts_of(planted.discover(top=100, exact=False)))

    assert both - alone and both & alone


def test_scores_of_candidates_are_those_of_all_scores(planted: FactRun) -> None:
    table = planted.discover(top=40, exact=False)

    scores = planted.score(facts_of(table))["score"].to_numpy()

    np.testing.assert_allclose(table["score"].to_numpy(), scores, rtol=1e-4, atol=1e-4)


def test_the_estimate_of_a_linked_pair_is_the_score_of_walks_of_one_step(tmp_path: Path) -> None:
    settings = replace(
        experiment(epochs=1, hide_targets=True), walks=WalkSettings(steps=1, counts=False)
    )
    run = trained(tmp_path / "run", settings)
    snapshot = run.snapshot
    linked, vectors = snapshot.candidates.linked_pairs, snapshot.vectors_alone()
    assert vectors is not None
    for relation in (0, 1):
        triples = candidate_search.triples_of(linked, np.arange(len(linked)), relation)
        estimates, is_part = edge_estimates(snapshot, relation, linked)

        expected = fact_scores(snapshot, vectors, triples)

        scores = candidate_search.vector_fact_scores(vectors, triples)
        found = candidate_search.combined(estimates, scores, is_part=is_part)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_longer_walks_only_add_to_the_estimate(couples_run: FactRun) -> None:
    snapshot = couples_run.snapshot
    linked, vectors = snapshot.candidates.linked_pairs, snapshot.vectors_alone()
    assert vectors is not None
    triples = candidate_search.triples_of(linked, np.arange(len(linked)), 0)
    estimates, is_part = edge_estimates(snapshot, 0, linked)

    scores = fact_scores(snapshot, vectors, triples)

    of_vectors = candidate_search.vector_fact_scores(vectors, triples)
    found = candidate_search.combined(estimates, of_vectors, is_part=is_part)
    assert (scores >= found - 1e-4).all() and (scores > found + 1e-4).any()


def test_without_an_estimate_linked_pairs_come_by_the_confidence_of_rules(tmp_path: Path) -> None:
    settings = replace(
        experiment(epochs=1, hide_targets=True), propagation=PropagationSettings(layers=1, dim=4)
    )
    snapshot = trained(tmp_path / "run", settings).snapshot
    linked, names = snapshot.candidates.linked_pairs, snapshot.dataset.names

    estimates, is_part = edge_estimates(snapshot, 0, linked)

    place = {(h, t): n for n, (h, t) in enumerate(zip(linked.heads, linked.tails, strict=True))}
    person = [names.node_id(f"person {n}") for n in (38, 39)]
    town = names.node_id("town 0")
    assert not is_part
    assert estimates[place[person[0], person[1]]] == 1.0  # it has the relation itself
    # Of 30 pairs with the inverse, one for each fact, the 20 of couples with both facts have it.
    assert estimates[place[person[1], person[0]]] == pytest.approx(20 / 30)
    assert estimates[place[person[1], town]] == -np.inf  # nobody is married to a town


def test_linked_pairs_keep_to_the_limits(planted: FactRun) -> None:
    snapshot = planted.snapshot
    names = snapshot.dataset.names
    chosen = names.relation(3)
    settings = DiscoverSettings(relations=[chosen], heads=[names.node(n) for n in range(200)])
    scope, vectors = scope_of(snapshot, settings), snapshot.vectors_alone()
    assert vectors is not None

    found = by_links(
        snapshot,
        scope,
        3,
        vectors,
        followed_pairs(snapshot),
        Plan(1000, walk_steps=2),
        allowed_facts(snapshot, NOTHING),
        SearchProgress(),
    )

    assert len(found) and (found[:, 1] == 3).all() and (found[:, 0] < 200).all()
    assert not snapshot.candidates.known_tails.contains(found).any()
    assert np.isin(found[:, 2], snapshot.candidates.seen_tails(3)).all()


def test_a_search_that_would_take_long_has_candidates_and_says_so(
    couples_run: FactRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert couples_run.discover(top=5).schema.metadata == {b"search": EXACT.encode()}
    monkeypatch.setattr(discover, "FEW_QUERIES", 3)
    monkeypatch.setattr(discover, "LONG_SECONDS", 0.0)

    table = couples_run.discover(top=5)

    assert table.schema.metadata == {b"search": BY_CANDIDATES.encode()}
    num_queries = len(np.unique(couples_run.dataset.train.triples[:, :2], axis=0))
    said = f"so only candidates are scored among the facts of {num_queries} queries, in about 1 s"
    assert said in caplog.text and "may miss some facts" in caplog.text
    caplog.clear()
    table = couples_run.discover(top=5, exact=True)
    assert table.schema.metadata == {b"search": EXACT.encode()}
    assert "may miss some facts" not in caplog.text


def test_vectors_alone_are_searched_exactly_whatever_is_asked_for(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", experiment(epochs=1))

    table = run.discover(top=5, exact=False)

    assert table.schema.metadata == {b"search": EXACT.encode()}


def test_without_products_of_vectors_there_are_no_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(
        experiment(epochs=1, hide_targets=True), decoder=DecoderSettings("transe-l1"), walks=WALKS
    )
    run = trained(tmp_path / "run", settings)
    monkeypatch.setattr(discover, "FEW_QUERIES", 3)
    monkeypatch.setattr(discover, "LONG_SECONDS", 0.0)

    assert run.discover(top=5).schema.metadata == {b"search": EXACT.encode()}
    with pytest.raises(InputError, match="leave out --approximate"):
        run.discover(top=5, exact=False)


@pytest.mark.parametrize("per_node", [1, 3])
def test_a_node_occurs_in_a_few_facts_at_most(
    planted: FactRun, per_node: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidate_search, "TIMES_TOP_OF_RELATION", 1000)  # nearly all facts
    table = planted.discover(top=30, per_node=per_node, exact=False)

    ends = Counter(table["head"].to_pylist() + table["tail"].to_pylist())
    assert max(ends.values()) <= per_node and len(table) == 30
    check_same(table, planted.discover(top=30, per_node=per_node, exact=True))


def test_with_a_calibration_they_come_by_probability(
    couples_run: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.inference.calibration.probabilities", with_probabilities)

    for per_node in (None, 2):
        found, exact = (
            couples_run.discover(top=25, per_node=per_node, exact=exact) for exact in (False, True)
        )
        check_same(found, exact)


def test_limits_and_assumed_facts_hold_for_candidates(couples_run: FactRun) -> None:
    assumed = couples_run.with_facts(NEW)
    heads = ["person 40", "person 3"]
    options: dict[str, Any] = {"relations": ["lives in"], "min_score": -1e9}

    found, exact = (
        assumed.discover(top=50, heads=heads, any_candidate=True, exact=exact, **options)
        for exact in (False, True)
    )

    check_same(found, exact)
    assert set(found["head"].to_pylist()) == set(heads)
    least = exact["score"][3].as_py() - 1e-3
    options["min_score"] = least
    assert (
        len(assumed.discover(top=50, heads=heads, any_candidate=True, exact=False, **options)) == 4
    )


def stop_after(number: int) -> Iterator[bool]:
    yield from [False] * number
    while True:
        yield True


@pytest.mark.parametrize("number", [0, 3, 12])
def test_a_stopped_search_has_the_best_candidates_so_far(
    planted: FactRun, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidate_search, "QUERIES_AT_ONCE", 16)
    seen: list[tuple[int, int]] = []
    stops = stop_after(number)

    table = planted.discover(
        top=20,
        exact=False,
        progress=lambda *numbers: seen.append(numbers),
        should_stop=lambda: next(stops),
    )

    done, total = seen[-1]
    assert done < total and (len(table) > 0) == (done > 0)


def test_progress_ends_with_all_queries_of_candidates(
    planted: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidate_search, "QUERIES_AT_ONCE", 64)
    seen: list[tuple[int, int]] = []

    planted.discover(top=20, exact=False, progress=lambda *numbers: seen.append(numbers))

    assert seen[-1][0] == seen[-1][1] > 64
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_search_stopped_among_the_vectors_of_a_relation_has_their_best_facts(
    planted: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_search, "ROWS", 16)
    seen: list[tuple[int, int]] = []

    table = planted.discover(
        top=5,
        exact=False,
        relations=[planted.dataset.names.relation(0)],
        progress=lambda *numbers: seen.append(numbers),
        should_stop=lambda: bool(seen) and seen[-1][0] >= 16,
    )

    assert [done for done, _ in seen] == [0, 16]
    scores = planted.score(facts_of(table))["score"].to_numpy()
    assert len(table) == 5
    np.testing.assert_allclose(table["score"].to_numpy(), scores, rtol=1e-4, atol=1e-4)


def test_a_search_stopped_among_walks_has_what_walks_found(
    planted: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidate_search, "WALKS_AT_ONCE", 8)
    monkeypatch.setattr(candidate_search, "by_vectors", lambda *_: NOTHING)
    seen: list[tuple[int, int]] = []

    table = planted.discover(
        top=1000,
        exact=False,
        relations=[planted.dataset.names.relation(0)],
        progress=lambda *numbers: seen.append(numbers),
        should_stop=lambda: bool(seen) and seen[-1][0] >= 16,
    )

    assert [done for done, _ in seen] == [0, 8, 16] and len(table) > 0


def test_a_search_stopped_before_it_began_finds_nothing_and_states_no_time(
    planted: FactRun, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(planted.discover(top=5, exact=False, should_stop=lambda: True)) == 0
    assert not caplog.records


def test_walks_in_parts_find_what_they_find_at_once(
    planted: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = planted.discover(top=30, exact=False)
    monkeypatch.setattr(candidate_search, "WALKS_AT_ONCE", 3)

    check_same(planted.discover(top=30, exact=False), found)


def test_where_vectors_take_too_long_those_of_a_part_are_searched_and_the_table_says_so(
    planted: FactRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = lambda _snapshot, _scope, _number, share, _progress: 1000 * share  # noqa: E731
    monkeypatch.setattr(candidate_search, "seconds_of_vectors", seconds)
    seen: list[tuple[int, int]] = []

    table = planted.discover(top=20, exact=False, progress=lambda *each: seen.append(each))

    said = "of 1 in 4 queries, as all would take too long"
    assert table.schema.metadata == {
        b"search": BY_CANDIDATES.encode(),
        b"vectors": said.encode(),
    }
    assert f"the best facts by the vectors alone ({said})" in caplog.text
    assert "in about 4 minutes" in caplog.text  # 250 s and more
    assert seen[-1][0] == seen[-1][1] and len(table) == 20


def test_the_time_of_vectors_grows_with_the_queries_and_tails_of_all_relations(
    planted: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timed queries take 3 s, of which 1 s is before the first one."""
    times = iter([3.0, 1.0])
    monkeypatch.setattr(candidate_search, "seconds_of", lambda _: next(times))
    snapshot = planted.snapshot
    scope = scope_of(snapshot, DiscoverSettings())
    sizes = [
        (len(scope.heads(snapshot, each)), len(scope.tails(snapshot, each)))
        for each in scope.relations
    ]

    seconds = candidate_search.seconds_of_vectors(snapshot, scope, 300, 1.0, SearchProgress())

    heads, tails = max(sizes, key=lambda size: size[0] * size[1])
    expected = sum(1.0 * t / tails + 2.0 * (h / heads) * (t / tails) for h, t in sizes)
    assert seconds == pytest.approx(expected)


def test_candidates_of_few_queries_are_described_as_such(
    planted: FactRun, caplog: pytest.LogCaptureFixture
) -> None:
    names = planted.dataset.names
    head = names.node(int(planted.dataset.train.triples[0, 0]))
    relation = names.relation(int(planted.dataset.train.triples[0, 1]))

    planted.discover(top=5, exact=False, heads=[head], relations=[relation], per_node=2)

    assert "scored among the facts of 1 query, in about 1 s for each round of" in caplog.text
    assert "are not scored" not in caplog.text


def test_there_are_several_times_as_many_candidates_as_facts_are_wanted() -> None:
    assert candidates_of_relation(1000, 1) == 20_000
    assert candidates_of_relation(1000, 40) == 2000
    assert candidates_of_relation(20, 40) == 300
    assert candidates_of_relation(20, 5000) == 40


def test_walks_have_as_many_steps_as_there_is_time_for(
    planted: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = planted.snapshot
    scope = scope_of(snapshot, DiscoverSettings())
    assert candidate_search.walk_steps(snapshot, scope) == WALKS.steps

    monkeypatch.setattr(candidate_search, "WALKING_SECONDS", 0.0)

    assert candidate_search.walk_steps(snapshot, scope) == 0


def test_walks_find_the_best_tails_of_each_query(planted: FactRun) -> None:
    snapshot = planted.snapshot
    scope, walks = scope_of(snapshot, DiscoverSettings()), snapshot.scorers.listed()[0]
    heads, names = scope.heads(snapshot, 2)[:20], snapshot.dataset.names

    scores, triples = candidate_search.walked_tails(snapshot, scope, 2, heads, WALKS.steps)

    with torch.no_grad():
        given = torch.from_numpy(heads), torch.full((len(heads),), 2)
        every = walks(*given, snapshot.path_graph()).numpy()
    tails = set(scope.tails(snapshot, 2).tolist())
    for row, head in enumerate(heads.tolist()):
        mine = triples[:, 0] == head
        known = set(planted.known(head=names.node(head), relation=names.relation(2)))
        possible = [t for t in tails if t != head and names.node(t) not in known]
        reached = sorted(
            (every[row, t] for t in possible if every[row, t] > every[row].min() + 1e-5),
            reverse=True,
        )
        np.testing.assert_allclose(scores[mine], reached[:16], rtol=1e-4)
