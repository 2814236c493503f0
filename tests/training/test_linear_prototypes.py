"""PT and TL on the same splits: who is learnt from, who asks, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.datasets import folds
from lib.datasets.queries import balanced
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.losses.linear_prototypes import Comparison, EpisodeLoss
from lib.metrics import retrieval
from lib.training import hyper_dino
from lib.training import linear_prototypes as experiment
from lib.training.episodes import Episodes
from lib.training.fit import Schedule, fit_head
from lib.training.linear_prototypes import PT, SCALED, TL, Settings

RNG = np.random.default_rng(0)
LABELS = np.tile(np.arange(3), 24)
GROUPS = np.repeat([f"patient {i}" for i in range(12)], 6)
SIGNAL = RNG.normal(size=(3, 8))
X = (SIGNAL[LABELS] + 0.8 * RNG.normal(size=(72, 8))).astype(np.float32) * np.logspace(0, 2, 8, dtype=np.float32)
VIEWS = np.stack([X, X + 0.1 * RNG.normal(size=X.shape).astype(np.float32)])
SMALL = Settings(hidden=16, dim_out=4)
SHORT = Episodes(epochs=6, batch_size=24, k=3, views=2)
KS = (1, 5)


@pytest.fixture(scope="module")
def where() -> list[experiment.Split]:
    fold_of = folds.assign(LABELS.astype(str), GROUPS, 4, "group", 0)
    drawn = {fold: balanced(LABELS.astype(str), GROUPS, fold_of, fold, 4, 0) for fold in range(2)}
    return experiment.splits(drawn, seed=7)


def test_a_split_keeps_the_groups_of_its_queries_out_of_training(where):
    for number, split in enumerate(where):
        assert split.seed == 7 + number
        assert not set(GROUPS[split.test]) & set(GROUPS[split.train])
        assert set(split.test) <= set(split.held_out)
        assert sorted([*split.train, *split.held_out]) == list(range(72))
        assert np.bincount(LABELS[split.test]).tolist() == [4, 4, 4]


def test_few_labels_are_so_many_of_each_class_and_of_the_training_part(where):
    few = where[0].with_labels(LABELS, 5)
    assert np.bincount(LABELS[few.labelled]).tolist() == [5, 5, 5]
    assert set(few.labelled) < set(few.train)
    assert np.array_equal(few.train, where[0].train)
    assert np.array_equal(where[0].with_labels(LABELS, 1000).labelled, where[0].train)


def test_a_head_of_the_experiment_is_the_head_trained_alone(where):
    fitted = experiment.fit(VIEWS, LABELS, where, SMALL, SHORT, workers=1)
    for one, split in zip(fitted, where, strict=True):
        mean, spread = X[split.train].mean(0), X[split.train].std(0)
        rows = np.concatenate([(view[split.train] - mean) / spread for view in VIEWS]).astype(np.float32)
        head = SMALL.head(8, split.seed)
        history = fit_head(head, EpisodeLoss(3, 3), rows, np.tile(LABELS[split.train], 2), SHORT, seed=split.seed)
        assert one.history == pytest.approx(history, rel=1e-3)
        expected = head(torch.from_numpy(((X - mean) / spread).astype(np.float32)))
        torch.testing.assert_close(one.embed(X), expected.detach(), atol=1e-3, rtol=1e-3)


def test_test_images_do_not_touch_what_is_fitted(where):
    other = VIEWS.copy()
    other[:, where[0].held_out] += 100
    before, after = (experiment.fit(v, LABELS, where[:1], SMALL, SHORT, workers=1)[0] for v in (VIEWS, other))
    assert before.history == after.history
    assert torch.equal(before.embed(X), after.embed(X))


def test_a_class_with_too_few_labels_is_no_prototype_but_stays_in_the_gallery(where):
    split = where[0]
    third = np.flatnonzero(LABELS[split.train] == 2)
    scarce = replace(split, labelled=np.delete(split.train, third[3:]))
    assert set(LABELS[experiment.learnable(LABELS, scarce, 3)]) == {0, 1}
    (fitted,) = experiment.fit(VIEWS, LABELS, [scarce], SMALL, SHORT, workers=1)
    (answer,) = experiment.ask([fitted], X, LABELS, GROUPS, KS)
    assert (answer.per_query.n_relevant == (LABELS[split.train] == LABELS[split.test, None]).sum(1)).all()


def test_too_few_labels_of_all_classes_are_refused_by_name(where):
    with pytest.raises(InputError, match=r"fold 0: K = 3 needs at least 4 labelled images .* 3 of class number 0"):
        experiment.fit(VIEWS, LABELS, [where[0].with_labels(LABELS, 3)], SMALL, SHORT)


@pytest.mark.parametrize(
    ("search", "space"), [("cosine", Sphere()), ("euclidean", Euclidean()), ("own", PoincareBall(0.5))]
)
def test_the_search_compares_as_it_says(where, search, space):
    settings = replace(SMALL, comparison=Comparison("poincare", 0.5))
    fitted = experiment.fit(VIEWS, LABELS, where[:1], settings, SHORT, workers=1)
    (answer,) = experiment.ask(fitted, X, LABELS, GROUPS, KS, search=search, workers=1)
    split, h = where[0], fitted[0].embed(X)
    expected = retrieval.evaluate(h[split.test], h[split.train], LABELS[split.test], LABELS[split.train], space, KS)
    assert answer.per_query.values.equals(expected.values)


def test_the_open_gallery_is_the_held_out_part_without_the_own_group(where):
    fitted = experiment.frozen(X, where, scaled=False)
    for one, answer in zip(fitted, experiment.ask(fitted, X, LABELS, GROUPS, KS, gallery="open"), strict=True):
        split = one.split
        same = LABELS[split.test, None] == LABELS[split.held_out]
        others = GROUPS[split.test, None] != GROUPS[split.held_out]
        assert answer.per_query.n_relevant.tolist() == (same & others).sum(1).tolist()


def test_a_query_in_its_own_gallery_is_refused(where):
    split = where[0]
    itself = experiment.frozen(X, [replace(split, train=np.append(split.train, split.test[0]))], scaled=True)
    with pytest.raises(InputError, match=f"query image {split.test[0]} is in the gallery itself"):
        experiment.ask(itself, X, LABELS, GROUPS, KS, workers=1)
    sibling = next(i for i in split.held_out if i not in split.test and GROUPS[i] == GROUPS[split.test[0]])
    beside = experiment.frozen(X, [replace(split, train=np.append(split.train, sibling))], scaled=True)
    with pytest.raises(InputError, match=f"finds images of its own group, {GROUPS[sibling]}"):
        experiment.ask(beside, X, LABELS, GROUPS, KS, workers=1)


@pytest.mark.parametrize("gallery", ["closed", "open"])
def test_a_k_beyond_the_gallery_is_refused(where, gallery):
    size = {"closed": len(where[0].train), "open": len(where[0].held_out) - 6}[gallery]
    fitted = experiment.frozen(X, where[:1], scaled=True)
    experiment.ask(fitted, X, LABELS, GROUPS, [size], gallery=gallery, workers=1)
    with pytest.raises(InputError, match=f"k = {size + 1}, but a query has a gallery of {size} images"):
        experiment.ask(fitted, X, LABELS, GROUPS, [size + 1], gallery=gallery, workers=1)


def test_the_mapper_learns_from_the_labelled_images_only(where):
    few = where[0].with_labels(LABELS, 5)
    other = LABELS.copy()
    other[np.setdiff1d(few.train, few.labelled)] = 0
    settings, schedule = hyper_dino.Settings(hidden=16), Schedule(epochs=5, batch_size=24)
    first, second = (
        experiment.fit_mapper(X, labels, [few], settings, schedule, dim_out=4, workers=1)[0]
        for labels in (LABELS, other)
    )
    assert torch.equal(first.embed(X), second.embed(X))
    assert first.geometry == settings.geometry and first.history[-1] < first.history[0]


def test_all_three_methods_of_every_encoder_and_gallery_are_there(where):
    features = {"one": VIEWS, "two": X[None, :, :5]}
    found = experiment.pretrained_and_trained(features, LABELS, GROUPS, where, SMALL, replace(SHORT, epochs=40), KS)
    methods = [f"{encoder}, {method}" for encoder in features for method in (PT, SCALED, TL)]
    assert list(found) == ["closed", "open"]
    assert all(list(answers) == methods for answers in found.values())
    value = {
        method: np.mean([answer.per_query.values["ap_min", 5].mean() for answer in answers])
        for method, answers in found["closed"].items()
    }
    # The last number has a hundred times the spread of the first, and cosine sees little else.
    assert min(value["one, TL"], value["one, PT, scaled"]) > value["one, PT, as they are"] + 0.1


def test_the_support_is_no_larger_than_two_classes_allow():
    """Class 2 has one image, the second largest has four in one part and three in the other."""
    labels = np.array([0] * 9 + [1] * 4 + [2])
    parts = [np.arange(14), np.delete(np.arange(14), 9)]
    assert experiment.allowed_support(labels, parts[:1], 3) == 3
    with pytest.warns(UserWarning, match="K = 2 instead of 5: two classes or more need"):
        k = experiment.allowed_support(labels, parts, 5)
    split = experiment.Split(0, parts[1], parts[1], parts[1][:1], parts[1][:1], seed=0)
    assert set(labels[experiment.learnable(labels, split, k)]) == {0, 1}
    with pytest.raises(InputError, match="K = 3 needs at least 4 labelled images of two classes"):
        experiment.learnable(labels, split, 3)
