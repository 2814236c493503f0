"""The recipes are the rows of the paper's Table 1, cut to what the features and the images allow."""

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.errors import InputError
from lib.papers.hyper_dino.recipes import LENGTHS, recipes
from lib.training.recipes import longest_pca


def test_the_mappers_are_those_of_table_1():
    printed = pd.read_csv(paths.PUBLISHED / "hyper_dino_table1_configurations.csv")
    source = printed["input_features"].map({"[CLS]": "scaled", "PCA-DINO": "PCA", "NCA-DINO": "NCA"})
    expected = list(zip(source, printed["dim_in"], printed["dim_out"], strict=True))
    ours = [(recipe.source, recipe.dim_in, recipe.dim_out) for recipe in recipes(384, LENGTHS) if recipe.dim_out]
    assert len(ours) == len(expected) == 62
    assert sorted(ours) == sorted(expected)


def test_the_compact_family_needs_longer_inputs():
    """Table 1 has no Hyper-DINO(PCA(30), 32); an input as long as the embedding is one mapper, not two."""
    for dim, families in (
        (31, ["baseline", "dim_in"]),
        (32, ["baseline", "dim_in"]),
        (33, ["baseline", "32", "dim_in"]),
    ):
        assert [r.family for r in recipes(dim, [])] == families


@pytest.mark.parametrize("lengths", [["full"], [40, "full"], ["full", 40, 40], [40, 41, 384]])
def test_full_is_the_feature_length_said_once_and_longer_ones_are_left_out(lengths):
    assert [r.name for r in recipes(40, lengths) if not r.dim_out] == ["40 scaled", "PCA(40)", "NCA(40)"]


def test_few_training_images_limit_pca_alone():
    """Ten images, the largest test fold has four: six are left to train on."""
    longest = longest_pca(40, [np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2]), np.arange(10) % 5])
    assert longest == 6
    names = [r.name for r in recipes(40, [5, 20, "full"], 8, longest) if not r.dim_out]
    assert names == ["40 scaled", "PCA(5)", "PCA(6)", "NCA(5)", "NCA(20)", "NCA(40)"]


@pytest.mark.parametrize("length", [0, -5, 2.5, "5", True])
def test_a_length_that_is_not_positive_is_refused_with_the_way_out(length):
    message = rf"lengths\[1\] = {length!r} cannot be used: it must be a whole number from 1 on.*, or 'full'"
    with pytest.raises(InputError, match=message):
        recipes(40, [5, length])


def test_nca_has_lengths_of_its_own():
    chosen = recipes(40, [5, 20], nca_lengths=[10])
    assert [r.name for r in chosen if not r.dim_out] == ["40 scaled", "PCA(5)", "PCA(20)", "NCA(10)"]
