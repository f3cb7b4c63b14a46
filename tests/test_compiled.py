"""The cache of compiled code, with several processes that fill it and some that are killed."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from nodepiece.compiled import FilePerSignature, njit
from nodepiece.graph import hashing

STAMP = (1000.0, 7)  # time and size of the source


def cache(folder: Path, stamp: tuple[float, int] = STAMP) -> FilePerSignature:
    return FilePerSignature(str(folder), "kernel-1.py", stamp)


class Killed(Exception):
    pass


def test_what_was_saved_is_loaded_by_another_process(tmp_path: Path) -> None:
    cache(tmp_path).save("int32", "code for int32")
    cache(tmp_path).save("int64", "code for int64")
    assert cache(tmp_path).load("int32") == "code for int32"
    assert cache(tmp_path).load("int64") == "code for int64"
    assert cache(tmp_path).load("float32") is None


@pytest.mark.parametrize("kind", [FilePerSignature, IndexDataCacheFile])
def test_two_processes_that_compile_at_once_never_get_the_code_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Any]
) -> None:
    first, second = (kind(str(tmp_path), "kernel-1.py", STAMP) for _ in range(2))
    write = first._save_data

    def save_late(name: str, data: str) -> None:
        second.save("int64", "code for int64")  # in between
        write(name, data)

    monkeypatch.setattr(first, "_save_data", save_late)
    monkeypatch.setattr(first, "_load_index", dict)  # both began before the other was done
    monkeypatch.setattr(second, "_load_index", dict)
    first.save("int32", "code for int32")
    found = kind(str(tmp_path), "kernel-1.py", STAMP).load("int64")
    if kind is IndexDataCacheFile:
        assert found == "code for int32"  # why there is a cache of our own
    else:
        assert found in (None, "code for int64")


def test_a_process_killed_while_it_saves_leaves_no_code_of_earlier_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache(tmp_path).save("int32", "code of earlier source")
    later = cache(tmp_path, (2000.0, 7))

    def kill(*_: object) -> None:
        raise Killed

    for step in ("_save_data", "_save_index"):
        with monkeypatch.context() as context:
            context.setattr(later, step, kill)
            with pytest.raises(Killed):
                later.save("int32", "code of later source")
        assert cache(tmp_path, (2000.0, 7)).load("int32") is None


def test_code_that_numba_listed_itself_is_not_loaded(tmp_path: Path) -> None:
    IndexDataCacheFile(str(tmp_path), "kernel-1.py", STAMP).save("int32", "maybe of another one")
    assert cache(tmp_path).load("int32") is None


def test_code_older_than_its_source_is_removed(tmp_path: Path) -> None:
    other = tmp_path / "kernel-10.py.1.nbc"
    other.touch()
    cache(tmp_path).save("int32", "old")
    for path in tmp_path.glob("*.nbc"):
        os.utime(path, (1500, 1500))
    cache(tmp_path, (2000.0, 7)).save("int32", "new")
    assert cache(tmp_path, (2000.0, 7)).load("int32") == "new"
    assert len(list(tmp_path.glob("*.nbc"))) == 2 and other.exists()


def test_functions_are_compiled_with_this_cache() -> None:
    kernels = [each for each in vars(hashing).values() if hasattr(each, "py_func")]
    assert kernels
    assert all(isinstance(each._cache._cache_file, FilePerSignature) for each in kernels)


def test_no_kernel_uses_the_cache_of_numba() -> None:
    source = Path(hashing.__file__).parents[1]
    found = [
        path.name
        for path in source.rglob("*.py")
        if path.name != "compiled.py" and "from numba import njit" in path.read_text()
    ]
    assert found == []


def test_a_function_without_a_cache_is_compiled_as_ever() -> None:
    @njit()
    def doubled(values: Any) -> Any:
        return 2 * values

    assert doubled(np.float64(2)) == 4
