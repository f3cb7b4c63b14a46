"""A dataset by whatever the user calls it: a path, a benchmark's name, or countries."""

from difflib import get_close_matches
from pathlib import Path

from nodepiece.data.benchmarks import BENCHMARKS
from nodepiece.data.dataset import Dataset
from nodepiece.data.embedded import load_countries
from nodepiece.data.load import load_benchmark
from nodepiece.data.read import read_dataset
from nodepiece.errors import InputError

EMBEDDED = "countries"


def open_dataset(source: str, *, data: Path | None) -> Dataset:
    """Read a split dataset. A path that exists wins over a name."""
    if Path(source).exists():
        return read_dataset(source)
    check_known(source)
    return load_countries() if source == EMBEDDED else load_benchmark(source, data)


def check_known(source: str) -> None:
    """Refuse what is not a path, as it does not exist, and not a name either."""
    known = [EMBEDDED, *BENCHMARKS]
    if source in known:
        return
    near = get_close_matches(source.casefold(), known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`nodepiece datasets` lists the names"
    raise InputError(
        f"{source} is neither a file, nor a folder, nor the name of a known dataset; {hint}"
    )
