"""Who is learnt from and who tunes, and which loss sees fingerprints and class weights."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.losses.acir import StructureAware, class_weights
from lib.papers.acir import heads
from lib.study.rates import best_rates
from lib.training.fit import Schedule
from lib.training.splits import repeated

RNG = np.random.default_rng(0)
N, DIM, SIDE, CLASSES, BITS = 240, 10, 2, 3, 6
LABELS, FOLDS = np.arange(N) % CLASSES, np.arange(N) // 10 % 4
PRINTS = RNG.random((N, 3 * SIDE**2)).astype(np.float32)
CENTRES = RNG.normal(size=(CLASSES, DIM))
X = np.concatenate([(CENTRES[LABELS] + RNG.normal(size=(N, DIM))).astype(np.float32), PRINTS], axis=1)
PLAN = heads.Plan(DIM, PRINTS.shape[1], CLASSES, Schedule(epochs=2, batch_size=40, lr=1e-2))
RATES = dict.fromkeys(heads.losses(PLAN, BITS), 1e-2)
SPLIT, ASIDE = heads.parts(FOLDS, seed=3)


def test_half_of_the_folds_holds_the_queries_and_the_last_of_the_others_tunes():
    assert set(FOLDS[SPLIT.test]) == {0, 1} and set(FOLDS[SPLIT.train]) == {2, 3}
    assert set(FOLDS[ASIDE.train]) == {2} and set(FOLDS[ASIDE.test]) == {3}
    with pytest.raises(InputError, match="four or more"):
        heads.parts(np.array([0, 1, 2]))


def test_rates_and_alphas_are_tuned_without_the_queries(monkeypatch):
    every = heads.losses

    def some(plan, bits, alphas=None):
        return {name: loss for name, loss in every(plan, bits, alphas).items() if name in ("DCH", heads.ACIR)}

    monkeypatch.setattr(heads, "losses", some)
    options = {"alphas": [0.0, 0.5], "workers": 1}
    chosen = heads.choose(X, LABELS, PLAN, BITS, [1e-4, 1e-2], ASIDE, **options)
    spoiled = X.copy()
    spoiled[SPLIT.test] = 0.1
    again = heads.choose(spoiled, LABELS, PLAN, BITS, [1e-4, 1e-2], ASIDE, groups=np.arange(N), **options)
    pd.testing.assert_frame_equal(chosen, again)
    assert chosen["method"].value_counts().to_dict() == {"DCH": 2, heads.ACIR: 4}
    near = chosen[chosen["within"]].sort_values(["lr", "alpha"]).groupby("method")
    middle = near.apply(lambda part: part.iloc[(len(part) - 1) // 2])
    assert best_rates(chosen) == middle["lr"].to_dict()
    assert heads.alphas(chosen) == {heads.ACIR: middle.loc[heads.ACIR, "alpha"]}
    twice = heads.choose(X, LABELS, PLAN, BITS, [1e-4], ASIDE, n_seeds=2, **options)["validation"]
    each = [heads.choose(X, LABELS, PLAN, BITS, [1e-4], one, **options) for one in repeated([ASIDE], 2)]
    assert np.allclose(twice, np.mean([one["validation"] for one in each], axis=0))


def test_every_loss_has_a_head_at_every_length_and_two_see_fingerprints():
    methods = heads.every_loss(PLAN, [4, BITS], RATES, {heads.ACIR: 0.5})
    by_name = {method.name: method.head.loss for method in methods}
    assert len(by_name) == 2 * len(RATES) == len(methods)
    seen = {name for name, loss in by_name.items() if getattr(loss, "fingerprint", 0)}
    assert seen == {f"{name}-{bits}bit" for name in (heads.ACIR, heads.UNWEIGHTED) for bits in (4, BITS)}
    assert by_name[f"{heads.ACIR}-4bit"].alpha == 0.5 and by_name[f"{heads.LABELS}-4bit"].alpha == heads.ALPHA


def test_class_weights_are_those_of_the_images_that_are_learnt_from_and_one_head_leaves_them_out():
    labels = np.where(LABELS == 2, 1, LABELS)
    plan = PLAN.of(labels, SPLIT)
    of = {name: one for name, one in heads.losses(plan, BITS).items() if isinstance(one, StructureAware)}
    assert set(of) == set(heads.OWN_LOSSES)
    assert of[heads.ACIR].class_weights == class_weights(labels[SPLIT.train])
    assert of[heads.UNWEIGHTED] == replace(of[heads.ACIR], class_weights=())


def test_an_opponent_sees_no_fingerprint():
    fitted = heads.fitted(X[:, :DIM], LABELS, heads.opponents(PLAN, [4], 0.01), SPLIT, n_seeds=1, workers=1)
    shapes = {name: several[0].embed(X[:, :DIM]).shape[1] for name, several in fitted.items()}
    assert shapes == {heads.NONE: DIM, heads.LINEAR: CLASSES, "signs of PCA-4bit": 4}


def test_fingerprints_are_read_from_images(tmp_path):
    Image.new("RGB", (40, 50), (255, 0, 0)).save(tmp_path / "0.png")  # one larger, one smaller than the fingerprint
    Image.new("RGB", (8, 8), (255, 0, 0)).save(tmp_path / "1.png")
    files = ["0.png", "1.png"]
    rows = pd.DataFrame({"image_id": files, "path": files, "label": ["a", "b"], "group": files})
    prints = heads.small_copies(ImageTable("mine", tmp_path, rows, "image"), 32)
    assert prints.tolist() == [[1.0] * 1024 + [0.0] * 2048] * 2
