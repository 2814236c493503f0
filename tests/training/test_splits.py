"""Who is learnt from, who asks and what is searched: nobody meets himself, or his own group."""

import numpy as np
import pytest

from lib.errors import InputError
from lib.training.splits import check, galleries, splits
from tests.training.conftest import GROUPS


def test_every_image_asks_once_and_never_itself():
    parts = splits(np.array([2, 0, 1, 0, 2]), seed=7)
    assert [(part.fold, part.seed) for part in parts] == [(0, 7), (1, 8), (2, 9)]
    assert [part.test.tolist() for part in parts] == [[1, 3], [2], [0, 4]]
    assert [part.train.tolist() for part in parts] == [[0, 2, 4], [0, 1, 3, 4], [1, 2, 3]]


def test_the_open_gallery_is_there_as_long_as_every_query_has_k_images_of_others(where, recwarn):
    assert galleries(where, GROUPS, 12) == ["closed", "open"] and not recwarn.list
    with pytest.warns(UserWarning, match="some query has 12 images of unseen groups, fewer than k = 13"):
        assert galleries(where, GROUPS, 13) == ["closed"]


def test_a_k_beyond_the_gallery_is_refused(where):
    split = where[0]
    check(split, GROUPS, split.train, 54)
    with pytest.raises(InputError, match="fold 0: k = 55, but a query has a gallery of 54 images"):
        check(split, GROUPS, split.train, 55)
    check(split, GROUPS, split.held_out, 12, own_left_out=True)  # eighteen, of which six are the query's own
    with pytest.raises(InputError, match="fold 0: k = 13, but a query has a gallery of 12 images"):
        check(split, GROUPS, split.held_out, 13, own_left_out=True)
