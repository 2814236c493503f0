"""The vote of the nearest images, against a loop over sorted lists, and macro F1 by hand."""

from collections import Counter

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.metrics.votes import macro_f1, votes

RNG = np.random.default_rng(0)
QUERY, GALLERY = (torch.from_numpy(0.3 * RNG.normal(size=(n, 3))) for n in (17, 40))
LABELS = RNG.choice(["benign", "malignant", "normal"], size=40)
GROUPS = RNG.integers(8, size=57).astype(str)


@pytest.mark.parametrize("geometry", [Euclidean(), Sphere(), PoincareBall(1.0)], ids=str)
@pytest.mark.parametrize("ids", [False, True])
def test_equals_a_loop_over_sorted_lists(geometry, ids):
    known = (GROUPS[:17], GROUPS[17:]) if ids else (None, None)
    query, gallery = (geometry.project(points) for points in (QUERY, GALLERY))
    found = votes(query, gallery, LABELS, geometry, (1, 3, 5), *known)
    for row, point in enumerate(query):
        allowed = [i for i in range(40) if not ids or GROUPS[row] != GROUPS[17 + i]]
        order = sorted(allowed, key=lambda i: float(geometry.between(point, gallery[i])))
        for column, k in enumerate((1, 3, 5)):
            labels = [LABELS[i] for i in order[:k]]
            most = max(Counter(labels).values())
            expected = next(label for label in labels if Counter(labels)[label] == most)
            assert found[row, column] == expected


def test_a_gallery_that_is_too_small_is_refused():
    with pytest.raises(InputError, match="k = 5, but the gallery has 3 images"):
        votes(QUERY, GALLERY[:3], LABELS[:3], Euclidean())
    with pytest.raises(InputError, match="query row 1 has fewer than k = 3 images to search"):
        votes(QUERY[:2], GALLERY[:3], LABELS[:3], Euclidean(), (3,), ["p", "q"], ["q", "r", "r"])
    with pytest.raises(InputError, match="2 gallery labels, but 3 gallery rows"):
        votes(QUERY, GALLERY[:3], LABELS[:2], Euclidean(), (1,))
    with pytest.raises(InputError, match="gallery row 1 has no label"):
        votes(QUERY, GALLERY[:3], ["a", None, "b"], Euclidean(), (1,))


def test_f1_is_averaged_over_the_classes_that_queries_have():
    assert macro_f1(["a", "a", "b"], ["a", "a", "a"]) == pytest.approx((0.8 + 0) / 2)
    assert macro_f1(["a", "a"], ["a", "c"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("labels", "voted", "words"),
    [
        ([], [], r"labels \(0,\) and votes \(0,\)"),
        (["a"], ["a", "b"], r"labels \(1,\) and votes \(2,\)"),
        ([["a"]], [["a"]], r"labels \(1, 1\)"),
        (["a", None], ["a", "a"], "query 1 has no label"),
        ([0.0, 1.0], [0.0, np.nan], "vote 1 has no label"),
        (["a"], [1], "text and numbers"),
    ],
)
def test_votes_that_cannot_be_judged_are_refused_in_words(labels, voted, words):
    with pytest.raises(InputError, match=words):
        macro_f1(labels, voted)
