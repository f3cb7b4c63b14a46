"""From a seed and a number to an input, and what came of it."""

import shutil
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz.commands import COMMAND_KINDS
from tests.fuzz.folders import FOLDERS
from tests.fuzz.readers import READERS

from nodepiece.errors import InputError

Kind = Callable[[Random, Path, Path], None]  # random numbers, materials, an empty folder

KINDS: dict[str, Kind] = {**READERS, **FOLDERS, **COMMAND_KINDS}
WEIGHTS = {"command": 6, "run": 4, "updates": 4, "graph file": 4, ".pt file": 2}  # of others: 1
LONGEST_SENTENCE = 2_000  # characters; names in it may be long


@dataclass(frozen=True)
class Outcome:
    number: int
    kind: str
    result: str  # "valid", "refused", or "failed"
    detail: str = ""  # the sentence, or the traceback


def random_of(seed: int, number: int) -> Random:
    return Random(f"{seed}/{number}")


def kind_of(rng: Random) -> str:
    names = tuple(KINDS)
    return rng.choices(names, [WEIGHTS.get(name, 1) for name in names])[0]


def run_case(seed: int, number: int, materials: Path) -> Outcome:
    """Make one input in a separate folder, read it, and return the outcome."""
    rng = random_of(seed, number)
    kind = kind_of(rng)
    place = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        KINDS[kind](rng, materials, place)
    except InputError as error:
        sentence = str(error)
        if not sentence.strip() or "\n" in sentence or len(sentence) > LONGEST_SENTENCE:
            return Outcome(number, kind, "failed", f"not one sentence: {sentence[:500]!r}")
        return Outcome(number, kind, "refused", sentence)
    except BaseException:
        return Outcome(number, kind, "failed", traceback.format_exc(limit=-12)[-4000:])
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Outcome(number, kind, "valid")
