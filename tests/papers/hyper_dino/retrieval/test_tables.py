"""Our values and the published ones meet in the right cells, and captions say what they are."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D

from lib import paths
from lib.metrics import retrieval
from lib.papers.hyper_dino.published import published
from lib.papers.hyper_dino.recipes import LENGTHS, recipes
from lib.papers.hyper_dino.retrieval import tables as hyper_dino
from lib.results.store import Run
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, of_recipes
from lib.training.recipes import Recipe
from lib.training.splits import Split

DIM = 155


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


SCALED, FULL, SHORT = Recipe("scaled", DIM, 32), Recipe("NCA", DIM, 32), Recipe("PCA", 20, 20)
FOUND = {
    "by image": {
        recipe.name: [answer(recipe, fold, ap + 0.02 * fold, [3, 3, 0]) for fold in (0, 1)]
        for recipe, ap in ((SCALED, 0.5), (FULL, 0.6), (SHORT, 0.7))
    }
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return hyper_dino.retrieval_table(FOUND, DIM, "kather")


def cell(table, recipe, metric="ap_min", k=20):
    rows = table.query("source == @recipe.source and dim_in == @recipe.dim_in and metric == @metric and k == @k")
    assert len(rows) == 1
    return rows.iloc[0]


def test_mean_and_spread_over_folds_in_percent(table):
    row = cell(table, FULL)
    assert row["ours"] == pytest.approx(61.0)
    assert row["spread"] == pytest.approx(np.std([60, 62], ddof=1))
    assert (row["n_queries"], row["n_without_relevant"]) == (6, 2)


def test_the_health_of_the_training_stands_in_the_row(table):
    """The mean of the last losses, the largest share at the rim, and the steps."""
    assert cell(table, FULL)[["loss", "rim", "steps"]].tolist() == [1.0, 3.0, 40]


def test_published_values_stand_in_the_row_of_the_same_input(table):
    """Read off the paper's Table 2: [CLS] and 384 at k = 20 with 32 numbers, length 20 at k = 1 with dim_in."""
    assert cell(table, SCALED)["published"] == 94.24
    assert cell(table, FULL)["published"] == 94.61
    assert cell(table, SHORT, k=1)["published"] == 89.90


def test_published_values_stand_beside_map_only(table):
    assert np.isnan(cell(table, FULL, metric="precision")["published"])
    assert cell(table, FULL, metric="ap_hits")["published"] == 94.61


def test_without_a_reference_nothing_is_published():
    assert hyper_dino.retrieval_table(FOUND, DIM, "none")["published"].isna().all()


def test_every_published_table_is_read_whole():
    """Tables 2 and 3 print a baseline at 8 lengths; every table has 14 rows of 32 and 18 of dim_in; four k each."""
    for dataset, baselines in (("kather", 8), ("bh40x", 8), ("bh100x", 0), ("bh200x", 0), ("bh400x", 0)):
        rows = hyper_dino.published(dataset)
        assert len(rows) == 4 * (14 + 18 + baselines)
        assert not rows.isna().any(axis=None)
        assert not rows.duplicated(["cls", "dim_in", "family", "k"]).any()


def test_an_encoder_of_more_numbers_than_the_papers_meets_it_by_role_and_by_number():
    """All 1,280 numbers stand beside [CLS], PCA(384) beside PCA(384), and PCA(1280) beside nothing."""
    recipes_of = [Recipe("scaled", 1280, 32), Recipe("PCA", 384, 32), Recipe("PCA", 1280, 32)]
    found = {"by image": {recipe.name: [answer(recipe, 0, 0.5, [3, 3, 3])] for recipe in recipes_of}}
    table = hyper_dino.retrieval_table(found, 1280, "kather")
    beside = [cell(table, recipe)["published"] for recipe in recipes_of]
    assert beside[:2] == [94.24, 94.61]
    assert np.isnan(beside[2])


def test_layout_is_the_papers_with_chance_below(table):
    lines = hyper_dino.layout(table, "by image").splitlines()
    assert lines[0].startswith("| input | k=1 baseline | k=1 32 | k=1 dim_in | k=20 baseline")
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| 155 scaled", "| NCA(155)", "| PCA(20)", "| chance"]
    assert "61.00 ± 1.41 (94.61)" in lines[3]
    assert lines[-1].startswith("| chance | 6.00 | 6.00 | 6.00 |")  # 3 of 50 images are relevant


def test_below_the_papers_layout_stand_class_means_chance_and_health(table):
    """Of the shortest and the longest list; class means differ from the means where a class asks less often."""
    shown = table.assign(class_mean=table["ours"] - 7.0)
    head, _, *lines = hyper_dino.health_layout(shown).splitlines()
    assert head == (
        "| folds | method | MAP@1 | MAP@20 | class mean@1 | class mean@20 | ± seeds | queries | left out | last loss | "
        "at the rim | steps |"
    )
    row = "61.00 ± 1.41 | 61.00 ± 1.41 | 54.00 | 54.00 | – | 6 | 2 | 1.000 | 3.0 % | 40 |"
    assert f"| by image | NCA(155), Hyper-DINO(·, 32) | {row}" in lines
    assert len(lines) == 4 and lines[-1].startswith("| by image | chance | 6.00 | 8.53 | – |")


def test_every_table_shows_health_under_each_rule(table):
    both = pd.concat([table, table.assign(rule="by patient", class_mean=12.34)])
    first, second = hyper_dino.retrieval(run("demo"), both, "kather").markdown.split("## Folds by patient")
    assert "class mean@20" in first and "12.34" not in first
    assert "| by patient | PCA(20), Hyper-DINO(·, dim_in) | 71.00 ± 1.41 | 71.00 ± 1.41 | 12.34 | 12.34 |" in second


def test_the_definitions_are_those_of_the_longest_pca(table):
    lines = hyper_dino.definitions(table, "by image", 20).splitlines()
    assert lines[0] == "| method | MAP@20 ÷ min(k, R) | MAP@20 ÷ hits | MAP@20 ÷ k |"
    assert lines[2:] == ["| PCA(20), Hyper-DINO(·, dim_in) | 71.00 | 71.00 | 71.00 |"]


def run(profile: str) -> Run:
    of = {"folds": 5, "epochs": 40}
    return Run("13_hyper_dino_retrieval", profile, "kather", "240 of 5,000", "abc", "texture", of)


@pytest.mark.parametrize("profile", ["demo", "sample", "paper"])
def test_the_caption_says_how_the_numbers_differ(profile):
    caption = hyper_dino.caption(run(profile), "kather")
    assert "min(k, relevant)" in caption and "better of PCA and NCA" in caption
    assert "trained for 40 epochs (published: 100)" in caption
    assert ("the values cannot" in caption) == (profile == "demo")


def test_a_table_is_saved_with_its_origin(table, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    run("sample").save("table_2", hyper_dino.retrieval(run("sample"), table, "kather"))
    folder = tmp_path / "hyper_dino" / "sample" / "kather" / "retrieval"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "run.json", "table_2.csv"]
    text = (folder / "README.md").read_text()
    assert '<a id="table_2"></a>\n\n## Hyper-DINO, MAP@k on kather\n' in text
    assert "Profile: sample · images: 240 of 5,000 · encoder: texture" in text
    assert "| by image | NCA(155), Hyper-DINO(·, 32) | 61.00 ± 1.41 |" in text
    assert "Left out: queries without any relevant image." in text
    saved = pd.read_csv(folder / "table_2.csv")
    np.testing.assert_allclose(saved["ours"], table["ours"], atol=5e-5)


def test_table_1_is_the_papers():
    """62 mappers from 384 numbers, each with the published rate; the rates that the paper prints as numbers."""
    rows = hyper_dino.configurations(recipes(384, LENGTHS))
    assert len(rows) == 62
    np.testing.assert_allclose(rows["rate"], rows["published"])
    cls = rows.set_index("output").loc["Hyper-DINO(384 scaled, 32)"]
    assert (cls["rate"], cls["bytes_in_float32"], cls["bytes_in_float16"], cls["bytes_out"]) == (12, 1536, 768, 64)


def test_a_row_that_the_paper_does_not_have_has_no_published_rate():
    rows = hyper_dino.configurations([Recipe("PCA", 156, 32), Recipe("PCA", 40, 32)])
    assert rows["published"].isna().tolist() == [True, False]


def test_table_1_shows_what_goes_in_and_out():
    shown = hyper_dino.table_1([Recipe("PCA", 156, 32), Recipe("PCA", 40, 32), Recipe("PCA", 40, 0)])
    assert shown.markdown.splitlines()[2:] == [
        "| Hyper-DINO(PCA(156), 32) | 156 | 32 | 4.875 | – | 64 |",
        "| Hyper-DINO(PCA(40), 32) | 40 | 32 | 1.25 | 1.25 | 64 |",
    ]


def test_fig_3_tells_chance_and_names_the_published_lines(table):
    figure = hyper_dino.figure_3(table, "kather").figure
    assert figure.axes[0].get_ylabel().endswith(", chance 6.0")
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(named) == len(set(named))
    assert {name.split(":")[0] for name in named} == {"PCA", "NCA", "better of both"}


def test_the_legend_of_fig_3_names_what_is_drawn(table):
    """Baselines by length are published for Kather and not for BreakHis at 200X."""
    for reference in ("kather", "bh200x"):
        figure = hyper_dino.figure_3(table, reference).figure
        named = {text.get_text() for text in figure.legends[0].get_texts()}
        drawn = {box.get_label() for axis in figure.axes for box in axis.containers if len(box[0].get_xdata())}
        assert named == drawn
        shown = "better of both: no mapper, Euclidean" in named
        assert shown == bool(published(reference).query("family == 'baseline' and not cls")["published"].notna().any())
    assert not shown


def test_the_legend_of_fig_3_has_a_line_only_where_one_is_drawn(table):
    few = table[table["dim_in"] == table.groupby("source")["dim_in"].transform("min")]
    for rows in (table, few):
        figure = hyper_dino.figure_3(rows, "kather").figure
        drawn = [box for axis in figure.axes for box in axis.containers]
        joined = {box.get_label() for box in drawn if len(box[0].get_xdata()) > 1}
        assert joined == {box.get_label() for box in drawn if box[0].get_linestyle() != "None"}
        lines = [line for line in figure.legends[0].findobj(Line2D) if line.get_linestyle() != "None"]
        assert len(lines) == len(joined)
    assert all(name.startswith("better of both") for name in joined)


def test_the_figure_shows_each_source_under_each_rule_and_the_published_values(table):
    shown = hyper_dino.panels(table, "kather")
    assert list(shown) == ["folds by image", "published: Kather 2016"]
    ours, theirs = shown.values()
    assert set(ours["source"]) == {"PCA", "NCA"}
    assert theirs.query("family == '32' and k == 20")["value"].max() == 94.61
    assert list(hyper_dino.panels(table, "none")) == ["folds by image"]
