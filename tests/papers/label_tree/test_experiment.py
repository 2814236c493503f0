"""Splits keep patients apart, measures belong to one set of predictions, and test images have no say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.geometry import PoincareBall
from lib.metrics import hierarchy
from lib.papers.label_tree import experiment, names
from lib.training.label_tree import Objective, Schedule

SCHEDULE = Schedule(epochs=6, batch_size=32, lr=5e-3, hidden=16, dim_out=4)
OBJECTIVES = {
    names.NONE: Objective(),
    "HWC (Euclidean)": Objective("HWC"),
    "HWC+LAM (Hyperbolic)": Objective("HWC", PoincareBall(1.0), margin_weight=1.0),
}


@pytest.fixture(scope="module")
def several(seen):
    return experiment.by_group(seen, n_folds=3, folds_used=2, n_seeds=2, seed=0)


@pytest.fixture(scope="module")
def found(seen, several):
    return experiment.run(seen, OBJECTIVES, several, SCHEDULE, store=None, workers=1)


def test_no_patient_is_on_both_sides_and_validation_stays_inside_the_training_part(seen, several):
    for split in several:
        assert not set(seen.groups[split.train]) & set(seen.groups[split.test])
        inner = experiment.validation(seen, split, seed=0)
        assert set(inner.train) | set(inner.test) == set(split.train)
        assert not set(seen.groups[inner.train]) & set(seen.groups[inner.test])
        assert not set(inner.train) & set(split.test) and not set(inner.test) & set(split.test)
    assert [(one.fold, one.repeat) for one in several] == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_every_method_answers_the_same_images_above_chance_and_its_measures_are_of_one_set_of_predictions(seen, found):
    for name, scores in found.items():
        assert [one.split.repeat for one in scores] == [0, 0, 1, 1], name
        for one in scores:
            assert one.values["leaf"].tolist() == seen.leaves[one.split.test].tolist()
            assert one.values["group"].tolist() == seen.groups[one.split.test].tolist()
            assert one.values["top1"].mean() > 0.5 and one.values["order"].mean() > 0.9, name
            right = one.values["predicted"] == one.values["leaf"]
            assert (one.values["top1"] == right).all()
            again = hierarchy.of_predictions(one.values["leaf"], one.values["predicted"], seen.tree)
            pd.testing.assert_frame_equal(again, one.values[again.columns], check_dtype=False)


def test_what_is_measured_is_what_loops_measure(seen, several, found):
    features, split = seen.views[0], several[0]
    (first, *_) = found[names.NONE]
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    parents = np.array([seen.tree.leaves[leaf][0] for leaf in seen.leaves])
    for row, image in zip(first.values.itertuples(), split.test, strict=True):
        near = split.train[np.argsort(-unit[split.train] @ unit[image], kind="stable")[:5]]
        assert row.hit5 == float((seen.leaves[near] == seen.leaves[image]).any())
        centres = {side: unit[split.train][parents[split.train] == side].sum(0) for side in "ab"}
        cosines = {side: centre @ unit[image] / np.linalg.norm(centre) for side, centre in centres.items()}
        assert row.order == float(max(cosines, key=cosines.get) == parents[image])


def test_test_images_have_no_say_in_what_is_learnt(seen, several):
    spoiled = seen.views.copy()
    spoiled[:, several[0].test] += 50
    one = {"HWC": OBJECTIVES["HWC (Euclidean)"]}
    first = experiment.run(seen, one, several[:1], SCHEDULE, store=None, workers=1)["HWC"][0]
    other = experiment.run(replace(seen, views=spoiled), one, several[:1], SCHEDULE, store=None, workers=1)["HWC"][0]
    assert first.history == other.history


def test_a_tree_that_is_cut_has_the_classes_of_that_level(seen, several):
    flat = seen.cut(1)
    assert flat.tree.leaves == ("a", "b") and (flat.leaves == (seen.leaves > 1)).all()
    one = experiment.run(flat, {"HWC": Objective("HWC")}, several[:1], SCHEDULE, store=None, workers=1)["HWC"][0]
    assert one.values["order"].isna().all() and one.values["top1"].mean() > 0.9


def test_chance_is_the_mean_over_all_answers_drawn_as_often_as_leaves_were_learnt(seen, several):
    split, random = several[0], np.random.default_rng(0)
    drawn = random.choice(seen.leaves[split.train], size=200 * len(split.test))
    asked = np.tile(seen.leaves[split.test], 200)
    wanted = hierarchy.of_predictions(asked, drawn, seen.tree)[["top1", "hf1", "h_acc"]].mean()
    found = experiment.blind(seen.leaves, seen.tree, [split, replace(split, repeat=1)])
    assert [found[names.CHANCE][name] for name in wanted.index] == pytest.approx(wanted.tolist(), abs=0.02)
    most = np.bincount(seen.leaves[split.train]).argmax()
    same = hierarchy.of_predictions(seen.leaves[split.test], np.full(len(split.test), most), seen.tree)
    assert found[names.COMMONEST]["hf1"] == pytest.approx(same["hf1"].mean())
    assert found[names.COMMONEST]["top1"] == pytest.approx((seen.leaves[split.test] == most).mean())
    n_asked = len(set(seen.leaves[split.test]))
    assert found[names.COMMONEST]["top1 by class"] == pytest.approx(1 / n_asked)
    by_leaf = same["hf1"].groupby(seen.leaves[split.test]).mean().mean()
    assert found[names.COMMONEST]["hf1 by class"] == pytest.approx(by_leaf)


def test_chance_has_an_order_of_parents_and_five_neighbours(seen, several):
    """Counted over draws: the parent of a drawn answer, and five training images without replacement."""
    split, random = several[0], np.random.default_rng(1)
    found = experiment.blind(seen.leaves, seen.tree, [split])
    learnt, asked = seen.leaves[split.train], seen.leaves[split.test]
    above = seen.tree.ancestor_codes(seen.tree.depth - 1)
    order = np.mean([above[random.choice(learnt)] == above[leaf] for leaf in np.tile(asked, 400)])
    hit5 = np.mean([leaf in random.choice(learnt, 5, replace=False) for leaf in np.tile(asked, 400)])
    one = found[names.CHANCE]
    assert one["order"] == pytest.approx(order, abs=0.02) and one["hit5"] == pytest.approx(hit5, abs=0.02)
    assert one["order"] + one["violation"] == pytest.approx(1)
    most = np.bincount(learnt).argmax()
    assert found[names.COMMONEST]["order"] == pytest.approx((above[asked] == above[most]).mean())
    assert found[names.COMMONEST]["hit5"] == pytest.approx((asked == most).mean())
    flat = seen.cut(1)
    assert "order" not in experiment.blind(flat.leaves, flat.tree, [split])[names.CHANCE]


def test_chance_by_class_pools_the_queries_of_all_folds(seen, several):
    """Leaf 0 is found once in one fold and never, three times over, in the other; no other leaf is found."""
    zeros, ones = (np.flatnonzero(seen.leaves == leaf) for leaf in (0, 1))
    parts = [
        replace(several[0], train=zeros, test=np.append(ones[:6], zeros[0])),
        replace(several[1], train=ones, test=zeros[1:4]),
    ]
    found = experiment.blind(seen.leaves, seen.tree, parts)[names.COMMONEST]
    assert found["top1 by class"] == pytest.approx((1 / 4 + 0) / 2)


def test_two_runs_agree_and_what_was_measured_is_kept(seen, several, tmp_path):
    one = {"HWC": OBJECTIVES["HWC (Euclidean)"]}
    first = experiment.run(seen, one, several[:1], SCHEDULE, store=tmp_path, workers=1)["HWC"][0]
    again = experiment.run(seen, one, several[:1], SCHEDULE, store=tmp_path, workers=1)["HWC"][0]
    pd.testing.assert_frame_equal(first.values, again.values)
    assert len(list(tmp_path.glob("*.pt"))) == 2


def test_the_list_of_objectives_has_every_contrastive_one_in_both_geometries():
    known = names.objectives(Objective(), 1.0, 0.5)
    for name in names.ROWS:
        if name == names.HXE:
            continue
        flat, ball = known[name + names.FLAT], known[name + names.BALL]
        assert replace(ball, geometry=flat.geometry) == flat and ball.geometry == PoincareBall(0.5)
    assert set(names.MAIN) | set(names.BY_DEPTH) <= set(known)
