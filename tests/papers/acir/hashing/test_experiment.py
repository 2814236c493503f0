"""Who asks and who chooses, which loss sees fingerprints, and what rankings and balls are made of."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.losses.acir import likeness
from lib.metrics import hashing
from lib.papers.acir.hashing import codes, experiment, fingerprints
from lib.papers.acir.radius import COMMONEST
from lib.results.rates import best_rates
from lib.training.fit import Schedule
from lib.training.splits import repeated

RNG = np.random.default_rng(0)
N, DIM, SIDE, CLASSES, BITS = 240, 10, 2, 3, 6
LABELS, GROUPS = np.arange(N) % CLASSES, np.array([f"P{i // 10}" for i in range(N)])
FOLDS = np.arange(N) // 10 % 4
CENTRES = RNG.normal(size=(CLASSES, DIM))
PRINTS = RNG.random((N, 3 * SIDE**2)).astype(np.float32)
X = np.concatenate([(CENTRES[LABELS] + RNG.normal(size=(N, DIM))).astype(np.float32), PRINTS], axis=1)
PLAN = experiment.Plan(DIM, PRINTS.shape[1], CLASSES, Schedule(epochs=2, batch_size=40, lr=1e-2))
RATES = dict.fromkeys(experiment.losses(PLAN, BITS), 1e-2)
SPLIT, ASIDE = experiment.parts(FOLDS, seed=3)


@pytest.fixture(scope="module")
def fitted():
    methods = [one for one in experiment.heads(PLAN, [BITS], RATES) if one.name.startswith(("CSQ", "ACIR"))]
    return experiment.fitted(X, LABELS, methods, SPLIT, n_seeds=2, workers=1)


def test_half_of_the_folds_asks_and_the_last_of_the_others_chooses():
    assert set(FOLDS[SPLIT.test]) == {0, 1}
    assert set(FOLDS[SPLIT.train]) == {2, 3}
    assert set(FOLDS[ASIDE.train]) == {2}
    assert set(FOLDS[ASIDE.test]) == {3}
    with pytest.raises(InputError, match="four or more"):
        experiment.parts(np.array([0, 1, 2]))


def test_rates_are_chosen_without_those_who_ask(monkeypatch):
    every = experiment.losses

    def two(plan, bits, alphas=None):
        return {name: loss for name, loss in every(plan, bits, alphas).items() if name in ("DCH", "ACIR")}

    monkeypatch.setattr(experiment, "losses", two)
    options = {"alphas": [0.0, 0.5], "workers": 1}
    chosen = experiment.choose(X, LABELS, PLAN, BITS, [1e-4, 1e-2], ASIDE, **options)
    spoiled = X.copy()
    spoiled[SPLIT.test] = 0.1
    again = experiment.choose(spoiled, LABELS, PLAN, BITS, [1e-4, 1e-2], ASIDE, groups=np.arange(len(X)), **options)
    pd.testing.assert_frame_equal(chosen, again)
    assert chosen["method"].value_counts().to_dict() == {"DCH": 2, "ACIR": 4}
    near = chosen[chosen["within"]].sort_values(["lr", "alpha"]).groupby("method")
    middle = near.apply(lambda part: part.iloc[(len(part) - 1) // 2])
    assert best_rates(chosen) == middle["lr"].to_dict()
    assert experiment.alphas(chosen) == {"ACIR": middle.loc["ACIR", "alpha"]}
    twice = experiment.choose(X, LABELS, PLAN, BITS, [1e-4, 1e-2], ASIDE, n_seeds=2, **options)["validation"]
    each = [experiment.choose(X, LABELS, PLAN, BITS, [1e-4, 1e-2], one, **options) for one in repeated([ASIDE], 2)]
    assert np.allclose(twice, np.mean([one["validation"] for one in each], axis=0))


def test_a_chosen_alpha_is_the_one_that_is_trained():
    by_name = {one.name: one.head.loss for one in experiment.heads(PLAN, [BITS], RATES, {"ACIR": 0.5})}
    assert by_name[f"ACIR-{BITS}bit"].alpha == 0.5
    assert by_name[f"{experiment.LABELS}-{BITS}bit"].alpha == experiment.ALPHA


def test_every_loss_has_a_head_at_every_length_and_acir_alone_sees_fingerprints():
    methods = experiment.heads(PLAN, [4, BITS], RATES)
    assert len({one.name for one in methods}) == 2 * len(RATES) == len(methods)
    seen = {one.name for one in methods if getattr(one.head.loss, "fingerprint", 0)}
    names = (experiment.ACIR, experiment.UNWEIGHTED)
    assert seen == {f"{name}-{bits}bit" for name in names for bits in (4, BITS)}


def test_the_head_without_class_weights_differs_from_acir_in_nothing_else():
    weighted = replace(PLAN, class_weights=(0.5, 1.0, 2.0))
    of = experiment.losses(weighted, BITS, dict.fromkeys(experiment.OWN_LOSSES, 0.5))
    assert of[experiment.ACIR].class_weights == (0.5, 1.0, 2.0)
    assert of[experiment.UNWEIGHTED] == replace(of[experiment.ACIR], class_weights=())


def test_alpha_is_chosen_for_every_loss_that_has_one():
    options = {"alphas": [0.0, 0.5], "workers": 1}
    chosen = experiment.choose(
        X, LABELS, replace(PLAN, schedule=Schedule(epochs=1, batch_size=60)), BITS, [1e-2], ASIDE, **options
    )
    tried = chosen.groupby("method")["alpha"].agg(list)
    assert {name for name in tried.index if tried[name] == [0.0, 0.5]} == set(experiment.OWN_LOSSES)
    assert set(experiment.alphas(chosen)) == set(experiment.OWN_LOSSES)


def test_an_opponent_sees_no_fingerprint():
    found = experiment.fitted(X[:, :DIM], LABELS, experiment.opponents(PLAN, [4], 0.01), SPLIT, n_seeds=1, workers=1)
    shapes = {name: ones[0].embed(X[:, :DIM]).shape[1] for name, ones in found.items()}
    assert shapes == {experiment.NONE: DIM, experiment.LINEAR: CLASSES, "signs of PCA-4bit": 4}


def test_the_variants_without_a_gradient_are_one_training():
    variants = [one for one in experiment.variants(PLAN, BITS, 1e-2, 0.5) if "L_Q" in one.name or "α = 0-" in one.name]
    assert len(variants) == 3
    found = experiment.fitted(X, LABELS, variants, SPLIT, n_seeds=1, workers=1)
    first, *others = (torch.cat([p.flatten() for p in ones[0].network.parameters()]) for ones in found.values())
    assert all(torch.equal(first, other) for other in others)


def test_half_of_the_pairs_of_one_class_are_neutral():
    prints = X[:, DIM:]
    limit = fingerprints.neutral_limit(prints, LABELS, SPLIT)
    near = (likeness(torch.from_numpy(prints[SPLIT.train])) >= limit).numpy()
    same = np.triu(LABELS[SPLIT.train][:, None] == LABELS[SPLIT.train], k=1)
    assert abs(int((same & near).sum()) - int((same & ~near).sum())) <= 1
    (three,) = [one for one in experiment.variants(PLAN, BITS, 1e-2, limit) if experiment.THREE in one.name]
    assert three.head.loss.neutral == limit


def test_ranking_by_content_changes_ties_alone(fitted):
    rows = codes.ranking(experiment.of_length(fitted, BITS), X, DIM, LABELS)
    assert rows.groupby("method")["repeat"].apply(list).to_dict() == {
        name: [0, 1] for name in ("CSQ", *experiment.OWN_LOSSES)
    }
    one = experiment.of_length(fitted, BITS)["CSQ"][0]
    expected = hashing.evaluate(
        one.embed(X[SPLIT.test]), one.embed(X[SPLIT.train]), LABELS[SPLIT.test], LABELS[SPLIT.train], (100,)
    )
    assert rows.loc[0, "plain"] == pytest.approx(100 * expected.values["ap_hits", 100].mean())
    assert rows.loc[0, "plain_min"] == pytest.approx(100 * expected.values["ap_min", 100].mean())


def test_a_ball_as_large_as_the_code_answers_everybody(fitted):
    rows = codes.by_radius(experiment.of_length(fitted, BITS), X, LABELS, [0, BITS])
    assert (rows.query("radius == @BITS")["n_rejected"] == 0).all()
    assert (rows.query("radius == 0")["n_rejected"] > 0).any()
    assert rows["method"].iloc[-2:].tolist() == [COMMONEST] * 2
    assert rows["accuracy"].between(0, 100).all()


def test_what_becomes_of_the_bits_is_counted(fitted):
    rows = codes.bits_used(experiment.of_length(fitted, BITS), X, LABELS)
    one = experiment.of_length(fitted, BITS)["CSQ"][0]
    assert rows.loc[0, "distinct"] == len(one.embed(X[SPLIT.train]).unique(dim=0))
    assert rows["off"].between(0, 1).all()
    assert rows.loc[0, "loss_last"] == one.history[-1]


def test_classes_count_alike_in_the_class_means_of_the_bits(fitted):
    labels = np.where(LABELS == 2, 2, 0)  # one class twice as large as the other
    several = {"CSQ": experiment.of_length(fitted, BITS)["CSQ"][:1]}
    rows = codes.bits_used(several, X, labels)
    (one,) = several["CSQ"]
    found = hashing.evaluate(
        one.embed(X[SPLIT.test]), one.embed(X[SPLIT.train]), labels[SPLIT.test], labels[SPLIT.train], (100,)
    )
    values = found.values["ap_min", 100]
    by_class = values.groupby(labels[SPLIT.test]).mean().mean()
    assert rows.loc[0, "codes_class"] == pytest.approx(100 * by_class)
    assert rows.loc[0, "codes"] == pytest.approx(100 * values.mean()) and by_class != pytest.approx(values.mean())


def test_in_the_open_gallery_no_patient_finds_himself(fitted):
    found = experiment.ask_open(fitted, BITS, X, LABELS, GROUPS, [5], workers=1)
    for several in found.values():
        assert set(several[0].per_query.n_gallery) == {len(SPLIT.test) - 10}


def test_fingerprints_are_read_from_images(tmp_path):
    from PIL import Image

    for i, level in enumerate((0, 255)):
        Image.new("RGB", (8, 8), (level, 0, 0)).save(tmp_path / f"{i}.png")
    files = ["0.png", "1.png"]
    rows = pd.DataFrame({"image_id": files, "path": files, "label": ["a", "b"], "group": files})
    prints = fingerprints.small_copies(ImageTable("mine", tmp_path, rows, "image"), 2)
    assert prints.tolist() == [[0.0] * 12, [1.0] * 4 + [0.0] * 8]
    Image.new("RGB", (40, 50), (255, 0, 0)).save(tmp_path / "0.png")  # one larger, one smaller than the authors' side
    prints = fingerprints.small_copies(ImageTable("mine", tmp_path, rows, "image"), 32)
    assert prints.tolist() == [[1.0] * 1024 + [0.0] * 2048] * 2


def test_looks_count_every_pair_once():
    table = fingerprints.looks(PRINTS, LABELS, GROUPS).set_index(["likeness", "pairs"])["n_pairs"]
    assert table["pearson", "one class"] + table["pearson", "two classes"] == N * (N - 1) // 2
    assert table["cosine", "one class"] == table["pearson", "one class"]


def test_a_query_whose_class_the_archive_lacks_is_left_out_and_counted(fitted):
    labels = LABELS.copy()
    strangers = SPLIT.test[:7]
    labels[strangers] = CLASSES  # as a subtype of one patient, who asks
    one = {"CSQ": experiment.of_length(fitted, BITS)["CSQ"][:1]}
    found = codes.by_radius(one, X, labels, [BITS])
    assert found["n_left_out"].tolist() == [7, 7] and found["n_queries"].tolist() == [len(SPLIT.test) - 7] * 2
