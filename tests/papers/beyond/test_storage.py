"""Storage: codecs and indexes against the exact search, on a small experiment."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.geometry import Euclidean, PoincareBall
from lib.papers.beyond import storage
from lib.search.synthetic import hierarchy
from lib.training.experiment import fit
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import of_recipes
from lib.training.recipes import Recipe
from lib.training.splits import splits

KS = (1, 5)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    x = (rng.normal(size=(60, 8)) + 2 * rng.normal(size=(3, 8))[labels]).astype(np.float32)
    recipes = [Recipe("PCA", 8, 4), Recipe("PCA", 4, 0)]
    methods = of_recipes(recipes, Settings(half=False), Schedule(epochs=2, batch_size=16))
    fitted = fit(x, labels, methods, splits(np.arange(60) // 20, seed=0), workers=1)
    return storage.codec_rows(fitted, x, labels, "by image", KS)


def test_codecs_halve_the_bytes_and_move_no_distance_by_more_than_the_bound(rows):
    assert len(rows) == 3 * (3 + 2)
    exact = rows[rows["codec"] == "float32"]
    assert (exact["recall"] == 100).all() and (exact["bytes"] == 16).all()
    assert (rows.loc[rows["codec"] != "float32", "bytes"] == 8).all()
    curved, flat = (rows[rows["method"] == name] for name in ("mapper", "no mapper"))
    assert (curved["moved"] <= curved["bound"]).all() and (curved.query("codec != 'float32'")["moved"] > 0).all()
    assert set(flat["codec"]) == {"float32", "float16"} and flat[["moved", "bound"]].isna().all(axis=None)


def test_every_index_finds_the_neighbours_of_every_gallery():
    ball = PoincareBall(1.0)
    galleries = {
        "tree": (hierarchy(20, 8, seed=1), hierarchy(300, 8, seed=2), ball),
        "flat": (torch.randn(20, 8), torch.randn(400, 8), Euclidean()),
    }
    table = storage.index_rows(galleries, k=5)
    assert table["gallery"].tolist() == ["tree"] * 2 + ["flat"] * 2
    assert table["structure"].tolist() == ["exact", "quick"] * 2
    assert (table.loc[table["structure"] == "exact", "recall"] == 100).all()
    assert (table[["recall", "own"]] >= 99).all(axis=None)


def test_an_index_that_cannot_tell_images_apart_is_refused_and_the_others_are_measured():
    """Short codes see one place where a class has fallen together, as on skin."""
    torch.manual_seed(0)
    points = torch.cat([1e-5 * torch.randn(6000, 8), torch.rand(2000, 8) / 4])
    table = storage.index_rows({"skin": (points[:5], points, PoincareBall(1.0))}, k=5).set_index("structure")
    assert table.loc["exact", "recall"] == 100 and table.loc["quick", ["recall", "own"]].isna().all()


def test_the_summary_has_means_over_the_folds_and_the_worst_move(rows):
    """A class mean is of all folds together."""
    folds = rows.groupby(["method", "codec"])[["class_mean_1", "class_mean_5"]].nunique()
    assert (folds == 1).all(axis=None) and rows.groupby(["method", "codec"])["map_5"].nunique().gt(1).any()
    table = storage.summary(rows)
    block = rows[(rows["method"] == "mapper") & (rows["codec"] == "float16 ball")]
    line = table[(table["method"] == "mapper") & (table["codec"] == "float16 ball")].iloc[0]
    assert line["map_5"] == pytest.approx(block["map_5"].mean()) and line["moved"] == block["moved"].max()
    assert line["spread"] == pytest.approx(np.std(block["map_5"], ddof=1))
    mapper, plain = (table[table["method"] == name] for name in ("mapper", "no mapper"))
    assert (mapper["steps"] == 2 * 3).all() and (plain["steps"] == 0).all() and plain["loss"].isna().all()


def test_a_billion_is_in_proportion_to_codes_and_to_their_numbers():
    """Ten thousand codes of 32 numbers in 9.2 ms are a billion in 920 s, and half the numbers half of it."""
    bench = pd.DataFrame({"structure": "exact", "size": [1000, 10_000], "single_ms": [1.0, 9.2], "numbers": 32})
    short, long = storage.at_a_billion(bench.assign(batch_ms=10.0, bytes=276.0), [16, 32]).to_numpy().tolist()
    assert long == pytest.approx([32, 64, 276, 920, 1000]) and short == pytest.approx([16, 32, 138, 460, 500])
