from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tests.training.tiny_models import EDGES, tiny_model
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.training.checkpoint import (
    Progress,
    load_checkpoint,
    load_tensors,
    load_weights,
    save_checkpoint,
    save_tensors,
)
from nodepiece.training.links import link_trainer
from nodepiece.training.loop import Metrics, Stopping, fit
from nodepiece.training.settings import TrainingSettings
from nodepiece.training.trainer import Trainer


def trainer(seed: int = 0, **settings: Any) -> Trainer[Any]:
    chosen = {"batch_size": 2, "learning_rate": 0.01, "epochs": 4, "checkpoint_seconds": 0}
    training = TrainingSettings(**(chosen | settings))
    generator = torch.Generator().manual_seed(seed)
    model = tiny_model(query_dropout=0.2, seed=seed)
    return link_trainer(model, EDGES, training, generator=generator)


class Watch:
    """Keeps the records it is shown."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.steps: list[tuple[int, int, int]] = []

    def on_step(self, epoch: int, done: int, total: int) -> None:
        self.steps.append((epoch, done, total))

    def on_epoch(self, record: dict[str, Any], progress: Progress) -> None:
        assert progress.history[-1] == record
        self.records.append(record)


def run(
    made: Trainer[Any],
    folder: Path,
    *,
    validate: Callable[[], Metrics] = dict,
    watch: Watch | None = None,
    stop_after: int = 0,
    resume: bool = False,
) -> tuple[Progress, Stopping]:
    asked = iter(range(1, 100))
    return fit(
        made,
        checkpoint=folder / "checkpoint.safetensors",
        validate=validate,
        before_epoch=lambda epoch: None,
        callbacks=[watch] if watch else [],
        should_stop=lambda: next(asked) == stop_after,
        resume=resume,
    )


def scripted(values: list[float], made: Trainer[Any]) -> tuple[Callable[[], Metrics], list[Tensor]]:
    """A validation that returns given metrics in turn, and keeps the weights of each call."""
    script: Iterator[float] = iter(values)
    seen: list[Tensor] = []

    def validate() -> Metrics:
        seen.append(next(made.model.parameters()).detach().clone())
        return {"mrr": next(script)}

    return validate, seen


def test_the_best_weights_are_kept(tmp_path: Path) -> None:
    made = trainer(validate_every=1)
    validate, seen = scripted([0.1, 0.5, 0.3, 0.5], made)
    progress, stopping = run(made, tmp_path, validate=validate)
    assert (progress.best_metric, progress.best_epoch) == (0.5, 2)  # the first of two
    assert torch.equal(next(made.model.parameters()), seen[1])
    assert stopping == Stopping("all epochs done")


@pytest.mark.parametrize(("noise", "kept"), [(0.1, 4), (0.01, 2)])
def test_the_last_weights_are_kept_where_the_best_are_better_by_noise_only(
    noise: float, kept: int, tmp_path: Path
) -> None:
    made = trainer(validate_every=1, validation_noise=noise)
    validate, seen = scripted([0.1, 0.5, 0.3, 0.45], made)
    progress, _ = run(made, tmp_path, validate=validate)
    assert progress.best_epoch == kept
    assert torch.equal(next(made.model.parameters()), seen[kept - 1])


def test_last_weights_within_noise_do_not_give_patience_back(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 20, "validate_every": 1, "patience": 2}
    made = trainer(**settings, validation_noise=0.1)
    validate, seen = scripted([0.5, 0.3, 0.45], made)
    progress, stopping = run(made, tmp_path, validate=validate)
    assert (progress.best_epoch, stopping.reason) == (3, "no improvement in 2 validations")
    resumed = trainer(**settings, validation_noise=0.1)
    progress, stopping = run(resumed, tmp_path, resume=True)
    assert (progress.epoch, stopping.reason) == (3, "no improvement in 2 validations")
    assert torch.equal(next(resumed.model.parameters()), seen[2])


def test_without_validation_the_last_weights_are_kept(tmp_path: Path) -> None:
    made = trainer()
    progress, _ = run(made, tmp_path)
    assert progress.best_epoch is None
    again = trainer()
    for epoch in range(4):
        again.run_epoch(epoch, lambda done, total: None)
    torch.testing.assert_close(made.model.state_dict(), again.model.state_dict(), rtol=0, atol=0)


def test_training_stops_when_patience_is_lost(tmp_path: Path) -> None:
    made = trainer(epochs=20, validate_every=2, patience=2)
    validate, _ = scripted([0.1, 0.3, 0.2, 0.4, 0.4, 0.1, 0.9], made)
    progress, stopping = run(made, tmp_path, validate=validate)
    assert progress.epoch == 12  # two validations after the one of epoch 8
    assert progress.best_epoch == 8
    assert stopping.reason == "no improvement in 2 validations"


def test_a_run_that_lost_its_patience_does_not_go_on_when_resumed(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 20, "validate_every": 1, "patience": 1}
    made = trainer(**settings)
    validate, seen = scripted([0.3, 0.2], made)
    run(made, tmp_path, validate=validate)
    resumed = trainer(**settings)
    progress, stopping = run(resumed, tmp_path, resume=True)
    assert (progress.epoch, stopping.reason) == (2, "no improvement in 1 validations")
    assert torch.equal(next(resumed.model.parameters()), seen[0])


def test_the_last_epoch_is_always_validated(tmp_path: Path) -> None:
    made, watch = trainer(epochs=5, validate_every=3), Watch()
    validate, _ = scripted([0.1, 0.2], made)
    run(made, tmp_path, validate=validate, watch=watch)
    assert [record["epoch"] for record in watch.records if "valid_mrr" in record] == [3, 5]


def test_a_metric_that_validation_does_not_give_is_an_error(tmp_path: Path) -> None:
    made = trainer(validate_every=1, metric="hits@1")
    with pytest.raises(InputError, match=r"training.metric = 'hits@1' is not one of mrr"):
        run(made, tmp_path, validate=lambda: {"mrr": 0.5})


def test_callbacks_see_every_step_and_every_epoch(tmp_path: Path) -> None:
    watch = Watch()
    progress, _ = run(trainer(epochs=2), tmp_path, watch=watch)
    assert watch.steps == [(epoch, done, 4) for epoch in (0, 1) for done in (1, 2, 3, 4)]
    assert watch.records == progress.history
    assert [set(record) for record in watch.records] == [
        {"epoch", "loss", "learning_rate", "seconds"}
    ] * 2


@pytest.mark.parametrize("stop_after", [1, 3, 4, 6, 8, 15, 16])  # steps; an epoch has 4
@pytest.mark.parametrize("loss", ["cross-entropy", "self-adversarial"])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(
    loss: str, stop_after: int, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"loss": loss, "validate_every": 1, "schedule": "cosine"}
    whole = trainer(**settings)
    validate, _ = scripted([0.1, 0.5, 0.3, 0.2], whole)
    expected, _ = run(whole, tmp_path / "whole", validate=validate)

    script, num_validated = [0.1, 0.5, 0.3, 0.2], stop_after // 4
    first = trainer(**settings)
    validate, _ = scripted(script[:num_validated], first)
    stopped, stopping = run(first, tmp_path, validate=validate, stop_after=stop_after)
    assert stopping.interrupted
    assert (stopped.epoch, stopped.step, stopped.num_steps) == (*divmod(stop_after, 4), stop_after)
    second = trainer(seed=7, **settings)  # nothing of what it starts with may matter
    validate, _ = scripted(script[num_validated:], second)
    progress, _ = run(second, tmp_path, validate=validate, resume=True)

    torch.testing.assert_close(second.model.state_dict(), whole.model.state_dict(), rtol=0, atol=0)
    for record in progress.history + expected.history:
        del record["seconds"]
    assert progress.history == expected.history
    assert progress.num_steps == expected.num_steps == 16


def test_a_run_stopped_twice_in_one_epoch_goes_on_from_there(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"loss": "self-adversarial", "epochs": 2}
    whole = trainer(**settings)
    run(whole, tmp_path / "whole")

    run(trainer(**settings), tmp_path, stop_after=1)
    run(trainer(seed=5, **settings), tmp_path, stop_after=2, resume=True)  # after step 3
    last = trainer(seed=7, **settings)
    progress, _ = run(last, tmp_path, resume=True)

    assert progress.num_steps == 8
    torch.testing.assert_close(last.model.state_dict(), whole.model.state_dict(), rtol=0, atol=0)


def test_a_long_epoch_is_saved_in_between(tmp_path: Path) -> None:
    made = trainer(epochs=1, checkpoint_seconds=1e-9)
    seen: list[int] = []

    class Looks:
        def on_step(self, epoch: int, done: int, total: int) -> None:
            path = tmp_path / "checkpoint.safetensors"
            seen.append(load_checkpoint(path, trainer())[0].step if path.exists() else 0)

        def on_epoch(self, record: dict[str, Any], progress: Progress) -> None:
            pass

    fit(
        made,
        checkpoint=tmp_path / "checkpoint.safetensors",
        validate=dict,
        before_epoch=lambda epoch: None,
        callbacks=[Looks()],
        should_stop=lambda: False,
        resume=False,
    )
    assert seen == [0, 1, 2, 3]


def test_a_callback_may_look_at_the_loss_so_far(tmp_path: Path) -> None:
    class Losses(Watch):
        def on_start(self, trainer: Trainer[Any]) -> None:
            self.trainer, self.losses = trainer, list[float]()

        def on_step(self, epoch: int, done: int, total: int) -> None:
            self.losses.append(self.trainer.mean_loss)

    watch = Losses()
    progress, _ = run(trainer(epochs=1), tmp_path, watch=watch)
    assert len(set(watch.losses)) == 4
    assert watch.losses[-1] == pytest.approx(progress.history[0]["loss"])


def test_a_finished_run_is_left_as_it_is(tmp_path: Path) -> None:
    made, again = trainer(), trainer(seed=1)
    run(made, tmp_path)
    progress, _ = run(again, tmp_path, resume=True)
    assert progress.epoch == 4
    torch.testing.assert_close(made.model.state_dict(), again.model.state_dict(), rtol=0, atol=0)


def test_a_checkpoint_holds_everything_that_changes(tmp_path: Path) -> None:
    made, other = trainer(loss="cross-entropy"), trainer(seed=1, loss="cross-entropy")
    for epoch in range(2):
        made.run_epoch(epoch, lambda done, total: None)
    made.batches.reserve(99)
    best = {"a": torch.arange(3)}
    progress = Progress(2, 0.5, 1, 1, 3.25, history=[{"epoch": 1}, {"epoch": 2}])
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, made, progress, best)
    loaded, loaded_best = load_checkpoint(path, other)
    assert loaded == progress
    assert loaded_best is not None
    assert torch.equal(loaded_best["a"], best["a"])
    assert torch.equal(other.generator.get_state(), made.generator.get_state())
    assert other.batches.capacity == 99
    states = [each.optimizer.state_dict()["state"] for each in (made, other)]
    torch.testing.assert_close(*states, rtol=0, atol=0)


def test_the_same_tensors_give_the_same_bytes(tmp_path: Path) -> None:
    header = {str(n): str(n) for n in range(20)}
    paths = [tmp_path / str(n) for n in range(5)]
    for path in paths:
        save_tensors({"a": torch.arange(3), "b": torch.ones(2)}, path, header)
    assert len({path.read_bytes() for path in paths}) == 1
    assert load_tensors(paths[0])[1] == header


def test_a_step_is_recorded_anew_after_a_checkpoint_was_loaded(tmp_path: Path) -> None:
    made = trainer()
    made.run_epoch(0, lambda done, total: None)
    save_checkpoint(tmp_path / "checkpoint", made, Progress(epoch=1), None)
    made.captured, made.num_warmup_steps = [lambda: None], 3  # as it would be on CUDA
    load_checkpoint(tmp_path / "checkpoint", made)
    assert (made.captured, made.num_warmup_steps) == ([], 0)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, trainer(), Progress(), None)
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    with pytest.raises(InputError, match=r"cannot read .*without --resume"):
        load_checkpoint(path, trainer())


def test_another_file_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(InputError, match="is not a checkpoint"):
        load_checkpoint(path, trainer())


def test_a_file_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_tensors({"a": torch.ones(1)}, path, {"format_version": "99"})
    with pytest.raises(InputError, match="written by a newer nodepiece"):
        load_tensors(path)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="do not fit the model"):
        load_weights(tiny_model(), {"a": torch.ones(1)}, tmp_path)


def test_tensorboard_gets_the_curves(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from nodepiece.training.tensorboard import TensorBoard

    board = TensorBoard(tmp_path / "curves")
    run(trainer(epochs=2), tmp_path, watch=board)  # type: ignore[arg-type]
    board.writer.close()
    (events,) = (tmp_path / "curves").iterdir()
    content = events.read_bytes()
    assert b"loss" in content
    assert b"learning_rate" in content
