"""The reference of the Python API in the documentation site, from the public names and docstrings.

python -m scripts.list_api prints it; mkdocstrings replaces each line that begins with `:::`.
"""

import nodepiece

HOMES = nodepiece._HOMES | {
    "InputError": "nodepiece.errors",
    "graph": "nodepiece.data.any_graph",
}
GROUPS = {
    "Runs: train, load, query, update": ("inference", "settings", "tasks"),
    "Graphs and datasets": ("graph", "data"),
    "Tokenizer": ("tokenizer",),
    "Encoders": ("encoders",),
    "Serving": ("serving",),
    "Reports and figures": ("report",),
    "Errors": ("errors",),
}
HEAD = """# Python

Everything a user needs is a name of the module `nodepiece`:

```python
import nodepiece

run = nodepiece.load("run")
print(run.predict(head="Kenya", relation="has language", top=1)[0].name)
```

`nodepiece.graph` reads a graph from anything, `nodepiece.train` trains, `nodepiece.load` opens a
run; a [`Run`][nodepiece.inference.run.Run] answers. An error that the user can fix is an
`InputError` with a sentence.
"""


def page() -> str:
    """A line for every public name, by subject."""
    groups: dict[str, list[str]] = {title: [] for title in GROUPS}
    for name in nodepiece.__all__:
        home = HOMES[name]
        stage = home.split(".")[1]
        title = next(title for title, stages in GROUPS.items() if stage in stages)
        groups[title].append(f"::: {home}.{name}")
    parts = [HEAD]
    for title, entries in groups.items():
        if entries:
            parts += [f"## {title}", *entries]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(page())
