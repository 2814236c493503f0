"""What PCA keeps and what stands beside the paper's baselines, against slow or known answers."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from lib.papers.hyper_dino import embeddings
from lib.training.experiment import answers
from lib.training.hyper_dino import Settings
from lib.training.methods import of_recipes
from lib.training.splits import splits

WHERE = splits(np.arange(120) % 3, 0)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    """Four classes that differ in two of six numbers of very unequal size."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 120)
    x = rng.normal(size=(120, 6)) * [1, 1, 5, 0.2, 1, 1]
    x[:, :2] += 2 * rng.normal(size=(4, 2))[labels]
    x[:, 5] += x[:, 0]
    return x.astype(np.float32), labels


@pytest.fixture(scope="module")
def table(data) -> pd.DataFrame:
    x, labels = data
    methods = of_recipes(embeddings.baselines(6, [2, "full"], [2]), Settings())
    return embeddings.values({"by image": answers(x, labels, methods, WHERE, (1, 5), workers=1)}, 6, "kather")


def test_baselines_have_no_mapper_and_no_length_twice():
    todo = embeddings.baselines(156, [5, 40, "full"], [5, 5], longest=40)
    assert all(recipe.dim_out == 0 for recipe in todo)
    names = ["156 scaled", "PCA(5)", "PCA(40)", "whitened(5)", "whitened(40)", "NCA(5)"]
    assert [recipe.name for recipe in todo] == names


def test_variance_kept_on_training_images_is_sklearns(data):
    x, labels = data
    kept = embeddings.kept_variance(x, labels, WHERE[:1], 6)
    train = x[WHERE[0].train].astype(np.float64)
    scaled = (train - train.mean(axis=0)) / train.std(axis=0)
    expected = 100 * PCA().fit(scaled).explained_variance_ratio_.cumsum()
    np.testing.assert_allclose(kept.query("part == 'training'")["kept"], expected, rtol=1e-5)


def test_variance_kept_on_test_images_is_what_can_be_rebuilt(data):
    x, labels = data
    kept = embeddings.kept_variance(x, labels, WHERE[:1], 6).query("part == 'test'").set_index("n")["kept"]
    train, test = (x[rows].astype(np.float64) for rows in (WHERE[0].train, WHERE[0].test))
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    pca = PCA(2).fit((train - mean) / deviation)
    scaled = (test - mean) / deviation
    lost = ((scaled - pca.inverse_transform(pca.transform(scaled))) ** 2).sum() / (scaled**2).sum()
    assert kept[2] == pytest.approx(100 * (1 - lost), rel=1e-5)
    assert kept[6] == pytest.approx(100, rel=1e-5)


def test_published_values_stand_beside_pca_and_nca_alone(table):
    """Read off Table 2, [9]: full length 94.22 at k = 1 and 91.60 at k = 5; length 2 is not in the paper."""
    known = table.dropna(subset="published")
    columns = ["source", "dim_in", "k", "published"]
    assert known[columns].to_numpy().tolist() == [["PCA", 6, 1, 94.22], ["PCA", 6, 5, 91.60]]


def test_all_principal_components_retrieve_like_the_scaled_features(table):
    scaled, rotated = (table[(table["source"] == s) & (table["dim_in"] == 6)] for s in ("scaled", "PCA"))
    np.testing.assert_allclose(scaled["value"], rotated["value"], atol=1.5)


def test_chance_is_that_of_the_split(table, data):
    """At k = 1 it is how often an image of the training part is of the query's class."""
    _, labels = data
    hits = [np.mean(labels[split.test][:, None] == labels[split.train]) for split in WHERE]
    assert set(table.query("k == 1")["chance"].round(9)) == {round(100 * np.mean(hits), 9)}


def test_the_figure_draws_every_value_in_its_panel():
    inputs = [("PCA", 5), ("PCA", 40), ("NCA", 5), ("scaled", 40)]
    lines = [
        (rule, source, n, k, 10 * k + n + (source == "NCA"), 0.5, 12.5)
        for rule, (source, n), k in itertools.product(["by image", "by group"], inputs, [1, 5])
    ]
    columns = ["rule", "source", "dim_in", "k", "value", "spread", "chance"]
    last = embeddings.figure_baselines(pd.DataFrame(lines, columns=columns)).axes[3]
    drawn = {container.get_label(): container.lines[0].get_xydata().tolist() for container in last.containers}
    flat = {"scaled": [[40, 90]], "chance": [[5, 12.5], [40, 12.5]]}
    assert drawn == {"PCA": [[5, 55], [40, 90]], "NCA": [[5, 56]]} | flat
