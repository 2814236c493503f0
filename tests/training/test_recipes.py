"""Few images limit lists; what recipes are called is tested with those of Table 1 (:mod:`tests.papers.hyper_dino`)."""

import numpy as np
import pytest

from lib.errors import InputError
from lib.training.recipes import Recipe, allowed_ks


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
