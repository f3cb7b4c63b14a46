"""The named benchmarks: what is known about each, and where its files are searched."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from nodepiece.data.dataset import SPLITS
from nodepiece.errors import InputError

TRIPLE_SUFFIXES = (".tsv.gz", ".tsv", ".txt.gz", ".txt", ".csv.gz", ".csv")  # read in this order

LINKS = "link prediction"
INDUCTIVE = "inductive link prediction"
CLASSES = "node classification"
OUT_OF_SAMPLE = "out-of-sample link prediction"
OGB = "link prediction (OGB)"

OGB_FILES = {  # part -> names in the layout of the Open Graph Benchmark, the preferred first
    "train": ("split/time/train.pt",),
    "valid": ("split/time/valid.pt",),
    "test": ("split/time/test.pt",),
    "nodes": ("mapping/nodeidx2entityid.csv.gz",),
    "relations": ("mapping/reltype2relid.csv.gz", "mapping/relidx2relid.csv.gz"),
}


@dataclass(frozen=True)
class Layout:
    """A subfolder of a data folder, and the file names accepted in it for each part."""

    folder: str  # relative to the data folder; "." is that folder itself
    files: Mapping[str, tuple[str, ...]]  # part, such as "train" -> names, the preferred first


@dataclass(frozen=True)
class Benchmark:
    """A public dataset with a name: its task, the contents of its files, and its source."""

    name: str
    task: str  # one of the five constants above: it decides which loader reads it
    layouts: tuple[Layout, ...]  # ours first, then the public release's own
    num_nodes: int | None  # of the training graph; None where no exact number is published
    num_relations: int
    sizes: Mapping[str, int]  # part -> facts in its file; of a "_labels" part: labelled nodes
    source: str  # authors, release and licence in one sentence
    num_unseen: Mapping[str, int] = field(default_factory=dict)
    """Facts of valid and test with nodes that train lacks; the paper does not count them."""
    num_new_nodes: Mapping[str, int] = field(default_factory=dict)
    """Nodes of the "inference" graph, or unseen nodes of "valid" and "test"."""


@dataclass(frozen=True)
class Location:
    """A local folder that has some or all files of a benchmark."""

    benchmark: Benchmark
    folder: Path
    files: Mapping[str, Path]  # part -> file
    missing: Mapping[str, Path]  # part -> the expected file, for parts without one


def benchmark_named(name: str) -> Benchmark:
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    near = get_close_matches(name.casefold(), BENCHMARKS, n=4, cutoff=0.5)
    near += [known for known in BENCHMARKS if name.casefold() in known and known not in near]
    hint = f"did you mean {' or '.join(near[:5])}?" if near else f"known: {', '.join(BENCHMARKS)}"
    raise InputError(f"unknown benchmark {name!r}; {hint}")


def cache_folder() -> Path:
    """The folder that `nodepiece datasets fetch` writes to: in $XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nodepiece" / "datasets"


def search_places(data: Path | None) -> tuple[Path, ...]:
    """The folders searched, in order: the one given, $NODEPIECE_DATA, the user's cache."""
    if data is not None and not data.is_dir():
        raise InputError(f"the data folder {data} does not exist; create it or name another one")
    variable = os.environ.get("NODEPIECE_DATA")
    given = ([data] if data is not None else []) + ([Path(variable)] if variable else [])
    return tuple(dict.fromkeys([*given, cache_folder()]))


def locations(benchmark: Benchmark, places: tuple[Path, ...]) -> Iterator[Location]:
    """Every folder with at least one file of the benchmark, complete or not, in search order."""
    for place in places:
        for layout in benchmark.layouts:
            folder = place / layout.folder
            files = {
                part: folder / name
                for part, names in layout.files.items()
                if (name := next((n for n in names if (folder / n).is_file()), None))
            }
            if files:
                missing = {
                    part: folder / names[0]
                    for part, names in layout.files.items()
                    if part not in files
                }
                yield Location(benchmark, folder, files, missing)


def locate_benchmark(name: str, *, data: Path | None) -> Location:
    """The first complete copy of a benchmark, or an InputError that says how to get one."""
    benchmark = benchmark_named(name)
    places = search_places(data)
    incomplete = []
    for location in locations(benchmark, places):
        if not location.missing:
            return location
        incomplete.append(f"{location.folder} lacks {', '.join(location.missing)}")
    expected = " or ".join(_expected(layout) for layout in benchmark.layouts)
    raise InputError(
        f"benchmark {name} was not found in {', '.join(map(str, places))}"
        + (f" ({'; '.join(incomplete)})" if incomplete else "")
        + f"; fetch it with `nodepiece datasets fetch {name}`, or put there {expected}"
    )


def _expected(layout: Layout) -> str:
    """The expected files in words: "umls/ with train.tsv.gz, valid.tsv.gz, test.tsv.gz"."""
    names = ", ".join(names[0] for names in layout.files.values())
    return names if layout.folder == "." else f"{layout.folder}/ with {names}"


def _triples(stem: str) -> tuple[str, ...]:
    return tuple(stem + suffix for suffix in TRIPLE_SUFFIXES)


def _split_files(suffixes: tuple[str, ...] = TRIPLE_SUFFIXES) -> dict[str, tuple[str, ...]]:
    return {part: tuple(part + suffix for suffix in suffixes) for part in SPLITS}


def _transductive(
    name: str,
    public: str,
    counts: tuple[int, int, int, int, int],  # nodes, relations, train, valid, test
    source: str,
    *,
    unseen: tuple[int, int] = (0, 0),  # valid, test
) -> Benchmark:
    """`public`: the folder in which the public release keeps its train.txt."""
    num_nodes, num_relations, *sizes = counts
    layouts = (Layout(name, _split_files()), Layout(public, _split_files((".txt",))))
    return Benchmark(
        name,
        LINKS,
        layouts,
        num_nodes,
        num_relations,
        dict(zip(SPLITS, sizes, strict=True)),
        source,
        num_unseen=dict(zip(SPLITS[1:], unseen, strict=True)),
    )


def _inductive(graph: str, public: str, version: int, counts: tuple[int, ...]) -> Benchmark:
    """`counts`: training nodes, relations, train, valid, test; inference nodes, its three."""
    num_nodes, num_relations, *training = counts[:5]
    num_inference_nodes, *inference = counts[5:]
    parts = [f"{half}/{split}" for half in ("training", "inference") for split in SPLITS]
    # GraIL keeps the two graphs side by side: fb237_v1/train.txt, fb237_v1_ind/train.txt
    folders = {"training": f"{public}_v{version}", "inference": f"{public}_v{version}_ind"}
    released = {
        part: (f"{folders[part.split('/')[0]]}/{part.split('/')[1]}.txt",) for part in parts
    }
    name = f"inductive/{graph}-v{version}"
    return Benchmark(
        name,
        INDUCTIVE,
        (Layout(name, {part: _triples(part) for part in parts}), Layout(".", released)),
        num_nodes,
        num_relations,
        dict(zip(parts, training + inference, strict=True)),
        "Teru, Denis and Hamilton, 2020; release of GraIL (kkteru/grail)",
        num_new_nodes={"inference": num_inference_nodes},
    )


def _ilpc_small() -> Benchmark:
    sizes = {
        "training/train": 78_616,
        "inference/train": 20_960,
        "inference/valid": 2_908,
        "inference/test": 2_902,
    }
    released = {
        "training/train": ("train.txt",),
        "inference/train": ("inference.txt",),
        "inference/valid": ("inference_validation.txt",),
        "inference/test": ("inference_test.txt",),
    }
    name = "inductive/ilpc-small"
    return Benchmark(
        name,
        INDUCTIVE,
        (Layout(name, {part: _triples(part) for part in sizes}), Layout("data/small", released)),
        10_230,
        48,
        sizes,
        "Galkin, Berrendorf and Hoyt, 2022; pykeen/ilpc2022 (CC0)",
        num_new_nodes={"inference": 6_653},
    )


def _out_of_sample(
    name: str,
    public: str,
    num_nodes: int | None,
    counts: tuple[int, int, int, int],  # relations, facts of train, valid, test
    source: str,
    *,
    new_nodes: tuple[int, int],  # valid, test
) -> Benchmark:
    num_relations, *sizes = counts
    evaluated = {part: (f"{part}.json.gz", f"{part}.json") for part in SPLITS[1:]}
    ours = {"train": _triples("train")} | evaluated
    released = {"train": ("train.txt",)} | {part: (f"{part}.json",) for part in SPLITS[1:]}
    return Benchmark(
        name,
        OUT_OF_SAMPLE,
        (Layout(name, ours), Layout(public, released)),
        num_nodes,
        num_relations,
        dict(zip(SPLITS, sizes, strict=True)),
        source,
        num_new_nodes=dict(zip(SPLITS[1:], new_nodes, strict=True)),
    )


def _wd50k() -> Benchmark:
    labels = {
        f"{part}_labels": (f"{part}_labels.json.gz", f"{part}_labels.json") for part in SPLITS
    }
    released = {
        f"{part}_labels": (f"nc_{word}_so_labels.json",)
        for part, word in zip(SPLITS, ("train", "val", "test"), strict=True)
    }
    return Benchmark(
        "wd50k-nc",
        CLASSES,
        (
            Layout("wd50k-nc", {"edges": _triples("edges")} | labels),
            Layout("wd50k/triples", {"edges": ("nc_edges.txt",)} | released),
        ),
        40_324,
        482,
        {"edges": 220_632, "train_labels": 30_571, "valid_labels": 3_790, "test_labels": 3_832},
        "Galkin et al., 2020 and 2022; WD50K (CC BY 4.0), labels of NodePiece (MIT); the counts "
        "are of a rebuilt export and the authors' file may differ",
    )


def _wikikg2() -> Benchmark:
    return Benchmark(
        "ogbl-wikikg2",
        OGB,
        (Layout("ogbl-wikikg2", OGB_FILES), Layout("ogbl_wikikg2", OGB_FILES)),
        2_500_604,
        535,
        {"train": 16_109_182, "valid": 429_456, "test": 598_543},
        "Hu et al., 2020; Open Graph Benchmark, from Wikidata (CC0)",
    )


CONVE = "release of ConvE (MIT)"
CODEX = "Safavi and Koutra, 2020; tsafavi/codex (MIT)"
OOS_KGE = "Albooyeh, Goel and Kazemi, 2020; BorealisAI/OOS-KGE (CC BY-NC-SA 4.0)"
BOUCHARD = f"Bouchard, Singh and Trouillon, 2015; {CONVE}"
KEMP = f"Kemp et al., 2006; {CONVE}"
TOUTANOVA = f"Toutanova and Chen, 2015; {CONVE}"
DETTMERS = f"Dettmers et al., 2018; {CONVE}"
MAHDISOLTANI = f"Mahdisoltani, Biega and Suchanek, 2015; {CONVE}"
OYAGO = "Galkin et al., 2022; release of NodePiece"

# In each row: nodes, relations, train, valid, test; for inductive ones then the inference graph's
# nodes, train, valid, test. Lines of the files, before facts with unseen nodes are left out.
_ALL = (
    _transductive(
        "fb15k-237",
        "FB15k-237",
        (14_505, 237, 272_115, 17_535, 20_466),
        TOUTANOVA,
        unseen=(9, 28),
    ),
    _transductive(
        "wn18rr", "WN18RR", (40_559, 11, 86_835, 3_034, 3_134), DETTMERS, unseen=(210, 210)
    ),
    _transductive("codex-s", "triples/codex-s", (2_034, 42, 32_888, 1_827, 1_828), CODEX),
    _transductive("codex-m", "triples/codex-m", (17_050, 51, 185_584, 10_310, 10_311), CODEX),
    _transductive("codex-l", "triples/codex-l", (77_951, 69, 551_193, 30_622, 30_622), CODEX),
    _transductive(
        "yago3-10",
        "YAGO3-10",
        (123_143, 37, 1_079_040, 5_000, 5_000),
        MAHDISOLTANI,
        unseen=(22, 18),
    ),
    _transductive("umls", "UMLS", (135, 46, 5_216, 652, 661), KEMP),
    _transductive("kinship", "Kinship", (104, 25, 8_544, 1_068, 1_074), KEMP),
    _transductive("nations", "Nations", (14, 55, 1_592, 199, 201), KEMP),
    _transductive("countries-s1", "countries/countries_S1", (271, 2, 1_111, 24, 24), BOUCHARD),
    _transductive("countries-s2", "countries/countries_S2", (271, 2, 1_063, 24, 24), BOUCHARD),
    _transductive("countries-s3", "countries/countries_S3", (271, 2, 985, 24, 24), BOUCHARD),
    _inductive("fb15k-237", "fb237", 1, (1594, 180, 4245, 489, 492, 1093, 1993, 206, 205)),
    _inductive("fb15k-237", "fb237", 2, (2608, 200, 9739, 1166, 1180, 1660, 4145, 469, 478)),
    _inductive("fb15k-237", "fb237", 3, (3668, 215, 17986, 2194, 2214, 2501, 7406, 866, 865)),
    _inductive("fb15k-237", "fb237", 4, (4707, 219, 27203, 3352, 3361, 3051, 11714, 1416, 1424)),
    _inductive("wn18rr", "WN18RR", 1, (2746, 9, 5410, 630, 638, 922, 1618, 185, 188)),
    _inductive("wn18rr", "WN18RR", 2, (6954, 10, 15262, 1838, 1868, 2757, 4011, 411, 441)),
    _inductive("wn18rr", "WN18RR", 3, (12078, 11, 25901, 3097, 3152, 5084, 6327, 538, 605)),
    _inductive("wn18rr", "WN18RR", 4, (3861, 9, 7940, 934, 968, 7084, 12334, 1394, 1429)),
    _inductive("nell-995", "nell", 1, (3103, 14, 4687, 414, 439, 225, 833, 101, 100)),
    _inductive("nell-995", "nell", 2, (2564, 88, 8219, 922, 968, 2086, 4586, 459, 476)),
    _inductive("nell-995", "nell", 3, (4647, 142, 16393, 1851, 1873, 3566, 8048, 811, 809)),
    _inductive("nell-995", "nell", 4, (2092, 76, 7546, 876, 867, 2795, 7073, 716, 731)),
    _ilpc_small(),
    _wd50k(),
    _out_of_sample(
        "own18rr",
        "WN18RR/processed",
        32_270,
        (11, 60_608, 12_760, 12_440),
        OOS_KGE,
        new_nodes=(2_848, 2_848),
    ),
    _out_of_sample(
        "ofb15k-237",
        "FB15k-237/processed",
        None,  # the paper says 11k
        (234, 193_490, 44_601, 54_082),
        OOS_KGE,
        new_nodes=(1_395, 1_395),
    ),
    _out_of_sample(
        "oyago3-10",
        "oyago",
        None,  # the paper says 117k
        (37, 988_124, 47_112, 51_180),
        OYAGO,
        new_nodes=(2_960, 2_959),
    ),
    _wikikg2(),
)

BENCHMARKS: dict[str, Benchmark] = {benchmark.name: benchmark for benchmark in _ALL}
