import json
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodepiece.cli import app
from nodepiece.commands.plan import plan_table, readable_time
from nodepiece.tasks.plan import Plan
from nodepiece.tasks.timing import Duration

RUNNER = CliRunner()


def test_a_plan_for_an_experiment_without_its_files() -> None:
    result = RUNNER.invoke(app, ["plan", "wikikg2-paper", "--no-trial"])
    assert result.exit_code == 0
    assert "2,500,604 nodes" in result.output
    assert "500,334,800" in result.output  # of the shallow model


def test_a_plan_for_a_graph_with_other_settings() -> None:
    folder = files("nodepiece") / "data" / "countries"
    words = ["plan", str(folder), "--no-trial", "--json", "--set", "encoder.dim=16"]
    content = json.loads(RUNNER.invoke(app, words).stdout)
    pieces, shallow = content["models"]
    assert content["sizes"]["num_nodes"] == 831
    assert shallow["parameters"] == 831 * 16 + 2 * content["sizes"]["num_relations"] * 16
    assert shallow["weights"] == 4 * shallow["parameters"]
    assert pieces["token_table"] == 831 * (20 * 6 + 12 * 4)


def test_a_recipe_with_walks_is_planned_on_any_graph(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        'extends = "fb15k-237-best"\ndataset = "countries"\n[tokenizer]\nnum_anchors = 60\n'
        "[encoder]\ndim = 8\nhidden_dim = 8\n[walks]\nsteps = 2\nplain_steps = 1\n"
    )
    result = RUNNER.invoke(app, ["plan", str(recipe), "--json", "--device", "cpu"])
    pieces, shallow = json.loads(result.stdout)["models"]
    assert pieces["seconds"]["step"] > 0
    assert shallow["seconds"]["step"] > 0


def test_node_classification_without_its_files_asks_for_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NODEPIECE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = RUNNER.invoke(app, ["plan", "wd50k-10-paper", "--no-trial"])
    assert "nodepiece datasets fetch" in str(result.exception)


def test_times_are_reported_where_they_were_tried() -> None:
    words = ["plan", "countries-shallow", "--json", "--device", "cpu"]
    (model,) = json.loads(RUNNER.invoke(app, words).stdout)["models"]
    assert model["seconds"]["training"] > 0


def test_steps_that_do_not_fit_the_memory_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodepiece.tasks.machine.free_memory", lambda device: 10**6)
    result = RUNNER.invoke(app, ["plan", "countries", "--device", "cpu"])
    assert result.exit_code == 0
    assert "no steps were timed, as training needs about" in result.stderr
    assert "parameters" in result.stdout
    assert "time to train" not in result.stdout


def test_a_model_that_was_not_timed_has_dashes_beside_one_that_was() -> None:
    planned = Plan("pieces", 1, 1, 1, 1, 1, 1)
    timed = Duration(tokenizing=1.0, step=0.1, num_steps=10, ranking=2.0)
    table = plan_table([planned, planned], [None, timed])
    assert list(table.columns[1].cells)[-5:] == ["-"] * 5
    assert "100.0 ms" in list(table.columns[2].cells)


def test_an_unknown_name_is_reported() -> None:
    result = RUNNER.invoke(app, ["plan", "fb15k-238", "--no-trial"])
    assert "neither a file" in str(result.exception)


@pytest.mark.parametrize(
    ("seconds", "words"), [(3.21, "3.2 s"), (40, "40 s"), (720, "12 min"), (12600, "3.5 h")]
)
def test_times_are_readable(seconds: float, words: str) -> None:
    assert readable_time(seconds) == words


def test_what_would_be_chosen_for_a_graph_in_some_minutes() -> None:
    folder = files("nodepiece") / "data" / "countries"
    words = ["plan", str(folder), "--minutes", "0.01,0.1", "--device-memory", "2GB", "--json"]
    result = RUNNER.invoke(app, [*words, "--device", "cpu"])
    short, long = json.loads(result.stdout)
    assert short["steps"] < long["steps"]
    assert long["memory"]["peak"] < 2e9
    assert long["settings"]["encoder.kind"] == "gated-sum"


def test_a_memory_alone_is_planned_for_ten_minutes_an_hour_and_a_day() -> None:
    folder = files("nodepiece") / "data" / "countries"
    words = ["plan", str(folder), "--device-memory", "24GB", "--json", "--device", "cpu"]
    planned = json.loads(RUNNER.invoke(app, words).stdout)
    assert [each["minutes"] for each in planned] == [10, 60, 1440]


def test_a_plan_with_default_settings_says_how_to_see_the_choice() -> None:
    folder = str(files("nodepiece") / "data" / "countries")
    result = RUNNER.invoke(app, ["plan", folder, "--no-trial"])
    assert f"says what `nodepiece train {folder}` would choose" in result.output
    assert "would choose" not in RUNNER.invoke(app, ["plan", "countries", "--no-trial"]).output


def test_minutes_are_for_graphs_and_not_for_experiments() -> None:
    result = RUNNER.invoke(app, ["plan", "countries", "--minutes", "10"])
    assert "countries is an experiment; leave them out" in str(result.exception)
    result = RUNNER.invoke(app, ["plan", "fb15k-237", "--minutes", "ten"])
    assert "--minutes are numbers" in str(result.exception)
