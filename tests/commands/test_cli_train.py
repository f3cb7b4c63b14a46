"""nodepiece train: from an experiment to a run folder, stopped and resumed on the way."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nodepiece.commands.epochs import EpochProgress
from nodepiece.commands.train import is_no_better
from nodepiece.locks import sole_writer
from nodepiece.tasks.link_prediction import LinkPrediction

if TYPE_CHECKING:
    from tests.commands.conftest import Nodepiece

ONE_EPOCH = ("--set", "training.epochs=1", "--set", "encoder.dim=16", "--device", "cpu")
RUN_FILES = {
    "checkpoint.safetensors",
    "config.toml",
    "facts",
    "history.jsonl",
    "metrics.json",
    "model.safetensors",
    "names",
    "vocabulary",
}


def metrics_of(folder: Path) -> dict[str, Any]:
    """What must not depend on when and how often a run was stopped."""
    metrics = json.loads((folder / "metrics.json").read_text())
    varying = ("seconds", "peak_memory", "command")
    return {key: value for key, value in metrics.items() if key not in varying}


def own_graph(folder: Path, *splits: str) -> Path:
    """ada, bob and cy know each other in a circle; a minimal experiment on it."""
    (folder / "mine").mkdir()
    facts = ["ada\tknows\tbob\n", "bob\tknows\tcy\n", "cy\tknows\tada\n"]
    (folder / "mine" / "train.tsv").write_text("".join(facts))
    for split in splits:
        (folder / "mine" / f"{split}.tsv").write_text("bob\tknows\tada\n")
    experiment = folder / "mine.toml"
    experiment.write_text(
        'dataset = "mine"\nextends = "countries"\n'
        "[tokenizer]\nnum_anchors = 2\nanchors_per_node = 1\n[training]\nepochs = 1\n"
    )
    return experiment


def test_it_writes_a_run_folder_and_tells_the_result(nodepiece: Nodepiece) -> None:
    ran = nodepiece("train", "countries", "-o", "run", *ONE_EPOCH)

    assert ran.status == 0
    assert {path.name for path in Path("run").iterdir()} == RUN_FILES
    found = json.loads(Path("run/metrics.json").read_text())
    assert f"countries: test MRR {found['mrr']:.4f}, Hits@1 {found['hits@1']:.4f}" in ran.out
    valid, popularity = found["valid"]["mrr"], found["popularity_valid"]["mrr"]
    assert f"countries: valid MRR {valid:.4f}, Hits@1" in ran.out
    assert f"(popularity: MRR {popularity:.4f}, Hits@1" in ran.out.split("valid MRR")[1]
    assert found["popularity_valid"]["count"] == found["valid"]["count"] == 330
    assert "nodepiece predict run --head X --relation R" in ran.out
    assert "831 nodes, 3,222 facts for train, 165 for valid, 165 for test" in ran.err
    assert "epoch 1/1: loss" in ran.err


def test_the_run_folder_has_the_name_of_the_experiment_unless_given(nodepiece: Nodepiece) -> None:
    assert nodepiece("train", "countries", *ONE_EPOCH).status == 0
    assert Path("runs/countries/model.safetensors").is_file()


def test_without_an_experiment_it_is_said_how_to_list_them(nodepiece: Nodepiece) -> None:
    ran = nodepiece("train")

    assert ran.status == 2
    assert ran.err.startswith("error: name a GRAPH")
    assert "`nodepiece experiments` lists" in ran.err


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("contries", "contries is neither a TOML file nor a known experiment; did you mean count"),
        ("xyz", "`nodepiece experiments` lists them"),
        ("mine.toml", "there is no experiment file mine.toml"),
        ("mine.tsv", "there is no file or folder mine.tsv; check its path"),
    ],
)
def test_an_unknown_experiment_is_refused_with_the_known_ones(
    nodepiece: Nodepiece, name: str, sentence: str
) -> None:
    ran = nodepiece("train", name)

    assert ran.status == 2
    assert sentence in ran.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--set", "training.epoch=5"], "unknown setting 'training.epoch'; known are batch_size"),
        (["--set", "training.epochs"], "--set takes KEY=VALUE, such as training.epochs=5"),
        (["--set", "training.epochs=many"], "training.epochs must be int, got 'many'"),
        (["--device", "toaster"], "unknown device 'toaster'"),
        (["--data", "nowhere", "--set", "dataset=umls"], "the data folder nowhere does not exist"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    nodepiece: Nodepiece, options: list[str], sentence: str
) -> None:
    ran = nodepiece("train", "countries", "-o", "run", *options)

    assert ran.status == 2
    assert sentence in ran.err
    assert not Path("run").exists()


def test_a_dataset_that_is_not_there_is_named_with_the_way_to_get_it(nodepiece: Nodepiece) -> None:
    ran = nodepiece("train", "fb15k-237-paper", "-o", "run")

    assert ran.status == 2
    assert "`nodepiece datasets fetch fb15k-237`" in ran.err
    assert not Path("run").exists()


def test_a_folder_of_ones_own_needs_two_lines(nodepiece: Nodepiece, tmp_path: Path) -> None:
    experiment = own_graph(tmp_path, "valid", "test")

    ran = nodepiece("train", experiment, "-o", "run")

    assert ran.status == 0
    assert "mine: test MRR" in ran.out


def test_a_result_has_the_command_that_gives_it_again(nodepiece: Nodepiece, tmp_path: Path) -> None:
    experiment = own_graph(tmp_path, "valid", "test")
    mix = "tokenizer.mix={random = 1.0}"
    assert nodepiece("train", experiment, "-o", "run", "--set", mix).status == 0

    program, *words = shlex.split(json.loads(Path("run/metrics.json").read_text())["command"])

    assert program == "nodepiece"
    assert words[-2:] == ["-o", "run"]
    Path("run").rename("first")
    assert nodepiece(*words).status == 0
    assert metrics_of(Path("run")) == metrics_of(Path("first"))


def test_without_test_facts_it_trains_and_says_that_nothing_was_judged(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    experiment = own_graph(tmp_path)

    ran = nodepiece("train", experiment, "-o", "run", "--set", "training.validate_every=0")

    assert ran.status == 0
    assert "mine: no test facts, so it was not evaluated" in ran.out
    assert nodepiece("predict", "run", "--head", "ada", "--relation", "knows").status == 0
    assert "run has no test facts; choose another split" in nodepiece("evaluate", "run").err


def test_facts_are_held_out_of_a_file_without_splits_and_so_it_says(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    experiment = own_graph(tmp_path)
    circle = [f"n{n}\tknows\tn{(n + step) % 9}\n" for n in range(9) for step in (1, 2)]
    (tmp_path / "mine" / "train.tsv").write_text("".join(circle))

    ran = nodepiece("train", experiment, "-o", "run")

    assert ran.status == 0, ran.err
    held_out = "held out at random, as there were none: 1 for valid and 1 for test"
    assert held_out in " ".join(ran.err.split())
    found = json.loads(Path("run/metrics.json").read_text())
    assert found["held_out"] == {"valid": 1, "test": 1}
    assert (found["count"], found["valid"]["count"]) == (2, 2)
    again = nodepiece("train", experiment, "-o", "run", "--resume")  # the same facts, by the seed
    assert again.status == 0, again.err


def test_a_finished_run_on_a_graph_is_resumed_for_more_minutes_only_if_they_are_given(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    own_graph(tmp_path)
    words = ("train", tmp_path / "mine", "-o", "run")
    first = nodepiece(*words, "--minutes", 0.02)
    assert first.status == 0 and "0.02 minutes" in first.err
    assert "training ended: " in first.err and "after epoch" not in first.err
    written = Path("run/metrics.json").read_text()

    again = nodepiece(*words, "--resume")

    assert again.status == 0, again.err
    assert "run is finished and stays as it is; give minutes=N (--minutes N)" in again.err
    assert "as none were given" not in again.err
    assert Path("run/metrics.json").read_text() == written


def test_facts_that_cannot_be_held_out_are_not(nodepiece: Nodepiece, tmp_path: Path) -> None:
    experiment = own_graph(tmp_path)
    star = [f"hub\tknows\tn{n}\n" for n in range(9)]
    (tmp_path / "mine" / "train.tsv").write_text("".join(star))

    ran = nodepiece("train", experiment, "-o", "run")

    assert ran.status == 2
    assert "no validation facts, and none can be held out without losing nodes" in ran.err


def test_validating_without_facts_is_refused_before_the_work(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    nothing = ("--set", "evaluation.held_out_share=0")
    ran = nodepiece("train", own_graph(tmp_path), "-o", "run", *nothing)

    assert ran.status == 2
    assert "no validation facts" in ran.err
    assert "training.validate_every = 0" in ran.err
    assert not Path("run").exists()


def test_a_run_is_not_replaced_by_mistake(nodepiece: Nodepiece, run: Path) -> None:
    before = (run / "model.safetensors").read_bytes()

    ran = nodepiece("train", "countries", "-o", run, *ONE_EPOCH)

    assert ran.status == 2
    assert "holds a run already; continue it (--resume), replace it (--overwrite)" in ran.err
    assert (run / "model.safetensors").read_bytes() == before
    assert nodepiece("train", "countries", "-o", run, "--overwrite", *ONE_EPOCH).status == 0
    assert (run / "model.safetensors").read_bytes() != before


def test_a_folder_of_something_else_is_refused_before_the_work(nodepiece: Nodepiece) -> None:
    Path("photos").mkdir()
    Path("photos/one.jpg").write_text("precious")

    ran = nodepiece("train", "countries", "-o", "photos")

    assert ran.status == 2
    assert "photos exists and is not a run (it has no config.toml)" in ran.err
    assert "facts for train" not in ran.err


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is pressed in the middle of the first epoch, once."""
    on_step = EpochProgress.on_step
    pressed: list[int] = []

    def press(self: EpochProgress, epoch: int, done: int, total: int) -> None:
        on_step(self, epoch, done, total)
        if not pressed:
            pressed.append(epoch)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(EpochProgress, "on_step", press)


SETTINGS = ("--set", "training.epochs=3", "--set", "encoder.dim=16", "--device", "cpu")


def test_stopped_in_an_epoch_and_resumed_it_ends_where_it_would_have(
    nodepiece: Nodepiece, ctrl_c: None
) -> None:
    stopped = nodepiece("train", "countries", "-o", "run", *SETTINGS)

    assert stopped.status == 130
    assert "stopping and saving; press Ctrl-C again to stop at once" in stopped.err
    assert stopped.err.splitlines()[-1] == (
        "stopped and saved; continue with: nodepiece train countries "
        "--set training.epochs=3 --set encoder.dim=16 --device cpu --resume -o run"
    )
    assert "Traceback" not in stopped.err
    assert Path("run/history.jsonl").read_text() == ""  # no epoch is done yet
    unfinished = nodepiece("predict", "run", "--head", "Kenya", "--relation", "borders")
    assert unfinished.status == 0
    assert "its weights are those of step 1, without validation" in unfinished.err
    assert "Finish it with: nodepiece train run/config.toml --resume -o run" in unfinished.err
    Path("new.tsv").write_text("Kenya\tborders\tAtlantis\n")
    refused = nodepiece("update", "run", "--add", "new.tsv")
    assert "run is not finished; finish it before its graph is updated" in refused.err
    assert nodepiece("train", "countries", "--resume", "-o", "run", *SETTINGS).status == 0
    assert nodepiece("train", "countries", "-o", "whole", *SETTINGS).status == 0
    assert metrics_of(Path("run")) == metrics_of(Path("whole"))
    assert len(Path("run/history.jsonl").read_text().splitlines()) == 3
    finished = nodepiece("predict", "run", "--head", "Kenya", "--relation", "borders")
    assert "stopped before the end" not in finished.err


def test_a_run_with_minutes_that_was_stopped_says_how_many_are_left(
    nodepiece: Nodepiece, ctrl_c: None
) -> None:
    words = ("train", "countries", "-o", "run", "--set", "encoder.dim=8", "--device", "cpu")
    stopped = nodepiece(*words, "--minutes", 5, "--memory", "4GB")

    assert stopped.status == 130
    assert "5 minutes; validation with 165 of 165, the result with 165 of 165" in stopped.err
    last = stopped.err.splitlines()[-1]
    left = float(last.removeprefix("stopped and saved, ").split(" minutes left; ")[0])
    assert 3 < left <= 5
    assert last.endswith("--device cpu --resume --memory 4GB -o run")
    unfinished = nodepiece("predict", "run", "--head", "Kenya", "--relation", "borders")
    again = "Finish it with: nodepiece train run/config.toml --resume -o run"
    assert again in unfinished.err
    refused = nodepiece(*words, "--resume", "--set", "training.epochs=5")
    assert "say how many more it may take (--minutes N)" in refused.err
    assert nodepiece(*words, "--resume", "--minutes", 0.01).status == 0
    assert nodepiece(*words, "--minutes", 0, "--overwrite").status == 2


def test_a_graph_that_was_stopped_takes_the_minutes_that_are_left(
    nodepiece: Nodepiece, tmp_path: Path, ctrl_c: None
) -> None:
    own_graph(tmp_path)
    words = ("train", tmp_path / "mine", "-o", "run", "--device", "cpu")
    stopped = nodepiece(*words, "--minutes", 0.1)
    assert stopped.status == 130
    assert "left; continue with: nodepiece train" in stopped.err.splitlines()[-1]

    resumed = nodepiece(*words, "--resume")

    assert resumed.status == 0, resumed.err
    said = [
        line for line in resumed.err.splitlines() if "the rest of those the run was given" in line
    ]
    assert len(said) == 1 and float(said[0].split()[0]) <= 0.1
    assert "as none were given" not in resumed.err
    assert json.loads(Path("run/metrics.json").read_text())["minutes"] <= 0.1


def interrupted(*arguments: object, **options: object) -> None:
    signal.raise_signal(signal.SIGINT)


def test_the_second_ctrl_c_stops_at_once(
    nodepiece: Nodepiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_step = EpochProgress.on_step

    def press(self: EpochProgress, epoch: int, done: int, total: int) -> None:
        on_step(self, epoch, done, total)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(EpochProgress, "on_step", press)
    ran = nodepiece("train", "countries", "-o", "run", *ONE_EPOCH)

    assert ran.status == 130
    assert ran.err.splitlines()[-1].startswith("stopped before the end")
    assert not Path("run/checkpoint.safetensors").exists()


def test_a_run_without_a_checkpoint_says_how_to_train_it_again(
    nodepiece: Nodepiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "countries", "-o", "run", *ONE_EPOCH)
    with monkeypatch.context() as patched:
        patched.setattr("nodepiece.tasks.runner.train_model", interrupted)
        assert nodepiece(*words).status == 130

    for asked in (
        ("predict", "run", "--head", "Kenya", "--relation", "borders"),
        ("evaluate", "run"),
    ):
        refused = nodepiece(*asked)
        assert refused.status == 2
        assert "stopped before it saved a checkpoint; train it again with the same" in refused.err
        with sole_writer(Path("run")):
            refused = nodepiece(*asked)
        assert refused.status == 2
        assert "run is being trained, and has no model yet; try again later" in refused.err
    resumed = nodepiece(*words, "--resume")
    assert resumed.status == 0, resumed.err
    assert "run has no checkpoint.safetensors to continue from, so training begins" in resumed.err
    assert "begins again" not in nodepiece(*words, "--resume").err


@pytest.mark.parametrize("again", [["countries"], ["run/config.toml"]])
def test_a_run_without_a_checkpoint_is_replaced_without_a_flag(
    again: list[str], nodepiece: Nodepiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("nodepiece.tasks.runner.train_model", interrupted)
        assert nodepiece("train", "countries", "-o", "run", *ONE_EPOCH).status == 130
    assert nodepiece("train", *again, "-o", "run", *ONE_EPOCH).status == 0


@pytest.mark.parametrize("moment", ["after_training", "evaluate"])
def test_ctrl_c_after_the_last_epoch_leaves_a_run_to_use_and_to_resume(
    moment: str, nodepiece: Nodepiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        interrupt = lambda *arguments, **options: signal.raise_signal(signal.SIGINT)  # noqa: E731
        patched.setattr(LinkPrediction, moment, interrupt)
        ran = nodepiece("train", "countries", "-o", "run", *ONE_EPOCH)
    assert ran.status == 130
    last = ran.err.splitlines()[-1]
    assert last.startswith("stopped, with a checkpoint; continue with: nodepiece train countries")
    assert nodepiece("predict", "run", "--head", "Kenya", "--relation", "borders").status == 0
    assert nodepiece("train", "countries", "--resume", "-o", "run", *ONE_EPOCH).status == 0
    assert nodepiece("train", "countries", "-o", "whole", *ONE_EPOCH).status == 0
    assert metrics_of(Path("run")) == metrics_of(Path("whole"))


def test_ctrl_c_before_the_first_step_leaves_nothing_to_resume(
    nodepiece: Nodepiece, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where another run is to be replaced."""
    interrupt = lambda *arguments, **options: signal.raise_signal(signal.SIGINT)  # noqa: E731
    monkeypatch.setattr("nodepiece.tasks.run_start.make_tokens", interrupt)
    for words in (["-o", "new"], ["-o", run, "--overwrite"]):
        ran = nodepiece("train", "countries", *words, *ONE_EPOCH)
        assert ran.status == 130
        assert ran.err.splitlines()[-1].startswith("stopped before the end")
    assert nodepiece("predict", run, "--head", "Kenya", "--relation", "borders").status == 0


def test_resuming_with_other_settings_is_refused(nodepiece: Nodepiece, run: Path) -> None:
    ran = nodepiece("train", "countries", "--resume", "-o", run, "--set", "encoder.dim=12")

    assert ran.status == 2
    assert "holds a run with other settings" in ran.err


def test_curves_for_tensorboard_are_written(nodepiece: Nodepiece) -> None:
    pytest.importorskip("tensorboard")

    assert nodepiece("train", "countries", "--tensorboard", "curves", *ONE_EPOCH).status == 0
    assert list(Path("curves/countries").glob("events.*"))


def test_a_graph_is_trained_without_a_toml_file(nodepiece: Nodepiece) -> None:
    facts = [f"n{node}\tnext\tn{(node + step) % 40}\n" for node in range(40) for step in (1, 2)]
    Path("ring.tsv").write_text("".join(facts))
    ran = nodepiece("train", "ring.tsv", "-o", "run", "--device", "cpu")
    assert ran.status == 0
    assert "10 minutes, as none were given" in ran.err
    assert "chosen: " in ran.err and "minutes are enough" in ran.err
    assert Path("run/config.toml").is_file()


def test_a_graph_is_trained_with_early_stopping_as_the_readme_says(nodepiece: Nodepiece) -> None:
    facts = [f"n{node}\tnext\tn{(node + step) % 400}\n" for node in range(400) for step in (1, 2)]
    Path("ring.tsv").write_text("".join(facts))
    patient = ("--set", "training.patience=3", "--device", "cpu")
    words = ("train", "ring.tsv", "-o", "run", "--set", "graph.layers=0")
    ran = nodepiece(*words, "--minutes", 0.1, *patient)
    assert ran.status == 0, ran.err
    assert "patience = 3" in Path("run/config.toml").read_text()

    Path("three.tsv").write_text("a\tr\tb\nb\tr\tc\nc\tr\ta\n")  # none can be held out
    ran = nodepiece("train", "three.tsv", "-o", "three", "--minutes", 0.05, *patient)
    assert ran.status == 0, ran.err


def test_minutes_and_epochs_are_not_both_given(nodepiece: Nodepiece) -> None:
    words = ("train", "countries", "-o", "run", "--minutes", 1, "--set", "training.epochs=2")
    ran = nodepiece(*words)
    assert ran.status == 2
    assert "minutes and training.epochs both say how long to train" in ran.err


def test_it_says_what_it_does_before_the_first_epoch(
    nodepiece: Nodepiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.data.read.SECONDS_BETWEEN_LINES", -1.0)
    facts = [f"n{node}\tnext\tn{(node + step) % 40}\n" for node in range(40) for step in (1, 2)]
    Path("ring.tsv").write_text("".join(facts))
    ran = nodepiece(
        *("train", "ring.tsv", "-o", "run", "--device", "cpu", "--set", "encoder.dim=8"),
        *("--set", "training.epochs=2", "--set", "graph.layers=0"),
    )
    lines = ran.err.splitlines()
    assert lines[:2] == ["reading ring.tsv", "ring.tsv: 80 facts so far"]
    assert "timing a few steps: cross-entropy" in lines
    assert "tokenizing 40 nodes" in lines
    assert any(line.startswith("epoch 2/2: loss") for line in lines)


def test_a_model_that_is_no_better_than_popularity_is_said_to_be() -> None:
    metrics = {"popularity": {"mrr": 0.2}, "mrr": 0.2}
    assert is_no_better(metrics)
    assert not is_no_better(metrics | {"mrr": 0.3})
    assert not is_no_better({"popularity": None, "roc_auc": 0.5})
