"""Unseen categories are asked, and rates are chosen on teaching categories alone."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.datasets.categories import halves, held_out
from lib.datasets.table import ImageTable
from lib.papers.hyp_vit.retrieval import frozen
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.splits import Split

NAMES = np.repeat([f"c{number}" for number in range(12)], 6)
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(72, 8)) + 2 * RNG.normal(size=(12, 8))[np.arange(72) // 6]).astype(np.float32)
SCHEDULE = ByClass(epochs=3, batch_size=8, lr=1e-2, samples=2)


def table(root=".") -> ImageTable:
    files = [f"{number}.png" for number in range(72)]
    return ImageTable(
        "mine", root, pd.DataFrame({"image_id": files, "path": files, "label": NAMES, "group": files}), "image"
    )


PARTS = halves(table())


def test_only_images_of_unseen_categories_ask_and_none_finds_itself():
    methods = [*frozen.opponents(Settings(nca_images=100), 8, 4), frozen.linear(8, 6, SCHEDULE)]
    found = frozen.answers(X, PARTS, methods, [1, 5], n_seeds=2)
    for name, several in found.items():
        assert [answer.split.repeat for answer in several] == [0, 1]
        for answer in several:
            assert sorted(answer.per_query.classes) == sorted(PARTS.codes[PARTS.queries])
            assert set(answer.per_query.n_gallery) == {len(PARTS.gallery) - 1}
            assert set(answer.per_query.n_relevant) == {5}, name


def test_the_nearest_image_of_the_plain_features_is_found_by_hand():
    (none,) = frozen.answers(X, PARTS, frozen.opponents(Settings(), 8, 4)[:1], [1])["no head"]
    rows = PARTS.queries
    unit = X[rows] / np.linalg.norm(X[rows], axis=1, keepdims=True)
    cosine = unit @ unit.T - 2 * np.eye(len(rows))
    expected = PARTS.codes[rows][cosine.argmax(1)] == PARTS.codes[rows]
    assert none.per_query.values["hit_rate", 1].tolist() == expected.astype(float).tolist()


def test_rates_are_chosen_without_those_who_ask():
    methods = [*frozen.heads(Settings(), 8, 4, SCHEDULE)[:2], frozen.linear(8, 6, SCHEDULE)]
    chosen = frozen.rates(X, PARTS, methods, [1e-4, 1e-2])
    spoiled = X.copy()
    spoiled[PARTS.queries] = 0.1
    pd.testing.assert_frame_equal(chosen, frozen.rates(spoiled, PARTS, methods, [1e-4, 1e-2]))
    assert chosen.groupby("method")["chosen"].sum().tolist() == [1, 1, 1]
    near = chosen[chosen["within"]].groupby("method")["lr"].min()
    for one in frozen.at_rates(methods, chosen):
        assert one.schedule.lr == near[one.name]


def test_rates_are_chosen_by_the_mean_of_several_trainings(monkeypatch):
    methods, seeds, fit = frozen.heads(Settings(), 8, 4, SCHEDULE)[:1], [], frozen.fit
    monkeypatch.setattr(frozen, "fit", lambda x, y, m, s, **o: seeds.append([one.seed for one in s]) or fit(x, y, m, s))
    once, twice = (frozen.rates(X, PARTS, methods, [1e-3, 1e-2], n_seeds=n) for n in (1, 2))
    assert seeds == [[0]] * 2 + [[0, 1000]] * 2
    (learnt, aside), second = held_out(PARTS, 0), []
    for lr in (1e-3, 1e-2):
        method = replace(methods[0], schedule=replace(SCHEDULE, lr=lr))
        several = fit(X, PARTS.codes, [method], [Split(0, learnt, aside, 1000, repeat=1)])
        ((answer,),) = frozen.asked(several, X, PARTS.codes, [1]).values()
        second.append([100 * answer.per_query.values["hit_rate", 1].mean(), answer.health.loss])
    columns = ["validation", "loss"]
    assert twice[columns].to_numpy() == pytest.approx((once[columns].to_numpy() + second) / 2)


def test_the_same_networks_are_asked_by_the_cosine():
    heads = frozen.heads(Settings(clip_radius=None), 8, 4, SCHEDULE)[:1]
    found = frozen.answers(X, PARTS, [*heads, *frozen.by_cosine(heads)], [1])
    (own,), (cosine,) = found.values()
    assert list(found) == ["Hyp", "Hyp, by D_cos"] and cosine.method.search == "cosine"
    assert own.method.training == cosine.method.training and own.history == cosine.history
