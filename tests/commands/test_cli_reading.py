"""The options for reading a graph: the same for every command that takes one, and in TOML."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from nodepiece import InputError, load, load_experiment, open_dataset
from nodepiece.cli import app
from nodepiece.data.blocks import ReadOptions
from nodepiece.settings import Experiment, to_toml

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece

READING = {"delimiter", "header", "columns", "format"}
TAKES_GRAPH = ("tokenize", "train", "plan", "split", "label", "convert", "predict", "embed")
AS_ASKED = ("--delimiter", "|", "--columns", "who,how,whom")
SMALL = ("--set", "training.epochs=1", "--set", "encoder.dim=8", "--set", "encoder.hidden_dim=8")
FEW_PIECES = ("--set", "tokenizer.num_anchors=2", "--set", "tokenizer.anchors_per_node=1")


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A ring of ten people, in a file that can be read only as asked."""
    path = tmp_path / "odd.txt"
    lines = [f"{i}|n{i + 1}|n{i}|knows" for i in range(9)]
    path.write_text("\n".join(["no|whom|who|how", *lines, "9|n0|n9|likes"]) + "\n")
    return path


@pytest.mark.parametrize("name", [*TAKES_GRAPH, "update"])
def test_every_command_that_takes_a_graph_has_the_options_for_reading(name: str) -> None:
    commands: dict[str, Any] = {
        info.callback.__name__: info.callback for info in app.registered_commands if info.callback
    }
    assert set(commands[name].__annotations__) >= READING


def test_tokenize_prints_which_columns_were_taken(nodepiece: Nodepiece, odd: Path) -> None:
    ran = nodepiece("tokenize", odd, "-o", "v", "--anchors", 2, "--anchors-per-node", 1, *AS_ASKED)
    assert ran.status == 0
    assert "line 1 names the columns; head, relation, tail are 'who', 'how', 'whom'" in ran.err


def test_train_takes_the_options_prints_the_columns_and_keeps_both_in_the_run(
    nodepiece: Nodepiece, odd: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(
        f'dataset = "{odd}"\n[training]\nvalidate_every = 0\nbatch_size = 4\n'
    )
    ran = nodepiece(
        "train", "mine.toml", "-o", "run", "--device", "cpu", *SMALL, *FEW_PIECES, *AS_ASKED
    )
    assert ran.status == 0, ran.err
    assert "head, relation, tail are 'who', 'how', 'whom'" in ran.err
    config = tomllib.loads((tmp_path / "run/config.toml").read_text())
    assert config["reading"] == {"delimiter": "|", "columns": ["who", "how", "whom"]}
    run = load(tmp_path / "run")
    assert run.experiment.reading == ReadOptions("|", columns=("who", "how", "whom"))
    assert run.predict(head="n0", relation="knows", top=1)
    command = json.loads((tmp_path / "run/metrics.json").read_text())["command"]
    assert "reading.columns" in command


def test_what_train_asks_for_in_its_error_it_takes(
    nodepiece: Nodepiece, odd: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(f'dataset = "{odd}"\n')
    ran = nodepiece("train", "mine.toml", "-o", "run", "--device", "cpu")
    assert ran.status == 2
    assert "give --delimiter and --columns" in ran.err


def test_the_other_commands_read_as_asked(nodepiece: Nodepiece, odd: Path, tmp_path: Path) -> None:
    (tmp_path / "classes.tsv").write_text("".join(f"n{i}\tc{i % 2}\n" for i in range(10)))
    for words in (
        ("split", odd, "-o", "split", "--share", 0.1),
        ("convert", odd, "-o", "ogb", "--held-out", 1, "--negatives", 2),
        ("label", odd, "classes.tsv", "-o", "labelled", "--least-nodes", 1),
        ("plan", odd, "--no-trial", "--device", "cpu", *FEW_PIECES),
    ):
        ran = nodepiece(*words, *AS_ASKED)
        assert ran.status == 0, ran.err
        assert "head, relation, tail are 'who', 'how', 'whom'" in ran.err
        assert nodepiece(*words).status == 2


def test_facts_for_a_run_are_read_as_asked(nodepiece: Nodepiece, run: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.txt"
    new.write_text("Kenya|Ruritania|borders\nEnglish|Ruritania|has language\n")
    options = ("--delimiter", "|", "--columns", "1,2,0")
    asked = ("--head", "Ruritania", "--relation", "borders", "--device", "cpu")
    assert nodepiece("predict", run, *asked, "--facts", new, *options).status == 0
    vectors = ("-o", "v.parquet", "--device", "cpu")
    assert nodepiece("embed", run, "--facts", new, *vectors, *options).status == 0
    ran = nodepiece("update", run, "--add", new, "--device", "cpu", *options)
    assert ran.status == 0
    assert "added 2 facts and 1 node" in ran.out


def test_an_experiment_says_how_its_dataset_is_read(odd: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        f'dataset = "{odd}"\n[reading]\ndelimiter = "|"\ncolumns = ["who", 3, "whom"]\n'
    )
    experiment = load_experiment(path)
    assert experiment.reading == ReadOptions("|", columns=("who", 3, "whom"))
    assert open_dataset(str(odd), options=experiment.reading).train.num_relations == 2
    (tmp_path / "again.toml").write_text(to_toml(experiment))
    assert load_experiment(tmp_path / "again.toml") == experiment


def test_an_experiment_without_such_settings_is_written_without_them() -> None:
    assert "reading" not in to_toml(Experiment("mine", "countries"))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("reading.columns=a,b", "three names or positions"),
        ("reading.columns=[1,2,true]", "three names or positions"),
        ("reading.columns=7", "reading.columns must be"),
        ("reading.format=xls", "unknown format 'xls'"),
        ("reading.header=maybe", "reading.header must be"),
    ],
)
def test_a_mistaken_setting_is_reported(override: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_experiment("countries", [override])


def test_columns_may_be_set_as_on_the_command_line() -> None:
    experiment = load_experiment("countries", ["reading.columns=src,2,dst"])
    assert experiment.reading.columns == ("src", 2, "dst")


def test_a_known_dataset_takes_no_options_for_reading(nodepiece: Nodepiece) -> None:
    ran = nodepiece("train", "countries", "-o", "run", "--columns", "0,1,2", "--device", "cpu")
    assert ran.status == 2
    assert "leave out columns" in ran.err
