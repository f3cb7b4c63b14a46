"""Killed or interrupted at any moment, tokenize leaves a whole vocabulary or none."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nodepiece import fit_vocabulary, load_tokens, read_graph, save_tokens, tokenize
from nodepiece.tokenizer.settings import TokenizerSettings

# Runs tokenize and sends itself a signal after half of the n-th array file that it writes.
SIGNAL_WHILE_SAVING = """
import os, signal, sys
from nodepiece.tokenizer import array_file
number, moment = int(sys.argv[1]), int(sys.argv[2])
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the parent ignores it
write_header = array_file.npy_format.write_array_header_1_0
def write_or_die(file, header):
    global moment
    moment -= 1
    write_header(file, header)
    if moment == 0:
        file.flush()
        os.kill(os.getpid(), number)
array_file.npy_format.write_array_header_1_0 = write_or_die
sys.argv[1:] = sys.argv[3:]
from nodepiece.cli import main
main()
"""


def run_with_signal(
    number: signal.Signals, moment: int, graph: Path, output: Path
) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", SIGNAL_WHILE_SAVING, str(int(number)), str(moment)]
    return subprocess.run(
        [*program, "tokenize", graph, "-o", output, "--anchors", "1", "--anchors-per-node", "1"],
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A vocabulary of another graph, at the place where the interrupted one should go."""
    import numpy as np

    path = tmp_path / "earlier.tsv"
    path.write_text("x\tr\ty\ny\tr\tz\n")
    rng = np.random.default_rng(0)
    graph = read_graph(path)
    settings = TokenizerSettings(num_anchors=1, anchors_per_node=1)
    vocabulary = fit_vocabulary(graph, settings, rng=rng)
    save_tokens(tokenize(graph, vocabulary, rng=rng), tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("moment", [1, 3])
def test_killed_while_saving_it_leaves_no_vocabulary(
    facts: Path, tmp_path: Path, moment: int
) -> None:
    ran = run_with_signal(signal.SIGKILL, moment, facts, tmp_path / "out")

    assert ran.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()


def test_killed_while_saving_it_leaves_the_earlier_vocabulary(facts: Path, earlier: Path) -> None:
    run_with_signal(signal.SIGKILL, 5, facts, earlier)

    assert load_tokens(earlier).num_nodes == 3


@pytest.mark.parametrize("moment", [1, 5])
def test_interrupted_while_saving_it_leaves_nothing_and_says_so(
    facts: Path, tmp_path: Path, moment: int
) -> None:
    ran = run_with_signal(signal.SIGINT, moment, facts, tmp_path / "out")

    assert ran.returncode == 130
    assert ran.stderr.splitlines()[-1].startswith("stopped before the end")
    assert "Traceback" not in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["facts.tsv"]


def test_interrupted_while_reading_it_stops_with_status_130(tmp_path: Path) -> None:
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from nodepiece.cli import main\nmain()"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program, "tokenize", "-", "-o", tmp_path / "out"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdin is not None and running.stderr is not None
    said = os.read(running.stderr.fileno(), 100)
    assert said.startswith(b"reading standard input")
    running.stdin.write(b"a\tr\tb\n")
    running.stdin.flush()
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=600)

    assert running.returncode == 130
    assert b"stopped before the end" in rest
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", [0.2, 0.8, 1.6])
def test_killed_at_any_moment_it_leaves_a_whole_vocabulary_or_none(
    facts: Path, tmp_path: Path, seconds: float
) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "nodepiece", "tokenize", "countries", "-o", tmp_path / "out"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        running.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()

    if (tmp_path / "out").exists():
        assert load_tokens(tmp_path / "out").num_nodes == 831


def test_a_closed_pipe_is_no_trouble(earlier: Path) -> None:
    program = f"{sys.executable} -m nodepiece inspect {earlier} --json | head -c 1"
    ran = subprocess.run(program, shell=True, capture_output=True, timeout=600)

    assert ran.stdout == b"{"
    assert ran.stderr == b""


# Presses Ctrl-C while nodepiece.cli is being imported.
INTERRUPT_IMPORT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class PressCtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "nodepiece.commands.console":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, PressCtrlC())
from nodepiece.__main__ import main
main()
"""


def test_interrupted_while_it_starts_it_says_so_in_one_sentence() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPT_IMPORT], capture_output=True, text=True, timeout=60
    )

    assert ran.returncode == 130
    assert ran.stderr == "stopped before the end; nothing half-written is left behind\n"
