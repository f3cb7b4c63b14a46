"""Suggestions for a mistyped name among millions of names, in about a second.

`Kenya` finds `ex:Kenya`, `<http://example.org/Kenya>` and `KENYA`, and so does `dbr:kenya`; then
names with it inside, the shortest first; then names that differ in a few letters.
"""

import re
from difflib import get_close_matches

import pyarrow as pa
import pyarrow.compute as pc

MAX_SUGGESTIONS = 5
MAX_COMPARED = 20_000  # names compared letter by letter, in Python
MAX_LETTERS = 200  # of a name that is looked for
BLANK = "(?:[ _+-]|%20)+"  # between the words of a name
FRONT, BACK = '(?:^|[/#:<"])', '[>"/]?$'  # what stands around the last part of a name


def near_names(name: str, column: pa.LargeStringArray) -> list[str]:
    """The names most similar to `name`, likeliest first, five at most."""
    words = words_of(name)
    if not words:
        return []
    pattern = BLANK.join(map(re.escape, words))
    holding = column.filter(pc.match_substring_regex(column, pattern, ignore_case=True))
    same = holding.filter(
        pc.match_substring_regex(holding, FRONT + pattern + BACK, ignore_case=True)
    )
    found = [*shortest(same), *shortest(holding)] or similar(name, column)
    return list(dict.fromkeys(found))[:MAX_SUGGESTIONS]


def words_of(name: str) -> list[str]:
    """The words of the last part: of <http://x.org/New_York> New and York."""
    parts = re.split("[/#:]", name[:MAX_LETTERS].strip(' <>"/'))
    return [word for word in re.split(BLANK, parts[-1]) if word]


def shortest(names: pa.LargeStringArray) -> list[str]:
    """The shortest names, MAX_SUGGESTIONS at most; names of equal length stay in order."""
    if len(names) > MAX_SUGGESTIONS:
        lengths = pc.utf8_length(names).to_numpy(zero_copy_only=False)
        names = names.take(pa.array(lengths.argsort(kind="stable")[:MAX_SUGGESTIONS]))
    return names.to_pylist()


def similar(name: str, column: pa.LargeStringArray) -> list[str]:
    """Names that differ in a few letters.

    Of very many names, only those of similar length with the same first or last letters count.
    """
    if len(column) > MAX_COMPARED:
        start, end = re.escape(name[:2]), re.escape(name[-2:])
        lengths = pc.utf8_length(column)
        column = column.filter(
            pc.and_(
                pc.and_(
                    pc.greater_equal(lengths, len(name) - 2), pc.less_equal(lengths, len(name) + 2)
                ),
                pc.match_substring_regex(column, f"^{start}|{end}$", ignore_case=True),
            )
        )
    return get_close_matches(name, column[:MAX_COMPARED].to_pylist(), n=3)
