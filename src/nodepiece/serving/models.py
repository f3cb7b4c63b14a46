"""The bodies of requests and answers, as OpenAPI shows them.

Requests are checked by these models. Answers are written without them, which is faster; they are
here for the documentation, and a test compares them with what is written.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

NamedFact = tuple[str, str, str]
Facts = Annotated[list[NamedFact], Field(description="Facts: head, relation, tail by name.")]
Assumed = Annotated[
    list[NamedFact],
    Field(description="Facts that are assumed for this request only; they may name new nodes."),
]
Top = Annotated[int, Field(ge=1, description="How many answers to each query.")]
Version = Annotated[
    int, Field(description="Number of the last update of the graph that the answer is exact for.")
]
LIBYA = {"head": "Libya", "relation": "has language"}
NEW = [["Atlantis", "borders", "Portugal"], ["Atlantis", "has language", "Portuguese"]]


def examples(*values: dict[str, Any]) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": list(values)})


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class QueryParts(Request):
    """A fact with one part left out."""

    head: str | None = None
    relation: str | None = None
    tail: str | None = None


class PredictRequest(Request):
    queries: list[QueryParts]
    top: Top = 10
    include_known: bool = Field(False, description="Also answers that known facts state.")
    seen_candidates: bool = Field(
        False, description="Only nodes that the graph has at that end of the relation."
    )
    skip_unknown: bool = Field(False, description="Leave out those with unknown names.")
    assume: Assumed = []

    model_config = examples({"queries": [LIBYA], "top": 3}, {"queries": [LIBYA], "assume": NEW})


class KnownRequest(QueryParts):
    """A query whose known answers are wanted."""

    assume: Assumed = []

    model_config = examples(LIBYA)


class ScoreRequest(Request):
    facts: Facts
    skip_unknown: bool = Field(False, description="Leave out those with unknown names.")
    assume: Assumed = []

    model_config = examples({"facts": [["Libya", "has language", "Arabic"]]})


class EmbedRequest(Request):
    nodes: list[str]
    assume: Assumed = []

    model_config = examples({"nodes": ["Kenya", "Peru"]})


class SimilarRequest(Request):
    nodes: list[str]
    top: Top = 10
    assume: Assumed = []

    model_config = examples({"nodes": ["Kenya"], "top": 3})


class NodeRequest(Request):
    name: str
    limit: int = Field(100, ge=0, le=10_000, description="How many facts.")
    assume: Assumed = []

    model_config = examples({"name": "Atlantis", "assume": NEW})


class ExplainRequest(Request):
    head: str
    relation: str
    tail: str
    assume: Assumed = []

    model_config = examples({"head": "Libya", "relation": "has language", "tail": "Arabic"})


class UpdateRequest(Request):
    add: Facts = []
    remove: Facts = []
    remove_nodes: list[str] = Field([], description="Nodes to remove with all their facts.")
    remove_if_empty: list[str] = Field(
        [], description="Nodes to remove if no facts about them are left after this update."
    )

    model_config = examples({"add": NEW}, {"remove_nodes": ["Atlantis"]})


class Answer(BaseModel):
    """What every answer has."""

    version: Version


class RunRecord(Answer):
    name: str
    task: str
    dataset: str
    num_nodes: int
    num_relations: int
    writable: bool
    calibrated: bool


class RunList(BaseModel):
    runs: list[RunRecord]


class RunDetails(RunRecord):
    model: dict[str, Any]
    graph: dict[str, Any]
    approximate: dict[str, Any] | None = Field(
        description="The measured recall, where answers come from an index; null: all are exact."
    )
    metrics: dict[str, Any]


class Counted(BaseModel):
    name: str
    facts: int


class RelationList(Answer):
    relations: list[Counted]


class NodeList(Answer):
    nodes: list[Counted]


class AnchorPiece(BaseModel):
    name: str
    distance: int | None


class RelationPiece(BaseModel):
    name: str
    inverse: bool


class Pieces(BaseModel):
    anchors: list[AnchorPiece]
    relations: list[RelationPiece]


class NodeRecord(Answer):
    name: str
    is_new: bool = Field(description="The node arrived after training.")
    is_anchor: bool
    num_facts: int
    facts: Facts
    pieces: Pieces


class PredictedAnswer(BaseModel):
    name: str
    score: float
    probability: float | None = Field(description="By this query alone.")
    known: bool


class QueryResult(BaseModel):
    query: QueryParts
    asked: str
    answers: list[PredictedAnswer]


class PredictAnswer(Answer):
    results: list[QueryResult]


class ScoredFact(BaseModel):
    head: str
    relation: str
    tail: str
    score: float
    tail_probability: float | None = Field(description="By the query for the tail, as predicted.")
    head_probability: float | None = Field(description="By the query for the head, as predicted.")
    probability: float | None = Field(description="By both queries.")
    tail_rank: float
    head_rank: float
    known: bool


class ScoreAnswer(Answer):
    facts: list[ScoredFact]


class EmbedAnswer(Answer):
    nodes: list[str]
    vectors: list[list[float]]


class Neighbour(BaseModel):
    node: str
    neighbour: str
    similarity: float
    rank: int


class SimilarAnswer(Answer):
    neighbours: list[Neighbour]


class ClassAnswer(Answer):
    node: str
    classes: list[PredictedAnswer]


class ExplainAnswer(Answer):
    head: str
    relation: str
    tail: str

    model_config = ConfigDict(extra="allow")


class KnownAnswer(Answer):
    names: list[str]


class UpdateAnswer(Answer):
    added: int
    removed: int
    new_nodes: int
    added_facts: Facts  # those that were not in the graph before
    new_node_names: list[str]


class MapAnswer(Answer):
    method: str
    names: list[str]
    x: list[float]
    y: list[float]
    groups: list[str]


class Computing(BaseModel):
    status: str


class Status(BaseModel):
    status: str


class Ready(Status):
    runs: list[str]


class ProblemDetails(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
