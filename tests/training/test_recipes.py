"""A recipe says what goes in and how long the embedding is; few images limit lists and components."""

import numpy as np
import pytest

from lib.errors import InputError
from lib.training.recipes import Recipe, allowed_ks


@pytest.mark.parametrize(
    ("recipe", "name", "family"),
    [
        (Recipe("PCA", 384, 32), "Hyper-DINO(PCA(384), 32)", "32"),
        (Recipe("scaled", 384, 384), "Hyper-DINO(384 scaled, 384)", "dim_in"),
        (Recipe("NCA", 40, 0), "NCA(40)", "baseline"),
    ],
)
def test_names_are_the_papers(recipe, name, family):
    assert (recipe.name, recipe.family) == (name, family)


@pytest.mark.parametrize(("ks", "kept", "left_out"), [([1, 5, 20], [1, 5], "20"), ([9, 20], [8], "9, 20")])
def test_lists_are_no_longer_than_the_smallest_gallery(ks, kept, left_out):
    """Ten images in five folds leave eight to search, in two folds of four and six only four."""
    even, uneven = np.arange(10) % 5, np.array([0] * 4 + [1] * 6)
    with pytest.warns(UserWarning, match=f"k = {left_out} is left out: a gallery has 8 images"):
        assert allowed_ks(ks, [even]) == kept
    with pytest.warns(UserWarning, match="a gallery has 4 images"):
        assert allowed_ks(ks, [even, uneven]) == ([1] if 1 in ks else [4])


def test_an_embedding_of_less_than_no_numbers_is_refused():
    with pytest.raises(InputError, match="dim_out"):
        Recipe("PCA", 4, -1)
