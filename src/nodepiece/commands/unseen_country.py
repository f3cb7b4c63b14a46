"""A part of the demo: a country that was not in the training graph."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from nodepiece.commands.console import err, out, stage
from nodepiece.commands.epochs import EpochProgress
from nodepiece.commands.tables import rows

if TYPE_CHECKING:
    from nodepiece.data.dataset import Dataset
    from nodepiece.data.out_of_sample import NamedTriple
    from nodepiece.inference.links import LinkRun

NAME = "Kenya"
GIVEN_FACTS = (
    (NAME, "borders", "Uganda"),
    (NAME, "borders", "Tanzania"),
    (NAME, "has language", "Swahili"),
    (NAME, "in region", "Africa"),
)
QUERY_RELATIONS = ("borders", "in subregion", "in time zone")
NUM_ANSWERS = 5


def show_unseen_country(countries: "Dataset") -> None:
    """Train without a country, then add a few facts about it and predict others."""
    from nodepiece.data.hold_out import hold_out

    out.print(
        f"What about a node that is added after training? A model is trained without {NAME} and "
        f"its facts. Then it is given {len(GIVEN_FACTS)} of them, and nothing is trained again. "
        "True answers are marked with a star.\n"
    )
    without, facts = hold_out(countries, NAME)
    with tempfile.TemporaryDirectory() as place:
        run = train_without(without, Path(place) / "run")
        with stage(f"tokens and vector of {NAME}"):
            informed = run.with_facts(GIVEN_FACTS)
        out.print()
        out.print(
            rows([("given", "; ".join(f"{relation} {tail}" for _, relation, tail in GIVEN_FACTS))])
        )
        for relation in QUERY_RELATIONS:
            out.print(rows([(relation, answers(informed, relation, facts))]))
    out.print()


def train_without(dataset: "Dataset", folder: Path) -> "LinkRun":
    import torch

    from nodepiece.inference.run import load_links
    from nodepiece.settings import load_experiment, with_overrides
    from nodepiece.tasks.link_prediction import LinkPrediction
    from nodepiece.tasks.runner import RunOptions, run_experiment

    settings = load_experiment("countries")
    epochs = max(1, settings.training.epochs // 2)
    changes = ("graph.layers=0", f"training.epochs={epochs}", "training.validate_every=0")
    settings = with_overrides(settings, changes)
    err.print(f"training countries without {NAME}: {settings.training.epochs} epochs")
    with EpochProgress(settings.training.epochs) as progress:
        task = LinkPrediction(settings, dataset)
        run_experiment(task, RunOptions(folder, torch.device("cpu"), callbacks=(progress,)))
    return load_links(folder)


def answers(run: "LinkRun", relation: str, facts: "list[NamedTriple]") -> str:
    """The likeliest answers; true ones are marked with a star."""
    true = {tail for head, known, tail in facts if head == NAME and known == relation}
    likeliest = run.predict(head=NAME, relation=relation, top=NUM_ANSWERS)
    return ", ".join(answer.name + "*" * (answer.name in true) for answer in likeliest)
