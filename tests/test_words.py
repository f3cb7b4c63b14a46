"""Words that this project no longer uses: the field has words of its own for what they meant.

`IDENTIFIERS` are whole names or parts of names between underscores; `PHRASES` are words of
comments, docstrings, help, messages and documents. Each comes with what to write in its place.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest
from typer.main import get_command

import nodepiece
from nodepiece.cli import app

PACKAGE = Path(nodepiece.__file__).parent
ROOT = Path(__file__).resolve().parent.parent

IDENTIFIERS = {
    "listener": "target",
    "listeners": "targets",
    "voice": "(relation, source) pair",
    "voices": "(relation, source) pairs",
    "heard": "aggregated",
    "told": "a word for what was printed or given",
    "hoods": "neighbourhoods",
    "Ends": "EdgeGroups",
    "EdgeEnds": "EdgeIndex",
    "EdgeLayout": "EdgeIndex",
    "SortedEdges": "EdgeIndex",
    "ends_at": "group_edges",
    "ends_of": "EdgeIndex",
    "ArrangedEdges": "EdgeIndex",
    "Ground": "WalkGraph",
    "OwnEdges": "QueryEdges",
    "judge": "evaluator",
    "Judge": "LinkEvaluator",
    "Watcher": "Callback",
    "watchers": "callbacks",
    "question": "query",
    "questions": "queries",
    "Question": "Query",
    "look_again": "refresh",
    "let_happen": "commit",
    "lay_out": "write_base",
    "fold": "compact",
    "folding": "compaction",
    "step_aside": "warmup_step",
    "knob": "setting",
    "knobs": "settings",
    "walk_weight": "coefficient",
    "against_all": "one_vs_all",
    "newcomer": "new or unseen node",
    "Supposed": "HypotheticalSnapshot",
    "supposed": "assumed",
    "put_on": "other_graph",
    "put_over": "replace_in",
    "discard_recorded": "discard_captured",
    "held_anchors": "stored_anchors",
    "fault_in": "find_invalid_token",
    "fullness": "cutoff_distance",
    "twice_as_long": "double_capacity",
    "with_room": "with_capacity",
    "Callee": "AllowedFunction",
    "Patience": "RetryPolicy",
    "MOST": "MAX",
    "LEAST": "MIN",
}
PHRASES = {
    r"hears?|heard|hearing": "receives a message; aggregated",
    r"listens?|listeners?|listening": "target; reads",
    r"voices?": "(relation, source) pair",
    r"speaks?|speakers?": "source; logs; prints",
    r"told|tells": "reported, given, printed",
    r"mend(s|ed)?": "fix",
    r"supposed|suppositions?": "assumed",
    r"(go|goes|going|gone) on with": "continue",
    r"(for|to|by|is|and) who": "a plain subject",
    r"anew": "again",
    r"knobs?": "setting",
    r"stations?": "stage",
    r"judge[sd]?": "evaluate, evaluator",
    r"questions?": "query",
    r"walkers?": "probability of a walk",
    r"yardstick": "reference",
    r"by heart": "memorized",
    r"back home": "the head itself",
    r"written down": "recorded",
    r"(lets?|it) happens?": "commit, apply",
    r"lays? (it|them|an? \w+) out|laid out": "write, prepare",
    r"(are|is|was|were) folded": "compacted",
    r"whoever": "a plain subject",
    r"graphs never seen": "inductive link prediction",
    r"nodes never seen": "out-of-sample nodes",
    r"classes of nodes": "node classification",
}
ALLOWED = (
    "yes-no question",  # a binary classification is one
    "in question",
    "casefold",
    "how can I tell",
)

SOURCES = sorted(PACKAGE.rglob("*.py"))
PROGRAMS = sorted(
    path
    for folder in ("tests", "scripts", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__).resolve()
)
TEXTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
TEXTS += sorted((PACKAGE / "experiments").glob("*.toml"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def identifiers(path: Path) -> set[str]:
    """Every name that the code of a file defines or uses, and its own name."""
    with tokenize.open(path) as file:
        source = file.read()
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME} | {path.stem}


def prose(path: Path) -> str:
    """The comments and strings of a Python file; the whole of any other."""
    if path.suffix != ".py":
        return path.read_text(encoding="utf-8")
    with tokenize.open(path) as file:
        source = file.read()
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    kinds = (tokenize.STRING, tokenize.COMMENT)
    return "\n".join(token.string for token in tokens if token.type in kinds)


def retired_names(names: set[str]) -> list[str]:
    found = []
    for name in sorted(names):
        for old, new in IDENTIFIERS.items():
            if re.search(rf"(^|_){re.escape(old)}(_|$)", name):
                found.append(f"{name}: say {new}")
    return found


def retired_phrases(text: str) -> list[str]:
    for allowed in ALLOWED:
        text = text.replace(allowed, "")
    found = []
    for pattern, new in PHRASES.items():
        for match in re.finditer(rf"(?<![\w`./-])({pattern})(?![\w`-])", text, re.IGNORECASE):
            start = max(0, match.start() - 40)
            context = " ".join(text[start : match.end() + 40].split())
            found.append(f"{match.group()!r} in {context!r}: say {new}")
    return found


@pytest.mark.parametrize("path", SOURCES + PROGRAMS, ids=named)
def test_no_name_in_the_source_is_retired(path: Path) -> None:
    assert retired_names(identifiers(path)) == []


@pytest.mark.parametrize("path", SOURCES + PROGRAMS + TEXTS, ids=named)
def test_no_text_uses_a_retired_word(path: Path) -> None:
    assert retired_phrases(prose(path)) == []


def test_no_help_uses_a_retired_word() -> None:
    command = get_command(app)
    commands = [command, *command.commands.values()]  # type: ignore[attr-defined]
    for each in commands:
        parts = [each.help or "", each.epilog or ""]
        parts += [getattr(option, "help", None) or "" for option in each.params]
        assert retired_phrases("\n".join(parts)) == [], each.name


def test_a_retired_word_is_found() -> None:
    assert retired_names({"num_listeners"}) == ["num_listeners: say targets"]
    assert retired_names({"casefold", "enough", "unfolded"}) == []
    assert len(retired_phrases("A node hears it; nobody asks a yes-no question.")) == 1


def test_no_docstring_continues_the_name_above_it() -> None:
    """ "The same without..." cannot be understood alone."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node) or ""
                if re.match(r"The same\b", text):
                    found.append(f"{named(path)}: {text.splitlines()[0]}")
    assert found == []
