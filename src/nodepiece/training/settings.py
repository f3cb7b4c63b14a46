"""Settings of training: common ones, and those of each kind of loss and of one task."""

from dataclasses import dataclass
from itertools import pairwise

from nodepiece.errors import InputError
from nodepiece.training.losses import ONE_VS_ALL_LOSSES, SAMPLED_LOSSES, SAMPLED_SOFTMAX

LOSSES = (*ONE_VS_ALL_LOSSES, *SAMPLED_LOSSES, SAMPLED_SOFTMAX)
SCHEDULES = ("constant", "cosine", "step")
PRECISIONS = ("float32", "tf32", "bfloat16")
RANK_METRICS = ("mrr", "hits@1", "hits@3", "hits@10")  # the larger the better
CLASS_METRICS = ("roc_auc", "prc_auc", "hard_accuracy")  # the same, of node classification
METRICS = (*RANK_METRICS, *CLASS_METRICS)


@dataclass(frozen=True)
class TrainingSettings:
    """How a model is fitted, whatever the loss."""

    loss: str = "binary-cross-entropy"  # against all nodes, or with sampled negatives
    epochs: int = 100  # passes over the training data; see steps_per_epoch
    batch_size: int = 512  # (head, relation) queries against all nodes; facts with negatives
    learning_rate: float = 5e-4  # of Adam
    schedule: str = "constant"  # "constant", "cosine" to 0, "step": / 10 half-way
    warmup_epochs: int = 0  # the rate rises linearly to its value
    clip_gradient: float = 0.0  # largest norm; 0: not clipped
    precision: str = "float32"  # of products: "float32", "tf32" or "bfloat16" (mixed)
    shuffle_anchors: bool = False  # a new order of equidistant anchors each epoch; needs distances
    resample_relations: bool = False  # a new sample of each node's relations each epoch
    # graph layers and paths do not use the facts of the batch; inductive: nor do pieces
    hide_targets: bool = False
    # steps at which the rate begins to fall and is 0, in turns; (): epochs and schedule decide
    stages: tuple[int, ...] = ()
    validate_steps: int = 0  # with stages, in place of validate_every: steps; 0: never
    validate_every: int = 0  # epochs; 0: never
    metric: str = "mrr"  # of validation, a name in METRICS: the best weights are kept
    # the last weights are kept, unless the best are better on validation by more than this
    validation_noise: float = 0.0
    patience: int = 0  # validations without improvement before stopping; 0: never stop early
    checkpoint_seconds: float = 60.0  # between checkpoints to resume from

    def __post_init__(self) -> None:
        for key, choices in (
            ("loss", LOSSES),
            ("schedule", SCHEDULES),
            ("precision", PRECISIONS),
            ("metric", METRICS),
        ):
            if (value := getattr(self, key)) not in choices:
                raise InputError(
                    f"training.{key} = {value!r} is not known; it is one of {', '.join(choices)}"
                )
        for key in ("epochs", "batch_size"):
            if (count := getattr(self, key)) < 1:
                raise InputError(f"training.{key} must be at least 1, got {count}")
        amounts = (
            "warmup_epochs",
            "clip_gradient",
            "validate_every",
            "patience",
            "validation_noise",
        )
        refuse_negative(self, "training", *amounts, "checkpoint_seconds", "validate_steps")
        steps = (0, *self.stages)
        is_whole = all(type(step) is int for step in steps)
        is_ascending = is_whole and all(before < after for before, after in pairwise(steps))
        if len(self.stages) % 2 or not is_ascending:
            raise InputError(
                "training.stages must be pairs of growing numbers of steps, such as [600, 1000], "
                f"got {list(self.stages)}"
            )
        if not self.learning_rate > 0:
            raise InputError(f"training.learning_rate must be above 0, got {self.learning_rate}")
        if self.patience and not self.validate_every:
            raise InputError("training.patience needs training.validate_every above 0")

    @property
    def is_one_vs_all(self) -> bool:
        """Whether the loss is against all nodes; else it is with sampled negatives."""
        return self.loss in ONE_VS_ALL_LOSSES


@dataclass(frozen=True)
class OneVsAllSettings:
    """Training against all nodes: for the losses (filtered-, binary-) cross-entropy."""

    # share of the label that is spread over the other nodes, in [0, 1); not if filtered
    smoothing: float = 0.0
    relation_weight: float = 0.0  # weight of also predicting the relation of each fact
    regularization: float = 0.0  # weight of the N3 norm of the facts' vectors
    target_share: float = 1.0  # of a query's answers: trained in an epoch, others stay visible
    # with hide_targets: facts that a node of a target has at least; 2: it is not the only one
    target_degree: int = 1
    most_targets: int = 0  # answers of a query that are trained in an epoch; 0: no limit
    # weight of a target: (targets of its query) ** -this; 0: all targets, 1: all queries are equal
    query_balance: float = 0.0
    hide_pairs: bool = False  # with hide_targets: hidden are all edges between head and target
    steps_per_epoch: int = 0  # of queries drawn at random; 0: an epoch has every query once
    # queries of a batch that path scorers with separate losses are trained on; 0: all
    path_queries: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise InputError(f"one_vs_all.smoothing must be in [0, 1), got {self.smoothing}")
        if not 0 < self.target_share <= 1:
            raise InputError(f"one_vs_all.target_share must be in (0, 1], got {self.target_share}")
        if self.target_degree < 1:
            raise InputError(
                f"one_vs_all.target_degree must be 1 or more, got {self.target_degree}"
            )
        weights = ("relation_weight", "regularization", "query_balance")
        refuse_negative(
            self, "one_vs_all", *weights, "most_targets", "steps_per_epoch", "path_queries"
        )


@dataclass(frozen=True)
class SampledSettings:
    """Training with sampled negatives: for all other losses."""

    margin: float = 9.0  # gamma of the loss
    num_negatives: int = 20  # for each fact, half of them heads; see shared_negatives
    shared_negatives: bool = False  # the same for a whole batch, all of them tails
    # new dropout masks for the unchanged end of each negative, as published; of graph layers: for
    # a few negatives of each fact at a time
    separate_masks: bool = False
    temperature: float = 0.0  # of self-adversarial weights; 0: equal weights, as published
    subsampling: bool = False  # a fact weighs 1 / sqrt(8 + facts of its head and relation)
    steps_per_epoch: int = 0  # of facts drawn at random; 0: an epoch has every fact once
    # update only anchors (or nodes) in use, without momentum; None: with sampled-softmax, if many
    lazy_rows: bool | None = None
    group_size: int = 0  # sampled-softmax: facts of a batch that share candidates; 0: all
    # sampled-softmax: facts of a batch that path scorers are trained on, against all nodes
    path_queries: int = 0

    def __post_init__(self) -> None:
        if self.num_negatives < 1:
            raise InputError(f"sampled.num_negatives must be at least 1, got {self.num_negatives}")
        counts = ("steps_per_epoch", "path_queries", "group_size")
        refuse_negative(self, "sampled", "temperature", *counts)
        if self.separate_masks and self.shared_negatives:
            raise InputError(
                "sampled.separate_masks is for negatives of each fact; set "
                "sampled.shared_negatives = false, or leave it out"
            )


@dataclass(frozen=True)
class OutOfSampleSettings:
    """Training for nodes that arrive later."""

    mask_share: float = 0.0  # share of facts learned as if a node were unseen, in [0, 1)

    def __post_init__(self) -> None:
        if not 0 <= self.mask_share < 1:
            raise InputError(f"out_of_sample.mask_share must be in [0, 1), got {self.mask_share}")


def refuse_negative(record: object, group: str, *keys: str) -> None:
    """Refuse fields of a record that are below 0, or NaN."""
    for key in keys:
        if not (amount := getattr(record, key)) >= 0:
            raise InputError(f"{group}.{key} must be 0 or more, got {amount}")
