"""Updates of the rows in use, against Adam on the whole table."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.planted_graphs import GraphSizes, planted_graph
from torch import Tensor, nn
from torch.nn.functional import embedding

from nodepiece.decoders.link_model import DecoderSettings, LinkModel
from nodepiece.encoders import rows_in_use
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.node_embedding import EncoderSettings, make_node_embedding
from nodepiece.encoders.rows_in_use import RowsInUse, distinct_of_fixed_size
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.batches import FactBatch
from nodepiece.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from nodepiece.training.links import link_trainer
from nodepiece.training.row_adam import DECAY, RowAdam
from nodepiece.training.settings import SampledSettings, TrainingSettings
from nodepiece.training.trainer import Trainer

NUM_NODES = 200
GRAPH = planted_graph(GraphSizes(NUM_NODES, 600, 8), rng=np.random.default_rng(0))
EDGES = torch.tensor(with_inverses(GRAPH))
TRAINING = TrainingSettings(loss="sampled-softmax", batch_size=6, learning_rate=0.02)
LAZY, WHOLE = (
    SampledSettings(num_negatives=5, steps_per_epoch=8, lazy_rows=lazy) for lazy in (True, False)
)


def model_of(kind: str) -> LinkModel:
    rng, generator = np.random.default_rng(1), torch.Generator().manual_seed(2)
    settings = TokenizerSettings(num_anchors=60, anchors_per_node=3, relations_per_node=2)
    table = tokenize(GRAPH, fit_vocabulary(GRAPH, settings, rng=rng), rng=rng)
    encoder = EncoderSettings(kind, dim=4, hidden_dim=8, dropout=0.1, factorized=False)
    return LinkModel(
        make_node_embedding(table, encoder, generator=generator),
        EDGES,
        2 * GRAPH.num_relations,
        DecoderSettings("distmult"),
        GraphLayerSettings(),
        generator=generator,
    )


def trainer_of(
    kind: str, sampled: SampledSettings, training: TrainingSettings = TRAINING
) -> Trainer[FactBatch]:
    generator = torch.Generator().manual_seed(3)
    made: Trainer[FactBatch] = link_trainer(
        model_of(kind), EDGES, training, sampled=sampled, generator=generator
    )  # type: ignore[assignment]
    return made


def train(trainer: Trainer[FactBatch], epochs: int = 3) -> dict[str, Tensor]:
    for epoch in range(epochs):
        trainer.run_epoch(epoch, lambda done, total: None)
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def update_as_on_gpu(adam: RowAdam, rows: Tensor, gradient: Tensor, rate: float) -> None:
    assert adam.used.values is not None
    adam._update_on_device(rows, adam.used.values, gradient, rate)


@pytest.mark.parametrize("as_on_gpu", [False, True])
def test_rows_in_use_are_updated_as_adam_without_momentum_updates_the_table(
    as_on_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if as_on_gpu:
        monkeypatch.setattr(rows_in_use, "distinct_ids", distinct_of_fixed_size)
        monkeypatch.setattr(RowAdam, "_update_on_cpu", update_as_on_gpu)
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(30, 4, generator=generator)
    table, whole = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    used = RowsInUse(table)
    lazy, adam = RowAdam(used), torch.optim.Adam([whole], lr=0.1, betas=(0.0, DECAY))
    for _ in range(50):
        ids = torch.randint(30, (2, 3), generator=generator)  # at most 6 of 30 rows
        goal = torch.randn(2, 3, 4, generator=generator)
        adam.zero_grad()
        (embedding(ids, whole) - goal).square().sum().backward()  # type: ignore[no-untyped-call]
        adam.step()
        rows, place = used.look_up(ids)
        (embedding(place, rows) - goal).square().sum().backward()  # type: ignore[no-untyped-call]
        lazy.update(0.1)
        used.clear()
    torch.testing.assert_close(table, whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["gated-sum", "mlp", "lookup"])
def test_training_with_lazy_rows_is_training_with_adam_without_momentum_on_them(kind: str) -> None:
    whole = trainer_of(kind, WHOLE)
    table = whole.model.nodes.start_table  # type: ignore[union-attr]
    others = [each for each in whole.model.parameters() if each is not table]
    groups: list[Any] = [{"params": others}, {"params": [table], "betas": (0.0, DECAY)}]
    whole.optimizer = torch.optim.Adam(groups, lr=TRAINING.learning_rate)
    expected = train(whole)

    found = train(trainer_of(kind, LAZY))

    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=2e-3, atol=2e-5, msg=name)


def test_clipping_counts_the_rows_in_use() -> None:
    clipped = TrainingSettings(
        loss="sampled-softmax", batch_size=6, learning_rate=0.02, clip_gradient=0.01
    )
    trainer = trainer_of("lookup", LAZY, clipped)
    trainer.run_epoch(0, lambda done, total: None)
    (rows,) = (each.used.values for each in trainer.row_optimizers)
    assert rows is not None and rows.grad is not None
    gradients = [each.grad for each in trainer.model.parameters() if each.grad is not None]
    total = torch.stack([each.norm() for each in (*gradients, rows.grad)]).norm().item()
    assert total == pytest.approx(0.01, rel=1e-3)


def test_a_resumed_run_has_the_digits_of_one_that_was_not_interrupted(tmp_path: Path) -> None:
    expected = train(trainer_of("gated-sum", LAZY), epochs=4)
    first, second = trainer_of("gated-sum", LAZY), trainer_of("gated-sum", LAZY)
    train(first, epochs=2)
    save_checkpoint(tmp_path / "checkpoint", first, Progress(epoch=2), None)
    load_checkpoint(tmp_path / "checkpoint", second)
    for epoch in (2, 3):
        second.run_epoch(epoch, lambda done, total: None)
    found = second.model.state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_a_checkpoint_of_whole_updates_is_refused_for_lazy_ones(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "checkpoint", trainer_of("lookup", WHOLE), Progress(), None)
    with pytest.raises(InputError, match="no state of the rows"):
        load_checkpoint(tmp_path / "checkpoint", trainer_of("lookup", LAZY))


def test_rows_are_lazy_where_there_are_more_than_a_step_can_use() -> None:
    by_size = SampledSettings(num_negatives=5)  # a step encodes 17 nodes of 200, with 3 of 62 rows
    assert trainer_of("lookup", by_size).row_optimizers
    assert trainer_of("mlp", by_size).row_optimizers
    larger = SampledSettings(num_negatives=10)  # 22 nodes: 66 rows
    assert not trainer_of("mlp", larger).row_optimizers
    softplus = TrainingSettings(loss="softplus", batch_size=6)
    assert not trainer_of("lookup", by_size, softplus).row_optimizers


def test_a_step_touches_no_row_that_is_not_in_use() -> None:
    trainer = trainer_of("lookup", LAZY)
    before = trainer.model.state_dict()["nodes.vectors"].clone()
    trainer.run_steps(0, lambda done, total: None, should_stop=lambda: True)
    (rows,) = (each.used.rows for each in trainer.row_optimizers)
    changed = (trainer.model.state_dict()["nodes.vectors"] != before).any(dim=1).nonzero()
    assert rows is not None and set(changed.flatten().tolist()) <= set(rows.tolist())


@pytest.mark.parametrize("kind", ["transformer", "node_norm"])
def test_lazy_rows_are_refused_where_a_step_uses_all(kind: str) -> None:
    model = model_of("transformer" if kind == "transformer" else "lookup")
    if kind == "node_norm":
        model.node_norm = nn.BatchNorm1d(4)
    with pytest.raises(InputError, match=r"lazy_rows = true does not work with"):
        link_trainer(model, EDGES, TRAINING, sampled=LAZY, generator=torch.Generator())


@pytest.mark.gpu
def test_captured_steps_with_lazy_rows_are_those_that_are_not_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def weights(num_warm: int) -> dict[str, Tensor]:
        monkeypatch.setattr("nodepiece.training.trainer.WARMUP_STEPS", num_warm)
        generator, model = torch.Generator("cuda").manual_seed(3), model_of("gated-sum").cuda()
        made = link_trainer(model, EDGES.cuda(), TRAINING, sampled=LAZY, generator=generator)
        assert made.row_optimizers
        return train(made)  # type: ignore[arg-type]

    torch.testing.assert_close(weights(3), weights(1000))
