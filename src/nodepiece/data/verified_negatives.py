"""False facts that come with a dataset, checked by people: CoDEx has them."""

from pathlib import Path

from nodepiece.data.benchmarks import BENCHMARKS, locations, search_places
from nodepiece.data.formats import known_endings
from nodepiece.data.input_file import without_gz


def verified_negatives(source: str, split: str, *, data: Path | None = None) -> Path | None:
    """The file of false facts beside those of a split, such as valid_negatives.tsv.gz.

    `source` is the name of a benchmark, of which the first copy with such a file is taken, or a
    folder. None: there is no such file.
    """
    folders = [Path(source)] if Path(source).is_dir() else []
    if source in BENCHMARKS:
        places = search_places(data)
        folders += [found.folder for found in locations(BENCHMARKS[source], places)]
    for folder in folders:
        for path in sorted(folder.iterdir()):
            plain = Path(without_gz(path.name.lower()))
            if plain.stem == f"{split}_negatives" and plain.suffix in known_endings():
                return path
    return None
