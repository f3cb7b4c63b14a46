"""The experiments that come with nodepiece: TOML files by purpose, and a matrix of ablations.

The folders of `experiments/` are the purposes. `experiments/ablations.toml` lists base recipes and
variants; each pair is an experiment as if it were a file that extends the base.
"""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from nodepiece.errors import InputError
from nodepiece.renamed import current_settings

Table = dict[str, Any]
PURPOSES = {
    "own": "for your own graph: extend one in a TOML file (`train GRAPH` chooses itself)",
    "paper": "the settings of the paper",
    "best": "our own recipes",
    "baselines": "a trained vector for every node, and other baselines",
    "ablations": "a recipe with one part added or taken away",
}
MATRIX = "ablations.toml"  # its experiments belong to the purpose "ablations"


@dataclass(frozen=True)
class Recipe:
    """An experiment that comes with nodepiece."""

    name: str
    purpose: str  # a key of PURPOSES
    path: str  # of its file within the package
    description: str
    extends: str | None  # the recipe whose settings it inherits
    changes: Table  # the settings that it changes

    @property
    def is_in_matrix(self) -> bool:
        """Whether it is a pair of the matrix of ablations, and not a file."""
        return self.path == f"experiments/{MATRIX}"


def experiment_names() -> list[str]:
    """The names of the experiments that come with nodepiece, sorted."""
    return sorted(recipes())


@cache
def recipes() -> dict[str, Recipe]:
    """All experiments that come with nodepiece, by name."""
    folder = files("nodepiece") / "experiments"
    written = {recipe.name: recipe for recipe in _files_of(folder)}
    return written | {recipe.name: recipe for recipe in _ablations(ablation_matrix())}


def ablation_matrix() -> Table:
    """`bases`, and `variants` with what each changes: every base is trained with every variant."""
    path = files("nodepiece") / "experiments" / MATRIX
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _files_of(folder: Traversable) -> Iterator[Recipe]:
    for purpose in PURPOSES:
        for entry in (folder / purpose).iterdir():
            name = entry.name.removesuffix(".toml")
            if name == entry.name:
                continue
            text = entry.read_text(encoding="utf-8")
            changes = tomllib.loads(text)
            extends = changes.pop("extends", None)
            path = f"experiments/{purpose}/{entry.name}"
            yield Recipe(name, purpose, path, _comment_at_the_top(text), extends, changes)


def _ablations(matrix: Table) -> Iterator[Recipe]:
    """Every base recipe with every variant."""
    for base in matrix["bases"]:
        for variant, table in matrix["variants"].items():
            changes = {key: value for key, value in table.items() if key != "about"}
            name = f"{base}-{variant}"
            reported = matrix["reported"].get(name)
            description = f"{base} {table['about']}"
            description += f": {reported}." if reported else "."
            yield Recipe(name, "ablations", f"experiments/{MATRIX}", description, base, changes)


def _comment_at_the_top(text: str) -> str:
    comment: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    return " ".join(comment)


def read_settings(source: str | Path, children: tuple[str, ...] = ()) -> Table:
    """The settings of a TOML file or a named experiment, on top of those that it extends."""
    if str(source) in children:
        raise InputError(f"{source} extends itself; remove the cycle {' -> '.join(children)}")
    path = Path(source)
    is_file = path.suffix == ".toml" or path.is_file()
    if is_file:
        table = _read_file(path)
        parent = table.pop("extends", None)
    else:
        recipe = find_recipe(str(source))
        table, parent = dict(recipe.changes), recipe.extends
    table.setdefault("name", path.stem if path.suffix == ".toml" else path.name)
    if parent is None:
        return table
    if not isinstance(parent, str):
        raise InputError(f"{source}: extends must be a name or a file, got {parent!r}")
    beside = path.parent / parent
    parent = str(beside) if is_file and beside.is_file() else parent
    return merge(read_settings(parent, (*children, str(source))), table)


def find_recipe(name: str) -> Recipe:
    """The experiment of this name that comes with nodepiece."""
    known = recipes()
    if name not in known and Path(name).is_dir():
        raise _not_an_experiment(name, "a folder")
    if name not in known:
        near = get_close_matches(name, known, n=3)
        if not near and (Path(name).suffix or len(Path(name).parts) > 1):
            raise InputError(f"there is no file or folder {name}; check its path")
        hint = (
            f"did you mean {' or '.join(near)}?" if near else "`nodepiece experiments` lists them"
        )
        raise InputError(f"{name} is neither a TOML file nor a known experiment; {hint}")
    return known[name]


def merge(below: Table, above: Table) -> Table:
    """`below` with the settings of `above`, table by table; the shares of a mix go together."""
    merged = dict(below)
    for key, value in above.items():
        is_table = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if is_table and key != "mix" else value
    return merged


def _not_an_experiment(source: str, what: str) -> InputError:
    """The error for a file that is not an experiment, such as a graph."""
    return InputError(
        f"{source} is {what}, and an experiment is a TOML file; to train on these facts write into "
        f'mine.toml the lines dataset = {json.dumps(source)} and extends = "countries", and give '
        "that file"
    )


def _read_file(path: Path) -> Table:
    try:
        return current_settings(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if path.suffix != ".toml":
            raise _not_an_experiment(str(path), "not in TOML") from error
        if isinstance(error, UnicodeDecodeError):
            raise InputError(f"{path} is not UTF-8 text") from error
        raise InputError(f"{path} is not valid TOML: {error}") from error
    except FileNotFoundError as error:
        raise InputError(f"there is no experiment file {path}") from error
    except OSError as error:
        raise InputError(f"cannot read the experiment {path}: {error.strerror}") from error
