"""Explanations: paths, pieces, necessary facts and similar facts, and that nothing changes."""

import json
import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.inference.explained_runs import KINDS, a_fact, trained
from tests.tasks.professions import EXPERIMENT, professions

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.inference import necessary_facts, similar_facts
from nodepiece.inference.explain_paths import BY_PROPAGATION, BY_REMOVAL, BY_WALKS
from nodepiece.inference.explained import named_fact
from nodepiece.inference.explanation import Explanation
from nodepiece.inference.facts import FactRun
from nodepiece.inference.inductive import InductiveRun
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load, load_links
from nodepiece.inference.snapshot import Snapshot
from nodepiece.inference.update import update_run
from nodepiece.tasks.node_classification import NodeClassification
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tokenizer.token_rows import TokenRows

Fact = tuple[str, str, str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FactRun]:
    folder = tmp_path_factory.mktemp("runs")
    return {kind: trained(kind, folder / kind) for kind in KINDS}


def explained(run: FactRun, fact: Fact | None = None) -> Explanation:
    head, relation, tail = fact or a_fact(run)
    return run.explain(head=head, relation=relation, tail=tail)


def with_necessary_facts(run: FactRun) -> Explanation:
    """The explanation of the first test fact, or fact of the graph, whose answer falls."""
    names, test = run.dataset.names, run.dataset.test
    held_out = [named_fact(names, fact) for fact in test]
    for fact in [*held_out, *sorted(facts_of(run))[:40]]:
        found = explained(run, fact)
        if found.rank_without_all is not None and found.rank_without_all > found.rank:
            return found
    raise AssertionError("no answer falls")


def links(runs: dict[str, FactRun], kind: str) -> LinkRun:
    run = runs[kind]
    assert isinstance(run, LinkRun)
    return run


def ranked(run: FactRun, fact: Fact) -> tuple[float, float]:
    """Rank among tails and score, by the machinery of `nodepiece score`."""
    row = run.score([fact]).to_pylist()[0]
    return row["tail_rank"], row["score"]


@pytest.mark.parametrize("kind", KINDS)
def test_score_and_ranks_are_those_of_score(runs: dict[str, FactRun], kind: str) -> None:
    run, fact = runs[kind], a_fact(runs[kind])
    found = explained(run)
    row = run.score([fact]).to_pylist()[0]
    assert found.score == pytest.approx(row["score"], abs=1e-4)
    assert (found.rank, found.head_rank) == (row["tail_rank"], row["head_rank"])
    assert found.is_known == row["known"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_is_a_fact_of_the_graph_and_paths_lead_from_head_to_tail(
    runs: dict[str, FactRun], kind: str
) -> None:
    run = runs[kind]
    found, facts = explained(run), facts_of(run)
    assert found.paths
    for path in found.paths:
        assert set(path.steps) <= facts
        assert path.nodes(found.head)[-1] == found.tail


def test_how_paths_are_ranked_is_said(runs: dict[str, FactRun]) -> None:
    said = {kind: explained(runs[kind]).paths_by for kind in KINDS}
    assert said["walks"] == said["inductive"] == BY_WALKS
    assert said["propagation"] == BY_PROPAGATION
    assert said["pieces"] == said["layers"] == said["lookup"] == BY_REMOVAL


@pytest.mark.parametrize("kind", ["pieces", "layers", "walks", "propagation"])
def test_necessary_facts_are_ranked_as_in_a_run_without_them(
    runs: dict[str, FactRun], kind: str, tmp_path: Path
) -> None:
    """The slow way: remove them from a copy of the run for good, and open it again."""
    run = links(runs, kind)
    found = with_necessary_facts(run)
    fact = (found.head, found.relation, found.tail)
    left_out = [each.fact for each in found.necessary]
    for each in found.necessary:
        after = (each.rank_without, each.score_without)
        assert after == pytest.approx(removed_for_good(run, [each.fact], fact, tmp_path), abs=1e-4)
    all_gone = (found.rank_without_all, found.score_without_all)
    assert all_gone == pytest.approx(removed_for_good(run, left_out, fact, tmp_path), abs=1e-4)


@pytest.mark.parametrize("kind", ["pieces", "layers", "walks", "propagation"])
def test_the_answer_falls_without_necessary_facts(runs: dict[str, FactRun], kind: str) -> None:
    found = with_necessary_facts(runs[kind])
    assert found.rank_without_all is not None
    assert found.rank_without_all > found.rank


def test_necessary_facts_of_a_run_on_another_graph_are_those_without_them(
    runs: dict[str, FactRun],
) -> None:
    run = runs["inductive"]
    assert isinstance(run, InductiveRun)
    found = with_necessary_facts(run)
    kept = sorted(facts_of(run) - {each.fact for each in found.necessary})
    answers = run.on_graph(kept).predict(
        head=found.head, relation=found.relation, top=run.num_nodes, include_known=True
    )
    scores = {answer.name: answer.score for answer in answers}
    assert scores[found.tail] == pytest.approx(found.score_without_all, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_run_stays_as_it_was(runs: dict[str, FactRun], kind: str) -> None:
    run, fact = runs[kind], a_fact(runs[kind])
    before, facts, vectors = ranked(run, fact), facts_of(run), run.embed().copy()
    files = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}
    explained(run)
    assert ranked(run, fact) == before and facts_of(run) == facts
    assert np.array_equal(run.embed(), vectors)
    assert {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")} == files


def test_the_effect_of_a_piece_is_that_of_encoding_the_node_without_it(
    runs: dict[str, FactRun],
) -> None:
    run = links(runs, "pieces")
    head, relation, tail = a_fact(run)
    found = run.explain(head=head, relation=relation, tail=tail, pieces=99)
    piece = next(each for each in found.carrying if each.distance is None)
    names, node = run.dataset.names, run.dataset.names.node_id(piece.node)
    (row,) = run.snapshot.rows_without(np.array([node], np.int32), [np.empty((0, 3), np.int32)])
    vocabulary = run.snapshot.table.vocabulary
    token = vocabulary.num_anchors + names.relation_id(piece.piece)
    left = [each for each in row.relations[0].tolist() if each != token]
    left += [vocabulary.padding] * (len(row.relations[0]) - len(left))
    rows = [torch.tensor(each) for each in (row.anchors, row.distances, np.array([left], np.int32))]
    with torch.no_grad():
        ends = {name: run.node_vectors[names.node_id(name)] for name in (found.head, found.tail)}
        ends[piece.node] = run.model.nodes.encode_rows(*rows)[0]
        vector = run.model.relation_vectors()[names.relation_id(found.relation)]
        score = run.model.decoder.score(ends[found.head], vector, ends[found.tail])
    assert piece.effect == pytest.approx(found.score - score.item(), abs=1e-4)


def test_shared_anchors_have_both_distances(runs: dict[str, FactRun]) -> None:
    run = links(runs, "pieces")
    found = explained(run)
    anchors = [each for each in found.shared if each.head_distance is not None]
    assert anchors
    for each in anchors:
        for node, distance in ((found.head, each.head_distance), (found.tail, each.tail_distance)):
            assert distance == hops(run, node, each.piece)


def test_similar_facts_have_the_relation_and_the_mean_of_two_cosines(
    runs: dict[str, FactRun],
) -> None:
    run = runs["pieces"]
    found = explained(run)
    assert len(found.similar) == 5
    values = [each.similarity for each in found.similar]
    assert values == sorted(values, reverse=True)
    head, relation, tail = found.similar[0].fact
    assert relation == found.relation and (head, relation, tail) in facts_of(run)
    expected = (cosine(run, found.head, head) + cosine(run, found.tail, tail)) / 2
    assert values[0] == pytest.approx(expected, abs=1e-5)


def test_an_explanation_follows_updates_and_assumed_facts(
    runs: dict[str, FactRun], tmp_path: Path
) -> None:
    copied = copy_of(links(runs, "layers"), tmp_path)
    new = [("person 40", "lives in", "town 1"), ("person 40", "married to", "person 3")]
    update_run(copied, add=new)
    asked = ("person 3", "married to", "person 40")
    later, assumed = (
        explained(copied, asked),
        explained(links(runs, "layers").with_facts(new), asked),
    )
    assert later.score == pytest.approx(assumed.score, abs=1e-4)
    assert [each.fact for each in later.necessary] == [each.fact for each in assumed.necessary]
    for one, other in zip(later.necessary, assumed.necessary, strict=True):
        assert one.score_without == pytest.approx(other.score_without, abs=1e-4)
    assert ("person 40", "married to", "person 3") in {
        step for path in assumed.paths for step in path.steps
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_json_has_what_the_interface_promises(runs: dict[str, FactRun], kind: str) -> None:
    content = json.loads(json.dumps(explained(runs[kind]).to_json(), allow_nan=False))
    assert {"head", "relation", "tail", "score", "probability", "rank"} < set(content)
    assert all(set(path) == {"score", "steps"} for path in content["paths"])
    assert all(len(step) == 3 for path in content["paths"] for step in path["steps"])
    assert set(content["pieces"]) == {"shared", "carrying"}
    assert all(
        {"piece", "head_distance", "tail_distance"} <= set(each)
        for each in content["pieces"]["shared"]
    )
    assert all({"node", "piece", "effect"} <= set(each) for each in content["pieces"]["carrying"])
    assert all(
        set(each) == {"fact", "rank_without", "score_without"} for each in content["necessary"]
    )
    assert all(set(each) == {"fact", "similarity"} for each in content["similar"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_fits_80_columns(runs: dict[str, FactRun], kind: str) -> None:
    text = str(explained(runs[kind]))
    assert max(map(len, text.splitlines())) <= 80
    assert "Necessary facts" in text and "Paths" in text


def test_the_numbers_of_reasons_are_limits(runs: dict[str, FactRun]) -> None:
    head, relation, tail = a_fact(runs["walks"])
    few = runs["walks"].explain(
        head=head, relation=relation, tail=tail, paths=1, pieces=2, facts=0, similar=3
    )
    assert (len(few.paths), len(few.carrying), len(few.necessary), len(few.similar)) == (1, 2, 0, 3)
    assert few.rank_without_all is None
    with pytest.raises(InputError, match="paths must be 0 or more, got -1"):
        runs["walks"].explain(head=head, relation=relation, tail=tail, paths=-1)


def test_limits_that_the_search_reached_are_said(
    runs: dict[str, FactRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs["pieces"]
    assert explained(run).limits == ()
    for name in ("NUM_BY_RULES", "NUM_NEAR"):
        monkeypatch.setattr(necessary_facts, name, 1)
    monkeypatch.setattr(similar_facts, "MAX_FACTS", 2)

    found = explained(run)

    assert len(found.limits) == 2
    assert "facts of the two nodes, the " in found.limits[0]
    assert found.limits[1].startswith("similar facts are those of the first 2 of ")
    assert "Limits of the search" in str(found)
    assert Explanation.from_json(found.to_json()) == found


def test_wrong_names_suggest_the_nearest(runs: dict[str, FactRun]) -> None:
    run = runs["pieces"]
    with pytest.raises(InputError, match="unknown node 'persn 3'; did you mean 'person 3'"):
        explained(run, ("persn 3", "married to", "person 1"))
    with pytest.raises(InputError, match="unknown relation 'maried to'; did you mean 'married to'"):
        explained(run, ("person 3", "maried to", "person 1"))
    with pytest.raises(InputError, match="tail must be one name, got None"):
        run.explain(head="person 3", relation="married to", tail=None)  # type: ignore[arg-type]


def test_a_removed_node_is_refused(runs: dict[str, FactRun], tmp_path: Path) -> None:
    run = copy_of(links(runs, "pieces"), tmp_path)
    update_run(run, remove_nodes=["person 3"])
    with pytest.raises(InputError, match="node 'person 3' was removed from the graph"):
        explained(run, ("person 3", "married to", "person 2"))


def test_an_inverse_relation_can_be_explained(runs: dict[str, FactRun]) -> None:
    run = runs["walks"]
    head, relation, tail = a_fact(run)
    found = explained(run, (tail, f"inverse of {relation}", head))
    direct = explained(run)
    assert (found.rank, found.head_rank) == (direct.head_rank, direct.rank)


def test_a_run_without_facts_is_an_unpickled_run_without_facts(runs: dict[str, FactRun]) -> None:
    run, fact = links(runs, "layers"), a_fact(runs["layers"])
    gone = [("person 0", "married to", "person 1"), ("person 5", "lives in", "town 1")]
    less = run.without_facts([step for step in gone if step in facts_of(run)])
    assert facts_of(less) == facts_of(run) - set(gone) and less.is_hypothetical
    again = pickle.loads(pickle.dumps(less))
    assert facts_of(again) == facts_of(less)
    assert ranked(again, fact) == pytest.approx(ranked(less, fact), abs=1e-4)
    with pytest.raises(InputError, match="the graph has no fact person 0 — lives in — person 1"):
        run.without_facts([("person 0", "lives in", "person 1")])


def facts_of(run: FactRun) -> set[Fact]:
    names = run.dataset.names
    return {
        (names.node(head), names.relation(relation), names.node(tail))
        for head, relation, tail in run.dataset.train.triples.tolist()
    }


def copy_of(run: LinkRun, folder: Path) -> LinkRun:
    place = folder / f"copy {len(list(folder.iterdir()))}"
    shutil.copytree(run.folder, place)
    return load_links(place)


def removed_for_good(
    run: LinkRun, facts: list[Fact], asked: Fact, folder: Path
) -> tuple[float, float]:
    """Rank and score in a copy of the run with some facts removed by an update."""
    copied = copy_of(run, folder)
    update_run(copied, remove=facts)
    return ranked(load_links(copied.folder), asked)


def hops(run: LinkRun, start: str, end: str) -> int:
    """The distance of two nodes over edges in both directions, by breadth-first search."""
    distance = {start: 0}
    queue = [start]
    for node in queue:
        for head, _, tail in facts_of(run):
            for one, other in ((head, tail), (tail, head)):
                if one == node and other not in distance:
                    distance[other] = distance[node] + 1
                    queue.append(other)
    return distance[end]


def cosine(run: FactRun, one: str, other: str) -> float:
    first, second = run.embed([one, other]).astype(float)
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_a_run_of_node_classification_explains_no_facts(tmp_path: Path) -> None:
    task = NodeClassification(EXPERIMENT, professions())
    run_experiment(task, RunOptions(tmp_path / "run", torch.device("cpu")))
    with pytest.raises(InputError, match="it predicts no facts"):
        load(tmp_path / "run").explain(head="a", relation="b", tail="c")


def test_tokens_without_facts_are_computed_once_for_both_nodes(
    runs: dict[str, FactRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    rows_without = Snapshot.rows_without

    def recorded(self: Snapshot, nodes: IntArray, removals: Sequence[IntArray]) -> list[TokenRows]:
        asked.extend(removed.tobytes() for removed in removals if len(removed))
        return rows_without(self, nodes, removals)

    monkeypatch.setattr(Snapshot, "rows_without", recorded)
    explained(runs["propagation"])

    assert asked and len(asked) == len(set(asked))
