"""The benchmark compares like with like and writes what it measured; no time is asserted here."""

import numpy as np
import pandas as pd

from lib import bench, paths
from lib.training.recipes import Recipe


def test_the_median_is_of_wall_times(monkeypatch):
    ticks = iter([0.0, 1.0, 10.0, 15.0, 20.0, 22.0])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(ticks))
    assert bench.median_seconds(lambda: None, repeats=3) == 2.0


def test_sweep_and_loop_train_the_same_heads(monkeypatch):
    """With the sizes made small: two mappers on five folds, both ways, and the ratio is that of the two times."""
    trained = []
    monkeypatch.setattr(bench, "N_TRAIN", 40)
    monkeypatch.setattr(bench, "DIM", 6)
    monkeypatch.setattr(bench, "recipes", lambda *_: [Recipe("PCA", 6, 2), Recipe("PCA", 4, 4), Recipe("PCA", 4, 0)])
    fit_head = bench.fit_head
    monkeypatch.setattr(bench, "fit_head", lambda *a, **k: trained.append(fit_head(*a, **k)))
    row = bench.sweep_against_loop(epochs=2)
    assert len(trained) == 2 * bench.FOLDS and all(len(history) == 2 for history in trained)
    assert row["what"] == "2 mappers × 5 folds × 2 of 100 epochs, 40 × 6 training features"
    assert np.isclose(row["ratio"], row["peer_s"] / row["ours_s"])


def test_the_table_says_what_it_was_measured_on(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    monkeypatch.setattr(
        bench, "sweep_against_loop", lambda: {"what": "this", "ours_s": 1.0, "peer_s": 3.0, "ratio": 3.0}
    )
    bench.main()
    assert pd.read_csv(tmp_path / "bench/bench.csv")["ratio"].tolist() == [3.0]
    text = (tmp_path / "bench/bench.md").read_text()
    assert "processors" in text and "torch" in text and text.strip() == capsys.readouterr().out.strip()
