"""The benchmark of the cost of a step."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from benchmarks import step_cost
from benchmarks.step_cost import LOOKUP, PIECES, Variant, make_facts, measure

from nodepiece.data.npy import read_mapped_graph
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.report.step_cost import plot_step_cost


@pytest.mark.parametrize("encoder", [replace(PIECES, dim=4, hidden_dim=4), replace(LOOKUP, dim=4)])
def test_a_step_is_measured_with_rows_in_use_and_with_all(
    encoder: EncoderSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_cost, "STEPS", 3)
    make_facts(4_000, tmp_path / "facts.npy")
    graph = read_mapped_graph(tmp_path / "facts.npy")
    for whole in (False, True):
        found = measure(Variant(encoder, whole=whole), graph, torch.device("cpu"))
        assert found["seconds"] > 0 and found["processor_seconds"] > 0
        assert found["is_lazy"] == (not whole and not encoder.has_pieces)


def test_the_figure_has_a_line_for_each_model(tmp_path: Path) -> None:
    points = [(10_000, 0.1), (100_000, 0.11)]
    plot_step_cost({"lookup": points, "lookup, whole": points}, tmp_path / "cost.svg")
    assert "lookup; all of them updated" in (tmp_path / "cost.svg").read_text(encoding="utf-8")
