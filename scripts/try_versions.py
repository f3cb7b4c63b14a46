"""Run tests with the lowest or the newest versions of the dependencies, on any Python.

python -m scripts.try_versions lowest --python 3.11
python -m scripts.try_versions newest --python 3.13 tests

uv makes an environment in build/versions and installs nodepiece there with the lower bounds of
pyproject.toml, or with the newest versions that the ranges allow; it finds or fetches the Python.
Without paths, TESTS are run: some of every stage. Warnings of old versions about their own
dependencies are no failures. UV_TORCH_BACKEND=cpu takes PyTorch without CUDA from its own index.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / "build" / "versions"
EXTRAS = "rdf,tensorboard,index,serve,figures,tune,test"
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
IGNORED = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
TESTS = (
    "tests/golden",
    "tests/test_api.py",
    "tests/data/test_any_graph.py",
    "tests/data/test_read_formats.py",
    "tests/data/test_table_file.py",
    "tests/graph/test_nearest.py",
    "tests/tokenizer/test_tokens.py",
    "tests/tokenizer/test_storage.py",
    "tests/encoders/test_node_embedding.py",
    "tests/encoders/test_compgcn.py",
    "tests/decoders/test_triple_scores.py",
    "tests/evaluation/test_ranking.py",
    "tests/training/test_trainer.py",
    "tests/inference/test_update.py",
    "tests/commands/test_cli_inspect.py",
    "tests/commands/test_cli_predict.py",
    "tests/commands/test_cli_train.py",
    "tests/report/test_map.py",
    "tests/report/test_sweep.py",
    "tests/serving/test_reading.py",
)


def install(uv: str, versions: str, python: str) -> Path:
    """The interpreter of an environment with the lowest or newest versions."""
    folder = ENVIRONMENTS / f"{versions}-{python.replace('/', '_')}"
    subprocess.run([uv, "venv", "--clear", "--python", python, str(folder)], check=True)
    command = [uv, "pip", "install", "--python", str(folder / "bin" / "python")]
    command += ["--resolution", RESOLUTIONS[versions]]
    command += ["--only-binary", ":all:", "--no-binary", "nodepiece"]  # nothing is compiled
    subprocess.run([*command, "-e", f".[{EXTRAS}]"], cwd=ROOT, check=True)
    return folder / "bin" / "python"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", choices=RESOLUTIONS)
    parser.add_argument("tests", nargs="*", default=TESTS, help="paths for pytest")
    parser.add_argument("--python", default="3.11", help="a version, or a path")
    options = parser.parse_intermixed_args()
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("this needs uv: pip install uv")
    python = install(uv, options.versions, options.python)
    subprocess.run([uv, "pip", "list", "--python", str(python)], check=True)
    ignored = [word for name in IGNORED for word in ("-W", f"ignore::{name}")]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [str(python), "-m", "pytest", *ignored, *options.tests]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
