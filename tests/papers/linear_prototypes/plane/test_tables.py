"""What the comparisons in a plane change, and what notebook 40 writes."""

import pandas as pd
import pytest
import torch

from lib import paths
from lib.losses.linear_prototypes import NAMES
from lib.papers.linear_prototypes.plane import tables
from lib.results.store import Run

LABELS = torch.arange(30) % 3
CENTRES = torch.tensor([[0.2, 0.0], [0.8, 0.0], [0.0, 0.6]])
V = CENTRES[LABELS] + 0.02 * torch.randn(30, 2, generator=torch.Generator().manual_seed(0))


def test_cosine_cannot_tell_two_classes_in_one_direction():
    rows = tables.agreement(V, LABELS, k=3, seed=0, times=10).set_index("comparison")
    assert list(rows.index) == list(NAMES)
    assert rows.loc["squared euclidean", "changed"] == rows.loc["euclidean", "changed"] == 0
    assert rows.loc[["squared euclidean", "poincare"], "right"].min() > 95
    assert rows.loc["cosine", "right"] < 85 and rows.loc["cosine", "changed"] > 15


def test_the_picture_and_the_probabilities_of_the_query_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    run = Run("40_linear_prototypes_plane", "demo", "tissue", "images", "abc", "texture")
    shown = run.save("figure_plane", tables.figure_plane(V, LABELS, ["a", "b", "c"], query=4, seed=0))
    rows = pd.read_csv(run.folder / "figure_plane.csv")
    assert len(shown.figure.axes) == 3
    assert rows.groupby("c")["p"].sum().tolist() == pytest.approx([1, 1, 1], abs=2e-4)
    assert (run.folder / "figure_plane.png").exists()
