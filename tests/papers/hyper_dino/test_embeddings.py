"""What PCA keeps and what stands beside the paper's baselines, against slow or known answers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from lib.papers.hyper_dino import embeddings
from lib.training.experiment import answers
from lib.training.hyper_dino import Settings
from lib.training.methods import of_recipes
from lib.training.splits import splits

SPLITS = splits(np.arange(120) % 3, 0)


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
    return embeddings.values({"by image": answers(x, labels, methods, SPLITS, (1, 5), workers=1)}, 6, "kather")


def test_baselines_have_no_mapper_and_no_length_twice():
    todo = embeddings.baselines(156, [5, 40, "full"], [5, 5], longest=40)
    names = ["156 scaled", "PCA(5)", "PCA(40)", "whitened(5)", "whitened(40)", "NCA(5)"]
    assert [recipe.name for recipe in todo] == names and {recipe.dim_out for recipe in todo} == {0}


def test_variance_kept_is_sklearns_on_training_images_and_what_can_be_rebuilt_on_test_images(data):
    x, labels = data
    rows = embeddings.kept_variance(x, labels, SPLITS[:1], 6)
    kept = {part: of_part.set_index("n")["kept"] for part, of_part in rows.groupby("part")}
    train, test = (x[rows].astype(np.float64) for rows in (SPLITS[0].train, SPLITS[0].test))
    scaled, queries = ((part - train.mean(axis=0)) / train.std(axis=0) for part in (train, test))
    np.testing.assert_allclose(kept["training"], 100 * PCA().fit(scaled).explained_variance_ratio_.cumsum(), rtol=1e-5)
    pca = PCA(2).fit(scaled)
    lost = ((queries - pca.inverse_transform(pca.transform(queries))) ** 2).sum() / (queries**2).sum()
    assert kept["test"][[2, 6]].tolist() == pytest.approx([100 * (1 - lost), 100], rel=1e-5)


def test_published_values_stand_beside_pca_and_nca_only(table):
    """Read off Table 2, [9]: full length 94.22 at k = 1 and 91.60 at k = 5; length 2 is not in the paper."""
    known = table.dropna(subset="published")[["source", "dim_in", "k", "published"]]
    assert known.to_numpy().tolist() == [["PCA", 6, 1, 94.22], ["PCA", 6, 5, 91.60]]


def test_chance_is_that_of_the_split(table, data):
    """At k = 1 it is how often an image of the training part is of the query's class."""
    _, labels = data
    hits = [np.mean(labels[split.test][:, None] == labels[split.train]) for split in SPLITS]
    assert set(table.query("k == 1")["chance"].round(9)) == {round(100 * np.mean(hits), 9)}
