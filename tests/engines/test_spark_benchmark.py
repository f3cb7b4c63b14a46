"""The tables of the benchmark on Spark."""

import json
from pathlib import Path

from benchmarks.spark_engine import MARK, markdown

ROOT = Path(__file__).parents[2]


def test_the_page_on_large_graphs_has_the_tables_of_the_result() -> None:
    content = json.loads((ROOT / "results" / "spark-engine.json").read_text())
    page = (ROOT / "docs" / "scale.md").read_text()
    assert f"{MARK}\n\n{markdown(content)}\n" in page
    assert all(row["is_same"] for row in content["measured"])
    assert all(row["messages"] <= row["bound_of_messages"] for row in content["measured"])
