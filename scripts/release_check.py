"""Check that the built package works: wheel and sdist, installed without the repository.

python -m scripts.release_check

Builds the sdist from the tracked files and the wheel from the unpacked sdist, compares the files of
the package with those of the repository, installs the wheel into an empty environment that finds
its dependencies in this one, and runs `nodepiece demo` in an empty folder.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])('out'))"


def tracked_files() -> list[str]:
    """The files of the repository, also new ones that are not ignored."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in found.stdout.splitlines() if (ROOT / path).is_file()]


def build(folder: Path, what: str) -> Path:
    """Build `build_sdist` or `build_wheel` of the sources in a folder."""
    (folder / "out").mkdir(exist_ok=True)
    command = [sys.executable, "-c", BUILD, what]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if built.returncode:
        sys.exit(built.stdout + built.stderr)
    return folder / "out" / built.stdout.splitlines()[-1]


def missing_files(wheel: Path) -> list[str]:
    """Files of the package that the wheel lacks."""
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    files = [path.removeprefix("src/") for path in tracked_files() if path.startswith("src/")]
    return [path for path in files if path not in packed]


def make_environment(folder: Path, wheel: Path) -> Path:
    """An environment with nothing but the wheel, which finds dependencies in this one."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    here = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site_packages / "dependencies.pth").write_text("\n".join(sorted(here)) + "\n")
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", str(wheel)], check=True)
    return python


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for path in tracked_files():
            (folder / "source" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / "source" / path)
        sdist = build(folder / "source", "build_sdist")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "unpacked", filter="data")
        (unpacked,) = (folder / "unpacked").iterdir()
        wheel = build(unpacked, "build_wheel")
        if missing := missing_files(wheel):
            sys.exit(f"{wheel.name} lacks {', '.join(missing)}; see package-data in pyproject.toml")
        print(f"built {sdist.name} and {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
        python = make_environment(folder / "environment", wheel)
        empty = folder / "empty"
        empty.mkdir()
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        where = [str(python), "-c", "import nodepiece; print(nodepiece.__file__)"]
        found = subprocess.run(where, cwd=empty, env=environment, check=True, capture_output=True)
        if str(folder) not in found.stdout.decode():
            sys.exit(f"the wheel is not what is imported: {found.stdout.decode()}")
        command = [str(python.parent / "nodepiece"), "demo"]
        subprocess.run(command, cwd=empty, env=environment, check=True)
        print("the demo ran from the wheel, in an empty folder")


if __name__ == "__main__":
    main()
