"""PyKEEN's shallow models trained for some minutes, and their scores for our ranking."""

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from nodepiece.data.dataset import Dataset
from nodepiece.decoders.pairwise_distances import negative_distances
from nodepiece.evaluation.ranking import ScoreAll

MODELS = ("complex", "rotate", "distmult", "transe")
LOOPS = ("slcwa", "lcwa")
DEFAULT_LOSS = {
    ("complex", "lcwa"): "cross-entropy",
    ("distmult", "lcwa"): "cross-entropy",
    ("rotate", "lcwa"): "cross-entropy",
    ("transe", "lcwa"): "cross-entropy",
    ("complex", "slcwa"): "softplus",
    ("distmult", "slcwa"): "softplus",
    ("rotate", "slcwa"): "nssa",
    ("transe", "slcwa"): "margin",
}
LOSSES = ("cross-entropy", "nssa", "margin", "softplus", "bce")
DECAY_FROM = 0.6  # of the time; the learning rate falls to 0 in the rest, as ours does


class TimeIsUp(Exception):
    """Raised out of PyKEEN's training loop."""


@dataclass(frozen=True)
class PykeenSettings:
    """A contender: one of PyKEEN's models, a training loop, and what a search may change."""

    model: str
    loop: str
    dim: int = 100  # complex numbers count once, so ComplEx and RotatE have twice as many
    learning_rate: float = 1e-3  # of Adam
    batch_size: int = 1024  # facts, or (head, relation) pairs with "lcwa"
    num_negatives: int = 16  # for each fact, with "slcwa"
    loss: str = ""  # of LOSSES; "": DEFAULT_LOSS
    margin: float = 0.0  # of "margin" and "nssa"; 0: 1 and 9
    norm: int = 1  # of TransE
    decay: bool = False  # let the learning rate fall linearly to 0 after DECAY_FROM of the time
    label_smoothing: float = 0.0  # with "lcwa"
    seed: int = 0

    @property
    def loss_name(self) -> str:
        return self.loss or DEFAULT_LOSS[self.model, self.loop]


@dataclass
class TrainingTime:
    """Seconds of training; `pause` leaves out what runs in it."""

    limit: float
    start: float = field(default_factory=time.perf_counter)
    paused: float = 0.0

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.start - self.paused

    def pause(self, run: Callable[[], None]) -> None:
        before = time.perf_counter()
        run()
        self.paused += time.perf_counter() - before


@dataclass
class Trained:
    """What training gave: the model with its best weights on validation."""

    model: Any
    steps: int
    epochs: float
    seconds: float
    curve: list[dict[str, float]]  # seconds and mrr of each validation


def train_pykeen(
    settings: PykeenSettings,
    dataset: Dataset,
    *,
    seconds: float,
    validate: Callable[[ScoreAll], float],  # the MRR on a sample, from the scores of all tails
    validate_seconds: float,
) -> Trained:
    """Train for so many seconds, validation not counted, and go back to the best weights."""
    from pykeen.training import LCWATrainingLoop, SLCWATrainingLoop
    from pykeen.training.callbacks import TrainingCallback

    warnings.simplefilter("ignore")  # about viewing pairs of numbers as complex ones
    torch.manual_seed(settings.seed)  # PyKEEN draws from the global generator
    facts = pykeen_facts(dataset, with_inverses=settings.loop == "lcwa")
    model = make_model(settings, facts)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    curve: list[dict[str, float]] = []
    best: dict[str, Tensor] = {}
    steps = 0

    def keep_if_best() -> None:
        model.eval()
        mrr = validate(all_tails(settings, model, dataset.train.num_relations))
        model.train()
        if not curve or mrr > max(point["mrr"] for point in curve):
            best.update({key: value.clone() for key, value in model.state_dict().items()})
        curve.append({"seconds": round(timer.elapsed, 2), "mrr": mrr})

    class Limit(TrainingCallback):
        def pre_batch(self, **_: Any) -> None:
            nonlocal steps
            if timer.elapsed >= timer.limit:
                raise TimeIsUp
            if timer.elapsed >= validate_seconds * (len(curve) + 1):
                timer.pause(keep_if_best)
            if settings.decay:
                share_left = (1 - timer.elapsed / timer.limit) / (1 - DECAY_FROM)
                optimizer.param_groups[0]["lr"] = settings.learning_rate * min(1.0, share_left)
            steps += 1

    common = {
        "model": model,
        "triples_factory": facts,
        "optimizer": optimizer,
        "automatic_memory_optimization": False,  # it would try out smaller batches first
    }
    is_lcwa = settings.loop == "lcwa"
    negatives = {"num_negs_per_pos": settings.num_negatives}
    loop = (
        LCWATrainingLoop(**common)
        if is_lcwa
        else SLCWATrainingLoop(**common, negative_sampler_kwargs=negatives)
    )
    timer = TrainingTime(seconds)
    with suppress(TimeIsUp):
        loop.train(
            facts,
            num_epochs=10**6,
            batch_size=settings.batch_size,
            label_smoothing=settings.label_smoothing,
            callbacks=Limit(),  # type: ignore[no-untyped-call]
            use_tqdm=False,
        )
    trained_seconds = timer.elapsed
    timer.pause(keep_if_best)
    model.load_state_dict(best)
    model.eval()
    num_items = num_queries(dataset) if is_lcwa else dataset.train.num_triples
    epochs = steps * settings.batch_size / num_items
    return Trained(model, steps, epochs, trained_seconds, curve)


def num_queries(dataset: Dataset) -> int:
    """The number of distinct (head, relation) pairs of training, inverses included."""
    head, relation, tail = dataset.train.triples.astype("int64").T
    num_relations = dataset.train.num_relations
    ends = torch.from_numpy(head), torch.from_numpy(tail)
    return sum(len(torch.unique(end * num_relations + torch.from_numpy(relation))) for end in ends)


def pykeen_facts(dataset: Dataset, *, with_inverses: bool) -> Any:
    """The training facts; with inverses heads are predicted as tails, which LCWA needs."""
    from pykeen.triples import CoreTriplesFactory

    return CoreTriplesFactory(
        torch.tensor(dataset.train.triples, dtype=torch.long),
        num_entities=dataset.train.num_nodes,
        num_relations=dataset.train.num_relations,
        create_inverse_triples=with_inverses,
    )


def make_model(settings: PykeenSettings, facts: Any) -> Any:
    """The model. Constraints and regularizers that PyKEEN adds by default are left out.

    With them ComplEx and DistMult learn little from a cross-entropy. TransE with the margin loss
    has them, as published: its vectors have length 1.
    """
    from pykeen import models
    from pykeen.nn.init import xavier_normal_

    common = {
        "triples_factory": facts,
        "embedding_dim": settings.dim,
        "loss": make_loss(settings),
        "random_seed": settings.seed,
    }
    if settings.model == "complex":
        start: Any = {"entity_initializer": xavier_normal_, "relation_initializer": xavier_normal_}
        return models.ComplEx(**common, **start, regularizer=None)
    if settings.model == "distmult":
        return models.DistMult(**common, entity_constrainer=None, regularizer=None)
    if settings.model == "rotate":
        return models.RotatE(**common)
    constraint: Any = {} if settings.loss_name == "margin" else {"entity_constrainer": None}
    return models.TransE(**common, scoring_fct_norm=settings.norm, **constraint)


def make_loss(settings: PykeenSettings) -> Any:
    from pykeen import losses

    name = settings.loss_name
    if name == "margin":
        return losses.MarginRankingLoss(margin=settings.margin or 1.0)
    if name == "nssa":
        return losses.NSSALoss(margin=settings.margin or 9.0, adversarial_temperature=1.0)
    kinds = {
        "cross-entropy": losses.CrossEntropyLoss,
        "softplus": losses.SoftplusLoss,
        "bce": losses.BCEWithLogitsLoss,
    }
    return kinds[name]()


def all_tails(settings: PykeenSettings, model: Any, num_relations: int) -> ScoreAll:
    """Scores of all tails, or heads where the relation is an inverse, from the model's vectors.

    The same scores as those of PyKEEN's `predict_t` and `predict_h`, which compute distances for
    one pair of vectors at a time and so are slower. `num_relations` is without inverses.
    """
    with torch.no_grad():
        nodes, relations = (
            part[0](indices=None).detach()
            for part in (model.entity_representations, model.relation_representations)
        )
    has_inverses = model.use_inverse_triples
    points = flat(nodes)

    def score(heads: Tensor, relation_ids: Tensor) -> Tensor:
        is_inverse = relation_ids >= num_relations
        direct = relation_ids % num_relations
        if has_inverses:  # PyKEEN numbers a relation and its inverse one after the other
            vectors, is_inverse = relations[2 * direct + is_inverse], torch.zeros_like(is_inverse)
        else:
            vectors = relations[direct]
        queries = flat(translate(settings.model, nodes[heads], vectors, is_inverse[:, None]))
        if settings.model in ("complex", "distmult"):
            return queries @ points.T
        if settings.model == "rotate" or settings.norm == 2:
            return negative_distances(queries, points)
        return -torch.cdist(queries, points, p=float(settings.norm))

    return score


def translate(model: str, node: Tensor, relation: Tensor, is_inverse: Tensor) -> Tensor:
    """The point that the answers of a query are near to, or that their products are large with."""
    if model == "transe":
        return node + torch.where(is_inverse, -relation, relation)
    if model == "distmult":
        return node * relation
    return node * torch.where(is_inverse, relation.conj(), relation)


def flat(vectors: Tensor) -> Tensor:
    """(rows, dim), complex or real -> real (rows, dim or 2 dim)."""
    if vectors.is_complex():
        return torch.view_as_real(vectors.resolve_conj()).flatten(1)
    return vectors
