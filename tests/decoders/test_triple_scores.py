from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from nodepiece.decoders import pairwise_distances
from nodepiece.decoders.triple_scores import DECODERS
from nodepiece.errors import InputError

DIM, BATCH, NUM_NODES, NUM_RELATIONS = 8, 3, 7, 5
DISTANCES = [name for name, decoder in DECODERS.items() if decoder.is_distance]


def vectors(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def score_of(name: str, *parts: Sequence[float]) -> float:
    head, relation, tail = (torch.tensor(part, dtype=torch.float64) for part in parts)
    return DECODERS[name].score(head, relation, tail).item()


def assert_same_values_and_gradients(
    fast: Callable[..., Tensor], slow: Callable[..., Tensor], *inputs: Tensor
) -> None:
    torch.testing.assert_close(fast(*inputs), slow(*inputs))
    weights = vectors(*fast(*inputs).shape, seed=9).detach()
    torch.testing.assert_close(
        torch.autograd.grad((fast(*inputs) * weights).sum(), inputs),
        torch.autograd.grad((slow(*inputs) * weights).sum(), inputs),
    )


@pytest.mark.parametrize("chunk_cells", [1, DIM * BATCH * 3, 2**22])
@pytest.mark.parametrize("name", DECODERS)
def test_all_tails_at_once_agree_with_one_at_a_time(
    name: str, chunk_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pairwise_distances.CHUNK_CELLS, "cpu", chunk_cells)
    decoder = DECODERS[name]
    head, nodes = vectors(BATCH, DIM, seed=0), vectors(NUM_NODES, DIM, seed=1)
    relation = vectors(BATCH, decoder.relation_dim(DIM), seed=2)

    def one_at_a_time(head: Tensor, relation: Tensor, nodes: Tensor) -> Tensor:
        return torch.stack([decoder.score(head, relation, node) for node in nodes], dim=1)

    assert_same_values_and_gradients(decoder.score_all_tails, one_at_a_time, head, relation, nodes)


@pytest.mark.parametrize("name", DECODERS)
def test_all_relations_at_once_agree_with_one_at_a_time(name: str) -> None:
    decoder = DECODERS[name]
    head, tail = vectors(BATCH, DIM, seed=0), vectors(BATCH, DIM, seed=1)
    relations = vectors(NUM_RELATIONS, decoder.relation_dim(DIM), seed=2)

    def one_at_a_time(head: Tensor, tail: Tensor, relations: Tensor) -> Tensor:
        return torch.stack([decoder.score(head, each, tail) for each in relations], dim=1)

    assert_same_values_and_gradients(
        decoder.score_all_relations, one_at_a_time, head, tail, relations
    )


@pytest.mark.parametrize("name", DECODERS)
def test_one_formula_scores_a_triple_and_its_negatives(name: str) -> None:
    decoder = DECODERS[name]
    head, tails = vectors(BATCH, DIM, seed=0), vectors(BATCH, 4, DIM, seed=1)
    relation = vectors(BATCH, decoder.relation_dim(DIM), seed=2)

    scores = decoder.score(head[:, None], relation[:, None], tails)

    assert scores.shape == (BATCH, 4)
    torch.testing.assert_close(scores[2, 3], decoder.score(head[2], relation[2], tails[2, 3]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", DECODERS)
def test_nothing_is_nan_where_all_vectors_are_zero(name: str, dtype: torch.dtype) -> None:
    decoder = DECODERS[name]
    head, tail = torch.zeros(2, 2, DIM, dtype=dtype).requires_grad_()
    relation = torch.zeros(2, decoder.relation_dim(DIM), dtype=dtype, requires_grad=True)
    scores = [
        decoder.score(head, relation, tail),
        decoder.score_all_tails(head, relation, tail),
        decoder.score_all_relations(head, tail, relation),
    ]
    for score in scores:
        gradients = torch.autograd.grad(score.sum(), (head, tail, relation))
        assert (score == 0).all()
        assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("name", ["transe", "rotate"])
def test_a_tail_that_is_hit_exactly_has_no_gradient(name: str) -> None:
    tail = vectors(1, DIM, seed=0)
    relation = torch.tensor([[1.0] * 4 + [0.0] * 4]) if name == "rotate" else torch.zeros(1, DIM)
    head = tail.detach().clone()

    scores = DECODERS[name].score_all_tails(head, relation.double(), tail)

    assert scores.item() == pytest.approx(0, abs=1e-7)
    assert torch.autograd.grad(scores.sum(), tail)[0].isfinite().all()


def test_transe_measures_how_far_head_plus_relation_is_from_the_tail() -> None:
    assert score_of("transe", [1, 0], [2, 5], [0, 1]) == -5  # (3, 4)
    assert score_of("transe-l1", [1, 0], [2, 5], [0, 1]) == -7


def test_distmult_sums_the_products() -> None:
    assert score_of("distmult", [1, 2], [3, 4], [5, -6]) == 15 - 48


def test_complex_is_the_real_part_with_the_tail_conjugated() -> None:
    # (1 + 2i) (3 + 4i) (5 - 6i) = (-5 + 10i) (5 - 6i) = 35 + 80i
    assert score_of("complex", [1, 2], [3, 4], [5, 6]) == 35


def test_distances_are_the_same_whether_a_gradient_is_wanted_or_not() -> None:
    generator = torch.Generator().manual_seed(0)
    queries, points = torch.randn(7, DIM, generator=generator), torch.randn(9, DIM)
    with torch.no_grad():
        found = pairwise_distances.negative_distances(queries, points)
    torch.testing.assert_close(found, pairwise_distances.negative_distances(queries, points))


@pytest.mark.parametrize("num_queries", [0, 1, 2, 6, 7])
@pytest.mark.parametrize("name", ["distmult", "complex", "autosf", "transe", "rotate"])
def test_few_queries_have_the_scores_of_many(
    name: str, num_queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = DECODERS[name]
    head, nodes = vectors(num_queries, DIM, seed=0), vectors(NUM_NODES, DIM, seed=1)
    relation = vectors(num_queries, decoder.relation_dim(DIM), seed=2)
    with torch.no_grad():
        expected = decoder.score_all_tails(head, relation, nodes)
        monkeypatch.setattr(pairwise_distances, "MANY_CELLS", 1)
        found = decoder.score_all_tails(head, relation, nodes)
    torch.testing.assert_close(found, expected)
    assert found.is_contiguous()


@pytest.mark.parametrize("name", ["rotate", "rotate-and-scale"])
def test_the_gradient_of_rotate_is_that_of_its_formula(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = (3, 5, DIM), (3, 1, DIM), (3, 5, DIM), (1, DIM), (5, DIM)
    head, relation, tail, one_head, tails = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    )
    for facts in ((head, relation, tail), (one_head, relation, tails)):
        assert torch.autograd.gradcheck(DECODERS[name].score, facts)


def test_a_fact_that_rotate_finds_perfect_has_no_gradient() -> None:
    head = torch.tensor([[1.0, 2.0]], requires_grad=True)
    score = DECODERS["rotate"].score(head, torch.tensor([[1.0, 0.0]]), head.detach())
    (gradient,) = torch.autograd.grad(score.sum(), head)
    assert gradient.tolist() == [[0, 0]]


def test_rotate_turns_the_head_by_the_angle_of_the_relation() -> None:
    # 1 + 2i turned by a right angle is -2 + i; a modulus of 7 changes nothing.
    assert score_of("rotate", [1, 2], [0, 7], [-2, 1]) == 0
    assert score_of("rotate-and-scale", [1, 2], [0, 7], [-14, 7]) == 0
    # two numbers, off by (3, 4i) and (5, 12i): moduli 5 and 13
    difference = ([1, 0, 0, 0], [1, 1, 0, 0], [-2, 5, -4, -12])
    assert score_of("rotate", *difference) == pytest.approx(-(194**0.5))
    assert score_of("rotate-moduli", *difference) == pytest.approx(-18)


def test_a_relation_without_direction_does_not_turn() -> None:
    assert score_of("rotate", [1, 2], [0, 0], [1, 2]) == 0


def test_pairre_scales_head_and_tail_of_unit_length() -> None:
    # (3, 4) / 5 * (5, 10) - (0, 2) / 2 * (1, 2) = (3, 8) - (0, 2)
    assert score_of("pairre", [3, 4], [5, 10, 1, 2], [0, 2]) == pytest.approx(-9)


def test_autosf_is_the_structure_of_wikikg2() -> None:
    h0, h1, h2, h3 = 2, 3, 5, 7
    r0, r1, r2, r3 = 11, 13, 17, 19
    t0, t1, t2, t3 = 23, 29, 31, 37
    expected = h0 * r0 * t0 + h1 * r1 * t1 - h3 * r1 * t1 + h2 * r0 * t2
    expected += h3 * r3 * t2 + h1 * r2 * t3 + h2 * r2 * t3
    assert score_of("autosf", [h0, h1, h2, h3], [r0, r1, r2, r3], [t0, t1, t2, t3]) == expected


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_are_never_above_zero(name: str) -> None:
    decoder = DECODERS[name]
    nodes = vectors(50, DIM, seed=0).float()
    relation = vectors(50, decoder.relation_dim(DIM), seed=1).float()
    assert (decoder.score_all_tails(nodes, relation, nodes) <= 0).all()


def test_the_distance_to_oneself_is_small_in_single_precision() -> None:
    nodes = torch.nn.functional.normalize(vectors(500, 200, seed=0).detach().float())
    scores = DECODERS["transe"].score_all_tails(nodes, torch.zeros_like(nodes), nodes)
    assert scores.diagonal().min() > -2e-3  # what negative_distances says of vectors of length 1


def test_mixed_precision_leaves_distances_in_single_precision() -> None:
    head, nodes = vectors(BATCH, DIM, seed=0).float(), vectors(NUM_NODES, DIM, seed=1).float()
    expected = DECODERS["transe"].score_all_tails(head, head, nodes)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(DECODERS["transe"].score_all_tails(head, head, nodes), expected)


def test_a_dim_that_does_not_divide_is_refused_with_what_would_fit() -> None:
    assert DECODERS["pairre"].relation_dim(200) == 400
    with pytest.raises(InputError, match="dim is 6; this decoder needs a multiple of 4"):
        DECODERS["autosf"].relation_dim(6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DECODERS)
def test_scores_agree_with_pykeen(name: str) -> None:
    modules = pytest.importorskip("pykeen.nn.modules")
    judges = {
        "transe": modules.TransEInteraction(p=2),
        "transe-l1": modules.TransEInteraction(p=1),
        "distmult": modules.DistMultInteraction(),
        "complex": modules.ComplExInteraction(),
        "rotate": modules.RotatEInteraction(),
        "pairre": modules.PairREInteraction(p=1),
    }
    if name not in judges:
        pytest.skip("PyKEEN has no such formula")
    decoder = DECODERS[name]
    head, tail = vectors(BATCH, DIM, seed=0).detach(), vectors(BATCH, DIM, seed=1).detach()
    relation = vectors(BATCH, decoder.relation_dim(DIM), seed=2).detach()
    theirs: list[Tensor | tuple[Tensor, ...]] = [head, relation, tail]
    if name in ("complex", "rotate"):
        theirs = [torch.complex(*part.chunk(2, dim=-1)) for part in (head, relation, tail)]
    if name == "rotate":
        rotation = torch.complex(*relation.chunk(2, dim=-1))
        theirs[1] = rotation / rotation.abs()
    if name == "pairre":  # there the embedding, not the formula, keeps nodes at unit length
        theirs[0], theirs[2] = (part / part.norm(dim=-1, keepdim=True) for part in (head, tail))
        theirs[1] = relation.chunk(2, dim=-1)

    expected = judges[name](*theirs).squeeze()

    torch.testing.assert_close(decoder.score(head, relation, tail), expected)


@pytest.mark.parametrize("name", [name for name, each in DECODERS.items() if each.tail_query])
def test_the_query_of_a_tail_gives_the_score_as_a_product_or_a_distance(name: str) -> None:
    decoder = DECODERS[name]
    generator = torch.Generator().manual_seed(0)
    head, relation, nodes = (
        torch.randn(num, 8, generator=generator, dtype=torch.float64) for num in (5, 5, 7)
    )

    assert decoder.tail_query is not None
    query = decoder.tail_query(head, relation)
    found = -torch.cdist(query, nodes) if decoder.is_distance else query @ nodes.T

    torch.testing.assert_close(found, decoder.score_all_tails(head, relation, nodes))
