from pathlib import Path

import pytest

from nodepiece.data.json_file import read_json
from nodepiece.errors import InputError


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_that_is_nested_too_deeply_is_refused(tmp_path: Path, opening: str) -> None:
    (tmp_path / "labels.json").write_text(opening * 100_000)
    with pytest.raises(InputError, match=r"labels\.json cannot be read as JSON"):
        read_json(tmp_path / "labels.json")
