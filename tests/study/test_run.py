"""A study: arms are trained, searched and described; what is chosen has seen no query."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.study.run import Arm, Study, at_rates
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

DIM, RATES = 12, (1e-3, 1e-1)
HEAD = Settings(PoincareBall(0.1), clip_radius=2.3, temperature=0.2)
HYP = Method("Hyp", Recipe("raw", DIM, 4), HEAD, ByClass(epochs=1, batch_size=4, samples=2))
PLAIN = replace(HYP, name="plain", recipe=Recipe("raw", DIM, 0), search="cosine")
ARMS = [Arm(HYP, "net", {"c": 0.1}, also=("cosine",)), Arm(PLAIN, "net", {"c": np.nan})]


@pytest.fixture(scope="module")
def study() -> Study:
    """Eight categories of ten images: four are learnt from, two of these set aside, four are searched."""
    labels = np.repeat(np.arange(8), 10)
    x = np.random.default_rng(0).normal(size=(80, DIM)) + np.eye(8, DIM)[labels] * 2
    learnt, queries = np.arange(40), np.arange(40, 80)
    features, aside = {"net": x.astype(np.float32)}, Split(0, learnt[:20], learnt[20:], 0)
    split = Split(0, learnt, queries, 0)
    return Study(features, labels, labels, [split], aside, (1, 4), "hit_rate", "open", np.arange(80), n_seeds=2)


def test_every_arm_is_searched_as_it_says_has_its_health_and_is_tested_where_both_were_searched(study):
    scores = study.run(ARMS, lambda answer: {"length": answer.method.recipe.dim_out})
    rows = scores.means().query("metric == 'hit_rate'")
    found = rows.groupby(["search", "method"]).size().to_dict()
    assert found == {("cosine", "Hyp"): 2, ("own", "Hyp"): 2, ("own", "plain"): 2} and (rows["n_seeds"] == 2).all()
    by_method = rows.set_index("method")
    assert (by_method.loc["Hyp", "steps"] > 0).all() and (by_method.loc["plain", "steps"] == 0).all()
    assert (by_method.loc["Hyp", "length"] == 4).all() and rows["chance"].between(0, 100).all()
    tests = scores.tests([("Hyp", "plain")], [1, 4], metric="hit_rate")
    assert tests[["search", "k"]].values.tolist() == [["own", 1], ["own", 4]]
    with pytest.raises(InputError, match="Hyp and other were nowhere searched by the same queries"):
        scores.tests([("Hyp", "other")], [1], metric="hit_rate")


def test_a_rate_is_chosen_without_a_look_at_the_queries(study):
    tried = study.choose(ARMS[:1], RATES)
    assert tried["lr"].tolist() == list(RATES) and tried["chosen"].sum() == 1
    blind = {"net": study.features["net"].copy()}
    blind["net"][40:] = 1e6
    pd.testing.assert_frame_equal(replace(study, features=blind).choose(ARMS[:1], RATES), tried)
    head, plain = at_rates(ARMS, tried)
    assert head.method.schedule.lr == tried.loc[tried["chosen"], "lr"].item() and plain is ARMS[1]
