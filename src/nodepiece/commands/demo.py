"""nodepiece demo: the whole story on the graph of countries."""

from typing import TYPE_CHECKING

from nodepiece.commands.console import out, say
from nodepiece.commands.tables import rows
from nodepiece.commands.tokenize import tokenize_in_stages
from nodepiece.tokenizer.settings import TokenizerSettings

if TYPE_CHECKING:
    from nodepiece.data.dataset import Dataset
    from nodepiece.tokenizer.tokens import TokenTable

SETTINGS = TokenizerSettings(num_anchors=60, anchors_per_node=8, relations_per_node=6)
SHOWN = ("Germany", "Kenya", "Uruguay", "Fiji")
NUM_ALIKE = 4


def demo() -> None:
    """Tokenize the graph of countries that comes with nodepiece, and look at a few of them."""
    from nodepiece.data.embedded import load_countries

    countries = load_countries()
    introduce(countries)
    table = tokenize_in_stages(countries.train, SETTINGS, seed=0)
    show_countries(countries, table)
    # Training joins here: learn from countries.train, be judged by countries.test.
    out.print("Now your own graph: a file with one fact on each line, head, relation and tail.")
    say("  nodepiece tokenize graph.tsv -o vocabulary")
    say("  nodepiece inspect vocabulary")


def introduce(countries: "Dataset") -> None:
    graph, names = countries.train, countries.names
    facts = [
        names.node(head) + " " + names.relation(relation) + " " + names.node(tail)
        for head, relation, tail in graph.triples[[1, 400, 1000]].tolist()
    ]
    out.print(
        f"\nA graph of the countries of the world: {graph.num_triples:,} facts about "
        f"{graph.num_nodes:,} nodes, such as"
    )
    for fact in facts:
        say(f"  {fact}")
    out.print(
        f"\nA vector for every node would mean {graph.num_nodes:,} vectors. Instead, "
        f"{SETTINGS.num_anchors} nodes become anchors, and every node is written with pieces: the "
        f"{SETTINGS.anchors_per_node} anchors nearest to it, how far they are, and up to "
        f"{SETTINGS.relations_per_node} relations that leave it."
    )
    out.print()


def show_countries(countries: "Dataset", table: "TokenTable") -> None:
    out.print(
        f"\nAll nodes are now words over {len(table.vocabulary):,} pieces. France@1 is the anchor "
        "France, one step away. Nobody told which countries are alike, but the pieces do:\n"
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
