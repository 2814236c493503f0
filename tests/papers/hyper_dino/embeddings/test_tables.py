"""What PCA keeps, what float16 costs and what fitting on the test images hides, against slow or known answers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from lib.heads import Reduction
from lib.papers.hyper_dino.embeddings import tables as features
from lib.processes import spread
from lib.results.store import Run
from lib.training.experiment import answers
from lib.training.hyper_dino import Settings
from lib.training.methods import of_recipes
from lib.training.recipes import Recipe
from lib.training.splits import splits

FOLDS = np.arange(120) % 3
WHERE = splits(FOLDS, 0)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    """Four classes that differ in two of six numbers of very unequal size."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 120)
    x = rng.normal(size=(120, 6)) * [1, 1, 5, 0.2, 1, 1]
    x[:, :2] += 2 * rng.normal(size=(4, 2))[labels]
    x[:, 5] += x[:, 0]
    return x.astype(np.float32), labels


def test_baselines_have_no_mapper_and_no_length_twice():
    todo = features.baselines(156, [5, 40, "full"], [5, 5], longest=40)
    assert all(recipe.dim_out == 0 for recipe in todo)
    assert [recipe.name for recipe in todo] == [
        "156 scaled",
        "PCA(5)",
        "PCA(40)",
        "whitened(5)",
        "whitened(40)",
        "NCA(5)",
    ]


def test_variance_kept_on_training_images_is_sklearns(data):
    x, labels = data
    kept = features.kept_variance(x, labels, WHERE[:1], 6)
    train = x[WHERE[0].train].astype(np.float64)
    scaled = (train - train.mean(axis=0)) / train.std(axis=0)
    expected = 100 * PCA().fit(scaled).explained_variance_ratio_.cumsum()
    np.testing.assert_allclose(kept.query("part == 'training'")["kept"], expected, rtol=1e-5)


def test_variance_kept_on_test_images_is_what_can_be_rebuilt(data):
    x, labels = data
    kept = features.kept_variance(x, labels, WHERE[:1], 6).query("part == 'test'").set_index("n")["kept"]
    train, test = (x[rows].astype(np.float64) for rows in (WHERE[0].train, WHERE[0].test))
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    pca = PCA(2).fit((train - mean) / deviation)
    scaled = (test - mean) / deviation
    lost = ((scaled - pca.inverse_transform(pca.transform(scaled))) ** 2).sum() / (scaled**2).sum()
    assert kept[2] == pytest.approx(100 * (1 - lost), rel=1e-5)
    assert kept[6] == pytest.approx(100, rel=1e-5)


def test_variance_is_the_mean_over_the_splits(data):
    x, labels = data
    each = [features.kept_variance(x, labels, [split], 3)["kept"] for split in WHERE]
    np.testing.assert_allclose(features.kept_variance(x, labels, WHERE, 3)["kept"], np.mean(each, axis=0))


@pytest.fixture(scope="module")
def table(data) -> pd.DataFrame:
    x, labels = data
    methods = of_recipes(features.baselines(6, [2, "full"], [2]), Settings())
    found = answers(x, labels, methods, WHERE, (1, 5), workers=1)
    return features.baseline_table({"by image": found}, 6, "kather")


def test_published_values_stand_beside_pca_and_nca_alone(table):
    """Read off Table 2, [9]: full length 94.22 at k = 1 and 91.60 at k = 5; length 2 is not in the paper."""
    known = table.dropna(subset="published")
    assert known[["source", "dim_in", "k", "published"]].to_numpy().tolist() == [
        ["PCA", 6, 1, 94.22],
        ["PCA", 6, 5, 91.60],
    ]


def test_all_principal_components_retrieve_like_the_scaled_features(table):
    scaled, rotated = (table[(table["source"] == s) & (table["dim_in"] == 6)] for s in ("scaled", "PCA"))
    np.testing.assert_allclose(scaled["value"], rotated["value"], atol=1.5)


def test_against_subtracts_at_the_same_rule_length_and_k(table):
    found = features.against(table, "whitened", "PCA").set_index(["dim_in", "k"])["difference"]
    values = table.set_index(["source", "dim_in", "k"])["value"]
    assert set(found.index) == {(2, 1), (2, 5), (6, 1), (6, 5)}
    assert found[2, 5] == values["whitened", 2, 5] - values["PCA", 2, 5]


def test_layout_has_a_row_per_input_and_chance_last(table):
    head, _, *lines = features.baseline_layout(table).split("\n")
    assert [cell.strip() for cell in head.strip("|").split("|")] == [
        "folds",
        "input",
        *("MAP@1", "published MAP@1", "MAP@5", "published MAP@5"),
        *("class mean@1", "class mean@5"),
    ]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    inputs = ["6 scaled", "PCA(2)", "PCA(6)", "whitened(2)", "whitened(6)", "NCA(2)", "chance"]
    assert [row[1] for row in cells] == inputs
    assert cells[2][3] == "94.22" and cells[-1][-1] == "–"
    nothing = table.assign(published=np.nan)
    assert "published" not in features.baseline_layout(nothing)


def test_chance_is_that_of_the_split(table, data):
    """At k = 1 it is how often an image of the training part is of the query's class."""
    _, labels = data
    hits = [np.mean(labels[split.test][:, None] == labels[split.train]) for split in WHERE]
    assert set(table.query("k == 1")["chance"].round(9)) == {round(100 * np.mean(hits), 9)}


def test_the_shortest_pca_that_is_good_enough():
    rows = [(20, 60.0), (80, 70.5), (384, 71.0), (1280, 69.0)]
    table = pd.DataFrame(rows, columns=["dim_in", "value"]).assign(rule="by image", k=20, source="PCA")
    assert features.enough(table, 20) == [
        "k = 20, folds by image: PCA is best with 384 numbers (71.0); 80 are within 1 point (70.5), all 1280 give 69.0"
    ]


def test_what_is_best_is_not_told_twice():
    rows = [(20, 68.7), (80, 67.0), (384, 62.3)]
    table = pd.DataFrame(rows, columns=["dim_in", "value"]).assign(rule="by image", k=20, source="PCA")
    assert features.enough(table, 20) == [
        "k = 20, folds by image: PCA is best with 20 numbers (68.7); all 384 give 62.3"
    ]
    assert features.enough(table[table["dim_in"] == 20], 20) == [
        "k = 20, folds by image: PCA is best with 20 numbers (68.7)"
    ]


def test_what_labels_and_whitening_move_is_told_by_encoder():
    rows = [("scaled", 9, 60.0), ("PCA", 2, 50.0), ("PCA", 8, 61.0), ("whitened", 2, 55.0), ("whitened", 8, 20.5)]
    table = pd.DataFrame([*rows, ("NCA", 2, 58.0)], columns=["source", "dim_in", "value"]).assign(rule="by image", k=20)
    better = table.assign(value=table["value"].where(table["source"] != "NCA", 90.0))
    assert features.moves({"one": table, "other": better}, 20) == [
        "k = 20, folds by image, one: 61.0 without labels (PCA(8)); NCA(2) changes that by -3.0 points, whitening "
        "changes PCA(8) by -40.5",
        "k = 20, folds by image, other: 61.0 without labels (PCA(8)); NCA(2) changes that by +29.0 points, whitening "
        "changes PCA(8) by -40.5",
    ]


def test_the_widest_gap_of_the_lengths_is_told():
    kept = {"training": [10, 60, 80, 100], "test": [9, 45, 70, 99]}
    parts = [pd.DataFrame({"part": part, "n": [1, 2, 3, 4], "kept": kept[part]}) for part in kept]
    curves = pd.concat(parts).assign(rule="by image")
    assert features.gaps(curves, [1, 3, 4]) == [
        "folds by image: the gap is widest with 3 components, which keep 80.0 % of the training and 70.0 % of the test "
        "images' variance: 10.0 points"
    ]


def test_the_better_encoder_stands_first(table):
    better = table.assign(value=table["value"] + 1)
    first = features.leaders({"one": table, "other": better}, [5])[0].split(": ")[1]
    best = table.query("k == 5").sort_values("value").iloc[-1]
    assert first.startswith(f"{best['value'] + 1:.1f} other, ") and f"; {best['value']:.1f} one, " in first


def test_fitting_on_the_test_images_gains_where_labels_are_used():
    """Noise has no classes: an honest fit finds next to nothing, NCA that has seen the test labels does."""
    noise = np.random.default_rng(1).normal(size=(120, 80)).astype(np.float32)
    labels = np.random.default_rng(2).integers(0, 4, 120)
    nca = Recipe("NCA", 10, 0)
    seen = features.fitted_on_all(noise, labels, {"by image": WHERE}, [nca], 5)["value"].iloc[0]
    (honest,) = answers(noise, labels, of_recipes([nca], Settings()), WHERE, (5,), workers=1).values()
    value = 100 * np.mean([answer.per_query.values["ap_min", 5].mean() for answer in honest])
    assert seen > value + 10


@pytest.fixture(scope="module")
def rounded(data) -> pd.DataFrame:
    x, labels = data
    todo = features.baselines(6, [2, "full"], [])
    return features.float16(x, labels, WHERE, todo, 5).set_index("change")


def test_float16_rounds_to_half_a_last_digit(rounded, data):
    x, labels = data
    largest = 0.0
    for split in WHERE:
        exact = Reduction.fit(x[split.train], labels[split.train], "PCA", 2, half=False)(x[split.test])
        largest = max(largest, np.abs(exact - exact.astype(np.float16).astype(np.float32)).max())
    assert rounded.loc["PCA(2): float16 for float32", "feature"] == pytest.approx(largest)
    assert 0 < largest <= 2**-11 * np.abs(x).max()


def test_float16_changes_few_lists_and_hardly_a_mean(rounded):
    changed = rounded[rounded.index.str.contains("float16")]
    assert (changed["members"] <= changed["order"]).all()
    assert (changed["difference"].abs() <= changed["largest_query"]).all()
    np.testing.assert_allclose(changed["after"] - changed["before"], changed["difference"], atol=1e-9)
    assert (changed["distance"] > 0).all() and (changed["distance"] < changed["largest_distance"]).all()
    # Half a last digit of float16 is 1 part in 2,048; a distance is the difference of many such numbers.
    assert (changed["distance"] < 100 / 1024).all()


def test_a_rotation_is_the_yardstick_only_where_all_directions_are_kept(rounded, data):
    assert rounded.index[-1].endswith("both float32") and abs(rounded["difference"].iloc[-1]) < 1
    x, labels = data
    short = features.float16(x, labels, WHERE, features.baselines(6, [2, 3], []), 5)
    assert short["change"].str.contains("float16").all()


def test_a_list_of_the_whole_gallery_can_change_its_order_but_not_its_members(data):
    x, labels = data
    row = features.float16(x, labels, WHERE, [Recipe("scaled", 6, 0), Recipe("PCA", 2, 0)], 80).iloc[1]
    assert row["order"] > 0 and row["members"] == 0


def test_coarse_rounding_would_be_noticed(data, monkeypatch):
    """With numbers rounded to one decimal instead of to float16 the lists change."""
    x, labels = data

    def coarse(reduction, values):
        reduced = reduction.scaler.transform(values.astype(np.float64))
        return (reduced.round(0) if reduction.half else reduced).astype(np.float32)

    monkeypatch.setattr(Reduction, "__call__", coarse)
    monkeypatch.setattr(features, "spread", lambda jobs: spread(jobs, workers=1))
    todo = [Recipe("scaled", 6, 0), Recipe("PCA", 6, 0)]
    row = features.float16(x, labels, WHERE, todo, 5).iloc[0]
    assert row["order"] > 50 and row["members"] > 50 and row["largest_query"] > 1
    assert row["feature"] == pytest.approx(0.5, abs=0.02)
    assert row["before"] != row["after"]
    assert row["difference"] == pytest.approx(row["after"] - row["before"])


def test_a_full_pca_is_a_rotation(rounded):
    row = rounded.loc["PCA(6) for 6 scaled, both float32"]
    assert row["largest_distance"] < 1e-3 and row["members"] == 0 and abs(row["difference"]) < 1e-9
    assert np.isnan(row["feature"])


def test_float16_layout_prints_the_largest_differences(rounded):
    text = features.float16_layout(rounded.reset_index(), 5)
    assert text.count("\n") == 1 + len(rounded)
    assert "| PCA(6) for 6 scaled, both float32 | – |" in text


RUN = Run("10_hyper_dino_embeddings", "demo", "tissue", "120 images", "abc", "two encoders", {"folds": 3})


def test_the_table_of_float16_says_what_the_largest_change_is(rounded):
    rows = rounded.reset_index()
    shown = features.table_float16(rows, 5)
    largest = rounded["difference"][rounded.index.str.contains("float16")].abs().max()
    assert f"by float16 is {largest:.3f} points" in shown.caption
    assert shown.markdown == features.float16_layout(rows, 5)


def test_the_table_of_baselines_has_a_part_for_each_encoder(table):
    shown = features.table_baselines(RUN, {"one (6 numbers)": table, "other (6 numbers)": table}, "kather")
    assert shown.rows["encoder"].tolist() == ["one (6 numbers)"] * len(table) + ["other (6 numbers)"] * len(table)
    assert shown.markdown.count(features.baseline_layout(table)) == 2
    assert "3 folds" in shown.caption and "better of PCA and NCA" in shown.caption
    assert "Published" not in features.caption(RUN)


def test_what_is_said_names_the_shortest_length_that_is_enough_and_what_labels_and_whitening_change():
    values = {("scaled", 6): 40, ("PCA", 2): 49.5, ("PCA", 6): 50, ("whitened", 6): 45, ("NCA", 2): 60}
    network = pd.DataFrame(
        [
            {"rule": "by image", "source": source, "dim_in": dim, "k": k, "value": value + (k == 1)}
            for (source, dim), value in values.items()
            for k in (1, 20)
        ]
    )
    several = [network.assign(encoder="network"), network.assign(encoder="texture", value=network["value"] + 5)]
    of_network, best_at_1, best, *moves = features.said(pd.concat(several))
    assert of_network == "k = 20, folds by image: PCA is best with 6 numbers (50.0); 2 are within 1 point (49.5)"
    assert best_at_1 == "k = 1, folds by image: 66.0 texture, NCA(2); 61.0 network, NCA(2)"
    assert best == "k = 20, folds by image: 65.0 texture, NCA(2); 60.0 network, NCA(2)"
    assert [move.endswith("by +10.0 points, whitening changes PCA(6) by -5.0") for move in moves] == [True, True]
