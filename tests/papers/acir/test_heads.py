"""Who learns and who tunes, which loss sees fingerprints, and class weights of the training images in every section."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.losses.acir import StructureAware, class_weights
from lib.papers.acir import hashing, heads, network, training
from lib.papers.acir.ablations import rows, study
from lib.study.rates import best_rates
from lib.training import acir
from lib.training.acir import Design
from lib.training.experiment import fit
from lib.training.hashing import Even
from lib.training.splits import Split, repeated
from tests.images import listed
from tests.papers.acir.conftest import ASIDE, BITS, CLASSES, DIM, FOLDS, LABELS, PLAN, PRINTS, SPLIT, N, X


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
    options = {"groups": np.arange(N), "alphas": [0.0, 0.5]}
    chosen = heads.choose(X, LABELS, PLAN, BITS, [1e-4, 1e-2], ASIDE, **options)
    spoiled = X.copy()
    spoiled[SPLIT.test] = 0.1
    again = heads.choose(spoiled, LABELS, PLAN, BITS, [1e-4, 1e-2], ASIDE, **options)
    pd.testing.assert_frame_equal(chosen, again)
    assert chosen["method"].value_counts().to_dict() == {"DCH": 2, heads.ACIR: 4}
    near = chosen[chosen["within"]].sort_values(["lr", "alpha"]).groupby("method")
    middle = near.apply(lambda part: part.iloc[(len(part) - 1) // 2])
    assert best_rates(chosen) == middle["lr"].to_dict()
    assert heads.alphas(chosen) == {heads.ACIR: middle.loc[heads.ACIR, "alpha"]}
    twice = heads.choose(X, LABELS, PLAN, BITS, [1e-4], ASIDE, n_seeds=2, **options)["validation"]
    each = [heads.choose(X, LABELS, PLAN, BITS, [1e-4], one, **options) for one in repeated([ASIDE], 2)]
    assert np.allclose(twice, np.mean([one["validation"] for one in each], axis=0))


def test_two_losses_see_fingerprints_and_all_but_one_have_class_weights_of_the_training_images():
    labels = np.where(LABELS == 2, 1, LABELS)
    losses = heads.losses(PLAN.of(labels, SPLIT), BITS, {heads.ACIR: 0.5, heads.UNWEIGHTED: 0.5})
    of = {name: loss for name, loss in losses.items() if isinstance(loss, StructureAware)}
    assert set(of) == set(heads.OWN_LOSSES)
    assert {name for name, loss in losses.items() if getattr(loss, "looks", False)} == {heads.ACIR, heads.UNWEIGHTED}
    assert of[heads.ACIR].alpha == 0.5 and of[heads.LABELS].alpha == heads.ALPHA
    assert of[heads.ACIR].class_weights == class_weights(labels[SPLIT.train])
    assert of[heads.UNWEIGHTED] == replace(of[heads.ACIR], class_weights=())
    assert heads.of_classes(np.array([0, 0, 2, 1]), np.array([0, 1, 2])) == (0.75, 1.0, 1.5)  # class 1 only queries


def test_opponents_see_no_fingerprint():
    fitted = fit(X[:, :DIM], LABELS, heads.opponents(PLAN, [4], 0.01), [SPLIT], workers=1)
    shapes = {name: several[0].embed(X[:, :DIM]).shape[1] for name, several in fitted.items()}
    assert shapes == {heads.NONE: DIM, heads.LINEAR: CLASSES, "signs of PCA-4bit": 4}


def test_fingerprints_are_read_from_images(tmp_path):
    Image.new("RGB", (40, 50), (255, 0, 0)).save(tmp_path / "0.png")  # one larger, one smaller than the fingerprint
    Image.new("RGB", (8, 8), (255, 0, 0)).save(tmp_path / "1.png")
    prints = heads.small_copies(listed("ab", tmp_path), 32)
    assert prints.tolist() == [[1.0] * 1024 + [0.0] * 2048] * 2


UNEVEN = np.array([0] * 6 + [1] * 3 + [2] * 2 + [0, 1, 2])
FIRST = Split(0, np.arange(11), np.arange(11, 14), 0)
DESIGN = Design(bits=4, narrow=(4, 8), window=2, heads=2, width=4, grid=2)
RNG = np.random.default_rng(1)
TAPS = Taps(RNG.normal(size=(14, 6, 4, 4)).astype(np.float16), RNG.normal(size=(14, 10, 2, 2)).astype(np.float16))
MATERIAL = training.Material([TAPS], UNEVEN, PRINTS[:14], Even(1, 11), workers=1)


def ablation(loss):
    setting = study.Setting(rows.Row("row", DESIGN, loss), 0.01)
    return study.trained({rows.PRETRAINED: MATERIAL}, [setting], repeated([FIRST], 1))


TRAINERS = {
    "30, choice": lambda: network.choose(MATERIAL, DESIGN, [0.01], FIRST, np.arange(N)),
    "30": lambda: network.train(MATERIAL, DESIGN, 0.01, [FIRST]),
    "32": lambda: ablation(rows.STRUCTURE),
    "32, labels only": lambda: ablation(rows.PLAIN),
    "32, unweighted": lambda: ablation(rows.UNWEIGHTED),
    "34": lambda: training.trained(MATERIAL, DESIGN, [4], {heads.ACIR: 0.01}, FIRST, 1),
}


@pytest.mark.parametrize("name", TRAINERS)
def test_networks_are_trained_with_class_weights_of_the_training_images(monkeypatch, name):
    class Seen(Exception):
        """The jobs that the trainer was given."""

    def stop(*given, **_):
        raise Seen(next(part for part in given if isinstance(part, list) and isinstance(part[0], acir.Job)))

    monkeypatch.setattr(acir, "fit", stop)
    monkeypatch.setattr(acir, "untrained", lambda *_: None)
    with pytest.raises(Seen) as caught:
        TRAINERS[name]()
    (jobs,) = caught.value.args
    wanted = () if "unweighted" in name else class_weights(UNEVEN[:11])
    assert {job.loss.class_weights for job in jobs} == {wanted}


def test_every_variant_of_the_loss_has_class_weights_but_one():
    variants = hashing.variants(PLAN.of(UNEVEN, FIRST), 4, 0.01, 0.5)
    without = [one.name for one in variants if one.head.loss.class_weights != class_weights(UNEVEN[:11])]
    assert without == ["no class weights-4bit"]
