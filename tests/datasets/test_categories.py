"""No category that is learnt from is searched, and the standard split of a dataset is kept."""

import numpy as np
import pytest

from lib.datasets.categories import halves, held_out
from lib.errors import InputError
from tests.images import listed as table


@pytest.mark.parametrize("seed", range(5))
def test_no_category_is_on_both_sides_and_every_image_has_a_place(seed):
    found = halves(table("aabbccddeef"), seed=seed)
    learnt, asking = ({found.names[i] for i in rows} for rows in (found.learnt, found.queries))
    assert learnt.isdisjoint(asking) and learnt | asking == set("abcde") and len(learnt) == 3
    assert found.left_out == 1 and np.array_equal(found.queries, found.gallery)
    assert sorted({*found.codes[found.learnt]}) == [0, 1, 2]
    assert all(len({*found.codes[found.names == name]}) == 1 for name in "abcdef")


def test_another_seed_is_another_half():
    several = {tuple(halves(table("aabbccddeeff"), seed=seed).learnt) for seed in range(20)}
    assert len(several) > 5


@pytest.mark.parametrize(
    ("asked", "queries", "gallery"),
    [(["test"] * 4, [4, 5, 6, 7], [4, 5, 6, 7]), (["query", "gallery"] * 2, [4, 6], [5, 7])],
)
def test_the_standard_split_is_kept_and_queries_and_gallery_of_their_own_stay_apart(asked, queries, gallery):
    found = halves(table("aabbccdd", split=["train"] * 4 + asked))
    assert [found.learnt.tolist(), found.queries.tolist(), found.gallery.tolist()] == [[0, 1, 2, 3], queries, gallery]


def test_a_category_may_be_several_columns_together():
    found = halves(table("a" * 8, organ=list("xxxxyyyy"), part=list("uuvvuuvv")), "organ/part")
    assert set(found.names) == {"x/u", "x/v", "y/u", "y/v"}


@pytest.mark.parametrize(
    ("given", "by", "message"),
    [
        (table("aabb"), "lesion", "has no column lesion"),
        (table("aab"), "label", "has 2 categories by label, of which 1 with 2 images or more"),
        (table("aabbccdd", split=["train"] * 3 + ["test"] * 5), "label", "such as b, are on both sides"),
        (table("aabb", split=["train", "val", "test", "test"]), "label", "split is 'val' somewhere"),
    ],
)
def test_what_cannot_be_divided_is_refused(given, by, message):
    with pytest.raises(InputError, match=message):
        halves(given, by)


def test_what_is_chosen_by_is_not_learnt_from():
    found = halves(table("".join(letter * 3 for letter in "abcdefghijkl")))
    learnt, aside = held_out(found, seed=0)
    assert sorted([*learnt, *aside]) == found.learnt.tolist() and found.count(aside) == 2
    assert not set(found.names[learnt]) & set(found.names[aside])
    with pytest.raises(InputError, match="cannot be divided"):
        held_out(halves(table("aabbccdd")), seed=0, share=0.5)
