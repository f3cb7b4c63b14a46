"""nodepiece demo: every step on the graph of countries, from tokens to answers."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from nodepiece.commands.console import err, log, out, stage
from nodepiece.commands.epochs import EpochProgress
from nodepiece.commands.outputs import check_output
from nodepiece.commands.tables import rows
from nodepiece.commands.tokenize import tokenize_in_stages
from nodepiece.commands.unseen_country import show_unseen_country
from nodepiece.errors import InputError

if TYPE_CHECKING:
    from nodepiece.data.dataset import Dataset
    from nodepiece.evaluation.report import Scores
    from nodepiece.inference.links import LinkRun
    from nodepiece.settings import Experiment
    from nodepiece.tokenizer.tokens import TokenTable

EXPERIMENT, SHALLOW = "countries", "countries-shallow"
SHOWN = ("Germany", "Uruguay")
NUM_ALIKE = 4
NUM_ANSWERS = 3

# In words, and the fact with one part left out. The truth is in the test facts.
QUERIES: tuple[tuple[str, dict[str, str]], ...] = (
    ("Which language is spoken in Libya?", {"head": "Libya", "relation": "has language"}),
    ("Which other country borders Germany?", {"relation": "borders", "tail": "Germany"}),
    ("How is Canada related to the United States?", {"head": "Canada", "tail": "United States"}),
)


def demo(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="RUN", help="The run folder; a temporary one if not given."
        ),
    ] = None,
) -> None:
    """Show every step in about a minute, on the graph of countries that comes with nodepiece.

    Tokenizes it, trains a model, compares it with others on unseen facts, answers queries, and
    predicts facts about a country that was not in training.
    """
    from nodepiece.data.embedded import load_countries
    from nodepiece.settings import load_experiment

    use_one_thread()
    countries = load_countries()
    with run_folder(output) as folder:
        settings = load_experiment(EXPERIMENT)
        introduce(countries, settings)
        table = tokenize_in_stages(countries.train, settings.tokenizer, settings.seed)
        show_countries(countries, table)
        run = train_both_and_compare(countries, folder)
    for words, query in QUERIES:
        answer(run, words, query)
    show_unseen_country(countries)
    log(f"The model is in {folder}. Query it:")
    log(f"  nodepiece predict {folder} --head Kenya --relation 'has language'")
    out.print("Walks along the edges are not part of NodePiece, but often improve the scores:")
    out.print("  nodepiece train countries-walks")
    out.print("Then train a model on your own graph, a file of facts: head, relation and tail.")
    out.print("  nodepiece train graph.tsv -o run --minutes 10")
    out.print("nodepiece --help lists all commands, nodepiece train --help all options of one.")


def use_one_thread() -> None:
    """Use one thread: on a graph this small, threads wait for each other longer than they work."""
    import numba
    import torch

    torch.set_num_threads(1)
    numba.set_num_threads(1)


@contextmanager
def run_folder(output: Path | None) -> Iterator[Path]:
    """Yield the folder given, or a temporary one that is removed if the demo fails."""
    from nodepiece.tasks.run_folder import CONFIG

    if output is not None:
        check_output(output, marker=CONFIG, kind="run")
        if (output / CONFIG).exists():
            raise InputError(f"{output} holds a run already; choose another output")
        yield output
        return
    folder = Path(tempfile.mkdtemp(prefix="nodepiece-demo-"))
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder)
        raise


def introduce(countries: "Dataset", settings: "Experiment") -> None:
    graph, names, pieces = countries.train, countries.names, settings.tokenizer
    facts = [
        names.node(head) + " " + names.relation(relation) + " " + names.node(tail)
        for head, relation, tail in graph.triples[[1, 400, 1000]].tolist()
    ]
    out.print(
        f"\nA graph of the countries of the world: {graph.num_triples:,} facts about "
        f"{graph.num_nodes:,} nodes, such as"
    )
    for fact in facts:
        log(f"  {fact}")
    out.print(
        f"\nA vector for every node would mean {graph.num_nodes:,} vectors. Instead, "
        f"{pieces.num_anchors} nodes become anchors, and every node is written with pieces: the "
        f"{pieces.anchors_per_node} anchors nearest to it, how far they are, and up to "
        f"{pieces.relations_per_node} relations that leave it."
    )
    out.print()


def show_countries(countries: "Dataset", table: "TokenTable") -> None:
    out.print(
        f"\nAll nodes are now sequences of pieces, {len(table.vocabulary):,} different ones. "
        "France@1 is the anchor France, one step away. The pieces show which countries are alike:\n"
    )
    for name in SHOWN:
        pieces = table.pieces(countries.names.node_id(name))
        k = table.anchors_per_node
        out.print(name, style="bold")
        out.print(
            rows(
                [
                    ("anchors", ", ".join(pieces[:k])),
                    ("relations", ", ".join(pieces[k:])),
                    ("shares most pieces with", ", ".join(most_alike(countries, table, name))),
                ]
            )
        )
        out.print()


def most_alike(countries: "Dataset", table: "TokenTable", name: str) -> list[str]:
    """The countries that have most pieces in common with one of them, as "name (number)"."""
    import numpy as np

    from nodepiece.tokenizer.similarity import shared_pieces

    node = countries.names.node_id(name)
    head, relation, _ = countries.train.triples.T
    is_country = np.zeros(table.num_nodes, np.bool_)
    is_country[head[relation == countries.names.relation_id("has capital")]] = True
    is_country[node] = False
    shared = np.where(is_country, shared_pieces(table, node), 0)
    nearest = np.argsort(-shared, kind="stable")[:NUM_ALIKE]
    return [f"{countries.names.node(other)} ({shared[other]})" for other in nearest]


def train_both_and_compare(countries: "Dataset", folder: Path) -> "LinkRun":
    """Train a model on pieces and one with a vector for every node; compare with popularity."""
    from nodepiece.encoders.parameters import num_parameters

    out.print(
        "A model is trained on the pieces. For comparison, so is one of the usual kind, with a "
        "trained vector for every node, small enough to have as many parameters.\n"
    )
    run = train_quietly(EXPERIMENT, folder)
    with tempfile.TemporaryDirectory() as place:
        shallow = train_quietly(SHALLOW, Path(place) / "shallow")
    with stage("ranking the answers to the test facts"):
        evaluated = [
            ("NodePiece", num_parameters(run.model), run.evaluate().scores),
            ("a vector for every node", num_parameters(shallow.model), shallow.evaluate().scores),
            ("popularity", 0, evaluate_popularity(countries)),
        ]
    out.print(
        f"\n{len(countries.test):,} facts were kept for the end. With its head or tail hidden, how "
        f"often does the right one of all {countries.train.num_nodes:,} nodes come first?"
    )
    out.print(comparison(evaluated))
    return run


def train_quietly(name: str, folder: Path) -> "LinkRun":
    """Train an experiment, printing only its progress, and return the opened run."""
    from nodepiece.inference.run import load_links
    from nodepiece.settings import load_experiment
    from nodepiece.tasks.train import train_experiment
    from nodepiece.training.memory import keep_freed_memory

    settings = load_experiment(name)
    err.print(f"training {name}: {settings.training.epochs} epochs")
    keep_freed_memory()
    with EpochProgress(settings.training.epochs) as progress:
        train_experiment(settings, folder, device="cpu", callbacks=(progress,))
    return load_links(folder)


def evaluate_popularity(countries: "Dataset") -> "Scores":
    from nodepiece.evaluation.known_answers import known_tails
    from nodepiece.evaluation.metrics import report_links
    from nodepiece.evaluation.popularity import count_tails

    graph = countries.train
    known = known_tails(countries.all_triples(), graph.num_nodes, graph.num_relations)
    return report_links(count_tails(graph).rank_links(countries.test, known)).both.to_json()


def comparison(evaluated: "list[tuple[str, int, Scores]]") -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model")
    for heading in ("parameters", "first", "in top 3", "in top 10", "MRR"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, parameters, scores in evaluated:
        cells = [f"{100 * scores[key]:.0f} %" for key in ("hits@1", "hits@3", "hits@10")]
        table.add_row(name, f"{parameters:,}", *cells, f"{scores['mrr']:.3f}")
    return table


def answer(run: "LinkRun", words: str, query: dict[str, str]) -> None:
    """Print the likeliest answers that are not training facts, and the ranks of the true ones."""
    stated = run.known(**query, splits=("train", "valid"))
    truth = run.known(**query, splits=("test",))
    head, relation, tail = (query.get(part) for part in ("head", "relation", "tail"))
    everything = run.predict(
        head=head,
        relation=relation,
        tail=tail,
        top=run.dataset.train.num_nodes,
        include_known=True,
    )
    answers = [prediction.name for prediction in everything if prediction.name not in stated]
    places = [f"{name} (number {answers.index(name) + 1})" for name in truth]
    out.print(words, style="bold")
    out.print(rows([("answers", ", ".join(answers[:NUM_ANSWERS])), ("truth", ", ".join(places))]))
    out.print()
