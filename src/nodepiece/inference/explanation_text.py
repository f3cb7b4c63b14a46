"""An explanation as text of 80 columns."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

WIDTH = 80


def as_text(content: dict[str, Any]) -> str:
    """The text of an explanation, given as `Explanation.to_json` returns it."""
    return "\n".join(lines_of(content))


def lines_of(content: dict[str, Any]) -> Iterator[str]:
    yield from folded(fact_text([content["head"], content["relation"], content["tail"]]))
    parts = [f"score {content['score']:.3f}"]
    parts.append(f"rank {content['rank']:g} among tails, {content['head_rank']:g} among heads")
    if content["known"]:
        parts.append("a known fact")
    yield from folded(", ".join(parts))
    if content["probability"] is not None:
        of_tail, of_head = content["tail_probability"], content["head_probability"]
        yield from folded(
            f"probability {content['probability']:.3f} by both queries: {of_tail:.3f} by the query "
            f"for the tail, {of_head:.3f} by the query for the head, as predict has them"
        )
    yield from paths_text(content)
    yield from pieces_text(content)
    yield from necessary_text(content)
    if content["similar"]:
        yield ""
        yield from folded("Similar facts, by the mean cosine of the vectors of both nodes")
        for each in content["similar"]:
            yield from folded(fact_text(each["fact"]), f"{each['similarity']:8.3f}  ")
    if content.get("limits"):
        yield ""
        yield "Limits of the search"
        for limit in content["limits"]:
            yield from folded(limit, "          ")


def paths_text(content: dict[str, Any]) -> Iterator[str]:
    yield ""
    if not content["paths"]:
        yield "Paths: none was found"
        return
    yield from folded(f"Paths, by {content['paths_by']}")
    for path in content["paths"]:
        yield from folded(path_text(content["head"], path["steps"]), f"{path['score']:8.3f}  ")
    if content["paths_total"] is not None:
        rest = content["paths_total"] - sum(path["score"] for path in content["paths"])
        yield f"{rest:8.3f}  all other paths"
        yield f"{content['paths_total']:8.3f}  in total"


def path_text(head: str, steps: list[list[str]]) -> str:
    """The nodes of a path and the relations between them, each in the direction of its fact."""
    text, node = head, head
    for start, relation, end in steps:
        if start == node:
            text, node = f"{text} —{relation}→ {end}", end
        else:
            text, node = f"{text} ←{relation}— {start}", start
    return text


def pieces_text(content: dict[str, Any]) -> Iterator[str]:
    shared, carrying = content["pieces"]["shared"], content["pieces"]["carrying"]
    if shared:
        yield ""
        yield "Pieces that both nodes have"
        for each in shared:
            distances = (each["head_distance"], each["tail_distance"])
            hops = ", ".join("-" if hop is None else str(hop) for hop in distances)
            known = f" ({hops} hops)" if distances != (None, None) else ""
            yield from folded(f"{each['piece']}{known}", "          ")
    if carrying:
        yield ""
        yield from folded("Pieces that carry the score, by what it loses without them")
        for each in carrying:
            far = "" if each["distance"] is None else f" at {each['distance']}"
            yield from folded(
                f"{each['piece']}{far}, of {each['node']}", f"{each['effect']:8.3f}  "
            )


def necessary_text(content: dict[str, Any]) -> Iterator[str]:
    yield ""
    if not content["necessary"]:
        yield from folded("Necessary facts: none; no fact near the two nodes lowers the answer")
        return
    after = content["without_all"]
    if after["rank"] > content["rank"]:
        yield from folded(
            "Necessary facts: the answer falls without them; rank, score without each"
        )
    else:
        yield from folded(
            "Necessary facts: none; the answer depends most on these, and does not fall without "
            "them; rank, score without each"
        )
    for each in content["necessary"]:
        numbers = f"{each['rank_without']:8g}  {each['score_without']:8.3f}  "
        yield from folded(fact_text(each["fact"]), numbers)
    if len(content["necessary"]) > 1:
        yield f"{after['rank']:8g}  {after['score']:8.3f}  without all of them"


def fact_text(fact: list[str]) -> str:
    return " — ".join(fact)


def folded(text: str, start: str = "") -> Iterator[str]:
    """The text in lines of WIDTH; all but the first are indented as far as `start` is long."""
    width = max(20, WIDTH - len(start))
    lines = wrap(text, width, break_on_hyphens=False) or [""]
    for place, line in enumerate(lines):
        yield (start if place == 0 else " " * len(start)) + line
