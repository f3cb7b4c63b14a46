"""What `import nodepiece` gives, and what it costs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nodepiece


@pytest.mark.parametrize("name", nodepiece.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(nodepiece, name).__name__ in (name, f"nodepiece.{name}")  # a package: graph
    assert name in dir(nodepiece)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tokenise'"):
        nodepiece.tokenise  # type: ignore[attr-defined]  # noqa: B018


def modules_after(statement: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stdout.splitlines()[-1].split())


def test_importing_the_package_and_its_help_load_nothing_heavy() -> None:
    heavy = {"torch", "numba", "scipy", "pyarrow", "matplotlib", "numpy"}

    assert not heavy & modules_after("import nodepiece, nodepiece.cli")


def test_reading_facts_in_memory_loads_no_other_library() -> None:
    others = {"polars", "networkx", "rdflib", "sklearn", "pykeen", "torch"}  # pyarrow loads pandas

    loaded = modules_after("import nodepiece; nodepiece.graph([('a', 'r', 'b')]).to_arrow()")

    assert "pyarrow" in loaded and not others & loaded


def test_tokenizing_commands_do_without_torch(tmp_path: Path) -> None:
    run = (
        "import sys\nfrom nodepiece.cli import main\n"
        f"sys.argv = ['nodepiece', 'tokenize', 'countries', '-o', {str(tmp_path / 'out')!r}]\n"
        "main.__globals__['app'](sys.argv[1:], standalone_mode=False)"
    )

    loaded = modules_after(run)

    assert "numba" in loaded
    assert not {"torch", "matplotlib"} & loaded


def test_the_whole_way_in_python(tmp_path: Path) -> None:
    """ada - bob - cy: bob, who is in two facts, is the anchor."""
    path = tmp_path / "facts.tsv"
    path.write_text("ada\tknows\tbob\nbob\tknows\tcy\n")
    rng = np.random.default_rng(0)
    settings = nodepiece.TokenizerSettings(
        num_anchors=1, anchors_per_node=1, relations_per_node=2, mix={"degree": 1.0}
    )

    graph = nodepiece.read_graph(path)
    vocabulary = nodepiece.fit_vocabulary(graph, settings, rng=rng)
    table = nodepiece.tokenize(graph, vocabulary, rng=rng)
    nodepiece.save_tokens(table, tmp_path / "vocabulary")
    again = nodepiece.load_tokens(str(tmp_path / "vocabulary"), graph=graph)
    nodepiece.export_tokens(again, str(tmp_path / "tokens.parquet"))

    assert [again.pieces(node) for node in range(3)] == [
        ["bob@1", "knows", "[PAD]"],
        ["bob@0", "knows", "inverse of knows"],
        ["bob@1", "inverse of knows", "[PAD]"],
    ]
    assert nodepiece.describe_tokens(again).distance_histogram == {0: 1, 1: 2}
    assert (tmp_path / "tokens.parquet").is_file()


def test_listing_datasets_does_without_torch() -> None:
    loaded = modules_after(
        "import sys\nfrom nodepiece.cli import app\nsys.argv = ['nodepiece', 'datasets']\n"
        "app(sys.argv[1:], standalone_mode=False)"
    )

    assert "nodepiece.data.inventory" in loaded
    assert "torch" not in loaded


def test_training_and_asking_in_python(tmp_path: Path) -> None:
    overrides = ["training.epochs=1", "encoder.dim=8"]

    run = nodepiece.train("countries", tmp_path / "run", overrides=overrides, device="cpu")
    again = nodepiece.load(tmp_path / "run")

    answers = run.predict(head="Kenya", relation="borders", top=3)
    assert [answer.is_known for answer in answers] == [False] * 3
    assert again.predict(head="Kenya", relation="borders", top=3) == answers
    assert "Uganda" in again.known(head="Kenya", relation="borders", splits=["train"])
    assert again.known(head="Libya", relation="has language", splits=["train"]) == []
    assert again.known(head="Libya", relation="has language") == ["Arabic"]


def test_overrides_do_not_go_with_a_record(tmp_path: Path) -> None:
    experiment = nodepiece.load_experiment("countries")

    with pytest.raises(nodepiece.InputError, match=r"dataclasses\.replace"):
        nodepiece.train(experiment, tmp_path / "run", overrides=["training.epochs=1"])
