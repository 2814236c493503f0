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
from lib.papers.linear_prototypes import retrieval
from lib.papers.linear_prototypes.heads import PT, SCALED, TL, trained
from lib.papers.linear_prototypes.published import gains
from lib.study.store import Run
from lib.training.episodes import Episodes
from lib.training.linear_prototypes import Settings
from lib.training.methods import Answer, Health
from lib.training.splits import Split, repeated

RUN = Run("41_linear_prototypes_retrieval", "demo", "tissue", "some images", "abc", "texture", {"epochs": 3})
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
    table = retrieval.values(results)
    assert set(table["encoder"]) == {"texture"} and set(table["method"]) == {PT, SCALED, TL}
    assert set(table["n_classes"]) == {2}  # both have an image to find
    cell = table.query("gallery == 'open' and method == @TL and metric == 'ap_min' and k == 3")
    each = [100 * one.per_query.values["ap_min", 3].mean() for one in results["open"][f"texture, {TL}"]]
    of_folds = np.reshape(each, (2, 2)).mean(axis=0)  # the first training of both folds comes first
    assert cell["ours"].item() == pytest.approx(np.mean(each))
    assert cell["spread"].item() == pytest.approx(np.std(of_folds, ddof=1))


def test_a_dataset_of_the_paper_gets_its_rows_and_any_other_all_of_them(results):
    table = retrieval.values(results)
    ham = retrieval.beside(table, "ham10000", (1,))
    assert set(ham["source"]) == {"published, skin cancer (HAM10000)", "ours"}
    dinov2 = ham[ham["backbone"] == "DINOv2"]
    assert dinov2["TL"].item() == 67.17 and dinov2["PT"].isna().item() and dinov2["k"].item() == "not stated"
    ours = ham[ham["source"] == "ours"]
    assert ours["gained"].item() == pytest.approx(ours["TL"].item() - ours["PT"].item())
    rows = table.query("gallery == 'closed' and metric == 'ap_min' and k == 1").set_index("method")
    assert ours[["PT", "TL"]].values.tolist() == [rows.loc[[PT, TL], "ours"].tolist()]
    assert ours[["class_mean_PT", "class_mean_TL"]].values.tolist() == [rows.loc[[PT, TL], "class_mean"].tolist()]
    assert ours[["chance", "loss", "steps"]].values.tolist() == [rows.loc[TL, ["chance", "loss", "steps"]].tolist()]
    assert retrieval.beside(table, "tissue", (1,))["source"].nunique() == 4


def test_scores_survive_the_file_and_mean_what_the_table_says(results, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    scores = retrieval.scores(results, Images)
    retrieval.store_scores(RUN, scores)
    again, run = retrieval.load_scores("demo", "tissue")
    assert run == replace(RUN)
    pd.testing.assert_frame_equal(again, scores, rtol=1e-5)
    of_folds = again.groupby(["gallery", "method", "fold", "k"])["ap_min"].mean()
    means = of_folds.groupby(["gallery", "method", "k"]).mean()
    table = retrieval.values(results).query("metric == 'ap_min'").set_index(["gallery", "name", "k"])["ours"]
    for key, value in means.items():
        assert table[key] == pytest.approx(value, rel=1e-5)
    assert set(again["image_id"]) == {f"image {i}" for i in range(6, 12)} and set(again["repeat"]) == {0, 1}


def test_scores_that_are_not_there_name_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    with pytest.raises(InputError, match="run notebook 41 first, or make reproduce PROFILE=sample"):
        retrieval.load_scores("sample", "kather")
