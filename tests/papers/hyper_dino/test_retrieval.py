"""Our values and the published ones meet in the right cells; opponents differ in one thing; NCA is chosen fairly."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.datasets import folds
from lib.geometry import Euclidean
from lib.metrics import retrieval
from lib.papers.hyper_dino import protocols
from lib.papers.hyper_dino import retrieval as hyper_dino
from lib.papers.hyper_dino.recipes import LENGTHS, recipes
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, of_recipes
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated, splits

DIM = 155
SCALED, FULL, SHORT = Recipe("scaled", DIM, 32), Recipe("NCA", DIM, 32), Recipe("PCA", 20, 20)


def answer(recipe: Recipe, fold: int, ap: float, n_relevant: list[int]) -> Answer:
    """Every query of the fold has the same value; a query without relevant images has none."""
    values = np.where(np.array(n_relevant)[:, None] > 0, ap, np.nan) * np.ones(10)
    metrics = ["ap_min", "ap_hits", "ap_k", "precision", "hit_rate"]
    columns = pd.MultiIndex.from_product([metrics, [1, 20]], names=["metric", "k"])
    counts = np.array(n_relevant), np.full(len(n_relevant), 50)
    per_query = retrieval.PerQuery(pd.DataFrame(values, columns=columns), np.zeros(len(n_relevant)), *counts)
    (method,) = of_recipes([recipe], Settings())
    split = Split(fold, np.arange(3, 9), np.arange(3), seed=0)
    return Answer(method, split, Health(0.5 + fold, 2.0 + fold, 40), [], np.zeros(3), per_query)


ANSWERS = {
    recipe.name: [answer(recipe, fold, ap + 0.02 * fold, [3, 3, 0]) for fold in (0, 1)]
    for recipe, ap in ((SCALED, 0.5), (FULL, 0.6), (SHORT, 0.7))
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return hyper_dino.retrieval_table({"by image": ANSWERS}, DIM, "kather")


def cell(table, recipe, metric="ap_min", k=20):
    rows = table.query("source == @recipe.source and dim_in == @recipe.dim_in and metric == @metric and k == @k")
    assert len(rows) == 1
    return rows.iloc[0]


def test_published_values_stand_beside_map_of_the_same_input(table):
    """Read off the paper's Table 2: [CLS] and 384 at k = 20 with 32 numbers, length 20 at k = 1 with dim_in."""
    assert cell(table, SCALED)["published"] == 94.24
    assert cell(table, FULL)["published"] == cell(table, FULL, metric="ap_hits")["published"] == 94.61
    assert cell(table, SHORT, k=1)["published"] == 89.90
    assert np.isnan(cell(table, FULL, metric="precision")["published"])
    assert hyper_dino.retrieval_table({"by image": ANSWERS}, DIM, "none")["published"].isna().all()


def test_an_encoder_of_more_numbers_than_the_papers_meets_it_by_role_and_by_number():
    """All 1,280 numbers stand beside [CLS], PCA(384) beside PCA(384), and PCA(1280) beside nothing."""
    several = [Recipe("scaled", 1280, 32), Recipe("PCA", 384, 32), Recipe("PCA", 1280, 32)]
    results = {"by image": {recipe.name: [answer(recipe, 0, 0.5, [3, 3, 3])] for recipe in several}}
    table = hyper_dino.retrieval_table(results, 1280, "kather")
    beside = [cell(table, recipe)["published"] for recipe in several]
    assert beside[:2] == [94.24, 94.61] and np.isnan(beside[2])


def test_table_1_is_the_papers():
    """62 mappers from 384 numbers, each with the published rate; other rows have none."""
    rows = hyper_dino.configurations(recipes(384, LENGTHS))
    assert len(rows) == 62
    np.testing.assert_allclose(rows["rate"], rows["published"])
    cls = rows.set_index("output").loc["Hyper-DINO(384 scaled, 32)"]
    assert (cls["rate"], cls["bytes_in_float32"], cls["bytes_in_float16"], cls["bytes_out"]) == (12, 1536, 768, 64)
    rows = hyper_dino.configurations([Recipe("PCA", 156, 32), Recipe("PCA", 40, 32)])
    assert rows["published"].isna().tolist() == [True, False]


SETTINGS, SCHEDULE = Settings(m0=0.8), Schedule(epochs=7)


def test_opponents_differ_from_the_mapper_in_one_thing_each():
    mapper, raw, plain, logits, probability, flat = hyper_dino.opponents(1280, 384, 32, 8, SETTINGS, SCHEDULE, 0.03)
    assert (mapper.recipe, mapper.head, mapper.search) == (Recipe("PCA", 384, 32), SETTINGS, "own")
    assert (raw.recipe, raw.search, plain.recipe) == (Recipe("raw", 1280, 0), "cosine", Recipe("PCA", 384, 0))
    assert logits.recipe == Recipe("PCA", 384, 8) and logits.schedule == replace(SCHEDULE, lr=0.03)
    assert logits.training == probability.training and logits.head.ranking != probability.head.ranking
    assert (flat.recipe, flat.head) == (mapper.recipe, replace(SETTINGS, geometry=Euclidean(), m0=0.4))
    assert {method.schedule for method in (mapper, raw, plain, flat)} == {SCHEDULE}
    beyond = {
        method.name: method for method in protocols.curvature_methods(1280, mapper.recipe, SETTINGS, SCHEDULE, 8, 0.03)
    }
    assert beyond["ball"].training == mapper.training and beyond["NCA"].recipe == Recipe("NCA", 32, 0)
    assert [beyond[name].training for name in (protocols.LOGITS, protocols.PROBABILITY)] == [logits.training] * 2
    short, *_ = hyper_dino.opponents(40, 20, 32, 8, SETTINGS, SCHEDULE, 0.03)
    assert short.name == "Hyper-DINO(PCA(20), 20)"  # no longer than what goes in


RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(3), 30)
GROUPS = np.array([f"patient {number}" for number in np.tile(np.repeat(np.arange(10), 3), 3)])
X = (RNG.normal(size=(90, 12)) + 2 * np.eye(3, 12)[LABELS]).astype(np.float32)
FOLD_OF = folds.by_group(LABELS.astype(str), GROUPS, 3, 0)
NCA = Settings(nca_images=50)


@pytest.fixture(scope="module")
def choice() -> pd.DataFrame:
    return hyper_dino.choose_length(X, LABELS, GROUPS, splits(FOLD_OF, 0), [8, 2, 2, 13], NCA, 5)


def test_every_fold_takes_a_length_that_its_validation_part_cannot_tell_from_the_best(choice):
    """Of those that there can be: features of 12 numbers have no 13."""
    assert choice[["fold", "length"]].to_numpy().tolist() == [[fold, n] for fold in range(3) for n in (2, 8)]
    assert set(choice["k"]) == {5} and choice["validation"].between(0, 100).all()
    for _, part in choice.groupby("fold"):
        chosen = part[part["chosen"]]
        assert len(chosen) == 1 and (part["validation"].max() - chosen["validation"] <= chosen["se"]).all()


def test_query_images_have_no_say_in_the_length(choice):
    """With other labels and other features of the first fold's test images its choice is the same."""
    (test,) = np.nonzero(FOLD_OF == 0)
    x, labels = X.copy(), LABELS.copy()
    x[test], labels[test] = x[test][::-1] + 1, 0
    other = hyper_dino.choose_length(x, labels, GROUPS, splits(FOLD_OF, 0)[:1], [8, 2], NCA, 5)
    pd.testing.assert_frame_equal(other, choice[choice["fold"] == 0])


def test_what_is_fitted_has_the_length_of_its_fold():
    rows = [{"fold": f, "length": n, "chosen": {0: 2, 1: 8, 2: 2}[f] == n} for f in range(3) for n in (2, 8)]
    where = repeated(splits(FOLD_OF, 0), 2)
    fitted = hyper_dino.fit_nca(X, LABELS, where, pd.DataFrame(rows), NCA)
    assert [one.embed(X).shape[1] for one in fitted] == [2, 8, 2, 2, 8, 2]
    assert [(one.split.fold, one.split.repeat) for one in fitted] == [(split.fold, split.repeat) for split in where]
