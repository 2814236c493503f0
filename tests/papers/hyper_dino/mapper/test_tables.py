"""The open choices of the loss against plain loops; loss curves as they are saved."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch

from lib import paths
from lib.geometry import PoincareBall
from lib.papers.hyper_dino.mapper import tables as contrastive
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


PCA, SCALED = of_recipes([Recipe("PCA", 20, 2), Recipe("scaled", 20, 2)], Settings(), Schedule(epochs=2, batch_size=4))
HISTORIES = {PCA: [[3.0, 1.0], [3.0, 2.0]], SCALED: [[5.0, 0.5]]}


@pytest.fixture
def rows() -> pd.DataFrame:
    found = {
        method.name: [
            Fitted(method, Split(fold, np.arange(10), np.arange(10, 12), 0), None, None, history, Health())
            for fold, history in enumerate(histories)
        ]
        for method, histories in HISTORIES.items()
    }
    return contrastive.curves(found)


def test_a_curve_counts_batches(rows):
    """Ten images in batches of four are three batches an epoch."""
    assert rows["iteration"].tolist() == [3, 6] * 3
    assert rows[["head", "fold", "epoch", "loss"]].values.tolist()[2:4] == [
        ["Hyper-DINO(PCA(20), 2)", 1, 1, 3.0],
        ["Hyper-DINO(PCA(20), 2)", 1, 2, 2.0],
    ]


def test_verdicts_count_the_folds(rows):
    assert contrastive.verdicts(rows) == [
        "Hyper-DINO(PCA(20), 2): the loss more than halves in 1 of 2 folds",
        "Hyper-DINO(20 scaled, 2): the loss more than halves in 1 of 1 folds",
    ]


def test_figure_2_says_how_long_was_trained(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    run = Run("12_hyper_dino_mapper", "demo", "tissue", "2,000 tiles", "abc", "texture", {"batch_size": 4})
    run.save("figure_2", contrastive.figure_2(rows, batch_size=4))
    folder = tmp_path / "hyper_dino" / "demo" / "tissue" / "mapper"
    assert {path.name for path in folder.iterdir()} == {f"figure_2.{kind}" for kind in ("csv", "json", "png", "svg")}
    caption = json.loads((folder / "figure_2.json").read_text())["caption"]
    assert "2 epochs (published: 100) with batches of 4" in caption and "2 folds" in caption
    np.testing.assert_allclose(pd.read_csv(folder / "figure_2.csv")["loss"], rows["loss"])
