"""The names of options, which some versions of Typer guess in ways of their own.

Typer 0.27 takes the metavar for the name where the two differ in case only: metavar="DEVICE" made
it --DEVICE. So nothing is left to be guessed.
"""

from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest
import typer
from typer.models import OptionInfo
from typer.testing import CliRunner

from nodepiece.cli import app

COMMANDS: list[Callable[..., Any]] = [
    info.callback
    for info in (app.registered_callback, *app.registered_commands)
    if info is not None and info.callback is not None
]
OTHER_NAMES = {
    "overrides": "--set",
    "as_json": "--json",
    "list_all": "--list",
    "all_nodes": "--all",
    "everything": "--all",
    "open_page": "--open",
}


def options_of(command: Callable[..., Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each parameter that is an option, and the names that it is declared with."""
    for parameter, hint in get_type_hints(command, include_extras=True).items():
        for about in getattr(hint, "__metadata__", ()):
            if isinstance(about, OptionInfo):
                # inside Annotated, what Typer calls the default is the first name
                declared = (about.default, *(about.param_decls or ()))
                yield parameter, tuple(name for name in declared if isinstance(name, str))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_every_option_is_declared_with_the_name_of_its_parameter(
    command: Callable[..., Any],
) -> None:
    for parameter, declared in options_of(command):
        name = OTHER_NAMES.get(parameter, "--" + parameter.replace("_", "-"))
        assert name in {names.split("/")[0] for names in declared}, (
            f"declare {parameter} of {command.__name__} as {name!r}"
        )
        assert all(names.islower() for names in declared)


def test_the_command_line_takes_the_names_that_are_declared() -> None:
    group: Any = typer.main.get_command(app)
    for command in COMMANDS:
        parsed = (
            group if command is COMMANDS[0] else group.commands[command.__name__.replace("_", "-")]
        )
        taken = {option.name: {*option.opts, *option.secondary_opts} for option in parsed.params}
        for parameter, declared in options_of(command):
            assert taken[parameter] == {one for names in declared for one in names.split("/")}


def test_a_shell_can_complete_commands() -> None:
    variables = {"_NODEPIECE_COMPLETE": "complete_bash", "COMP_WORDS": "nodepiece pre"}
    found = CliRunner().invoke(app, prog_name="nodepiece", env=variables | {"COMP_CWORD": "1"})
    assert found.output.split() == ["predict"]
