"""The reference of commands in the documentation site, from the command line itself.

python -m scripts.list_commands prints it.
"""

import re
from enum import Enum
from typing import Any, get_args

from typer.main import get_command

from nodepiece.cli import app


def page() -> str:
    """All commands with their arguments, options, defaults and an example."""
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    parts = [HEAD, "| command | |", "|---|---|"]
    for name, command in commands.items():
        if not command.hidden:
            parts.append(f"| [`nodepiece {name}`](#{name}) | {first_sentence(command)} |")
    parts.append("")
    parts += [section(name, command) for name, command in commands.items() if not command.hidden]
    return "\n".join(parts) + "\n"


HEAD = """# Commands

```sh
nodepiece --help            # all commands
nodepiece train --help      # one of them: what is below
```

Exit status: 0 done; 1 an error of the system, or a bug; 2 wrong input; 130 stopped with Ctrl-C.
`--debug`, anywhere on a command line, shows the traceback of an error.
"""


def first_sentence(command: Any) -> str:
    return cell((command.help or "").split("\n\n")[0].split(". ")[0].rstrip(".") + ".")


def section(name: str, command: Any) -> str:
    """A command: its help, its arguments and its options."""
    with command.make_context(name, [], resilient_parsing=True) as context:
        usage = " ".join(["nodepiece", name, *command.collect_usage_pieces(context)])
    example = (command.epilog or "").removeprefix("Example: ")
    parts = [f"## {name}", escaped(command.help or ""), f"```text\n{usage}\n```"]
    if example:
        parts.append(f"Example: `{example}`")
    rows = [row(each) for each in command.params if not getattr(each, "hidden", False)]
    parts.append("\n".join(["| | | default |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def row(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    text = getattr(parameter, "help", None) or ""
    if choices := choices_of(parameter):
        text += f" One of {', '.join(choices)}."
    if not names[0].startswith("-"):
        names = [(parameter.metavar or parameter.name).upper()]
    default = parameter.default
    hidden = default is None or default is False or default in ("", ()) or callable(default)
    shown = "" if hidden else f"`{default}`"
    if parameter.required:
        shown = "required"
    return f"| {', '.join(f'`{name}`' for name in names)} | {cell(text)} | {cell(shown)} |"


def choices_of(parameter: Any) -> list[str]:
    """The values that a parameter takes, if it takes only some."""
    annotation = parameter.type_descriptor.annotation
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(each.value) for each in annotation]
    return [str(each) for each in get_args(annotation) if isinstance(each, str)]


def cell(text: str) -> str:
    return escaped(" ".join(text.split())).replace("|", "\\|")


def escaped(text: str) -> str:
    """Text in which brackets and angle brackets are no Markdown."""
    return re.sub(r"\\?([\[<*])", r"\\\1", text)


if __name__ == "__main__":
    print(page())
