import pytest
import torch
from tests.decoders.path_scores import path_scores
from tests.encoders.random_tables import NUM_NODES, NUM_RELATIONS, random_graph, random_table
from torch import Tensor

from nodepiece.decoders.link_model import DecoderSettings, LinkModel
from nodepiece.decoders.triple_scores import DECODERS
from nodepiece.decoders.walks import Walks, WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.lookup_embedding import LookupEmbedding
from nodepiece.encoders.node_embedding import EncoderSettings, NodePieceEmbedding
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import with_inverses

DIM = 8
EDGES = torch.tensor(with_inverses(random_graph()))
HEADS, RELATIONS, TAILS = torch.tensor([0, 5, 23]), torch.tensor([1, 5, 0]), torch.tensor([3, 0, 2])


def link_model(
    decoder: DecoderSettings | str = "rotate",
    *,
    lookup: bool = False,
    dim: int = DIM,
    layers: int = 0,
    walks: int = 0,
    seed: int = 0,
) -> LinkModel:
    generator = torch.Generator().manual_seed(seed)
    settings = EncoderSettings(dim=dim, hidden_dim=12, dropout=0.0)
    nodes = (
        LookupEmbedding(NUM_NODES, dim, generator=generator)
        if lookup
        else NodePieceEmbedding(random_table(), settings, generator=generator)
    )
    if isinstance(decoder, str):
        decoder = DecoderSettings(decoder)
    graph = GraphLayerSettings(layers=layers, dropout=0.0)
    steps = (WalkSettings(steps=walks),)
    model = LinkModel(nodes, EDGES, 2 * NUM_RELATIONS, decoder, graph, steps, generator=generator)
    return model.double().eval()


@pytest.mark.parametrize("lookup", [False, True])
@pytest.mark.parametrize("kind", DECODERS)
def test_scores_of_all_tails_and_relations_are_those_of_the_facts(kind: str, lookup: bool) -> None:
    model = link_model(kind, lookup=lookup)
    vectors, relations = model.node_vectors(), model.relation_vectors()
    all_tails = model.score_all_tails(HEADS, RELATIONS, vectors)
    all_relations = model.score_all_relations(HEADS, TAILS, vectors)
    score = DECODERS[kind].score
    for row, (head, relation, tail) in enumerate(zip(HEADS, RELATIONS, TAILS, strict=True)):
        tails = [score(vectors[head], relations[relation], vectors[t]) for t in range(NUM_NODES)]
        torch.testing.assert_close(all_tails[row], torch.stack(tails), rtol=1e-5, atol=1e-6)
        of_relations = [score(vectors[head], each, vectors[tail]) for each in relations]
        torch.testing.assert_close(
            all_relations[row], torch.stack(of_relations), rtol=1e-5, atol=1e-6
        )


def test_walks_add_to_the_scores_of_vectors() -> None:
    model = link_model("complex", walks=2)
    vectors = model.node_vectors()
    scores = model.score_all_tails(HEADS, RELATIONS, vectors)
    by_vectors = model.score_by_vectors(HEADS, RELATIONS, vectors)
    torch.testing.assert_close(scores, by_vectors + path_scores(model, HEADS, RELATIONS))
    assert scores.shape == (3, NUM_NODES)


def test_the_coefficient_of_walks_counts_after_training_only() -> None:
    model = link_model("complex", walks=2)
    walks = model.scorers["walks"]
    assert isinstance(walks, Walks)
    plain, walks.coefficient = path_scores(model, HEADS, RELATIONS), 2.5
    assert torch.equal(path_scores(model.train(), HEADS, RELATIONS), plain)
    torch.testing.assert_close(path_scores(model.eval(), HEADS, RELATIONS), 2.5 * plain)


def test_walks_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match=r"walks\.coefficient must be 0 or more, got nan"):
        WalkSettings(2, coefficient=float("nan"))
    with pytest.raises(InputError, match=r"leave walks\.vectors_alone out"):
        WalkSettings(2, separate_losses=True, vectors_alone=0.5)


def test_no_message_passes_along_a_hidden_edge() -> None:
    model = link_model("complex", layers=1, lookup=True)
    head, _, tail = EDGES[0].tolist()
    weight = torch.ones(len(EDGES), dtype=torch.float64)
    weight[(EDGES[:, 0] == head) & (EDGES[:, 2] == tail)] = 0.0
    assert isinstance(model.nodes, LookupEmbedding)
    for hides in (False, True):
        vectors = model.node_vectors(weight if hides else None)
        (gradient,) = torch.autograd.grad(vectors[head].sum(), model.nodes.vectors)
        assert bool((gradient[tail] == 0).all()) == hides


@pytest.mark.parametrize("lookup", [False, True])
def test_hidden_edges_are_as_if_the_graph_of_the_model_did_not_have_them(lookup: bool) -> None:
    settings = {"lookup": lookup, "layers": 2, "walks": 3}
    visible = torch.arange(len(EDGES) // 2).remainder(3).ne(0).repeat(2)  # facts and inverses
    found, expected = (link_model("complex", **settings) for _ in range(2))  # type: ignore[arg-type]
    expected.edges = EDGES[visible]
    weight = visible.double()

    scores = found.score_by_vectors(HEADS, RELATIONS, found.node_vectors(weight))
    scores = scores + path_scores(found, HEADS, RELATIONS, weight)
    without = expected.score_all_tails(HEADS, RELATIONS, expected.node_vectors())

    torch.testing.assert_close(scores, without)
    for output in (scores, without):
        (output * torch.arange(output.numel()).cos().view_as(output)).sum().backward()  # type: ignore[no-untyped-call]
    for one, other in zip(found.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_heads_are_asked_for_as_tails_of_the_inverse_relation() -> None:
    """Where the inverse is the rotation back, both directions give a fact the same score."""
    model = link_model("rotate")
    with torch.no_grad():
        direct = model.relation_vectors()[:NUM_RELATIONS]
        back = torch.cat([direct[:, : DIM // 2], -direct[:, DIM // 2 :]], dim=1)
        model.relation_vectors()[NUM_RELATIONS:] = back
    vectors = model.node_vectors()
    relations = RELATIONS % NUM_RELATIONS
    of_tails = model.score_all_tails(HEADS, relations, vectors)
    of_heads = model.score_all_tails(TAILS, relations + NUM_RELATIONS, vectors)
    rows = torch.arange(len(HEADS))
    torch.testing.assert_close(of_tails[rows, TAILS], of_heads[rows, HEADS])


def test_the_relations_of_the_encoder_are_those_of_the_decoder() -> None:
    model = link_model("rotate")
    assert isinstance(model.nodes, NodePieceEmbedding)
    assert model.relation_vectors() is model.nodes.tables.relations
    assert "own_relations" not in dict(model.named_parameters())


@pytest.mark.parametrize(
    ("kind", "lookup", "size"), [("pairre", False, 2 * DIM), ("rotate", True, DIM)]
)
def test_relations_of_another_size_or_without_encoder_are_the_decoders_own(
    kind: str, lookup: bool, size: int
) -> None:
    model = link_model(kind, lookup=lookup)
    assert dict(model.named_parameters())["own_relations"].shape == (2 * NUM_RELATIONS, size)
    assert model.relation_vectors() is model.own_relations


@pytest.mark.parametrize("lookup", [False, True])
def test_rotations_start_as_phases_and_other_relations_do_not(lookup: bool) -> None:
    def moduli(kind: str) -> Tensor:
        real, imaginary = link_model(kind, lookup=lookup).relation_vectors().detach().chunk(2, 1)
        return real.square() + imaginary.square()

    torch.testing.assert_close(
        moduli("rotate"), torch.ones_like(moduli("rotate")), rtol=1e-6, atol=0
    )
    assert moduli("distmult").std() > 0.05


@pytest.mark.parametrize("lookup", [False, True])
def test_an_odd_size_does_where_nothing_is_complex(lookup: bool) -> None:
    model = link_model("distmult", lookup=lookup, dim=7)
    assert model.score_all_tails(HEADS, RELATIONS, model.node_vectors()).shape == (3, NUM_NODES)


def test_a_size_that_the_decoder_cannot_use_is_refused() -> None:
    with pytest.raises(InputError, match="multiple of 2"):
        link_model("rotate", dim=7)


@pytest.mark.parametrize("layers", [0, 2])
@pytest.mark.parametrize("node_norm", [False, True])
def test_vectors_of_some_nodes_are_theirs_among_all(layers: int, node_norm: bool) -> None:
    model = link_model(DecoderSettings("distmult", node_norm=node_norm), layers=layers)
    nodes = torch.tensor([3, 3, 20])
    torch.testing.assert_close(model.vectors_of(nodes), model.node_vectors()[nodes])


@pytest.mark.parametrize("layers", [0, 2])
@pytest.mark.parametrize("lookup", [False, True])
def test_vectors_at_places_are_those_of_the_nodes_there(layers: int, lookup: bool) -> None:
    model = link_model("distmult", layers=layers, lookup=lookup)
    nodes, places = torch.tensor([3, 3, 20]), torch.tensor([[0, 2], [2, 1]])
    expected = model.node_vectors()[nodes[places]]
    torch.testing.assert_close(model.vectors_at(nodes, places), expected)


def test_graph_layers_change_nodes_that_have_edges() -> None:
    with_layers = link_model("distmult", layers=1)
    before = with_layers.nodes.all_nodes()
    assert not torch.allclose(with_layers.node_vectors(), before)
    assert "edges" not in with_layers.state_dict()


def test_graph_layers_need_relations_of_the_size_of_nodes() -> None:
    with pytest.raises(InputError, match="decoder pairre does not work with graph layers"):
        link_model("pairre", layers=1)


def test_query_dropout_falls_on_heads_in_training_only() -> None:
    model = link_model(DecoderSettings("distmult", query_dropout=0.5))
    vectors = model.node_vectors()
    plain = model.score_all_tails(HEADS, RELATIONS, vectors)
    dropped = model.train().score_all_tails(HEADS, RELATIONS, vectors)
    assert not torch.allclose(dropped, plain)
    torch.testing.assert_close(model.eval().score_all_tails(HEADS, RELATIONS, vectors), plain)


def test_all_parameters_are_counted_once() -> None:
    model = link_model("rotate", lookup=True)
    assert model.num_parameters() == NUM_NODES * DIM + 2 * NUM_RELATIONS * DIM


def test_the_generator_decides_the_weights() -> None:
    first, again, other = (link_model(seed=seed).state_dict() for seed in (0, 0, 1))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert any(not torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"kind": "transd"}, "transe, transe-l1"), ({"query_dropout": 1.0}, "query_dropout")],
)
def test_impossible_settings_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        DecoderSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("lookup", [False, True])
@pytest.mark.parametrize("kind", DECODERS)
def test_scores_of_candidates_are_those_among_all_tails(kind: str, lookup: bool) -> None:
    model = link_model(kind, lookup=lookup)
    vectors = model.node_vectors()
    candidates = torch.tensor([[3, 3, 0], [23, 1, 2], [0, 5, 5]])
    found = model.score_candidates(HEADS, RELATIONS, candidates, vectors)
    expected = model.score_all_tails(HEADS, RELATIONS, vectors).gather(1, candidates)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("num_asked", [5, NUM_NODES + 1])
def test_a_node_asked_for_twice_is_encoded_once(num_asked: int) -> None:
    model = link_model()
    encoded: list[int] = []
    model.nodes.encoder.register_forward_hook(  # type: ignore[union-attr]
        lambda encoder, inputs, vectors: encoded.append(len(vectors))
    )
    nodes = torch.arange(num_asked) % 3
    vectors = model.vectors_of(nodes)
    torch.testing.assert_close(vectors, model.node_vectors()[nodes])
    assert all(count <= NUM_NODES for count in encoded)
    if num_asked < NUM_NODES:
        assert encoded[0] == 3
