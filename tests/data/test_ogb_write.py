"""A dataset written in the layout of OGB is the dataset that is read from it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from nodepiece.data.dataset import Dataset
from nodepiece.data.embedded import load_countries
from nodepiece.data.ogb_write import write_ogb
from nodepiece.data.open import open_dataset
from nodepiece.errors import InputError


@pytest.fixture(scope="module")
def countries() -> Dataset:
    return load_countries()


@pytest.fixture(scope="module")
def folder(countries: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ogb") / "countries-ogb"
    write_ogb(countries, place, num_negatives=50, rng=np.random.default_rng(0))
    return place


def test_facts_names_and_ids_come_back(countries: Dataset, folder: Path) -> None:
    read = open_dataset(str(folder))
    assert read.name == "countries-ogb"
    assert read.names.fingerprint == countries.names.fingerprint
    for part in ("train", "valid", "test"):
        np.testing.assert_array_equal(read.part(part), countries.part(part))


def test_no_negative_is_a_fact_of_any_split(countries: Dataset, folder: Path) -> None:
    known = set(map(tuple, countries.all_triples().tolist()))
    negatives_of = open_dataset(str(folder)).negatives
    assert negatives_of is not None
    for part in ("valid", "test"):
        facts, negatives = countries.part(part), negatives_of(part)
        assert negatives.heads.shape == negatives.tails.shape == (len(facts), 50)
        for (head, relation, tail), heads, tails in zip(
            facts.tolist(), negatives.heads.tolist(), negatives.tails.tolist(), strict=True
        ):
            assert not any((node, relation, tail) in known for node in heads)
            assert not any((head, relation, node) in known for node in tails)


def test_the_files_hold_what_ogb_expects(folder: Path) -> None:
    content = torch.load(folder / "split/time/test.pt", weights_only=False)
    assert list(content) == ["head", "relation", "tail", "head_neg", "tail_neg"]
    assert {array.dtype for array in content.values()} == {np.dtype("int64")}


def test_training_facts_have_no_negatives(folder: Path) -> None:
    negatives_of = open_dataset(str(folder)).negatives
    assert negatives_of is not None
    with pytest.raises(InputError, match="train facts have no negatives"):
        negatives_of("train")


def test_a_folder_without_one_of_the_files_is_refused(countries: Dataset, tmp_path: Path) -> None:
    write_ogb(countries, tmp_path / "x", num_negatives=2, rng=np.random.default_rng(0))
    (tmp_path / "x/split/time/valid.pt").unlink()
    with pytest.raises(InputError, match=r"split/time/valid\.pt; add it"):
        open_dataset(str(tmp_path / "x"))


def test_a_graph_in_which_everything_is_a_fact_has_no_negatives(
    countries: Dataset, tmp_path: Path
) -> None:
    train = replace(countries.train, triples=np.array([[0, 0, 0]]), num_nodes=1, names=None)
    facts = np.array([[0, 0, 0]], dtype=np.int32)
    dense = replace(countries, train=train, valid=facts, test=facts)
    with pytest.raises(InputError, match="too dense"):
        write_ogb(dense, tmp_path / "x", num_negatives=2, rng=np.random.default_rng(0))
