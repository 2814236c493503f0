from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lib.datasets import folds
from lib.errors import InputError
from tests.images import listed


def archive(seed=0):
    """Eighty images of 20 patients with 4 images each; a patient has one of four classes."""
    labels = np.repeat(np.array(list("abcd")), 20)
    groups = np.repeat(np.array([f"p{i:02d}" for i in range(20)]), 4)
    order = np.random.default_rng(seed).permutation(80)
    return labels[order], groups[order]


@pytest.mark.parametrize("rule", ["image", "group"])
def test_classes_are_spread_evenly_and_groups_kept_whole_by_group_as_the_seed_decides(rule):
    labels, groups = archive()
    fold_of = folds.assign(labels, groups, 5, rule, seed=3)
    assert fold_of.dtype == np.int64 and fold_of.shape == (80,)
    for label in "abcd":
        assert Counter(fold_of[labels == label].tolist()) == dict.fromkeys(range(5), 4)
    assert (max(len(set(fold_of[groups == group])) for group in set(groups)) == 1) == (rule == "group")
    np.testing.assert_array_equal(fold_of, folds.assign(labels, groups, 5, rule, seed=3))
    assert (fold_of != folds.assign(labels, groups, 5, rule, seed=4)).any()


@pytest.mark.parametrize("seed", range(5))
def test_by_group_the_classes_stay_even_for_unequal_groups(seed):
    """Four groups with 5 images of a, two with 10 of b: two of the first and one of the second make a fold."""
    sizes = [("a", 5)] * 4 + [("b", 10)] * 2
    labels = np.concatenate([[label] * n for label, n in sizes])
    groups = np.concatenate([[f"g{i}"] * n for i, (_, n) in enumerate(sizes)])
    fold_of = folds.assign(labels, groups, 2, "group", seed)
    assert Counter(zip(labels, fold_of.tolist(), strict=True)) == dict.fromkeys(
        [("a", 0), ("a", 1), ("b", 0), ("b", 1)], 10
    )


def test_by_group_the_order_of_the_images_does_not_matter():
    labels, groups = archive()
    order = np.random.default_rng(9).permutation(len(labels))
    fold_of = folds.assign(labels, groups, 5, "group", seed=3)
    np.testing.assert_array_equal(fold_of[order], folds.assign(labels[order], groups[order], 5, "group", seed=3))


def test_classes_with_fewer_images_than_folds_are_left_out_and_named(recwarn):
    table = replace(listed("aabbbcdddd"), skipped=(("notes.txt", "not an image"),))
    with pytest.warns(UserWarning, match=r"because 3 folds need 3 images of a class: a \(2\), c \(1\)\. Use fewer"):
        kept = folds.enough(table, 3)
    assert kept.classes == ["b", "d"] and kept.rows["image_id"].tolist() == [f"{i}.png" for i in (2, 3, 4, 6, 7, 8, 9)]
    assert dict(kept.skipped).keys() == {"notes.txt", "a", "c"}
    assert folds.enough(kept, 3) is kept
    with pytest.raises(InputError, match=r"too few in a \(1\), b \(2\)\. Use fewer folds \(n_folds in params.yaml"):
        folds.enough(listed("abbccc"), 3)


def grouped(labels, groups, kind="patient"):
    """A table of these labels and groups."""
    return listed(labels, kind=kind, group=list(groups))


def test_patients_give_a_second_rule_with_the_same_folds_as_ever(recwarn):
    labels, groups = archive()
    found = folds.rules(grouped(labels, groups), 5, seed=3)
    assert list(found) == ["by image", "by patient"] and folds.strictest(found) == "by patient"
    assert folds.count(found) == 5 and not recwarn.list
    for name, rule in (("by image", "image"), ("by patient", "group")):
        np.testing.assert_array_equal(found[name], folds.assign(labels, groups, 5, rule, seed=3))


def test_images_that_are_groups_of_their_own_have_one_rule_and_a_notice():
    table = grouped("aaaabbbb", "12345678", kind="image")
    with pytest.warns(UserWarning, match="there are folds by image only.* sub-folder of their class"):
        found = folds.rules(table, 2, seed=0)
    assert list(found) == ["by image"] and folds.strictest(found) == "by image" and folds.count(found) == 2
    assert folds.usable(table, 2, seed=0) is table


def test_few_patients_make_fewer_folds_and_a_notice():
    labels, groups = "ab" * 12, list("ppqqrr") * 4
    with pytest.warns(UserWarning, match="3 folds by group instead of 5: there are 3 groups"):
        found = folds.rules(grouped(labels, groups), 5, seed=0)
    assert folds.count(found) == "5 by image and 3 by patient"
    assert {len(set(np.array(groups)[found["by patient"] == fold])) for fold in range(3)} == {1}


@pytest.mark.parametrize("groups", ["p" * 12, "pppppp" + "qqqqqq"], ids=["one patient", "a patient per class"])
def test_patients_that_cannot_be_kept_apart_become_images_with_a_notice(groups):
    """Without this the mapper would learn from one class, or no query would have anything to find."""
    table = grouped("aaaaaabbbbbb", groups)
    with pytest.raises(InputError, match="cannot be divided into folds"):
        folds.rules(table, 3, seed=0)
    with pytest.warns(UserWarning, match="every image is taken for a group of its own.*Add groups"):
        usable = folds.usable(table, 3, seed=0)
    assert usable.group_kind == "image" and len(set(usable.groups)) == 12
    assert usable.rows.drop(columns="group").equals(table.rows.drop(columns="group"))


def test_every_fold_by_group_has_two_classes_to_learn_from_and_something_to_find():
    """Three patients have only a, the fourth has b and c: alone in a fold it would leave one class to learn from."""
    labels, groups = "aaaa" * 3 + "bbcc", np.repeat(list("pqrs"), 4)
    assert set(folds.assign(list(labels), groups, 4, "group", seed=0)) == {0, 1, 2, 3}
    with pytest.raises(InputError, match="4 groups cannot be divided"):
        folds.by_group(list(labels), groups, 4, seed=0)


def test_inside_a_training_part_images_stand_in_for_groups_that_cannot_be_divided():
    labels = list("ab" * 8)
    fold_of, groups = folds.apart(labels, list("ppqq" * 4), 2, seed=0)
    assert set(groups) == {"p", "q"} and set(fold_of) == {0, 1}
    with pytest.warns(UserWarning, match="In a part of .* every image is taken for a group of its own"):
        fold_of, groups = folds.apart(labels, ["p"] * 16, 4, seed=0)
    assert len(set(groups)) == 16 and np.bincount(fold_of).tolist() == [4, 4, 4, 4]


@pytest.mark.parametrize("function", [folds.rules, folds.usable])
def test_one_fold_is_an_error(function):
    with pytest.raises(InputError, match="n_folds"):
        function(grouped("aaabbb", "ppqqrr"), 1, seed=0)


def test_by_group_a_rare_class_is_no_error_and_no_warning(recwarn):
    fold_of = folds.assign(list("aaaaaab"), list("1234567"), 3, "group", seed=0)
    assert set(fold_of) == {0, 1, 2} and not recwarn.list


def test_a_fold_without_images_is_an_error(monkeypatch):
    class Lopsided:
        def __init__(self, n_folds):
            pass

        def split(self, x, y, groups):
            return iter([([2, 3], [0, 1]), ([0, 1], [2, 3]), ([0, 1, 2, 3], [])])

    monkeypatch.setattr(folds, "StratifiedGroupKFold", Lopsided)
    with pytest.raises(InputError, match="no group fell into fold 2 of 3"):
        folds.assign(list("aaab"), list("1234"), 3, "group", seed=0)


@pytest.mark.parametrize(
    ("labels", "groups", "rule", "message"),
    [
        (["a", None, "a", "b"], list("1234"), "image", "1 images have no label, the first at row 1"),
        (["a", "a", "b", float("nan")], list("1234"), "image", "1 images have no label, the first at row 3"),
        (["a", "a", "b", "b"], ["1", "", "", "2"], "image", "2 images have no group, the first at row 1"),
        ("ab", "123", "image", "2 labels but 3 groups"),
        ("aaaabbc", "1234567", "image", r"3 images of every class; too few in b \(2\), c \(1\).*n_folds in p"),
        ("aaabbb", "111222", "group", "there are 2 groups.*n_folds in params.yaml, or in the parameters"),
        ("aabb", "1234", "group", "at most 2 images in a class"),
        ("aaab", "1234", "patient", "fold rule 'patient' is unknown"),
    ],
)
def test_what_cannot_be_divided_is_named(labels, groups, rule, message):
    with pytest.raises(InputError, match=message):
        folds.assign(list(labels), list(groups), 3, rule, seed=0)


def test_report_counts_what_no_training_image_can_answer():
    labels = list("aaaabbbcc")
    groups = list("112233345")
    fold_of = np.array([0, 0, 1, 1, 2, 2, 2, 0, 1])
    report = folds.report(labels, groups, fold_of)
    assert report.index.tolist() == ["a", "b", "c"]
    assert report["images"].tolist() == [4, 3, 2]
    assert report["groups"].tolist() == [2, 1, 2]
    assert report["unanswerable_folds"].tolist() == [(), (2,), ()]
    assert report["unanswerable_queries"].tolist() == [0, 3, 0]
