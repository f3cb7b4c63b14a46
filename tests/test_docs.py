"""The documentation lists all experiments, agrees with the results, and has valid links."""

import json
import re
import shlex
from itertools import chain
from pathlib import Path
from statistics import mean, stdev

import pytest
from benchmarks import propagation_parts
from scripts import list_experiments, list_settings, write_results
from scripts.list_experiments import page
from scripts.write_results import RESULTS, ROOT
from typer.main import get_command

from nodepiece.cli import app
from nodepiece.recipes import experiment_names
from nodepiece.report.compared import difference, hits_of_seeds, listed, verdict
from nodepiece.report.document import anchor
from nodepiece.report.measured import (
    Measurement,
    by_seed,
    format_score,
    has_remark,
    read_measurement,
    read_measurements,
    score,
    scores,
    shared_device,
    training_seconds,
)
from nodepiece.report.paper_rows import PAPER_ROWS
from nodepiece.report.results_page import among_all, parameters
from nodepiece.settings import Experiment, settings_by_name


def test_the_page_of_experiments_is_up_to_date() -> None:
    written = list_experiments.PAGE.read_text(encoding="utf-8")

    assert written == page(), "run: python -m scripts.list_experiments"


def test_the_page_of_settings_is_up_to_date() -> None:
    written = list_settings.PAGE.read_text(encoding="utf-8")

    assert written == list_settings.page(), "run: python -m scripts.list_settings"


def test_every_setting_is_on_it_with_a_meaning() -> None:
    rows = [line.split(" | ") for line in list_settings.page().splitlines() if line[:3] == "| `"]

    assert len(rows) == len(settings_by_name(Experiment(name="", dataset="")))
    assert all(meaning.strip() for _, meaning, *_ in rows)


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("`num_anchors`", "integer, 0 or more"),
        ("`anchor_share`", "number in (0, 1]"),
        ("`edge_dropout`", "number in [0, 1)"),
        ("`learning_rate`", "number above 0"),
        ("`epochs`", "integer, at least 1"),
        ("`ties`", "`per-node`, `global`"),
    ],
)
def test_a_setting_is_listed_with_the_values_it_takes(setting: str, values: str) -> None:
    (row,) = (row for row in list_settings.page().splitlines() if row.startswith(f"| {setting}"))

    assert row.split(" | ")[2] == values


def test_the_page_of_results_is_up_to_date() -> None:
    written = write_results.PAGE.read_text(encoding="utf-8")

    assert written == write_results.page(), "run: python -m scripts.write_results"


def test_every_run_of_results_is_on_it_once_with_its_scores_and_its_remark() -> None:
    rows = [line for line in write_results.page().splitlines() if line.startswith("| [`")]
    linked = [re.findall(r"\]\(\.\./results/(.+?)\.json\)", row) for row in rows]

    assert sorted(chain.from_iterable(linked)) == [each.name for each in read_measurements(RESULTS)]
    for names, row in zip(linked, rows, strict=True):
        found = read_measurement(RESULTS, names[0])
        assert found is not None
        if len(names) == 1:
            assert all(score in row for score in scores(found).split(" / ")), names
        assert not has_remark(found) or "†" in row, names
        assert not shared_device(found) or "\\*" in row, names


@pytest.mark.parametrize(
    "systems",
    [
        ["RuleN", "Neural LP", "DRUM", "GraIL", "NBFNet"],
        ["RotatE", "TransE", "PairRE", "AutoSF"],
        ["RED-GNN", "A\\*Net", "AdaProp", "ULTRA", "TRIX"],
    ],
    ids=["inductive systems of the paper", "other systems of the paper", "later systems"],
)
def test_the_page_of_results_has_rows_of_others_with_their_source(systems: list[str]) -> None:
    rows = [line for line in write_results.page().splitlines() if line.startswith("| ")]
    for system in systems:
        of_it = [row for row in rows if row.startswith(f"| {system}")]
        assert of_it and all("20" in row or "NodePiece paper" in row for row in of_it), system


def test_the_page_of_speed_shows_what_is_in_the_files_it_links_to() -> None:
    text = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    num_rows = 0
    for line in text.splitlines():
        names = re.findall(r"results/(\S+?)\.json\)", line) if line.startswith("|") else []
        runs = [each for name in names if (each := read_measurement(RESULTS, name)) is not None]
        if runs:
            assert f"| {shown_in_a_row(runs)} |" in line
            num_rows += 1
    assert num_rows > 10


@pytest.mark.parametrize("name", ["wn18rr-paper", "wn18rr-relations-paper"])
def test_scores_with_separate_masks_are_on_the_page_of_speed(name: str) -> None:
    found = {each.name: each for each in by_seed(read_measurements(RESULTS))}
    row = found[f"{name}-separate-masks"]
    page = " ".join((ROOT / "docs" / "speed.md").read_text(encoding="utf-8").split())
    words = f"{score(row, 'mrr')} (seeds [0](../results/{row.name}.json)"

    assert row.num_seeds == 3 and words in page


@pytest.mark.parametrize("name", ["README.md", "docs/speed.md"])
def test_scores_in_links_are_those_of_the_files(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\[(\.\d+ / \S+)\]\(\S*results/(\S+)\.json\)", text)
    assert links
    for shown, measured in links:
        found = read_measurement(RESULTS, measured)
        assert found is not None and scores(found) == shown


@pytest.mark.parametrize(
    ("dataset", "start", "pages"),
    [
        ("fb15k-237", "FB15k-237", ["README.md", "docs/speed.md"]),
        ("wn18rr", "WN18RR", ["README.md", "docs/speed.md"]),
        ("codex-m", "CoDEx-M", ["docs/speed.md"]),
        ("wd50k", "WD50K, its triples", ["docs/speed.md"]),
        ("planted-75k", "generated, 75,000 nodes", ["docs/speed.md"]),
        ("planted-150k", "generated, 149,000 nodes", ["docs/speed.md"]),
    ],
)
def test_the_scores_after_equal_minutes_are_those_of_the_file(
    dataset: str, start: str, pages: list[str]
) -> None:
    content = json.loads((RESULTS / "budget.json").read_text(encoding="utf-8"))
    found = content["datasets"][dataset]
    ours, theirs = (
        f"{format_score(run['test']['mrr'])} / {format_score(run['test']['hits@10'])}"
        for name in ("nodepiece", found["opponent"])
        for run in found["runs"]
        if run["contender"] == name and run["minutes"] == 10
    )
    for name in pages:
        rows = [row for row in (ROOT / name).read_text("utf-8").splitlines() if row[:1] == "|"]
        assert any(start in row and ours in row and theirs in row for row in rows), name


def test_the_readme_is_short_and_says_what_it_is_for() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    words = ["link prediction", "inductive", "transductive", "node classification"]
    words += ["unseen entity", "pandas", "early stopping", "--minutes 10"]

    assert len(readme.splitlines()) <= 80
    assert [each for each in words if each not in readme] == []


def test_the_readme_has_the_mean_of_the_inductive_splits() -> None:
    names = [
        f"inductive-{graph}-v{version}-best"
        for graph in ("fb15k-237", "wn18rr", "nell-995")
        for version in (1, 2, 3, 4)
    ]
    found = {each.name: each for each in by_seed(read_measurements(RESULTS))}
    paper = [PAPER_ROWS[name.replace("-best", "-paper")].scores[-1] for name in names]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    of_seeds = hits_of_seeds([found[name] for name in names])
    ours = f"{format_score(mean(of_seeds))} (one seed)"
    if len(of_seeds) > 1:
        ours = f"{format_score(mean(of_seeds))} ± {format_score(stdev(of_seeds))} over "
        ours += f"{len(of_seeds)} seeds"
    assert f"mean of 12 splits | {ours}, with walks" in readme
    assert f"the paper: {format_score(sum(paper) / 12)} |" in readme


def test_ilpc_has_its_own_table_and_is_in_none_of_the_twelve_splits() -> None:
    written = write_results.PAGE.read_text(encoding="utf-8")
    inductive = written.split("\n## Inductive link prediction")[1].split("\n## ")[0]
    own, twelve = (
        inductive.split(f"### {title}")[1].split("\n### ")[0]
        for title in ("ILPC 2022 small", "All runs of the twelve splits")
    )
    found = read_measurement(RESULTS, "inductive-ilpc-small-best")
    page = (ROOT / "docs" / "inductive.md").read_text(encoding="utf-8")

    assert found is not None
    assert own.count("inductive-ilpc-small-best.json") == 1 and among_all(found.found) in own
    assert "ilpc" not in twelve and "The trainings of the 12 `-best` recipes add up" in twelve
    assert "MRR {} / Hits@10 {} among all".format(*among_all(found.found).split(" / ")) in page


@pytest.mark.parametrize("name", ["README.md", "docs/propagation.md"])
def test_wn18rr_is_shown_as_the_mean_of_its_seeds(name: str) -> None:
    (row,) = (each for each in by_seed(read_measurements(RESULTS)) if each.name == "wn18rr-best")
    text = (ROOT / name).read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if "wn18rr-best.json" in line)

    assert row.num_seeds == 3 and scores(row) in line
    assert all(f"{each.name}.json" in line for each in row.others)


def shown_in_a_row(runs: list[Measurement]) -> str:
    """Parameters, scores and seconds of a row, or of several: the most, each, and their sum.

    Of several, scores are the means of their seeds, and seconds those of the first seeds.
    """
    shared = " *" if any(map(shared_device, runs)) else ""
    if len(runs) == 1:
        (run,) = runs
        return f"{parameters(run)} | {scores(run)} | {shown_seconds(run)}{shared}"
    most = max(parameters(run) for run in runs)
    merged = {each.name: each for each in by_seed(read_measurements(RESULTS))}
    hits = ", ".join(format_score(merged[run.name].found["hits@10"]) for run in runs)
    total = sum(training_seconds(run.found) for run in runs)
    return f"up to {most} | {hits} | {total:.0f} s{shared}"


def shown_seconds(run: Measurement) -> str:
    duration = training_seconds(run.found)
    return f"{duration:.0f} s" if duration >= 10 else f"{duration:.1f} s"


def test_the_rows_of_the_paper_belong_to_experiments() -> None:
    without = {name for name in PAPER_ROWS if name.endswith("-relations-rotate")}

    assert set(PAPER_ROWS) - without <= set(experiment_names())


@pytest.mark.parametrize(
    ("apart", "words"),
    [
        ([0.0, 0.02], "reached (.000 to .020 above)"),
        ([-0.01, -0.03], "**not reached** (.010 to .030 below)"),
        ([-0.01, 0.02], "reached in part (from .010 below to .020 above)"),
    ],
)
def test_the_paper_is_reached_where_no_row_is_below_it(apart: list[float], words: str) -> None:
    assert verdict(apart) == words


def test_differences_are_of_what_tables_show() -> None:
    assert difference(0.38754, 0.403) == -0.015
    assert format_score(0.0) == ".000" and format_score(1.0) == "1.000"


def test_lists_of_words_end_with_and() -> None:
    assert [listed(words) for words in ("", "a", "ab", "abc")] == [
        "none",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_every_experiment_is_on_it_once() -> None:
    listed = re.findall(r"^\| \[`(.+?)`\]", page(), flags=re.MULTILINE)

    assert sorted(listed) == experiment_names()


def test_recipes_of_our_own_are_no_row_of_the_paper() -> None:
    for line in page().splitlines():
        if re.search(r"^\| \[`\S+-(best|shallow)\S*`\]", line):
            assert line.split(" | ")[1] == "-", line


def pictures_with_commands() -> dict[str, str]:
    """The commands of the pictures in docs/, from the table at the end of docs/reports.md."""
    text = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for line in text.split("## The pictures of these pages")[1].splitlines():
        if line.startswith("| `"):
            names, command = line.strip("| ").split(" | ")
            found |= dict.fromkeys(re.findall(r"`(\S+)`", names), command.strip("`"))
    return found


def test_every_picture_of_the_documentation_has_the_command_that_draws_it() -> None:
    docs = ROOT / "docs"
    pictures = {
        str(path.relative_to(docs)) for path in docs.rglob("*") if path.suffix in (".svg", ".png")
    }
    pictures |= {f"../results/{path.name}" for path in RESULTS.rglob("*.svg")}

    assert pictures == set(pictures_with_commands())


def test_the_commands_of_pictures_exist() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for command in pictures_with_commands().values():
        program, *arguments = shlex.split(command)
        if program == "nodepiece":
            name, *given = arguments
            with commands[name].make_context(name, [], resilient_parsing=True) as context:
                commands[name].make_parser(context).parse_args(given)
        else:
            assert (program, arguments[0]) == ("python", "-m")
            assert (ROOT / arguments[1].replace(".", "/")).with_suffix(".py").is_file(), command


def test_every_picture_is_shown_or_linked_on_a_page() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    for picture in pictures_with_commands():
        assert f"{picture})" in text, picture


@pytest.mark.parametrize("dataset", ["fb15k-237", "wn18rr"])
def test_scores_of_the_measured_sweeps_rise_with_anchors_and_are_on_the_page(dataset: str) -> None:
    found = json.loads((RESULTS / f"sweep-{dataset}.json").read_text(encoding="utf-8"))
    mrr = {(cell["num_anchors"], cell["anchors_per_node"]): cell["mrr"] for cell in found["cells"]}
    page = (ROOT / "docs" / "anchors.md").read_text(encoding="utf-8")

    assert len(mrr) == 15
    for k in (5, 10, 20):
        assert mrr[25, k] < mrr[100, k] < mrr[500, k] < mrr[1000, k]
    assert mrr[1000, 40] - mrr[500, 40] < 0.1 * (mrr[500, 40] - mrr[25, 5])  # saturated
    assert f"from {format_score(min(mrr.values()))} to {format_score(max(mrr.values()))}" in page


def test_every_result_has_the_command_that_gives_it() -> None:
    without = []
    for path in sorted(RESULTS.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        parts = found.get("runs", {}) if "command" not in found else {"": found}
        parts = list(parts.values()) if isinstance(parts, dict) else parts
        if not parts or any(not part.get("command") for part in parts):
            without.append(path.name)
    assert without == []


def test_the_pages_link_to_files_and_headings_that_are_there() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        text = path.read_text(encoding="utf-8")
        for link, heading in re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", text):
            if link.startswith("https://"):
                continue
            target = path.parent / link if link else path
            assert target.exists(), (path.name, link)
            if heading and target.suffix == ".md":
                titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
                assert heading in map(anchor, titles), (path.name, link, heading)


def test_the_page_of_propagation_has_the_variants_that_were_measured() -> None:
    written = propagation_parts.PAGE.read_text(encoding="utf-8")
    path = propagation_parts.OUTPUT
    measured = json.loads(path.read_text(encoding="utf-8"))["variants"] if path.exists() else []

    assert written == propagation_parts.with_table(written, measured)


def test_what_the_page_says_about_the_variants_is_in_the_file() -> None:
    content = json.loads(propagation_parts.OUTPUT.read_text(encoding="utf-8"))
    mrr = {each["variant"]: format_score(each["mrr"]) for each in content["variants"]}
    page = " ".join(propagation_parts.PAGE.read_text(encoding="utf-8").split())
    (row,) = (each for each in by_seed(read_measurements(RESULTS)) if each.name == "codex-s-best")

    assert set(mrr) == set(propagation_parts.VARIANTS)
    for words in (
        f"Without propagation MRR is {mrr['vectors-alone']}.",
        f"between head and target are hidden, it is {mrr['pairs-hidden']}:",
        f"2 layers in place of 6 have {mrr['layers-2']}, 4 layers {mrr['layers-4']}.",
        f"are hidden, not a half, MRR is {mrr['all-targets']};",
        f"in place of one for each, it is {mrr['one-loss']}; with `rank` 1 it is {mrr['rank-1']}.",
        f"{mrr['propagation-alone']} without them, {mrr['all']} with them. Nor do walks: "
        f"{mrr['with-walks']}.",
        f"Three seeds of the recipe have {scores(row)} ",
    ):
        assert words in page, words


def test_variants_that_shared_a_gpu_are_shown_without_seconds(tmp_path: Path) -> None:
    run = {"mrr": 0.25, "hits@10": 0.5, "parameters": 10_000, "seconds": {"train": 7.0}, "seed": 0}
    (tmp_path / "codex-s-best-all-seed-0.json").write_text(json.dumps(run), encoding="utf-8")

    alone, shared = (propagation_parts.collect(tmp_path, shared=each) for each in (False, True))

    assert " | 0.01M | 7 s | 1 |" in propagation_parts.table_of(alone)
    assert "seconds" not in json.dumps(shared)
    assert propagation_parts.table_of(shared).splitlines()[0].endswith("| parameters | seeds |")
    assert " | 0.01M | 1 |" in propagation_parts.table_of(shared)


@pytest.mark.parametrize("graph", ["codex-s", "wn18rr", "fb15k-237"])
def test_what_explanations_lose_is_on_the_page_as_in_the_file(graph: str) -> None:
    found = json.loads((RESULTS / f"explanations-{graph}.json").read_text(encoding="utf-8"))
    again = found["after training again"]["mrr"]
    text = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line[:1] == "|" and f"s-{graph}.json" in line)
    after = " | ".join(
        format_score(again["after"][name]) for name in ("control", "explained", "random")
    )
    lost = [format_score(max(0.0, again["lost by removal"][n])) for n in ("explained", "random")]
    shown = f"{lost[0]}, none"
    if again["ratio"] is not None:
        least = again["ratio at least (95 % of the bootstrap)"]
        shown = f"{', '.join(lost)}: {again['ratio']:.1f} times, at least {least:.1f}"

    assert found["answers"] == 100 and f" | {after} | {shown} |" in row


def test_how_many_answers_of_fb15k_237_fall_is_on_the_pages() -> None:
    found = json.loads((RESULTS / "explanations-fb15k-237.json").read_text(encoding="utf-8"))
    number = found["answers that fall without their facts"]
    for name in ("answers.md", "architecture.md"):
        page = " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())
        assert re.search(rf"only {number} of (the )?100 answers fall", page), name


@pytest.mark.parametrize(("graph", "start"), [("codex-s", "accuracy is"), ("codex-m", "they are")])
def test_the_scores_of_triple_classification_are_those_of_the_file(graph: str, start: str) -> None:
    path = RESULTS / f"triple-classification-{graph}.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    accuracy, f1, error = (
        format_score(found[key]) for key in ("accuracy", "f1", "calibration_error")
    )
    page = " ".join((ROOT / "docs" / "answers.md").read_text(encoding="utf-8").split())

    assert re.search(
        rf"{start} \{accuracy}, (F1 )?\{f1} and (the calibration error )?\{error} "
        rf"\(\[file\]\(../results/{path.name}\)",
        page,
    )


def test_the_seconds_of_a_pass_on_a_gpu_are_those_of_the_file() -> None:
    found = json.loads((RESULTS / "passes-cuda.json").read_text(encoding="utf-8"))
    whole, sample = found["runs"]
    page = " ".join((ROOT / "docs" / "speed.md").read_text(encoding="utf-8").split())

    for words in (
        f"{found['graph']['num_nodes']:,} nodes and {found['graph']['num_facts']:,} facts",
        f"{sample['seconds_a_pass']} s against a sample of the nodes "
        f"({1000 * sample['seconds_a_step']:.1f} ms a step of {sample['batch_size']:,} facts; "
        f"{sample['passes']} passes in {sample['seconds']['train']:.0f} s",
        f"about {whole['seconds_a_pass']:.1f} s against all nodes with walks, an estimate from "
        f"{whole['steps']} steps",
    ):
        assert words in page, words
