"""Sentences on the gap between training and validation in node classification, from the curves.

Gaps are of numbers with three digits, as the table shows them.
"""

from nodepiece.report.class_curves import MODELS, SHARES, Curve
from nodepiece.report.compared import difference, listed
from nodepiece.report.document import Part, Table
from nodepiece.report.measured import format_score

PAPER_GAP = 0.1  # in PRC-AUC: the appendix says that NodePiece's is smaller
SHOWN = {"prc_auc": "PRC-AUC", "hard_accuracy": "hard accuracy"}  # what the appendix shows
INTRODUCTION = """
Training nodes are dashed (no more of them than there are validation nodes), validation nodes solid;
a dot is the epoch that validation chose, by ROC-AUC. The numbers, and the commands that reproduce
them, are in [`wd50k-curves.json`](../results/wd50k-curves.json). ROC-AUC and PRC-AUC are averages
over the classes that occur among the evaluated nodes, so training and validation do not average
over exactly the same classes. In the paper's appendix, for 5 % of the labels, NodePiece's training
nodes are ahead by less than .100 in PRC-AUC and by almost nothing in hard accuracy. Training minus
validation:
"""
Curves = dict[tuple[int, str], Curve]  # by share and model


def gap_parts(curves: Curves) -> list[Part]:
    return [INTRODUCTION, gap_table(curves), compare_gaps(curves)]


def gap(curve: Curve, score: str, epoch: int) -> float:
    """The score of training nodes minus that of validation nodes."""
    return difference(curve.at(epoch, f"train_{score}"), curve.at(epoch, f"valid_{score}"))


def last_of_all(curves: Curves) -> int:
    """The last epoch that every run had."""
    return min(curve.epochs[-1] for curve in curves.values())


def gap_table(curves: Curves) -> Table:
    last = last_of_all(curves)
    columns = [f"{title}, {at}" for at in ("dot", f"epoch {last:,}") for title in SHOWN.values()]
    rows = []
    for (share, model), curve in curves.items():
        cells = [f"{share} %", MODELS[model], f"{curve.best_epoch:,}"]
        cells += [subtraction(curve, key, at) for at in (curve.best_epoch, last) for key in SHOWN]
        rows.append(cells)
    return Table(["labels", "", "dot: epoch", *columns], rows)


def subtraction(curve: Curve, score: str, epoch: int) -> str:
    train, valid = (format_score(curve.at(epoch, f"{part}_{score}")) for part in ("train", "valid"))
    return f"{train} - {valid} = {format_score(gap(curve, score, epoch))}"


def compare_gaps(curves: Curves) -> str:
    """NodePiece + CompGCN compared with CompGCN. Three numbers in a row are of the three shares."""
    last = last_of_all(curves)
    dots, later = (
        "; ".join(f"in {title} {smaller(curves, key, epoch)}" for key, title in SHOWN.items())
        for epoch in (None, last)
    )
    ours, theirs = ([curves[share, model] for share in SHARES] for model in ("paper", "compgcn"))
    first, then = (" / ".join(f"{each.best_epoch:,}" for each in row) for row in (theirs, ours))
    return (
        f"- NodePiece's gap beside CompGCN's, at the dots: {dots}. But the dots are of different "
        f"epochs: with {listed(f'{share} %' for share in SHARES)} of the labels {first} for "
        f"CompGCN, {then} for NodePiece. At epoch {last:,}, the last that all runs had: {later}.\n"
        f"- {beside_the_paper(ours)}\n"
        f"- {peaks(ours, theirs)}\n"
        f"- {by_another_score(ours)}"
    )


def smaller(curves: Curves, score: str, epoch: int | None = None) -> str:
    """With which shares NodePiece's gap is smaller than CompGCN's; None: each at its dot."""
    found = {key: gap(curve, score, epoch or curve.best_epoch) for key, curve in curves.items()}
    where = [share for share in SHARES if found[share, "paper"] < found[share, "compgcn"]]
    if len(where) in (0, len(SHARES)):
        return "smaller with every share" if where else "**smaller with no share**"
    other = [f"{share} %" for share in SHARES if share not in where]
    return f"smaller with {listed(f'{share} %' for share in where)}, **not with {listed(other)}**"


def beside_the_paper(ours: list[Curve]) -> str:
    gaps = {key: [gap(curve, key, curve.best_epoch) for curve in ours] for key in SHOWN}
    reached = [
        f"{s} %" for s, each in zip(SHARES, gaps["prc_auc"], strict=True) if each < PAPER_GAP
    ]
    verdict = f"reached with {listed(reached)}" if reached else "**not reached**"
    return (
        f"The paper's gap of NodePiece in PRC-AUC is {verdict}: {slashed(gaps['prc_auc'])} at the "
        f"dots. In hard accuracy the gap is {slashed(gaps['hard_accuracy'])}: the last is with all "
        "labels, on which the published commands train."
    )


def peaks(ours: list[Curve], theirs: list[Curve]) -> str:
    """Hard accuracy on validation nodes at the best of all epochs, beside that at the dots."""
    key = "valid_hard_accuracy"
    (our_peaks, our_dots), (their_peaks, their_dots) = (
        ([max(each.scores[key]) for each in row], [each.at(each.best_epoch, key) for each in row])
        for row in (ours, theirs)
    )
    ahead = [
        slashed([difference(*pair) for pair in zip(our, their, strict=True)])
        for our, their in ((our_dots, their_dots), (our_peaks, their_peaks))
    ]
    return (
        "An epoch chosen by ROC-AUC need not be good in hard accuracy. On validation nodes CompGCN "
        f"has {slashed(their_dots)} at the dots and {slashed(their_peaks)} at the best of all "
        f"epochs; NodePiece, {slashed(our_dots)} and {slashed(our_peaks)}. So NodePiece is ahead "
        f"by {ahead[0]} at the dots, and by {ahead[1]} where each is at its best."
    )


def by_another_score(ours: list[Curve]) -> str:
    """What the epochs with the best PRC-AUC would have on validation nodes."""
    chosen = [max(each.epochs, key=lambda epoch: each.at(epoch, "valid_prc_auc")) for each in ours]
    parts = []
    for key, title in (("roc_auc", "ROC-AUC"), *SHOWN.items()):
        dots = slashed([each.at(each.best_epoch, f"valid_{key}") for each in ours])
        pairs = zip(ours, chosen, strict=True)
        there = slashed([each.at(epoch, f"valid_{key}") for each, epoch in pairs])
        parts.append(f"{there} in {title} instead of {dots}")
    epochs = " / ".join(f"{epoch:,}" for epoch in chosen)
    return (
        "What an epoch is chosen by decides which score is good. The best PRC-AUC that NodePiece "
        f"had on validation nodes is of epochs {epochs}, with {listed(parts)}."
    )


def slashed(numbers: list[float]) -> str:
    return " / ".join(format_score(number) for number in numbers)
