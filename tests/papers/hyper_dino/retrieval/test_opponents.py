"""What stands beside the mapper is drawn where it belongs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.geometry import Euclidean
from lib.papers.hyper_dino.retrieval import opponents
from lib.results.store import Run
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.recipes import Recipe

COUNTS = ["n_seeds", "n_queries", "n_without_relevant", "n_classes"]
RUN = Run("13_hyper_dino_retrieval", "demo", "tissue", "40 images", "abc", "texture", {"n_seeds": 5})
SETTINGS, SCHEDULE = Settings(m0=0.8), Schedule(epochs=7)


@pytest.fixture
def table() -> pd.DataFrame:
    """Values that say where they belong: 10 times the rule, 1 time the method, k / 100."""
    lines = [
        {
            "rule": f"by {rule}",
            "method": f"m{method}",
            "metric": metric,
            "k": k,
            "ours": 10 * r + method + k / 100 + 50 * (metric == "precision"),
            "spread": 1.0,
            "chance": 12.5,
        }
        for r, rule in enumerate(("image", "patient"))
        for method in (0, 1, 2)
        for metric in ("ap_min", "precision")
        for k in (1, 20)
    ]
    return pd.DataFrame(lines)


def test_every_method_stands_on_its_line_under_each_rule(table):
    shown = opponents.figure_opponents(table)
    assert set(shown.rows["ours"]) == {10 * r + m + k / 100 for r in (0, 1) for m in (0, 1, 2) for k in (1, 20)}
    for axis, k in zip(shown.figure.axes, (1, 20), strict=True):
        of_image, of_patient = (axis.containers[rule][0] for rule in (0, 1))
        assert list(of_image.get_xdata()) == pytest.approx([k / 100, 1 + k / 100, 2 + k / 100])
        assert list(of_patient.get_xdata()) == pytest.approx([10 + k / 100, 11 + k / 100, 12 + k / 100])
        assert axis.get_xlabel() == f"MAP@{k} (%), chance 12.5"
        assert np.all(np.round(np.array(of_image.get_ydata(), dtype=float)) == [0, 1, 2])
        assert all(a < b for a, b in zip(of_image.get_ydata(), of_patient.get_ydata(), strict=True))


def test_votes_are_told_by_marker_and_by_line():
    rows = pd.DataFrame(
        [
            (archive, name, k, 10.0 * k + n + 2 * a, 0.5, 5, 9, 1, 4)
            for a, archive in enumerate(("closed", "whole"))
            for n, name in enumerate(("raw", "head"))
            for k in (1, 3, 5)
        ],
        columns=["archive", "method", "k", "macro_f1", "seeds_spread", *COUNTS],
    )
    figure = opponents.figure_patients(rows, "slide").figure
    for axis, more in zip(figure.axes, (0, 2), strict=True):
        series = {box.get_label(): (box[0].get_xdata() - more).tolist() for box in axis.containers}
        assert series == {"first answer": [10, 11], "majority of 3": [30, 31], "majority of 5": [50, 51]}
    assert [axis.get_title() for axis in figure.axes] == ["closed archive", "whole archive"]
    shown = opponents.table_patients(RUN, rows, "slide")
    assert "the slide of the query" in shown.caption
    assert "The axes do not begin at 0" in opponents.figure_patients(rows, "slide").caption
    assert "Whole: all images of other slides" in shown.caption and "over 5 trainings" in shown.caption
    assert "| closed | head | 11.00 ± 0.50 | 31.00 ± 0.50 | 51.00 ± 0.50 | 4 | 9 | 1 |" in shown.markdown


def test_opponents_differ_from_the_mapper_in_one_thing_each():
    subject, *others = opponents.methods(1280, 384, 32, 8, SETTINGS, SCHEDULE, 0.03)
    assert (subject.recipe, subject.head, subject.search) == (Recipe("PCA", 384, 32), SETTINGS, "own")
    found = {method.name: (method.recipe, method.search) for method in others}
    assert found == {
        "raw features, cosine": (Recipe("raw", 1280, 0), "cosine"),
        "PCA(384)": (Recipe("PCA", 384, 0), "own"),
        "linear classifier, logits": (Recipe("PCA", 384, 8), "own"),
        "linear classifier, probability": (Recipe("PCA", 384, 8), "own"),
        "flat head, half margin": (Recipe("PCA", 384, 32), "own"),
    }
    quicker = {method.name for method in (subject, *others) if method.schedule == replace(SCHEDULE, lr=0.03)}
    assert quicker == {"linear classifier, logits", "linear classifier, probability"}
    assert {method.schedule for method in (subject, *others) if method.name not in quicker} == {SCHEDULE}


def test_the_flat_opponent_has_half_the_margin_and_the_rankings_share_one_training():
    by_name = {method.name: method for method in opponents.methods(1280, 384, 32, 8, SETTINGS, SCHEDULE, 0.03)}
    head = by_name["flat head, half margin"].head
    assert (head.m0, type(head.geometry)) == (0.4, Euclidean)
    logits, probability = (by_name[f"linear classifier, {name}"] for name in ("logits", "probability"))
    assert logits.training == probability.training
    assert logits.head.ranking != probability.head.ranking


def test_an_embedding_is_no_longer_than_what_goes_in():
    """No head maps 20 numbers to 32."""
    found = opponents.methods(40, 20, 32, 8, SETTINGS, SCHEDULE, 0.03)
    assert [method.name for method in found[:3]] == ["Hyper-DINO(PCA(20), 20)", "raw features, cosine", "PCA(20)"]


def test_who_is_ahead_is_told_for_every_vote():
    ours, theirs, seeds = (14.14, 70.0, 60.67), (20.62, 68.0, 57.9), (1.02, 1.0, 5.6)
    lines = [("Hyper-DINO(PCA(384), 32)", k, f1, spread) for k, f1, spread in zip((1, 3, 5), ours, seeds, strict=True)]
    lines += [("raw features, cosine", k, f1, 0.0) for k, f1 in zip((1, 3, 5), theirs, strict=True)]
    rows = pd.DataFrame(lines, columns=["method", "k", "macro_f1", "seeds_spread"])
    rows = rows.assign(archive="closed", n_seeds=5, n_queries=801, n_without_relevant=90, n_classes=5)
    where, first, third, fifth, why = opponents.votes_said(rows)
    assert where == (
        "closed archive, macro F1 of Hyper-DINO(PCA(384), 32) and of raw features by cosine, over 5 classes (801 "
        "queries, 90 without an answer left out):"
    )
    assert first == (
        "  first answer: 14.1 % and 20.6 %; the raw features are ahead by 6.5 points (± 1.0 over the trainings of the "
        "head)"
    )
    assert third.startswith("  majority of 3: ") and "the head is ahead by 2.0 points (±" in third
    assert "the head is ahead by 2.8 points, no more than trainings differ (± 5.6" in fifth
    assert "rare class" in why and "MAP@1" in why
    assert "±" not in opponents.votes_said(rows.assign(seeds_spread=np.nan))[1]
    closed, _, _, _, whole, *_ = opponents.votes_said(pd.concat([rows, rows.assign(archive="whole")]))
    assert closed.startswith("closed archive") and whole.startswith("whole archive")


def test_rows_without_an_archive_are_of_an_earlier_version():
    """What shows sample reports says so at a KeyError, and stops at nothing."""
    rows = pd.DataFrame([("raw features, cosine", 1, 50.0, 0.0)], columns=["method", "k", "macro_f1", "seeds_spread"])
    with pytest.raises(KeyError):
        opponents.votes_said(rows)


def test_nca_is_named_at_its_best_length_and_near_that_of_the_head():
    rows = [
        {
            "rule": "by image",
            "source": "NCA",
            "dim_in": n,
            "family": "baseline",
            "metric": "ap_min",
            "k": k,
            "ours": ours,
        }
        for n, k, ours in [(5, 1, 99.0), (5, 20, 66.1), (40, 20, 45.9), (384, 20, 43.2)]
    ]
    others = [rows[1] | {"source": "PCA", "ours": 90.0}, rows[1] | {"family": "32", "ours": 90.0}]
    (line,) = opponents.nca_said(pd.DataFrame([*rows, *others]))
    told = "NCA only, folds by image, MAP@20: 66.1 % with 5 numbers, the best length of {} in the table of lengths"
    assert line == f"{told.format(3)}; 45.9 % with 40"
    (line,) = opponents.nca_said(pd.DataFrame(rows).query("dim_in == 5"))
    assert line == told.format(1)
