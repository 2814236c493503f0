"""Queries are balanced, of unseen groups, and drawn from the seed alone."""

from collections import Counter

import numpy as np
import pytest

from lib.datasets import folds, queries
from lib.errors import InputError

ORDER = np.arange(200)


def archive(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, groups and ids of 200 images: four uneven classes, 40 uneven groups, some of two classes."""
    random = np.random.default_rng(seed)
    group = random.choice(40, 200, p=(weight := random.dirichlet(np.ones(40))) / weight.sum())
    label = np.where(random.random(200) < 0.9, group % 4, random.choice(4, 200, p=[0.7, 0.2, 0.06, 0.04]))
    return (
        np.array(list("abcd"))[label],
        np.char.add("g", group.astype(str)),
        np.array([f"i{i:03d}" for i in range(200)]),
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("per_class", "least", "needed"), [(1, 1, 1), (4, 3, 6), (500, 1, 1)])
def test_three_parts_balanced_and_without_a_common_group(seed, per_class, least, needed):
    labels, groups, ids = archive(seed)
    fold_of = folds.assign(labels, groups, 4, "group", seed)
    for fold in range(4):
        drawn = queries.balanced(labels, groups, fold_of, fold, per_class, seed, least, needed, ids)
        parts = [drawn.train, drawn.queries, drawn.rest]
        assert sorted(np.concatenate(parts)) == list(range(200))
        assert all((np.diff(part) > 0).all() for part in parts)
        assert (fold_of[drawn.train] != fold).all()
        np.testing.assert_array_equal(drawn.held_out, np.flatnonzero(fold_of == fold))
        assert not set(groups[drawn.queries]) & set(groups[drawn.train])
        held, trained = Counter(labels[drawn.held_out]), Counter(labels[drawn.train])
        asked = {c for c in "abcd" if held[c] >= least and trained[c] >= needed}
        assert set(drawn.left_out) == set(labels) - asked
        assert drawn.per_class == min(per_class, *(held[c] for c in asked))
        assert Counter(labels[drawn.queries]) == dict.fromkeys(asked, drawn.per_class)


def test_each_group_gives_one_image_before_any_gives_a_second():
    groups = np.array(["big"] * 9 + ["two"] * 2 + ["one", "other"] + ["train"] * 3)
    fold_of = np.array([0] * 13 + [1] * 3)
    wanted = {3: [1, 1, 1], 4: [1] * 4, 6: [1, 1, 2, 2], 9: [1, 1, 2, 5]}
    for number, counts in wanted.items():
        for seed in range(5):
            drawn = queries.balanced(["a"] * 16, groups, fold_of, 0, number, seed)
            assert sorted(Counter(groups[drawn.queries]).values()) == counts


def test_groups_are_drawn_evenly_whatever_their_size():
    groups = np.array(["big"] * 18 + ["small", "train"])
    fold_of = np.array([0] * 19 + [1])
    drawn = [queries.balanced(["a"] * 20, groups, fold_of, 0, 1, seed).queries[0] for seed in range(200)]
    assert 70 < sum(groups[i] == "small" for i in drawn) < 130
    assert len(set(drawn)) > 15


def test_a_draw_depends_on_the_seed_and_the_images_of_its_class():
    """A smaller draw is part of a larger one; with ids the order of the images does not matter."""
    labels, groups, ids = archive(0)
    fold_of = folds.assign(labels, groups, 4, "group", 0)

    def draw(number, seed, names=labels, order=ORDER, given=ids):
        given = given if given is None else given[order]
        drawn = queries.balanced(names[order], groups[order], fold_of[order], 1, number, seed, image_ids=given)
        return {*ids[order][drawn.queries]}

    assert draw(2, 0) < draw(4, 0) == draw(4, 0) != draw(4, 1)
    turned = np.random.default_rng(5).permutation(200)
    assert draw(3, 0) == draw(3, 0, order=turned)
    assert draw(3, 0, given=None) != draw(3, 0, order=turned, given=None)
    renamed = np.where(labels == "b", "0", labels)
    of_b = set(ids[labels == "b"])
    assert draw(3, 0) - of_b == draw(3, 0, names=renamed) - of_b


def test_a_class_that_cannot_be_asked_is_named_with_the_reason_and_stays_in_its_part():
    labels = np.array(list("aaaaaaaabbbbbbccccdd"))
    fold_of = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1])
    drawn = queries.balanced(labels, np.arange(20), fold_of, 0, 3, 0, least=2, needed=3)
    assert drawn.left_out == {
        "b": "held-out images: 1, needed: 2",
        "c": "training images: 1, needed: 3",
        "d": "held-out images: 0, needed: 2; training images: 2, needed: 3",
    }
    assert Counter(labels[drawn.queries]) == {"a": 3}
    assert Counter(labels[drawn.rest]) == {"a": 1, "b": 1, "c": 3}
    assert Counter(labels[drawn.train]) == {"a": 4, "b": 5, "c": 1, "d": 2}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"per_class": 0}, "per_class = 0 cannot be used"),
        ({"least": 0}, "least = 0"),
        ({"needed": 0}, "needed = 0"),
        ({"fold": 2}, r"there is no fold 2. Use one of \[0, 1\]"),
        (
            {"needed": 3},
            r"no class has enough query images in fold 0 \(a: training images: 2, needed: 3; b: .*\). Lower `least`",
        ),
        ({"groups": list("pqrsptuv")}, "1 groups are in fold 0 and outside it, such as p; assign folds with rule="),
        ({"groups": list("pqrs")}, "8 labels, 4 groups, 8 folds and 8 image_ids"),
        ({"image_ids": list("12345677")}, "image_id 7 occurs more than once"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(changed, message):
    images = {"labels": list("aabbaabb"), "groups": list("pqrstuvw"), "fold_of": np.repeat([0, 1], 4)}
    given = images | {"fold": 0, "per_class": 2, "seed": 0}
    assert queries.balanced(**given).per_class == 2
    with pytest.raises(InputError, match=message):
        queries.balanced(**given | changed)


def test_the_folds_that_there_are_ask_with_what_they_have():
    """Three images of a class are held out where five were wanted: then three are enough."""
    labels, groups = np.array(list("ab") * 6), np.repeat(["p", "q"], 6)
    drawn = queries.of_folds(labels, groups, (groups == "q") * 1, 5, per_class=20, seed=0, least=5, needed=3)
    assert drawn.keys() == {0, 1}
    for fold, one in drawn.items():
        assert (one.per_class, one.left_out) == (3, {})
        plain = queries.balanced(labels, groups, (groups == "q") * 1, fold, 20, 0, least=3, needed=3)
        np.testing.assert_array_equal(one.queries, plain.queries)


def test_a_fold_in_which_no_class_can_be_asked_is_left_out_and_named():
    labels, groups = np.array(list("aaabbbc")), np.array(list("ppqppqr"))
    fold_of = np.unique(groups, return_inverse=True)[1]
    with pytest.warns(
        UserWarning, match=r"fold left out: no class has enough query images in fold 2 .*c: training images: 0"
    ):
        assert queries.of_folds(labels, groups, fold_of, 3, per_class=1, seed=0).keys() == {0, 1}
    with pytest.raises(InputError, match=r"no class has enough query images in fold 0.*in fold 2"):
        queries.of_folds(labels, groups, fold_of, 3, per_class=1, seed=0, needed=9)
