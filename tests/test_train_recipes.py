"""Recipes trained one after another, whose results are kept."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from benchmarks import train_recipes

from nodepiece.errors import InputError
from nodepiece.report.measured import Measurement, has_remark, shared_device

SHORT = ["--set", "training.epochs=2", "--set", "training.validate_every=1", "--device", "cpu"]


def train(tmp_path: Path, *words: str) -> None:
    folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    train_recipes.main(["countries", *SHORT, *folders, *words])


def read(tmp_path: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((tmp_path / "results" / f"{name}.json").read_text("utf-8")))


def test_each_seed_has_a_run_and_a_file_with_its_command(tmp_path: Path) -> None:
    train(tmp_path, "--seeds", "0", "1", "--suffix", "short", "--warm-up", "--baselines")

    first, second = (read(tmp_path, name) for name in ("countries-short", "countries-short-seed-1"))
    assert (first["seed"], second["seed"]) == (0, 1)
    assert "--set seed=1" in second["command"]
    assert first["epochs"] == 2  # the warm-up had one
    assert first["peak_memory"] == {"device": None}
    assert "remark" not in first
    shortcuts = read(tmp_path, "baselines")["models"]["countries-short"]
    assert shortcuts["mrr"] == pytest.approx(first["mrr"])


def test_what_is_finished_is_kept_and_what_was_stopped_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, 1.0, *[1e9] * 100])
    with monkeypatch.context() as patched:
        patched.setattr(train_recipes, "perf_counter", lambda: next(times))
        train(tmp_path, "--minutes", "5")
    assert "out of time before the end of countries" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()

    train(tmp_path)
    resumed = read(tmp_path, "countries")
    assert resumed["remark"] == train_recipes.GOES_ON
    assert not has_remark(Measurement("countries", resumed))

    other = tmp_path / "other"
    train(other)
    assert read(other, "countries")["mrr"] == resumed["mrr"]
    (other / "results" / "countries.json").unlink()  # as if the process had ended before
    train(other)
    assert "is finished" in capsys.readouterr().out
    assert read(other, "countries")["mrr"] == resumed["mrr"]
    with pytest.raises(InputError, match="other settings"):
        train(other, "--set", "training.learning_rate=0.5")


def test_classes_have_scores_of_their_own_and_no_shortcuts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {"roc_auc": 0.9, "prc_auc": 0.5, "hard_accuracy": 0.4, "peak_memory": {}}
    monkeypatch.setattr(train_recipes, "train_experiment", lambda *_, **__: scores)
    monkeypatch.setattr(train_recipes, "load", lambda *_, **__: Mock())
    monkeypatch.setattr(train_recipes, "to_json", lambda *_, **__: scores)
    monkeypatch.setattr(train_recipes, "shortcuts_of", lambda _: None)
    train(tmp_path, "--baselines")

    assert "ROC-AUC 0.9000" in capsys.readouterr().out
    assert not (tmp_path / "results" / "baselines.json").exists()


@pytest.mark.parametrize("alone", [False, True])
def test_the_seconds_of_a_run_on_a_gpu_are_explained(alone: bool) -> None:
    found: dict[str, Any] = {"peak_memory": {"process": 2, "device": 1}}
    remarks = [train_recipes.ALONE if alone else train_recipes.NOT_ALONE, train_recipes.COMPILED]
    kept = train_recipes.with_remark(found, remarks)
    assert kept["peak_memory"] == {"device": 1}
    measured = Measurement("run", kept)
    assert not has_remark(measured)
    assert shared_device(measured) is not alone
