"""The record of an explanation: why a run scores a fact as it does."""

from dataclasses import dataclass
from typing import Any

from nodepiece.graph.short_text import plural
from nodepiece.inference.explanation_svg import draw_paths
from nodepiece.inference.explanation_text import as_text
from nodepiece.tokenizer.changing_graph import NamedFact


@dataclass(frozen=True)
class ExplainedPath:
    """A path from head to tail by the facts that it follows, each as the graph states it."""

    score: float  # what it adds to the score; see `Explanation.paths_by`
    steps: tuple[NamedFact, ...]

    def nodes(self, head: str) -> list[str]:
        """The nodes on the path, from its head on."""
        nodes = [head]
        for start, _, end in self.steps:
            nodes.append(end if start == nodes[-1] else start)
        return nodes


@dataclass(frozen=True)
class SharedPiece:
    """A piece that both nodes have: an anchor with both distances, or a relation."""

    piece: str
    head_distance: int | None  # None: the piece is a relation, or the run has no distances
    tail_distance: int | None


@dataclass(frozen=True)
class CarryingPiece:
    """A piece of one of the two nodes, and by how much the score falls without it."""

    node: str
    piece: str
    effect: float  # score - score without the piece
    distance: int | None = None  # None: the piece is a relation, or the run has no distances


@dataclass(frozen=True)
class NecessaryFact:
    """A fact of the graph, and the answer without it, computed without training."""

    fact: NamedFact
    rank_without: float
    score_without: float


@dataclass(frozen=True)
class SimilarFact:
    """A fact of the graph with the same relation between similar nodes."""

    fact: NamedFact
    similarity: float  # the mean of the cosines of the vectors of heads and of tails


@dataclass(frozen=True)
class Explanation:
    """Why a run scores a fact as it does: paths, pieces, necessary facts and similar facts."""

    head: str
    relation: str
    tail: str
    score: float  # of the tail, given head and relation
    # The three probabilities are None in a run without a calibration.
    tail_probability: float | None  # by the query for the tail, as `predict` has it
    head_probability: float | None  # by the query for the head, as `predict` has it
    probability: float | None  # by both queries, which is more accurate
    rank: float  # among all tails, without other known answers, ties counted half
    head_rank: float  # among all heads
    is_known: bool  # stated by the graph, or by validation or test facts
    paths: tuple[ExplainedPath, ...]  # best first
    paths_by: str  # what the scores of paths are, in words
    paths_total: float | None  # what all paths together add; None: scores of paths are no parts
    shared: tuple[SharedPiece, ...]  # nearest anchors first, then relations
    carrying: tuple[CarryingPiece, ...]  # largest effect first
    necessary: tuple[NecessaryFact, ...]  # most necessary first
    rank_without_all: float | None  # without all necessary facts; None: there are none
    score_without_all: float | None
    similar: tuple[SimilarFact, ...]  # most similar first
    limits: tuple[str, ...] = ()  # of the search that were reached, a sentence each

    def __str__(self) -> str:
        return as_text(self.to_json())

    def __repr__(self) -> str:
        fact = " - ".join((self.head, self.relation, self.tail))
        return (
            f"Explanation({fact[:60]!r}: rank {self.rank:g}, {plural(len(self.paths), 'path')}, "
            f"{plural(len(self.necessary), 'necessary fact')})"
        )

    def to_json(self) -> dict[str, Any]:
        without_all = None
        if self.rank_without_all is not None:
            without_all = {"rank": self.rank_without_all, "score": self.score_without_all}
        return {
            "head": self.head,
            "relation": self.relation,
            "tail": self.tail,
            "score": self.score,
            "tail_probability": self.tail_probability,
            "head_probability": self.head_probability,
            "probability": self.probability,
            "rank": self.rank,
            "head_rank": self.head_rank,
            "known": self.is_known,
            "paths": [
                {"score": path.score, "steps": [list(step) for step in path.steps]}
                for path in self.paths
            ],
            "paths_by": self.paths_by,
            "paths_total": self.paths_total,
            "pieces": {
                "shared": [
                    {
                        "piece": each.piece,
                        "head_distance": each.head_distance,
                        "tail_distance": each.tail_distance,
                    }
                    for each in self.shared
                ],
                "carrying": [
                    {
                        "node": each.node,
                        "piece": each.piece,
                        "distance": each.distance,
                        "effect": each.effect,
                    }
                    for each in self.carrying
                ],
            },
            "necessary": [
                {
                    "fact": list(each.fact),
                    "rank_without": each.rank_without,
                    "score_without": each.score_without,
                }
                for each in self.necessary
            ],
            "without_all": without_all,
            "similar": [
                {"fact": list(each.fact), "similarity": each.similarity} for each in self.similar
            ],
            "limits": list(self.limits),
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> "Explanation":
        """The explanation that `to_json` gave, such as that of a server."""
        without_all = content["without_all"] or {"rank": None, "score": None}
        pieces = content["pieces"]
        return Explanation(
            content["head"],
            content["relation"],
            content["tail"],
            content["score"],
            content.get("tail_probability"),
            content.get("head_probability"),
            content["probability"],
            content["rank"],
            content["head_rank"],
            content["known"],
            tuple(
                ExplainedPath(path["score"], tuple(tuple(step) for step in path["steps"]))
                for path in content["paths"]
            ),
            content["paths_by"],
            content["paths_total"],
            tuple(SharedPiece(**each) for each in pieces["shared"]),
            tuple(CarryingPiece(**each) for each in pieces["carrying"]),
            tuple(
                NecessaryFact(tuple(each["fact"]), each["rank_without"], each["score_without"])
                for each in content["necessary"]
            ),
            without_all["rank"],
            without_all["score"],
            tuple(
                SimilarFact(tuple(each["fact"]), each["similarity"]) for each in content["similar"]
            ),
            tuple(content.get("limits", ())),
        )

    def to_svg(self) -> str:
        """A drawing of the paths, as the text of an SVG file; readable on light and dark."""
        fact = (self.head, self.relation, self.tail)
        return draw_paths(fact, [(path.score, path.steps) for path in self.paths])
