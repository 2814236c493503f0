"""One experiment for all heads: fits on training parts alone, trains once what is one, and is the loop by hand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib import paths
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.heads import HyperbolicMapper, Reduction
from lib.losses.hyper_dino import ContrastiveLoss
from lib.losses.linear_prototypes import Comparison
from lib.metrics import retrieval
from lib.training import classifier, experiment, hyper_dino, linear_prototypes, sweep
from lib.training.episodes import Episodes
from lib.training.experiment import answers, ask, fit, votes
from lib.training.fit import Schedule, fit_head
from lib.training.methods import Answer, Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import GALLERIES, repeated, splits
from tests.training.conftest import GROUPS, LABELS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 8))[LABELS] + 0.8 * RNG.normal(size=(72, 8))
X = X.astype(np.float32) * np.logspace(0, 2, 8, dtype=np.float32)
VIEWS = np.stack([X, X + 0.1 * RNG.normal(size=X.shape).astype(np.float32)])
FOLD_OF = np.arange(72) // 3 % 3
KS = (1, 5)

SHORT, EPISODES = Schedule(epochs=6, batch_size=32), Episodes(epochs=6, batch_size=24, k=3)
MAPPER, PROTOTYPES = hyper_dino.Settings(hidden=16, half=False), linear_prototypes.Settings(hidden=16)
POINCARE = replace(PROTOTYPES, comparison=Comparison("poincare", 0.5))
SCALED = Recipe("scaled", 8, 4)
RAW = Method("raw", Recipe("raw", 8, 0), PROTOTYPES)
MAPPED = Method("mapper", Recipe("PCA", 4, 2), MAPPER, SHORT)
EPISODIC = Method("prototypes", SCALED, PROTOTYPES, EPISODES, search="cosine")
CURVED = Method("prototypes in the ball", SCALED, POINCARE, EPISODES)
METHODS = [
    RAW,
    Method("PCA", Recipe("PCA", 4, 0), MAPPER, SHORT),
    MAPPED,
    Method("mapper on NCA", Recipe("NCA", 3, 3), MAPPER, SHORT),
    Method("mapper on the same, cosine", Recipe("NCA", 3, 3), MAPPER, SHORT, search="cosine"),
    EPISODIC,
    replace(EPISODIC, name="prototypes, one view", augmented=False),
    CURVED,
]
each_head = pytest.mark.parametrize("method", [MAPPED, EPISODIC], ids=lambda method: method.name)
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


@pytest.fixture(scope="module")
def fitted(where) -> dict[str, list[Fitted]]:
    return fit(VIEWS, LABELS, METHODS, where, workers=1)


def alike(one: Answer, two: Answer) -> bool:
    same = one.per_query.values.equals(two.per_query.values) and np.array_equal(one.norms, two.norms)
    return same and np.array_equal(one.per_query.n_relevant, two.per_query.n_relevant)


# What is fitted


@pytest.mark.parametrize("recipe", [Recipe("PCA", 4, 2), Recipe("NCA", 3, 3), Recipe("whitened", 5, 2)])
@pytest.mark.parametrize("half", [True, False])
def test_a_mapper_is_the_one_fitted_by_hand(recipe, half):
    """Reduction, mapper, :func:`fit_head` and retrieval one after the other, with the seed of the fold."""
    method = Method("mapper", recipe, hyper_dino.Settings(hidden=16, half=half, nca_images=40), SHORT)
    answer = answers(X, LABELS, [method], splits(FOLD_OF, 3), KS, workers=1)["mapper"][1]
    train, test = FOLD_OF != 1, FOLD_OF == 1
    options = {"half": half, "nca_images": 40, "seed": 4}
    reduction = Reduction.fit(X[train], LABELS[train], recipe.source, recipe.dim_in, **options)
    head = HyperbolicMapper(
        recipe.dim_in, recipe.dim_out, hidden=16, generator=torch.Generator().manual_seed(4)
    )  # delta and curvature are the default of both
    x = reduction(X[train])
    with torch.no_grad():  # the median of tanh|e| is that of the norms in the ball
        shrunk = np.arctanh(0.3) / head.layers(torch.from_numpy(x)).norm(dim=-1).median()
        head.layers[2].weight.copy_(head.layers[2].weight * shrunk)
        head.layers[2].bias.copy_(head.layers[2].bias * shrunk)
    history = fit_head(head, ContrastiveLoss(PoincareBall(1.0)), x, LABELS[train], SHORT, seed=4)
    with torch.no_grad():
        embedding = head(torch.from_numpy(reduction(X)))
    if half:
        embedding = PoincareBall(1.0).project(embedding.half().float(), margin=1e-3)
    by_hand = retrieval.evaluate(embedding[test], embedding[train], LABELS[test], LABELS[train], PoincareBall(1.0), KS)
    assert answer.history == pytest.approx(history, rel=1e-4)
    np.testing.assert_allclose(answer.norms, embedding[train].norm(dim=-1), rtol=1e-2 if half else 1e-4)
    different = (answer.per_query.values - by_hand.values).abs().max(axis=1) > 1e-6
    assert different.sum() <= 1  # rounding may swap two neighbours
    np.testing.assert_array_equal(answer.per_query.n_relevant, by_hand.n_relevant)


def test_nothing_that_is_held_out_is_fitted(where, fitted):
    """Change the held-out images and their classes beyond recognition: losses and maps must not move."""
    changed, relabelled = VIEWS.copy(), LABELS.copy()
    out = where[1].held_out
    changed[:, out] = 1000 * changed[:, out] + 7
    relabelled[out] = 2 - LABELS[out]
    for name, several in fit(changed, relabelled, METHODS, where, workers=1).items():
        assert several[1].history == fitted[name][1].history
        assert several[1].health.rim == pytest.approx(fitted[name][1].health.rim, abs=0, nan_ok=True)
        assert torch.equal(several[1].embed(X), fitted[name][1].embed(X))


@each_head
def test_labels_that_are_not_known_are_not_learnt_from(where, method):
    few = replace(where[0], labelled=where[0].train[:20])
    other = LABELS.copy()
    other[np.setdiff1d(few.train, few.labelled)] = 0
    one, two, all_known = (
        fit(X, labels, [method], [split], workers=1)[method.name][0]
        for labels, split in ((LABELS, few), (other, few), (other, where[0]))
    )
    assert one.history == two.history and torch.equal(one.embed(X), two.embed(X))
    assert one.history != all_known.history


def test_repeats_share_what_is_before_the_head_and_begin_with_the_first_training(where, fitted):
    again = fit(VIEWS, LABELS, METHODS, repeated(where, 2), workers=1)
    for name, alone in fitted.items():
        first, second = again[name][: len(where)], again[name][len(where) :]
        for one, other, same in zip(first, second, alone, strict=True):
            assert one.reduction is other.reduction
            assert torch.equal(one.embed(X), same.embed(X))
            assert torch.equal(one.embed(X), other.embed(X)) == (one.network is None)


# What is not done twice, and what changes nothing


@each_head
def test_methods_that_differ_in_their_search_are_trained_once(where, monkeypatch, method):
    made = []
    make = type(method.head).make
    monkeypatch.setattr(type(method.head), "make", lambda *call: made.append(call) or make(*call))
    todo = [replace(method, name=name, search=name) for name in ("own", "cosine", "euclidean")]
    found = fit(X, LABELS, todo, where, workers=1)
    assert len(made) == len(where)
    for several in zip(*found.values(), strict=True):
        assert len({id(one.network) for one in several}) == 1
        assert [one.history for one in several] == [several[0].history] * 3
    asked = ask(found, X, LABELS, KS, workers=1)
    assert not alike(asked["cosine"][0], asked["euclidean"][0])


@each_method
def test_a_method_does_not_depend_on_those_beside_it(where, fitted, method):
    """Heads of other shapes, losses and folds share its stacks and its processes."""
    assert [(one.method, one.split) for one in fitted[method.name]] == [(method, split) for split in where]
    for one in fitted[method.name]:
        assert (one.network is None) == (method.recipe.dim_out == 0)
        assert one.geometry == (Euclidean() if one.network is None else method.head.geometry)
    asked = ask({"": fitted[method.name]}, X, LABELS, KS, workers=1)[""]
    for split, together in zip(where, asked, strict=True):
        (alone,) = answers(VIEWS, LABELS, [method], [split], KS, workers=1)[method.name]
        assert alone.history == pytest.approx(together.history, rel=1e-4)
        pd.testing.assert_frame_equal(alone.per_query.values, together.per_query.values, atol=1e-6)
        np.testing.assert_allclose(alone.norms, together.norms, atol=1e-5)


@pytest.mark.slow
def test_workers_do_not_change_the_result(where, fitted):
    again = fit(VIEWS, LABELS, METHODS, where, workers=2)
    for name in fitted:
        assert all(torch.equal(a.embed(X), b.embed(X)) for a, b in zip(fitted[name], again[name], strict=True)), name
    one, two = (ask(found, X, LABELS, KS, workers=workers) for found, workers in ((fitted, 1), (again, 2)))
    assert list(one) == list(two)
    for name in one:
        for a, b in zip(one[name], two[name], strict=True):
            assert a.history == b.history and repr(a.health) == repr(b.health) and alike(a, b), name


def test_what_was_trained_is_kept_whatever_else_is_trained_with_it(where, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "TRAINED", tmp_path)
    alone = fit(X, LABELS, [MAPPED], where, workers=1)[MAPPED.name]
    trained, sweep_fit = [], sweep._fit
    monkeypatch.setattr(sweep, "_fit", lambda tasks, *rest: trained.extend(tasks) or sweep_fit(tasks, *rest))
    renamed = replace(MAPPED, name="another name")
    together = fit(X, LABELS, [EPISODIC, renamed, CURVED], where, workers=1)
    assert len(trained) == 2 * len(where) and not any("another name" in task.name for task in trained)
    for one, other in zip(alone, together["another name"], strict=True):
        assert torch.equal(one.embed(X), other.embed(X)) and one.health == other.health


# What is asked


@pytest.mark.parametrize(
    ("how", "space"), [("cosine", Sphere()), ("euclidean", Euclidean()), ("own", PoincareBall(0.5))]
)
def test_the_search_compares_as_it_says(where, how, space):
    method = replace(CURVED, search=how)
    (one,) = fit(VIEWS, LABELS, [method], where[:1], workers=1)[method.name]
    (answer,) = ask({"": [one]}, X, LABELS, KS, groups=GROUPS, workers=1)[""]
    split = where[0]
    queries, gallery = one.embed(X[split.test]), one.embed(X[split.train])  # the last bits depend on how many there are
    expected = retrieval.evaluate(queries, gallery, LABELS[split.test], LABELS[split.train], space, KS)
    assert answer.per_query.values.equals(expected.values)
    np.testing.assert_array_equal(answer.norms, gallery.norm(dim=-1))
    assert (answer.method, answer.split, answer.history) == (method, split, one.history)
    assert answer.health == one.health


def test_what_is_not_trained_searches_once_for_all_repeats(where, monkeypatch):
    times, searched = repeated(where, 3), []
    fitted = fit(VIEWS, LABELS, METHODS[:3], times, workers=1)
    alone = {name: [ask({name: [head]}, X, LABELS, KS, workers=1)[name][0] for head in fitted[name]] for name in fitted}
    search = experiment._search
    monkeypatch.setattr(experiment, "_search", lambda *given: searched.append(given[0].method.name) or search(*given))
    together = ask(fitted, X, LABELS, KS, workers=1)
    assert Counter(searched) == {"raw": 2, "PCA": 2, "mapper": 6}
    for name, answered in together.items():
        assert all(alike(*pair) for pair in zip(answered, alone[name], strict=True))
        assert [answer.split for answer in answered] == times


def test_one_network_that_is_searched_in_two_ways_gives_two_answers(where):
    heads = {ranking: classifier.Settings(ranking=ranking) for ranking in classifier.RANKINGS}
    methods = [Method(name, Recipe("scaled", 8, 3), head, SHORT) for name, head in heads.items()]
    fitted = fit(VIEWS, LABELS, methods, where, workers=1)
    together = ask(fitted, X, LABELS, KS, workers=1)
    for name, heads in fitted.items():
        assert alike(together[name][0], ask({name: heads[:1]}, X, LABELS, KS, workers=1)[name][0])
    assert not alike(*(answers[0] for answers in together.values()))


def test_the_open_gallery_is_the_held_out_part_without_the_own_group(where):
    raw = fit(X, LABELS, [RAW], where, workers=1)
    for answer in ask(raw, X, LABELS, KS, gallery="open", groups=GROUPS, workers=1)["raw"]:
        split = answer.split
        same = LABELS[split.test, None] == LABELS[split.held_out]
        others = GROUPS[split.test, None] != GROUPS[split.held_out]
        assert answer.per_query.n_relevant.tolist() == (same & others).sum(1).tolist()


@pytest.mark.parametrize("archive", ["closed", "whole"])
def test_one_patient_left_out_asks_what_was_learnt_or_all_others(where, fitted, archive):
    found, one = votes({"raw": fitted["raw"]}, X, LABELS, GROUPS, workers=1)[archive]["raw"], fitted["raw"][0]
    assert [part.votes.shape for part in found] == [(12, 3), (12, 3)]
    assert found[0].n_without_relevant == 0 and (found[0].classes == LABELS[where[0].test]).all()
    for query, voted in zip(where[0].test, found[0].votes, strict=True):
        others = where[0].train if archive == "closed" else np.flatnonzero(GROUPS[query] != GROUPS)
        near = others[np.linalg.norm(one.embed(X[others]) - one.embed(X[[query]]), axis=1).argsort()]
        assert voted[0] == LABELS[near[0]]
        counts = np.bincount(LABELS[near[:5]])
        assert counts[voted[2]] == counts.max()


def test_a_class_of_one_patient_is_left_out_and_does_not_draw_macro_f1_down(where, fitted):
    """All images of class 2 are made those of one patient: nobody else has one, whichever archive is searched."""
    labels = np.where(LABELS == 2, 0, LABELS)
    labels[GROUPS[where[0].test[0]] == GROUPS] = 2
    found = votes({"raw": fitted["raw"]}, X, labels, GROUPS, workers=1)
    for several in (by_method["raw"] for by_method in found.values()):
        alone = [np.count_nonzero(labels[split.test] == 2) for split in where]
        assert [one.n_without_relevant for one in several] == alone and alone[0] > 0
        assert not any((one.classes == 2).any() for one in several)


def test_an_open_gallery_without_groups_is_refused(where):
    """Every query would find itself first."""
    raw = fit(X, LABELS, [RAW], where[:1], workers=1)
    with pytest.raises(InputError, match="the open gallery holds the queries themselves: give the groups"):
        ask(raw, X, LABELS, KS, gallery="open")


def test_a_query_that_would_meet_itself_or_its_group_is_refused(where):
    split = where[0]
    sibling = next(i for i in split.held_out if i not in split.test and GROUPS[i] == GROUPS[split.test[0]])
    for image, words in ((split.test[0], "is in the gallery itself"), (sibling, "finds images of its own group")):
        beside = fit(X, LABELS, [RAW], [replace(split, train=np.append(split.train, image))], workers=1)
        for gallery in GALLERIES:  # in the open one it is not searched, but was learnt from
            with pytest.raises(InputError, match=words):
                ask(beside, X, LABELS, KS, gallery=gallery, groups=GROUPS, workers=1)


@pytest.mark.parametrize("ks", [5, (), (1, 0), ("5",), (True,)], ids=str)
def test_list_lengths_without_meaning_are_refused_before_anything_is_trained(ks, where, monkeypatch):
    monkeypatch.setattr(Reduction, "fit", None)  # calling it would be another error
    with pytest.raises(InputError, match="ks"):
        answers(X, LABELS, METHODS, where, ks, workers=1)
    with pytest.raises(InputError, match="ks"):
        ask({}, X, LABELS, ks)


def test_methods_of_one_name_are_refused(where):
    with pytest.raises(InputError, match=f"different names; twice: {MAPPED.name}"):
        fit(X, LABELS, [MAPPED, replace(MAPPED, augmented=False)], where, workers=1)
