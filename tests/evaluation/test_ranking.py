from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.evaluation import ranking
from nodepiece.evaluation.known_answers import known_relations, known_tails
from nodepiece.evaluation.metrics import report_links, summarize
from nodepiece.evaluation.ranking import LinkRanks, filtered_ranks, rank_links, rank_relations
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

NUM_NODES, NUM_RELATIONS = 5, 2
ONE_ROW, PLENTY = 1, 2**30  # bytes
Facts = list[tuple[int, int, int]]
FACT = st.tuples(
    st.integers(0, NUM_NODES - 1), st.integers(0, NUM_RELATIONS - 1), st.integers(0, NUM_NODES - 1)
)
SCORES = st.sampled_from([-np.inf, -1.0, 0.0, 0.5])  # few values, so many ties


def as_triples(facts: Facts) -> IntArray:
    return np.array(facts, dtype=np.int32).reshape(-1, 3)


def look_up(table: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """A model that has its scores in a table (first, second, candidate)."""
    return lambda first, second: table[first, second]


def rank_by_hand(scores: list[float], target: int, known: set[int]) -> float:
    rivals = [s for node, s in enumerate(scores) if node != target and node not in known]
    better = sum(score > scores[target] for score in rivals)
    ties = sum(score == scores[target] for score in rivals)
    return 1 + better + ties / 2


def random_case(rng: np.random.Generator, size: int = 40) -> tuple[IntArray, IntArray, Tensor]:
    """Known facts, some of them to rank (with repetitions), and coarse scores."""
    limits = (NUM_NODES, NUM_RELATIONS, NUM_NODES)
    facts = rng.integers(0, limits, (size, 3)).astype(np.int32)
    table = rng.integers(0, 4, (NUM_NODES, 2 * NUM_RELATIONS, NUM_NODES))
    return facts, facts[rng.integers(0, size, size // 2)], torch.tensor(table).double()


def ranks_of(table: Tensor, triples: IntArray, facts: IntArray, budget: int = PLENTY) -> LinkRanks:
    known = known_tails(facts, NUM_NODES, NUM_RELATIONS)
    return rank_links(look_up(table), triples, known, memory_budget=budget, device="cpu")


@given(
    facts=st.lists(FACT, max_size=15),
    triples=st.lists(FACT, min_size=1, max_size=8),
    values=st.lists(
        SCORES,
        min_size=NUM_NODES * 2 * NUM_RELATIONS * NUM_NODES,
        max_size=NUM_NODES * 2 * NUM_RELATIONS * NUM_NODES,
    ),
    budget=st.sampled_from([ONE_ROW, 500, PLENTY]),
)
def test_link_ranks_are_those_counted_by_hand(
    facts: Facts, triples: Facts, values: list[float], budget: int
) -> None:
    table = torch.tensor(values).view(NUM_NODES, 2 * NUM_RELATIONS, NUM_NODES)
    ranks = ranks_of(table, as_triples(triples), as_triples(facts), budget)
    for position, (head, relation, tail) in enumerate(triples):
        known = {t for h, r, t in facts if (h, r) == (head, relation)}
        scores = table[head, relation].tolist()
        assert ranks.tail[position] == rank_by_hand(scores, tail, known)
        known = {h for h, r, t in facts if (t, r) == (tail, relation)}
        scores = table[tail, relation + NUM_RELATIONS].tolist()
        assert ranks.head[position] == rank_by_hand(scores, head, known)
    assert ranks.relation.tolist() == [relation for _, relation, _ in triples]


@pytest.mark.parametrize("direct_only", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_relation_ranks_are_those_counted_by_hand(seed: int, direct_only: bool) -> None:
    facts, triples, _ = random_case(np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    table = torch.tensor(rng.integers(0, 3, (NUM_NODES, NUM_NODES, 2 * NUM_RELATIONS)))
    known = known_relations(facts, NUM_NODES, NUM_RELATIONS, direct_only=direct_only)

    ranks = rank_relations(look_up(table.float()), triples, known, memory_budget=300, device="cpu")

    num_candidates = NUM_RELATIONS if direct_only else 2 * NUM_RELATIONS
    for rank, (head, relation, tail) in zip(ranks, triples.tolist(), strict=True):
        answers = {r for h, r, t in facts.tolist() if (h, t) == (head, tail)}
        answers |= {r + NUM_RELATIONS for h, r, t in facts.tolist() if (t, h) == (head, tail)}
        scores = table[head, tail, :num_candidates].tolist()
        assert rank == rank_by_hand(scores, relation, answers)


def test_the_memory_budget_changes_the_batches_and_not_the_ranks() -> None:
    facts, triples, table = random_case(np.random.default_rng(0))
    sizes: dict[int, list[int]] = {ONE_ROW: [], 1000: [], PLENTY: []}
    ranks = []
    for budget, batches in sizes.items():

        def score(heads: Tensor, relations: Tensor, batches: list[int] = batches) -> Tensor:
            batches.append(len(heads))
            return table[heads, relations]

        known = known_tails(facts, NUM_NODES, NUM_RELATIONS)
        ranks.append(rank_links(score, triples, known, memory_budget=budget, device="cpu"))
    for other in ranks[1:]:
        np.testing.assert_array_equal(other.head, ranks[0].head)
        np.testing.assert_array_equal(other.tail, ranks[0].tail)
    queries = with_inverses(KnowledgeGraph(triples, NUM_NODES, NUM_RELATIONS))
    num_distinct = len(np.unique(queries[:, :2], axis=0))
    assert sizes[ONE_ROW] == [1] * 40
    assert sizes[PLENTY] == [num_distinct]  # fewer than 40
    assert 1 < len(sizes[1000]) < 40
    assert max(sizes[1000]) * NUM_NODES * ranking.BYTES_PER_SCORE <= 1000


def test_queries_with_several_answers_are_scored_once() -> None:
    facts, triples, table = random_case(np.random.default_rng(3))
    asked: list[tuple[int, int]] = []
    shown: list[Tensor] = []

    def score(heads: Tensor, relations: Tensor) -> Tensor:
        asked.extend(zip(heads.tolist(), relations.tolist(), strict=True))
        return table[heads, relations]

    rank_links(
        score,
        triples,
        known_tails(facts, NUM_NODES, NUM_RELATIONS),
        memory_budget=PLENTY,
        device="cpu",
        on_scores=lambda places, scores: shown.extend((places, scores)),
    )

    queries = with_inverses(KnowledgeGraph(triples, NUM_NODES, NUM_RELATIONS))
    assert asked == [tuple(query) for query in np.unique(queries[:, :2], axis=0).tolist()]
    places, scores = shown
    assert sorted(places.tolist()) == list(range(len(queries)))
    heads, relations, _ = torch.tensor(queries).long()[places].T
    assert torch.equal(scores, table[heads, relations])


def test_a_model_that_scores_everything_alike_lands_in_the_middle() -> None:
    table = torch.zeros(NUM_NODES, 2 * NUM_RELATIONS, NUM_NODES)
    ranks = ranks_of(table, as_triples([(0, 1, 2)]), as_triples([(0, 1, 2)]))
    assert ranks.head.tolist() == ranks.tail.tolist() == [3]
    ranks = ranks_of(table, as_triples([(0, 1, 2)]), as_triples([(0, 1, 2), (0, 1, 4)]))
    assert ranks.tail.tolist() == [2.5]  # four candidates are left


def test_infinite_scores_tie_with_each_other() -> None:
    scores = torch.tensor([[-torch.inf, -torch.inf, 1.0, torch.inf]])
    none = torch.tensor([], dtype=torch.int64)
    ranks = [filtered_ranks(scores, torch.tensor([node]), none, none).item() for node in range(4)]
    assert ranks == [3.5, 3.5, 2, 1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_ranks_are_exact_in_every_precision(dtype: torch.dtype) -> None:
    scores = torch.arange(1001.0)[None].to(dtype)  # bfloat16 has only 256 of them in order
    none = torch.tensor([], dtype=torch.int64)
    rank = filtered_ranks(scores, torch.tensor([200]), none, none).item()
    assert rank == 1 + 800


def test_scores_that_are_not_a_number_stop_the_ranking() -> None:
    table = torch.zeros(NUM_NODES, 2 * NUM_RELATIONS, NUM_NODES)
    table[0, 1, 4] = torch.nan
    with pytest.raises(InputError, match=r"1 of 2 queries .* diverged; lower the learning rate"):
        ranks_of(table, as_triples([(0, 1, 2)]), as_triples([]))


def test_nothing_to_rank_is_said() -> None:
    table = torch.zeros(NUM_NODES, 2 * NUM_RELATIONS, NUM_NODES)
    with pytest.raises(InputError, match="no facts to rank"):
        ranks_of(table, as_triples([]), as_triples([(0, 0, 1)]))


def test_facts_of_another_graph_and_models_of_another_size_are_refused() -> None:
    table = torch.zeros(NUM_NODES, 2 * NUM_RELATIONS, NUM_NODES - 1)
    with pytest.raises(InputError, match="outside the graph"):
        ranks_of(table, as_triples([(0, 0, NUM_NODES)]), as_triples([]))
    with pytest.raises(InputError, match="scores 4 of 5 candidates"):
        ranks_of(table, as_triples([(0, 0, 1)]), as_triples([]))


def test_known_relations_are_no_filter_for_links() -> None:
    known = known_relations(as_triples([(0, 0, 1)]), NUM_NODES, NUM_RELATIONS)
    with pytest.raises(InputError, match="known answers are relations, but tails"):
        rank_links(
            look_up(torch.zeros(1)), as_triples([(0, 0, 1)]), known, memory_budget=1, device="cpu"
        )


def test_progress_counts_queries_up_to_all_of_them() -> None:
    facts, triples, table = random_case(np.random.default_rng(0))
    calls: list[tuple[int, int]] = []
    rank_links(
        look_up(table),
        triples,
        known_tails(facts, NUM_NODES, NUM_RELATIONS),
        memory_budget=ONE_ROW,
        device="cpu",
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(done, 40) for done in range(1, 41)]


@pytest.mark.gpu
def test_ranks_on_the_gpu_are_those_on_the_cpu() -> None:
    facts, triples, table = random_case(np.random.default_rng(0))
    known = known_tails(facts, NUM_NODES, NUM_RELATIONS)
    expected = rank_links(look_up(table), triples, known, memory_budget=PLENTY, device="cpu")
    ranks = rank_links(look_up(table.cuda()), triples, known, memory_budget=1000, device="cuda")
    np.testing.assert_array_equal(ranks.head, expected.head)
    np.testing.assert_array_equal(ranks.tail, expected.tail)


@pytest.mark.filterwarnings("ignore")
def test_metrics_agree_with_pykeen() -> None:
    """PyKEEN's filter, ranks and metrics, fed with the same scores."""
    pykeen = pytest.importorskip("pykeen.evaluation")
    filters = pytest.importorskip("pykeen.evaluation.evaluator")
    facts, triples, table = random_case(np.random.default_rng(1))
    evaluator = pykeen.RankBasedEvaluator(filtered=True)
    hrt, positives = torch.tensor(triples).long(), torch.tensor(facts).long()
    for side, column in (("head", 0), ("tail", 2)):
        asks = hrt[:, 2 - column]
        relation = hrt[:, 1] + (NUM_RELATIONS if side == "head" else 0)
        scores = table[asks, relation].clone()
        true_scores = scores.gather(1, hrt[:, column, None]).clone()
        known, _ = filters.create_sparse_positive_filter_(hrt, positives, filter_col=column)
        scores = filters.filter_scores_(scores, known)
        scores.scatter_(1, hrt[:, column, None], true_scores)  # the target itself stays
        evaluator.process_scores_(hrt, side, scores, true_scores)
    theirs = evaluator.finalize()

    ranks = ranks_of(table, triples, facts)
    parts: dict[str, FloatArray] = {
        "head": ranks.head,
        "tail": ranks.tail,
        "both": np.concatenate([ranks.head, ranks.tail]),
    }
    assert summarize(parts["both"]) == report_links(ranks).both
    for part, values in parts.items():
        ours = summarize(values).to_json()
        names = {"mrr": "inverse_harmonic_mean_rank", "mean_rank": "arithmetic_mean_rank"}
        names |= {f"hits@{k}": f"hits_at_{k}" for k in (1, 3, 10)}
        for name, their_name in names.items():
            expected = theirs.get_metric(f"{part}.realistic.{their_name}")
            assert ours[name] == pytest.approx(expected), (part, name)


def slices(
    num_known: list[int], num_candidates: int, budget: int, device: str
) -> list[tuple[int, int]]:
    known = np.array(num_known, dtype=np.int64)
    cut = ranking.query_batches(known, num_candidates, budget, torch.device(device))
    return [(batch.start, batch.stop) for batch in cut]


def test_a_batch_takes_16_bytes_a_score_and_64_a_known_answer() -> None:
    # 10 candidates take 160 bytes, known answers 0, 64 and 128 bytes
    assert slices([0, 1, 2, 0], 10, 160 + 224, "meta") == [(0, 2), (2, 3), (3, 4)]
    assert slices([0, 1, 2, 0], 10, 160 + 224 + 288, "meta") == [(0, 3), (3, 4)]
    assert slices([0, 1, 2, 0], 10, 160 + 224 + 287, "meta") == [(0, 2), (2, 4)]


def test_a_batch_has_one_query_at_least() -> None:
    assert slices([5, 5], 10, 1, "meta") == [(0, 1), (1, 2)]


def test_on_a_cpu_the_scores_of_a_batch_fit_its_cache_or_are_64_rows() -> None:
    assert slices([0] * 5000, 1024, 2**40, "cpu") == [(0, 2048), (2048, 4096), (4096, 5000)]
    assert slices([0] * 130, 2**20, 2**40, "cpu") == [(0, 64), (64, 128), (128, 130)]
    assert slices([0] * 5000, 1024, 2**40, "meta") == [(0, 5000)]


def test_nobody_can_change_ranks() -> None:
    ranks = LinkRanks(np.ones(1), np.ones(1), np.zeros(1, np.int32))
    for name in ("head", "tail", "relation"):
        assert not getattr(ranks, name).flags.writeable
