import math

import pytest
import torch
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc, binary_precision_recall_curve

from nodepiece.errors import InputError
from nodepiece.evaluation import classification
from nodepiece.evaluation.classification import areas_under_curves, classification_report


def random_case(seed: int, *, num_values: int) -> tuple[Tensor, Tensor]:
    """Probabilities of 40 nodes for 7 classes; the fewer different values, the more ties."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(num_values, (40, 7), generator=generator) / num_values
    return values, torch.rand(40, 7, generator=generator) < 0.3


@pytest.mark.parametrize("num_values", [3, 10, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_areas_are_those_of_torchmetrics(seed: int, num_values: int) -> None:
    scores, labels = random_case(seed, num_values=num_values)
    roc_auc, prc_auc = areas_under_curves(scores, labels)
    for column in range(scores.shape[1]):
        expected = binary_auroc(scores[:, column], labels[:, column].int())
        assert roc_auc[column] == pytest.approx(float(expected), abs=1e-6)
        precision, recall, _ = binary_precision_recall_curve(
            scores[:, column], labels[:, column].int()
        )
        area = -torch.trapezoid(precision, recall)  # recall comes in descending order
        assert prc_auc[column] == pytest.approx(float(area), abs=1e-6)


def test_areas_worked_out_by_hand() -> None:
    # Going down: yes, (yes and no tie), no.
    scores = torch.tensor([[0.9], [0.5], [0.5], [0.1]])
    labels = torch.tensor([[True], [True], [False], [False]])
    roc_auc, prc_auc = areas_under_curves(scores, labels)
    assert roc_auc.item() == 1 - 0.5 * 0.5 * 0.5  # the tie cuts a corner off
    # Points (recall, precision): (0, 1), (1/2, 1), (1, 2/3).
    assert prc_auc.item() == pytest.approx(1 / 2 * 1 + 1 / 2 * (1 + 2 / 3) / 2)


def test_a_class_that_all_or_no_nodes_have_does_not_count() -> None:
    scores = torch.tensor([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]])
    labels = torch.tensor([[True, True, False], [False, True, False]])
    report = classification_report(scores, labels)
    assert (
        report.roc_auc[0] == 1 and math.isnan(report.roc_auc[1]) and math.isnan(report.roc_auc[2])
    )
    assert report.scores()["roc_auc"] == 1 and report.scores()["prc_auc"] == 1
    named = report.named(("a", "b", "c"))
    assert named.details == {"classes": {"a": {"roc_auc": 1.0, "prc_auc": 1.0, "count": 1}}}


def test_areas_that_no_class_has_are_left_out() -> None:
    report = classification_report(torch.tensor([[0.9], [0.2]]), torch.tensor([[True], [True]]))
    assert report.scores() == {"hard_accuracy": 0.5}


def test_hard_accuracy_wants_every_class_of_a_node_right() -> None:
    labels = torch.tensor([[True, False], [True, False], [False, True], [False, False]])
    scores = torch.tensor([[0.6, 0.4], [0.6, 0.6], [0.4, 0.9], [0.5, 0.2]])  # 0.5 is not above it
    assert classification_report(scores, labels).hard_accuracy == 3 / 4


def test_scores_that_are_all_alike_are_a_coin_toss() -> None:
    _, labels = random_case(0, num_values=3)
    report = classification_report(torch.full((40, 7), 0.25), labels)
    assert report.scores()["roc_auc"] == 0.5
    share = labels.double().mean(dim=0)
    assert report.scores()["prc_auc"] == pytest.approx(float(((1 + share) / 2).mean()))


def test_classes_judged_a_few_at_a_time_are_judged_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores, labels = random_case(1, num_values=10)
    whole = classification_report(scores, labels)
    monkeypatch.setattr(classification, "CELLS_AT_ONCE", 90)  # two classes of forty nodes
    parts = classification_report(scores, labels)
    assert parts.roc_auc.tolist() == pytest.approx(whole.roc_auc.tolist())
    assert parts.prc_auc.tolist() == pytest.approx(whole.prc_auc.tolist())


def test_nan_is_an_error() -> None:
    with pytest.raises(InputError, match="NaN"):
        classification_report(torch.tensor([[torch.nan]]), torch.tensor([[True]]))


@pytest.mark.gpu
def test_areas_on_a_gpu_are_those_on_the_cpu() -> None:
    scores, labels = random_case(2, num_values=10)
    on_gpu = classification_report(scores.cuda(), labels.cuda())
    assert on_gpu.scores() == pytest.approx(classification_report(scores, labels).scores())
