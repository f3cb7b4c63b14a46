"""An example of every answer, for OpenAPI; of the graph of countries."""

from typing import Any

from nodepiece.serving.models import NEW

RUN: dict[str, Any] = {
    "version": 0,
    "name": "countries",
    "task": "link-prediction",
    "dataset": "countries",
    "num_nodes": 1006,
    "num_relations": 9,
    "writable": False,
    "calibrated": False,
}
NODE: dict[str, Any] = {
    "version": 0,
    "name": "Kenya",
    "is_new": False,
    "is_anchor": False,
    "num_facts": 14,
    "facts": [["Kenya", "borders", "Uganda"]],
    "pieces": {
        "anchors": [{"name": "Uganda", "distance": 1}],
        "relations": [{"name": "borders", "inverse": True}],
    },
}
ANSWER: dict[str, Any] = {"name": "Arabic", "score": 4.2, "probability": 0.9, "known": False}
PREDICTED: dict[str, Any] = {
    "version": 0,
    "results": [
        {
            "query": {"head": "Libya", "relation": "has language", "tail": None},
            "asked": "tail",
            "answers": [ANSWER],
        }
    ],
}
SIMILAR: dict[str, Any] = {
    "version": 0,
    "neighbours": [{"node": "Kenya", "neighbour": "Uganda", "similarity": 0.97, "rank": 1}],
}
ANSWERS: dict[str, dict[str, Any]] = {  # by the model of the answer
    "RunList": {"runs": [RUN]},
    "RunDetails": RUN
    | {
        "model": {
            "encoder": "mlp",
            "decoder": "rotate",
            "dim": 64,
            "parameters": 60_000,
            "anchors": 100,
        },
        "graph": {"facts": 2_800, "nodes": 1006},
        "approximate": None,
        "metrics": {"mrr": 0.5},
    },
    "RelationList": {"version": 0, "relations": [{"name": "borders", "facts": 600}]},
    "NodeList": {"version": 0, "nodes": [{"name": "Kenya", "facts": 14}]},
    "NodeRecord": NODE,
    "PredictAnswer": PREDICTED,
    "ScoreAnswer": {
        "version": 0,
        "facts": [
            {
                "head": "Libya",
                "relation": "has language",
                "tail": "Arabic",
                "score": 4.2,
                "tail_probability": 0.9,
                "head_probability": 0.9,
                "probability": 0.9,
                "tail_rank": 1.0,
                "head_rank": 3.0,
                "known": True,
            }
        ],
    },
    "EmbedAnswer": {"version": 0, "nodes": ["Kenya"], "vectors": [[0.1, -0.2]]},
    "SimilarAnswer": SIMILAR,
    "ClassAnswer": {"version": 0, "node": "Kenya", "classes": [ANSWER]},
    "ExplainAnswer": {
        "version": 0,
        "head": "Libya",
        "relation": "has language",
        "tail": "Arabic",
        "score": 4.2,
        "rank": 1.0,
        "paths": [{"score": 0.4, "steps": [["Libya", "borders", "Egypt"]]}],
    },
    "KnownAnswer": {"version": 0, "names": ["Arabic"]},
    "UpdateAnswer": {
        "version": 1,
        "added": 2,
        "removed": 0,
        "new_nodes": 1,
        "added_facts": NEW,
        "new_node_names": ["Atlantis"],
    },
    "MapAnswer": {
        "version": 0,
        "method": "t-SNE",
        "names": ["Kenya"],
        "x": [0.1],
        "y": [-0.4],
        "groups": ["borders"],
    },
    "Status": {"status": "ok"},
    "Ready": {"status": "ready", "runs": ["countries"]},
}
