"""Write docs/results.md: what was measured, task by task, beside the paper's rows.

python -m scripts.write_results

Sentences that compare are computed from the files too, so that they agree with the tables.
"""

from collections.abc import Callable
from typing import Any

from scripts.curves import read_curves
from scripts.gaps_compared import gap_parts
from scripts.list_experiments import TITLES
from scripts.measured import (
    ROOT,
    Measurement,
    format_score,
    notes,
    order,
    read_measurements,
    scores,
    training_seconds,
)
from scripts.paper_rows import PAPER_ROWS
from scripts.results_compared import (
    compare_classes,
    compare_inductive,
    compare_links,
    compare_out_of_sample,
)

PAGE = ROOT / "docs" / "results.md"
Column = Callable[[Measurement], str]
INTRODUCTION = """
# Results

Results of `nodepiece train` with one seed, on one NVIDIA H200 unless a note says otherwise. Each
row links to its file in [`results`](../results), which has the command that reproduces it;
[experiments.md](experiments.md) describes the experiments. MRR and Hits@10 are of the test facts:
heads and tails are ranked, known facts are left out (filtered), ranks are realistic. Seconds are of
training with its validation. Where validation chose the best epoch, it is given beside the number
of epochs. "The paper" is the corresponding row of its tables, with its time on one RTX 8000.
`-best` is our own recipe, not the paper's. Speed on a CPU is in the [README](../README.md), graphs
of millions of nodes in [scale.md](scale.md). This page is written by
`python -m scripts.write_results`.
"""
INDUCTIVE = """
Ranks are among 50 nodes drawn at random that are not known answers, ten times: the mean, and after
± the standard deviation between draws. MRR is of the same draws, "all nodes" the MRR / Hits@10 of a
full ranking. Personalized PageRank is ranked in the same ways. (NELL-995 v1 has 225 nodes, many of
them known answers: there nodes are drawn more than once, so MRR is not higher than among all.)
**The `-best` recipes add walks along the edges to CompGCN, and walks are not part of NodePiece**;
`--set walks.steps=0` trains without them, which has not been measured here. The epoch is chosen by
Hits@10 on the `valid` queries of the graph that is evaluated, never by its test queries.
"""
CLASSES = """
ROC-AUC / PRC-AUC / hard accuracy on the test nodes of WD50K. The published commands train on all
labels, regardless of the share, and the paper's two columns are nearly the same; here 5 % and 10 %
of the labels are used. With all labels, for which the paper has no row, its row for 10 % is given
beside ours. The epoch is chosen by ROC-AUC on the validation nodes. Training is compared with
validation [below](#the-gap-between-training-and-validation). MLP and CompGCN have a trained vector
for every node. About 0.15M of the parameters that the paper counts for NodePiece are never used.
"""
OUT_OF_SAMPLE = """
Nodes that are added after training: each of their facts is left out in turn, and the neighbour in
it is ranked among all seen nodes. oDistMult-ERAvg is the baseline of the paper. Its split,
oFB15k-237, was not available: ours is made from FB15k-237 by the same recipe, so **the paper's
numbers are of another split and cannot be compared directly**. For WN18RR the paper has none. The
baseline has the paper's settings for oFB15k-237 on both graphs, except for the 1,000 epochs (it
stops after three validations without improvement) and without the regularization that its authors
used. It is much better with other settings (`-odistmult-best`), which were not tuned further. Our
recipe for WN18RR adds walks along the edges, which are not part of NodePiece, and most of its score
comes from them; `-no-walks` is our best with vectors alone. For FB15k-237 our recipe has no walks;
`-walks` has them.
"""
OUT_OF_SAMPLE_TITLES = {
    "fb15k-237": "FB15k-237, our own split",
    "own18rr": "WN18RR, the published split",
}


def page() -> str:
    found = sorted(read_measurements(), key=lambda each: order(each.name))
    parts = [INTRODUCTION]
    links = [each for each in found if each.task == "link-prediction"]
    relations = [each for each in found if each.task == "relation-prediction"]
    parts += ["## Link prediction", link_table(links), compare_links(links)]
    parts += [
        "## Relation prediction",
        "Which relation joins a pair: relations and inverses ranked.",
        link_table(relations),
    ]
    parts += [compare_links(relations)]
    inductive = [each for each in found if each.task == "inductive-link-prediction"]
    parts += ["## Inductive link prediction", INDUCTIVE, inductive_table(inductive)]
    parts += [compare_inductive(inductive)]
    classes = [each for each in found if each.task == "node-classification"]
    parts += ["## Node classification", CLASSES, compare_classes(classes), *class_tables(classes)]
    parts += gap_parts(read_curves())
    unseen = [each for each in found if each.task == "out-of-sample"]
    parts += ["## Out-of-sample link prediction", OUT_OF_SAMPLE, *out_of_sample_tables(unseen)]
    parts += [compare_out_of_sample(unseen)]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def link_table(measurements: list[Measurement]) -> str:
    datasets = list(TITLES)
    rows = sorted(measurements, key=lambda each: datasets.index(each.found["dataset"]))
    columns = {
        "parameters": parameters,
        "MRR / Hits@10": scores,
        "epochs": epochs,
        "training": seconds,
        "the paper": lambda each: of_the_paper(each.found["experiment"]),
    }
    return table(rows, columns)


def inductive_table(measurements: list[Measurement]) -> str:
    columns: dict[str, Column] = {
        "Hits@10": lambda each: with_spread(each.found),
        "MRR": lambda each: format_score(each.found["mrr"]),
        "all nodes": lambda each: among_all(each.found),
        "PageRank: Hits@10": lambda each: with_spread(each.found["personalized_pagerank"]),
        "PageRank: MRR": lambda each: format_score(each.found["personalized_pagerank"]["mrr"]),
        "PageRank: all nodes": lambda each: among_all(each.found["personalized_pagerank"]),
        "the paper: Hits@10": lambda each: of_the_paper(
            each.found["experiment"].replace("-best", "-paper")
        ),
        "parameters": parameters,
        "epochs": epochs,
        "training": seconds,
    }
    return table(measurements, columns)


def class_tables(measurements: list[Measurement]) -> list[str]:
    parts = []
    for share in sorted({each.found["label_share"] for each in measurements}):
        rows = [each for each in measurements if each.found["label_share"] == share]
        found = rows[0].found
        parts.append(
            f"### {share * 100:.0f} % of the training labels: {found['labels']['train']:,} labels "
            f"of {found['labelled_nodes']['train']:,} nodes"
        )
        columns = {
            "parameters": parameters,
            "ROC-AUC / PRC-AUC / hard accuracy": scores,
            "epochs": epochs,
            "training": seconds,
            "the paper": lambda each: of_the_paper(each.name.replace("wd50k-100-", "wd50k-10-")),
        }
        parts.append(table(rows, columns))
    return parts


def out_of_sample_tables(measurements: list[Measurement]) -> list[str]:
    columns: dict[str, Column] = {
        "parameters": parameters,
        "MRR / Hits@10": scores,
        "epochs": epochs,
        "training": seconds,
    }
    beside: dict[str, Column] = {
        "the paper, on oFB15k-237": lambda each: of_the_paper(
            each.name.replace("fb15k-237-oos-", "ofb15k-237-")
        )
    }
    parts = []
    for dataset in sorted({each.found["dataset"] for each in measurements}):
        rows = [each for each in measurements if each.found["dataset"] == dataset]
        title = OUT_OF_SAMPLE_TITLES.get(dataset, dataset)
        num_unseen = rows[0].found["unseen_nodes"]["test"]
        parts.append(f"### {title}: {num_unseen:,} unseen nodes to evaluate on")
        parts.append(table(rows, columns | beside if dataset == "fb15k-237" else columns))
    return parts


def table(measurements: list[Measurement], columns: dict[str, Column]) -> str:
    """A row for each, with the link to its file; what has to be noted stands below."""
    if not measurements:
        return ""
    known = list(dict.fromkeys(note for each in measurements for note in notes(each)))
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for each in measurements:
        marks = ", ".join(str(known.index(note) + 1) for note in notes(each))
        name = f"[`{each.name}`]({each.link})" + (f" <sup>{marks}</sup>" if marks else "")
        lines.append(f"| {' | '.join([name, *(cell(each) for cell in columns.values())])} |")
    below = [f"<sup>{number}</sup> {note}" for number, note in enumerate(known, start=1)]
    return "\n".join(lines) + ("\n\n" + "\\\n".join(below) if below else "")


def parameters(measurement: Measurement) -> str:
    return f"{measurement.found['parameters'] / 1e6:.2f}M"


def epochs(measurement: Measurement) -> str:
    number, best = measurement.found["epochs"], measurement.found["best_epoch"]
    return f"{number:,}" if best is None else f"{number:,} (best: {best:,})"


def seconds(measurement: Measurement) -> str:
    duration = training_seconds(measurement.found)
    return f"{duration:.0f} s" if duration >= 10 else f"{duration:.1f} s"


def with_spread(found: dict[str, Any]) -> str:
    return f"{format_score(found['hits@10'])} ± {format_score(found['spread']['hits@10'])}"


def among_all(found: dict[str, Any]) -> str:
    return (
        f"{format_score(found['all nodes']['mrr'])} / {format_score(found['all nodes']['hits@10'])}"
    )


def of_the_paper(name: str) -> str:
    """Scores, parameters and time, as far as the paper has them."""
    row = PAPER_ROWS.get(name)
    if row is None:
        return "-"
    known = [" / ".join(format_score(score) for score in row.scores), row.parameters, row.time]
    return ", ".join(part for part in known if part)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
