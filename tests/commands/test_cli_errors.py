"""Every bad input stops with one sentence that says what to do, and with the right status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nodepiece import load_tokens

if TYPE_CHECKING:
    from tests.commands.conftest import Nodepiece, Outcome

SMALL = ("--anchors", 1, "--anchors-per-node", 1)


def last_line(ran: Outcome) -> str:
    assert "Traceback" not in ran.err
    return ran.err.splitlines()[-1]


def refused(ran: Outcome) -> str:
    """The sentence of an outcome that is the user's to fix."""
    assert ran.status == 2
    assert ran.out == ""
    assert last_line(ran).startswith("error: ")
    return last_line(ran)


def tokenize_text(nodepiece: Nodepiece, text: str) -> str:
    Path("bad.tsv").write_text(text)
    sentence = refused(nodepiece("tokenize", "bad.tsv", "-o", "out", *SMALL))
    assert not Path("out").exists()
    return sentence


def test_a_malformed_line_is_named_by_its_number(nodepiece: Nodepiece) -> None:
    sentence = tokenize_text(nodepiece, "a\tr\tb\nb\tr\tc\nc\tr\n")

    assert "bad.tsv line 3: expected 3 columns separated by tabs, got 2" in sentence


def test_an_empty_file_is_refused(nodepiece: Nodepiece) -> None:
    assert "bad.tsv is empty" in tokenize_text(nodepiece, "")


def test_an_empty_name_is_refused(nodepiece: Nodepiece) -> None:
    assert "line 2: the tail is empty" in tokenize_text(nodepiece, "a\tr\tb\na\tr\t\n")


def test_a_missing_column_is_refused_with_those_that_are_there(nodepiece: Nodepiece) -> None:
    Path("bad.csv").write_text("subject,predicate,object\na,r,b\n")

    ran = nodepiece("tokenize", "bad.csv", "-o", "out", "--columns", "subject,verb,object", *SMALL)

    assert "no column named 'verb'; the columns are 'subject'" in refused(ran)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_nothing_in_place_of_a_name_is_refused(nodepiece: Nodepiece, missing: float | None) -> None:
    heads = pa.array([1.0, missing]) if missing else pa.array(["a", None])
    pq.write_table(
        pa.table({"head": heads, "relation": ["r", "r"], "tail": ["b", "c"]}), "bad.parquet"
    )

    sentence = refused(nodepiece("tokenize", "bad.parquet", "-o", "out", *SMALL))

    assert "bad.parquet row 2: the head (column 'head') is empty" in sentence


def test_two_files_for_one_split_are_refused(nodepiece: Nodepiece, facts: Path) -> None:
    folder = facts.parent / "split"
    folder.mkdir()
    for name in ("train.tsv", "train.txt"):
        (folder / name).write_text(facts.read_text())

    sentence = refused(nodepiece("tokenize", folder, "-o", "out", *SMALL))

    assert "two files for the train split: train.tsv and train.txt" in sentence


def test_more_anchors_per_node_than_anchors_are_refused(nodepiece: Nodepiece, facts: Path) -> None:
    ran = nodepiece("tokenize", facts, "-o", "out", "--anchors", 2, "--anchors-per-node", 3)

    assert "a node cannot have k=3 of 2 anchors; lower --anchors-per-node" in refused(ran)


def test_more_anchors_than_nodes_are_refused(nodepiece: Nodepiece, facts: Path) -> None:
    ran = nodepiece("tokenize", facts, "-o", "out", "--anchors", 9, "--anchors-per-node", 3)

    sentence = "9 anchors were asked of a graph of 5 nodes; lower --anchors to 5 or less"
    assert sentence in refused(ran)


@pytest.mark.parametrize("command", ["train", "plan"])
def test_an_experiment_with_more_anchors_than_nodes_names_its_setting(
    command: str, nodepiece: Nodepiece, facts: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text('extends = "countries"\ndataset = "facts.tsv"\ntraining.validate_every = 0\n')

    sentence = refused(nodepiece(command, recipe))

    assert "160 anchors were asked of a graph of 5 nodes" in sentence
    assert "lower tokenizer.num_anchors to 5 or less" in sentence
    assert "--anchors" not in sentence


def test_an_experiment_with_fewer_anchors_than_a_node_has_names_both_settings(
    nodepiece: Nodepiece,
) -> None:
    sentence = refused(nodepiece("train", "countries", "--set", "tokenizer.num_anchors=3"))

    assert "lower tokenizer.anchors_per_node or raise tokenizer.num_anchors" in sentence


def test_an_anchor_set_to_the_size_of_a_small_graph_trains(
    nodepiece: Nodepiece, facts: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        'extends = "countries"\ndataset = "facts.tsv"\n[tokenizer]\nnum_anchors = 5\n'
        "anchors_per_node = 5\n[training]\nepochs = 1\nvalidate_every = 0\n"
    )

    assert nodepiece("train", recipe, "-o", "run").status == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--mix", "degree"], "--mix takes shares such as degree=0.4"),
        (["--mix", "fame=1"], "unknown anchor strategy 'fame'"),
        (["--mix", "degree=0.7"], "must be 0 or more and add up to 1"),
        (["--select", "best"], "select = 'best' is not known; it is one of nearest, random"),
        (["--ties", "coin"], "ties = 'coin' is not known; it is one of per-node, global"),
        (["--disconnected", "skip"], "disconnected = 'skip' is not known"),
        (["--anchor-share", 0.1], "--anchors and --anchor-share both set the number"),
        (["--columns", "head,tail"], "--columns takes three names or positions"),
        (["--format", "xls"], "unknown format 'xls'"),
        (["--delimiter", "ab"], "the delimiter must be one character"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    nodepiece: Nodepiece, facts: Path, options: list[object], sentence: str
) -> None:
    ran = nodepiece("tokenize", facts, "-o", "out", *SMALL, *options)

    assert sentence in refused(ran)


def test_neither_a_file_nor_a_name_is_refused_with_a_guess(nodepiece: Nodepiece) -> None:
    sentence = refused(nodepiece("tokenize", "fb15k237", "-o", "out"))

    assert "fb15k237 is neither a file, nor a folder, nor the name" in sentence
    assert "did you mean fb15k-237" in sentence


def test_a_benchmark_that_is_not_there_is_named_with_the_way_to_get_it(
    nodepiece: Nodepiece,
) -> None:
    sentence = refused(nodepiece("tokenize", "wn18rr", "-o", "out"))

    assert "`nodepiece datasets fetch wn18rr`" in sentence
    assert "train.tsv.gz" in sentence


def test_reading_options_do_not_go_with_a_known_dataset(nodepiece: Nodepiece) -> None:
    ran = nodepiece("tokenize", "countries", "-o", "out", "--delimiter", "comma")

    assert "countries is a known dataset" in refused(ran)


def test_a_folder_that_is_not_a_vocabulary_is_not_overwritten(
    nodepiece: Nodepiece, facts: Path
) -> None:
    precious = facts.parent / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("all I have")

    sentence = refused(nodepiece("tokenize", facts, "-o", precious, *SMALL))

    assert "precious exists and is not a vocabulary" in sentence
    assert (precious / "thesis.txt").read_text() == "all I have"


def test_an_output_that_cannot_be_made_is_refused_before_the_work(
    nodepiece: Nodepiece, facts: Path
) -> None:
    ran = nodepiece("tokenize", facts, "-o", facts / "out", *SMALL)

    assert "cannot be created" in refused(ran)
    assert "reading" not in ran.err


@pytest.mark.parametrize("command", [["inspect"], ["export"]])
@pytest.mark.parametrize(
    "file", ["vocabulary.json", "anchors.npy", "names/nodes.arrow", "tokens/distances.npy"]
)
def test_a_damaged_vocabulary_is_refused(
    nodepiece: Nodepiece, vocabulary: Path, command: list[str], file: str
) -> None:
    whole = (vocabulary / file).read_bytes()
    (vocabulary / file).write_bytes(whole[: len(whole) // 2])
    output = ["tokens.parquet"] if command == ["export"] else []

    sentence = refused(nodepiece(*command, vocabulary, *output))

    assert file in sentence
    assert "again" in sentence  # what to do: write it, or tokenize, again
    assert not Path("tokens.parquet").exists()


def test_a_file_missing_from_a_vocabulary_is_named(nodepiece: Nodepiece, vocabulary: Path) -> None:
    (vocabulary / "tokens" / "relations.npy").unlink()

    assert "relations.npy" in refused(nodepiece("inspect", vocabulary))


def test_a_newer_format_version_is_refused(nodepiece: Nodepiece, vocabulary: Path) -> None:
    header = json.loads((vocabulary / "vocabulary.json").read_text())
    (vocabulary / "vocabulary.json").write_text(json.dumps(header | {"format_version": 99}))

    sentence = refused(nodepiece("inspect", vocabulary))

    assert "has format version 99" in sentence
    assert "install a newer nodepiece" in sentence


def test_a_folder_without_a_vocabulary_is_refused(nodepiece: Nodepiece, tmp_path: Path) -> None:
    assert "is not a vocabulary folder" in refused(nodepiece("inspect", tmp_path))


def test_an_unknown_node_is_refused_with_a_guess(nodepiece: Nodepiece, vocabulary: Path) -> None:
    sentence = refused(nodepiece("inspect", vocabulary, "--node", "bobb"))

    assert "unknown node 'bobb'; did you mean 'bob'?" in sentence


def test_a_plot_of_an_unknown_kind_is_refused(nodepiece: Nodepiece, vocabulary: Path) -> None:
    ran = nodepiece("inspect", vocabulary, "--plot", "picture.bmp")

    assert ran.status == 2
    assert "picture.bmp should end in .png, .svg, .pdf" in last_line(ran)


def test_an_unknown_benchmark_is_refused_with_a_guess(nodepiece: Nodepiece) -> None:
    sentence = refused(nodepiece("datasets", "fetch", "fb15k"))

    assert "unknown benchmark 'fb15k'; did you mean" in sentence


def test_an_unknown_action_on_datasets_is_refused(nodepiece: Nodepiece) -> None:
    sentence = refused(nodepiece("datasets", "download"))

    assert "unknown action 'download'; it is one of list, fetch, verify" in sentence


@pytest.mark.parametrize(
    "arguments", [["tokenise"], ["tokenize"], ["tokenize", "x", "-o", "y", "--sed", "1"]]
)
def test_a_command_line_that_cannot_be_parsed_is_status_2(
    nodepiece: Nodepiece, arguments: list[str]
) -> None:
    ran = nodepiece(*arguments)

    assert ran.status == 2
    assert "Usage: nodepiece" in ran.err
    assert "Traceback" not in ran.err


def test_what_the_system_refuses_is_status_1(nodepiece: Nodepiece, vocabulary: Path) -> None:
    blocked = vocabulary / "vocabulary.json" / "tokens.parquet"  # a file is not a folder

    ran = nodepiece("export", vocabulary, blocked)

    assert ran.status == 1
    assert "Not a directory; check the path" in last_line(ran) or "File exists" in last_line(ran)


def test_a_bug_is_one_sentence_and_status_1(
    nodepiece: Nodepiece, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: Path) -> None:
        raise ZeroDivisionError("nothing left")

    monkeypatch.setattr("nodepiece.tokenizer.storage.load_tokens", broken)

    ran = nodepiece("inspect", vocabulary)

    assert ran.status == 1
    assert last_line(ran) == (
        "error: ZeroDivisionError: nothing left; this is a bug in nodepiece; "
        "run again with --debug and report it"
    )


@pytest.mark.parametrize("first", [True, False])
def test_debug_shows_the_traceback_wherever_it_stands(nodepiece: Nodepiece, first: bool) -> None:
    arguments = ["inspect", "nowhere"]

    ran = nodepiece(*(["--debug", *arguments] if first else [*arguments, "--debug"]))

    assert ran.status == 2
    assert "Traceback (most recent call last)" in ran.err
    assert "is not a vocabulary folder" in ran.err


def test_a_failed_tokenize_leaves_the_earlier_vocabulary(
    nodepiece: Nodepiece, vocabulary: Path
) -> None:
    Path("bad.tsv").write_text("a\tr\n")

    refused(nodepiece("tokenize", "bad.tsv", "-o", vocabulary, *SMALL))

    assert load_tokens(vocabulary).num_nodes == 5


@pytest.mark.parametrize("name", ["x" * 5000, "file/inside"])
def test_a_path_that_cannot_be_is_status_2(nodepiece: Nodepiece, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("in the way")

    ran = nodepiece("train", "countries", "--tensorboard", name, "--set", "training.epochs=1")

    assert ran.status == 2
    assert len(ran.err.splitlines()[-1]) < 2_000
