"""Small graphs as files, by arithmetic alone: they cannot change with a random generator.

Thirty-six people in eight towns of two regions. Everybody lives in a town, has an employer and a
colleague; most have a friend.
"""

import json
from pathlib import Path

Fact = tuple[str, str, str]

NUM_PEOPLE, NUM_TOWNS, NUM_FIRMS = 36, 8, 4
PEOPLE = [f"person {n}" for n in range(NUM_PEOPLE)]


def town_of(person: int) -> int:
    return (5 * person + person // 7) % NUM_TOWNS


def firm_of(person: int) -> int:
    return (person * person + 3) % 11 % NUM_FIRMS


def facts(prefix: str = "") -> list[Fact]:
    """All facts of the graph; `prefix` comes before the name of every node."""
    found = [(f"town {n}", "lies in", "north" if n % 3 else "south") for n in range(NUM_TOWNS)]
    for n, person in enumerate(PEOPLE):
        found.append((person, "lives in", f"town {town_of(n)}"))
        found.append((person, "works for", f"firm {firm_of(n)}"))
        found.append((person, "colleague of", PEOPLE[(n + 4) % NUM_PEOPLE]))
        if n % 5:
            found.append((person, "friend of", PEOPLE[(7 * n + 2) % NUM_PEOPLE]))
    return [(prefix + head, relation, prefix + tail) for head, relation, tail in found]


def write_facts(path: Path, chosen: list[Fact]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(fact) + "\n" for fact in chosen), encoding="utf-8")


def write_split(folder: Path, prefix: str = "") -> None:
    """A dataset of link prediction: every ninth fact is validated on, every ninth tested on."""
    everything = facts(prefix)
    parts: dict[str, list[Fact]] = {"train": [], "valid": [], "test": []}
    for position, fact in enumerate(everything):
        parts[{4: "valid", 8: "test"}.get(position % 9, "train")].append(fact)
    for part, chosen in parts.items():
        write_facts(folder / f"{part}.tsv", chosen)


def write_inductive(folder: Path) -> None:
    write_split(folder / "training", "old ")
    write_split(folder / "inference", "new ")


def write_labelled(folder: Path) -> None:
    write_facts(folder / "edges.tsv", facts())
    labels = {
        person: [f"class {firm_of(n) % 2}"] + ["northerner"] * bool(town_of(n) % 3)
        for n, person in enumerate(PEOPLE)
    }
    for part, start in (("train", 0), ("valid", 1), ("test", 2)):
        chosen = {person: labels[person] for person in PEOPLE[start::3]}
        (folder / f"{part}_labels.json").write_text(json.dumps(chosen), encoding="utf-8")


def write_out_of_sample(folder: Path) -> None:
    """Six people arrive later, each with the facts that lead to the others."""
    unseen = {"valid": PEOPLE[5:8], "test": PEOPLE[20:23]}
    hidden = {person for people in unseen.values() for person in people}
    everything = facts()
    write_facts(
        folder / "train.tsv", [fact for fact in everything if not hidden & {fact[0], fact[2]}]
    )
    for part, people in unseen.items():
        listed = {
            person: [
                fact
                for fact in everything
                if person in (fact[0], fact[2]) and len(hidden & {fact[0], fact[2]}) == 1
            ]
            for person in people
        }
        (folder / f"{part}.json").write_text(json.dumps(listed), encoding="utf-8")


def write_graphs(folder: Path) -> None:
    """All of them, each in a folder of its own."""
    write_split(folder / "links")
    write_inductive(folder / "inductive")
    write_labelled(folder / "labelled")
    write_out_of_sample(folder / "out-of-sample")
