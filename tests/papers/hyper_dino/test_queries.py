"""Answers come from the query's own fold, twins are counted where they matter, and photographs stay out of reports."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib import paths
from lib.datasets.table import ImageTable
from lib.metrics import retrieval
from lib.papers.hyper_dino import queries
from lib.study.store import Run
from lib.training.experiment import fit
from lib.training.hyper_dino import Settings
from lib.training.methods import Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import splits
from tests.images import listed, painted

# Nine images on a line. Image 8 is the picture of image 0 under another class, 7 that of 6 under the same one.
POINTS = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.5, 20.0, 20.0, 0.0], dtype=np.float32)[:, None]
LABELS = list("aaabbbccb")
GROUPS = list("ppqqrrsst")
FOLDS = np.array([0, 1, 1, 0, 1, 1, 0, 1, 1])
PICTURE = np.array([0, 1, 2, 3, 4, 5, 6, 6, 0])


@pytest.fixture
def images(tmp_path) -> ImageTable:
    ids = [f"i{n}" for n in range(9)]
    return painted(listed(LABELS, tmp_path, "tissue", "patient", group=GROUPS, image_id=ids), (4, 4))


@pytest.fixture
def fitted(images):
    method = Method("scaled", Recipe("scaled", 1, 0), Settings(half=False))
    return fit(POINTS, images.codes, [method], splits(FOLDS, 0), workers=1)["scaled"]


@pytest.fixture
def table(fitted, images) -> pd.DataFrame:
    return queries.answers(fitted, POINTS, images, PICTURE, np.array([4, 0]), 3).assign(rule="by image")


def test_the_queries_are_one_of_every_class_and_run_from_the_best_to_the_worst():
    labels, candidates = np.array(list("aabbcc")), np.array([1, 2, 3, 5])
    assert all(labels[queries.choose(labels, candidates, seed)].tolist() == list("abc") for seed in range(9))
    assert {queries.choose(labels, candidates, seed)[1] for seed in range(20)} == {2, 3}
    hits = dict(zip("uvwxy", (2, 4, 0, 3, 1), strict=True))
    rows = pd.DataFrame({"query": name, "right": n < right} for name, right in hits.items() for n in range(4))
    assert queries.spread_out(rows, 3) == ["v", "u", "w"]
    assert queries.spread_out(rows, 9) == ["v", "x", "u", "y", "w"]
    twins = pd.DataFrame({"same": [1, 0, 0, 2, 1], "other": [0, 1, 0, 0, 3]}, index=[9, 7, 5, 3, 8])
    assert queries.twin_queries(twins, 3).tolist() == [7, 8, 3]  # another class first
    assert queries.twin_queries(twins.assign(same=0, other=0), 3).tolist() == []


def test_identical_pictures_share_a_number_through_a_third():
    pairs = pd.DataFrame(
        {"first": ["b", "c", "a"], "second": ["c", "e", "d"], "kind": ["identical", "identical", "near"]}
    )
    found = queries.same_picture(pairs, list("abcde"))
    assert found[1] == found[2] == found[4]
    assert len(set(found.tolist())) == 3


def test_answers_are_the_nearest_training_images_of_the_querys_fold(table):
    """Image 4 (at 11) searches images 0, 3 and 6; image 0 all with FOLDS 1, scaled to a deviation of 1."""
    assert table["query"].tolist() == ["i4"] * 3 + ["i0"] * 3
    assert table["rank"].tolist() == [1, 2, 3, 1, 2, 3]
    assert table["reference"].tolist() == ["i3", "i6", "i0", "i8", "i1", "i2"]
    assert table["right"].tolist() == [True, False, False, False, True, True]
    assert table["identical"].tolist() == [False, False, False, True, False, False]
    assert table["own_group"].tolist() == [False, False, False, False, True, False]
    assert table["query_class"].tolist() == ["b"] * 3 + ["a"] * 3
    assert table["reference_class"].tolist() == ["b", "c", "a", "b", "a", "a"]
    np.testing.assert_allclose(table["distance"][3:], np.array([0, 1, 2]) / POINTS[FOLDS == 1].std(), rtol=1e-5)
    short = queries.summary(table).set_index("query")
    assert short.loc["i4", ["right", "first_wrong", "own_group", "identical"]].tolist() == [1, 2, 0, ""]
    assert short.loc["i0", ["right", "first_wrong", "own_group", "identical"]].tolist() == [2, 1, 1, "1 (b)"]


def test_plain_features_stand_above_the_head_and_the_head_gains_most_for_the_first_query(fitted, images):
    same = queries.answers(fitted, POINTS, images, PICTURE, np.array([4, 0]), 3)
    rows = pd.concat([same.assign(method=name) for name in (queries.HEAD, queries.PLAIN)], ignore_index=True)
    rows.loc[(rows["method"] == queries.HEAD) & (rows["query"] == "i0"), "right"] = True
    assert queries.best_and_worst(rows) == ["i0", "i4"]
    (strip,) = queries.strips(rows, images, ["i0"])
    assert [answer.label for answer in strip.answers] == [queries.PLAIN, "", "", queries.HEAD, "", ""]
    assert all(answer.right for answer in strip.answers[3:]) and not all(answer.right for answer in strip.answers[:3])
    assert strip.title == "a" and {answer.distance for answer in strip.answers} == {None}


def test_twins_are_counted_and_left_out(fitted, images):
    """Image 0 finds its twin of class b first, then 1 and 2; without the twin both are right: AP@2 from 1/4 to 1.

    Image 6 has no other image of its class than its twin: with it AP is 1, without it there is nothing to find.
    """
    rows = queries.twins(fitted, POINTS, images, PICTURE, 2)
    assert sorted(rows.index) == list(range(9))
    assert rows["other"][rows["other"] > 0].to_dict() == {0: 1, 8: 1}
    assert rows["same"][rows["same"] > 0].to_dict() == {6: 1, 7: 1}
    assert rows.loc[0, ["hit", "ap", "hit_without", "ap_without"]].tolist() == [0, 0.25, 1, 1]
    assert rows.loc[6, ["hit", "ap"]].tolist() == [1, 1] and rows.loc[6, ["hit_without", "ap_without"]].isna().all()
    right = images.codes[fitted[0].split.train] == images.codes[0]
    assert rows.loc[0, "hit_chance"] == pytest.approx(right.mean())
    assert rows.loc[0, "hit_chance_without"] == pytest.approx(right.sum() / (len(right) - 1))
    one = next(one for one in fitted if 8 in one.split.test)
    gallery, labels = one.split.train[one.split.train != 0], images.codes
    embedded = one.embed(POINTS[[8]]), one.embed(POINTS[gallery])
    without = retrieval.evaluate(*embedded, labels[[8]], labels[gallery], one.geometry, (2,))
    assert rows.loc[8, "ap_without"] == without.values["ap_min", 2][0]


def test_the_twin_table_has_parts_class_means_chance_and_health(fitted):
    """Of five queries one is of class 0 and scores 1, four are of class 1 and score 1/4 and 1/2 on average."""
    found = pd.DataFrame(
        {"same": [0, 0, 1, 1, 0], "other": [0, 0, 0, 1, 1], "hit": [1, 0, 1, 0, 0], "ap": [1.0, 0.5, 1.0, 0.5, 0.0]}
    )
    found = found.assign(
        hit_without=[1, 0, np.nan, 1, 1], ap_without=[1.0, 0.5, np.nan, 1.0, 1.0], label=[0, 1, 1, 1, 1]
    )
    chance = {f"{name}_chance{suffix}": 0.25 for name in ("hit", "ap") for suffix in ("", "_without")}
    mappers = [
        replace(one, health=Health(*health))
        for one, health in zip(fitted, [(0.25, 0.0, 40), (0.75, 2.0, 40)], strict=True)
    ]
    rows = queries.twin_table({"by image": found.assign(**chance)}, 20, {"by image": mappers}).set_index("queries")
    assert rows["n"].tolist() == [5, 2, 1, 2]
    assert rows["map_20"].tolist() == pytest.approx([60, 75, 100, 25])
    assert rows["map_1"].tolist() == pytest.approx([40, 50, 100, 0])
    assert rows.loc["identical picture of another class", "map_20_without"] == 100
    assert np.isnan(rows.loc["identical picture of the same class", "map_20_without"])
    row = rows.loc["all"]
    assert row[["class_mean_1", "class_mean_20", "chance_1", "chance_20_without"]].tolist() == [62.5, 75, 25, 25]
    assert row[["loss", "rim", "steps"]].tolist() == [0.5, 2.0, 40]


def test_confusion_is_a_share_of_the_queries_of_a_class():
    """Of four "a" one is answered by "b"; of two "b" both by "a"; rank 2 does not count."""
    first = [("a", "a"), ("a", "a"), ("a", "a"), ("a", "b"), ("b", "a"), ("b", "a")]
    rows = pd.DataFrame(first, columns=["query_class", "reference_class"]).assign(rule="by image", rank=1)
    confused = queries.confusion(pd.concat([rows, rows.assign(rank=2, reference_class="b")]))
    shares = confused.set_index(["query_class", "answer_class"])["share"].to_dict()
    assert shares == {("a", "a"): 75, ("a", "b"): 25, ("b", "a"): 100}


@pytest.mark.parametrize(
    ("dataset", "shown"),
    [("tissue", True), ("tissue_40x", True), ("kather", True), ("bh200x", False), ("birds", False)],
)
def test_drawn_tiles_and_those_of_kather_go_to_the_reports_and_no_other_photographs(
    table, images, tmp_path, monkeypatch, dataset, shown
):
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    red = (255, 0, 1)  # nothing else in the figure has this colour
    for path in images.root.glob("*.png"):
        Image.new("RGB", (4, 4), red).save(path)
    about = {"recipe": "PCA(1)", "epochs": 1, "folds": 2}
    run = Run("14_hyper_dino_queries", "sample", dataset, "nine images", "0", "texture", about)
    (strip,) = queries.strips(table, images, ["i0"])
    assert strip.title == "query i0\na" and [answer.label for answer in strip.answers] == ["b", "a", ""]  # a run once
    assert [answer.identical for answer in strip.answers] == [True, False, False]
    figure = queries.save_strips(run, "figure_4", [strip], "patient", table)
    figure.figure.savefig(tmp_path / "shown.png")
    reports = tmp_path / "reports/hyper_dino/sample" / dataset / "queries"
    held = [reports / "figure_4.png", tmp_path / "shown.png", tmp_path / f"build/figures/sample/{dataset}/figure_4.png"]
    pixels = [set(map(tuple, np.asarray(Image.open(p).convert("RGB")).reshape(-1, 3))) for p in held if p.exists()]
    assert [red in colours for colours in pixels] == ([True, True] if shown else [False, True, True])
    text = (reports / "run.json").read_text()
    assert ("not published" in text) != shown
    assert ("Kather et al. 2016, doi 10.5281/zenodo.53169, CC BY 4.0" in text) == (dataset == "kather")
