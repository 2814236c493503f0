"""The benchmark compares like with like and writes what it measured; no time is asserted here."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from bench import __main__ as bench
from bench import ceilings, distances, hashes, images, latency, recall, scoring, searching, sweeping, timing
from lib import devices
from lib.errors import InputError
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
    rows = distances.rows(40, 72, 50)
    pairs = [(row.what.split(",")[0], row.what.split()[-3], row.peer.split()[0]) for row in rows if row.aim == "≥ 1/2"]
    assert pairs == [("forward and backward", n, "torch.cdist") for n in ("40", "50")]
    ours, theirs = (float(word) for word in re.findall(r"\d+e-?\d+", rows[0].check))
    assert ours < 1e-5 < theirs
    exact = next(row for row in rows if "exact form" in row.what)
    assert float(exact.check.split()[2]) < 1e-6
    assert next(row for row in rows if row.what.startswith("δ")).check == "equal"


real = distances._hyperbolicity


def test_search_and_indexes_find_the_float64_order(monkeypatch):
    monkeypatch.setattr(searching, "milliseconds", lambda *_: (1.0, 2.0))
    exact, _, quick, alone, quick_alone = searching.rows(20, 3000, 16, 4000)
    assert exact.check.startswith("ours the float64 order") and alone.check.startswith("recall@20 1.0000")
    assert all(float(row.check.split()[1]) >= 0.99 for row in (quick, quick_alone))


def test_rings_find_what_is_lost_among_products(monkeypatch):
    monkeypatch.setattr(recall, "RADII", ((0.0, 0.4), (0.0, 12.0)))
    found = recall.measure(6000, 50, dims=(16,)).set_index("radius")
    assert (found[["ours", "own"]] >= 0.99).all(axis=None)
    assert (found.loc["0 to 12", ["d + 2, graph", "d + 2, codes"]] < 0.9).all()
    assert found["norm_spread"].idxmax() == "0 to 12"


def test_binary_indexes_find_codes_as_near_as_the_exact_search(monkeypatch):
    monkeypatch.setattr(hashes, "milliseconds", lambda *_: (1.0, 2.0))
    shares = [float(row.check.split()[-1].rstrip("%")) for row in hashes.rows(20, 3000, 64)]
    assert shares[0] == shares[3] == 100 and min(shares) > 90


def test_scores_equal_the_peers(monkeypatch):
    monkeypatch.setattr(scoring, "milliseconds", lambda *_, **__: (1.0, 2.0))
    rows = scoring.rows(40, 400, 8)
    assert len(rows) == 6 and all(float(row.check.split()[-1]) < 1e-6 for row in rows)


def test_sweep_and_loop_train_the_same_heads(monkeypatch):
    """With the sizes made small: two mappers on five folds, and on the first."""
    monkeypatch.setattr(sweeping, "N_TRAIN", 40)
    monkeypatch.setattr(sweeping, "DIM", 6)
    monkeypatch.setattr(sweeping, "recipes", lambda *_: [Recipe("PCA", 6, 2), Recipe("PCA", 4, 4), Recipe("PCA", 4, 0)])
    (row,) = sweeping.rows("cpu", (1, 2))
    assert row.what == "a step of a head; 2 mappers × 5 folds × 2 of 100 epochs, 40 × 6 training features"
    assert float(row.check.split()[6]) < 1e-5 and min(row.our_value, row.peer_value) > 0


class Room:
    """What the bench finds, whatever room it looks into."""

    @staticmethod
    def rows() -> list[timing.Row]:
        return [timing.Row("this", "ms", "ours", "peer", 1.0, 3.0, "≥ 2", "equal")]


def test_the_table_says_what_it_was_measured_on(monkeypatch, tmp_path, capsys):
    measure, by_radius = latency.measure, recall.measure
    monkeypatch.setattr(recall, "measure", lambda: by_radius(300, 20, (5,)))
    monkeypatch.setattr(bench, "import_module", lambda name: Room)
    monkeypatch.setattr(latency, "measure", lambda: measure((300,)))
    monkeypatch.setattr(latency, "SMALLEST", 300)
    monkeypatch.setattr(latency, "DATABASES", {"a file": (latency.DATABASES["Milvus, a file"][0], 300)})
    monkeypatch.setattr(sys, "argv", ["bench", "--out", str(tmp_path)])
    bench.main()
    assert set(pd.read_csv(tmp_path / "bench.csv")["ratio"]) == {3.0}
    text = (tmp_path / "bench.md").read_text()
    assert all(word in text for word in ("processors", "no GPU", "torch", "faiss-cpu", "threads"))
    assert text.strip() in capsys.readouterr().out
    times = pd.read_csv(tmp_path / "latency.csv")
    assert len(times) == 5 and (times["recall"] >= 0.99).all() and (tmp_path / "latency.png").exists()
    assert (times["bytes"] >= 4 * latency.DIM).all()


def test_a_gpu_has_a_table_of_its_name_and_what_fails_leaves_the_rest(monkeypatch, tmp_path):
    def look(name: str) -> type[Room]:
        if name.endswith("sweeping"):
            raise ModuleNotFoundError("No module named 'geoopt'")
        return Room

    monkeypatch.setattr(bench, "import_module", look)
    monkeypatch.setattr(devices, "pick", lambda: torch.device("cuda"))
    monkeypatch.setattr(devices, "name", lambda: "NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(sys, "argv", ["bench", "--out", str(tmp_path)])
    with pytest.raises(InputError, match="sweeping is not measured: ModuleNotFoundError: No module named 'geoopt'"):
        bench.main()
    assert {file.name for file in tmp_path.iterdir()} == {"nvidia-h100-80gb-hbm3.csv", "nvidia-h100-80gb-hbm3.md"}
    assert len(pd.read_csv(tmp_path / "nvidia-h100-80gb-hbm3.csv")) == len(bench.ON_ANY) - 1
    assert "NVIDIA H100 80GB HBM3" in (tmp_path / "nvidia-h100-80gb-hbm3.md").read_text()

    again = []
    monkeypatch.setattr(bench, "import_module", lambda name: again.append(name) or Room)
    monkeypatch.setattr(sys, "argv", ["bench", "--out", str(tmp_path), "--resume"])
    bench.main()
    assert again == ["bench.sweeping"]
    assert set(pd.read_csv(tmp_path / "nvidia-h100-80gb-hbm3.csv")["group"]) == set(bench.ON_ANY)


def test_a_rate_is_better_where_it_is_higher_and_a_ceiling_has_no_peer():
    assert timing.Row("features", "images/s", "ours", "alone", 80.0, 100.0).ratio == 0.8
    copies, *_, metric = ceilings.rows((2**20, 64, 4, 2000))
    cells = copies.cells()
    assert cells["unit"] == "GB/s" and cells["our_value"] > 0 and np.isnan(cells["ratio"])
    assert metric.what.startswith("MAP@1, 5, 10, 20 of 4 queries in 40") and metric.ratio > 0


@pytest.mark.slow
def test_images_are_measured_against_the_network_alone(monkeypatch):
    times = iter(range(1000))
    monkeypatch.setattr(images, "milliseconds", lambda ours, peer, **_: (ours(), peer(), (1.0, 2.0))[-1])
    monkeypatch.setattr(images, "DISTINCT", 4)
    monkeypatch.setattr(images.time, "perf_counter", lambda: next(times) ** 2)
    files, decoded, training = images.rows((3, 4, 4, 2), side=32)
    assert files.what == "features from files, 12 photographs at efficientnet_lite0_32px"
    assert files.ratio == decoded.ratio == 2 and training.unit == "images/s"
