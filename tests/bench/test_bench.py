"""The benchmark compares like with like and writes what it measured; no time is asserted here."""

import re

import pandas as pd
import pytest
import torch

from lib.bench import __main__ as bench
from lib.bench import distances, hashes, latency, recall, scoring, searching, sweeping, timing
from lib.training.recipes import Recipe


def test_the_median_is_of_wall_times_after_a_first_turn(monkeypatch):
    ticks = iter([0.0, 9.0, 9.0, 10.0, 0.0, 1.0, 1.0, 5.0, 0.0, 5.0, 5.0, 7.0, 0.0, 2.0, 2.0, 8.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(ticks))
    assert timing.milliseconds(lambda: None, lambda: None, repeats=3) == (2000.0, 4000.0)


def test_memory_is_the_peak_and_not_the_sum():
    def work() -> torch.Tensor:
        for _ in range(5):
            held = torch.ones(256, 1024) + 1  # two of 1 MB at a time
        return held

    assert timing.megabytes(work) == pytest.approx(3, abs=0.01)  # the last result is still held by its name


def test_the_ratio_says_how_much_less_we_need():
    row = timing.Row("this", "ms", "ours", "peer", 2.0, 61.23456)
    assert row.ratio == 30.61728 and row.cells()["ratio"] == 30.62 and row.cells()["peer_value"] == 61.23


def test_relative_errors_leave_out_true_zeros():
    assert timing.relative_error(torch.tensor([1.5, 0.1]), torch.tensor([1.0, 0.0])) == 0.5


def test_distances_agree_with_the_peer_and_hold_near_duplicates(monkeypatch):
    monkeypatch.setattr(distances, "milliseconds", lambda *_, **__: (1.0, 2.0))
    monkeypatch.setattr(distances, "_hyperbolicity", lambda n=30: real(n))
    rows = distances.rows(40, 72)
    ours, theirs = (float(word) for word in re.findall(r"\d+e-?\d+", rows[0].check))
    assert ours < 1e-5 < theirs
    exact = next(row for row in rows if "exact form" in row.what)
    assert float(exact.check.split()[2]) < 1e-6
    assert next(row for row in rows if row.what.startswith("δ")).check == "equal"


real = distances._hyperbolicity


def test_search_and_indexes_find_the_float64_order(monkeypatch):
    monkeypatch.setattr(searching, "milliseconds", lambda *_: (1.0, 2.0))
    exact, _, hnsw, qdrant = searching.rows(20, 3000, 16, 400)
    assert exact.check.startswith("ours the float64 order")
    assert all(float(row.check.split()[1]) >= 0.99 for row in (hnsw, qdrant))


def test_our_graph_finds_what_one_among_products_loses():
    found = recall.measure(3000, 50, dims=(32,)).set_index("radius")
    assert (found[["ours", "own"]] >= 0.99).all(axis=None)
    assert found["d + 2"]["0 to 0.4"] > 0.95 and found["d + 2"]["0 to 12"] < 0.9
    assert found["norm_spread"].idxmax() == "0 to 12"


def test_binary_indexes_find_codes_as_near_as_the_exact_search(monkeypatch):
    monkeypatch.setattr(hashes, "milliseconds", lambda *_: (1.0, 2.0))
    shares = [float(row.check.split()[-1].rstrip("%")) for row in hashes.rows(20, 3000, 64)]
    assert shares[0] == shares[3] == 100 and min(shares) > 90


def test_scores_equal_the_peers(monkeypatch):
    monkeypatch.setattr(scoring, "milliseconds", lambda *_, **__: (1.0, 2.0))
    rows = scoring.rows(40, 400, 8)
    assert len(rows) == 4 and all(float(row.check.split()[-1]) < 1e-6 for row in rows)


def test_sweep_and_loop_train_the_same_heads(monkeypatch):
    """With the sizes made small: two mappers on five folds, both ways."""
    trained = []
    monkeypatch.setattr(sweeping, "N_TRAIN", 40)
    monkeypatch.setattr(sweeping, "DIM", 6)
    monkeypatch.setattr(sweeping, "recipes", lambda *_: [Recipe("PCA", 6, 2), Recipe("PCA", 4, 4), Recipe("PCA", 4, 0)])
    fit_head = sweeping.fit_head
    monkeypatch.setattr(sweeping, "fit_head", lambda *a, **k: trained.append(fit_head(*a, **k)))
    (row,) = sweeping.rows(epochs=2)
    assert len(trained) == 2 * sweeping.FOLDS and all(len(history) == 2 for history in trained)
    assert row.what == "2 mappers × 5 folds × 2 of 100 epochs, 40 × 6 training features"
    assert min(row.our_value, row.peer_value) > 0


def test_the_table_says_what_it_was_measured_on(monkeypatch, tmp_path, capsys):
    class Room:
        @staticmethod
        def rows() -> list[timing.Row]:
            return [timing.Row("this", "ms", "ours", "peer", 1.0, 3.0, "≥ 2", "equal")]

    measure, by_radius = latency.measure, recall.measure
    monkeypatch.setattr(recall, "measure", lambda: by_radius(300, 20, (5,)))
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    monkeypatch.setattr(bench, "ROOMS", (Room,))
    monkeypatch.setattr(latency, "measure", lambda: measure((300,)))
    bench.main()
    assert pd.read_csv(tmp_path / "bench.csv")["ratio"].tolist() == [3.0]
    text = (tmp_path / "bench.md").read_text()
    assert all(word in text for word in ("processors", "torch", "faiss-cpu", "threads"))
    assert text.strip() in capsys.readouterr().out
    times = pd.read_csv(tmp_path / "latency.csv")
    assert len(times) == 4 and (times["recall"] >= 0.99).all() and (tmp_path / "latency.png").exists()
    assert (times["bytes"] >= 4 * latency.DIM).all()
