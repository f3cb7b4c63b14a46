"""Another decoder, encoder, file format or task is one file and one entry of a plain dict.

Another path scorer is one file and one field of `Experiment`.

Each test adds one from a file in `tests/extending/` and goes from a TOML file to an answer, on the
command line.
"""

import json
from dataclasses import field, make_dataclass
from pathlib import Path

import pytest
from safetensors import safe_open
from tests.commands.conftest import Nodepiece, nodepiece
from tests.extending.toy_decoder import PROJECTED
from tests.extending.toy_encoder import make_mean
from tests.extending.toy_format import ARROWS
from tests.extending.toy_path_scorer import NeighbourSettings
from tests.extending.toy_task import HUB_DETECTION

from nodepiece import settings
from nodepiece.data.formats import FORMATS
from nodepiece.decoders.triple_scores import DECODERS
from nodepiece.encoders.node_embedding import ENCODERS
from nodepiece.settings import Experiment
from nodepiece.tasks.registry import TASKS

__all__ = ["nodepiece"]  # a fixture

FACTS = [(f"n{n}", "next", f"n{(n + 1) % 12}") for n in range(12)]
FACTS += [(f"n{n}", "in", "the ring") for n in range(0, 12, 2)]
SETTINGS = """
dataset = "{dataset}"
tokenizer.num_anchors = 4
tokenizer.anchors_per_node = 2
tokenizer.relations_per_node = 2
encoder.dim = 8
encoder.hidden_dim = 8
training.epochs = 2
"""
FACT_QUERY = ("--head", "n0", "--relation", "next", "--include-known")


def write_facts(folder: Path) -> Path:
    path = folder / "facts.tsv"
    path.write_text("".join("\t".join(fact) + "\n" for fact in FACTS))
    return path


def train(nodepiece: Nodepiece, folder: Path, dataset: Path, *changes: str) -> Path:
    """The run folder of an experiment that is written as TOML and trained."""
    toml, run = folder / "toy.toml", folder / "run"
    toml.write_text(SETTINGS.format(dataset=dataset) + "\n".join(changes))
    outcome = nodepiece("train", toml, "-o", run, "--device", "cpu")
    assert outcome.status == 0, outcome.err
    return run


def answers(nodepiece: Nodepiece, run: Path, *query: str) -> list[str]:
    """What the command line predicts, by name."""
    outcome = nodepiece("predict", run, *query, "--json", "--device", "cpu")
    assert outcome.status == 0, outcome.err
    content = json.loads(outcome.out)
    return [each["name"] for each in content.get("answers") or content["classes"]]


def tensor_names(run: Path) -> set[str]:
    with safe_open(str(run / "model.safetensors"), "pt") as file:
        return set(file.keys())


def test_a_decoder_with_a_weight(
    nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DECODERS, "projected", PROJECTED)

    run = train(nodepiece, tmp_path, write_facts(tmp_path), 'decoder.kind = "projected"')

    assert "decoder_weights.linear.weight" in tensor_names(run)
    assert len(answers(nodepiece, run, *FACT_QUERY)) == 10


def test_an_encoder(nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENCODERS, "mean", make_mean)

    run = train(nodepiece, tmp_path, write_facts(tmp_path), 'encoder.kind = "mean"')

    assert "nodes.encoder.output.weight" in tensor_names(run)
    assert len(answers(nodepiece, run, *FACT_QUERY)) == 10


def add_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a field to `Experiment`, as one line in its file would."""
    added = ("neighbours", NeighbourSettings, field(default_factory=NeighbourSettings))
    with_field = make_dataclass("WithField", [added], bases=(Experiment,), frozen=True, repr=False)
    monkeypatch.setattr(settings, "Experiment", with_field)


def test_a_path_scorer(
    nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_neighbours(monkeypatch)
    loss = 'training.loss = "cross-entropy"', "training.hide_targets = true"

    run = train(nodepiece, tmp_path, write_facts(tmp_path), "neighbours.rank = 3", *loss)

    assert "scorers.neighbours.of_edges" in tensor_names(run)
    assert len(answers(nodepiece, run, *FACT_QUERY)) == 10


def test_a_path_scorer_is_refused_where_its_settings_would_do_nothing_or_leak(
    nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_neighbours(monkeypatch)
    toml = tmp_path / "toy.toml"

    def refusal(*changes: str) -> str:
        dataset = write_facts(tmp_path)
        toml.write_text(SETTINGS.format(dataset=dataset) + "\n".join(changes))
        outcome = nodepiece("train", toml, "-o", tmp_path / "run", "--device", "cpu")
        assert outcome.status == 2
        return outcome.err

    leak = refusal("neighbours.rank = 3", 'training.loss = "cross-entropy"')
    unread = refusal("neighbours.rank = 3", 'task = "relation-prediction"')
    assert "neighbours would follow the predicted fact itself" in leak
    assert "relation-prediction does not read [neighbours]" in unread


def test_a_file_format(
    nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS, "arrows", ARROWS)
    path = tmp_path / "facts.arrows"
    path.write_text("".join(f"{head} --{rel}--> {tail}\n" for head, rel, tail in FACTS))

    run = train(nodepiece, tmp_path, path)

    assert {"n1", "n7"} <= set(answers(nodepiece, run, *FACT_QUERY, "--top", "13"))


def test_a_task(nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "hub-detection", HUB_DETECTION)
    changes = 'task = "hub-detection"', 'training.loss = "binary-cross-entropy"'

    run = train(nodepiece, tmp_path, write_facts(tmp_path), *changes)

    assert set(answers(nodepiece, run, "--node", "the ring")) == {"hub", "leaf"}
