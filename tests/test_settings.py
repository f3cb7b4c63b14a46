import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodepiece.errors import InputError
from nodepiece.recipes import experiment_names
from nodepiece.settings import Experiment, load_experiment, to_toml

# The appendix on hyperparameters, NodePiece. None: the paper has a dash.
NODEPIECE = {
    # |A|, k, m, batch size, learning rate, epochs, loss, margin, negatives, smoothing
    "fb15k-237": (1000, 20, 15, 512, 0.0005, 400, "binary-cross-entropy", None, None, 0.4),
    "wn18rr": (500, 50, 4, 512, 0.0005, 600, "self-adversarial", 15, 20, None),
    "codex-l": (7000, 20, 6, 256, 0.0005, 120, "binary-cross-entropy", None, None, 0.3),
    "yago3-10": (10000, 20, 5, 512, 0.00025, 600, "self-adversarial", 50, 10, None),
}
# The same for RotatE: dimension, batch, margin, negatives; "small" has NodePiece's parameters.
ROTATE = {
    "fb15k-237-rotate": (2000, 1024, 9, 256),
    "wn18rr-rotate": (1000, 512, 6, 1024),
    "codex-l-rotate": (1000, 512, 25, 100),
    "codex-l-rotate-small": (50, 512, 9, 100),
    "yago3-10-rotate": (1000, 1024, 24, 400),
    "yago3-10-rotate-small": (40, 512, 15, 100),
}
# Relation prediction, NodePiece: batch, epochs, margin, negatives; the rest as for links.
RELATIONS = {
    "fb15k-237": (512, 20, 15, 20),
    "wn18rr": (512, 150, 12, 20),
    "yago3-10": (512, 7, 25, 20),
}
ABLATIONS = ("no-relations", "no-distances", "relations-only")


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_loads_and_survives_being_written(name: str, tmp_path: Path) -> None:
    experiment = load_experiment(name)
    assert experiment.name == name
    path = tmp_path / "config.toml"
    path.write_text(to_toml(experiment), encoding="utf-8")
    assert load_experiment(path) == experiment


@pytest.mark.parametrize("dataset", NODEPIECE)
def test_nodepiece_has_the_hyperparameters_of_the_paper(dataset: str) -> None:
    experiment = load_experiment(f"{dataset}-paper")
    tokenizer, encoder, training = experiment.tokenizer, experiment.encoder, experiment.training
    *shared, margin, negatives, smoothing = NODEPIECE[dataset]
    assert [
        tokenizer.num_anchors,
        tokenizer.anchors_per_node,
        tokenizer.relations_per_node,
        training.batch_size,
        training.learning_rate,
        training.epochs,
        training.loss,
    ] == shared
    if margin is None:
        assert experiment.one_vs_all.smoothing == smoothing
    else:
        sampled = experiment.sampled
        assert (sampled.margin, sampled.num_negatives) == (margin, negatives)
        assert sampled.temperature == 0  # as the published numbers were made
    assert (encoder.kind, encoder.dim, encoder.hidden_dim) == ("mlp", 200, 400)
    assert encoder.dropout == 0.1
    assert experiment.decoder.kind == "rotate"
    assert training.schedule == "constant"
    assert tokenizer.mix == {"degree": 0.4, "pagerank": 0.4, "random": 0.2}
    assert experiment.dataset == dataset
    assert experiment.task == "link-prediction"


@pytest.mark.parametrize("name", ROTATE)
def test_rotate_has_the_hyperparameters_of_the_paper(name: str) -> None:
    experiment = load_experiment(name)
    training = experiment.training
    found = (
        experiment.encoder.dim,
        training.batch_size,
        experiment.sampled.margin,
        experiment.sampled.num_negatives,
    )
    assert found == ROTATE[name]
    assert (experiment.encoder.kind, training.loss) == ("lookup", "self-adversarial")
    assert experiment.decoder.kind.startswith("rotate")


@pytest.mark.parametrize("dataset", RELATIONS)
def test_relation_prediction_has_the_hyperparameters_of_the_paper(dataset: str) -> None:
    experiment = load_experiment(f"{dataset}-relations-paper")
    links, training = load_experiment(f"{dataset}-paper"), experiment.training
    sampled = experiment.sampled
    found = (training.batch_size, training.epochs, sampled.margin, sampled.num_negatives)
    assert found == RELATIONS[dataset]
    assert (training.loss, sampled.temperature) == ("self-adversarial", 0)
    assert training.learning_rate == links.training.learning_rate
    assert (experiment.tokenizer, experiment.encoder) == (links.tokenizer, links.encoder)
    assert (experiment.task, experiment.dataset) == ("relation-prediction", dataset)


@pytest.mark.parametrize("ablation", ABLATIONS)
@pytest.mark.parametrize(
    "name", [f"{d}-paper" for d in NODEPIECE] + [f"{d}-relations-paper" for d in RELATIONS]
)
def test_an_ablation_changes_the_pieces_and_nothing_else(name: str, ablation: str) -> None:
    whole, ablated = load_experiment(name), load_experiment(f"{name}-{ablation}")
    changes: dict[str, dict[str, Any]] = {
        "no-relations": {"relations_per_node": 0},
        "no-distances": {"distances": False},
        "relations-only": {"anchors_per_node": 0, "num_anchors": 0},
    }
    tokenizer = replace(whole.tokenizer, **changes[ablation])
    assert ablated == replace(whole, name=ablated.name, tokenizer=tokenizer)


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_named_after_itself_and_has_defaults_for_the_rest(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, 'dataset = "countries"'))
    assert experiment == Experiment(name="mine", dataset="countries")


def test_a_file_without_a_suffix_is_named_after_itself_too(tmp_path: Path) -> None:
    assert load_experiment(write(tmp_path, 'dataset = "countries"', "mine")).name == "mine"


def test_unusual_values_survive_being_written(tmp_path: Path) -> None:
    experiment = load_experiment("countries", ["training.checkpoint_seconds=inf"])
    experiment = replace(experiment, name='a "name"\\ with\nlines, ünïcödé and 🌍', dataset="C:\\x")
    experiment = replace(experiment, encoder=replace(experiment.encoder, factorized=True))
    assert load_experiment(write(tmp_path, to_toml(experiment))) == experiment
    assert math.isinf(experiment.training.checkpoint_seconds)


def test_an_experiment_may_extend_another(tmp_path: Path) -> None:
    text = 'extends = "countries"\n[training]\nepochs = 3\n[tokenizer]\nmix = {random = 1.0}'
    experiment, parent = load_experiment(write(tmp_path, text)), load_experiment("countries")
    assert experiment.name == "mine"
    assert experiment.training == replace(parent.training, epochs=3)
    assert experiment.tokenizer.mix == {"random": 1.0}  # shares are replaced together
    assert experiment.encoder == parent.encoder


def test_a_file_may_extend_a_file_beside_it(tmp_path: Path) -> None:
    write(tmp_path, 'dataset = "countries"\nseed = 5', "parent.toml")
    assert load_experiment(write(tmp_path, 'extends = "parent.toml"')).seed == 5


def test_overrides_come_last() -> None:
    overrides = ["training.epochs=5", "decoder.kind=distmult", "seed=3", "sampled.margin = 4"]
    experiment = load_experiment("countries", [*overrides, "tokenizer.mix={random=1.0}"])
    assert (experiment.training.epochs, experiment.seed) == (5, 3)
    assert experiment.decoder.kind == "distmult"
    assert isinstance(experiment.sampled.margin, float)
    assert experiment.tokenizer.mix == {"random": 1.0}


def test_the_last_of_two_overrides_wins() -> None:
    assert load_experiment("countries", ["seed=1", "seed=2"]).seed == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("dataset = ", "is not valid TOML"),
        ("", "'dataset' is missing"),
        ('dataset = "x"\ndata = "y"', "unknown setting 'data'; known are .*dataset, decoder"),
        ('dataset = "x"\n[training]\nepoch = 3', "unknown setting 'training.epoch'.*epochs"),
        ('dataset = "x"\n[training]\nepochs = 3.5', "training.epochs must be int, got 3.5"),
        ('dataset = "x"\n[training]\nepochs = true', "training.epochs must be int, got True"),
        ('dataset = "x"\n[training]\nepochs = "3"', "training.epochs must be int, got '3'"),
        ('dataset = "x"\n[sampled]\nmargin = "3"', "sampled.margin must be float"),
        ('dataset = "x"\n[training]\nepochs = {}', "training.epochs must be int"),
        ('dataset = "x"\ntraining = 3', "training must be a table"),
        ('dataset = "x"\n[tokenizer]\nnum_anchors = "many"', "num_anchors must be int or nothing"),
        ('dataset = "x"\n[tokenizer]\nmix = 1', "tokenizer.mix must be"),
        ('dataset = "x"\n[tokenizer]\nmix = {random = "1"}', "tokenizer.mix.random must be float"),
        ('dataset = "x"\n[decoder]\nnode_norm = 1', "decoder.node_norm must be bool"),
        ('dataset = "x"\n[training]\nepochs = 0', "epochs must be at least 1"),
        ('extends = "nothing"', "nothing is neither a TOML file nor a known experiment"),
        ('extends = "mine.toml"', "extends itself"),
        ("extends = 3", "extends must be"),
        ('extends = "fb15k-237-papr"', "did you mean fb15k-237-paper"),
    ],
)
def test_a_mistake_is_reported_with_its_place(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        load_experiment(write(tmp_path, text))


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("training.epochs", "KEY=VALUE"),
        ("training.epochs=many", "training.epochs must be int, got 'many'"),
        ("training.speed=3", "unknown setting 'training.speed'"),
        ("epochs=3", "unknown setting 'epochs'"),
        ("training=3", "training must be a table"),
        ("=3", "unknown setting ''"),
    ],
)
def test_a_mistaken_override_is_reported(override: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_experiment("countries", [override])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no experiment file .*missing\.toml"):
        load_experiment(tmp_path / "missing.toml")


def test_a_folder_or_a_picture_is_no_experiment(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError, match=r"folder\.toml"):
        load_experiment(tmp_path / "folder.toml")
    (tmp_path / "picture.toml").write_bytes(b"\x89PNG\xff")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        load_experiment(tmp_path / "picture.toml")


def test_experiments_are_the_rows_that_were_promised() -> None:
    promised = {f"{d}-paper" for d in (*NODEPIECE, "codex-m", "codex-s")}
    promised |= {f"{d}-paper-{ablation}" for d in NODEPIECE for ablation in ABLATIONS}
    promised |= {f"{d}-rotate{small}" for d in NODEPIECE for small in ("", "-small")}
    promised |= {f"{d}-relations-paper" for d in RELATIONS}
    promised |= {f"{d}-relations-paper-{ablation}" for d in RELATIONS for ablation in ABLATIONS}
    promised |= {f"{d}-rotate{small}" for d in ("codex-m", "codex-s") for small in ("", "-small")}
    promised |= {"wikikg2-paper"} | {f"wikikg2-paper-{ablation}" for ablation in ABLATIONS}
    promised |= {f"wikikg2-{shallow}" for shallow in ("autosf", "pairre", "rotate", "transe")}
    promised |= {
        f"inductive-{graph}-v{number}-{kind}"
        for graph in ("fb15k-237", "wn18rr", "nell-995")
        for number in range(1, 5)
        for kind in ("paper", "best")
    }
    promised |= {"countries", "fb15k-237-best", "wn18rr-best", "codex-m-best"}
    assert promised <= set(experiment_names())


def test_overrides_given_as_one_string_are_refused_with_the_list_to_write() -> None:
    with pytest.raises(InputError, match=r"list of changes; write \['training.epochs=5'\]"):
        load_experiment("countries", "training.epochs=5")


def test_a_record_takes_records_and_no_dicts() -> None:
    with pytest.raises(
        InputError, match=r"training must be TrainingSettings\(...\), got {'epochs'"
    ):
        Experiment("mine", "countries", training={"epochs": 5})  # type: ignore[arg-type]


def test_a_folder_in_place_of_an_experiment_is_answered_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"is a folder, and an experiment is a TOML file; to train on these facts write",
    ):
        load_experiment(str(tmp_path))


def test_a_whole_number_larger_than_any_float_is_refused() -> None:
    with pytest.raises(InputError, match="is larger than any float"):
        load_experiment("countries", [f"training.learning_rate=1{'0' * 400}"])


def test_a_data_file_in_place_of_an_experiment_is_answered_with_what_to_write(
    tmp_path: Path,
) -> None:
    graph = tmp_path / "graph.tsv"
    graph.write_text("a\tlikes\tb\n")
    with pytest.raises(InputError, match=r"is a TOML file; .* mine.toml .* dataset = .*graph.tsv"):
        load_experiment(str(graph))


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_no_generator_takes_is_refused(seed: int) -> None:
    with pytest.raises(InputError, match=f"seed must be a whole number from 0 .* got {seed}"):
        load_experiment("countries", [f"seed={seed}"])


def test_settings_of_training_by_their_old_names_go_to_their_groups(tmp_path: Path) -> None:
    text = 'dataset = "x"\n[training]\nepochs = 3\nsmoothing = 0.1\nnum_negatives = 7\n'
    overrides = ["training.mask_share=0.2", "training.num_negatives=8"]
    experiment = load_experiment(write(tmp_path, text), overrides)
    assert (experiment.training.epochs, experiment.one_vs_all.smoothing) == (3, 0.1)
    assert (experiment.sampled.num_negatives, experiment.out_of_sample.mask_share) == (8, 0.2)


def test_a_setting_by_its_old_and_its_new_name_is_refused(tmp_path: Path) -> None:
    text = 'dataset = "x"\ntraining.margin = 3.0\nsampled.margin = 4.0\n'
    with pytest.raises(InputError, match=r"margin is the old name of sampled\.margin; give one"):
        load_experiment(write(tmp_path, text))


def test_a_file_may_extend_one_that_has_old_names(tmp_path: Path) -> None:
    write(tmp_path, 'dataset = "x"\ntraining.margin = 3.0', "parent.toml")
    child = write(tmp_path, 'extends = "parent.toml"\nsampled.margin = 4.0')
    assert load_experiment(child).sampled.margin == 4.0
