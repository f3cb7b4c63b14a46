"""Run the notebooks of docs/notebooks and store what they print.

python -m scripts.run_notebooks
"""

import re
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
SECONDS = 600  # for one cell, on a busy machine
TEMPORARY = re.compile(re.escape(gettempdir()) + r"/[\w.-]+/?")


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> Any:
    """A notebook with what its cells print now; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    folder = {"metadata": {"path": str(path.parent)}}  # where Jupyter would run it
    client = NotebookClient(
        notebook, timeout=SECONDS, startup_timeout=SECONDS, kernel_name="python3", resources=folder
    )
    client.execute()
    return stripped(notebook)


def stripped(notebook: Any) -> Any:
    """Without what differs from run to run or between machines: times, paths, versions."""
    notebook.metadata["language_info"] = {"name": "python"}
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["outputs"] = [stripped_output(each) for each in joined(cell["outputs"])]
    return notebook


def joined(outputs: list[Any]) -> list[Any]:
    """Outputs without bars, in which what is printed in parts is one."""
    whole: list[Any] = []
    for each in outputs:
        if 'class="nodepiece-progress"' in each.get("data", {}).get("text/html", ""):
            continue  # a bar, whose last text has times
        if whole and each["output_type"] == "stream" == whole[-1]["output_type"]:
            whole[-1]["text"] += each["text"]
        else:
            whole.append(each)
    return whole


def stripped_output(output: Any) -> Any:
    """An output without the names of temporary folders; a picture has no text beside it."""
    output.get("metadata", {}).clear()
    if "text" in output:
        output["text"] = TEMPORARY.sub("FOLDER", output["text"])
    if data := output.get("data"):
        kinds = ("image/png",) if "image/png" in data else ("text/plain", "text/html")
        shown = {kind: TEMPORARY.sub("FOLDER", data[kind]) for kind in kinds if kind in data}
        output["data"] = shown
    return output


def main() -> None:
    for path in notebooks():
        nbformat.write(executed(path), path)
        print(f"wrote {path.relative_to(FOLDER.parents[1])}")


if __name__ == "__main__":
    main()
