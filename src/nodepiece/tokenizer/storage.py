"""Vocabularies and token tables on disk: JSON and plain arrays, memory-mapped, no pickle.

    FOLDER/vocabulary.json        format version, sizes, settings, fingerprint of the names
    FOLDER/anchors.npy            node ids of the anchors
    FOLDER/names/                 nodes.arrow, relations.arrow
    FOLDER/tokens/                anchors, distances, relations, relation_sets_{offsets,values}.npy,
                                  and salts.npy: the random salts, needed to update the tokens

Files of tokens/ may be cut into parts NAME.npy.00000, ... (`array_parts.py`), which are mapped as
one array.

The bytes do not depend on the time or the machine: the same graph, settings and seed give the same
files.
"""

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nodepiece.errors import InputError
from nodepiece.files import atomic_folder, read_whole
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import load_names, save_names
from nodepiece.tokenizer.array_file import save_array
from nodepiece.tokenizer.array_parts import load_parts, part_paths
from nodepiece.tokenizer.context import RelationSets
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import Salts, TokenTable
from nodepiece.tokenizer.vocabulary import Vocabulary

FORMAT_VERSION = 2  # the newest that is read
IN_ONE_FILE, IN_PARTS = 1, 2  # the version of a folder, by how its arrays are stored
HEADER = "vocabulary.json"
MAX_RELATIONS = 2**31  # token ids are int32
HEADER_FIELDS = {
    "format_version": int,
    "fingerprint": str,
    "num_nodes": int,
    "num_relations": int,
    "num_anchors": int,
    "has_names": bool,
    "settings": dict,
}


def save_tokens(table: TokenTable, folder: str | Path, *, part_bytes: int | None = None) -> None:
    """Write a vocabulary and the tokens of all nodes; an earlier one is replaced atomically.

    With `part_bytes` the files of tokens are cut into parts of at most this size.
    """
    with atomic_folder(Path(folder), marker=HEADER) as partial:
        write_vocabulary(table.vocabulary, partial, in_parts=part_bytes is not None)
        write_tokens(table, partial, part_bytes)


def copy_tokens(source: Path, folder: Path) -> None:
    """A copy of a vocabulary folder; its tokens are hard links where the file system has them.

    Files of a vocabulary are replaced and never changed, so both folders stay as they are. Parts
    stay parts, and nothing is read into memory.
    """
    with atomic_folder(folder, marker=HEADER) as partial:
        shutil.copytree(source, partial, dirs_exist_ok=True, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    if Path(source).parent.name == "tokens":
        with suppress(OSError):  # another file system, or one without hard links
            Path(target).hardlink_to(Path(source).resolve())
            return
    shutil.copyfile(source, target)


def write_vocabulary(vocabulary: Vocabulary, folder: Path, *, in_parts: bool = False) -> None:
    header = {
        "format_version": IN_PARTS if in_parts else IN_ONE_FILE,
        "fingerprint": vocabulary.fingerprint,
        "num_nodes": vocabulary.num_nodes,
        "num_relations": vocabulary.num_relations,
        "num_anchors": vocabulary.num_anchors,
        "has_names": vocabulary.names is not None,
        "settings": asdict(vocabulary.settings),
    }
    text = json.dumps(header, indent=2, default=np.generic.item)  # counts may come from NumPy
    (folder / HEADER).write_text(text + "\n", encoding="utf-8")
    np.save(folder / "anchors.npy", vocabulary.anchors)
    if vocabulary.names is not None:
        save_names(vocabulary.names, folder / "names")


def write_tokens(table: TokenTable, folder: Path, part_bytes: int | None = None) -> None:
    tokens = folder / "tokens"
    tokens.mkdir()
    for name, array in (
        ("anchors", table.anchors),
        ("distances", table.distances),
        ("relations", table.relations),
        ("relation_sets_offsets", table.relation_sets.offsets),
        ("relation_sets_values", table.relation_sets.values),
    ):
        save_array(tokens / f"{name}.npy", array, part_bytes)
    if table.salts is not None:
        write_salts(table.salts, folder)


def write_salts(salts: Salts, folder: Path) -> None:
    np.save(folder / "tokens" / "salts.npy", [salts.relations, salts.anchors])


def _read_vocabulary(folder: Path, graph: KnowledgeGraph | None) -> Vocabulary:
    header = read_header(folder)
    anchors = load_array(folder / "anchors.npy", (header["num_anchors"],), np.int32)
    if ((anchors < 0) | (anchors >= header["num_nodes"])).any():
        raise damaged(folder / "anchors.npy", "it names nodes outside the graph")
    vocabulary = Vocabulary(
        anchors,
        header["num_relations"],
        header["num_nodes"],
        header["fingerprint"],
        settings_in(header, folder / HEADER),
        load_names(folder / "names") if header["has_names"] else None,
    )
    if vocabulary.names is not None and vocabulary.names.fingerprint != vocabulary.fingerprint:
        raise damaged(folder / "names", "the names are not those the vocabulary was made for")
    if not 0 <= vocabulary.num_relations < MAX_RELATIONS or (
        vocabulary.names is not None
        and vocabulary.num_relations != 2 * len(vocabulary.names.relations)
    ):
        raise damaged(folder / HEADER, f"it says {vocabulary.num_relations:,} relations")
    if graph is not None:
        vocabulary.check_fits(graph)
    return vocabulary


def load_tokens(folder: str | Path, *, graph: KnowledgeGraph | None = None) -> TokenTable:
    """Read a vocabulary and its token table; arrays are mapped, and read on access."""
    path = Path(folder)
    return read_whole(path, lambda: _read_tokens(path, graph))


def _read_tokens(folder: Path, graph: KnowledgeGraph | None) -> TokenTable:
    vocabulary = _read_vocabulary(folder, graph)
    tokens = folder / "tokens"
    if not tokens.is_dir():
        raise InputError(f"{folder} has a vocabulary without tokens; run nodepiece tokenize")
    num_nodes, settings = vocabulary.num_nodes, vocabulary.settings
    anchors_shape = (num_nodes, settings.anchors_per_node)
    offsets = load_array(tokens / "relation_sets_offsets.npy", (num_nodes + 1,), np.int64)
    if offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():  # kernels do not check them
        raise damaged(tokens / "relation_sets_offsets.npy", "the offsets do not ascend from 0")
    values = load_array(tokens / "relation_sets_values.npy", (int(offsets[-1]),), np.int32)
    has_salts = (tokens / "salts.npy").exists()  # a table made by an earlier version has none
    return TokenTable(
        vocabulary,
        load_array(tokens / "anchors.npy", anchors_shape, np.int32),
        load_array(tokens / "distances.npy", anchors_shape, np.int16),
        load_array(tokens / "relations.npy", (num_nodes, settings.relations_per_node), np.int32),
        RelationSets(offsets, values),
        Salts(*load_array(tokens / "salts.npy", (2,), np.uint64)) if has_salts else None,
    )


def read_header(folder: Path) -> dict[str, Any]:
    """The checked contents of vocabulary.json."""
    path = folder / HEADER
    if not path.is_file():
        raise InputError(
            f"{folder} is not a vocabulary folder (there is no {HEADER} in it); "
            f"make one with: nodepiece tokenize GRAPH -o {folder}"
        )
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise damaged(path, f"{error}") from error
    if not isinstance(header, dict):
        raise damaged(path, "it is not a JSON object")
    version = header.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {version}, this nodepiece reads up to {FORMAT_VERSION}; "
            "install a newer nodepiece, or tokenize again with this one"
        )
    for name, kind in HEADER_FIELDS.items():
        if not isinstance(header.get(name), kind):
            raise damaged(path, f"{name} is {header.get(name)!r}")
    return header


def settings_in(header: dict[str, Any], path: Path) -> TokenizerSettings:
    known = {field.name for field in fields(TokenizerSettings)}
    if unknown := set(header["settings"]) - known:
        raise damaged(path, f"unknown setting {sorted(unknown)[0]!r}")
    try:
        return TokenizerSettings(**header["settings"])
    except (InputError, TypeError, AttributeError) as error:  # a value, or the type of one
        raise damaged(path, f"{error}") from error


def load_array(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Map an array file or its parts, refusing what is missing, cut off or misshapen."""
    array: NDArray[Any]
    try:
        if parts := part_paths(path):
            array = load_parts(parts)
        else:
            empty = 0 in shape  # a file without elements cannot be mapped
            array = np.load(path, mmap_mode=None if empty else "r", allow_pickle=False)
    except Exception as error:  # a damaged header may raise anything that a parser can
        raise damaged(path, f"{error}") from error
    if array.shape != shape or array.dtype != dtype:
        expected = f"expected {shape} of {np.dtype(dtype)}"
        raise damaged(path, f"its shape is {array.shape} of {array.dtype}, {expected}")
    return array


def damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is damaged or incomplete ({reason}); run nodepiece tokenize again")
