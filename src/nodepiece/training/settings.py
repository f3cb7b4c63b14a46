"""Settings of training."""

from dataclasses import dataclass

from nodepiece.errors import InputError
from nodepiece.training.losses import ONE_VS_ALL_LOSSES, SAMPLED_LOSSES

SCHEDULES = ("constant", "cosine", "step")
PRECISIONS = ("float32", "tf32", "bfloat16")
RANK_METRICS = ("mrr", "hits@1", "hits@3", "hits@10")  # the larger the better
CLASS_METRICS = ("roc_auc", "prc_auc", "hard_accuracy")  # the same, of node classification
METRICS = (*RANK_METRICS, *CLASS_METRICS)


@dataclass(frozen=True)
class TrainingSettings:
    """How a model is fitted to the facts."""

    loss: str = "binary-cross-entropy"  # against all nodes, or with sampled negatives
    epochs: int = 100  # passes over the training data; see steps_per_epoch
    batch_size: int = 512  # (head, relation) queries against all nodes; facts with negatives
    learning_rate: float = 5e-4  # of Adam
    schedule: str = "constant"  # "constant", "cosine" to 0, "step": / 10 half-way
    warmup_epochs: int = 0  # the rate rises linearly to its value
    smoothing: float = 0.0  # against all: share of certainty spread over other nodes, in [0, 1)
    margin: float = 9.0  # sampled: the margin (gamma) of the loss
    num_negatives: int = 20  # sampled: for each fact, half of them heads; see shared_negatives
    shared_negatives: bool = False  # sampled: the same for a whole batch, all of them tails
    temperature: float = 0.0  # sampled: self-adversarial weights; 0: equal weights, as published
    subsampling: bool = False  # sampled: a fact weighs 1 / sqrt(8 + facts of its head and relation)
    steps_per_epoch: int = 0  # sampled: of facts drawn at random; 0: an epoch has every fact once
    relation_weight: float = 0.0  # against all: weight of also predicting the relation of each fact
    regularization: float = 0.0  # against all: weight of the N3 norm of the facts' vectors
    clip_gradient: float = 0.0  # largest norm; 0: not clipped
    precision: str = "float32"  # of products: "float32", "tf32" or "bfloat16" (mixed)
    shuffle_anchors: bool = False  # a new order of equidistant anchors each epoch; needs distances
    hide_targets: bool = False  # a batch's facts are hidden from messages, walks; inductive: pieces
    mask_share: float = 0.0  # out-of-sample: share of facts learned as if a node were unseen
    resample_relations: bool = False  # a new sample of each node's relations each epoch
    validate_every: int = 0  # epochs; 0: never
    metric: str = "mrr"  # of validation, a name in METRICS: the best weights are kept
    patience: int = 0  # validations without improvement before stopping; 0: never stop early
    checkpoint_seconds: float = 60.0  # between checkpoints to resume from

    def __post_init__(self) -> None:
        losses = (*ONE_VS_ALL_LOSSES, *SAMPLED_LOSSES)
        for key, value, choices in (
            ("loss", self.loss, losses),
            ("schedule", self.schedule, SCHEDULES),
            ("precision", self.precision, PRECISIONS),
            ("metric", self.metric, METRICS),
        ):
            if value not in choices:
                raise InputError(
                    f"training.{key} = {value!r} is not known; it is one of {', '.join(choices)}"
                )
        for key, count in (("epochs", self.epochs), ("batch_size", self.batch_size)):
            if count < 1:
                raise InputError(f"training.{key} must be at least 1, got {count}")
        for key, amount in (
            ("warmup_epochs", self.warmup_epochs),
            ("steps_per_epoch", self.steps_per_epoch),
            ("temperature", self.temperature),
            ("relation_weight", self.relation_weight),
            ("regularization", self.regularization),
            ("clip_gradient", self.clip_gradient),
            ("validate_every", self.validate_every),
            ("patience", self.patience),
            ("checkpoint_seconds", self.checkpoint_seconds),
        ):
            if not amount >= 0:
                raise InputError(f"training.{key} must be 0 or more, got {amount}")
        if not self.learning_rate > 0:
            raise InputError(f"training.learning_rate must be above 0, got {self.learning_rate}")
        if not 0 <= self.smoothing < 1:
            raise InputError(f"training.smoothing must be in [0, 1), got {self.smoothing}")
        if not 0 <= self.mask_share < 1:
            raise InputError(f"training.mask_share must be in [0, 1), got {self.mask_share}")
        if self.num_negatives < 1 and not self.is_one_vs_all:
            raise InputError(f"training.num_negatives must be at least 1: {self.num_negatives}")
        for key, amount in (
            ("smoothing", self.smoothing),
            ("relation_weight", self.relation_weight),
            ("regularization", self.regularization),
        ):
            if amount and not self.is_one_vs_all:
                raise InputError(
                    f"training.{key} goes with the losses against all nodes and would do nothing "
                    f"with {self.loss}; set it to 0"
                )
        for key, is_set in (
            ("shared_negatives", self.shared_negatives),
            ("subsampling", self.subsampling),
            ("steps_per_epoch", self.steps_per_epoch > 0),
        ):
            if is_set and self.is_one_vs_all:
                raise InputError(
                    f"training.{key} goes with sampled negatives and would do nothing with "
                    f"{self.loss}; leave it out"
                )
        if self.patience and not self.validate_every:
            raise InputError("training.patience needs training.validate_every above 0")

    @property
    def is_one_vs_all(self) -> bool:
        return self.loss in ONE_VS_ALL_LOSSES
