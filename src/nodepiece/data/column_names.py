"""The usual names of columns of head, relation and tail.

Names are compared without case, blanks, `_`, `-` and `.`: `Start_ID`, `start id` and `startId` are
one name. Neo4j's `:START_ID(Person)` and `:TYPE`, Neptune's `~from`, the `?s` of SPARQL and RDF's
`rdf:subject` are understood.
"""

import re
from collections.abc import Sequence
from itertools import product

ROLES = ("head", "relation", "tail")
Positions = tuple[int, int, int]  # of head, relation and tail, counted from 0

# Names of head and tail that belong together. A pair is preferred: in a table of subject,
# predicate, object and source, the source is something else.
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
NUMBERED = tuple(  # could be names of columns or of nodes
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
WEAK_RELATIONS = ("type", "label", "kind", "edge", "link")  # could be something else
RELATION_LETTERS = ("r", "p")
NUMBERS = (  # what columns beside the three are called, and relations hardly are
    *("id", "weight", "weights", "score", "value", "count", "confidence", "probability", "prob"),
    *("frequency", "similarity", "distance", "strength", "time", "timestamp", "date", "year"),
)
LETTER_TRIPLES = ({"h", "r", "t"}, {"s", "p", "o"})
OWN_RELATION = {"head": "relation", "subject": "predicate", "subj": "pred"}  # preferred for a head


def with_suffixes(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((head + end, tail + end) for head, tail in pairs for end in SUFFIXES)


PAIR_TIERS = (PAIRS, NUMBERED, with_suffixes(PAIRS), with_suffixes(NUMBERED), LETTERS)
RELATION_TIERS = (RELATIONS, WEAK_RELATIONS, RELATION_LETTERS)
WORDS: dict[str, frozenset[str]] = {  # names that are unlikely to be nodes or letters
    "head": frozenset(head for head, _ in PAIRS + with_suffixes(PAIRS)),
    "relation": frozenset(RELATIONS + WEAK_RELATIONS),
    "tail": frozenset(tail for _, tail in PAIRS + with_suffixes(PAIRS)),
}
MAX_CANDIDATES = 2  # columns for one role: with more than one the table is refused


def normalized(name: str) -> str:
    """A column name without case, blanks, punctuation, and prefixes of known programs."""
    word = name.strip().lstrip("#~?").casefold()
    if neo4j := re.fullmatch(r"[^:]*:((start|end)_id)(\(.*\))?|:(type)", word):
        word = neo4j[1] or neo4j[4]
    if word in ("rdf:subject", "rdf:predicate", "rdf:object"):
        word = word.removeprefix("rdf:")
    return re.sub(r"[\s_.-]+", "", word)


def possible_columns(names: Sequence[str]) -> list[Positions]:
    """The possible positions of head, relation and tail by their names: none, one, or several."""
    words = [normalized(name) for name in names]
    pairs = pairs_among(words)
    relations = next(filter(None, (columns_named(words, tier) for tier in RELATION_TIERS)), [])
    found = [
        (head, relation, tail)
        for (head, tail), relation in product(pairs[:MAX_CANDIDATES], relations[:MAX_CANDIDATES])
        if relation not in (head, tail)
    ]
    own = [at for at in found if OWN_RELATION.get(words[at[0]]) == words[at[1]]]
    found = own if len(own) == 1 else found
    return [at for at in found if is_distinctive([words[place] for place in at])]


def pairs_among(words: Sequence[str]) -> list[tuple[int, int]]:
    """Columns of head and tail: known pairs, the clearest ones first, else any two known names."""
    for tier in PAIR_TIERS:
        pairs = [
            (head, tail)
            for head_word, tail_word in tier
            for head in columns_named(words, (head_word,))[:MAX_CANDIDATES]
            for tail in columns_named(words, (tail_word,))[:MAX_CANDIDATES]
        ]
        if pairs:
            return pairs
    ends = [place for place, word in enumerate(words) if word in WORDS["head"]]
    others = [place for place, word in enumerate(words) if word in WORDS["tail"]]
    return list(product(ends[:MAX_CANDIDATES], others[:MAX_CANDIDATES]))


def columns_named(words: Sequence[str], wanted: Sequence[str]) -> list[int]:
    return [place for place, word in enumerate(words) if word in wanted]


def is_distinctive(words: Sequence[str]) -> bool:
    """Whether three names are column names for certain, and not nodes of a fact such as e1."""
    is_word = any(word in known for word in words for known in WORDS.values())
    return is_word or set(words) in LETTER_TRIPLES


def known_roles(names: Sequence[str]) -> dict[str, int]:
    """Role -> the first column with a known name for it."""
    words = [normalized(name) for name in names]
    return {
        role: found[0]
        for role, known in WORDS.items()
        if (found := columns_named(words, tuple(known)))
    }


def are_mixed_letters(names: Sequence[str]) -> bool:
    """Whether there is a letter for each role, but of different sets, such as s, r, t."""
    words = [normalized(name) for name in names]
    letters = ({"h", "s"}, set(RELATION_LETTERS), {"t", "o"})
    return len(words) == 3 and all(set(words) & each for each in letters)
