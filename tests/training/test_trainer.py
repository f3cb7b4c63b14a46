import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.tiny_models import EDGES, tiny_model

from nodepiece.encoders.parameters import use_generator
from nodepiece.errors import InputError
from nodepiece.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from nodepiece.training.distribution import Processes
from nodepiece.training.links import link_trainer
from nodepiece.training.settings import (
    OneVsAllSettings,
    OutOfSampleSettings,
    SampledSettings,
    TrainingSettings,
)
from nodepiece.training.trainer import Trainer, learning_rate, matmul_precision

SAMPLED = SampledSettings()


def trainer(sampled: SampledSettings = SAMPLED, **settings: object) -> Trainer[Any]:
    chosen = TrainingSettings(**({"batch_size": 2, "learning_rate": 0.01} | settings))  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(0)
    return link_trainer(tiny_model(), EDGES, chosen, sampled=sampled, generator=generator)


def rates(**settings: object) -> list[float]:
    chosen = TrainingSettings(learning_rate=8.0, **settings)  # type: ignore[arg-type]
    return [learning_rate(chosen, epoch) for epoch in range(chosen.epochs)]


def test_a_constant_rate_is_constant() -> None:
    assert rates(epochs=3) == [8, 8, 8]


def test_a_cosine_falls_from_the_rate_towards_zero() -> None:
    expected = [8, 4 * (1 + math.sqrt(0.5)), 4, 4 * (1 - math.sqrt(0.5))]
    assert rates(epochs=4, schedule="cosine") == pytest.approx(expected)


@pytest.mark.parametrize(("epochs", "full"), [(1, 1), (2, 1), (4, 2), (5, 3)])
def test_a_step_divides_the_rate_by_ten_half_way(epochs: int, full: int) -> None:
    assert rates(epochs=epochs, schedule="step") == [8] * full + [0.8] * (epochs - full)


def test_the_rate_rises_in_equal_steps_before_it_is_reached() -> None:
    assert rates(epochs=5, warmup_epochs=3) == [2, 4, 6, 8, 8]
    cosine = rates(epochs=4, schedule="cosine")
    assert rates(epochs=4, schedule="cosine", warmup_epochs=1) == [4, *cosine[1:]]


def test_an_epoch_uses_its_rate() -> None:
    made = trainer(epochs=4, schedule="step", learning_rate=0.5)
    for epoch, rate in enumerate([0.5, 0.5, 0.05, 0.05]):
        made.run_epoch(epoch, lambda done, total: None)
        assert made.optimizer.param_groups[0]["lr"] == pytest.approx(rate)


def test_clipping_limits_the_norm_of_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    norms = []

    def run(clip_gradient: float) -> float:
        made = trainer(SampledSettings(margin=100.0), loss="margin", clip_gradient=clip_gradient)
        step = made.optimizer.step

        def look(closure: None = None) -> None:
            gradients = [p.grad for p in made.model.parameters() if p.grad is not None]
            norms.append(torch.cat([g.flatten() for g in gradients]).norm().item())
            step(closure)

        monkeypatch.setattr(made.optimizer, "step", look)
        norms.clear()
        made.run_epoch(0, lambda done, total: None)
        return max(norms)

    assert run(0.0) > 0.5
    assert run(0.1) == pytest.approx(0.1, rel=1e-4)


def test_progress_is_reported_after_every_step() -> None:
    steps: list[tuple[int, int]] = []
    made = trainer()
    made.run_epoch(0, lambda done, total: steps.append((done, total)))
    assert steps == [(step, len(steps)) for step in range(1, len(steps) + 1)]
    assert len(steps) == 4  # seven queries, two a batch


@pytest.mark.parametrize(
    "loss", ["binary-cross-entropy", "cross-entropy", "self-adversarial", "margin"]
)
def test_the_loss_falls(loss: str) -> None:
    sampled = SampledSettings(num_negatives=8, margin=1.0)
    made = trainer(sampled, loss=loss, learning_rate=0.1)
    losses = [made.run_epoch(epoch, lambda done, total: None) for epoch in range(30)]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


class OneNumber:
    """The simplest batches: the same number, three times an epoch."""

    num_batches, capacity, facts_per_step = 3, 0, 1.0

    def reserve(self, capacity: int) -> None:
        pass

    def start_epoch(self, *, generator: torch.Generator) -> bool:
        return False

    def take(self, step: torch.Tensor) -> torch.Tensor:
        return torch.ones(1, device=step.device)


def test_any_module_is_trained_on_any_batches_with_any_loss() -> None:
    model = torch.nn.Linear(1, 1)
    torch.nn.init.ones_(model.weight)  # by itself it starts anywhere
    torch.nn.init.zeros_(model.bias)
    seen: list[float] = []

    def project() -> None:
        seen.append(model.bias.item())
        model.bias.zero_()

    made = Trainer(
        model,
        OneNumber(),
        lambda batch: (model(batch) - 3).square().sum(),
        TrainingSettings(learning_rate=0.3),
        generator=torch.Generator().manual_seed(0),
        after_step=project,
    )
    for epoch in range(20):
        made.run_epoch(epoch, lambda done, total: None)

    assert len(seen) == 60 and any(seen)  # after every step, and the optimizer had moved it
    assert model.bias.item() == 0
    assert model.weight.item() == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
@pytest.mark.parametrize("before", ["highest", "high", "medium"])
def test_the_precision_of_products_is_as_before_outside(precision: str, before: str) -> None:
    at_start = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    try:
        with matmul_precision(precision):
            inside = torch.get_float32_matmul_precision()
        with pytest.raises(KeyError), matmul_precision(precision):
            raise KeyError
        assert inside == ("highest" if precision == "float32" else "high")
        assert torch.get_float32_matmul_precision() == before
    finally:
        torch.set_float32_matmul_precision(at_start)


@pytest.mark.parametrize("loss", ["cross-entropy", "self-adversarial"])
def test_mixed_precision_learns_about_the_same(loss: str) -> None:
    losses = [
        trainer(loss=loss, precision=p).run_epoch(0, lambda done, total: None)
        for p in ("float32", "bfloat16")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_a_loss_that_is_not_finite_stops_with_a_sentence() -> None:
    made = trainer(learning_rate=1e30, loss="cross-entropy")
    with pytest.raises(
        InputError, match=r"training diverged in epoch .* lower training\.learning_rate"
    ):
        for epoch in range(5):
            made.run_epoch(epoch, lambda done, total: None)


def test_weights_that_the_last_step_broke_stop_training_in_the_same_epoch() -> None:
    made = trainer(batch_size=7, loss="cross-entropy")  # one step an epoch: its loss is still fine
    weight = next(made.model.parameters())
    weight.register_hook(lambda gradient: gradient * torch.nan)  # type: ignore[no-untyped-call]
    with pytest.raises(InputError, match="training diverged in epoch 1"):
        made.run_epoch(0, lambda done, total: None)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"loss": "hinge"}, "loss = 'hinge' is not known"),
        ({"schedule": "linear"}, "constant, cosine, step"),
        ({"precision": "float16"}, "float32, tf32, bfloat16"),
        ({"metric": "mean_rank"}, "mrr, hits@1, hits@3, hits@10"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"learning_rate": math.nan}, "learning_rate must be above 0"),
        ({"patience": 3}, "patience needs training.validate_every"),
        ({"validate_every": -1}, "validate_every must be 0 or more"),
        ({"clip_gradient": -1.0}, "clip_gradient must be 0 or more"),
        ({"checkpoint_seconds": math.nan}, "checkpoint_seconds must be 0 or more"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TrainingSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "settings", "sentence"),
    [
        (OneVsAllSettings, {"smoothing": 1.0}, r"one_vs_all.smoothing must be in \[0, 1\)"),
        (OneVsAllSettings, {"relation_weight": -1.0}, "one_vs_all.relation_weight must be 0 or"),
        (OneVsAllSettings, {"regularization": math.nan}, "one_vs_all.regularization must be 0"),
        (SampledSettings, {"num_negatives": 0}, "sampled.num_negatives must be at least 1, got 0"),
        (SampledSettings, {"steps_per_epoch": -1}, "sampled.steps_per_epoch must be 0 or more"),
        (SampledSettings, {"temperature": -0.5}, "sampled.temperature must be 0 or more"),
        (OutOfSampleSettings, {"mask_share": 1.0}, "out_of_sample.mask_share must be in"),
    ],
)
def test_impossible_settings_of_a_kind_of_loss_are_refused(
    record: type, settings: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        record(**settings)


@pytest.mark.gpu
@pytest.mark.parametrize("loss", ["binary-cross-entropy", "cross-entropy", "self-adversarial"])
@pytest.mark.parametrize("clip_gradient", [0.0, 0.1])
def test_a_replayed_step_does_what_the_step_itself_does(
    loss: str, clip_gradient: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weights(num_warm: int) -> dict[str, torch.Tensor]:
        monkeypatch.setattr("nodepiece.training.trainer.WARMUP_STEPS", num_warm)
        settings = TrainingSettings(
            loss=loss, clip_gradient=clip_gradient, batch_size=1, learning_rate=0.01
        )
        generator = torch.Generator("cuda").manual_seed(0)
        model = tiny_model(query_dropout=0.2).cuda().train()
        use_generator(model, generator)
        made = link_trainer(model, EDGES.cuda(), settings, generator=generator)
        for epoch in range(3):
            made.run_epoch(epoch, lambda done, total: None)
        assert (not made.captured) == (num_warm > 100)
        return model.state_dict()

    torch.testing.assert_close(weights(3), weights(1000))


@pytest.mark.gpu
def test_a_step_is_recorded_even_where_every_epoch_has_one() -> None:
    generator = torch.Generator("cuda").manual_seed(0)
    settings = TrainingSettings(loss="self-adversarial", batch_size=len(EDGES))
    made = link_trainer(tiny_model().cuda(), EDGES.cuda(), settings, generator=generator)
    for epoch in range(5):
        made.run_epoch(epoch, lambda done, total: None)
    assert made.batches.num_batches == 1
    assert made.captured


def trainer_on_gpu(seed: int) -> Trainer[Any]:
    """Of a model with dropout, so that every step draws from the generator."""
    generator = torch.Generator("cuda").manual_seed(seed)
    model = tiny_model(query_dropout=0.2, seed=seed).cuda()
    settings = TrainingSettings(loss="cross-entropy", batch_size=1, learning_rate=0.01)
    return link_trainer(model, EDGES.cuda(), settings, generator=generator)


def weights_after(made: Trainer[Any], *epochs: int) -> dict[str, torch.Tensor]:
    for epoch in epochs:
        made.run_epoch(epoch, lambda done, total: None)
    return {name: value.clone() for name, value in made.model.state_dict().items()}


@pytest.mark.gpu
def test_two_trainers_in_turns_do_what_each_does_alone() -> None:
    alone = [weights_after(trainer_on_gpu(seed), 0, 1, 2) for seed in (0, 1)]
    pair = [trainer_on_gpu(seed) for seed in (0, 1)]
    in_turns = [[weights_after(made, epoch) for made in pair] for epoch in range(3)]
    assert all(made.captured for made in pair)
    torch.testing.assert_close(in_turns[-1], alone)


@pytest.mark.gpu
def test_a_replayed_step_draws_from_the_seed_that_the_generator_has_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def weights(num_warm: int) -> list[dict[str, torch.Tensor]]:
        monkeypatch.setattr("nodepiece.training.trainer.WARMUP_STEPS", num_warm)
        made = trainer_on_gpu(0)
        after_epochs = []
        for epoch in range(3):
            made.generator.manual_seed(epoch)
            after_epochs.append(weights_after(made, epoch))
        assert (not made.captured) == (num_warm > 100)
        return after_epochs

    torch.testing.assert_close(weights(3), weights(1000))


@pytest.mark.gpu
def test_a_checkpoint_is_loaded_into_a_trainer_that_has_recorded_a_step(tmp_path: Path) -> None:
    made = trainer_on_gpu(0)
    weights_after(made, 0, 1)
    save_checkpoint(tmp_path / "checkpoint", made, Progress(epoch=2), None)
    expected = weights_after(made, 2)
    load_checkpoint(tmp_path / "checkpoint", made)
    torch.testing.assert_close(weights_after(made, 2), expected)


class Pretended(Processes):
    """Two processes of which the other one always agrees."""

    def average(self, tensors: Iterable[torch.Tensor]) -> None:
        pass

    def broadcast(self, tensors: Iterable[torch.Tensor]) -> None:
        pass


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("shared_negatives", [False, True])
def test_drawn_and_weighted_facts_are_replayed_whole_or_in_two_parts(
    shared_negatives: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.training.trainer.current_processes", lambda: Pretended(0, count))

    def weights(num_warm: int) -> dict[str, torch.Tensor]:
        monkeypatch.setattr("nodepiece.training.trainer.WARMUP_STEPS", num_warm)
        training = TrainingSettings(
            loss="self-adversarial", batch_size=4, clip_gradient=0.1, learning_rate=0.01
        )
        sampled = SampledSettings(
            steps_per_epoch=5,
            subsampling=True,
            shared_negatives=shared_negatives,
            num_negatives=3,
            temperature=1.0,
        )
        generator = torch.Generator("cuda").manual_seed(0)
        model = tiny_model().cuda().train()
        made = link_trainer(model, EDGES.cuda(), training, sampled=sampled, generator=generator)
        for epoch in range(3):
            made.run_epoch(epoch, lambda done, total: None)
        assert len(made.captured) == (0 if num_warm > 100 else 2 * count - 1)
        return model.state_dict()

    torch.testing.assert_close(weights(3), weights(1000))
