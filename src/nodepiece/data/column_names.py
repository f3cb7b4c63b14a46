"""What people call the columns of head, relation and tail.

Names are compared without case, blanks, `_`, `-` and `.`: `Start_ID`, `start id` and `startId` are
one name. Neo4j's `:START_ID(Person)` and `:TYPE`, Neptune's `~from`, the `?s` of SPARQL and RDF's
`rdf:subject` are understood.
"""

import re
from collections.abc import Sequence
from itertools import product

ROLES = ("head", "relation", "tail")
Positions = tuple[int, int, int]  # of head, relation and tail, counted from 0

# Names of head and tail that go together. Where a table has a pair, the pair is taken: of
# subject, predicate, object and source, the source is something else.
PAIRS = (
    ("head", "tail"),
    ("subject", "object"),
    ("subj", "obj"),
    ("sub", "obj"),
    ("source", "target"),
    ("source", "destination"),
    ("origin", "destination"),
    ("src", "dst"),
    ("src", "dest"),
    ("src", "tgt"),
    ("src", "trg"),
    ("from", "to"),
    ("start", "end"),
    ("begin", "end"),
    ("lhs", "rhs"),
)
NUMBERED = tuple(  # names of columns, but just as well of nodes
    (f"{word}{first}", f"{word}{second}")
    for word in ("node", "entity", "ent", "e", "n", "arg")
    for first, second in (("1", "2"), ("a", "b"))
)
LETTERS = (("h", "t"), ("s", "o"))
SUFFIXES = ("id", "node", "entity", "name", "label", "key", "iri", "uri")

RELATIONS = (
    *("relation", "predicate", "relationship", "property", "rel", "pred", "prop"),
    *("relationtype", "relationshiptype", "reltype", "edgetype", "edgelabel", "linktype"),
    *(word + end for word in ("relation", "predicate", "property") for end in SUFFIXES),
)
WEAK_RELATIONS = ("type", "label", "kind", "edge", "link")  # of the relation, or of anything else
RELATION_LETTERS = ("r", "p")
NUMBERS = (  # what columns beside the three are called, and relations hardly are
    *("id", "weight", "weights", "score", "value", "count", "confidence", "probability", "prob"),
    *("frequency", "similarity", "distance", "strength", "time", "timestamp", "date", "year"),
)
LETTER_TRIPLES = ({"h", "r", "t"}, {"s", "p", "o"})
OWN_RELATION = {"head": "relation", "subject": "predicate", "subj": "pred"}  # of several, this one


def with_suffixes(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((head + end, tail + end) for head, tail in pairs for end in SUFFIXES)


PAIR_TIERS = (PAIRS, NUMBERED, with_suffixes(PAIRS), with_suffixes(NUMBERED), LETTERS)
RELATION_TIERS = (RELATIONS, WEAK_RELATIONS, RELATION_LETTERS)
WORDS: dict[str, frozenset[str]] = {  # those that are hardly a node or a letter
    "head": frozenset(head for head, _ in PAIRS + with_suffixes(PAIRS)),
    "relation": frozenset(RELATIONS + WEAK_RELATIONS),
    "tail": frozenset(tail for _, tail in PAIRS + with_suffixes(PAIRS)),
}
ENOUGH = 2  # columns for one role: more than one is refused anyway


def plain(name: str) -> str:
    """A column name without what varies."""
    word = name.strip().lstrip("#~?").casefold()
    if neo4j := re.fullmatch(r"[^:]*:((start|end)_id)(\(.*\))?|:(type)", word):
        word = neo4j[1] or neo4j[4]
    if word in ("rdf:subject", "rdf:predicate", "rdf:object"):
        word = word.removeprefix("rdf:")
    return re.sub(r"[\s_.-]+", "", word)


def readings(names: Sequence[str]) -> list[Positions]:
    """The ways to take the names for those of head, relation and tail: none, one, or several."""
    words = [plain(name) for name in names]
    pairs = pairs_among(words)
    relations = next(filter(None, (places(words, tier) for tier in RELATION_TIERS)), [])
    found = [
        (head, relation, tail)
        for (head, tail), relation in product(pairs[:ENOUGH], relations[:ENOUGH])
        if relation not in (head, tail)
    ]
    own = [at for at in found if OWN_RELATION.get(words[at[0]]) == words[at[1]]]
    found = own if len(own) == 1 else found
    return [at for at in found if is_telling([words[place] for place in at])]


def pairs_among(words: Sequence[str]) -> list[tuple[int, int]]:
    """Columns of head and tail: of the plainest pairs that are there, else any two."""
    for tier in PAIR_TIERS:
        pairs = [
            (head, tail)
            for head_word, tail_word in tier
            for head in places(words, (head_word,))[:ENOUGH]
            for tail in places(words, (tail_word,))[:ENOUGH]
        ]
        if pairs:
            return pairs
    ends = [place for place, word in enumerate(words) if word in WORDS["head"]]
    others = [place for place, word in enumerate(words) if word in WORDS["tail"]]
    return list(product(ends[:ENOUGH], others[:ENOUGH]))


def places(words: Sequence[str], wanted: Sequence[str]) -> list[int]:
    return [place for place, word in enumerate(words) if word in wanted]


def is_telling(words: Sequence[str]) -> bool:
    """Whether three known names are more than letters and numbered nodes, which facts have too."""
    is_word = any(word in known for word in words for known in WORDS.values())
    return is_word or set(words) in LETTER_TRIPLES


def roles_known(names: Sequence[str]) -> dict[str, int]:
    """The roles that some names are known words for -> the first such column."""
    words = [plain(name) for name in names]
    return {
        role: found[0] for role, known in WORDS.items() if (found := places(words, tuple(known)))
    }


def are_mixed_letters(names: Sequence[str]) -> bool:
    """Such as s, r, t: a letter for each role, but not those that go together."""
    words = [plain(name) for name in names]
    letters = ({"h", "s"}, set(RELATION_LETTERS), {"t", "o"})
    return len(words) == 3 and all(set(words) & each for each in letters)
