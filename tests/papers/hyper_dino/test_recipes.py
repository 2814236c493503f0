"""The recipes are the rows of the paper's Table 1, cut to what the features and the images allow."""

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.papers.hyper_dino.recipes import LENGTHS, recipes
from lib.training.recipes import longest_pca


def baselines(*given, **options) -> list[str]:
    return [recipe.name for recipe in recipes(*given, **options) if not recipe.dim_out]


def test_the_mappers_are_those_of_table_1():
    printed = pd.read_csv(paths.PUBLISHED / "hyper_dino_table1_configurations.csv")
    source = printed["input_features"].map({"[CLS]": "scaled", "PCA-DINO": "PCA", "NCA-DINO": "NCA"})
    expected = list(zip(source, printed["dim_in"], printed["dim_out"], strict=True))
    ours = [(recipe.source, recipe.dim_in, recipe.dim_out) for recipe in recipes(384, LENGTHS) if recipe.dim_out]
    assert len(ours) == len(expected) == 62 and sorted(ours) == sorted(expected)


@pytest.mark.parametrize(("dim", "families"), [(32, ["baseline", "dim_in"]), (33, ["baseline", "32", "dim_in"])])
def test_the_compact_family_needs_longer_inputs(dim, families):
    """Table 1 has no Hyper-DINO(PCA(30), 32); an input as long as the embedding is one mapper, not two."""
    assert [recipe.family for recipe in recipes(dim, [])] == families


def test_lengths_are_there_once_and_none_is_longer_than_features_or_images_allow():
    """Ten images, the largest test fold has four: PCA has six left to train on, NCA all 40 numbers."""
    for lengths in (["full"], ["full", 40, 40], [40, 41, 384]):
        assert baselines(40, lengths) == ["40 scaled", "PCA(40)", "NCA(40)"]
    longest = longest_pca(40, [np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2]), np.arange(10) % 5])
    names = ["40 scaled", "PCA(5)", "PCA(6)", "NCA(5)", "NCA(20)", "NCA(40)"]
    assert baselines(40, [5, 20, "full"], 8, longest) == names
    assert baselines(40, [5, 20], nca_lengths=[10]) == ["40 scaled", "PCA(5)", "PCA(20)", "NCA(10)"]
