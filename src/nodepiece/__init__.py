"""The tokenizer for knowledge graphs.

Everything a user needs is a name of this module: `nodepiece.read_graph`, `nodepiece.train` and
so on. Each is imported when it is first used, so that `import nodepiece` takes no time.
"""

import logging
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nodepiece.errors import InputError
from nodepiece.threads import prefer_sleep

prefer_sleep()  # before PyTorch and numba are imported
logging.getLogger("nodepiece").addHandler(logging.NullHandler())  # quiet, unless it is configured

if TYPE_CHECKING:
    from nodepiece.data.any_graph import graph, make_dataset
    from nodepiece.data.dataset import Dataset
    from nodepiece.data.embedded import load_countries
    from nodepiece.data.label_file import read_label_file
    from nodepiece.data.label_split import LabelSplitSettings, split_labels
    from nodepiece.data.labelled_graph import write_labelled_folder
    from nodepiece.data.open import open_dataset
    from nodepiece.data.read import (
        ReadOptions,
        ReadReport,
        read_dataset,
        read_graph,
        read_graph_with_report,
    )
    from nodepiece.encoders.node_embedding import EncoderSettings, NodePieceEmbedding
    from nodepiece.encoders.parameters import use_generator
    from nodepiece.graph.knowledge_graph import KnowledgeGraph
    from nodepiece.graph.names import Names
    from nodepiece.inference.calibration import calibrate_run
    from nodepiece.inference.classify_triples import classify_triples
    from nodepiece.inference.named_vectors import NamedVectors
    from nodepiece.inference.run import Prediction, Run, load, train
    from nodepiece.inference.transformer import NodeVectorizer
    from nodepiece.inference.tune import tune
    from nodepiece.inference.update import Updated, keep_vectors, update_run
    from nodepiece.report.map import MapSettings, NodeMap, map_run
    from nodepiece.serving.client import RemoteRun, connect
    from nodepiece.settings import Experiment, load_experiment
    from nodepiece.tokenizer.changing_graph import ChangingGraph
    from nodepiece.tokenizer.export import export_tokens
    from nodepiece.tokenizer.settings import TokenizerSettings
    from nodepiece.tokenizer.statistics import describe_tokens
    from nodepiece.tokenizer.storage import load_tokens, save_tokens
    from nodepiece.tokenizer.tokens import TokenTable, tokenize
    from nodepiece.tokenizer.vocabulary import Vocabulary, fit_vocabulary

__version__ = "0.1.0"

__all__ = [
    "ChangingGraph",
    "Dataset",
    "EncoderSettings",
    "Experiment",
    "InputError",
    "KnowledgeGraph",
    "LabelSplitSettings",
    "MapSettings",
    "NamedVectors",
    "Names",
    "NodeMap",
    "NodePieceEmbedding",
    "NodeVectorizer",
    "Prediction",
    "ReadOptions",
    "ReadReport",
    "RemoteRun",
    "Run",
    "TokenTable",
    "TokenizerSettings",
    "Updated",
    "Vocabulary",
    "calibrate_run",
    "classify_triples",
    "connect",
    "describe_tokens",
    "export_tokens",
    "fit_vocabulary",
    "graph",
    "keep_vectors",
    "load",
    "load_countries",
    "load_experiment",
    "load_tokens",
    "make_dataset",
    "map_run",
    "open_dataset",
    "read_dataset",
    "read_graph",
    "read_graph_with_report",
    "read_label_file",
    "save_tokens",
    "split_labels",
    "tokenize",
    "train",
    "tune",
    "update_run",
    "use_generator",
    "write_labelled_folder",
]

# The module of each name; the imports above say the same to type checkers.
_HOMES = {
    "ChangingGraph": "nodepiece.tokenizer.changing_graph",
    "Dataset": "nodepiece.data.dataset",
    "EncoderSettings": "nodepiece.encoders.node_embedding",
    "Experiment": "nodepiece.settings",
    "KnowledgeGraph": "nodepiece.graph.knowledge_graph",
    "LabelSplitSettings": "nodepiece.data.label_split",
    "NamedVectors": "nodepiece.inference.named_vectors",
    "Names": "nodepiece.graph.names",
    "NodePieceEmbedding": "nodepiece.encoders.node_embedding",
    "NodeVectorizer": "nodepiece.inference.transformer",
    "Prediction": "nodepiece.inference.run",
    "ReadOptions": "nodepiece.data.read",
    "ReadReport": "nodepiece.data.read",
    "RemoteRun": "nodepiece.serving.client",
    "Run": "nodepiece.inference.run",
    "TokenTable": "nodepiece.tokenizer.tokens",
    "TokenizerSettings": "nodepiece.tokenizer.settings",
    "Updated": "nodepiece.inference.update",
    "Vocabulary": "nodepiece.tokenizer.vocabulary",
    "calibrate_run": "nodepiece.inference.calibration",
    "classify_triples": "nodepiece.inference.classify_triples",
    "connect": "nodepiece.serving.client",
    "describe_tokens": "nodepiece.tokenizer.statistics",
    "export_tokens": "nodepiece.tokenizer.export",
    "fit_vocabulary": "nodepiece.tokenizer.vocabulary",
    "load": "nodepiece.inference.run",
    "load_countries": "nodepiece.data.embedded",
    "load_experiment": "nodepiece.settings",
    "load_tokens": "nodepiece.tokenizer.storage",
    "MapSettings": "nodepiece.report.map",
    "NodeMap": "nodepiece.report.map",
    "make_dataset": "nodepiece.data.any_graph",
    "map_run": "nodepiece.report.map",
    "open_dataset": "nodepiece.data.open",
    "read_dataset": "nodepiece.data.read",
    "read_graph": "nodepiece.data.read",
    "read_graph_with_report": "nodepiece.data.read",
    "read_label_file": "nodepiece.data.label_file",
    "save_tokens": "nodepiece.tokenizer.storage",
    "split_labels": "nodepiece.data.label_split",
    "tokenize": "nodepiece.tokenizer.tokens",
    "train": "nodepiece.inference.run",
    "tune": "nodepiece.inference.tune",
    "write_labelled_folder": "nodepiece.data.labelled_graph",
    "update_run": "nodepiece.inference.update",
    "use_generator": "nodepiece.encoders.parameters",
    "keep_vectors": "nodepiece.inference.update",
}


if not TYPE_CHECKING:  # a type checker would take every name for known
    import nodepiece.graph as _graph_package

    class _CallablePackage(ModuleType):
        """The package `nodepiece.graph`, which can be called as the function of the same name."""

        def __call__(self, source: Any, *, columns: Any = None, relation: Any = None) -> Any:
            """The graph in a path, in facts in memory, or in an object of another library.

            See `nodepiece.data.any_graph.graph`.
            """
            read = import_module("nodepiece.data.any_graph").graph
            return read(source, columns=columns, relation=relation)

    _graph_package.__class__ = _CallablePackage

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'nodepiece' has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    """What users need; the packages behind it can be imported, and are not listed."""
    return sorted([*__all__, "__version__"])
