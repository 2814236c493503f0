"""Tables beyond the paper: the right images are compared, and every table says so."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.figures import style
from lib.metrics.retrieval import PerQuery
from lib.papers.hyper_dino.beyond import figures
from lib.papers.hyper_dino.beyond import tables as controls
from lib.papers.hyper_dino.beyond.experiment import EPOCHS, EQUAL
from lib.results import answers, intervals
from lib.results.store import Run
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

METRICS = ["ap_min", "ap_hits", "ap_k", "precision", "hit_rate"]


def answer(
    test: list[int], values: list[float], train: tuple[int, ...] = (8, 9), repeat: int = 0, rim: float = np.nan
) -> Answer:
    """One split: every query has its value in every metric at k = 1 and 20; NaN where nothing is relevant."""
    columns = pd.MultiIndex.from_product([METRICS, [1, 20]], names=["metric", "k"])
    frame = pd.DataFrame(np.repeat(np.array(values)[:, None], 10, axis=1), columns=columns)
    relevant = np.where(np.isnan(values), 0, 1)
    per_query = PerQuery(frame, LABELS[test], relevant, np.full(len(test), len(train)))
    split = Split(0, np.array(train), np.array(test), 0, repeat=repeat)
    method = Method("ball", Recipe("PCA", 4, 2), Settings())
    return Answer(method, split, Health(rim=rim), [], np.array([0.1, 0.3]), per_query)


GROUPS = np.array(["p", "p", "q", "q", "r", "r", "r", "r", "r", "r"])
LABELS = np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 1])
BY_IMAGE = {"ball": [answer([0, 2], [1.0, 0.8], train=(1, 3)), answer([1, 3], [0.8, np.nan], train=(0, 2))]}
BY_GROUP = {"ball": [answer([0, 1], [0.5, 0.7]), answer([2, 3], [0.6, 0.2])]}


def test_leakage_compares_the_same_images_whatever_split_they_asked_in():
    """Images 0, 1, 2 answer both times: 100, 80, 80 against 50, 70, 60; image 3 only once. Patient p has the first two.

    By chance the one relevant image of two comes first or second: (1 + 1/2)/2.
    """
    row = controls.leakage(BY_IMAGE, BY_GROUP, GROUPS, [20]).iloc[0]
    assert row["by_image"] == row["all_by_image"] == pytest.approx((90 + 80) / 2)
    assert row["by_group"] == pytest.approx(60)
    assert row["chance"] == pytest.approx(75)
    assert row["difference"] == pytest.approx(row["by_group"] - row["by_image"]) and row["n_units"] == 2
    text = controls.leakage_layout(pd.DataFrame([row]).assign(group_kind="patient"))
    assert "folds by patient" in text and "| -25.00 |" in text


def test_leakage_has_class_means_and_the_health_of_both_trainings():
    """Image 3 alone is of class 1: 20 by group, the others 50, 70 and 60; and 100, 80 and 80 by image, image 3 90."""
    first, second = answer([0, 2], [1.0, 0.8], (1, 3), rim=1.0), answer([1, 3], [0.8, 0.9], (0, 2), rim=3.0)
    by_image = {"ball": [first, second]}
    rows = controls.leakage(by_image, BY_GROUP, GROUPS, [20], kind="patient")
    row = rows.iloc[0]
    assert row["class_mean_by_image"] == pytest.approx((260 / 3 + 90) / 2)
    assert row["class_mean_by_group"] == pytest.approx((60 + 20) / 2)
    assert row["rim_by_image"] == 3 and np.isnan(row["rim_by_group"])
    scores, _, ends = controls.leakage_layout(rows).split("\n\n")
    assert "| class mean by image | class mean by patient |" in scores and "| 88.33 | 40.00 |" in scores
    assert ends.splitlines()[2:] == ["| ball | by image | – | 3.0 % | – |", "| ball | by patient | – | – | – |"]


def test_leakage_averages_over_trainings():
    """Two trainings of patient p's images, 80 and 60 without the patient and 100 with: 30 points lost, 40 and 20."""
    by_image = {"ball": [answer([0, 1, 2], [1.0, 1.0, 1.0], (0, 1, 3), repeat) for repeat in (0, 1)]}
    by_group = {"ball": [answer([0, 1, 2], [x, x, x], repeat=repeat) for repeat, x in enumerate((0.8, 0.6))]}
    row = controls.leakage(by_image, by_group, GROUPS, [20]).iloc[0]
    assert (row["difference"], row["n_units"], row["n_seeds"]) == (pytest.approx(-30), 2, 2)
    assert row["p_seeds"] == pytest.approx(stats.ttest_1samp([-20, -40], 0).pvalue)


def test_what_cannot_leak_is_not_tested():
    """Images 0 and 1 have image 8 of their group in the archive and lose 40 and 20 points, image 2 has none of its own.

    Over all, the loss is thinned out: two groups, 30 points and none.
    """
    groups = np.array(["p", "p", "q", "q", "r", "r", "r", "r", "p", "r"])
    by_image = {"ball": [answer([0, 1, 2], [1.0, 0.9, 0.5], train=(8, 9))]}
    by_group = {"ball": [answer([0, 1, 2], [0.6, 0.7, 0.5], train=(8, 9))]}
    rows = controls.leakage(by_image, by_group, groups, [20], kind="lesion")
    row = rows.iloc[0]
    assert (row["n_queries"], row["n_all"], row["n_units"]) == (2, 3, 1)
    assert row["difference"] == pytest.approx(-30)
    assert row["all_by_group"] - row["all_by_image"] == pytest.approx(-15)
    run = Run("16_hyper_dino_beyond", "demo", "tissue", "some images", "abc", "texture", {"n_seeds": 5, "epochs": 15})
    for shown in (controls.table_leakage(run, rows), controls.figure_leakage(rows)):
        assert "Tested over the 2 images whose lesion has another one in the archive (1 lesions)" in shown.caption
        assert "other lesions of the same patient stay in the archive" in shown.caption
    assert "| all queries, by image | all queries, by lesion |" in controls.leakage_layout(rows)


def test_switches_stand_beside_the_default():
    found = {"default": [answer([0, 2], [0.5, 0.5])], "other": [answer([0, 2], [0.75, 0.25])]}
    rows = controls.switch_rows(found, GROUPS, [20]).set_index("method")
    assert np.isnan(rows.loc["default", "difference"]) and rows.loc["other", "difference"] == pytest.approx(0)
    assert "| default | 20 | 50.00 | 50.00 | 75.00 | – |" in controls.switch_layout(rows.reset_index())


def test_the_gain_under_each_definition():
    found = {"by image": {"no mapper": [answer([0], [0.5])], "ball": [answer([0], [0.8])]}}
    found["by image"]["ball"][0].per_query.values["ap_k", 20] = 0.6
    rows = controls.definition_rows(found, "no mapper", "ball", 20)
    assert rows["definition"].tolist() == ["÷ min(k, relevant)", "÷ hits found", "÷ k"]
    np.testing.assert_allclose(rows["gain"], [30, 30, 10])


def test_definitions_show_class_means_chance_and_the_health_of_the_head():
    """Two queries of class 0 and one of class 1: 0.5 and 0.8 against 0.2, so a third of the weight becomes a half."""
    flat, ball = answer([0, 1, 3], [0.4, 0.4, 0.4]), answer([0, 1, 3], [0.8, 0.8, 0.2], rim=1.5)
    rows = controls.definition_rows({"by image": {"no mapper": [flat], "ball": [ball]}}, "no mapper", "ball", 20)
    assert rows["ball"].tolist() == pytest.approx([60] * 3)
    assert rows["ball, class mean"].tolist() == pytest.approx([50] * 3)
    head, _, first, *_ = controls.definition_layout(rows).splitlines()
    assert head == (
        "| folds | definition | no mapper | ball | no mapper, class mean | ball, class mean | chance | gain | "
        "last loss | at the rim | steps |"
    )
    assert first == (
        "| by image | ÷ min(k, relevant) | 40.00 | 60.00 | 40.00 | 50.00 | 75.00 | 20.00 | – | 1.5 % | – |"
    )


def test_a_table_of_scores_says_what_stands_beside_them():
    run = Run("16_hyper_dino_beyond", "demo", "tissue", "some images", "abc", "texture", {"n_seeds": 5, "epochs": 15})
    text = controls.retrieval(run, "a title", pd.DataFrame({"k": [1]}), "", "More.").caption
    assert "Class mean: over all queries of all folds, averaged per class first." in text
    assert text.endswith("At the rim: worst training. More.")
    assert "Class mean" not in controls.common(run)  # also of tables that show differences alone


def test_a_choice_is_shown_with_class_mean_chance_and_health():
    rows = pd.DataFrame({"choice": ["none"], "k": [20], "value": [88.4], "lengths": ["384"]}, index=[5])
    rows = rows.assign(class_mean=87.0, chance=3.52, loss=0.25, rim=0.0, steps=105.0)
    head, _, line = controls.choice_layout(rows).splitlines()
    assert head == "| choice | k | lengths | MAP@k | class mean | chance | last loss | at the rim | steps |"
    assert line == "| none | 20 | 384 | 88.40 | 87.00 | 3.52 | 0.250 | 0.0 % | 105 |"


def galleries() -> pd.DataFrame:
    found = {
        (fraction, length, side, method): [answer([0], [value + fraction / 10], train=tuple(range(n)))]
        for fraction, n in ((0.5, 10), (1.0, 20))
        for length in (EQUAL, EPOCHS)
        for side in ("closed", "open")
        for method, value in (("no mapper", 0.5), ("ball", 0.7))
    }
    return controls.gallery_values(found)


def test_galleries_by_the_number_of_images_learnt_from():
    table = galleries()
    assert sorted(set(table["n_train"])) == [10, 20] and set(table["gallery"]) == {"closed", "open"}
    row = table.query("n_train == 10 and length == @EQUAL and gallery == 'open' and method == 'ball' and k == 20")
    assert row["ours"].tolist() == pytest.approx([75])


def test_where_images_rest_beside_where_the_margin_would_put_them():
    assert controls.rest(BY_IMAGE, {"ball": 0.1784}) == [
        "ball: median norm 0.200, classes exactly at the margin at 0.178"
    ]


def test_norms_are_shares_of_all_embeddings():
    rows = controls.norm_rows(BY_IMAGE, bins=4)
    assert rows["share"].sum() == pytest.approx(100) and (rows["share"] > 0).sum() == 2


def test_figures_draw_what_they_are_given():
    lost = controls.leakage(BY_IMAGE, BY_GROUP, GROUPS, [1, 20])
    left, right = figures.leakage(lost, "patient").axes
    assert [left.get_title(), right.get_title()] == ["k = 1", "k = 20"]
    assert left.lines[1].get_xdata() == pytest.approx([lost["by_image"][0]])
    beside = figures.leakage(lost.assign(difference=0.04, low=np.nan), "patient").axes[0]
    assert [[text.get_text() for text in axis.texts][1:] for axis in (left, beside)][1] == ["points lost"]
    assert beside.texts[0].get_text() == "0.0" and left.texts[0].get_text().startswith("25.0 (")
    closed, opened = figures.galleries(galleries(), [20]).axes
    assert "closed" in closed.get_title() and "unseen" in opened.get_title()
    looks = {line.get_linestyle() for line in opened.lines if len(line.get_xdata()) == 2}
    assert looks - {"None"} == {"-", "--", ":"}
    (axis,) = figures.norms(controls.norm_rows(BY_IMAGE), {"ball": 0.178}, 0.4).axes
    assert axis.get_xlim() == (0, 0.4)
    assert axis.lines[1].get_xdata()[0] == 0.178 and "Euclidean norm" in axis.get_xlabel()


def test_a_few_embeddings_far_out_do_not_stretch_the_picture_of_the_norms_and_are_counted():
    near, far = np.linspace(0.1, 0.5, 4000), np.array([0.9, 2.8])
    found = {name: [replace(BY_IMAGE["ball"][0], norms=norms)] for name, norms in (("ball", near), ("flat", far))}
    found["flat"][0] = replace(found["flat"][0], norms=np.concatenate([near, far]))
    limit = controls.norm_limit(found, {"ball": 0.3})
    assert limit == pytest.approx(0.55, abs=0.01)
    told = controls.farther(found, limit)
    assert told == "The axis ends at 0.55; embeddings beyond: ball 0 of 4,000, flat 2 of 4,002."
    assert controls.norm_limit(found, {"ball": 0.8}) == pytest.approx(0.88)  # a line that is drawn is seen
    without = {"ball": found["ball"]}
    assert controls.norm_limit(without, {"ball": 0.3}) == pytest.approx(1.05 * 0.5)
    assert controls.farther(without, 1.05 * 0.5) == ""


def test_what_has_nearly_the_same_score_is_still_seen():
    lost = controls.leakage(BY_IMAGE, BY_IMAGE, GROUPS, [20])
    _, dot, square, _ = figures.leakage(lost, "patient").axes[0].lines
    assert dot.get_xdata() == square.get_xdata() and square.get_markerfacecolor() == "none"
    assert dot.get_markersize() + 2 * square.get_markeredgewidth() < square.get_markersize()
    axis = figures.galleries(galleries().assign(ours=50.0), [20]).axes[0]
    axis.figure.canvas.draw()
    lines = {line.get_marker(): line for line in axis.lines if line.get_marker() in style.MARKERS}
    assert {marker: line.get_markerfacecolor() == "white" for marker, line in lines.items()} == {"o": False, "s": True}
    ends = [axis.transData.transform(line.get_xydata())[0, 0] for line in lines.values()]
    assert abs(ends[0] - ends[1]) > 4 * axis.figure.dpi / 72  # a sign of 4 points covers no other


def test_differences_are_drawn_with_their_intervals():
    rows = pd.DataFrame(
        [{"name": "x", "rule": rule, "k": 1, "difference": 2.0, "low": 1.5, "high": 4.0} for rule in "ab"]
    )
    (axis,) = figures.differences(rows, "ball minus …").axes
    points = [line for line in axis.lines if line.get_marker() in style.MARKERS]
    assert [line.get_xdata().tolist() for line in points] == [[2.0], [2.0]]
    assert len({line.get_marker() for line in points}) == 2
    ends = axis.collections[0].get_segments()[0]
    assert ends[:, 0].tolist() == [1.5, 4.0]


def test_differences_say_that_their_intervals_are_not_corrected_as_verdicts_are():
    rows = pd.DataFrame([{"name": "x", "rule": "a", "k": 1, "difference": 2.0, "low": 1.5, "high": 4.0}])
    shown = controls.figure_differences("switches", rows, "minus the default", "What one switch changes", "Fold 0.")
    assert shown.caption.startswith("What one switch changes, with 95 % intervals over groups and trainings. ")
    assert intervals.UNCORRECTED in shown.caption and shown.caption.endswith(" Fold 0.")
    assert shown.figure.axes[0].get_xlabel() == "minus the default, MAP@k (points)"


def test_captions_say_epochs_and_what_is_averaged():
    run = Run("16_hyper_dino_beyond", "demo", "tissue", "2,000 images", "abc", "demo_vit", {"epochs": 40, "n_seeds": 5})
    rows = answers.values({"by image": BY_IMAGE})
    table = controls.retrieval(run, "heads", rows, answers.layout(rows), "More.")
    assert "5 times for 40 epochs (published: 100)" in table.caption and table.caption.endswith("More.")
    assert "| by image | ball |" in table.markdown
