"""The page of results: what was measured, task by task, beside the paper's rows and others'.

Sentences that compare are computed from the files too, so that they agree with the tables.
"""

from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from nodepiece.report import published
from nodepiece.report.baselines import (
    ALL_NODES,
    DRAWN,
    baseline_rows,
    below_half_links,
    inductive_rows,
    read_baselines,
    shortcut_parts,
)
from nodepiece.report.class_curves import CURVES, read_curves
from nodepiece.report.class_curves_figure import digest, draw
from nodepiece.report.compared import (
    compare_classes,
    compare_inductive,
    compare_links,
    compare_out_of_sample,
)
from nodepiece.report.document import Document, Part, Picture, Section, Table
from nodepiece.report.gaps import gap_parts
from nodepiece.report.measured import (
    DEVICE,
    TITLES,
    Measurement,
    by_seed,
    describe_device,
    format_score,
    has_remark,
    notes,
    order,
    read_measurements,
    score,
    scores,
    shared_device,
    training_seconds,
)
from nodepiece.report.paper_rows import PAPER_ROWS
from nodepiece.report.published import Published
from nodepiece.report.style import drawing

Column = Callable[[Measurement], str]
SHARED, REMARK = "\\*", "†"
PAPER = "the paper"  # the beginning of the titles of its columns
CHANGED = """
Runs with other settings than the experiment's, which the notes below the table name. Fewer epochs
were to save time: rows with them are to be compared with each other, neither with the rows above
nor with the paper's.
"""
INTRODUCTION = f"""
Every row is an experiment, run by its name; a report shows your runs beside these tables:

<!-- not run: downloads files, trains on a GPU -->
```sh
nodepiece datasets fetch wn18rr
nodepiece train wn18rr-best -o run --device cuda
nodepiece report run -o report
```

- Each row links to its file in [`results`](../results), which has the command that reproduces it;
  [experiments.md](experiments.md) describes the experiments. `-best` is our own recipe, not the
  paper's. Rows without a link are of others, with their source.
- MRR and Hits@10 are of the test facts: heads and tails are ranked, known facts are left out
  (filtered), ranks are realistic. One seed, unless a row has the spread over several.
- Seconds are of training with its validation, on one {DEVICE} unless the row says otherwise, and
  with epochs those of the first seed; {SHARED} other runs used the GPU at the same time. {REMARK}
  The file has a remark on the run. "The paper" is the corresponding row of its tables, with its
  time on one RTX 8000.
- `-best` recipes with propagation and a {REMARK} were trained before a mistake of its kernels for
  GPUs [was corrected](propagation.md#what-it-is-worth), and have not been trained again. Recipes
  with propagation and without a {REMARK} have.

Speed on a CPU is in [speed.md](speed.md), graphs of millions of nodes in [scale.md](scale.md). This
page is written by `python -m scripts.write_results`, and as a page with the same tables by
`nodepiece report`.
"""
RELATIONS = """
Which relation joins a pair: relations and inverses ranked. Naive Bayes multiplies how often a
relation has the head, and how often it has the tail; half-links also know which relations come
together. No test pair of FB15k-237 is joined by a fact of training, so there both are the same.
"""
INDUCTIVE = """
Ranks are among 50 nodes drawn at random that are not known answers, ten times: the mean, and after
± the standard deviation between draws, or between seeds where there are several. MRR is of the same
draws, "all nodes" the MRR / Hits@10 of a full ranking. Personalized PageRank is ranked in the same
ways, with the draws of all seeds; its ± is always between draws. (NELL-995 v1 has 225 nodes, many
of them known answers: there nodes are drawn more than once, so MRR is hardly higher than among
all.)
The `-paper` recipes are ranked as the published code does, among 49 nodes from which known answers
are left out ([method](method.md#inductive-link-prediction)); this matters on NELL-995 v1 alone.
**The `-best` recipes add walks and propagation along the edges to CompGCN; neither is part of
NodePiece**. `--set walks.steps=0 --set propagation.layers=0` trains without them, which has not
been measured here. On the twelve splits the `-best` recipes were trained alone on the GPU, in one
process after kernels were compiled; a first run takes longer. The epoch is chosen by Hits@10 on the
`valid` queries of the graph that is evaluated, never by its test queries.
"""
PAPER_CONFIGURATIONS = "the paper's configurations, run here (`-paper`)"
PUBLISHED_RANKS = """
The row of the paper's configurations is ranked as the published code does, which on NELL v1 gives
higher numbers than the rows around it have; the table of all runs ranks personalized PageRank in
the same way beside each of them.
"""
ILPC_WORDS = """
Others rank among all nodes. Our epoch is chosen by the MRR of `valid` queries among 1,000 nodes,
drawn once. Popularity in the graph that is evaluated, without training, is ahead of the published
NodePiece with a GNN.
"""
CLASSES = """
ROC-AUC / PRC-AUC / hard accuracy on the test nodes of WD50K. The published commands train on all
labels, regardless of the share, and the paper's two columns are nearly the same; here 5 % and 10 %
of the labels are used. With all labels, for which the paper has no row, its row for 10 % is given
beside ours. The epoch is chosen by ROC-AUC on the validation nodes. Training is compared with
validation [below](#the-gap-between-training-and-validation). MLP and CompGCN have a trained vector
for every node. Classes of neighbours are the shares among the labelled neighbours of a node, and
class shares the same for every node, to which the published PRC-AUC, with its straight lines
between points, gives about one half. About 0.15M of the parameters that the paper counts for
NodePiece are never used.
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
`-walks` has them. The baselines without training know the other facts of the unseen node: to
half-links, another fact with a neighbour implies the one that is left out, and walks of PageRank
begin at the other neighbours.
"""
WIKIKG2, ILPC = "ogbl-wikikg2", "inductive/ilpc-small"
OUT_OF_SAMPLE_TITLES = {
    "fb15k-237": "FB15k-237, our own split",
    "own18rr": "WN18RR, the published split",
}


def results_document(results: Path) -> Document:
    """The document of a folder of results."""
    found = sorted(by_seed(read_measurements(results)), key=lambda each: order(each.name))
    tasks = {
        task: [each for each in found if each.task == task]
        for task in dict.fromkeys(each.task for each in found)
    }
    links, relations = tasks.get("link-prediction", []), tasks.get("relation-prediction", [])
    inductive, classes = (
        tasks.get(name, []) for name in ("inductive-link-prediction", "node-classification")
    )
    unseen, baselines = tasks.get("out-of-sample", []), read_baselines(results)
    sections = [
        Section("Link prediction", [compare_links(links)]),
        *link_sections(links, published.LINKS, baselines),
        Section("With and without shortcuts", shortcut_parts(baselines), level=3),
        wikikg2_section(links),
        Section(
            "Relation prediction",
            [RELATIONS],
        ),
        *link_sections(relations, published.RELATIONS, baselines),
        Section("", [compare_links(relations)], level=0),
        Section("", [below_half_links(baselines, relations)], level=0),
        Section("Inductive link prediction", [INDUCTIVE]),
        Section("Beside others", inductive_matrices(inductive, baselines), level=3),
        ilpc_section(inductive, baselines),
        Section(
            "All runs of the twelve splits",
            [*inductive_tables(inductive), compare_inductive(inductive)],
            level=3,
        ),
        Section("Node classification", [CLASSES, compare_classes(classes)]),
        *class_sections(classes, baselines),
        gap_section(results),
        Section("Out-of-sample link prediction", [OUT_OF_SAMPLE]),
        *out_of_sample_sections(unseen, baselines),
        Section("", [compare_out_of_sample(unseen, results)], level=0),
        Section("", [below_half_links(baselines, unseen)], level=0),
    ]
    return Document("Results", INTRODUCTION, [each for each in sections if any(each.parts)])


def link_sections(
    measurements: list[Measurement],
    others: dict[str, tuple[Published, ...]],
    baselines: dict[str, Any],  # from `read_baselines`
) -> list[Section]:
    """A table for each dataset, with baselines and the rows of others below ours."""
    columns: dict[str, Column] = {
        "parameters": parameters,
        "MRR / Hits@10": scores,
        "epochs": epochs,
        "training": seconds,
        "the paper": lambda each: of_the_paper(each.found["experiment"]),
    }
    parts = []
    datasets = dict.fromkeys([*TITLES, *(each.found["dataset"] for each in measurements)])
    for dataset in datasets:
        title = TITLES.get(dataset, dataset)
        rows = [each for each in measurements if each.found["dataset"] == dataset]
        if rows and dataset != WIKIKG2:
            beside = baseline_rows(baselines, rows[0].found, len(columns))
            beside += [published_row(each, len(columns)) for each in others.get(dataset, ())]
            parts.append(Section(title, tables(rows, columns, beside), level=3))
    return parts


def published_row(row: Published, num_columns: int) -> list[str]:
    """The cells of a row of others: who, parameters, scores, and nothing else."""
    shown = " / ".join(format_score(score) for score in row.scores)
    name = f"{row.system.replace('*', SHARED)} ({row.source})"
    return [name, row.parameters, shown, *[""] * (num_columns - 2)]


def wikikg2_section(measurements: list[Measurement]) -> Section:
    """The paper's table of OGB WikiKG2, with our rows if there are any."""
    columns: dict[str, Column] = {
        "parameters": parameters,
        "test MRR": lambda each: format_score(each.found["mrr"]),
    }
    ours = [each for each in measurements if each.found["dataset"] == WIKIKG2]
    rows = [published_row(each, 2) for each in published.WIKIKG2]
    words = "" if ours else "Not measured here; what others report:"
    return Section("OGB WikiKG2", [words, table(ours, columns, rows)], level=3)


def inductive_matrices(measurements: list[Measurement], baselines: dict[str, Any]) -> list[Part]:
    """The paper's table of Hits@10, and one of the MRR among all nodes, with our rows."""
    best, paper = (
        {
            each.found["dataset"].removeprefix("inductive/"): each.found
            for each in measurements
            if each.name.endswith(ending)
        }
        for ending in ("-best", "-paper")
    )
    if not best:
        return []
    graphs = {"fb15k-237": "FB", "wn18rr": "WN", "nell-995": "NELL"}
    columns = ["", *(f"{graphs[name[:-3]]} {name[-2:]}" for name in published.VERSIONS)]
    nell = [""] * 8

    def ours(value: Callable[[dict[str, Any]], float], of: dict[str, Any] = best) -> list[str]:
        return [format_score(value(of[name])) if name in of else "" for name in published.VERSIONS]

    hits = [others_row(each) for each in published.INDUCTIVE]
    hits.append(
        [
            f"{published.TRIX_HITS.system} ({published.TRIX_HITS.source})",
            *nell,
            *shown(published.TRIX_HITS),
        ]
    )
    hits += inductive_rows(baselines, DRAWN, "hits@10")
    hits.append(["personalized PageRank", *ours(lambda f: f["personalized_pagerank"]["hits@10"])])
    hits.append([PAPER_CONFIGURATIONS, *ours(lambda f: f["hits@10"], paper)])
    hits.append(["**our `-best` recipes**", *ours(lambda f: f["hits@10"])])
    mrr = [others_row(each) for each in published.INDUCTIVE_MRR]
    mrr.append(
        [
            f"{published.TRIX_MRR.system} ({published.TRIX_MRR.source})",
            *nell,
            *shown(published.TRIX_MRR),
        ]
    )
    mrr += inductive_rows(baselines, ALL_NODES, "mrr")
    mrr.append(
        ["personalized PageRank", *ours(lambda f: f["personalized_pagerank"]["all nodes"]["mrr"])]
    )
    mrr.append([PAPER_CONFIGURATIONS, *ours(lambda f: f["all nodes"]["mrr"], paper)])
    mrr.append(["**our `-best` recipes**", *ours(lambda f: f["all nodes"]["mrr"])])
    return [
        "Hits@10 among 50 candidates (FB is FB15k-237, WN WN18RR, NELL NELL-995):",
        Table(columns, hits),
        PUBLISHED_RANKS,
        "MRR among all nodes:",
        Table(columns, mrr),
    ]


def ilpc_section(measurements: list[Measurement], baselines: dict[str, Any]) -> Section:
    """ILPC 2022 small, whose published scores are among all nodes, apart from the twelve splits."""
    ours = [each for each in measurements if each.found["dataset"] == ILPC]
    columns: dict[str, Column] = {
        "parameters": parameters,
        "MRR / Hits@10 among all nodes": lambda each: among_all(each.found),
        "among 1,000 nodes": scores,
        "training": seconds,
    }
    rows = baseline_rows(baselines, {"task": "link-prediction", "dataset": ILPC}, len(columns))
    rows += [published_row(each, len(columns)) for each in published.ILPC_SMALL]
    words = ILPC_WORDS if ours else ""
    return Section("ILPC 2022 small", [words, table(ours, columns, rows)], level=3)


def others_row(row: Published) -> list[str]:
    cells = shown(row)
    return [f"{row.system} ({row.source})", *cells, *[""] * (len(published.VERSIONS) - len(cells))]


def shown(row: Published) -> list[str]:
    return [format_score(score) for score in row.scores]


def inductive_tables(measurements: list[Measurement]) -> list[Part]:
    columns: dict[str, Column] = {
        "Hits@10": lambda each: score(each, "hits@10") if each.others else with_spread(each.found),
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
    return tables([each for each in measurements if each.found["dataset"] != ILPC], columns)


def class_sections(
    measurements: list[Measurement],
    baselines: dict[str, Any],  # from `read_baselines`
) -> list[Section]:
    columns: dict[str, Column] = {
        "parameters": parameters,
        "ROC-AUC / PRC-AUC / hard accuracy": scores,
        "epochs": epochs,
        "training": seconds,
        "the paper": lambda each: of_the_paper(each.name.replace("wd50k-100-", "wd50k-10-")),
    }
    sections = []
    for share in sorted({each.found["label_share"] for each in measurements}):
        rows = [each for each in measurements if each.found["label_share"] == share]
        found = rows[0].found
        title = (
            f"{share * 100:.0f} % of the training labels: {found['labels']['train']:,} labels of "
            f"{found['labelled_nodes']['train']:,} nodes"
        )
        beside = baseline_rows(baselines, found, len(columns))
        sections.append(Section(title, [table(rows, columns, beside)], level=3))
    return sections


def gap_section(results: Path) -> Section:
    """Curves of training and validation, and how far apart they are."""
    title = "The gap between training and validation"
    if not (results / CURVES).is_file():
        return Section(title, [], level=3)
    curves = read_curves(results / CURVES)
    return Section(title, [curves_picture(results), *gap_parts(curves)], level=3)


def curves_picture(results: Path) -> Picture:
    file = StringIO()
    about = f"{CURVES}, sha256 {digest(results / CURVES)}"
    with drawing():
        draw(read_curves(results / CURVES)).savefig(
            file, format="svg", metadata={"Date": None, "Description": about}
        )
    alt = (
        "Scores of training and of validation nodes by epoch, for three models and shares of labels"
    )
    return Picture("wd50k-curves", alt, file.getvalue())


def out_of_sample_sections(
    measurements: list[Measurement],
    baselines: dict[str, Any],  # from `read_baselines`
) -> list[Section]:
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
    sections = []
    for dataset in sorted({each.found["dataset"] for each in measurements}):
        rows = [each for each in measurements if each.found["dataset"] == dataset]
        num_unseen = rows[0].found["unseen_nodes"]["test"]
        title = f"{OUT_OF_SAMPLE_TITLES.get(dataset, dataset)}: {num_unseen:,} unseen nodes"
        chosen = columns | beside if dataset == "fb15k-237" else columns
        others = baseline_rows(baselines, rows[0].found, len(chosen))
        sections.append(Section(title, tables(rows, chosen, others), level=3))
    return sections


def tables(
    measurements: Sequence[Measurement],
    columns: dict[str, Column],
    others: Sequence[Sequence[str]] = (),
) -> list[Part]:
    """A table of runs of the experiments as they are, and one of runs with other settings.

    The second one has no numbers of the paper beside it: its rows are not what the paper ran.
    """
    changed = [each for each in measurements if notes(each)]
    parts: list[Part] = [table([each for each in measurements if not notes(each)], columns, others)]
    if changed:
        own = {title: cell for title, cell in columns.items() if not title.startswith(PAPER)}
        parts += [CHANGED, table(changed, own)]
    return parts


def table(
    measurements: Sequence[Measurement],
    columns: dict[str, Column],
    others: Sequence[Sequence[str]] = (),
) -> Table:
    """A row for each, with the link to its file; notes say which settings were changed."""
    known = list(dict.fromkeys(note for each in measurements for note in notes(each)))
    rows = [
        [row_name(each, known), *(cell(each) for cell in columns.values())] for each in measurements
    ]
    return Table(["", *columns], [*rows, *map(list, others)], known)


def row_name(measurement: Measurement, known: list[str]) -> str:
    """Its name with the link, the links of further seeds, and its marks."""
    marks = [str(known.index(note) + 1) for note in notes(measurement)]
    marks += [REMARK] if has_remark(measurement) else []
    seeds = "".join(f", [seed {each.found['seed']}]({each.link})" for each in measurement.others)
    raised = f" <sup>{', '.join(marks)}</sup>" if marks else ""
    return f"[`{measurement.name}`]({measurement.link}){seeds}{raised}"


def parameters(measurement: Measurement) -> str:
    return f"{measurement.found['parameters'] / 1e6:.2f}M"


def epochs(measurement: Measurement) -> str:
    number, best = measurement.found["epochs"], measurement.found["best_epoch"]
    return f"{number:,}" if best is None else f"{number:,} (best: {best:,})"


def seconds(measurement: Measurement) -> str:
    """Seconds of training; with the device, if it is another one, and a star if it was shared."""
    duration = training_seconds(measurement.found)
    shown = f"{duration:.0f} s" if duration >= 10 else f"{duration:.1f} s"
    device = describe_device(measurement.found)
    where = "" if device == DEVICE else f", {device}"
    return shown + where + (f" {SHARED}" if shared_device(measurement) else "")


def with_spread(found: dict[str, Any]) -> str:
    return f"{format_score(found['hits@10'])} ± {format_score(found['spread']['hits@10'])}"


def among_all(found: dict[str, Any]) -> str:
    full = found["all nodes"]
    return f"{format_score(full['mrr'])} / {format_score(full['hits@10'])}"


def of_the_paper(name: str) -> str:
    """Scores, parameters and time, as far as the paper has them."""
    row = PAPER_ROWS.get(name)
    if row is None:
        return "-"
    known = [" / ".join(format_score(score) for score in row.scores), row.parameters, row.time]
    return ", ".join(part for part in known if part)
