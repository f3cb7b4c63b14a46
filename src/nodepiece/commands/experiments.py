"""nodepiece experiments: list the included experiments, or show one with all its settings."""

import json
import re
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from nodepiece.commands.console import log, out
from nodepiece.errors import InputError

if TYPE_CHECKING:
    from nodepiece.recipes import Recipe

ACTIONS = ("list", "show")
ON_REQUEST = ("baselines", "ablations")  # purposes that are only counted without --all
SIZES = ("own-small", "own-medium", "own-large")
AllOption = Annotated[
    bool, typer.Option("--all", help="In the list, baselines and ablations by name too.")
]


def experiments(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="list or show.")] = "list",
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="list: a part of the names, such as wn18rr. show: a name, or a TOML file.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
    everything: AllOption = False,
) -> None:
    """List the experiments that come with nodepiece, or show one with all its settings.

    show prints TOML, with a comment beside each setting that differs from the default.
    """
    if action not in ACTIONS:
        raise InputError(f"unknown action {action!r}; it is one of {', '.join(ACTIONS)}")
    if action == "show":
        show(names or [], as_json)
    elif names or as_json:
        list_described(names or [], as_json)
    else:
        print_groups(everything=everything)


def show(names: list[str], as_json: bool) -> None:
    from nodepiece.recipes import recipes
    from nodepiece.settings import changed_settings, load_experiment, settings_by_name, to_toml

    if len(names) != 1:
        raise InputError("name the experiment: nodepiece experiments show countries, for example")
    (name,) = names
    experiment = load_experiment(name)
    if as_json:
        typer.echo(json.dumps(settings_by_name(experiment), indent=2))
        return
    recipe = recipes().get(name)
    if recipe is not None:
        typer.echo(f"# {recipe.description}")
        if recipe.extends is not None:
            typer.echo(f"# Extends {' -> '.join(ancestors(recipe))}.")
    num_changed = len(changed_settings(experiment).keys() - {"name", "dataset"})
    typer.echo(f"# {num_changed} settings differ from the default, which is given beside them.")
    typer.echo(to_toml(experiment, mark_changes=True), nl=False)


def ancestors(recipe: "Recipe") -> list[str]:
    """The names of the recipes that a recipe extends, nearest first."""
    from nodepiece.recipes import recipes

    if recipe.extends is None:
        return []
    return [recipe.extends, *ancestors(recipes()[recipe.extends])]


def list_described(parts: list[str], as_json: bool) -> None:
    """List the experiments whose names contain one of `parts` (all if empty), with descriptions."""
    from nodepiece.recipes import recipes

    found = [
        recipe
        for name, recipe in sorted(recipes().items())
        if not parts or any(part in name for part in parts)
    ]
    if as_json:
        rows = [
            {"name": each.name, "purpose": each.purpose, "description": each.description}
            for each in found
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    if not found:
        raise InputError(
            f"no experiment has {' or '.join(parts)} in its name; `nodepiece experiments` lists all"
        )
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for recipe in found:
        table.add_row(recipe.name, recipe.description)
    out.print(table)


def print_groups(*, everything: bool) -> None:
    """Print the names by purpose, with one line for each dataset; of some purposes on request."""
    from nodepiece.recipes import PURPOSES, ablation_matrix, recipes

    written = [recipe for recipe in recipes().values() if not recipe.is_in_matrix]
    for purpose, about in PURPOSES.items():
        found = [recipe for recipe in recipes().values() if recipe.purpose == purpose]
        if purpose in ON_REQUEST and not everything:
            log(f"{purpose}: {about}: {len(found)}, with --all")
            continue
        log(f"{purpose}: {about}")
        if purpose == "own":
            for recipe in sorted(found, key=lambda each: SIZES.index(each.name)):
                sentence = recipe.description.partition(":")[0].removeprefix("For a graph of your ")
                print_indented(f"{recipe.name}: {sentence.removeprefix('own with ')}")
            continue
        for line in lines_of([recipe.name for recipe in written if recipe.purpose == purpose]):
            print_indented(line)
    if everything:
        matrix = ablation_matrix()
        variants = ", ".join(f"NAME-{variant}" for variant in matrix["variants"])
        print_indented(f"and {variants} for each of:")
        print_indented(", ".join(shortened(sorted(matrix["bases"], key=natural_order))), by=4)
    log("-v{1,2} stands for -v1 and -v2. Descriptions: nodepiece experiments list wn18rr")
    log("All settings of one: nodepiece experiments show NAME. Train it: nodepiece train NAME")


def lines_of(names: list[str]) -> list[str]:
    """A line of names for each dataset; one for all of CoDEx, one for out-of-sample nodes."""
    from nodepiece.settings import load_experiment

    lines: dict[str, list[str]] = {}
    for name in sorted(names, key=natural_order):
        experiment = load_experiment(name)
        is_new_nodes = experiment.task == "out-of-sample"
        family = experiment.task if is_new_nodes else re.split("/|-[lms]$", experiment.dataset)[0]
        lines.setdefault(family, []).append(name)
    return [", ".join(shortened(some)) for some in lines.values()]


def print_indented(line: str, *, by: int = 2) -> None:
    """Print a line of names, wrapped to the width of the terminal."""
    lines = textwrap.wrap(line, out.width - by - 2, break_on_hyphens=False, break_long_words=False)
    log(textwrap.indent("\n  ".join(lines), " " * by))


def shortened(names: list[str]) -> list[str]:
    """The names in their order, with names that differ in one number merged: -v{1,2}-."""
    numbers: dict[str, list[str]] = {}  # of the names that are alike but for one number
    pattern = re.compile(r"(?<=-v)\d(?=-)|(?<=wd50k-)\d+(?=-)")
    for name in names:
        found = pattern.search(name)
        alike = pattern.sub("{}", name, count=1)
        numbers.setdefault(alike, []).append(found[0] if found else "")
    return [
        alike.replace("{}", "{" + ",".join(some) + "}" if len(some) > 1 else some[0])
        for alike, some in numbers.items()
    ]


def natural_order(name: str) -> str:
    """A sort key that puts wd50k-5 before wd50k-10."""
    return re.sub(r"\d+", lambda number: number[0].zfill(4), name)
