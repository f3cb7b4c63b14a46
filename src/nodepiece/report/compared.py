"""Sentences that compare the numbers of results/ with others, computed from the files.

Differences are of numbers with three digits, as the tables show them.
"""

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev

from nodepiece.report.measured import (
    CLASS_SCORES,
    LINK_SCORES,
    Measurement,
    changed_settings,
    describe_device,
    format_score,
    score,
    scores,
    shared_device,
    training_seconds,
)
from nodepiece.report.paper_rows import INDUCTIVE, PAPER_ROWS

CLOSE_MRR = 0.01  # a row within so much of the paper's counts as reproduced
CLASS_TITLES = ("ROC-AUC", "PRC-AUC", "hard accuracy")


def compare_links(measurements: list[Measurement]) -> str:
    """A list of what the tables say, each point computed from the numbers."""
    parts = (fewer_epochs(measurements), shortfalls(measurements), own_shallow(measurements))
    return "\n".join(f"- {part}" for part in parts if part)


def has_fewer_epochs(measurement: Measurement) -> bool:
    return any("`training.epochs`" in change for change in changed_settings(measurement.found))


def fewer_epochs(measurements: list[Measurement]) -> str:
    """A sentence on ablations, which are compared with the whole model after as many epochs."""
    whole = [each.name for each in measurements if each.name.endswith("-epochs")]
    if not whole:
        return ""
    names = listed([f"`{name}`" for name in whole])
    return (
        f"The ablations had fewer epochs than the paper's: they are to be compared with {names}, "
        "the whole model after as many, and not with the paper's numbers."
    )


def shortfalls(measurements: list[Measurement]) -> str:
    """The rows that do not reproduce the paper's, and what was ruled out as the reason."""
    short = [
        each
        for each in measurements
        if missing_mrr(each) > CLOSE_MRR and not has_fewer_epochs(each)
    ]
    if not short:
        return ""
    unchanged = {each.name for each in short if not changed_settings(each.found)}
    with_masks = [
        each for each in short if has_separate_masks(each) and each.found["experiment"] in unchanged
    ]
    others = [
        f"`{each.name}` ({format_score(missing_mrr(each))})"
        for each in short
        if each not in with_masks
    ]
    sentences = [
        f"Short of the paper's MRR by more than {format_score(CLOSE_MRR)}: {listed(others)}.",
        separate_masks(with_masks),
        "Why is not settled yet.",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def missing_mrr(measurement: Measurement) -> float:
    """How far the MRR is below the paper's; 0 if the paper has none."""
    row = PAPER_ROWS.get(measurement.found["experiment"])
    return 0.0 if row is None else -difference(measurement.found["mrr"], row.scores[0])


def has_separate_masks(measurement: Measurement) -> bool:
    return "sampled.separate_masks=true" in shlex.split(measurement.found.get("command", ""))


def separate_masks(short: list[Measurement]) -> str:
    """A sentence on runs that have the dropout masks of the published code, and are short too."""
    rows = [
        f"`{each.name}` has MRR {score(each, 'mrr')} ({format_score(missing_mrr(each))} short)"
        for each in short
    ]
    if not rows:
        return ""
    return (
        "Dropout masks of their own for the unchanged end of each negative, as published, are not "
        f"enough: {listed(rows)}."
    )


def own_shallow(measurements: list[Measurement]) -> str:
    """Our own models with a vector for every node, at full size and at the size of our recipes."""
    found = {each.name: each.found for each in measurements}
    rows = []
    for name in sorted(found):
        stem = name.removesuffix("best") + "shallow"
        beside = [(stem, ""), (f"{stem}-small", " (about as many parameters)")]
        parts = [
            f"{shares(found[name], found[other])} of `{other}`{words}"
            for other, words in beside
            if other in found
        ]
        if name.endswith("-best") and parts:
            rows.append(f"`{name}` has {listed(parts)}")
    if not rows:
        return ""
    return (
        "MRR / Hits@10 as a share of those of models with a vector for every node (RotatE without "
        f"walks, trained much like our recipe): {'; '.join(rows)}."
    )


def shares(ours: dict[str, float], theirs: dict[str, float]) -> str:
    return " / ".join(f"{ours[key] / theirs[key]:.0%}".replace("%", " %") for key in LINK_SCORES)


def compare_inductive(measurements: list[Measurement]) -> str:
    papers = {
        each.name: PAPER_ROWS[name]
        for each in measurements
        if (name := each.name.replace("-best", "-paper")) in PAPER_ROWS
        and each.name.endswith("-best")
    }
    rows = [each for each in measurements if each.name in papers]
    if not rows:
        return ""
    below = [
        f"{split(each)} ({format_score(-short)})"
        for each in rows
        if (short := difference(each.found["hits@10"], papers[each.name].scores[0])) < 0
    ]
    hours = sum(int(row.time.removesuffix(" h")) for row in papers.values())
    paper_rows = [each for each in measurements if is_paper_configuration(each)]
    seeds = " with the first seed" if any(each.others for each in rows) else ""
    sentences = [
        mean_hits(rows, [row.scores[0] for row in papers.values()]),
        beside_pagerank(rows, "our `-best` recipes"),
        f"The `-best` recipes {'do not reach' if below else 'reach'} the paper's Hits@10"
        f"{' on ' + listed(below) if below else ' on every split'}.",
        f"The trainings of the {len(rows)} `-best` recipes add up to {seconds_by_device(rows)}"
        f"{seeds}; the paper's, to {hours} h.",
    ]
    if paper_rows:
        sentences.append(beside_pagerank(paper_rows, "the `-paper` recipes"))
    sentences.append(beside_paper_configurations(measurements))
    return "\n".join(f"- {sentence}" for sentence in sentences if sentence)


def mean_hits(measurements: list[Measurement], theirs: list[float]) -> str:
    """The mean Hits@10 of the splits, over seeds and with each of them, beside the paper's.

    Where some splits have fewer seeds than others, only the first ones are comparable.
    """
    over_splits = hits_of_seeds(measurements)
    seed = " with the first seed" if any(each.others for each in measurements) else ""
    sentence = (
        f"The mean Hits@10 of the {len(measurements)} `-best` recipes"
        f"{seed if len(over_splits) == 1 else ''} is {format_score(mean(over_splits))}, "
        f"that of the paper {format_score(mean(theirs))}."
    )
    if len(over_splits) == 1:
        return sentence
    return (
        f"{sentence} The {len(over_splits)} seeds have {listed(map(format_score, over_splits))}, "
        f"with a standard deviation of {format_score(stdev(over_splits))}."
    )


def hits_of_seeds(measurements: list[Measurement]) -> list[float]:
    """The mean Hits@10 of all measurements with each seed that all of them have."""
    number = min(each.num_seeds for each in measurements)
    every = [each.of_seeds.get("hits@10", [each.found["hits@10"]]) for each in measurements]
    return [mean(hits[seed] for hits in every) for seed in range(number)]


def beside_pagerank(measurements: list[Measurement], recipes: str) -> str:
    """The splits on which a baseline that learns nothing has the better Hits@10."""
    drawn, in_full = (
        [
            f"{split(each)} ({format_score(-short)})"
            for each in measurements
            if (short := ahead_of_pagerank(*rankings(each))) < 0
        ]
        for rankings in (drawn_rankings, full_rankings)
    )
    brackets = "; in brackets by how much" if drawn or in_full else ""
    return (
        f"Personalized PageRank, which learns nothing, has a better Hits@10 than {recipes} on "
        f"{listed(drawn)}, and among all nodes on {listed(in_full)}{brackets}."
    )


def seconds_by_device(measurements: list[Measurement]) -> str:
    """Seconds of a GPU and of a CPU are not the same, and shared ones are longer."""
    parts = []
    for device in dict.fromkeys(describe_device(each.found) for each in measurements):
        runs = [each for each in measurements if describe_device(each.found) == device]
        total = sum(training_seconds(each.found) for each in runs)
        shared = [each for each in runs if shared_device(each)]
        words = f", {len(shared)} of them while others shared it" if shared else ""
        parts.append(f"{total:.0f} s on {device} ({len(runs)} runs{words})")
    return listed(parts)


def beside_paper_configurations(measurements: list[Measurement]) -> str:
    """The paper's own settings, where they have been measured, beside what it has with them."""
    exact = [each for each in measurements if is_paper_configuration(each)]
    varied = [
        each
        for each in measurements
        if each.found["experiment"] in INDUCTIVE and not is_paper_configuration(each)
    ]
    apart = [difference(each.found["hits@10"], paper_hits(each)) for each in exact]
    sentences = []
    if apart:
        sentences.append(
            f"{len(exact)} of the {len(INDUCTIVE)} recipes of the paper's configurations "
            f"(`inductive-...-paper`) were run without changes; their Hits@10 less the paper's is "
            f"from {signed(min(apart))} to {signed(max(apart))}, "
            f"{signed(sum(apart) / len(apart))} on average."
        )
    if varied:
        sentences.append(
            f"With other settings, which the notes name: {listed(map(beside_its_row, varied))}."
        )
    return " ".join(sentences)


def is_paper_configuration(measurement: Measurement) -> bool:
    """Whether it is a run of one of the paper's inductive configurations, without changes."""
    return measurement.found["experiment"] in INDUCTIVE and not changed_settings(measurement.found)


def beside_its_row(measurement: Measurement) -> str:
    hits, theirs = (
        format_score(x) for x in (measurement.found["hits@10"], paper_hits(measurement))
    )
    return f"`{measurement.name}` {hits} ({theirs} in the paper)"


def paper_hits(measurement: Measurement) -> float:
    return PAPER_ROWS[measurement.found["experiment"]].scores[0]


def signed(score: float) -> str:
    """`-.018`."""
    return f"{score:+.3f}".replace("0.", ".", 1)


def drawn_rankings(measurement: Measurement) -> tuple[dict[str, float], dict[str, float]]:
    return measurement.found, measurement.found["personalized_pagerank"]


def full_rankings(measurement: Measurement) -> tuple[dict[str, float], dict[str, float]]:
    found = measurement.found
    return found["all nodes"], found["personalized_pagerank"]["all nodes"]


def ahead_of_pagerank(ours: dict[str, float], pagerank: dict[str, float]) -> float:
    return difference(ours["hits@10"], pagerank["hits@10"])


def split(measurement: Measurement) -> str:
    """`FB15k-237 v1`, after the dataset's name inductive/fb15k-237-v1."""
    graph, _, version = measurement.found["dataset"].removeprefix("inductive/").rpartition("-")
    return f"{graph.upper().replace('FB15K', 'FB15k')} {version}"


def compare_classes(measurements: list[Measurement]) -> str:
    """NodePiece's rows of each share beside the paper's, and its first one beside CompGCN."""
    found = {each.name: each.found for each in measurements}
    lines = []
    for percent in (5, 10, 100):
        names = [name for name in found if name.startswith(f"wd50k-{percent}-paper")]
        if not names:
            continue
        verdicts = []
        for place, (key, title) in enumerate(zip(CLASS_SCORES, CLASS_TITLES, strict=True)):
            rows = {n: PAPER_ROWS[n.replace("wd50k-100-", "wd50k-10-")] for n in names}
            apart = [difference(found[n][key], row.scores[place]) for n, row in rows.items()]
            verdicts.append(f"{title} is {verdict(apart)}")
        ours, other = (found.get(f"wd50k-{percent}-{kind}") for kind in ("paper", "compgcn"))
        beside = ""
        if ours and other:
            ahead = (difference(ours[key], other[key]) for key in CLASS_SCORES)
            apart_from = " / ".join(map(signed, ahead))
            beside = f" `wd50k-{percent}-paper` less our CompGCN: {apart_from}."
        lines.append(f"- **{percent} %**: the paper's {listed(verdicts)}.{beside}")
    return "\n".join(lines)


def verdict(apart: list[float]) -> str:
    """Whether the paper's scores are reached, from how far ours are above them."""
    low, high = min(apart), max(apart)
    if low >= 0:
        return f"reached ({format_score(low)} to {format_score(high)} above)"
    if high < 0:
        return f"**not reached** ({format_score(-high)} to {format_score(-low)} below)"
    return f"reached in part (from {format_score(-low)} below to {format_score(high)} above)"


def compare_out_of_sample(measurements: list[Measurement], results: Path) -> str:
    found = {each.name: each for each in measurements}
    lines = []
    for graph in ("fb15k-237-oos", "own18rr"):
        recipe, paper = (found.get(f"{graph}-{kind}") for kind in ("best", "paper"))
        baselines = [found[name] for name in found if name.startswith(f"{graph}-odistmult")]
        if recipe is None or paper is None or not baselines:
            continue
        baseline = max(baselines, key=lambda each: float(each.found["valid"]["mrr"]))
        lines.append(
            f"- `{graph}`: oDistMult-ERAvg (`{baseline.name}`, the best on validation) has "
            f"{scores(baseline)}, the paper's configuration {scores(paper)}, our recipe "
            f"{scores(recipe)} with {share_of_parameters(recipe, baseline)} of the baseline's "
            "parameters."
        )
        alone = found.get(f"{graph}-best-no-walks")
        if alone is not None:
            lines[-1] += (
                f" Without walks, by pieces alone, our best has {scores(alone)} with "
                f"{share_of_parameters(alone, baseline)}."
            )
        walking = found.get(f"{graph}-walks")
        if walking is not None:
            lines[-1] += (
                f" With walks (`{walking.name}`) it is {scores(walking)} with "
                f"{share_of_parameters(walking, baseline)}."
            )
    if lines:
        lines.append(beside_known_neighbours(found, results))
    shortened = [each for each in measurements if is_shortened(each)]
    if shortened:
        lines.append(
            f"- {len(shortened)} of these {len(measurements)} runs, those of the paper's "
            "configuration and its ablations, had fewer epochs than the paper's and computed in "
            "bfloat16, to take less time; the notes say what was set."
        )
    return "\n".join(lines)


def share_of_parameters(one: Measurement, other: Measurement) -> str:
    return f"{one.found['parameters'] / other.found['parameters']:.0%}".replace("%", " %")


def beside_known_neighbours(found: dict[str, Measurement], results: Path) -> str:
    """A rule that learns nothing, and our rows with an MRR below its."""
    rule = json.loads((results / "neighbour-overlap.json").read_text(encoding="utf-8"))
    parts = []
    for graph, dataset in (("fb15k-237-oos", "fb15k-237"), ("own18rr", "own18rr")):
        own, rows = rule[dataset], [name for name in found if name.startswith(graph)]
        below = [n for n in rows if difference(found[n].found["mrr"], own["mrr"]) < 0]
        twins = f"{own['share_with_twin']:.0%}".replace("%", " %")
        better = f"{len(below)} of {len(rows)} rows" if below else "no row"
        better = "**all rows**" if len(below) == len(rows) else better
        parts.append(
            f"{format_score(own['mrr'])} / {format_score(own['hits@10'])} on `{graph}`, "
            f"where {twins} of the facts left out have such a twin (a better MRR than {better})"
        )
    return (
        "- Many facts have a twin that joins the same two nodes. A rule that learns nothing and "
        "answers with the neighbours that a node's other facts name "
        f"([`neighbour-overlap`](../results/neighbour-overlap.json)) has {listed(parts)}."
    )


def is_shortened(measurement: Measurement) -> bool:
    changed = " ".join(changed_settings(measurement.found))
    return "`training.epochs`" in changed and "bfloat16" in changed


def difference(ours: float, theirs: float) -> float:
    return round(round(ours, 3) - round(theirs, 3), 3)


def listed(words: Iterable[str]) -> str:
    """`a, b and c`; of nothing, `none`."""
    *first, last = list(words) or ["none"]
    return f"{', '.join(first)} and {last}" if first else last
