"""A disk that becomes full while tokens are written is an error, and not the end of the process."""

import errno
from pathlib import Path

import numpy as np
import pytest
from tests.commands.conftest import Nodepiece
from tests.engines.small_disk import small_disk

from nodepiece.engines.spark_vocabulary import new_array
from nodepiece.tokenizer.array_parts import PART_UNIT


@pytest.mark.parametrize("part_bytes", [None, PART_UNIT])
def test_the_space_of_an_array_is_reserved_before_it_is_mapped(
    tmp_path: Path, part_bytes: int | None
) -> None:
    with small_disk(tmp_path / "disk", free=1 << 20) as disk:
        new_array(disk / "small.npy", (100_000,), np.int32, part_bytes)[:] = 1
        with pytest.raises(OSError, match="No space left on device") as caught:
            new_array(disk / "large.npy", (1_000_000,), np.int32, part_bytes)
        assert caught.value.errno == errno.ENOSPC


def test_tokenizing_to_a_full_disk_is_one_sentence(nodepiece: Nodepiece, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", free=20_000) as disk:
        done = nodepiece("tokenize", "countries", "-o", disk / "vocabulary")
        assert done.status == 1 and "No space left on device" in done.err, done.err
        assert "Traceback" not in done.err
        assert [path.name for path in disk.iterdir()] == ["rest"]
