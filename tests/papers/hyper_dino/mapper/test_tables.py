"""The open choices of the loss against plain loops; loss curves as they are saved."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch

from lib import paths
from lib.geometry import PoincareBall
from lib.papers.hyper_dino.mapper import tables as contrastive
from lib.results import saved
from lib.results.store import Run
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import Fitted, Health, of_recipes
from lib.training.recipes import Recipe
from lib.training.splits import Split

H = 0.2 * torch.randn(10, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
M0, ALPHA = 0.7, 0.4


def loops(scale: float, self_pairs: bool, margin: float | None = None) -> tuple[float, float, float]:
    """L_pos, margin and L_neg of the embedding scaled by ``scale``, from the paper's formulas."""
    points = [[scale * value for value in row] for row in H.tolist()]

    def distance(x, y):
        gaps = [1 - sum(v * v for v in point) for point in (x, y)]
        return math.acosh(1 + 2 * sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / gaps[0] / gaps[1])

    every = [(i, j) for i in range(10) for j in range(10) if self_pairs or i != j]
    apart = {(i, j): distance(points[i], points[j]) for i, j in every}
    same = [apart[i, j] for i, j in every if LABELS[i] == LABELS[j]]
    other = [apart[i, j] for i, j in every if LABELS[i] != LABELS[j]]
    margin = M0 + ALPHA * sum(apart.values()) / len(apart) if margin is None else margin
    return sum(same) / len(same), margin, sum(max(0, margin - d) for d in other) / len(other)


@pytest.mark.parametrize("self_pairs", [False, True])
@pytest.mark.parametrize("detach_mean", [False, True])
def test_the_choices_are_those_of_plain_loops(self_pairs, detach_mean):
    table = contrastive.choices(H, LABELS, PoincareBall(), M0, ALPHA)
    row = table.set_index(["self_pairs", "detach_mean"]).loc[self_pairs, detach_mean]
    positive, margin, negative = loops(1.0, self_pairs)
    fixed = margin if detach_mean else None  # a detached margin does not move with the embedding
    step = 1e-5
    slope = (loops(1 + step, self_pairs, fixed)[2] - loops(1 - step, self_pairs, fixed)[2]) / (2 * step)
    assert row.tolist() == pytest.approx([positive, margin, negative, -slope], rel=1e-6)


def test_the_choices_are_laid_out_in_words():
    """A detached mean has no gradient: the two columns of the rows are told the way the text asks."""
    table = contrastive.choices(H, LABELS, PoincareBall(), M0, ALPHA)
    head, _, *lines = contrastive.choices_layout(table).splitlines()
    assert "self_pairs" not in head and "detach_mean" not in head
    assert "| an image pairs with itself | the gradient flows through the mean |" in head
    assert [line.split("|")[1:3] for line in lines] == [
        [f" {a} ", f" {b} "] for a in ("no", "yes") for b in ("no", "yes")
    ]


PCA, SCALED = of_recipes([Recipe("PCA", 20, 2), Recipe("scaled", 20, 2)], Settings(), Schedule(epochs=2, batch_size=4))
HISTORIES = {PCA: [[3.0, 1.0], [3.0, 2.0]], SCALED: [[5.0, 0.5]]}


@pytest.fixture
def rows() -> pd.DataFrame:
    found = {
        method.name: [
            Fitted(method, Split(0, np.arange(10), np.arange(10, 12), seed), None, None, history, Health())
            for seed, history in enumerate(histories)
        ]
        for method, histories in HISTORIES.items()
    }
    return contrastive.curves({"as printed": found})


def test_a_curve_counts_batches(rows):
    """Ten images in batches of four are three batches an epoch."""
    assert rows["iteration"].tolist() == [3, 6] * 3
    assert rows[["start", "head", "seed", "epoch", "loss"]].values.tolist()[2:4] == [
        ["as printed", "Hyper-DINO(PCA(20), 2)", 1, 1, 3.0],
        ["as printed", "Hyper-DINO(PCA(20), 2)", 1, 2, 2.0],
    ]


def test_verdicts_count_the_seeds(rows):
    assert contrastive.verdicts(rows) == [
        "as printed, Hyper-DINO(PCA(20), 2): the loss more than halves in 1 of 2 trainings; it ends at 1.50",
        "as printed, Hyper-DINO(20 scaled, 2): the loss more than halves in 1 of 1 trainings; it ends at 0.50",
    ]


def test_figure_2_says_how_long_was_trained(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    run = Run("12_hyper_dino_mapper", "demo", "tissue", "2,000 tiles", "abc", "texture", {"batch_size": 4})
    run.save("figure_2", contrastive.figure_2(rows, batch_size=4))
    folder = tmp_path / "hyper_dino" / "demo" / "tissue" / "mapper"
    assert {path.name for path in folder.iterdir()} == {"README.md", "run.json", "figure_2.csv", "figure_2.png"}
    caption = saved.record(folder / "figure_2.csv")["caption"]
    assert "2 epochs (published: 100) with batches of 4" in caption and "2 seeds" in caption
    np.testing.assert_allclose(pd.read_csv(folder / "figure_2.csv")["loss"], rows["loss"])


RUN = Run("12_hyper_dino_mapper", "demo", "tissue", "2,000 tiles", "abc", "texture", {"epochs": 8, "seeds": 5})


@pytest.fixture
def begun() -> pd.DataFrame:
    """Two heads from two starts at two k; the first begins, and as printed stays, at the rim."""
    lines = []
    for begin, out in itertools.product(["as printed", "start norm 0.3"], [True, False]):
        far = out and begin == "as printed"
        line = {"start": begin, "method": "long" if out else "short", "before": 0.999 if far else 0.3}
        line |= {"after": 0.999 if far else 0.2, "rim_before": 100.0 if far else 0.0, "rim": 90.0 if far else 0.0}
        line |= {"held": 99.0 if far else 0.0, "apart": 8.0 if far else 1.5, "loss": 1.9 if far else 0.25, "steps": 104}
        scores = {1: 50.0, 20: 40.0} if far else {1: 80.0, 20: 70.0}
        lines += [
            line | {"k": k, "ours": v, "seeds_spread": 1.5, "class_mean": v - 9, "chance": 12.5 / k}
            for k, v in scores.items()
        ]
    return pd.DataFrame(lines)


def test_the_table_of_starts_has_both_starts_of_a_head_below_each_other(begun):
    shown = contrastive.table_starts(RUN, begun)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.markdown.splitlines()[2:]]
    assert [row[:2] for row in cells] == [
        [head, begin] for head in ("long", "short") for begin in ("as printed", "start norm 0.3")
    ]
    assert cells[0][2:] == [
        *("0.999 → 0.999", "100.0 → 90.0 %", "99.0 %", "8.0 m"),
        *("1.900", "104", "50.00 ± 1.50", "40.00 ± 1.50", "41.00", "31.00"),
    ]
    assert "8 epochs (published: 100), 5 seeds" in shown.caption
    assert "chance is 12.5 at k = 1 and 0.6 at k = 20" in shown.caption


def test_sentences_on_the_start_count_the_heads(begun):
    assert contrastive.began(begun) == [
        "as printed: 1 of 2 heads begin with more than half of their images at the rim; there 99.0 % of the images are "
        "held, and two classes are 8.0 margins apart; inside 0.0 % of the images are held, and two classes are 1.5 "
        "margins apart",
        "as printed: 1 of 2 heads end, in some training, with more than 5 % of their images at the rim; last loss 0.25 "
        "to 1.90",
        "start norm 0.3: 0 of 2 heads begin with more than half of their images at the rim; inside 0.0 % of the images "
        "are held, and two classes are 1.5 margins apart",
        "start norm 0.3: 0 of 2 heads end, in some training, with more than 5 % of their images at the rim; last loss "
        "0.25",
    ]


def test_the_ruler_where_heads_end_is_that_of_the_ball(begun):
    """At norm 0.2 it is 1/(1 − 0.04) of the one at the centre."""
    (ours,) = (line for line in contrastive.at_rest(begun, 0.178) if line.startswith("start"))
    assert "norm of 0.20 (classes at rest: 0.178), where the ruler is 1.04 times that at the centre" in ours


def test_tally_counts_what_was_told_apart():
    tests = pd.DataFrame({"difference": [5.0, -2.0, 0.5], "p_holm": [0.01, 0.02, 0.6], "p_floor": 0.001, "n_tests": 3})
    told = contrastive.tally(tests.assign(n_units=20), "fold rule")
    assert told == "-2.0 to +5.0 points; of 3 fold rules 1 clearly better, 1 clearly worse"
    told = contrastive.tally(tests.assign(n_units=20, p_holm=0.6), "fold rule")
    assert told.endswith("of 3 fold rules 0 clearly better, 0 clearly worse")


def test_what_a_start_costs_is_said_for_each_k():
    tests = pd.DataFrame({"k": [1, 1, 20], "difference": [5.0, 2.0, 0.5], "p_holm": [0.01, 0.6, 0.6], "p_floor": 0.001})
    tests = tests.assign(n_tests=3, n_units=20, first="start norm 0.3", second="as printed", rule=["a", "b", "a"])
    assert contrastive.cost(tests) == [
        "k = 1, start norm 0.3 minus as printed: +2.0 to +5.0 points; of 2 heads 1 clearly better, 0 clearly worse",
        "k = 20, start norm 0.3 minus as printed: +0.5 points; of 1 head 0 clearly better, 0 clearly worse",
    ]


@pytest.mark.parametrize(
    ("inside", "p_holm", "told"),
    [
        (
            -3.0,
            0.04,
            "3.0 points with start norm 0.3; the start explains most of it, and a clear difference is left in "
            "1 comparison",
        ),
        (-3.0, 0.40, "the start explains most of it, and no clear difference is left"),
        (6.0, 0.40, "the start explains a part of it"),
        (12.0, 0.01, "the start explains nothing of it, and a clear difference is left in 1 comparison"),
    ],
)
def test_what_the_start_explains_of_a_difference(inside, p_holm, told):
    rules = ["as printed", "as printed", "start norm 0.3", "start norm 0.3"]
    tests = pd.DataFrame({"rule": rules, "difference": [-9.0, 8.0, inside, 0.1], "p_holm": [0.01, 0.01, p_holm, 0.9]})
    first, second, text = contrastive.rotated(tests.assign(p_floor=0.001, n_tests=4, n_units=20, k=20))
    assert first == "as printed, k = 20: -9.0 to +8.0 points; of 2 comparisons 1 clearly better, 1 clearly worse"
    assert second.startswith(f"start norm 0.3, k = 20: {min(inside, 0.1):+.1f} to {max(inside, 0.1):+.1f} points; of 2")
    assert text.startswith("largest difference: 9.0 points as printed, ") and told in text
    unclear = tests.assign(p_floor=0.001, n_tests=4, n_units=20, k=20, p_holm=0.9)
    assert contrastive.rotated(unclear)[-1].endswith("none is clear from either start")


def test_the_rim_is_told_in_norms(begun):
    rows = begun[begun["k"] == 1].assign(before_low=0.1, before_high=0.3, after_low=0.1, after_high=0.3)
    shown = contrastive.figure_starts(RUN, rows, PoincareBall(1.0), 1e-3, 0.178)
    assert "Grey: norm 0.989 to 0.999, counted as at the rim" in shown.caption


def test_the_choice_names_the_best_start_first():
    rows = [
        ("as printed", "a", 60.0),
        ("as printed", "b", 50.0),
        ("start norm 0.1", "a", 70.0),
        ("start norm 0.1", "b", 71.0),
    ]
    table = pd.DataFrame(rows, columns=["rule", "method", "ours"]).assign(metric="ap_min", k=20, seeds_spread=1.0)
    table = table.assign(loss=0.5, rim=0.0, steps=10, class_mean=44.0, chance=3.5)
    shown = contrastive.table_choice(RUN, table, Split(0, np.arange(1550), np.arange(1550, 1800), 0))
    assert contrastive.choice(shown.rows) == ["k = 20, mean over the heads: 70.5 start norm 0.1, 55.0 as printed"]
    assert [line.split("|")[1].strip() for line in shown.markdown.splitlines()[2:]] == ["a", "a", "b", "b"]
    head, _, first, *_ = shown.markdown.splitlines()
    assert head.endswith("| MAP@20 | class mean@20 | last loss | at the rim | steps |")
    assert first.endswith("| 60.00 ± 1.00 | 44.00 | 0.500 | 0.0 % | 10 |")
    assert "chance is 3.5 at k = 20." in shown.caption
    assert "1,550 training images, 250 query images" in shown.caption


def test_both_starts_by_group_stand_in_a_row_each():
    """The rule of the rows is the start; health and class means stand beside."""
    rows = pd.DataFrame(
        [
            {"rule": begin, "method": "head", "metric": "ap_min", "k": k, "ours": 50.0 + k, "spread": 1.0}
            | {"seeds_spread": 0.5, "class_mean": 40.0 + k, "chance": 12.5, "n_queries": 30, "n_without_relevant": 2}
            | {"loss": 0.25, "rim": rim, "steps": 105}
            for begin, rim in (("as printed", 31.0), ("start norm 0.3", 0.0))
            for k in (1, 20)
        ]
    )
    run = Run("12_hyper_dino_mapper", "demo", "tissue", "40 images", "abc", "texture", {"seeds": 5, "epochs": 7})
    shown = contrastive.table_by_group(run, rows, "lesion")
    assert "by lesion" in shown.caption and "trained 5 times for 7 epochs" in shown.caption
    lines = [line for line in shown.markdown.splitlines() if "| head |" in line]
    assert [("as printed" in line, "31.0 %" in line, "51.00 ± 1.00" in line) for line in lines] == [
        (True, True, True),
        (False, False, True),
    ]
