"""Published values, ours beside them, and scores that can be read again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib import paths
from lib.errors import InputError
from lib.geometry import Euclidean
from lib.metrics.retrieval import evaluate
from lib.papers.linear_prototypes.published import gains
from lib.papers.linear_prototypes.retrieval import tables
from lib.papers.linear_prototypes.retrieval.experiment import LINEAR, OPPONENTS, PAPER, PT, SCALED, TL, trained
from lib.results import intervals
from lib.results.store import Run
from lib.training.episodes import Episodes
from lib.training.linear_prototypes import Settings
from lib.training.methods import Answer, Health
from lib.training.splits import Split, repeated

RUN = Run(
    "41_linear_prototypes_retrieval",
    "demo",
    "tissue",
    "some images",
    "abc",
    "texture",
    {"folds": 2, "epochs": 3, "K": 5, "views": 2, "groups": "patient", "seeds": 2},
)
LABELS, GROUPS = np.array(["a", "b"] * 6), np.array([f"p{i // 2}" for i in range(12)])


class Images:
    rows = pd.DataFrame({"image_id": [f"image {i}" for i in range(12)]})
    labels, groups = LABELS, GROUPS


@pytest.fixture
def results() -> dict:
    rng = np.random.default_rng(0)
    splits = repeated([Split(f, np.arange(6), np.arange(6, 12), f) for f in range(2)], 2)
    head = trained(TL, 2, 2, Settings(), Episodes())

    def answer(split: Split) -> Answer:
        query, gallery = (torch.from_numpy(rng.normal(size=(6, 2))) for _ in range(2))
        per_query = evaluate(query, gallery, LABELS[6:], LABELS[:6], Euclidean(), (1, 3))
        return Answer(head, split, Health(0.5, np.nan, 30), [], np.zeros(6), per_query)

    return {
        gallery: {f"texture, {method}": [answer(split) for split in splits] for method in (PT, SCALED, TL)}
        for gallery in ("closed", "open")
    }


def test_the_gains_are_the_arithmetic_of_erratum_lp_1():
    rows = gains().set_index("dataset")
    assert rows.loc["glomerulus", "follows"] == pytest.approx(15.11)
    assert rows.loc["skin cancer (HAM10000)", "follows"] == pytest.approx(15.34)
    assert rows.loc["ovarian cancer", "follows"] == pytest.approx(3.88)
    assert rows["printed"].tolist() == [15.83, 18.13, 3.88]
    assert rows["best_tl"].tolist() == ["UNI", "Phikon-v2", "UNI2-h"]
    assert rows["best_pt"].tolist() == ["DINO", "DINO", "UNI2-h"]
    assert rows["own_pt"].isna().tolist() == [True, True, False]


def test_encoder_and_method_are_told_apart(results):
    table = tables.values(results)
    assert set(table["encoder"]) == {"texture"} and set(table["method"]) == {PT, SCALED, TL}
    assert set(table["n_classes"]) == {2}  # both have an image to find
    cell = table[
        (table["gallery"] == "open") & (table["method"] == TL) & (table["metric"] == "ap_min") & (table["k"] == 3)
    ]
    each = [100 * one.per_query.values["ap_min", 3].mean() for one in results["open"][f"texture, {TL}"]]
    of_folds = np.reshape(each, (2, 2)).mean(axis=0)  # the first training of both folds comes first
    assert cell["ours"].item() == pytest.approx(np.mean(each))
    assert cell["spread"].item() == pytest.approx(np.std(of_folds, ddof=1))


def test_a_row_says_how_the_training_ended_and_the_last_one_is_chance(results):
    head, _, *lines = tables.layout(tables.values(results)).splitlines()
    assert head.startswith("| gallery | method | MAP@1 | MAP@3 | class mean@1 | class mean@3 | ± seeds | queries |")
    assert [line.split(" | ")[:2] for line in lines[:4]] == [
        ["| closed", name] for name in (*(f"texture, {method}" for method in (PT, SCALED, TL)), "chance")
    ]
    assert lines[2].endswith("| 0.500 | – | 30 |")


def test_a_dataset_of_the_paper_gets_its_rows_and_any_other_all_of_them(results):
    table = tables.values(results)
    ham = tables.beside(table, "ham10000", (1,))
    assert set(ham["source"]) == {"published, skin cancer (HAM10000)", "ours"}
    dinov2 = ham[ham["backbone"] == "DINOv2"]
    assert dinov2["TL"].item() == 67.17 and dinov2["PT"].isna().item() and dinov2["k"].item() == "not stated"
    ours = ham[ham["source"] == "ours"]
    assert ours["gained"].item() == pytest.approx(ours["TL"].item() - ours["PT"].item())
    assert tables.beside(table, "tissue", (1,))["source"].nunique() == 4


def test_ours_beside_the_paper_have_class_means_chance_and_health(results):
    """Health is that of the trained head; the published rows have none."""
    numbers = tables.values(results).assign(class_mean=lambda rows: rows["ours"] - 5)
    numbers.loc[numbers["method"] == TL, ["loss", "rim", "steps"]] = [0.25, np.nan, 70]
    rows = tables.beside(numbers, "ham10000", (1,))
    ours = rows[rows["source"] == "ours"].iloc[0]
    assert (ours["class_mean_PT"], ours["class_mean_TL"]) == pytest.approx((ours["PT"] - 5, ours["TL"] - 5))
    head, _, *lines = tables.beside_layout(rows).splitlines()
    assert head.endswith("| class mean, PT | class mean, TL | chance | last loss | at the rim | steps |")
    assert lines[-1].endswith(f"| {ours['chance']:.2f} | 0.250 | – | 70 |")
    assert lines[0].endswith("| – | – | – | – | – | – |")


def test_scores_survive_the_file_and_mean_what_the_table_says(results, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    scores = tables.scores(results, Images)
    tables.store_scores(RUN, scores)
    again, run = tables.load_scores("demo", "tissue")
    assert run == replace(RUN)
    pd.testing.assert_frame_equal(again, scores, rtol=1e-5)
    means = (
        again.groupby(["gallery", "method", "fold", "k"])["ap_min"].mean().groupby(["gallery", "method", "k"]).mean()
    )
    table = tables.values(results).query("metric == 'ap_min'").set_index(["gallery", "name", "k"])["ours"]
    for key, value in means.items():
        assert table[key] == pytest.approx(value, rel=1e-5)
    assert set(again["image_id"]) == {f"image {i}" for i in range(6, 12)} and set(again["repeat"]) == {0, 1}


def test_scores_that_are_not_there_name_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    with pytest.raises(InputError, match="run notebook 41 first, or make reproduce PROFILE=sample"):
        tables.load_scores("sample", "kather")


def test_the_caption_says_what_was_run_and_what_is_printed():
    text = tables.caption(RUN)
    assert "2 folds" in text and "trained 2 times for 3 epochs (published: once for 100)" in text
    assert "K = 5" in text and "2 views" in text and "±" not in text
    assert "± one standard deviation over the folds" in tables.caption(RUN, tables.SPREAD)


def test_the_table_of_results_has_both_galleries_and_its_figure_the_closed_one(results):
    numbers = tables.values(results)
    table, figure = tables.pretrained_and_trained(RUN, numbers), tables.figure_2(RUN, numbers)
    assert table.markdown.count(f"texture, {TL} |") == 2 and "±" in table.caption
    assert table.rows is numbers
    assert set(figure.rows["gallery"]) == {"closed"} and "±" not in figure.caption and "bars" in figure.caption
    assert [axis.get_title() for axis in figure.figure.axes] == list(tables.SIDES.values())
    wanted = numbers.query("gallery == 'closed' and metric == 'ap_min' and k == 3").set_index("name")["ours"]
    assert tables.baseline(numbers, "texture", 3) == wanted[f"texture, {SCALED}"]


def test_the_definitions_stand_side_by_side_for_the_closed_gallery(results):
    numbers = tables.values(results)
    table = tables.definitions(numbers, 3)
    assert set(table.rows["gallery"]) == {"closed"} and set(table.rows["k"]) == {3}
    head, _, *lines = table.markdown.splitlines()
    assert "MAP@3, ÷ min(k, relevant) | MAP@3, ÷ hits | precision@3" in head and len(lines) == 3


def paired_tests(pairs: list[tuple[str, str]], difference: float) -> pd.DataFrame:
    sure = {"p_value": 0.001, "p_holm": 0.001, "p_floor": 0.0002, "n_units": 20, "n_tests": 2, "n_seeds": 2}
    rows = [{"rule": "closed", "first": a, "second": b, "k": 3, "difference": difference} for a, b in pairs]
    return pd.DataFrame(rows).assign(low=difference - 1, high=difference + 1, **sure)


def test_what_came_out_answers_every_question_from_its_own_tests():
    gains = paired_tests([(f"{encoder}, {TL}", f"{encoder}, {PT}") for encoder in ("texture", "other")], 5.0)
    others = paired_tests([(name, PAPER) for name in (LINEAR, "cosine, cosine search", OPPONENTS[0])], -2.0)
    few = {"method": "x", "length": ["equal steps", "equal epochs"] * 2, "size": [3, 3, 0, 0]}
    sizes = pd.DataFrame(few | {"ours": [40.0, 42.5, 65.0, 65.0]})
    said = tables.came_out(gains, others, sizes, "texture", 41.0)
    answers = [line.strip() for line in said if line.startswith("  ")]
    assert len(said) - len(answers) == 5 and not any("other, TL" in line for line in answers)
    assert (
        answers[0]
        == f"texture, {TL} against texture, {PT}: closed, k = 3 better (+5.00 points, +4.00 to +6.00; p (Holm) = 0.001)"
    )
    order = ["cosine, cosine search", LINEAR, OPPONENTS[0]]
    assert [line.partition(" against the paper's head (")[0] for line in answers[1:4]] == order
    assert all("closed, k = 3 worse (-2.00 points, " in line for line in answers[1:4])
    assert answers[4:] == [
        "frozen features, scaled, without any label: 41.00",
        "3 per class: x, equal steps 40.00; x, equal epochs 42.50; below the frozen features: 1 of 2",
        "all per class: x, equal steps 65.00; x, equal epochs 65.00; below the frozen features: none",
        "x, equal steps minus equal epochs: -2.50 points with 3 per class",
    ]


def test_the_picture_of_the_variants_has_a_row_each_and_their_intervals():
    tests = paired_tests([(name, PAPER) for name in (LINEAR, OPPONENTS[0])], -2.0)
    shown = tables.figure_variants(RUN, tests)
    (axis,) = shown.figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == [LINEAR, OPPONENTS[0]]
    (bars,) = axis.containers
    assert [ends[:, 0].tolist() for ends in bars.lines[2][0].get_segments()] == [[-3.0, -1.0]] * 2
    assert "MAP@3" in axis.get_xlabel() and PAPER in axis.get_title(loc="left")
    assert shown.caption.endswith(f". {intervals.UNCORRECTED}")
    assert shown.caption.startswith("Difference of MAP@3") and "AP@3 " not in shown.caption.replace("MAP@3", "")


def test_captions_of_other_heads_say_how_these_were_trained(results):
    tests = paired_tests([(name, PAPER) for name in (LINEAR, OPPONENTS[0])], -2.0)
    numbers = tables.values(results).drop(columns="method").rename(columns={"name": "method", "gallery": "rule"})
    shown = tables.figure_variants(RUN, tests), tables.variant_tests(RUN, tests), tables.variants(RUN, numbers)
    for one in shown:
        assert "NCA is fitted once" in one.caption and "the row without augmented views" in one.caption
        assert "linear classifiers" in one.caption and "encoders beside the first" not in one.caption
    assert "p, Holm" in shown[1].caption and shown[1].markdown.count(PAPER) == 2


def test_published_gains_are_headed_in_words_and_have_dashes():
    table = tables.published_gains()
    head, _, *lines = table.markdown.splitlines()
    assert "_" not in head and "| best frozen model | its PT (%) |" in head and len(lines) == 3
    assert "nan" not in table.markdown and sum(line.endswith("| – |") for line in lines) == 2
    assert set(table.rows) == set(tables.GAINS)
