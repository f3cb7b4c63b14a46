"""The experiments that come with nodepiece: names, files, and the settings they resolve to.

`golden/experiments.json` has a hash of the settings of every experiment that differ from the
defaults. After a deliberate change of a recipe or a default: python -m tests.test_recipes
"""

import hashlib
import json
from pathlib import Path

import pytest

from nodepiece.errors import InputError
from nodepiece.recipes import ablation_matrix, experiment_names, find_recipe, recipes
from nodepiece.settings import changed_settings, load_experiment, to_toml

GOLDEN = Path(__file__).parent / "golden" / "experiments.json"


def hash_of_settings(name: str) -> str:
    settings = json.dumps(changed_settings(load_experiment(name)), sort_keys=True)
    return hashlib.sha256(settings.encode()).hexdigest()[:16]


def test_every_experiment_has_the_settings_it_had() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    changed = [name for name in golden if hash_of_settings(name) != golden[name]]
    assert not changed, "if this was intended, run: python -m tests.test_recipes"
    assert sorted(golden) == experiment_names()


def test_no_recipe_extends_more_than_two_deep() -> None:
    def depth(name: str) -> int:
        parent = recipes()[name].extends
        return 0 if parent is None else 1 + depth(parent)

    assert max(depth(name) for name in experiment_names()) == 2


def test_every_base_has_every_variant() -> None:
    matrix = ablation_matrix()
    for base in matrix["bases"]:
        for variant, table in matrix["variants"].items():
            recipe = recipes()[f"{base}-{variant}"]
            assert recipe.extends == base
            assert recipe.changes == {"tokenizer": table["tokenizer"]}
            assert recipe.description.startswith(f"{base} without ")


def test_reported_scores_belong_to_ablations_and_are_in_their_descriptions() -> None:
    for name, words in ablation_matrix()["reported"].items():
        assert recipes()[name].description.endswith(f": {words}.")


def test_every_recipe_is_described_and_is_in_the_file_it_names() -> None:
    import nodepiece

    for recipe in recipes().values():
        assert recipe.description, recipe.name
        assert (Path(nodepiece.__file__).parent / recipe.path).is_file()


def test_a_file_may_extend_an_ablation(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "fb15k-237-paper-no-distances"\nseed = 3')
    experiment = load_experiment(path)
    assert (experiment.tokenizer.distances, experiment.seed) == (False, 3)


def test_a_mistyped_name_is_answered_with_those_that_are_near() -> None:
    with pytest.raises(InputError, match="did you mean wn18rr-paper-no-distances"):
        find_recipe("wn18rr-paper-nodistances")


def test_settings_that_differ_are_marked_with_the_default_and_others_are_not() -> None:
    text = to_toml(load_experiment("wn18rr-paper"), mark_changes=True)
    assert "num_anchors = 500  # default: none\n" in text
    assert 'precision = "tf32"  # default: "float32"\n' in text
    assert "\nseed = 0\n" in text
    assert '\ndataset = "wn18rr"\n' in text


if __name__ == "__main__":
    hashes = {name: hash_of_settings(name) for name in experiment_names()}
    GOLDEN.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
