"""Query categories are unseen, and rates are chosen on training categories only."""

import numpy as np
import pandas as pd

from lib.datasets.categories import Halves
from lib.papers.hyp_vit.names import HYP, NONE, SPH, UNTRAINED
from lib.papers.hyp_vit.retrieval import frozen
from lib.study.run import at_rates
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

CODES, ROWS = np.repeat(np.arange(12), 6), np.arange(72)
PARTS = Halves(np.array([f"c{code:02d}" for code in CODES]), CODES, ROWS[:36], ROWS[36:], ROWS[36:], 0)
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(72, 8)) + 2 * RNG.normal(size=(12, 8))[CODES]).astype(np.float32)
SCHEDULE = ByClass(epochs=3, batch_size=8, lr=1e-2, samples=2)
SETTINGS = Settings(nca_images=100)
OPPONENTS = frozen.arms(frozen.opponents(SETTINGS, 8, 4, 6, SCHEDULE), "net")
HEADS = frozen.arms(frozen.heads(SETTINGS, 8, 4, SCHEDULE)[:2], "net")
RATES = [1e-4, 1e-2]


def study(x=X, n_seeds=1, **more):
    return frozen.study({"net": x} | more, PARTS, [1, 5], n_seeds)


def test_only_images_of_unseen_categories_are_queries_and_none_finds_itself():
    for name, several in study(n_seeds=2).answers(OPPONENTS)["own"].items():
        assert [answer.split.repeat for answer in several] == [0, 1]
        for answer in several:
            assert sorted(answer.per_query.classes) == sorted(CODES[36:])
            assert set(answer.per_query.n_gallery) == {35} and set(answer.per_query.n_relevant) == {5}, name


def test_the_nearest_image_of_the_plain_features_is_found_by_hand():
    (none,) = study().answers(OPPONENTS[:1])["own"][NONE]
    unit = X[36:] / np.linalg.norm(X[36:], axis=1, keepdims=True)
    cosine = unit @ unit.T - 2 * np.eye(36)
    expected = CODES[36:][cosine.argmax(1)] == CODES[36:]
    assert none.per_query.values["hit_rate", 1].tolist() == expected.astype(float).tolist()


def test_rates_are_chosen_without_the_queries():
    chosen = study().choose([*HEADS, OPPONENTS[2]], RATES)
    spoiled = X.copy()
    spoiled[36:] = 0.1
    pd.testing.assert_frame_equal(chosen, study(spoiled).choose([*HEADS, OPPONENTS[2]], RATES))
    assert chosen.groupby("method")["chosen"].sum().tolist() == [1, 1, 1]
    near = chosen[chosen["within"]].groupby("method")["lr"].min()
    for arm in at_rates(HEADS, chosen):
        assert arm.method.schedule.lr == near[arm.name]


def test_the_control_is_the_experiment_itself_on_other_features():
    both = study(n_seeds=2, random=X)
    further = frozen.further(SETTINGS, both.features, 4, SCHEDULE, {"random": UNTRAINED})
    assert [arm.name for arm in further] == [f"{UNTRAINED}{name}" for name in (NONE, HYP, SPH)]
    tried, of_control = both.choose(HEADS, RATES, 2), both.choose(further[1:], RATES, 2)
    pd.testing.assert_frame_equal(of_control, tried.assign(method=UNTRAINED + tried["method"]))
    answers = both.answers([OPPONENTS[0], *at_rates(HEADS, tried), *at_rates(further, of_control)])["own"]
    for name in (NONE, HYP, SPH):
        for one, other in zip(answers[name], answers[f"{UNTRAINED}{name}"], strict=True):
            pd.testing.assert_frame_equal(one.per_query.values, other.per_query.values)


def test_the_same_networks_are_searched_by_the_cosine():
    heads = frozen.heads(Settings(clip_radius=None), 8, 4, SCHEDULE)[:1]
    found = study().answers(frozen.arms([*heads, *frozen.by_cosine(heads)], "net"))["own"]
    (own,), (cosine,) = found.values()
    assert list(found) == ["Hyp", "Hyp, by D_cos"] and cosine.method.search == "cosine"
    assert own.method.training == cosine.method.training and own.history == cosine.history
