"""An experiment: every knob of every stage in one frozen record, read from TOML."""

import json
import math
import tomllib
import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args, get_type_hints

from nodepiece.decoders.class_model import ClassifierSettings
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.errors import InputError
from nodepiece.evaluation.settings import EvaluationSettings
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.training.settings import TrainingSettings

TASKS = (
    "link-prediction",
    "relation-prediction",
    "inductive-link-prediction",
    "node-classification",
    "out-of-sample",
)
Table = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One row of a results table."""

    name: str
    dataset: str  # the name of a benchmark, "countries", or a path
    task: str = "link-prediction"  # a name in TASKS
    seed: int = 0
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    graph: GraphLayerSettings = field(default_factory=GraphLayerSettings)
    decoder: DecoderSettings = field(default_factory=DecoderSettings)
    walks: WalkSettings = field(default_factory=WalkSettings)  # beside vectors
    classifier: ClassifierSettings = field(default_factory=ClassifierSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise InputError(f"task = {self.task!r} is not known; it is one of {', '.join(TASKS)}")


def load_experiment(source: str | Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read an experiment: a TOML file, or the name of one that comes with nodepiece.

    `extends = NAME` at the top takes over everything from another one first: a file, looked for
    beside this one, or a name. `overrides` are given as on the command line, such as
    "training.epochs=5".
    """
    table = _read_table(source)
    for override in overrides:
        table = _merge(table, _parse_override(override))
    return _build(Experiment, table, str(source), ())


def with_overrides(experiment: Experiment, overrides: Sequence[str]) -> Experiment:
    """The experiment with settings changed as on the command line, such as "training.epochs=5"."""
    table = tomllib.loads(to_toml(experiment))
    for override in overrides:
        table = _merge(table, _parse_override(override))
    return _build(Experiment, table, "--set", ())


def experiment_names() -> list[str]:
    """The experiments that come with nodepiece."""
    folder = files("nodepiece") / "experiments"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def describe_experiment(name: str) -> str:
    """What an experiment that comes with nodepiece is: the comment at the top of its file."""
    comment: list[str] = []
    for line in _text_of(name).splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    return " ".join(comment)


def to_toml(experiment: Experiment) -> str:
    """The whole experiment, every default written out: what a run folder keeps."""
    lines: list[str | None] = []
    tables: list[str | None] = []
    for key, value in asdict(experiment).items():
        if isinstance(value, dict):
            tables.append(f"\n[{key}]")
            tables += [_line(knob, setting) for knob, setting in value.items()]
        else:
            lines.append(_line(key, value))
    return "\n".join(line for line in lines + tables if line is not None) + "\n"


def _line(key: str, value: object) -> str | None:
    """`key = value`; what is None stays unsaid, as TOML has no word for it."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        inner = ", ".join(f"{knob} = {_literal(setting)}" for knob, setting in value.items())
        return f"{key} = {{{inner}}}"
    return f"{key} = {_literal(value)}"


def _literal(value: object) -> str:
    """Text, numbers and truth are written alike in JSON and TOML, except for inf and nan."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _read_table(source: str | Path, children: tuple[str, ...] = ()) -> Table:
    """The table of an experiment, put on top of the one that it extends."""
    if str(source) in children:
        raise InputError(f"{source} extends itself; take the circle out of {' -> '.join(children)}")
    path = Path(source)
    is_file = path.suffix == ".toml" or path.is_file()
    if is_file:
        text = _read_text(path)
    else:
        names = experiment_names()
        if str(source) not in names:
            near = get_close_matches(str(source), names, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
            raise InputError(f"{source} is neither a TOML file nor a known experiment; {hint}")
        text = _text_of(str(source))
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source} is not valid TOML: {error}") from error
    parent = table.pop("extends", None)
    table.setdefault("name", path.stem if path.suffix == ".toml" else path.name)
    if parent is None:
        return table
    if not isinstance(parent, str):
        raise InputError(f"{source}: extends must be a name or a file, got {parent!r}")
    beside = path.parent / parent
    parent = str(beside) if is_file and beside.is_file() else parent
    return _merge(_read_table(parent, (*children, str(source))), table)


def _text_of(name: str) -> str:
    return (files("nodepiece") / "experiments" / f"{name}.toml").read_text(encoding="utf-8")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"there is no experiment file {path}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text") from error
    except OSError as error:
        raise InputError(f"cannot read the experiment {path}: {error.strerror}") from error


def _parse_override(override: str) -> Table:
    """ "training.epochs=5" -> {"training": {"epochs": 5}}; what is not TOML is taken as text."""
    key, equals, text = override.partition("=")
    if not equals:
        raise InputError(f"--set takes KEY=VALUE, such as training.epochs=5; got {override!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for part in reversed(key.strip().split(".")):
        value = {part: value}
    return value


def _merge(below: Table, above: Table) -> Table:
    merged = dict(below)
    for key, value in above.items():
        is_table = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if is_table and key != "mix" else value
    return merged


def _build(record: type, table: Table, source: str, path: tuple[str, ...]) -> Any:
    """A frozen settings record from a table; unknown keys and wrong types are errors."""
    known = {knob.name for knob in fields(record)}
    hints = get_type_hints(record)
    values = {}
    for key, value in table.items():
        dotted = ".".join((*path, key))
        if key not in known:
            raise InputError(
                f"{source}: unknown setting {dotted!r}; known are {', '.join(sorted(known))}"
            )
        values[key] = (
            _build(hints[key], value, source, (*path, key))
            if is_dataclass(hints[key]) and isinstance(value, dict)
            else _checked(value, hints[key], f"{source}: {dotted}")
        )
    missing = {"name", "dataset"} & known - set(values)
    if missing:
        raise InputError(f"{source}: the setting {sorted(missing)[0]!r} is missing")
    return record(**values)


def _checked(value: object, hint: Any, where: str) -> object:
    """The value, if it is of the type its field is declared with; whole numbers pass as floats."""
    if is_dataclass(hint):
        raise InputError(f"{where} must be a table, got {value!r}")
    kinds = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = tuple(getattr(kind, "__origin__", kind) for kind in kinds)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, kinds):
        names = " or ".join("nothing" if kind is type(None) else kind.__name__ for kind in kinds)
        raise InputError(f"{where} must be {names}, got {value!r}")
    if isinstance(value, dict):
        inner = get_args(hint)[1]
        return {key: _checked(each, inner, f"{where}.{key}") for key, each in value.items()}
    return value
