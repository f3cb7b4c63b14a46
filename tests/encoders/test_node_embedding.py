from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.encoders.random_tables import NUM_NODES, random_table
from torch import Tensor, nn

from nodepiece.encoders.lookup_embedding import LookupEmbedding
from nodepiece.encoders.node_embedding import EncoderSettings, NodePieceEmbedding
from nodepiece.encoders.pieces import Tokens, TokenTensors, resample_relations, shuffle_equidistant
from nodepiece.errors import InputError
from nodepiece.tokenizer.storage import load_tokens, save_tokens
from nodepiece.tokenizer.tokens import NO_DISTANCE

TABLE = random_table(num_anchors=12, anchors_per_node=8, relations_per_node=2)
KINDS = ("mlp", "gated-sum", "transformer")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def embedding(kind: str = "mlp", **settings: object) -> NodePieceEmbedding:
    chosen = {"kind": kind, "dim": 8, "hidden_dim": 12, "dropout": 0.0} | settings
    return NodePieceEmbedding(TABLE, EncoderSettings(**chosen), generator=seeded())  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", [3, [3], [[3, 1, 23], [1, 1, 0]], [[[5], [6]]], []])
def test_ids_of_any_shape_give_vectors_as_from_an_embedding(kind: str, ids: list[int]) -> None:
    model = embedding(kind).eval()
    nodes = torch.tensor(ids, dtype=torch.int64)
    lookup = nn.Embedding.from_pretrained(model.all_nodes())  # type: ignore[no-untyped-call]
    torch.testing.assert_close(model(nodes), lookup(nodes))
    assert (model.num_embeddings, model.embedding_dim) == (NUM_NODES, 8)


PLACES = torch.tensor([[0, 2, 0], [1, 1, 2]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factorized", [False, True])
def test_vectors_at_places_are_those_of_their_nodes(kind: str, factorized: bool) -> None:
    model, nodes = embedding(kind, factorized=factorized).double(), torch.tensor([5, 21, 5])
    found, expected = model.at_places(nodes, PLACES), model(nodes[PLACES])
    torch.testing.assert_close(found, expected)
    weights = list(model.parameters())
    slope = torch.arange(8.0, dtype=torch.float64)
    torch.testing.assert_close(
        torch.autograd.grad((found.pow(2) @ slope).sum(), weights, allow_unused=True),
        torch.autograd.grad((expected.pow(2) @ slope).sum(), weights, allow_unused=True),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factorized", [False, True])
def test_every_place_has_dropout_masks_of_its_own(kind: str, factorized: bool) -> None:
    model = embedding(kind, factorized=factorized, dropout=0.5, hidden_dim=64)
    vectors = model.at_places(torch.tensor([5]), torch.zeros(4, dtype=torch.int64))
    assert len({tuple(row.tolist()) for row in vectors}) == 4
    calm = model.eval().at_places(torch.tensor([5]), torch.zeros(4, dtype=torch.int64))
    assert torch.equal(calm, calm[:1].expand(4, -1))


def test_it_replaces_the_embedding_in_a_model_and_learns() -> None:
    model = nn.Sequential(embedding(), nn.Linear(8, 1))
    nn.init.zeros_(model[1].weight)  # type: ignore[arg-type]
    nodes, wanted = torch.arange(10), torch.arange(10) % 2
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        logits = model(nodes).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, wanted.float())
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert ((model(nodes).squeeze(1) > 0) == wanted).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("node", [-1, NUM_NODES])
@pytest.mark.parametrize("num_others", [0, 10, 500])  # which decides how nodes are encoded
def test_an_id_outside_the_table_is_an_error(kind: str, node: int, num_others: int) -> None:
    nodes = torch.zeros(num_others + 1, dtype=torch.int64)
    nodes[-1] = node
    with pytest.raises(IndexError, match=f"node id {node} is not in the table.* from 0 to 23"):
        embedding(kind)(nodes)


def test_an_id_outside_of_the_tokens_of_an_epoch_is_an_error() -> None:
    tokens = TokenTensors(TABLE).tokens()
    for rows in (tokens, TokenTensors(TABLE)):
        with pytest.raises(IndexError):
            rows.of(torch.tensor([-1]))


def test_tokens_are_not_part_of_the_saved_state() -> None:
    names = set(embedding().state_dict())
    assert names == {
        *(f"tables.{name}" for name in ("anchors", "distances", "relations", "relation_padding")),
        *(
            f"encoder.{layer}.{part}"
            for layer in ("hidden", "output")
            for part in ("weight", "bias")
        ),
    }


def test_token_tensors_say_what_the_table_says() -> None:
    tokens, vocabulary = TokenTensors(TABLE).tokens(), TABLE.vocabulary
    assert tokens.distances is not None
    special = {12: vocabulary.padding, 13: vocabulary.disconnected}
    anchors = [[special.get(a, a) for a in row] for row in tokens.anchors.tolist()]
    assert anchors == TABLE.anchors.tolist()
    assert (tokens.relations.numpy() + 12 == TABLE.relations).all()  # [PAD] is the last of them
    none = int(TABLE.distances.max()) + 1
    assert (tokens.distances.numpy() == np.where(TABLE.distances < 0, none, TABLE.distances)).all()
    assert (TABLE.distances == NO_DISTANCE).any()
    assert (TABLE.anchors == vocabulary.disconnected).any()


def pairs_of(tokens: Tokens) -> list[Counter[tuple[int, int]]]:
    """For every node its anchors with their distances, in no order."""
    assert tokens.distances is not None
    rows = zip(tokens.anchors.tolist(), tokens.distances.tolist(), strict=True)
    return [Counter(zip(anchors, distances, strict=True)) for anchors, distances in rows]


def test_shuffling_keeps_each_anchor_with_its_distance_nearest_first() -> None:
    tokens = TokenTensors(TABLE).tokens()
    for seed in range(10):
        shuffled = shuffle_equidistant(tokens, generator=seeded(seed))
        assert pairs_of(shuffled) == pairs_of(tokens)
        assert shuffled.distances is not None
        assert (shuffled.distances.diff(dim=1) >= 0).all()


def test_shuffling_gives_every_order_of_equidistant_anchors() -> None:
    # Anchors 0, 1, 2 are one hop away, 3 is two hops away.
    anchors, distances = torch.tensor([[0, 1, 2, 3]]), torch.tensor([[1, 1, 1, 2]])
    tokens = Tokens(anchors.repeat(600, 1), distances.repeat(600, 1), torch.zeros(600, 0).int())
    shuffled = shuffle_equidistant(tokens, generator=seeded())
    orders = Counter(tuple(row) for row in shuffled.anchors.tolist())
    assert len(orders) == 6
    assert min(orders.values()) > 60  # 100 expected, deviation 9
    assert all(order[3] == 3 for order in orders)


def test_without_distances_there_is_nothing_to_shuffle() -> None:
    tokens = TokenTensors(random_table(distances=False)).tokens()
    assert shuffle_equidistant(tokens, generator=seeded()) is tokens


def test_resampled_relations_are_subsets_of_all_relations_of_a_node() -> None:
    tokens = TokenTensors(TABLE).tokens()
    samples = [
        resample_relations(tokens, TABLE, rng=np.random.default_rng(seed)) for seed in range(10)
    ]
    padding = TABLE.vocabulary.num_relations
    for node in range(NUM_NODES):
        everything = set(TABLE.relation_sets.of(node).tolist())
        seen = set()
        for sample in samples:
            row = sample.relations[node].tolist()
            real = [relation for relation in row if relation != padding]
            assert len(real) == len(set(real)) == min(2, len(everything))
            assert row == sorted(row)
            seen |= set(real)
        assert seen <= everything
        assert len(everything) > 4 or seen == everything  # 10 draws of 2 leave none of 4 out
    assert all(sample.anchors is tokens.anchors for sample in samples)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factorized", [False, True])
def test_training_tokens_are_for_training_only(kind: str, factorized: bool) -> None:
    model = embedding(kind, factorized=factorized)
    if kind == "gated-sum":
        model.encoder.norm.momentum = 0.0  # type: ignore[union-attr]
    canonical = model.token_tensors.tokens()
    before = model.eval().all_nodes().detach()

    for seed in range(3):  # the second and third are written over the first
        tokens = resample_relations(canonical, TABLE, rng=np.random.default_rng(seed))
        model.use_training_tokens(shuffle_equidistant(tokens, generator=seeded(seed)))
        model.train()
        expected = model.encoder(model.tables.vectors(), model._tokens())
        torch.testing.assert_close(model.all_nodes(), expected)
        everyone = torch.arange(NUM_NODES)
        torch.testing.assert_close(model(everyone), expected)
        torch.testing.assert_close(model.eval().all_nodes(), before)
        torch.testing.assert_close(model(everyone), before)


def test_new_training_tokens_are_used_whole() -> None:
    model = embedding(factorized=True).train()
    canonical = model.token_tensors.tokens()
    assert canonical.distances is not None
    model.use_training_tokens(canonical)
    before = model.all_nodes().detach()
    farther = Tokens(canonical.anchors, torch.zeros_like(canonical.distances), canonical.relations)
    model.use_training_tokens(farther)
    assert not torch.allclose(model.all_nodes(), before)
    assert canonical.distances.any()  # the canonical ones are not written to
    torch.testing.assert_close(model.all_nodes(), model.encoder(model.tables.vectors(), farther))


def test_training_tokens_belong_to_the_model_alone() -> None:
    model = embedding()
    tokens = model.token_tensors.tokens().clone()
    model.use_training_tokens(tokens)
    expected = model.all_nodes().detach()
    tokens.anchors.zero_()
    torch.testing.assert_close(model.all_nodes(), expected)


def test_the_lookup_is_a_trained_vector_for_every_node() -> None:
    lookup = LookupEmbedding(5, 4, generator=seeded())
    nodes = torch.tensor([[1, 1], [4, 0]])
    assert lookup(nodes).shape == (2, 2, 4)
    torch.testing.assert_close(lookup(nodes), lookup.all_nodes()[nodes])
    assert sum(p.numel() for p in lookup.parameters()) == 20


def test_weights_come_from_the_generator_alone() -> None:
    def weights(global_seed: int, seed: int) -> list[Tensor]:
        torch.manual_seed(global_seed)
        model = NodePieceEmbedding(TABLE, EncoderSettings(dim=8), generator=seeded(seed))
        return [parameter.detach() for parameter in model.parameters()]

    state = torch.get_rng_state()
    torch.testing.assert_close(weights(0, seed=5), weights(1, seed=5), rtol=0, atol=0)
    assert not torch.equal(weights(0, seed=5)[0], weights(0, seed=6)[0])
    torch.set_rng_state(state)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "lstm"}, "mlp, gated-sum, transformer, lookup"),
        ({"dim": 0}, "encoder.dim must be at least 1"),
        ({"hidden_dim": 0}, "encoder.hidden_dim must be at least 1"),
        ({"heads": 0}, "encoder.heads must be at least 1"),
        ({"layers": 0}, "encoder.layers must be at least 1"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\)"),
        ({"dropout": float("nan")}, r"dropout must be in \[0, 1\)"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        EncoderSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_vectors_on_a_gpu(kind: str) -> None:
    model = embedding(kind).eval()
    expected = model.all_nodes()
    torch.testing.assert_close(model.cuda().all_nodes().cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("factorized", [None, True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_all_nodes_in_chunks_are_all_nodes(
    kind: str, factorized: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = embedding(kind, factorized=factorized).eval()
    expected = model.all_nodes()
    monkeypatch.setattr("nodepiece.encoders.node_embedding.NODES_AT_ONCE", 7)
    with torch.no_grad():
        torch.testing.assert_close(model.all_nodes(), expected)


def test_a_table_on_disk_stays_there(tmp_path: Path) -> None:
    save_tokens(TABLE, tmp_path / "vocabulary")
    table = load_tokens(tmp_path / "vocabulary")
    tensors = TokenTensors(table)
    assert tensors.anchors.data_ptr() == table.anchors.ctypes.data
    nodes = torch.tensor([3, 0, 23])
    torch.testing.assert_close(tensors.of(nodes).anchors, TokenTensors(TABLE).of(nodes).anchors)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_like_those_of_the_table_are_encoded_without_being_in_it(kind: str) -> None:
    model = embedding(kind).eval()
    rows = [torch.tensor(column) for column in (TABLE.anchors, TABLE.distances, TABLE.relations)]
    torch.testing.assert_close(model.encode_rows(*rows), model.all_nodes())


def test_a_distance_that_training_has_not_seen_is_taken_for_the_largest() -> None:
    model = embedding().eval()
    anchors, relations = torch.tensor(TABLE.anchors[:2]), torch.tensor(TABLE.relations[:2])
    largest = torch.full((2, 8), int(TABLE.distances.max()))
    far = model.encode_rows(anchors, largest + 5, relations)
    torch.testing.assert_close(far, model.encode_rows(anchors, largest, relations))
