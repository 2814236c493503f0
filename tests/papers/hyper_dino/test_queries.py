"""Answers come from the query's own fold, twins are counted where they matter, and photographs stay out of reports."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib import paths
from lib.datasets.table import ImageTable
from lib.figures.strips import Answer, Strip
from lib.metrics import retrieval
from lib.papers.hyper_dino.queries import beside, confusion, lists, twins
from lib.results import store
from lib.results.store import Run
from lib.training.experiment import fit
from lib.training.hyper_dino import Settings
from lib.training.methods import Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import splits

# Nine images on a line. Image 8 is the picture of image 0 under another class, 7 that of 6 under the same one.
POINTS = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.5, 20.0, 20.0, 0.0], dtype=np.float32)[:, None]
LABELS = list("aaabbbccb")
GROUPS = list("ppqqrrsst")
FOLDS = np.array([0, 1, 1, 0, 1, 1, 0, 1, 1])
PICTURE = np.array([0, 1, 2, 3, 4, 5, 6, 6, 0])


@pytest.fixture
def images(tmp_path) -> ImageTable:
    rows = pd.DataFrame({"label": LABELS, "group": GROUPS}).assign(
        image_id=[f"i{n}" for n in range(9)], path=[f"{n}.png" for n in range(9)]
    )
    for n, path in enumerate(rows["path"]):
        Image.new("RGB", (4, 4), (20 * n, 0, 0)).save(tmp_path / path)
    return ImageTable("tissue", tmp_path, rows, "patient")


@pytest.fixture
def fitted(images):
    method = Method("scaled", Recipe("scaled", 1, 0), Settings(half=False))
    return fit(POINTS, images.codes, [method], splits(FOLDS, 0), workers=1)["scaled"]


@pytest.fixture
def table(fitted, images) -> pd.DataFrame:
    return lists.answers(fitted, POINTS, images, PICTURE, np.array([4, 0]), 3).assign(rule="by image")


def test_identical_pictures_share_a_number_through_a_third():
    pairs = pd.DataFrame(
        {"first": ["b", "c", "a"], "second": ["c", "e", "d"], "kind": ["identical", "identical", "near"]}
    )
    found = twins.pictures(pairs, list("abcde"))
    assert found[1] == found[2] == found[4]
    assert len(set(found.tolist())) == 3


def test_without_pairs_every_image_is_its_own_picture():
    none = pd.DataFrame({"first": [], "second": [], "kind": []})
    assert len(set(twins.pictures(none, ["a", "b", "c"]).tolist())) == 3


def test_one_query_of_every_class_from_the_candidates_alone():
    labels, candidates = np.array(list("aabbcc")), np.array([1, 2, 3, 5])
    chosen = lists.choose(labels, candidates, seed=3)
    assert labels[chosen].tolist() == ["a", "b", "c"]
    assert all(set(lists.choose(labels, candidates, seed)) <= set(candidates) for seed in range(20))
    assert chosen.tolist() == lists.choose(labels, candidates, seed=3).tolist()
    assert {lists.choose(labels, candidates, seed)[1] for seed in range(20)} == {2, 3}


def test_answers_are_the_nearest_training_images_of_the_querys_fold(table):
    """Image 4 (at 11) is asked in fold 1, against 0, 3 and 6; image 0 in fold 0, against all with FOLDS 1."""
    assert table["query"].tolist() == ["i4"] * 3 + ["i0"] * 3
    assert table["rank"].tolist() == [1, 2, 3, 1, 2, 3]
    assert table["reference"].tolist() == ["i3", "i6", "i0", "i8", "i1", "i2"]
    assert table["right"].tolist() == [True, False, False, False, True, True]
    assert table["identical"].tolist() == [False, False, False, True, False, False]
    assert table["own_group"].tolist() == [False, False, False, False, True, False]
    assert table["query_class"].tolist() == ["b"] * 3 + ["a"] * 3
    assert table["reference_class"].tolist() == ["b", "c", "a", "b", "a", "a"]


def test_distances_are_those_of_the_embeddings(table):
    """Fold 0 is searched in images 1, 2, 4, 5, 7, 8, whose positions are scaled to a deviation of 1."""
    deviation = POINTS[FOLDS == 1].std()
    np.testing.assert_allclose(table["distance"][3:], np.array([0, 1, 2]) / deviation, rtol=1e-5)


def test_summary_counts_what_is_right_and_finds_the_first_error(table):
    short = lists.summary(table).set_index("query")
    assert short["right"].to_dict() == {"i4": 1, "i0": 2}
    assert short["first_wrong"].to_dict() == {"i4": 2, "i0": 1}
    assert short["own_group"].to_dict() == {"i4": 0, "i0": 1}
    assert short["identical"].to_dict() == {"i4": "", "i0": "1 (b)"}


def test_summary_of_a_flawless_list_has_no_first_error(table):
    short = lists.summary(table.assign(right=True))
    assert short["first_wrong"].isna().all()
    assert "| by image | i4 | b | 3 | – | 0 |  |" in lists.summary_layout(table.assign(right=True), 3)


def test_lists_that_are_right_or_wrong_as_a_whole_are_counted():
    """One list right but for its last answer, one mixed, one wrong but for its own picture at distance 0."""
    right = {"u": [True] * 9 + [False], "v": [True, False] * 5, "w": [False] * 10}
    first = {"u": 0.5, "v": 0.1, "w": 0.0}
    rows = [
        {"query": query, "right": one, "distance": first[query] + 0.02 * rank, "identical": query == "w" and not rank}
        for query, ones in right.items()
        for rank, one in enumerate(ones)
    ]
    assert lists.whole_lists(pd.DataFrame(rows).assign(rule="by image"), 10) == [
        "Folds by image: 1 of 3 lists have at least 9 of 10 right, 1 at most 1, 1 lie between; of 2 lists with right "
        "and wrong answers (identical pictures left out), the nearest wrong one is nearer than the furthest right one "
        "in 1, than every right one in 0"
    ]


def test_distances_are_compared_within_a_list_and_without_identical_pictures():
    """Query v is nearer to everything than u is: that says nothing. Its wrong answer at 0 is its own picture."""
    found = [("u", True, 0.5, False), ("u", False, 0.9, False), ("v", False, 0.0, True), ("v", False, 0.1, False)]
    found += [("v", True, 0.2, False), ("w", False, 0.0, True), ("w", True, 0.3, False)]
    rows = pd.DataFrame(found, columns=["query", "right", "distance", "identical"]).assign(rule="by image")
    (told,) = lists.whole_lists(rows, 2)
    assert told.endswith(
        "; of 2 lists with right and wrong answers (identical pictures left out), the nearest wrong one is nearer than "
        "the furthest right one in 1, than every right one in 1"
    )
    (alone,) = lists.whole_lists(rows[rows["query"] == "u"], 2)
    assert "; of 1 list with right and wrong" in alone


def test_lists_without_an_error_have_no_distance_to_tell():
    rows = pd.DataFrame({"query": "u", "right": [True, True], "distance": [0.1, 0.2], "identical": False})
    (told,) = lists.whole_lists(rows.assign(rule="by image"), 2)
    assert told == "Folds by image: 1 of 1 lists have at least 2 of 2 right, 0 at most 0, 0 lie between"


def test_a_query_is_named_without_its_folder(table, images):
    folder = "09_X/i0"
    named = images.rows.assign(image_id=images.rows["image_id"].replace("i0", folder))
    moved = ImageTable(images.name, images.root, named, images.group_kind)
    (strip,) = lists.strips(table.replace("i0", folder), moved, [folder])
    assert strip.title == "query i0\na"


def test_the_queries_shown_run_from_the_best_to_the_worst():
    rows = pd.DataFrame({"query": np.repeat(list("uvwxy"), 4), "right": False})
    for query, hits in zip("uvwxy", (2, 4, 0, 3, 1), strict=True):
        rows.loc[rows.index[rows["query"] == query][:hits], "right"] = True
    assert lists.spread_out(rows, 3) == ["v", "u", "w"]
    assert lists.spread_out(rows, 9) == ["v", "x", "u", "y", "w"]


def test_strips_hold_the_pictures_of_the_ids(table, images):
    (strip,) = lists.strips(table, images, ["i0"])
    assert strip.query.getpixel((0, 0)) == (0, 0, 0)
    assert [answer.image.getpixel((0, 0))[0] // 20 for answer in strip.answers] == [8, 1, 2]
    assert strip.title == "query i0\na"
    assert [answer.label for answer in strip.answers] == ["b", "a", ""]  # a run of one class is named once
    assert [answer.identical for answer in strip.answers] == [True, False, False]


def test_plain_features_stand_above_the_head_and_the_head_gains_most_for_the_first_query(fitted, images):
    rows = beside.answers({beside.HEAD: fitted, beside.PLAIN: fitted}, POINTS, images, PICTURE, np.array([4, 0]), 3)
    rows.loc[(rows["method"] == beside.HEAD) & (rows["query"] == "i0"), "right"] = True
    assert beside.best_and_worst(rows) == ["i0", "i4"]
    (strip,) = beside.strips(rows, images, ["i0"])
    assert [answer.label for answer in strip.answers] == [beside.PLAIN, "", "", beside.HEAD, "", ""]
    assert all(answer.right for answer in strip.answers[3:]) and not all(answer.right for answer in strip.answers[:3])
    assert strip.title == "a" and {answer.distance for answer in strip.answers} == {None}
    above = [axis.get_title() for axis in lists.drawn([strip], "image").axes if axis.images and axis.patches]
    assert above == ["plain\nfeatures", "", "", "with the\nhead", "", ""]


def test_twins_are_counted_in_the_querys_gallery(fitted, images):
    found = twins.twins(fitted, POINTS, images, PICTURE, 2)
    assert sorted(found.index) == list(range(9))
    assert found["other"][found["other"] > 0].to_dict() == {0: 1, 8: 1}
    assert found["same"][found["same"] > 0].to_dict() == {6: 1, 7: 1}


def test_a_twin_of_another_class_costs_and_one_of_the_same_class_helps(fitted, images):
    """Image 0 finds its twin of class b first, then 1 and 2; without the twin both are right: AP@2 from 1/4 to 1."""
    found = twins.twins(fitted, POINTS, images, PICTURE, 2)
    assert found.loc[0, ["hit", "ap", "hit_without", "ap_without"]].tolist() == [0, 0.25, 1, 1]
    # Image 6 has no other image of its class than its twin: with it AP is 1, without it there is nothing to find.
    assert found.loc[6, ["hit", "ap"]].tolist() == [1, 1]
    assert found.loc[6, ["hit_without", "ap_without"]].isna().all()


def test_leaving_twins_out_equals_a_gallery_without_them(fitted, images):
    found = twins.twins(fitted, POINTS, images, PICTURE, 2)
    one = next(one for one in fitted if 8 in one.split.test)
    gallery = np.array([i for i in one.split.train if i != 0])
    labels = images.codes
    value = retrieval.evaluate(
        one.embed(POINTS[[8]]), one.embed(POINTS[gallery]), labels[[8]], labels[gallery], one.geometry, (2,)
    ).values["ap_min", 2]
    assert found.loc[8, "ap_without"] == value[0]


HEALTHS = [Health(0.25, 0.0, 40), Health(0.75, 2.0, 40)]


@pytest.fixture
def counted(fitted) -> pd.DataFrame:
    found = pd.DataFrame(
        {
            "same": [0, 0, 1, 1, 0],
            "other": [0, 0, 0, 1, 1],
            "hit": [1, 0, 1, 0, 0],
            "ap": [1.0, 0.5, 1.0, 0.5, 0.0],
            "hit_without": [1, 0, np.nan, 1, 1],
            "ap_without": [1.0, 0.5, np.nan, 1.0, 1.0],
            "label": [0, 1, 1, 1, 1],
        }
    )
    chance = {f"{name}_chance{suffix}": 0.25 for name in ("hit", "ap") for suffix in ("", "_without")}
    mappers = [replace(one, health=health) for one, health in zip(fitted, HEALTHS, strict=True)]
    return twins.twin_table({"by image": found.assign(**chance)}, 20, {"by image": mappers})


def test_the_parts_of_the_twin_table(counted):
    rows = counted.set_index("queries")
    assert rows["n"].tolist() == [5, 2, 1, 2]
    assert rows["map_20"].tolist() == pytest.approx([60, 75, 100, 25])
    assert rows["map_1"].tolist() == pytest.approx([40, 50, 100, 0])
    assert rows.loc["identical picture of another class", "map_20_without"] == 100
    assert np.isnan(rows.loc["identical picture of the same class", "map_20_without"])


def test_class_means_chance_and_health_stand_beside_the_scores(counted):
    """Of five queries one is of class 0 and scores 1, four are of class 1 and score 1/4 and 1/2 on average."""
    row = counted.set_index("queries").loc["all"]
    assert row[["class_mean_1", "class_mean_20"]].tolist() == pytest.approx([62.5, 75])
    assert row[["chance_1", "chance_20_without"]].tolist() == [25, 25]
    assert row[["loss", "rim", "steps"]].tolist() == [0.5, 2.0, 40]
    table, below = twins.twin_layout(counted, 20).split("\n\n")
    assert "| MAP@1 | MAP@20 | class mean@1 | class mean@20 | MAP@1, identical left out |" in table
    assert "| by image | all | 5 | 40.00 | 60.00 | 62.50 | 75.00 |" in table
    assert below == (
        "Folds by image: chance 25.00 at k = 1 and 25.00 at k = 20; the mappers: last loss 0.500, at the rim 2.0 %, "
        "steps 40."
    )


def test_chance_is_that_of_the_gallery_with_and_without_the_twins(fitted, images):
    """Image 0 asks five images, two of its class among them; its twin is one of the others."""
    found = twins.twins(fitted, POINTS, images, PICTURE, 2)
    right = images.codes[fitted[0].split.train] == images.codes[0]
    assert found.loc[0, "hit_chance"] == pytest.approx(right.mean())
    assert found.loc[0, "hit_chance_without"] == pytest.approx(right.sum() / (len(right) - 1))


def test_the_sentence_says_how_many(counted):
    assert twins.sentences(counted) == [
        "Folds by image: 3 of 5 queries have an identical picture in the gallery, 1 of the same class and 2 of another."
    ]
    assert "| by image | all | 5 | 40.00 | 60.00 |" in twins.twin_layout(counted, 20)


def test_what_leaving_the_picture_out_repairs_is_told_from_the_table(counted):
    assert twins.repaired(counted) == [
        "Folds by image: with the identical picture left out of the gallery, MAP@1 goes from 0.00 to 100.00 and MAP@20 "
        "goes from 25.00 to 100.00 for these 2 queries."
    ]
    assert twins.repaired(counted.assign(n=0)) == []


def test_twins_of_another_class_are_shown_first():
    found = pd.DataFrame({"same": [1, 0, 0, 2, 1], "other": [0, 1, 0, 0, 3]}, index=[9, 7, 5, 3, 8])
    assert twins.twin_queries(found, 3).tolist() == [7, 8, 3]
    assert twins.twin_queries(found, 9).tolist() == [7, 8, 3, 9]
    assert twins.twin_queries(found.assign(same=0, other=0), 3).tolist() == []


@pytest.fixture
def confused() -> pd.DataFrame:
    """Of four "a" one is answered by "b"; of two "b" both by "a"; rank 2 does not count."""
    first = [("a", "a"), ("a", "a"), ("a", "a"), ("a", "b"), ("b", "a"), ("b", "a")]
    rows = pd.DataFrame(first, columns=["query_class", "reference_class"]).assign(rule="by image", rank=1)
    return confusion.confusion(pd.concat([rows, rows.assign(rank=2, reference_class="b")]))


def test_confusion_is_a_share_of_the_queries_of_a_class(confused):
    shares = confused.set_index(["query_class", "answer_class"])["share"].to_dict()
    assert shares == {("a", "a"): 75, ("a", "b"): 25, ("b", "a"): 100}


def test_the_worst_mistakes_come_first(confused):
    assert confusion.mistaken(confused) == ["Folds by image: b answered by a (100 %), a answered by b (25 %)"]
    assert confusion.mistaken(confused, 1) == ["Folds by image: b answered by a (100 %)"]


def test_the_picture_of_confusion_has_the_numbers_in_their_places(confused):
    axis = confusion.figure_confusion(run("kather"), confused).figure.axes[0]
    written = {text.get_position(): text.get_text() for text in axis.texts}
    assert written == {(0, 0): "75", (1, 0): "25", (0, 1): "100"}  # (column, row)
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    return tmp_path


def run(dataset: str) -> Run:
    about = {"recipe": "PCA(1)", "epochs": 1, "folds": 2}
    return Run("14_hyper_dino_queries", "sample", dataset, "nine images", "0", "texture", about)


RED = (255, 0, 1)


@pytest.fixture
def strips(table, images) -> list:
    """Pictures of one colour that nothing else in the figure has."""
    for path in images.root.glob("*.png"):
        Image.new("RGB", (4, 4), RED).save(path)
    return lists.strips(table, images, ["i0"])


def is_in(path) -> bool:
    """Whether the pictures are in a figure."""
    return RED in set(map(tuple, np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3).tolist()))


@pytest.mark.parametrize("dataset", ["tissue", "tissue_40x", "kather"])
def test_drawn_tiles_and_those_of_kather_go_to_the_reports(folders, table, strips, dataset):
    lists.save_strips(run(dataset), "figure_4", strips, "patient", table)
    reports = folders / "reports/hyper_dino/sample" / dataset / "queries"
    assert is_in(reports / "figure_4.png") and not (folders / "build").exists()
    text = (reports / "run.json").read_text()
    owed = "Kather et al. 2016, doi 10.5281/zenodo.53169, CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/)"
    assert "not published" not in text and (owed in text) == (dataset == "kather")


@pytest.mark.parametrize("dataset", ["bh200x", "birds"])
def test_other_photographs_never_reach_the_reports(folders, table, strips, dataset, monkeypatch):
    monkeypatch.setenv("FORMAT", "svg")
    shown = lists.save_strips(run(dataset), "figure_4", strips, "patient", table)
    assert is_in(folders / "build/figures/sample" / dataset / "figure_4.png")
    reports = folders / "reports/hyper_dino/sample" / dataset / "queries"
    assert not is_in(reports / "figure_4.png")
    svg = (folders / "build/svg/hyper_dino/sample" / dataset / "queries/figure_4.svg").read_text()
    assert "not published" in (reports / "run.json").read_text()
    shown.figure.savefig(folders / "shown.png")
    assert is_in(folders / "shown.png")
    lists.save_strips(run("kather"), "figure_4", strips, "patient", table)
    assert (folders / "build/svg/hyper_dino/sample/kather/queries/figure_4.svg").read_text() != svg


@pytest.mark.parametrize("longest", ["stroma", "fibroadenoma", "papillary_carcinoma"])
def test_the_print_above_answers_is_large_and_collides_with_nothing(longest):
    """Every answer of another class than its neighbour, three words of print above some, in two rows."""
    names = [longest, "glands"] * 10
    found = [Answer(Image.new("RGB", (9, 9)), name, 0.123, right=True) for name in names]
    figure = lists.drawn([Strip(Image.new("RGB", (9, 9)), "query 1", found)], "patient")
    figure.draw_without_rendering()
    above = [axis for axis in figure.axes if axis.images and axis.patches]
    boxes = [axis.title.get_window_extent() for axis in above]
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes[:10]))
    assert boxes[10].y1 <= above[0].get_window_extent().y0
    assert above[0].title.get_fontsize() >= (7 if longest == "stroma" else 5.3)


def test_every_answer_is_in_the_table_of_queries(folders, table):
    saved = run("kather")
    saved.save("table_queries", lists.table_queries(saved, table, 3))
    folder = store.paths.report("hyper_dino", "sample", "kather", "queries")
    written = pd.read_csv(folder / "table_queries.csv")
    assert written["reference"].tolist() == table["reference"].tolist()
    answer = written.query("query == 'i0' and rank == 1").iloc[0]
    expected = {"rule": "by image", "query_class": "a", "reference": "i8", "reference_class": "b", "distance": 0.0}
    expected |= {"right": False, "identical": True, "own_group": False}
    assert answer[list(expected)].to_dict() == expected
    text = (folder / "README.md").read_text()
    assert "| by image | i0 | a | 2 | 1 | 1 | 1 (b) |" in text
