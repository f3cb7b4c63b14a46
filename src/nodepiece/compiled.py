"""Numba's `njit` with a cache of compiled code that several processes may fill at once.

Numba numbers the files of a function by its signatures, 1, 2, ..., and writes which number a
signature has before the code itself. Two processes that compile different signatures at the same
time choose the same number, and a process that is killed in between leaves a number whose file is
that of earlier source: in both cases later processes run machine code of something else, with wrong
results. Here every signature, with the state of its source, has a file name of its own, and is
listed when its file is complete.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import prange
from numba.core.caching import IndexDataCacheFile

__all__ = ["njit", "prange"]


class FilePerSignature(IndexDataCacheFile):
    """The cached code of one function."""

    def save(self, key: Any, data: Any) -> None:
        listed, name = self._load_index(), self.name_of(key)
        self._save_data(name, data)
        self._save_index({**listed, key: name})
        self.remove_outdated()

    def load(self, key: Any) -> Any:
        name = self.name_of(key)
        if self._load_index().get(key) != name:
            return None  # not there, or listed by Numba's own cache
        try:
            return self._load_data(name)
        except OSError:
            return None

    def name_of(self, key: Any) -> str:
        text = repr((self._version, self._source_stamp, key))
        return str(self._data_name(int(hashlib.sha256(text.encode()).hexdigest()[:16], 16)))

    def remove_outdated(self) -> None:
        """Remove files of code that is older than its source; they would accumulate."""
        source_time = self._source_stamp[0]
        start = self._index_name.removesuffix("nbi")
        for path in Path(self._cache_path).glob("*.nbc"):
            if path.name.startswith(start):
                try:
                    if path.stat().st_mtime < source_time:
                        path.unlink()
                except OSError:
                    continue  # removed by another process


def njit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit(**options)`, with the cache above."""

    def compiled(function: Any) -> Any:
        dispatcher = numba.njit(**options)(function)
        cache = getattr(dispatcher, "_cache", None)
        files = getattr(cache, "_cache_file", None)
        if type(files) is IndexDataCacheFile:
            files.__class__ = FilePerSignature  # has the same attributes
        return dispatcher

    return compiled
