"""Tables for people: statistics of a vocabulary, and scores of a model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from nodepiece.commands.console import bar, count, out, percent, readable_bytes

if TYPE_CHECKING:
    from nodepiece.evaluation.report import Scores
    from nodepiece.tokenizer.statistics import MemoryComparison, TokenStatistics
    from nodepiece.tokenizer.vocabulary import Vocabulary


MIXED = "they are shares of facts mixed as in calibration, too high where more are false"
MAX_BINS = 20  # of distances; a longer histogram is drawn by ranges


def show_statistics(
    vocabulary: "Vocabulary",
    statistics: "TokenStatistics",
    memory: "MemoryComparison",
    *,
    title: str,
) -> None:
    out.print(f"\n{title}", style="bold")
    out.print(rows(size_rows(vocabulary, statistics)))
    if statistics.distance_histogram:
        out.print("\nDistance from a node to its anchors", style="bold")
        out.print(distance_table(statistics))
        out.print(rows(distance_rows(statistics)))
    out.print("\nDifferent sequences of pieces", style="bold")
    out.print(rows(hash_rows(statistics)))
    out.print(f"\nMemory for vectors of {memory.dim} numbers", style="bold")
    out.print(rows(memory_rows(memory)))
    out.print()


def rows(pairs: list[tuple[str, str]]) -> Table:
    """A table with two columns: names and values."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column()
    for what, how_much in pairs:
        table.add_row(f"  {what:<25}", how_much)  # versions of Rich differ in their min_width
    return table


def size_rows(vocabulary: "Vocabulary", statistics: "TokenStatistics") -> list[tuple[str, str]]:
    settings = vocabulary.settings
    far = "with their distances" if settings.distances else "without their distances"
    each = [
        f"{settings.select} {count(settings.anchors_per_node, 'anchor')} {far}",
        count(settings.relations_per_node, "relation"),
    ]
    return [
        ("nodes", f"{statistics.num_nodes:,}"),
        (
            "pieces",
            f"{len(vocabulary):,}: {count(statistics.num_anchors, 'anchor')}, "
            f"{count(statistics.num_relations, 'relation')} both ways, 2 special",
        ),
        ("a node is written with", ", ".join(each)),
        (
            "relations of a node",
            f"{statistics.mean_relations:.1f} on average, {statistics.max_relations} at most",
        ),
        *anchor_rows(statistics),
    ]


def anchor_rows(statistics: "TokenStatistics") -> list[tuple[str, str]]:
    if statistics.top_anchor_use is None:
        return []
    return [
        (
            "nodes with fewer anchors",
            f"{statistics.num_short_of_anchors:,} "
            f"({percent(statistics.num_short_of_anchors / statistics.num_nodes)}), of these "
            f"{statistics.num_disconnected:,} without any",
        ),
        (
            "use of anchors",
            f"the top 1 % ({statistics.num_top_anchors:,}) fill "
            f"{percent(statistics.top_anchor_use)} of slots; "
            f"{statistics.unused_anchors:,} unused",
        ),
    ]


def distance_table(statistics: "TokenStatistics") -> Table:
    table = Table.grid(padding=(0, 2))
    for justify in ("right", "right", "right", "left"):
        table.add_column(justify=justify)
    histogram = binned(statistics.distance_histogram)
    total, most = sum(histogram.values()), max(histogram.values())
    for (first, last), number in histogram.items():
        hops = count(first, "hop") if first == last else f"{first:,} to {last:,} hops"
        table.add_row(f"  {hops}", f"{number:,}", percent(number / total), bar(number / most))
    return table


def binned(histogram: Mapping[int, int]) -> dict[tuple[int, int], int]:
    """Counts of values, and of ranges of as many values each where there are many."""
    largest = max(histogram)
    width = 1 + largest // MAX_BINS
    bins: dict[tuple[int, int], int] = {}
    for value, number in histogram.items():
        first = value - value % width
        key = (first, min(first + width - 1, largest))
        bins[key] = bins.get(key, 0) + number
    return bins


def distance_rows(statistics: "TokenStatistics") -> list[tuple[str, str]]:
    return [
        ("mean over all anchors", f"{statistics.mean_distance:.2f} hops"),
        ("mean to the nearest anchor", f"{statistics.mean_nearest_distance:.2f} hops"),
    ]


def hash_rows(statistics: "TokenStatistics") -> list[tuple[str, str]]:
    def of_nodes(number: int) -> str:
        return f"{number:,} ({percent(number / statistics.num_nodes)} of the number of nodes)"

    return [
        ("by anchors alone", of_nodes(statistics.distinct_anchor_sets)),
        ("and their distances", of_nodes(statistics.distinct_with_distances)),
        ("and relations", of_nodes(statistics.distinct_hashes)),
    ]


def memory_rows(memory: "MemoryComparison") -> list[tuple[str, str]]:
    if memory.ratio >= 1:
        compared = f"{memory.ratio:.1f} times less"
    else:
        compared = f"{1 / memory.ratio:.1f} times more: fewer anchors would do"
    return [
        ("one for every node", readable_bytes(memory.full_embedding)),
        ("one for every piece", f"{readable_bytes(memory.vocabulary_embedding)}, {compared}"),
        ("the tokens of all nodes", f"{readable_bytes(memory.token_table)} on disk, not trained"),
    ]


def score_table(named: "Sequence[tuple[str, Scores]]", *, heading: str) -> Table:
    """A row of scores for each name, in the columns that the first one has."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(heading, overflow="fold")
    columns = [key for key in COLUMNS if key in named[0][1]]
    for key in columns:
        table.add_column(COLUMNS[key][0], justify="right", no_wrap=True)
    for name, scores in named:
        cells = [format(scores[key], COLUMNS[key][1]) if key in scores else "" for key in columns]
        table.add_row(name, *cells)
    return table


# Scores between 0 and 1, larger is better, and their printed names.
SHARES = {
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
    "roc_auc": "ROC-AUC",
    "prc_auc": "PRC-AUC",
    "hard_accuracy": "hard accuracy",
}


def scores_in_words(scores: Mapping[str, float]) -> str:
    """Such as "MRR 0.3512, Hits@1 0.2621": those of SHARES that there are."""
    return ", ".join(f"{SHARES[key]} {scores[key]:.4f}" for key in SHARES if key in scores)


# All columns that are shown, and their number formats.
COLUMNS = {key: (name, ".3f") for key, name in SHARES.items()} | {
    "mean_rank": ("mean rank", ",.1f"),
    "count": ("ranks", ",d"),
}
