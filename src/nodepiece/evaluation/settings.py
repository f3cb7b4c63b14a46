"""Settings of evaluation."""

from dataclasses import dataclass

from nodepiece.errors import InputError

CANDIDATES = ("all", "given")
UNSEEN_RELATIONS = ("refuse", "drop", "mean")


@dataclass(frozen=True)
class EvaluationSettings:
    """How a model is evaluated."""

    memory_gigabytes: float = 1.0  # for the scores of a batch; one query is always scored
    candidates: str = "all"  # link prediction: "all" nodes, or "given": the dataset's negatives
    test_facts: int = 0  # facts of a split ranked for the result, the first ones; 0: all
    validation_facts: int = 0  # facts of the validation split ranked while training; 0: all
    num_negatives: int = 50  # inductive: nodes drawn for each fact and side
    num_draws: int = 10  # inductive: how often they are drawn; the mean is reported
    # inductive: also answers that valid or test has, which are then left out, so that some facts
    # have fewer negatives, as published; False: others are drawn
    draws_known: bool = False
    # of train, for validation (and test) that a dataset lacks; 0: none
    held_out_share: float = 0.05
    # inductive: "refuse", "drop" their facts, or give them the "mean" vector
    unseen_relations: str = "refuse"
    direct_relations: bool = False  # relation prediction: leave inverses out of the candidates

    def __post_init__(self) -> None:
        if not self.memory_gigabytes > 0 or self.validation_facts < 0 or self.test_facts < 0:
            raise InputError(
                "evaluation.memory_gigabytes must be above 0, validation_facts and test_facts 0 or "
                f"more, got {self.memory_gigabytes}, {self.validation_facts}, {self.test_facts}"
            )
        if self.num_negatives < 1 or self.num_draws < 1:
            raise InputError(
                "evaluation.num_negatives and num_draws must be at least 1, got "
                f"{self.num_negatives}, {self.num_draws}"
            )
        if not 0 <= self.held_out_share < 0.5:
            raise InputError(
                f"evaluation.held_out_share must be in [0, 0.5), got {self.held_out_share}"
            )
        if self.unseen_relations not in UNSEEN_RELATIONS:
            raise InputError(
                f"evaluation.unseen_relations = {self.unseen_relations!r} is not known; it is one "
                f"of {', '.join(UNSEEN_RELATIONS)}"
            )
        if self.candidates not in CANDIDATES:
            raise InputError(
                f"evaluation.candidates = {self.candidates!r} is not known; it is one of "
                f"{', '.join(CANDIDATES)}"
            )

    @property
    def memory_budget(self) -> int:
        """The memory for scores in bytes."""
        return int(self.memory_gigabytes * 2**30)
