"""The benchmark of equal minutes: PyKEEN's scores reach our ranking unchanged."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from benchmarks.budget import parse_options
from benchmarks.budget_all import GRIDS, Job, finals, run_all, searches, settings_as_options
from benchmarks.budget_pykeen import LOOPS, MODELS, PykeenSettings, all_tails, train_pykeen
from benchmarks.budget_results import Run, collect, summary
from benchmarks.budget_run import pykeen_settings
from benchmarks.planted_graphs import GraphSizes, planted_split

from nodepiece.data.dataset import Dataset
from nodepiece.evaluation.ranking import ScoreAll

pytest.importorskip("pykeen")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return planted_split(GraphSizes(60, 200, 8), seed=0)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("model", MODELS)
def test_scores_are_those_of_pykeen(model: str, loop: str, dataset: Dataset) -> None:
    settings = PykeenSettings(model, loop, dim=6, batch_size=16)
    trained = train_pykeen(
        settings, dataset, seconds=0.01, validate=lambda scores: 0.0, validate_seconds=1
    )
    num_relations = dataset.train.num_relations
    heads, relations = torch.arange(20), torch.arange(20) % num_relations

    score = all_tails(settings, trained.model, num_relations)

    with torch.no_grad():
        tails = trained.model.predict_t(torch.stack([heads, relations], dim=1))
        of_heads = trained.model.predict_h(torch.stack([relations, heads], dim=1))
    torch.testing.assert_close(score(heads, relations), tails, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(
        score(heads, relations + num_relations), of_heads, rtol=1e-3, atol=1e-4
    )


def test_the_best_weights_on_validation_are_kept(dataset: Dataset) -> None:
    settings = PykeenSettings("distmult", "slcwa", dim=4, batch_size=16, learning_rate=0.1)
    kept: list[torch.Tensor] = []
    heads, relations = torch.arange(4), torch.zeros(4, dtype=torch.int64)

    def validate(scores: ScoreAll) -> float:
        kept.append(scores(heads, relations))
        return 1 / len(kept)  # the first is the best; there is one before every step

    trained = train_pykeen(settings, dataset, seconds=1, validate=validate, validate_seconds=0)

    assert len(trained.curve) > 1 and trained.steps > 1
    score = all_tails(settings, trained.model, dataset.train.num_relations)
    torch.testing.assert_close(score(heads, relations), kept[0])


def run_of(contender: str, minutes: float, valid: float, test: float | None = None) -> Run:
    return {
        "dataset": "wn18rr",
        "contender": contender,
        "minutes": minutes,
        "settings": {},
        "parameters": 10 if contender == "nodepiece" else 100,
        "steps": 7,
        "epochs": 1,
        "peak_memory_mib": 1,
        "valid": {"mrr": valid},
        "test": None if test is None else {"mrr": test, "hits@10": test},
        "curve": [{"seconds": 30.0, "mrr": valid / 2}, {"seconds": 60.0, "mrr": valid}],
    }


def test_the_opponent_is_the_best_on_validation_and_shorter_runs_are_its_search() -> None:
    runs = [
        run_of("pykeen-transe-slcwa", 2, 0.9),
        run_of("pykeen-transe-slcwa", 10, 0.3, 0.5),
        run_of("pykeen-rotate-slcwa", 10, 0.4, 0.2),
        run_of("pykeen-rotate-slcwa", 10, 0.1, 0.9),
        run_of("nodepiece", 10, 0.2, 0.3),
    ]

    found = summary(runs)["datasets"]["wn18rr"]

    assert found["opponent"] == "pykeen-rotate-slcwa"
    assert found["times_mrr"] == 1.5 and found["share_of_parameters"] == 0.1
    assert [run["valid"]["mrr"] for run in found["runs"]] == [0.2, 0.4, 0.3]
    assert [run["valid_mrr"] for run in found["search"]] == [0.9, 0.1]


def test_collecting_runs_writes_a_table_and_a_figure(tmp_path: Path) -> None:
    for number, run in enumerate((run_of("nodepiece", 10, 0.2, 0.3), run_of("a-b-c", 10, 0.1))):
        (tmp_path / f"{number}.json").write_text(json.dumps(run))

    collect(tmp_path.glob("*.json"), tmp_path / "budget.json")

    assert (tmp_path / "budget.svg").read_text().startswith("<?xml")
    assert json.loads((tmp_path / "budget.json").read_text())["datasets"]["wn18rr"]["minutes"] == 10


def test_every_contender_is_searched_but_for_those_that_do_not_fit() -> None:
    names = [job.name for job in searches(["wn18rr", "planted-2.5m"])]
    assert len(names) == len(set(names))
    assert sum("wn18rr" in name for name in names) == sum(len(grid) for grid in GRIDS.values())
    assert not any("2.5m" in name and "-lcwa" in name for name in names)


def test_the_best_settings_of_the_best_contenders_get_all_the_minutes() -> None:
    def found(contender: str, rate: float, mrr: float) -> Run:
        _, model, loop = contender.split("-")
        settings = PykeenSettings(model, loop, learning_rate=rate, decay=rate > 1)
        parts = {"contender": contender, "settings": asdict(settings), "valid": {"mrr": mrr}}
        return {"dataset": "wn18rr"} | parts

    runs = [
        found("pykeen-transe-slcwa", 1, 0.3),
        found("pykeen-transe-slcwa", 2, 0.4),
        found("pykeen-rotate-slcwa", 3, 0.1),
        found("pykeen-complex-lcwa", 4, 0.2),
    ]

    ours, *theirs = finals(["wn18rr"], runs, 10, finalists=2)

    assert ours.name == "nodepiece-wn18rr" and "--lr" not in ours.options
    assert [job.name for job in theirs] == [
        "final-wn18rr-transe-slcwa",
        "final-wn18rr-complex-lcwa",
    ]
    assert theirs[0].options[-1] == "--decay" and "--lr 2" in " ".join(theirs[0].options)


def test_options_give_the_settings_of_a_search_again(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PykeenSettings("transe", "slcwa", 7, 0.5, 3, 2, "nssa", 4.0, 2, True, 0.25)
    words = ["x", "run", "--dataset", "d", "--contender", "pykeen-transe-slcwa", "-o", "f"]
    monkeypatch.setattr("sys.argv", [*words, *settings_as_options(asdict(settings))])
    assert pykeen_settings(parse_options()) == settings


def test_runs_with_a_file_are_not_repeated_and_failures_are_named(tmp_path: Path) -> None:
    (tmp_path / "done.json").write_text('{"test": {"mrr": 1}}')
    (tmp_path / "searched.json").write_text('{"test": null}')
    (tmp_path / "stopped.json").write_text('{"test": null}')  # before its test facts were ranked
    jobs = [Job("done", ()), Job("searched", ("--no-test",)), Job("stopped", ()), Job("new", ())]
    assert run_all(jobs, tmp_path, lanes=2) == ["stopped", "new"]
    assert "required: --dataset" in (tmp_path / "new.log").read_text()
