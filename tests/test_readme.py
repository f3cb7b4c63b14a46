"""The README does what it says: its examples run, and print what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def run(*command: str, folder: Path) -> str:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "PYTHONIOENCODING": "utf-8",
    }
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shell examples were run, with the sources at hand as in a clone."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "src").symlink_to(ROOT / "src")
    commands, tokenizing, training = blocks("sh")
    assert all(line.startswith("make ") for line in commands.splitlines())
    for example in (tokenizing, training):
        run("bash", "-e", "-c", example, folder=folder)
    return folder


def test_the_shell_example_leaves_what_it_names(folder: Path) -> None:
    assert (folder / "vocabulary" / "vocabulary.json").is_file()
    assert (folder / "distances.png").is_file()
    assert (folder / "tokens.parquet").is_file()


def test_the_python_example_prints_what_is_shown(folder: Path) -> None:
    (program, _), (shown,) = blocks("python"), blocks("text")

    printed = run(sys.executable, "-c", program, folder=folder)

    assert lines(printed) == lines(shown)


def test_the_example_of_training_leaves_a_run_that_answers(folder: Path) -> None:
    assert (folder / "run" / "metrics.json").is_file()
    assert len((folder / "run" / "history.jsonl").read_text().splitlines()) == 10
    asked = 'nodepiece predict run --head Kenya --relation "has language" --top 3'

    assert len(lines(run("bash", "-c", asked, folder=folder))) == 7  # query, heading, answers


def test_the_python_example_of_training_prints_answers_and_the_mrr(folder: Path) -> None:
    _, program = blocks("python")

    printed = lines(run(sys.executable, "-c", program, folder=folder))

    assert len(printed) == 4
    assert 0 < float(printed[-1]) < 1


def test_the_console_example_prints_what_is_shown(folder: Path) -> None:
    (session,) = blocks("console")
    prompt, _, shown = session.partition("\n")

    printed = run("bash", "-c", prompt.removeprefix("$ "), folder=folder)

    assert lines(printed) == lines(shown)


def test_the_example_of_a_graph_never_seen_answers_for_it(folder: Path) -> None:
    (example,) = blocks("bash")

    printed = lines(run("bash", "-e", "-c", example, folder=folder))

    assert ["1", "Nowhere"] in [line.split()[:2] for line in printed]
    assert (folder / "fantasy.parquet").is_file()


def test_the_examples_of_many_answers_write_what_they_name(folder: Path) -> None:
    (example,), (program,) = blocks("ksh"), blocks("py3")

    printed = lines(run("bash", "-e", "-c", example, folder=folder))

    assert ['"asked": "tail"' in line for line in printed] == [True, False, False]
    assert len((folder / "scores.csv").read_text().splitlines()) > 100
    assert (folder / "answers.parquet").is_file()
    scores, number, near = lines(run(sys.executable, "-c", program, folder=folder))
    assert "'known': True" in scores and 0 < int(number) <= 1000
    assert near.count("'") == 6


def test_the_example_of_missing_facts_finds_some(folder: Path) -> None:
    (example,) = blocks("csh")

    printed = lines(run("bash", "-e", "-c", example, folder=folder))

    first = [line.split()[0] for line in printed if line]
    assert first[2:7] == ["1", "2", "3", "4", "5"] and first[-3:] == ["1", "2", "3"]
    assert (folder / "missing.parquet").is_file() and (folder / "neighbours.parquet").is_file()


def test_the_make_targets_it_names_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()

    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_the_files_it_links_to_are_there() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_the_example_of_classes_ends_with_those_of_a_country(folder: Path) -> None:
    (example,) = blocks("shell")

    printed = lines(run("bash", "-e", "-c", example, folder=folder))

    assert "5 classes; labelled nodes: 179 for train, 22 for valid, 22 for test" in " ".join(
        printed
    )
    assert len(printed[-4:]) == 4 and printed[-3].split()[1] == "Africa"  # what Kenya is


def test_the_example_of_a_new_node_answers_before_and_after_the_update(folder: Path) -> None:
    (example,), (program,) = blocks("zsh"), blocks("py")

    printed = lines(run("bash", "-e", "-c", example, folder=folder))

    assert "run: added 4 facts and 1 node, removed 0 facts and 0 nodes" in printed
    assert "Ruritania — in time zone — ?" in printed and len(printed[-4:]) == 4
    assert (folder / "vectors.parquet").is_file()
    zone, shape, updated, *changed = lines(run(sys.executable, "-c", program, folder=folder))
    assert zone and shape == "(2, 64)" and "num_removed=1" in updated
    assert "831" in changed[0] and changed[-1].endswith("nodes have other pieces now")


def test_the_example_of_other_libraries_runs(tmp_path: Path) -> None:
    (program,) = blocks("python3")

    printed = run(sys.executable, "-c", program, folder=tmp_path).splitlines()

    assert printed == [
        "KnowledgeGraph(4 nodes, 2 relations, 3 facts, such as Kenya - borders - Uganda)",
        "(64,) (4, 64) borders",
        "(2, 64)",
    ]
    assert (tmp_path / "few.csv").read_text().startswith('"node","vector_0",')


def test_the_example_of_probabilities_stores_and_evaluates_them(folder: Path) -> None:
    (example,), (queries,) = blocks("mksh"), blocks("ksh")
    run("bash", "-e", "-c", queries.splitlines()[0], folder=folder)

    printed = run("bash", "-e", "-c", example, folder=folder)

    assert (folder / "run" / "calibration.json").is_file() and "ECE" in printed
    assert "probability" in (folder / "probable.csv").read_text().splitlines()[0]
    assert (folder / "reliability.png").is_file()
