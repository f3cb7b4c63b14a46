import gzip
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.data.written_facts import facts_of

from nodepiece.data.array_pickle import CALLED
from nodepiece.data.load import load_training_graph
from nodepiece.data.torch_arrays import load_arrays
from nodepiece.errors import InputError

# Q1 -P31-> Q2, Q3 -P17-> Q1
TRAIN = {"head": np.array([0, 2]), "relation": np.array([0, 1]), "tail": np.array([1, 0])}
NODES = "node idx,entity id\n0,Q1\n1,Q2\n2,Q3\n"
RELATIONS = "reltype,rel id\n0,P31\n1,P17\n"


def write_ogb(place: Path, train: Any = TRAIN, nodes: str = NODES, **save: Any) -> Path:
    folder = place / "ogbl_wikikg2"
    for name in ("split/time", "mapping"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for part in ("train", "valid", "test"):
        torch.save(train, folder / f"split/time/{part}.pt", **save)
    for name, text in (("nodeidx2entityid", nodes), ("reltype2relid", RELATIONS)):
        (folder / f"mapping/{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def facts(place: Path) -> list[tuple[str, str, str]]:
    return facts_of(load_training_graph("ogbl-wikikg2", place)[0])


@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "before torch 1.6"])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_training_facts_are_read_with_their_wikidata_names(
    tmp_path: Path, is_zip: bool, protocol: int
) -> None:
    write_ogb(tmp_path, _use_new_zipfile_serialization=is_zip, pickle_protocol=protocol)
    assert facts(tmp_path) == [("Q1", "P31", "Q2"), ("Q3", "P17", "Q1")]


def test_arrays_pickled_by_an_older_numpy_are_read(tmp_path: Path) -> None:
    folder = write_ogb(tmp_path, _use_new_zipfile_serialization=False)
    path = folder / "split/time/train.pt"
    path.write_bytes(path.read_bytes().replace(b"numpy._core.multi", b"numpy.core.multi"))
    assert len(facts(tmp_path)) == 2


def test_tensors_are_read_like_arrays_strides_and_all(tmp_path: Path) -> None:
    content = {"a": torch.arange(12).view(3, 4).T[1:], "b": torch.arange(4, dtype=torch.int32)[2:]}
    torch.save(content, tmp_path / "x.pt")
    read = load_arrays(tmp_path / "x.pt")
    for key, tensor in content.items():
        np.testing.assert_array_equal(read[key], tensor.numpy())


@pytest.mark.parametrize("cut", [0, 1, 40, -30])
def test_a_file_cut_short_is_refused(tmp_path: Path, cut: int) -> None:
    path = write_ogb(tmp_path) / "split/time/train.pt"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match="cannot be read as plain arrays"):
        facts(tmp_path)


def test_tensors_are_read_like_arrays(tmp_path: Path) -> None:
    write_ogb(tmp_path, {role: torch.from_numpy(ids) for role, ids in TRAIN.items()})
    assert len(facts(tmp_path)) == 2


def test_names_are_ordered_by_their_index(tmp_path: Path) -> None:
    write_ogb(tmp_path, nodes="node idx,entity id\n2,Q3\n0,Q1\n1,Q2\n")
    assert facts(tmp_path)[1] == ("Q3", "P17", "Q1")


class Mischief:
    """Unpickled without care, this creates a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


@pytest.mark.parametrize("is_zip", [True, False])
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_that_would_run_code_is_refused_unrun(
    tmp_path: Path, is_zip: bool, protocol: int
) -> None:
    target = tmp_path / "was-here"
    train = TRAIN | {"x": Mischief(target)}
    write_ogb(tmp_path, train, _use_new_zipfile_serialization=is_zip, pickle_protocol=protocol)
    with pytest.raises(InputError, match=r"train\.pt cannot be read as plain arrays"):
        facts(tmp_path)
    assert not target.exists()


def write_pickle(path: Path, program: bytes, *, compression: int = zipfile.ZIP_STORED) -> Path:
    """A file as torch.save writes it, but for what is pickled; one storage of a single number."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("x/data.pkl", program)
        archive.writestr("x/data/0", bytes(8))
    return path


class Named:
    """Pickled as a call of what another module has under a name."""

    def __init__(self, module: str, name: str, *arguments: object, state: object = None) -> None:
        self.module, self.name, self.arguments, self.state = module, name, arguments, state

    def opcodes(self) -> bytes:
        """Protocol 0 in part: the name, its arguments, the call, and its state."""
        call = f"c{self.module}\n{self.name}\n".encode()
        call += pickle.dumps(self.arguments, 2)[2:-1] + pickle.REDUCE
        return call if self.state is None else call + pickle.dumps(self.state, 2)[2:-1] + b"b"


STORAGE = (
    b"(X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ"
)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(b"cbuiltins\neval\n(X\x01\x00\x00\x001tR.", id="a function"),
        pytest.param(b"\x80\x04\x8c\x02os\x8c\x06system\x93(\x8c\x01xtR.", id="by stack"),
        pytest.param(b"(cos\nsystem\nX\x01\x00\x00\x00xo.", id="as an object"),
        pytest.param(b"(X\x01\x00\x00\x00xios\nsystem\n.", id="as an instance"),
        pytest.param(
            b"\x80\x04\x8c\x05numpy\x8c\x10dtype.__reduce__\x93.", id="an attribute of a known name"
        ),
        pytest.param(Named("numpy", "dtype", "O8", False, True).opcodes() + b".", id="objects"),
        pytest.param(Named("numpy", "dtype", "i8,O").opcodes() + b".", id="objects in parts"),
        pytest.param(
            Named("numpy", "dtype", "V8", state=(3, "|", None, ("f",), {}, 8, 1, 0)).opcodes()
            + b".",
            id="a type that lies",
        ),
        pytest.param(STORAGE + b"(tb.", id="the state of a storage"),
    ],
)
def test_what_is_no_array_is_refused_however_it_is_called(tmp_path: Path, program: bytes) -> None:
    with pytest.raises(InputError, match="cannot be read as plain arrays"):
        load_arrays(write_pickle(tmp_path / "x.pt", program))


def test_a_pickle_cannot_change_what_reads_the_next_one(tmp_path: Path) -> None:
    defaults = pickle.dumps((None, {"__defaults__": (1, 2), "note": 3}), 2)[2:-1]
    program = b"}X\x01\x00\x00\x00ac_codecs\nencode\n" + defaults + b"bs."
    with pytest.raises(InputError):
        load_arrays(write_pickle(tmp_path / "x.pt", program))
    for function in CALLED.values():
        assert not getattr(function, "__defaults__", None) and not hasattr(function, "note")


def tensor(size: int, stride: int) -> bytes:
    shape = pickle.dumps((size,), 2)[2:-1] + pickle.dumps((stride,), 2)[2:-1]
    call = b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + b"K\x00" + shape + b"tR"
    return b"}X\x04\x00\x00\x00head" + call + b"s."


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (tensor(2**40, 0), "larger than its storage"),
        (tensor(2, 1), "larger than its storage"),
        (b"}X\x01\x00\x00\x00a(K\x01K\x02ls.", "'a' is a list, not an array"),
        (b"Nr" + (2**27).to_bytes(4, "little") + b".", "holds a NoneType"),  # a far note
        (b"\x8e" + (2**60).to_bytes(8, "little") + b"x.", "cannot be read as plain arrays"),
        (b"\x96" + (2**28).to_bytes(8, "little") + b"x.", "cannot be read as plain arrays"),
        (b"\x80\x04\x95" + (2**60).to_bytes(8, "little") + b"N.", "holds a NoneType"),
    ],
    ids=["repeated", "longer", "list", "note", "bytes", "bytearray", "frame"],
)
def test_a_small_file_cannot_ask_for_much_memory(
    tmp_path: Path, program: bytes, message: str
) -> None:
    path = write_pickle(tmp_path / "x.pt", program)
    tracemalloc.start()
    with pytest.raises(InputError, match=message):
        load_arrays(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


def test_a_storage_that_many_tensors_share_is_read_once(tmp_path: Path) -> None:
    base = torch.arange(100_000)
    torch.save({str(i): base[i:] for i in range(50)}, tmp_path / "x.pt")
    tracemalloc.start()
    read = load_arrays(tmp_path / "x.pt")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(read["3"], base[3:].numpy())
    assert peak < 4 * base.nbytes


def test_what_is_compressed_is_refused(tmp_path: Path) -> None:
    path = write_pickle(tmp_path / "x.pt", b"}.", compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="is compressed"):
        load_arrays(path)


def test_a_zip_of_something_else_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as archive:
        archive.writestr("readme", "hello")
    with pytest.raises(InputError, match=r"was not written by torch\.save"):
        load_arrays(tmp_path / "x.pt")


@pytest.mark.parametrize("dtype", [">i8", "<i4", "i2", "<f8"])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_arrays_of_any_byte_order_and_layout_are_read(
    tmp_path: Path, dtype: str, protocol: int
) -> None:
    table = np.arange(6).reshape(2, 3).astype(dtype)
    content = {"rows": table, "columns": np.asfortranarray(table), "none": table[:0]}
    torch.save(content, tmp_path / "x.pt", pickle_protocol=protocol)
    for key, array in load_arrays(tmp_path / "x.pt").items():
        np.testing.assert_array_equal(array, content[key])


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ({"head": np.array([0])}, "has no 'relation'"),
        (TRAIN | {"tail": np.array([1])}, "differ in length"),
        (TRAIN | {"tail": np.array([0.5, 1.0])}, "'tail' is not a column of integers"),
        (TRAIN | {"tail": np.array([1, 3])}, "outside the graph of 3 nodes"),
        (TRAIN | {"tail": np.array([1, 2**32])}, "outside the graph of 3 nodes"),
        ([1, 2], "holds a list"),
    ],
)
def test_unfit_content_is_refused(tmp_path: Path, train: Any, message: str) -> None:
    write_ogb(tmp_path, train)
    with pytest.raises(InputError, match=message):
        facts(tmp_path)


@pytest.mark.parametrize("nodes", ["idx,id\n0,Q1\n2,Q3\n", "idx,id\n0,Q1\nx,Q2\n", "idx\n0\n1\n"])
def test_a_damaged_mapping_is_refused(tmp_path: Path, nodes: str) -> None:
    write_ogb(tmp_path, nodes=nodes)
    with pytest.raises(InputError, match=r"nodeidx2entityid\.csv\.gz"):
        facts(tmp_path)
