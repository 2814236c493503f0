"""The cross-validation fits on training parts alone, is the same at any number of workers, and learns."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.datasets import folds
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.heads import HyperbolicMapper, Reduction
from lib.losses.hyper_dino import contrastive
from lib.metrics import retrieval
from lib.training import sweep
from lib.training.fit import Schedule, fit_head
from lib.training.hyper_dino import Settings, Split, ask, crossvalidate, fit, splits
from lib.training.recipes import Recipe

SHORT = Schedule(epochs=6, batch_size=32)
FOLD_OF = np.arange(90) // 3 % 3
TODO = [Recipe("scaled", 6, 2), Recipe("PCA", 4, 0), Recipe("PCA", 4, 2), Recipe("NCA", 3, 3)]


def clusters(n: int = 90, dim: int = 6, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Classes that differ in two of six directions, so that a head has something to find."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    x = rng.normal(size=(n, dim))
    x[:, :2] += 1.5 * rng.normal(size=(classes, 2))[labels]
    return x.astype(np.float32), labels


def alike(one: retrieval.PerQuery, two: retrieval.PerQuery) -> bool:
    return one.values.equals(two.values) and np.array_equal(one.n_relevant, two.n_relevant)


def test_the_defaults_are_the_published_ones():
    """Section 2.2: 256 hidden units, curvature -1; section 2.3: m0 = 0.5, alpha = 0.1, lambda = 1e-3; float16."""
    settings = Settings()
    assert (settings.hidden, settings.geometry, settings.half) == (256, PoincareBall(1.0), True)
    assert (settings.m0, settings.alpha, settings.norm_weight) == (0.5, 0.1, 1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"m0": 0.9, "alpha": 0.3},
        {"norm_weight": 0.1, "self_pairs": True},
        {"detach_mean": False, "alpha": 0.5},
        {"geometry": Sphere()},
    ],
    ids=str,
)
def test_settings_reach_the_loss(options):
    h = (0.2 * torch.randn(12, 4, generator=torch.Generator().manual_seed(0))).requires_grad_()
    labels, valid = torch.arange(12) % 3, torch.arange(12) < 10
    changed = dict(options)
    expected = contrastive(h, labels, changed.pop("geometry", PoincareBall(1.0)), valid=valid, **changed).total
    got = Settings(**options).loss(h, labels, valid)
    assert torch.equal(got, expected)
    assert torch.equal(*(torch.autograd.grad(value, h)[0] for value in (got, expected)))
    plain = Settings().loss(h, labels, valid)
    assert (
        torch.autograd.grad(plain, h)[0] != torch.autograd.grad(Settings(**options).loss(h, labels, valid), h)[0]
    ).any() == bool(options)


def test_settings_reach_the_mapper():
    mapper = Settings(hidden=11, geometry=PoincareBall(0.5), delta=0.2).mapper(Recipe("PCA", 4, 2), seed=3)
    assert [tuple(weight.shape) for weight in mapper.parameters()] == [(11, 4), (11,), (2, 11), (2,)]
    assert (mapper.geometry, mapper.delta) == (PoincareBall(0.5), 0.2)
    same, other = (Settings(hidden=11).mapper(Recipe("PCA", 4, 2), seed=seed) for seed in (3, 4))
    assert torch.equal(mapper.layers[0].weight, same.layers[0].weight)
    assert not torch.equal(mapper.layers[0].weight, other.layers[0].weight)


def test_every_image_asks_once_and_never_itself():
    parts = splits(np.array([2, 0, 1, 0, 2]), seed=7)
    assert [(part.fold, part.seed) for part in parts] == [(0, 7), (1, 8), (2, 9)]
    assert [part.test.tolist() for part in parts] == [[1, 3], [2], [0, 4]]
    assert [part.train.tolist() for part in parts] == [[0, 2, 4], [0, 1, 3, 4], [1, 2, 3]]


def test_nothing_of_the_test_fold_is_fitted():
    """Change the test images and their classes beyond recognition: losses, norms and maps must not move."""
    x, labels = clusters()
    part = splits(FOLD_OF, seed=0)[1]
    changed, relabelled = x.copy(), labels.copy()
    changed[part.test] = 1000 * x[part.test] + 7
    relabelled[part.test] = 2 - labels[part.test]
    one = fit(x, labels, TODO, [part], Settings(), SHORT, workers=1)
    two = fit(changed, relabelled, TODO, [part], Settings(), SHORT, workers=1)
    for a, b in zip(one, two, strict=True):
        assert a.history == b.history
        assert torch.equal(a.embed(x), b.embed(x))


def test_what_is_fitted_comes_recipe_by_recipe_split_by_split():
    x, labels = clusters()
    parts = splits(FOLD_OF, seed=5)
    fitted = fit(x, labels, TODO, parts, Settings(), SHORT, workers=1)
    assert [(one.recipe, one.split.fold) for one in fitted] == [(recipe, fold) for fold in range(3) for recipe in TODO]
    for one in fitted:
        baseline = one.recipe.dim_out == 0
        assert (one.head is None) == baseline
        assert one.geometry == (Euclidean() if baseline else PoincareBall(1.0))
        assert len(one.history) == (0 if baseline else SHORT.epochs)
        assert one.embed(x).shape == (90, one.recipe.dim_out or one.recipe.dim_in)


@pytest.mark.parametrize("recipe", [Recipe("PCA", 4, 2), Recipe("NCA", 3, 3), Recipe("whitened", 5, 2)])
@pytest.mark.parametrize("half", [True, False])
def test_agrees_with_a_single_run_by_hand(recipe, half):
    """Reduction, mapper, :func:`fit_head` and retrieval one after the other, with the seed of the fold."""
    x, labels = clusters()
    settings = Settings(hidden=16, half=half, nca_images=40)
    outcome = crossvalidate(x, labels, FOLD_OF, [recipe], settings, SHORT, ks=(1, 5), seed=3, workers=1)[1]
    train, test = FOLD_OF != 1, FOLD_OF == 1
    options = {"half": half, "nca_images": 40, "seed": 4}
    reduction = Reduction.fit(x[train], labels[train], recipe.source, recipe.dim_in, **options)
    head = HyperbolicMapper(
        recipe.dim_in, recipe.dim_out, hidden=16, generator=torch.Generator().manual_seed(4)
    )  # delta and curvature are the default of both
    history = fit_head(
        head, lambda h, y: contrastive(h, y, PoincareBall(1.0)).total, reduction(x[train]), labels[train], SHORT, seed=4
    )
    with torch.no_grad():
        embedding = head(torch.from_numpy(reduction(x)))
    if half:
        embedding = PoincareBall(1.0).project(embedding.half().float(), margin=1e-3)
    by_hand = retrieval.evaluate(
        embedding[test], embedding[train], labels[test], labels[train], PoincareBall(1.0), (1, 5)
    )
    assert outcome.history == pytest.approx(history, rel=1e-4)
    np.testing.assert_allclose(outcome.norms, embedding[train].norm(dim=-1), rtol=1e-2 if half else 1e-4)
    different = (outcome.per_query.values - by_hand.values).abs().max(axis=1) > 1e-6
    assert different.sum() <= 1  # rounding may swap two neighbours
    np.testing.assert_array_equal(outcome.per_query.n_relevant, by_hand.n_relevant)


def test_the_baseline_is_euclidean_retrieval_on_scaled_pca():
    x, labels = clusters()
    outcome = crossvalidate(x, labels, FOLD_OF, [Recipe("PCA", 3, 0)], Settings(), SHORT, ks=(1, 5), workers=1)[2]
    train, test = FOLD_OF != 2, FOLD_OF == 2
    reduced = torch.from_numpy(Reduction.fit(x[train], labels[train], "PCA", 3)(x))
    by_hand = retrieval.evaluate(reduced[test], reduced[train], labels[test], labels[train], Euclidean(), (1, 5))
    assert alike(outcome.per_query, by_hand)
    np.testing.assert_allclose(outcome.norms, reduced[train].norm(dim=-1), rtol=1e-6)
    assert outcome.history == []


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
def test_float16_embeddings_are_projected_again(c):
    """Rounding alone moves points of norm 1 - 1e-4 onto the rim and beyond (HD-10)."""
    settings = Settings(geometry=PoincareBall(c), delta=1e-4)
    head = settings.mapper(Recipe("PCA", 32, 32), seed=0)
    x = 50 * np.random.default_rng(0).normal(size=(500, 32)).astype(np.float32)
    with torch.no_grad():
        rounded = head(torch.from_numpy(x)).half().float()
    assert (c**0.5 * rounded.norm(dim=-1)).max() > 1 - 5e-5
    embedding = settings.embed(head, x)
    assert embedding.dtype == torch.float32
    assert (c**0.5 * embedding.norm(dim=-1)).max() <= 1 - 1e-4 + 1e-6
    inside = c**0.5 * rounded.norm(dim=-1) < 1 - 1e-4 - 1e-6
    assert 0 < inside.sum() < 500
    assert torch.equal(embedding[inside], rounded[inside])


def test_without_half_embeddings_are_those_of_the_head():
    settings = Settings(half=False)
    head = settings.mapper(Recipe("PCA", 6, 2), seed=0)
    x = clusters()[0]
    with torch.no_grad():
        assert torch.equal(settings.embed(head, x), head(torch.from_numpy(x)))


def test_flat_embeddings_that_float16_cannot_hold_are_refused():
    settings = Settings(geometry=Euclidean())
    head = settings.mapper(Recipe("PCA", 6, 2), seed=0)
    x = 1e7 * clusters()[0]
    with pytest.raises(InputError, match=r"embeddings are as large as .*, but float16 ends at 65,504: .*half=False"):
        settings.embed(head, x)
    assert replace(settings, half=False).embed(head, x).isfinite().all()


def test_list_lengths_without_meaning_are_refused_before_anything_is_trained():
    labels = clusters()[1]
    for ks in (5, (), (1, 0), ("5",), (True,)):
        with pytest.raises(InputError, match="ks"):
            crossvalidate(None, labels, FOLD_OF, TODO, Settings(), SHORT, ks=ks)


def test_the_gallery_of_a_ball_lies_inside_it():
    x, labels = clusters()
    settings = Settings(geometry=PoincareBall(4.0), m0=3.0)
    outcomes = crossvalidate(
        x, labels, np.arange(90) % 2, [Recipe("scaled", 6, 2)], settings, SHORT, ks=(1,), workers=1
    )
    for outcome in outcomes:
        assert 0 < outcome.norms.max() <= 0.5 * (1 - 1e-3) * (1 + 1e-6)


def test_an_image_with_the_id_of_the_query_is_left_out():
    """Everybody searches everybody: without ids each image finds itself first, with ids its own images never."""
    x, labels = clusters()
    (fitted,) = fit(x, labels, [Recipe("PCA", 4, 0)], splits(FOLD_OF, 0)[:1], Settings(), SHORT, workers=1)
    everybody, ids = np.arange(90), np.arange(90) // 2
    _, with_itself = ask(fitted, x, labels, everybody, everybody, (1,))
    assert (with_itself.values["ap_min", 1] == 1).all()
    _, without = ask(fitted, x, labels, everybody, everybody, (1,), ids)
    assert without.n_relevant.tolist() == [29] * 90  # the other image with this id is of another class
    reduced = fitted.embed(x)
    expected = retrieval.evaluate(reduced, reduced, labels, labels, Euclidean(), (1,), ids, ids)
    assert alike(without, expected)
    assert without.values["ap_min", 1].mean() < 1


@pytest.mark.slow
def test_workers_do_not_change_the_result():
    x, labels = clusters()
    one, two = (
        crossvalidate(x, labels, FOLD_OF, TODO, Settings(hidden=8), SHORT, ks=(1, 5), seed=3, workers=workers)
        for workers in (1, 2)
    )
    assert [(o.recipe, o.fold) for o in one] == [(recipe, fold) for fold in range(3) for recipe in TODO]
    for a, b in zip(one, two, strict=True):
        assert a.history == b.history
        assert alike(a.per_query, b.per_query)
        np.testing.assert_array_equal(a.norms, b.norms)


def test_the_seed_of_a_split_decides():
    x, labels = clusters()
    part = splits(FOLD_OF, 0)[0]
    seeds = [Split(part.fold, part.train, part.test, seed) for seed in (0, 0, 1)]
    histories = [one.history for one in fit(x, labels, [Recipe("scaled", 6, 2)], seeds, Settings(), SHORT, workers=1)]
    assert histories[0] == histories[1] != histories[2]


def test_the_store_goes_to_the_sweep(tmp_path, monkeypatch):
    x, labels = clusters()
    seen = []
    sweep_fit = sweep.fit
    monkeypatch.setattr(sweep, "fit", lambda *a, **options: seen.append(options) or sweep_fit(*a, **options))
    fit(x, labels, TODO, splits(FOLD_OF, 0)[:1], Settings(), SHORT, store=tmp_path / "s", workers=1, what="mappers")
    assert seen == [{"store": tmp_path / "s", "workers": 1, "what": "mappers"}]


def test_training_with_the_published_settings_helps_on_separable_classes():
    x, labels = clusters(n=150)
    fold_of = folds.assign(labels.astype(str), np.arange(150).astype(str), 3, "image", 0)
    todo = [Recipe("scaled", 6, 0), Recipe("scaled", 6, 2)]
    outcomes = crossvalidate(x, labels, fold_of, todo, Settings(), Schedule(epochs=40), ks=(20,), workers=1)
    means = {"baseline": [], "2": []}
    for outcome in outcomes:
        means[outcome.recipe.family].append(outcome.per_query.values["ap_min", 20].mean())
        if outcome.history:
            assert outcome.history[-1] < 0.7 * outcome.history[0]
    assert np.mean(means["2"]) > np.mean(means["baseline"]) + 0.1
