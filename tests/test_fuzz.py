"""A few hundred of the inputs that `make fuzz` generates."""

import subprocess
import sys
from pathlib import Path

from tests.fuzz.cases import kind_of, random_of

ROOT = Path(__file__).parent.parent


def test_bad_inputs_end_in_a_result_or_in_one_sentence() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--seed", "1", "--inputs", "300"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_an_input_is_the_same_in_every_run() -> None:
    first, second = random_of(0, 17), random_of(0, 17)
    assert kind_of(first) == kind_of(second)
    assert first.random() == second.random() != random_of(1, 17).random()
