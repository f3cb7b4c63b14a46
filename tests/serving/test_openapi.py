"""The description of all paths has an example of each, and the examples are true to the models."""

from typing import Any

import httpx
import pytest
from tests.serving.test_reading import QUERY, RUN, got

from nodepiece.serving import models
from nodepiece.serving.examples import ANSWERS

FACT = {"head": "person 1", "relation": "lives in", "tail": "town 1"}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_example_is_valid(name: str) -> None:
    model = getattr(models, name)
    assert model.model_validate(ANSWERS[name])


def test_every_path_has_an_example_of_its_answer_and_of_its_body(client: httpx.Client) -> None:
    description = got(client.get("/openapi.json"))
    schemas = description["components"]["schemas"]
    number = 0
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            number += 1
            (content, *_) = operation["responses"]["200"]["content"].values()
            assert content["example"], (method, path)
            assert operation["summary"], (method, path)
            if method == "post":
                body = operation["requestBody"]["content"]["application/json"]["schema"]
                model = body["$ref"].rpartition("/")[2]
                assert schemas[model]["examples"], path
                for example in schemas[model]["examples"]:
                    assert getattr(models, model).model_validate(example)
    assert number >= 18


@pytest.mark.parametrize(
    "path, model, body",
    [
        ("/v1/runs", models.RunList, None),
        (RUN, models.RunDetails, None),
        (f"{RUN}/relations", models.RelationList, None),
        (f"{RUN}/nodes", models.NodeList, None),
        (f"{RUN}/node?name=town 1", models.NodeRecord, None),
        (f"{RUN}/predict", models.PredictAnswer, {"queries": [QUERY]}),
        (f"{RUN}/score", models.ScoreAnswer, {"facts": [list(FACT.values())]}),
        (f"{RUN}/embed", models.EmbedAnswer, {"nodes": ["town 1"]}),
        (f"{RUN}/similar?node=town 1", models.SimilarAnswer, None),
        (f"{RUN}/explain", models.ExplainAnswer, FACT),
    ],
)
def test_an_answer_is_what_the_description_says(
    client: httpx.Client, path: str, model: type[Any], body: dict[str, Any] | None
) -> None:
    answer = client.get(path) if body is None else client.post(path, json=body)
    found = got(answer)
    assert set(model.model_validate(found).model_dump()) == set(found)
