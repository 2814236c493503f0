"""Our values and the published ones meet in the right cells; opponents differ in one thing; NCA is chosen fairly."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D

from lib.datasets import folds
from lib.geometry import Euclidean
from lib.metrics import retrieval
from lib.papers.hyper_dino import retrieval as hyper_dino
from lib.papers.hyper_dino.published import published
from lib.papers.hyper_dino.recipes import LENGTHS, recipes
from lib.study.store import Run
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, of_recipes
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated, splits

DIM = 155
SCALED, FULL, SHORT = Recipe("scaled", DIM, 32), Recipe("NCA", DIM, 32), Recipe("PCA", 20, 20)
ABOUT = {"folds": 5, "epochs": 40, "n_seeds": 5, "group": "slide", "nca_images": 400}


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


def run(profile: str = "demo") -> Run:
    return Run("13_hyper_dino_retrieval", profile, "kather", "240 of 5,000", "abc", "texture", ABOUT)


def test_mean_spread_and_health_over_folds(table):
    row = cell(table, FULL)
    assert (row["ours"], row["spread"]) == pytest.approx((61.0, np.std([60, 62], ddof=1)))
    assert (row["n_queries"], row["n_without_relevant"]) == (6, 2)
    assert row[["loss", "rim", "steps"]].tolist() == [1.0, 3.0, 40]


def test_published_values_stand_beside_map_of_the_same_input(table):
    """Read off the paper's Table 2: [CLS] and 384 at k = 20 with 32 numbers, length 20 at k = 1 with dim_in."""
    assert cell(table, SCALED)["published"] == 94.24
    assert cell(table, FULL)["published"] == cell(table, FULL, metric="ap_hits")["published"] == 94.61
    assert cell(table, SHORT, k=1)["published"] == 89.90
    assert np.isnan(cell(table, FULL, metric="precision")["published"])
    assert hyper_dino.retrieval_table({"by image": ANSWERS}, DIM, "none")["published"].isna().all()


def test_every_published_table_is_read_whole():
    """Tables 2 and 3 print a baseline at 8 lengths; every table has 14 rows of 32 and 18 of dim_in; four k each."""
    for dataset, baselines in (("kather", 8), ("bh40x", 8), ("bh100x", 0), ("bh200x", 0), ("bh400x", 0)):
        rows = published(dataset)
        assert len(rows) == 4 * (14 + 18 + baselines) and not rows.isna().any(axis=None)
        assert not rows.duplicated(["cls", "dim_in", "family", "k"]).any()


def test_an_encoder_of_more_numbers_than_the_papers_meets_it_by_role_and_by_number():
    """All 1,280 numbers stand beside [CLS], PCA(384) beside PCA(384), and PCA(1280) beside nothing."""
    several = [Recipe("scaled", 1280, 32), Recipe("PCA", 384, 32), Recipe("PCA", 1280, 32)]
    results = {"by image": {recipe.name: [answer(recipe, 0, 0.5, [3, 3, 3])] for recipe in several}}
    table = hyper_dino.retrieval_table(results, 1280, "kather")
    beside = [cell(table, recipe)["published"] for recipe in several]
    assert beside[:2] == [94.24, 94.61] and np.isnan(beside[2])


def test_the_layout_is_the_papers_with_chance_and_health_below(table):
    paper, _, health = hyper_dino.as_printed(table).split("\n\n")
    lines = paper.splitlines()
    assert lines[0] == "| folds | input | k=1 32 | k=1 dim_in | k=20 32 | k=20 dim_in |"
    assert [line.split(" | ")[1] for line in lines[2:]] == ["155 scaled", "NCA(155)", "PCA(20)", "chance"]
    assert "| – | 61.00 ± 1.41 (94.61) | – |" in lines[3]
    assert lines[-1].startswith("| by image | chance | 6.00 | 6.00 |")  # 3 of 50 images are relevant
    row = "| 61.00 ± 1.41 | 61.00 ± 1.41 | 61.00 | 61.00 | – | 6 | 2 | 1.000 | 3.0 % | 40 |"
    assert f"| by image | NCA(155), Hyper-DINO(·, 32) {row}" in health


@pytest.mark.parametrize("profile", ["demo", "sample", "paper"])
def test_the_caption_says_how_the_numbers_differ(profile, table):
    caption = hyper_dino.retrieval(run(profile), table, "kather").caption
    assert "better of PCA and NCA" in caption and "trained for 40 epochs (published: 100)" in caption
    assert ("the values cannot" in caption) == (profile == "demo")


def test_table_1_is_the_papers():
    """62 mappers from 384 numbers, each with the published rate; other rows have none."""
    rows = hyper_dino.configurations(recipes(384, LENGTHS))
    assert len(rows) == 62
    np.testing.assert_allclose(rows["rate"], rows["published"])
    cls = rows.set_index("output").loc["Hyper-DINO(384 scaled, 32)"]
    assert (cls["rate"], cls["bytes_in_float32"], cls["bytes_in_float16"], cls["bytes_out"]) == (12, 1536, 768, 64)
    rows = hyper_dino.configurations([Recipe("PCA", 156, 32), Recipe("PCA", 40, 32)])
    assert rows["published"].isna().tolist() == [True, False]


@pytest.mark.parametrize("reference", ["kather", "bh200x"])
def test_the_legend_of_fig_3_names_what_is_drawn(table, reference):
    """Baselines by length are published for Kather and not for BreakHis at 200X; a single length has no line."""
    few = table[table["dim_in"] == table.groupby("source")["dim_in"].transform("min")]
    for rows in (table, few):
        figure = hyper_dino.figure_3(run(), rows, reference).figure
        drawn = [box for axis in figure.axes for box in axis.containers]
        named = {text.get_text() for text in figure.legends[0].get_texts()}
        assert named == {box.get_label() for box in drawn}
        assert ("better of both: no mapper, Euclidean" in named) == (reference == "kather")
        joined = {box.get_label() for box in drawn if len(box[0].get_xdata()) > 1}
        lines = [line for line in figure.legends[0].findobj(Line2D) if line.get_linestyle() != "None"]
        assert len(lines) == len(joined)


def test_opponents_and_votes_stand_in_their_panels(table):
    rows = table.assign(method=table["source"])
    shown = hyper_dino.figure_opponents(run(), rows)
    assert [axis.get_title() for axis in shown.figure.axes] == ["k = 1", "k = 20"]
    assert set(shown.rows["ours"]) == set(cell(table, one)["ours"] for one in (SCALED, FULL, SHORT))
    votes = {"archive": ["closed", "whole"], "method": "raw", "k": 1, "macro_f1": [10.0, 20.0], "seeds_spread": np.nan}
    shown = hyper_dino.figure_patients(run(), pd.DataFrame(votes))
    assert [axis.get_title() for axis in shown.figure.axes] == ["closed archive", "whole archive"]
    assert "query's slide" in shown.caption and shown.title == "leave one slide out"


SETTINGS, SCHEDULE = Settings(m0=0.8), Schedule(epochs=7)


def test_opponents_differ_from_the_mapper_in_one_thing_each():
    methods = hyper_dino.opponents(1280, 384, 32, 8, SETTINGS, SCHEDULE, 0.03)
    assert (methods[0].recipe, methods[0].head, methods[0].search) == (Recipe("PCA", 384, 32), SETTINGS, "own")
    assert {method.name: (method.recipe, method.search) for method in methods[1:]} == {
        "raw features, cosine": (Recipe("raw", 1280, 0), "cosine"),
        "PCA(384)": (Recipe("PCA", 384, 0), "own"),
        "linear classifier, logits": (Recipe("PCA", 384, 8), "own"),
        "linear classifier, probability": (Recipe("PCA", 384, 8), "own"),
        "flat head, half margin": (Recipe("PCA", 384, 32), "own"),
    }
    by_name = {method.name: method for method in methods}
    logits, probability = (by_name[f"linear classifier, {name}"] for name in ("logits", "probability"))
    assert logits.training == probability.training and logits.head.ranking != probability.head.ranking
    assert logits.schedule == replace(SCHEDULE, lr=0.03)
    assert {method.schedule for method in methods if "classifier" not in method.name} == {SCHEDULE}
    flat = by_name["flat head, half margin"].head
    assert (flat.m0, type(flat.geometry)) == (0.4, Euclidean)


def test_an_embedding_is_no_longer_than_what_goes_in():
    first, *_ = hyper_dino.opponents(40, 20, 32, 8, SETTINGS, SCHEDULE, 0.03)
    assert first.name == "Hyper-DINO(PCA(20), 20)"


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
    rows = choice.assign(rule="by patient")
    assert hyper_dino.lengths_layout(rows).count("**") == 2 * 3


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
