"""Published values, ours beside them, and scores that can be read again."""

import re
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
from lib.papers.linear_prototypes.retrieval.experiment import PT, SCALED, TL, trained
from lib.results.store import Run
from lib.training.episodes import Episodes
from lib.training.linear_prototypes import Settings
from lib.training.methods import Answer, Health
from lib.training.splits import Split

RUN = Run(
    "41_linear_prototypes_retrieval",
    "demo",
    "tissue",
    "some images",
    "abc",
    "texture",
    {"folds": 2, "epochs": 3, "K": 5, "views": 2, "groups": "patient"},
)
LABELS, GROUPS = np.array(["a", "b"] * 6), np.array([f"p{i // 2}" for i in range(12)])


class Images:
    rows = pd.DataFrame({"image_id": [f"image {i}" for i in range(12)]})
    labels, groups = LABELS, GROUPS


@pytest.fixture
def results() -> dict:
    rng = np.random.default_rng(0)
    splits = [Split(f, np.arange(6), np.arange(6, 12), f) for f in range(2)]
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
    cell = table[
        (table["gallery"] == "open") & (table["method"] == TL) & (table["metric"] == "ap_min") & (table["k"] == 3)
    ]
    each = [100 * one.per_query.values["ap_min", 3].mean() for one in results["open"][f"texture, {TL}"]]
    assert cell["ours"].item() == pytest.approx(np.mean(each)) and cell["spread"].item() == pytest.approx(
        np.std(each, ddof=1)
    )


def test_a_row_says_how_the_training_ended(results):
    head, _, *lines = tables.layout(tables.values(results), "closed").splitlines()
    assert head.startswith("| encoder | method | k = 1 | k = 3 | queries | left out | last loss |")
    assert [line.split(" | ")[:2] for line in lines] == [["| texture", method] for method in (PT, SCALED, TL)]
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
    assert set(again["image_id"]) == {f"image {i}" for i in range(6, 12)}


def test_scores_that_are_not_there_name_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    with pytest.raises(InputError, match="run notebook 41 first, or make reproduce PROFILE=sample"):
        tables.load_scores("sample", "kather")


def test_sizes_are_rows_and_everything_is_called_all(results):
    answers = results["closed"]
    sizes = {3: answers[f"texture, {TL}"], 40: answers[f"texture, {SCALED}"]}
    rows = tables.shot_rows(sizes, 3, everything=40)
    assert rows["size"].tolist() == [3, 0]
    both = tables.label_rows({3: {"x": sizes[3], "y": sizes[40]}, 40: {"x": sizes[40], "y": sizes[3]}}, 3, 40)
    assert both["method"].tolist() == ["x", "x", "y", "y"]
    assert both["ours"].tolist() == [*rows["ours"], *rows["ours"][::-1]]
    assert "| all |" in tables.shots_layout(rows, both, 3)


def test_the_caption_says_what_was_run():
    text = tables.caption(RUN)
    assert "2 folds" in text and "3 epochs (published: 100)" in text and "K = 5" in text and "2 views" in text


def test_the_table_of_results_has_both_galleries_and_says_what_was_run(results):
    numbers = tables.values(results)
    table = tables.pretrained_and_trained(RUN, numbers)
    assert re.findall("## Gallery (.*)", table.markdown) == ["closed", "open"]
    assert table.markdown.count("| texture | TL |") == 2
    assert table.rows is numbers and table.caption == tables.caption(RUN)


def test_the_definitions_stand_side_by_side_for_the_closed_gallery(results):
    numbers = tables.values(results)
    table = tables.definitions(numbers, 3)
    assert set(table.rows["gallery"]) == {"closed"} and set(table.rows["k"]) == {3}
    head, _, *lines = table.markdown.splitlines()
    assert "MAP@3, ÷ min(k, relevant) | MAP@3, ÷ hits | precision@3" in head and len(lines) == 3


def test_the_sweeps_are_one_table_that_says_what_differs():
    supports = pd.DataFrame({"size": [1, 5], "ours": [50.0, 60.0], "spread": 1.0})
    labels = pd.DataFrame({"method": ["x", "y"], "size": [3, 0], "ours": [40.0, 65.0], "spread": 1.0})
    table = tables.shots(RUN, supports, labels, 3)
    assert table.rows["sweep"].tolist() == ["support", "support", "labels", "labels"]
    assert table.markdown == tables.shots_layout(supports, labels, 3)
    assert "K as the rows say" in table.caption and "on 2 views" not in table.caption
