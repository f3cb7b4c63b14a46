"""Whether a new node is in the graph already, under another name.

    python examples/find_duplicates.py

Two entries for one thing have the same facts, mostly, so they have similar pieces and vectors. This
adds to the graph of countries second entries for three countries, each without one of the facts of
the first, and prints the nodes most similar to them. Vectors of the new entries need no training.
`tokenizer.ties = "global"` lets nodes in the same place have the same anchors, and without graph
layers a vector depends on the pieces alone.
"""

import tempfile

import nodepiece

COUNTRIES = ("Kenya", "Peru", "Norway")
SETTINGS = ("training.epochs=10", "graph.layers=0", "tokenizer.ties=global")


def second_entries() -> list[tuple[str, str, str]]:
    graph = nodepiece.load_countries().train
    names = graph.names
    assert names is not None
    entries = []
    for country in COUNTRIES:
        facts = [
            (names.node(head), names.relation(relation), names.node(tail))
            for head, relation, tail in graph.triples.tolist()
        ]
        other = {country: f"Republic of {country}"}
        entries += [
            (other.get(head, head), relation, other.get(tail, tail))
            for head, relation, tail in facts
            if country in (head, tail)
        ][1:]
    return entries


def main() -> dict[str, str]:
    """The most similar node of every second entry."""
    new = [f"Republic of {country}" for country in COUNTRIES]
    with tempfile.TemporaryDirectory() as folder:
        run = nodepiece.train("countries", f"{folder}/run", overrides=SETTINGS, device="cpu")
        table = run.with_facts(second_entries()).similar(new, top=3)
    rows = table.to_pylist()
    for row in rows:
        print(f"{row['node']:20} {row['similarity']:.3f}  {row['neighbour']}")
    return {row["node"]: row["neighbour"] for row in rows if row["rank"] == 1}


if __name__ == "__main__":
    main()
