"""One run shared by threads and spawned workers; what is refused after a fork."""

import multiprocessing
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from copy import copy
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.inference import sharing
from tests.inference.fresh_vectors import facts_of, fresh_vectors
from tests.tasks.couples import couples, experiment

from nodepiece.errors import InputError
from nodepiece.inference import forked, opened_run
from nodepiece.inference.computed_once import computed_once
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load, load_links
from nodepiece.inference.update import update_run
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment

Facts = list[tuple[str, str, str]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    task = LinkPrediction(experiment(epochs=3), couples())
    run_experiment(task, RunOptions(folder, torch.device("cpu")))
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> LinkRun:
    return load_links(shutil.copytree(trained, tmp_path / "run"))


def assumed_facts(number: int) -> list[Facts]:
    """By turns about new nodes and about nodes that are there."""
    return [
        [(f"new {n}", "lives in", f"town {n % 4}"), (f"new {n}", "married to", f"person {n % 40}")]
        if n % 2
        else [(f"person {n % 40}", "lives in", f"town {(n // 4) % 4}")]
        for n in range(number)
    ]


def vectors_with(run: LinkRun, facts: Facts) -> torch.Tensor:
    return run.with_facts(facts).node_vectors


def test_threads_that_suppose_facts_get_what_one_thread_gets(run: LinkRun) -> None:
    everything = assumed_facts(180)
    expected = [vectors_with(load_links(run.folder), facts) for facts in everything[:4]]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda facts: vectors_with(run, facts), everything))
    alone = [vectors_with(run, facts) for facts in everything]
    for one, other in zip(found, alone, strict=True):
        assert torch.equal(one, other)
    for one, other in zip(found, expected, strict=False):
        assert torch.equal(one, other)
    torch.testing.assert_close(run.node_vectors, fresh_vectors(run))


def test_supposing_facts_writes_to_no_array_of_the_run(run: LinkRun) -> None:
    run.with_facts(assumed_facts(1)[0])
    tokens = run.graph.tokens
    edges, nearest = tokens.adjacency, tokens.nearest
    arrays: list[NDArray[Any]] = [tokens.relations, nearest.nearest, nearest.distance]
    arrays += [edges.start, edges.count, edges.room, edges.neighbours, edges.relations]
    before = [array.copy() for array in arrays]
    for facts in assumed_facts(8):
        assumed = run.with_facts(facts)
        torch.testing.assert_close(assumed.node_vectors, fresh_vectors(assumed))
    for array, as_before in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, as_before)


def test_who_reads_while_another_updates_sees_the_old_or_the_new_state(run: LinkRun) -> None:
    # Batch n moves person 0 from one town to another: exactly one is known at any time.
    towns = [f"town {n}" for n in range(4)]
    home = run.known(head="person 0", relation="lives in")[0]
    states: list[tuple[str, ...]] = []
    is_done = Event()

    def read() -> None:
        while not is_done.is_set():
            asked: dict[str, Any] = {"head": "person 0", "relation": "lives in"}
            states.append(tuple(run.known(**asked)))
            answers = run.predict(**asked, include_known=True, top=60)
            states.append(tuple(a.name for a in answers if a.is_known))
            with_new = run.with_facts([("new", "married to", "person 0")])
            states.append(tuple(with_new.known(**asked)))

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(6):
        new = towns[(towns.index(home) + 1) % 4]
        update_run(
            run,
            add=[("person 0", "lives in", new), (f"more {n}", "lives in", new)],
            remove=[("person 0", "lives in", home)],
        )
        home = new
    is_done.set()
    for reader in readers:
        reader.join()
    assert states and all(len(known) == 1 for known in states)
    torch.testing.assert_close(run.node_vectors, fresh_vectors(run))


def test_what_facts_were_assumed_on_stays_when_the_run_is_updated(run: LinkRun) -> None:
    assumed = run.with_facts([("new", "lives in", "town 1")])
    before = facts_of(assumed)
    update_run(run, add=[("other", "lives in", "town 2")])
    twice = assumed.with_facts([("new", "married to", "person 3")])
    assert facts_of(assumed) == before
    assert facts_of(twice) == before | {("new", "married to", "person 3")}
    torch.testing.assert_close(twice.node_vectors, fresh_vectors(twice))


def test_a_property_is_computed_once_by_whoever_comes_first() -> None:
    class Slow:
        count = 0

        @computed_once
        def value(self) -> object:
            self.count += 1
            Event().wait(0.05)
            return object()

    slow = Slow()
    with ThreadPoolExecutor(4) as threads:
        found = {id(value) for value in threads.map(lambda _: slow.value, range(4))}
    assert slow.count == 1 and found == {id(slow.value)}


def test_a_spawned_worker_answers_from_a_folder_and_from_a_run_it_is_sent(run: LinkRun) -> None:
    assumed = run.with_facts([("new", "lives in", "town 1")])
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as workers:
        for asked, answers in (
            (run, workers.submit(sharing.answer_from, run.folder)),
            (run, workers.submit(sharing.answer_of, run)),
            (assumed, workers.submit(sharing.answer_of, assumed)),
        ):
            expected, found = sharing.answer_of(asked), answers.result()
            assert [answer.name for answer in found] == [answer.name for answer in expected]
            scores = [answer.score for answer in expected]  # another number of threads may round
            assert [answer.score for answer in found] == pytest.approx(scores, rel=1e-5)


def test_a_pickled_run_is_opened_again_as_it_was(run: LinkRun) -> None:
    assumed = run.with_facts([("new", "lives in", "town 1")])
    again = pickle.loads(pickle.dumps(assumed))
    np.testing.assert_array_equal(again.embed(), assumed.embed())
    overridden = load(run.folder, overrides=["evaluation.candidates=all"])
    assert pickle.loads(pickle.dumps(overridden)).opened.overrides == overridden.opened.overrides


def test_a_pickled_run_whose_files_were_replaced_is_refused(run: LinkRun) -> None:
    pickled = pickle.dumps(run)
    task = LinkPrediction(experiment(epochs=1), couples())
    shutil.rmtree(run.folder)
    run_experiment(task, RunOptions(run.folder, torch.device("cpu")))
    with pytest.raises(InputError, match="were replaced since the run was pickled"):
        pickle.loads(pickled)


def test_a_model_can_be_pickled(run: LinkRun) -> None:
    model = pickle.loads(pickle.dumps(run.model))
    with torch.no_grad():
        assert torch.equal(model.node_vectors(), run.model.node_vectors())


def test_a_process_forked_from_one_that_used_runs_is_refused(run: LinkRun) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        fork = multiprocessing.get_context("fork")
        mine, theirs = fork.Pipe()
        child = fork.Process(target=sharing.forked, args=(run, theirs))
        child.start()
        assert mine.poll(60)
        assert "do not survive a fork; start workers with" in mine.recv()
        child.join()
    finally:
        torch.set_num_threads(threads)


def test_a_process_forked_before_any_run_was_used_opens_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forked, "_process", forked.Process(parent_layer="omp"))
    forked.refuse_after_fork()


def test_a_copy_takes_assumed_facts_after_the_original_was_updated(run: LinkRun) -> None:
    other = copy(run)
    update_run(run, add=[("other", "lives in", "town 2")])
    assumed = other.with_facts([("new", "lives in", "town 1")])
    assert ("other", "lives in", "town 2") not in facts_of(assumed)
    torch.testing.assert_close(assumed.node_vectors, fresh_vectors(assumed))


@pytest.mark.parametrize("other", ["with facts", "copy"])
def test_a_run_made_from_another_is_moved_without_it(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    before = run.predict(head="person 0", relation="lives in")
    made = run.with_facts(assumed_facts(1)[0]) if other == "with facts" else copy(run)
    monkeypatch.setattr(opened_run, "choose_device", torch.device)
    assert made.to("meta") is made  # a device without memory, in place of a GPU
    assert made.snapshot.device.type == made.node_vectors.device.type == "meta"
    assert {each.device.type for each in run.model.parameters()} == {"cpu"}
    assert run.predict(head="person 0", relation="lives in") == before
