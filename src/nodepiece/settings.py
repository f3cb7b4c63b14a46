"""An experiment: every setting of every stage in one frozen record, read from TOML."""

import json
import math
import tomllib
import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from nodepiece.data.blocks import ReadOptions
from nodepiece.decoders.class_model import ClassifierSettings
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.path_scorers import ScorerSettings
from nodepiece.decoders.propagation import PropagationSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.errors import InputError, SettingError
from nodepiece.evaluation.settings import EvaluationSettings
from nodepiece.graph.short_text import plural
from nodepiece.recipes import Table, merge, read_settings
from nodepiece.renamed import current_settings
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.training.settings import (
    OneVsAllSettings,
    OutOfSampleSettings,
    SampledSettings,
    TrainingSettings,
)


@dataclass(frozen=True)
class Experiment:
    """One row of a results table."""

    name: str  # of the run; that of the file if it is not given
    dataset: str  # the name of a benchmark, "countries", or a path
    task: str = "link-prediction"  # a name in TASKS of `tasks/registry.py`, which refuses others
    seed: int = 0  # of all random choices: anchors, weights, batches, negatives, dropout
    reading: ReadOptions = field(default_factory=ReadOptions)  # of the dataset, where it is files
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    graph: GraphLayerSettings = field(default_factory=GraphLayerSettings)
    decoder: DecoderSettings = field(default_factory=DecoderSettings)
    # Path scorers. Another one is one more field; all else follows from its type.
    walks: WalkSettings = field(default_factory=WalkSettings)
    propagation: PropagationSettings = field(default_factory=PropagationSettings)
    classifier: ClassifierSettings = field(default_factory=ClassifierSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    one_vs_all: OneVsAllSettings = field(default_factory=OneVsAllSettings)  # by training.loss
    sampled: SampledSettings = field(default_factory=SampledSettings)  # by training.loss
    out_of_sample: OutOfSampleSettings = field(default_factory=OutOfSampleSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)

    def __post_init__(self) -> None:
        for key in fields(self):
            record, value = key.default_factory, getattr(self, key.name)
            if isinstance(record, type) and not isinstance(value, record):
                raise InputError(
                    f"{key.name} must be {record.__name__}(...), got {value!r}; to change some "
                    f"settings of an experiment by name, load it with overrides"
                )
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed must be a whole number from 0 to 2**63 - 1, got {self.seed}")

    def __repr__(self) -> str:
        number = len(changed_settings(self).keys() - {"name", "dataset", "task"})
        return (
            f"Experiment({self.name!r}: {self.task} on {self.dataset!r}, "
            f"{plural(number, 'setting')} other than the defaults)"
        )

    @property
    def scorers(self) -> tuple[ScorerSettings, ...]:
        """The settings of all path scorers; most experiments switch all of them off."""
        groups = (getattr(self, key.name) for key in fields(self))
        return tuple(group for group in groups if isinstance(group, ScorerSettings))


def load_experiment(source: str | Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read an experiment: a TOML file, or the name of one that comes with nodepiece.

    `extends = NAME` at the top inherits all settings of another experiment: a file, searched
    beside this one, or a name. `overrides` are given as on the command line, such as
    "training.epochs=5".
    """
    table = read_settings(source)
    for override in _listed(overrides):
        table = merge(table, _parse_override(override))
    return _build(Experiment, table, str(source), ())


def with_overrides(experiment: Experiment, overrides: Sequence[str]) -> Experiment:
    """The experiment with settings changed as on the command line, such as "training.epochs=5"."""
    table = tomllib.loads(to_toml(experiment))
    for override in _listed(overrides):
        table = merge(table, _parse_override(override))
    return _build(Experiment, table, "--set", ())


def overridden(overrides: Sequence[str]) -> dict[str, Any]:
    """The settings that overrides change, by dotted name, such as {"training.epochs": 5}."""
    table: Table = {}
    for override in _listed(overrides):
        table = merge(table, _parse_override(override))
    top = {key: value for key, value in table.items() if not isinstance(value, dict)}
    return top | {
        f"{group}.{key}": value
        for group, settings in table.items()
        if isinstance(settings, dict)
        for key, value in settings.items()
    }


def to_toml(experiment: Experiment, *, mark_changes: bool = False) -> str:
    """The whole experiment as TOML, with every default, as a run folder stores it.

    `mark_changes` adds the default as a comment to every setting that differs from it.
    """
    defaults = default_settings()
    lines: list[str] = []
    table = ""
    for name, value in settings_by_name(experiment).items():
        if value is None:  # TOML has no word for it
            continue
        group, _, key = name.rpartition(".")
        if group != table:
            lines.append(f"\n[{group}]")
            table = group
        is_marked = mark_changes and name in defaults and value != defaults[name]
        remark = f"  # default: {to_literal(defaults[name])}" if is_marked else ""
        lines.append(f"{key} = {to_literal(value)}{remark}")
    return "\n".join(lines) + "\n"


def settings_by_name(experiment: Experiment) -> dict[str, Any]:
    """All settings by their dotted names, such as "training.epochs"; those without a dot first."""
    table = asdict(experiment)
    top = {key: value for key, value in table.items() if not isinstance(value, dict)}
    return top | {
        f"{group}.{key}": value
        for group, settings in table.items()
        if isinstance(settings, dict)
        for key, value in settings.items()
    }


def switches() -> dict[str, str]:
    """The groups that can be switched off, and of each the setting that is 0 then."""
    groups = {key.name: getattr(key.default_factory, "switch", None) for key in fields(Experiment)}
    return {name: switch for name, switch in groups.items() if switch is not None}


def scorer_groups() -> set[str]:
    """The groups of settings of path scorers."""
    return {settings.name for settings in Experiment(name="", dataset="").scorers}


def default_settings() -> dict[str, Any]:
    """The defaults by dotted name; "name" and "dataset" have none."""
    settings = settings_by_name(Experiment(name="", dataset=""))
    return {name: value for name, value in settings.items() if name not in ("name", "dataset")}


def changed_settings(experiment: Experiment) -> dict[str, Any]:
    """The settings that differ from the defaults, by dotted name."""
    defaults = default_settings()
    return {
        name: value
        for name, value in settings_by_name(experiment).items()
        if name not in defaults or value != defaults[name]
    }


def to_literal(value: object) -> str:
    """A value in TOML. Text, numbers and truth are written as in JSON, except for inf and nan."""
    if value is None:
        return "none"  # in comments only
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {to_literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _listed(overrides: Sequence[str]) -> Sequence[str]:
    if isinstance(overrides, str):
        raise InputError(f"overrides is a list of changes; write [{overrides!r}]")
    return overrides


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
    return current_settings(value, "--set")


def _build(record: type, table: Table, source: str, path: tuple[str, ...]) -> Any:
    """A frozen settings record from a table; unknown keys and wrong types are errors."""
    known = {key.name for key in fields(record)}
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
    try:
        return record(**values)
    except SettingError as error:
        raise error.named(lambda field: ".".join((*path, field))) from error


def _checked(value: object, hint: Any, where: str) -> object:
    """The value, if it is of the type its field is declared with; whole numbers pass as floats."""
    if is_dataclass(hint):
        raise InputError(f"{where} must be a table, got {value!r}")
    kinds = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = tuple(get_origin(kind) or kind for kind in kinds)
    if tuple in kinds and isinstance(value, list):
        return tuple(value)  # checked by the record
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError as error:
            raise InputError(f"{where} is larger than any float; lower it") from error
    if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, kinds):
        names = " or ".join("nothing" if kind is type(None) else kind.__name__ for kind in kinds)
        raise InputError(f"{where} must be {names}, got {value!r}")
    if isinstance(value, dict):
        inner = get_args(hint)[1]
        return {key: _checked(each, inner, f"{where}.{key}") for key, each in value.items()}
    return value
