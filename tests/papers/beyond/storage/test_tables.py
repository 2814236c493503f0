"""Storage: codecs and indexes against the exact search, on a small experiment."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib import paths
from lib.geometry import Euclidean, PoincareBall
from lib.metrics import retrieval
from lib.papers.beyond.storage import tables
from lib.results import saved
from lib.results.store import Run
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
    return tables.codec_rows(fitted, x, labels, "by image", KS)


def test_float32_changes_nothing_and_float16_halves_the_bytes(rows):
    assert len(rows) == 3 * (3 + 2)
    exact = rows[rows["codec"] == "float32"]
    assert (exact["recall"] == 100).all() and (exact["bytes"] == 16).all()
    assert (rows.loc[rows["codec"] != "float32", "bytes"] == 8).all()
    assert set(rows.loc[rows["method"] == "no mapper", "codec"]) == {"float32", "float16"}


def test_no_distance_changes_by_more_than_the_bound(rows):
    curved = rows[rows["method"] == "mapper"]
    assert (curved["moved"] <= curved["bound"]).all() and (curved.query("codec != 'float32'")["moved"] > 0).all()
    assert rows[rows["method"] == "no mapper"][["moved", "bound"]].isna().all(axis=None)


def test_the_summary_has_means_over_the_folds_and_the_worst_move(rows):
    table = tables.summary(rows)
    block = rows[(rows["method"] == "mapper") & (rows["codec"] == "float16 ball")]
    line = table[(table["method"] == "mapper") & (table["codec"] == "float16 ball")].iloc[0]
    assert line["map_5"] == pytest.approx(block["map_5"].mean())
    assert line["spread"] == pytest.approx(np.std(block["map_5"], ddof=1))
    assert line["moved"] == block["moved"].max()
    other = table.assign(rule="by patient", map_1=0.0)
    by_image, by_patient = tables.storage_layout(pd.concat([table, other])).split("\n\n## Folds by patient\n\n")
    head, _, *lines = by_patient.splitlines()
    assert len(lines) == len(table) + 1 and by_image.startswith("## Folds by image\n\n| method | numbers |")
    assert "| MAP@1 | MAP@5 |" in head and "| 0.00 |" in lines[0] and "| 0.00 |" not in by_image
    assert "MAP@3" not in tables.storage_layout(table.assign(map_3=50.0))


def test_class_means_chance_and_health_stand_beside_every_score(rows):
    table = tables.summary(rows)
    mapper, plain = (table[table["method"] == name] for name in ("mapper", "no mapper"))
    assert (mapper["steps"] == 2 * 3).all() and mapper[["loss", "rim"]].notna().all(axis=None)
    assert (plain["steps"] == 0).all() and plain[["loss", "rim"]].isna().all(axis=None)
    assert table["chance_1"].between(32, 34).all()  # three classes
    shown = table.assign(class_mean_5=43.21, chance_5=9.87, loss=0.25, rim=1.5)
    head, _, *lines = tables.storage_layout(shown).splitlines()[2:]
    assert head.endswith(
        "| MAP@1 | MAP@5 | class mean@1 | class mean@5 | neighbours kept (%) | moved | bound | "
        "last loss | at the rim | steps |"
    )
    assert "| 43.21 |" in lines[0] and lines[0].endswith("| 0.250 | 1.5 % | 6 |")
    assert lines[-1].startswith(f"| chance | – | – | – | {table['chance_1'].mean():.2f} | 9.87 | – |")


def test_a_class_mean_counts_every_class_alike():
    """Three queries of a class that is found and one of a class that is not: 75 percent, and 50 by class."""
    values = pd.DataFrame({("ap_min", 1): [1.0, 1.0, 1.0, 0.0]})
    values.columns = pd.MultiIndex.from_tuples(values.columns, names=["metric", "k"])
    found = retrieval.PerQuery(values, np.array([0, 0, 0, 1]), np.full(4, 5), np.full(4, 20))
    assert tables._scores(found, tables.SCORES) == pytest.approx({"map_1": 75.0, "chance_1": 25.0})
    assert tables._scores(found, tables.CLASS_MEANS) == pytest.approx({"class_mean_1": 50.0})


def test_a_class_mean_is_one_of_all_folds(rows):
    folds = rows.groupby(["method", "codec"])[["class_mean_1", "class_mean_5"]].nunique()
    assert (folds == 1).all(axis=None) and rows.groupby(["method", "codec"])["map_5"].nunique().gt(1).any()


def test_the_smallest_row_within_a_point_is_the_cheapest_that_is_good_enough():
    table = pd.DataFrame(
        {
            "rule": "by image",
            "method": ["mapper", "mapper", "mapper", "no mapper"],
            "bytes": [32, 16, 8, 4],
            "map_5": [60.0, 59.2, 58.9, 60.0],
        }
    )
    assert tables.smallest_within(table, "by image", 5, points=1.0)["bytes"] == 16


def test_the_codec_that_exchanges_fewer_is_counted_length_by_length():
    kept = {"float32": [100, 100, 100], "float16 ball": [99.8, 99.7, 99.9], "float16 tangent": [99.9, 99.6, 99.9]}
    parts = [pd.DataFrame({"codec": name, "numbers": [4, 8, 16], "recall": values}) for name, values in kept.items()]
    table = pd.concat(parts).assign(rule="by slide", method="mapper")
    bare = table.assign(method="no mapper", recall=50.0)
    other = table.assign(rule="by image", recall=99.5)
    by_slide, by_image = tables.exchanged(pd.concat([table, bare, other]))
    assert by_slide == (
        "folds by slide: the tangent codec exchanges fewer neighbours than the ball codec at 1 of 3 lengths, "
        "more at 1, as many at 1; kept are at least 99.60 % (tangent) and 99.70 % (ball)"
    )
    assert "fewer neighbours than the ball codec at 0 of 3 lengths, more at 0, as many at 3;" in by_image


def test_every_index_finds_the_neighbours_of_every_gallery():
    ball = PoincareBall(1.0)
    galleries = {
        "tree": (hierarchy(20, 8, seed=1), hierarchy(600, 8, seed=2), ball),
        "flat": (torch.randn(20, 8), torch.randn(900, 8), Euclidean()),
    }
    table = tables.index_rows(galleries, k=5, most=800)
    assert set(zip(table["gallery"], table["structure"], strict=True)) == {
        ("tree", "faiss flat"),
        ("tree", "faiss hnsw"),
        ("tree", "qdrant"),
        ("flat", "faiss flat"),
        ("flat", "faiss hnsw"),
    }
    assert (table.loc[table["proposed"] > 5, "recall"] >= 99).all()
    assert "recall, 5 proposed | recall, 36 proposed" in tables.index_layout(table)


def test_the_table_of_indexes_says_what_was_proposed_and_when_it_tells_nothing():
    rows = pd.DataFrame(
        {"gallery": "tissue", "size": 800, "structure": ["faiss flat", "faiss hnsw"] * 2, "proposed": [20, 20, 96, 96]}
    )
    text = tables.indexes(rows.assign(recall=100.0), k=20).caption
    assert "proposes 20 candidates" in text and "proposes 96 (4 k + 16)" in text and "dataset's name" in text
    (nothing,) = tables.recalls(rows.assign(recall=100.0))
    assert nothing.endswith("up to 800 codes: nothing tells them apart here")
    several = tables.recalls(rows.assign(recall=[100.0, 90.0, 100.0, 98.5]))
    assert several == [
        "faiss flat: recall at least 100.0 % after the re-rank",
        "faiss hnsw: recall at least 98.5 % after the re-rank",
    ]


def test_codecs_at_all_radii_keep_their_promise():
    table = tables.codec_at_radii([0.1, 0.9, 0.999], dim=8, n=100, seed=0)
    assert len(table) == 9 and (table["moved"] <= table["bound"]).all()
    ball = PoincareBall(1.0)
    origin, point = torch.zeros(8, dtype=torch.float64), torch.eye(8, dtype=torch.float64)[0]
    expected = [ball.between(origin, radius * point).item() for radius in table["radius"]]
    assert table["distance"].tolist() == pytest.approx(expected)


def test_tables_and_figure_say_what_they_are_of(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    run = Run("92_beyond_storage", "demo", "tissue", "60 images", "hash", "none (8 numbers)")
    costs = tables.summary(rows)
    run.save("table_storage", tables.storage(costs, k=5))
    run.save("figure_storage", tables.figure_storage(costs, "by image", k=5))
    assert {path.name for path in run.folder.iterdir()} == {
        *("README.md", "run.json", "table_storage.csv"),
        *("figure_storage.csv", "figure_storage.png"),
    }
    text = saved.text(run.folder / "table_storage.csv")
    assert "60 images" in text and "5 nearest before coding" in text
    assert "Folds by image." in saved.text(run.folder / "figure_storage.csv")
