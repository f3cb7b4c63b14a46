"""Out-of-sample link prediction from a small dataset to a run folder."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.couples import NAMES, couples
from tests.tasks.newcomers import UNSEEN, lookup, settings, task, walking

from nodepiece.data.out_of_sample import OutOfSampleDataset, edges_of_unseen
from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.unseen_nodes import averages_without_one, neighbour_sums
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.node_embedding import NodePieceEmbedding
from nodepiece.errors import InputError
from nodepiece.evaluation.half_links import half_links_of
from nodepiece.evaluation.personalized_pagerank import walk_over
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.inference.facts import Query
from nodepiece.inference.run import load_links
from nodepiece.settings import Experiment
from nodepiece.tasks.out_of_sample import OutOfSample
from nodepiece.tasks.run_weights import load_trained
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.tokens import make_tokens
from nodepiece.tokenizer.tokens import tokenize_by


def run(folder: Path, chosen: Experiment, **options: Any) -> dict[str, Any] | None:
    return run_experiment(task(chosen), RunOptions(folder, torch.device("cpu"), **options))


def model_of(folder: Path, chosen: Experiment) -> LinkModel:
    opened = OutOfSample.read(chosen, folder)
    return load_trained(opened, folder)[0]


def test_baselines_know_the_other_facts_of_the_unseen_node(tmp_path: Path) -> None:
    """As if the node were in the graph with them, and popularity as it is printed beside a run."""
    metrics = run(tmp_path / "run", settings())
    assert metrics is not None
    opened = load_links(tmp_path / "run")
    found = opened.compare_baselines()
    assert found["popularity"] == metrics["popularity"]
    both = found["queries with a shortcut"], found["queries without a shortcut"]
    assert sum(part["mrr"] * part["count"] for part in both) / 5 == pytest.approx(metrics["mrr"])
    task_of = opened.task
    assert isinstance(task_of, OutOfSample)
    graph, edges = task_of.graph, task_of.unseen["test"]
    links, walk = half_links_of(graph), walk_over(graph)
    expected: dict[str, list[float]] = {"half-links": [], "personalized PageRank": []}
    columns = list(zip(edges.owners, edges.relations, edges.neighbours, strict=True))
    for place, (owner, relation, neighbour) in enumerate(columns):
        mine = [at for at, column in enumerate(columns) if column[0] == owner and at != place]
        others = [columns[at][1:] for at in mine]
        rules = links.tail_shares[[relation]].toarray()[0]
        for r, n in others:
            rules[n] = max(rules[n], links.confidence(np.array([r]), np.array([relation]))[0])
        near = np.zeros(graph.num_nodes)
        if others:
            near = walk.from_nodes(np.array([n for _, n in others])).mean(axis=0)
        answers = {n for o, r, n in columns if o == owner and r == relation} - {neighbour}
        candidates = [node for node in range(graph.num_nodes) if node not in answers]
        for name, scores in (("half-links", rules), ("personalized PageRank", near)):
            better = sum(scores[node] > scores[neighbour] for node in candidates)
            ties = sum(scores[node] == scores[neighbour] for node in candidates) - 1
            expected[name].append(1 + better + ties / 2)
    for name, ranks in expected.items():
        assert found[name]["mean_rank"] == pytest.approx(np.mean(ranks))
    with pytest.raises(InputError, match="there are no unseen nodes in 'train'"):
        opened.compare_baselines("train")


@pytest.mark.parametrize(
    "chosen",
    [settings(), settings(training={"mask_share": 0.3}), walking(epochs=6), lookup()],
    ids=["pieces", "masked", "walks", "baseline"],
)
def test_ranks_are_those_of_a_node_known_by_its_other_facts(
    tmp_path: Path, chosen: Experiment
) -> None:
    metrics = run(tmp_path / "run", chosen)
    assert metrics is not None and metrics["count"] == 5
    assert metrics["unseen_nodes"] == {"valid": 2, "test": 2}
    run_of = load_links(tmp_path / "run")
    relations, names = run_of.model.relation_vectors(), run_of.dataset.names
    ranks = []
    for node, facts in UNSEEN["test"].items():
        for left_out in facts:
            others = [fact for fact in facts if fact != left_out]
            if chosen.encoder.kind == "lookup":
                parts = []
                for head, name, tail in others:
                    forth = head == node
                    through = relations[names.relation_id(name) + (0 if forth else 2)]
                    parts.append(
                        run_of.node_vectors[names.node_id(tail if forth else head)] * through
                    )
                vector = torch.stack(parts).mean(dim=0)
            else:
                vector = torch.from_numpy(run_of.with_facts(others).embed([node])[0])
            head, name, tail = left_out
            asks_tail = head == node
            relation = names.relation_id(name) + (0 if asks_tail else 2)
            scored = run_of.model.decoder.score(vector, relations[relation], run_of.node_vectors)
            scores = scored.detach().numpy()
            if chosen.walks.steps:  # as when asked by name: the node is in the graph
                there = run_of.with_facts(others)
                asked = Query(there.dataset.names.node_id(node), relation, is_relation_query=False)
                first, second = torch.tensor([asked.first]), torch.tensor([asked.second])
                path_graph = there.snapshot.path_graph
                for _, found in there.model.scorers.all_scores(first, second, path_graph):
                    scores = scores + found.detach().numpy()[0, : len(scores)]
            target = names.node_id(tail if asks_tail else head)
            known = {
                names.node_id(t if asks_tail else h)
                for h, r, t in facts
                if r == name and (h == node) == asks_tail
            }
            rivals = np.delete(scores, sorted(known))
            better, ties = (rivals > scores[target]).sum(), (rivals == scores[target]).sum()
            ranks.append(1 + better + ties / 2)
    assert metrics["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)), abs=1e-6)


@pytest.mark.parametrize(
    "chosen",
    [settings(training={"mask_share": 0.3, "epochs": 3}), walking(epochs=3)],
    ids=["masked", "walks"],
)
def test_a_run_stopped_between_epochs_goes_on_to_the_same_result(
    tmp_path: Path, chosen: Experiment
) -> None:
    whole = run(tmp_path / "whole", chosen)
    assert run(tmp_path / "run", chosen, should_stop=lambda: True) is None
    resumed = run(tmp_path / "run", chosen, resume=True)
    assert whole is not None and resumed is not None
    assert resumed["mrr"] == whole["mrr"]
    left, right = (model_of(tmp_path / name, chosen).state_dict() for name in ("whole", "run"))
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_what_is_learned_from_is_hidden_from_the_tokens(tmp_path: Path) -> None:
    opened = task(settings(training={"mask_share": 0.25, "loss": "softplus"}))
    table = make_tokens(opened.experiment, opened.graph, tmp_path)
    model = opened.build_model(table)
    assert isinstance(model.nodes, NodePieceEmbedding) and table.salts is not None
    trainer = opened.make_trainer(model, generator=torch.Generator().manual_seed(0))
    model.train()
    for epoch in range(2):
        opened.before_epoch(model, table, epoch, generator=trainer.generator)
        trainer.batches.start_epoch(generator=trainer.generator)
        batch = trainer.batches.take(torch.tensor([0]))
        learned = {
            (h, r, t) if r < 2 else (t, r - 2, h)
            for h, r, t in torch.stack(batch[:3], dim=1).tolist()
        }
        facts = set(map(tuple, opened.graph.triples.tolist()))
        assert learned <= facts
        assert trainer.batches.num_batches * 16 < 2 * 0.25 * len(facts) + 16
        # The distances of the tokens are those of a graph that lacks all that is learned from,
        # here and in the other batches.
        for step in range(1, trainer.batches.num_batches):
            batch = trainer.batches.take(torch.tensor([step]))
            ends = torch.stack(batch[:3], dim=1).tolist()
            learned |= {(h, r, t) if r < 2 else (t, r - 2, h) for h, r, t in ends}
        visible = np.array(sorted(facts - learned), np.int32)
        adjacency = build_adjacency(KnowledgeGraph(visible, opened.graph.num_nodes, 2))
        fresh = tokenize_by(table.salts, adjacency, table.vocabulary)
        rows = [torch.tensor(a) for a in (fresh.anchors, fresh.distances, fresh.relations)]
        expected = model.nodes.token_tensors.of_rows(*rows)
        tokens = model.nodes._training_tokens
        assert tokens is not None and tokens.distances is not None
        assert expected.distances is not None
        assert torch.equal(tokens.distances, expected.distances)


def test_walks_of_an_epoch_go_along_all_but_what_is_learned_from(tmp_path: Path) -> None:
    opened = task(walking())
    table = make_tokens(opened.experiment, opened.graph, tmp_path)
    model = opened.build_model(table)
    trainer = opened.make_trainer(model, generator=torch.Generator().manual_seed(0))
    visible = model.edge_mask
    assert visible is not None and "edge_mask" not in model.state_dict()
    for epoch in range(2):
        opened.before_epoch(model, table, epoch, generator=trainer.generator)
        trainer.batches.start_epoch(generator=trainer.generator)
        learned = set()
        for step in range(trainer.batches.num_batches):
            batch = trainer.batches.take(torch.tensor([step]))
            (rows, tails), is_there = batch.answers.long(), batch.sample_weight > 0
            ends = (batch.heads[rows], batch.relations[rows], tails)
            learned |= set(map(tuple, torch.stack(ends, dim=1)[is_there].tolist()))
        assert model.edge_mask is visible  # where a recorded step looks
        for edge, weight in zip(with_inverses(opened.graph).tolist(), visible, strict=True):
            assert weight == (tuple(edge) not in learned)


def test_the_average_leaves_one_edge_out_and_one_edge_alone_is_nothing() -> None:
    vectors, relations = torch.eye(3), torch.full((2, 3), 2.0)
    owner, relation, neighbour = (
        torch.tensor(column) for column in ([0, 0, 0, 1], [0, 1, 0, 0], [0, 1, 2, 2])
    )
    averages = averages_without_one(vectors, relations, (owner, relation, neighbour))
    expected = [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 0]]
    assert averages.tolist() == [[float(v) for v in row] for row in expected]


def test_sums_over_neighbours_are_those_of_the_edges() -> None:
    graph = couples().train
    edges = torch.tensor(with_inverses(graph)).long()
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(graph.num_nodes, 5, generator=generator)
    relations = torch.randn(4, 5, generator=generator)
    expected = torch.zeros_like(vectors)
    for head, relation, tail in edges.tolist():
        expected[head] += vectors[tail] * relations[relation]
    sums = neighbour_sums(vectors, relations, EdgeIndex(edges, graph.num_nodes, 4))
    torch.testing.assert_close(sums, expected)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (settings(graph=replace(settings().graph, layers=1)), r"graph.layers = 1 .* set it to 0"),
        (settings(tokenizer=replace(settings().tokenizer, select="random")), "tokenizer.select"),
        (lookup(loss="cross-entropy", margin=9.0, num_negatives=20), "sampled negatives"),
        (settings(training={"mask_share": 0.1, "resample_relations": True}), "leave shuffle"),
        (settings(training={"hide_targets": True}), "hide_targets = true .* leave it out"),
        (walking(mask_share=0.0), "set out_of_sample.mask_share above 0"),
        (walking(loss="softplus"), "losses against all nodes"),
        (replace(lookup(), walks=WalkSettings(steps=1)), "set walks.steps = 0 for the baseline"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    tmp_path: Path, chosen: Experiment, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run(tmp_path / "run", chosen)
    assert not (tmp_path / "run").exists()


def test_a_dataset_without_unseen_nodes_is_not_evaluated(tmp_path: Path) -> None:
    graph = KnowledgeGraph(couples().train.triples, 44, 2, NAMES)
    dataset = OutOfSampleDataset("couples", graph, {"valid": {}, "test": {}})
    unseen = {split: edges_of_unseen(dataset, split) for split in ("valid", "test")}
    opened = OutOfSample(settings(), "couples", graph, unseen)
    metrics = run_experiment(opened, RunOptions(tmp_path / "run", torch.device("cpu")))
    assert metrics is not None and metrics["split"] is None


@pytest.mark.gpu
@pytest.mark.parametrize(
    "chosen",
    [
        settings(training={"epochs": 3}),
        settings(training={"mask_share": 0.3, "epochs": 3}),
        settings(training={"mask_share": 0.3, "epochs": 3, "loss": "softplus"}),
        walking(epochs=3),
        lookup(epochs=3),
    ],
    ids=["pieces", "masked", "masked with negatives", "walks", "baseline"],
)
def test_every_way_of_training_is_recorded_and_replayed_on_a_gpu(
    tmp_path: Path, chosen: Experiment
) -> None:
    options = RunOptions(tmp_path / "run", torch.device("cuda"))
    metrics = run_experiment(task(chosen), options)
    assert metrics is not None and 0 < metrics["mrr"] <= 1
