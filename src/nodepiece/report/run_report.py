"""The report of runs: side by side with each other, with the paper's rows and with others'."""

import json
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from nodepiece.errors import InputError
from nodepiece.inference.calibration import FILE as CALIBRATION
from nodepiece.inference.classify_triples import classify_triples
from nodepiece.inference.run import load
from nodepiece.report import published
from nodepiece.report.document import Document, Part, Picture, Section, Table, plain
from nodepiece.report.measured import (
    TITLES,
    Measurement,
    by_seed,
    describe_device,
    format_score,
    score,
    score_keys,
    training_seconds,
)
from nodepiece.report.paper_rows import PAPER_ROWS
from nodepiece.report.published import Published
from nodepiece.report.reliability import draw_reliability
from nodepiece.report.run_curves import draw_histories, read_history
from nodepiece.report.style import drawing

MAX_RELATIONS = 25  # rows of the table of relations
SCORE_NAMES = {
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
    "roc_auc": "ROC-AUC",
    "prc_auc": "PRC-AUC",
    "hard_accuracy": "hard accuracy",
}
OTHERS: dict[str, dict[str, tuple[Published, ...]]] = {
    "link-prediction": published.LINKS | {"ogbl-wikikg2": published.WIKIKG2},
    "relation-prediction": published.RELATIONS,
}
INTRODUCTION = """
Each run, or several runs that differ in nothing but their seeds, is a row; after ± is the standard
deviation over seeds. MRR and Hits are of the test facts, filtered, with realistic ranks. "The
paper" is the NodePiece paper; other rows have their source in brackets. Popularity ranks answers by
how often a relation has them, and learns nothing else.
"""


def read_run(folder: Path, name: str) -> Measurement:
    """A finished run; its metrics as they are in its folder."""
    path = folder / "metrics.json"
    if not path.is_file():
        raise InputError(
            f"{folder} is not a finished run: it has no metrics.json; train it to the end first"
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is damaged; evaluate or train the run again") from error
    if not isinstance(found, dict) or "task" not in found:
        raise InputError(f"{path} is not the metrics of a run; train the run again")
    return Measurement(name, found)


def run_names(folders: Sequence[Path]) -> list[str]:
    """The last parts of the paths, as many as are needed to tell them apart."""
    whole = [folder.resolve() for folder in folders]
    if len(set(whole)) < len(whole):
        raise InputError("the same run was given twice; give each folder once")
    for depth in range(1, max(len(path.parts) for path in whole) + 1):
        names = ["/".join(path.parts[-depth:]) for path in whole]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in whole]


def report_document(
    folders: Sequence[Path], *, log: Callable[[str], None] = lambda _: None
) -> Document:
    """The report of run folders. Calibrated runs are opened, to classify their test facts."""
    names = run_names(folders)
    runs = [read_run(folder, name) for folder, name in zip(folders, names, strict=True)]
    places = dict(zip(names, folders, strict=True))
    rows = by_seed(runs)
    sections = [Section("Runs", [summary_table(rows, places)])]
    for task, dataset in dict.fromkeys((each.task, each.found["dataset"]) for each in rows):
        mine = [e for e in rows if e.task == task and e.found["dataset"] == dataset]
        title = f"{plain(TITLES.get(dataset, dataset))}: {task.replace('-', ' ')}"
        sections.append(Section(title, dataset_parts(mine, places)))
    sections.append(calibration_section(runs, places, log))
    found = [each for each in sections if any(each.parts)]
    title = "Report of " + ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    return Document(title, INTRODUCTION, found)


def summary_table(rows: Sequence[Measurement], places: dict[str, Path]) -> Table:
    """What was trained, how large it is, and what it cost."""
    columns = ["", "experiment", "seeds", "parameters", "weights", "epochs", "training"]
    columns += ["peak memory", "device"]
    return Table(columns, [summary_row(each, places[each.name]) for each in rows])


def summary_row(row: Measurement, folder: Path) -> list[str]:
    found = row.found
    seeds = ", ".join(str(each.found["seed"]) for each in (row, *row.others))
    epochs = f"{found['epochs']:,}"
    if found.get("best_epoch") is not None:
        epochs += f" (best: {found['best_epoch']:,})"
    weights = folder / "model.safetensors"
    size = f"{weights.stat().st_size / 1e6:.1f} MB" if weights.is_file() else ""
    return [
        ", ".join(f"**{plain(each.name)}**" for each in (row, *row.others)),
        plain(str(found["experiment"])),
        seeds,
        f"{found['parameters']:,}",
        size,
        epochs,
        duration(training_seconds(found)),
        peak_memory(found),
        plain(describe_device(found)),
    ]


def peak_memory(found: dict[str, Any]) -> str:
    """Of the process, and of the GPU if there was one; runs of earlier versions recorded none."""
    peaks = found.get("peak_memory") or {}
    shown = [f"{peaks['process'] / 1e9:.2f} GB"] if peaks.get("process") else []
    shown += [f"{peaks['device'] / 1e9:.2f} GB on the GPU"] if peaks.get("device") else []
    return ", ".join(shown)


def duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 600 else f"{seconds:.1f} s"


def dataset_parts(rows: Sequence[Measurement], places: dict[str, Path]) -> list[Part]:
    """All about the runs of one dataset and task."""
    return [
        score_table(rows),
        *curve_parts(rows, places),
        *relation_parts(rows),
    ]


def score_table(rows: Sequence[Measurement]) -> Table:
    """Scores of the runs, of simple baselines, of the paper and of others."""
    found = rows[0].found
    keys = [key for key in SCORE_NAMES if key in found]
    main = score_keys(found)
    cells = [[f"**{plain(row.name)}**", *(shown(row, key) for key in keys)] for row in rows]
    for key, title in (("popularity", "popularity"), ("personalized_pagerank", "PageRank")):
        if isinstance(found.get(key), dict):
            base = found[key]
            cells.append([title, *(format_score(base[k]) if k in base else "" for k in keys)])
    for name in dict.fromkeys(name for row in rows for name in paper_names(row.found)):
        scores = PAPER_ROWS[name].scores
        cells.append([f"the paper: {name}", *placed(scores, main, keys, found)])
    others = others_of(rows[0].task, str(found["dataset"]))
    for row in others:
        size = f", {row.parameters}" if row.parameters else ""
        name = f"{plain(row.system)} ({row.source}{size})"
        cells.append([name, *placed(row.scores, main, keys, found)])
    return Table(["", *(SCORE_NAMES[key] for key in keys)], cells)


def paper_names(found: dict[str, Any]) -> list[str]:
    """The rows of the paper that belong beside a run: of its experiment, and of its dataset."""
    dataset, experiment = str(found["dataset"]), str(found["experiment"])
    names = {
        "link-prediction": f"{dataset}-paper",
        "relation-prediction": f"{dataset}-relations-paper",
        "inductive-link-prediction": f"{dataset.replace('/', '-')}-paper",
        "node-classification": f"wd50k-{100 * found.get('label_share', 0):.0f}-paper",
    }
    wanted = [experiment, names.get(str(found["task"]), "")]
    return [name for name in dict.fromkeys(wanted) if name in PAPER_ROWS]


def others_of(task: str, dataset: str) -> Sequence[Published]:
    """What others have reported of the dataset."""
    version = dataset.removeprefix("inductive/")
    if task == "inductive-link-prediction" and version in published.VERSIONS:
        place = published.VERSIONS.index(version)
        rows = [each for each in published.INDUCTIVE if each.source != published.PAPER]
        return [
            Published(each.system, each.source, (each.scores[place],))
            for each in rows
            if place < len(each.scores)
        ]
    return OTHERS.get(task, {}).get(dataset, ())


def shown(row: Measurement, key: str) -> str:
    return score(row, key) if row.found.get(key) is not None else ""


def placed(
    scores: Sequence[float], main: Sequence[str], keys: Sequence[str], found: dict[str, Any]
) -> list[str]:
    """Published scores in the columns that they are of; inductive rows have Hits@10 alone."""
    names = ["hits@10"] if len(scores) == 1 and "all nodes" in found else main
    known = dict(zip(names, scores, strict=False))
    return [format_score(known[key]) if key in known else "" for key in keys]


def curve_parts(rows: Sequence[Measurement], places: dict[str, Path]) -> list[Part]:
    runs = [each for row in rows for each in (row, *row.others)]
    histories = [
        read_history(places[each.name], each.name, each.found.get("best_epoch")) for each in runs
    ]
    histories = [each for each in histories if each.epochs]
    if not histories:
        return []
    metric = score_keys(rows[0].found)[0]
    alt = f"Loss and validation score by epoch of {', '.join(each.name for each in histories)}"
    name = "curves-" + picture_name(rows[0])
    return [Picture(name, plain(alt), to_svg(draw_histories(histories, metric)))]


def picture_name(row: Measurement) -> str:
    """A name of a file from a dataset and a task, of which the dataset may be any path."""
    text = f"{Path(row.found['dataset']).name}-{row.task}".lower()
    return "".join(character if character.isalnum() else "-" for character in text)


def relation_parts(rows: Sequence[Measurement]) -> list[Part]:
    """Scores by relation, or by class, the most frequent first, of the runs side by side."""
    with_relations = [row for row in rows if isinstance(row.found.get("relations"), dict)]
    if not with_relations:
        return []
    relations: dict[str, dict[str, Any]] = with_relations[0].found["relations"]
    names = sorted(relations, key=lambda name: -relations[name]["count"])
    keys = [key for key in ("mrr", "hits@10") if all(key in relations[name] for name in names)]
    columns = ["relation", "ranks"]
    columns += [
        f"{SCORE_NAMES[key]}, {plain(row.name)}" + (", its first seed" if row.others else "")
        for row in with_relations
        for key in keys
    ]
    cells = []
    for name in names[:MAX_RELATIONS]:
        line = [plain(name), f"{relations[name]['count']:,}"]
        for row in with_relations:
            scores = row.found["relations"].get(name, {})
            line += [format_score(scores[key]) if key in scores else "" for key in keys]
        cells.append(line)
    words = "By relation:"
    if len(names) > len(cells):
        words = f"The {len(cells)} most frequent of {len(names)} relations:"
    return [words, Table(columns, cells)]


def calibration_section(
    runs: Sequence[Measurement], places: dict[str, Path], log: Callable[[str], None]
) -> Section:
    """Reliability diagrams of the runs that have a calibration."""
    parts: list[Part] = []
    for run in runs:
        if not (places[run.name] / CALIBRATION).is_file():
            continue
        log(f"classifying test facts of {places[run.name]}")
        found = classify_triples(load(places[run.name]))
        alt = f"How often facts of a given probability are true, by {run.name}"
        figure = draw_reliability(found.reliability, name=run.name)
        name = "reliability-" + "".join(c if c.isalnum() else "-" for c in run.name.lower())
        parts.append(Picture(name, plain(alt), to_svg(figure)))
        scores = found.report.scores
        rows = [
            [key.replace("_", " "), f"{value:,}" if isinstance(value, int) else f"{value:.3f}"]
            for key, value in scores.items()
        ]
        parts.append(f"Of {plain(run.name)}, among negatives {plain(found.negatives)}:")
        parts.append(Table(["test facts, true and false", "score"], rows))
    return Section("Calibration", parts)


def to_svg(figure: Figure) -> str:
    file = StringIO()
    with drawing():
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
