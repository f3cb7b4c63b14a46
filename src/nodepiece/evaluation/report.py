"""The result of an evaluation, in one form for every task."""

from dataclasses import dataclass, field

Scores = dict[str, float]  # by name, such as "mrr" or "roc_auc"


@dataclass(frozen=True)
class Report:
    """The scores of a model: of all facts or nodes, and of parts of them."""

    scores: Scores
    parts: dict[str, Scores] = field(default_factory=dict)  # few: such as "head" and "tail"
    details: dict[str, dict[str, Scores]] = field(default_factory=dict)
    """Many, in named groups, shown on request: such as "relations", each by its name."""

    def __repr__(self) -> str:
        scores = ", ".join(f"{name}={value:.4g}" for name, value in self.scores.items())
        parts = [*self.parts, *self.details]
        return f"Report({scores}{'; also of ' + ', '.join(parts) if parts else ''})"

    def to_json(self) -> dict[str, object]:
        """The overall scores at the top level, then the parts and the groups of details."""
        return {**self.scores, **self.parts, **self.details}
