"""The examples run as they stand, and show what they say."""

from pathlib import Path

import pytest
from examples import find_duplicates, plain_pytorch, pyg_node_classifier

EXAMPLES = sorted(Path(plain_pytorch.__file__).parent.glob("*.py"))


def test_a_plain_model_learns_from_pieces_as_from_a_lookup() -> None:
    results = plain_pytorch.main()

    lookup_loss, lookup_parameters = results["Embedding"]
    piece_loss, piece_parameters = results["NodePieceEmbedding"]
    assert piece_loss < lookup_loss < 1.0  # 2 ln 2 = 1.39: scores that tell nothing apart
    assert piece_parameters < lookup_parameters


@pytest.mark.filterwarnings("ignore")  # PyKEEN and what it imports use much that is deprecated
def test_pykeen_trains_and_ranks_with_pieces() -> None:
    pytest.importorskip("pykeen")
    from examples import with_pykeen

    assert with_pykeen.main() > 0.1  # chance: below 0.01 among 831 nodes


def test_regions_follow_from_node_vectors_in_a_scikit_learn_pipeline() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("pandas")
    from examples import scikit_learn

    assert scikit_learn.main() > 0.6  # the most frequent region alone: 0.25


def test_a_second_entry_is_most_similar_to_the_first() -> None:
    assert find_duplicates.main() == {
        f"Republic of {country}": country for country in find_duplicates.COUNTRIES
    }


def test_a_pyg_classifier_learns_from_pieces() -> None:
    assert pyg_node_classifier.main() > 0.6  # the most frequent region alone: 0.25


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_read_on_one_screen(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) < 60
