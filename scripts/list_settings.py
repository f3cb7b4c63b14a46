"""Write docs/settings.md: meaning, values and default of every setting, and the tasks that read it.

Meanings are the comments beside the fields of the settings records; values are those that the
records accept; the tasks say which groups they read.

    python -m scripts.list_settings
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from itertools import takewhile
from typing import Any, get_type_hints

from scripts.write_results import ROOT

from nodepiece.errors import InputError
from nodepiece.settings import Experiment, to_literal
from nodepiece.tasks.registry import TASKS, task_record
from nodepiece.tasks.unread_settings import OF_EVERY_TASK

PAGE = ROOT / "docs" / "settings.md"
INTRODUCTION = """# Settings

<!-- not run: trains a model -->
```sh
nodepiece experiments show countries                        # all settings of an experiment
nodepiece train countries -o run --set training.epochs=5    # with one of them changed
```

Every setting of an experiment, by group. A TOML file has a table for each group. `experiments show`
marks settings that differ from the defaults below. A value that does not fit is refused
before anything is trained, and so is a setting that the task, or its loss, does not read. This page
is written by `python -m scripts.list_settings`.
"""
# Other settings with which a setting is read; a range holds if it is accepted with one of them.
CONTEXTS: dict[str, list[dict[str, Any]]] = {
    "graph": [{"kind": "compgcn"}],
    "tokenizer": [{}, {"anchors_per_node": 0}],
    "training.patience": [{"validate_every": 1}],
}


def page() -> str:
    experiment = Experiment(name="", dataset="")
    hints = get_type_hints(Experiment)
    groups = [key.name for key in fields(Experiment) if is_dataclass(hints[key.name])]
    parts = [INTRODUCTION, "## Experiment\n", *table_of(experiment, "", leave_out=groups)]
    for group in groups:
        record = getattr(experiment, group)
        about = inspect.cleandoc(type(record).__doc__ or "").splitlines()[0]
        tasks = readers(group)
        parts += [f"\n## [{group}]\n", f"{about} Read by {in_words(tasks)}.\n"]
        parts += table_of(record, group)
    return "\n".join(parts) + "\n"


def readers(group: str) -> list[str]:
    """The tasks that read some setting of a group."""
    return [
        name for name, task in TASKS.items() if group == OF_EVERY_TASK or task.reads_group(group)
    ]


def exceptions(group: str, key: str) -> str:
    """Such as " (not inductive-link-prediction)", where not all readers of a group read a field."""
    if group in ("", OF_EVERY_TASK):
        return ""
    tasks = readers(group)
    reading = [name for name in tasks if TASKS[name].reads_setting(f"{group}.{key}")]
    others = [name for name in tasks if name not in reading]
    if not others:
        return ""
    is_short = len(others) < len(reading)
    return f" (not {', '.join(others)})" if is_short else f" (only {', '.join(reading)})"


def in_words(tasks: list[str]) -> str:
    return "every task" if len(tasks) == len(TASKS) else ", ".join(tasks)


def table_of(record: Any, group: str, leave_out: list[str] | None = None) -> Iterator[str]:
    """The lines of a table of the fields of a record."""
    meanings = comments_of(type(record))
    yield "| setting | meaning | values | default |"
    yield "|---|---|---|---|"
    for key in fields(record):
        if key.name not in (leave_out or ()):
            meaning = meanings[key.name] + exceptions(group, key.name)
            cells = (meaning, values_of(record, key, group), default_of(key))
            yield f"| `{key.name}` | {' | '.join(cells)} |"


def comments_of(record: type) -> dict[str, str]:
    """The comment beside each field of a record, or else the lines of the one above it."""
    source = textwrap.dedent(inspect.getsource(record))
    lines = source.splitlines()
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            beside = lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset or 0 :]
            reversed_lines = map(str.strip, reversed(lines[: node.lineno - 1]))
            above = [*takewhile(lambda line: line.startswith("#"), reversed_lines)][::-1]
            comment = [beside.strip()] if beside.strip() else above
            words = " ".join(line.removeprefix("#").strip() for line in comment)
            found[node.target.id] = words.replace("|", "\\|")
    return found


def default_of(key: "Field[Any]") -> str:
    if key.default_factory is not MISSING:
        return f"`{to_literal(key.default_factory())}`"
    return "" if key.default is MISSING else f"`{to_literal(key.default)}`"


def values_of(record: Any, key: "Field[Any]", group: str) -> str:
    """The values that a record accepts, found by trying some."""
    kind = str(key.type).removeprefix("<class '").removesuffix("'>")
    if "bool" in kind:
        return "`true`, `false`"
    if kind == "tuple[int, ...]":
        return "a list of integers"
    if "str" in kind and "Mapping" not in kind:
        return choices(record, key.name)
    if "int" in kind or kind.startswith("float"):
        contexts = CONTEXTS.get(f"{group}.{key.name}", CONTEXTS.get(group, [{}]))
        return number_range(record, key.name, contexts, whole="int" in kind)
    return "a table of numbers"


def choices(record: Any, name: str) -> str:
    """The names, or the examples, in the message that refuses another one."""
    try:
        changed = replace(record, **{name: "?"})
        if isinstance(changed, Experiment):
            task_record(changed)
    except InputError as error:
        if found := re.search(r"one of (.*)", str(error)):
            return ", ".join(f"`{choice}`" for choice in found[1].split(", "))
        if found := re.search(r"(such as [^;]*)", str(error)):
            return f"text {found[1]}"
    return "text"


def number_range(record: Any, name: str, contexts: list[dict[str, Any]], *, whole: bool) -> str:
    """Such as "number in [0, 1)": by whether -1, 0, 1 and 2 are accepted."""
    words = "integer" if whole else "number"
    below, zero, one, more = (
        is_accepted(record, {name: value}, contexts) for value in (-1, 0, 1, 2)
    )
    if below:
        return f"any {words}"
    if not more:
        return f"{words} in {'[' if zero else '('}0, 1{']' if one else ')'}"
    if zero:
        return f"{words}, 0 or more"
    return f"{words}, at least 1" if whole else f"{words} above 0"


def is_accepted(record: Any, change: dict[str, Any], contexts: list[dict[str, Any]]) -> bool:
    """Whether a record accepts a value in one of the contexts."""
    for context in contexts:
        try:
            replace(record, **(context | change))
        except InputError:
            continue
        return True
    return False


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
