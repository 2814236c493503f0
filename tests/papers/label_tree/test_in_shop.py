"""LT-14 on the published split of In-Shop: no HF1 there, HF1 on ours."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.geometry import Sphere
from lib.papers.label_tree import experiment, results
from lib.papers.label_tree.experiment import Images
from lib.taxonomy import from_paths
from lib.training.splits import Split

GARMENTS = {
    "dresses/1": ("train",) * 4,
    "skirts/2": ("train",) * 4,
    "denim/3": ("query", "query", "gallery", "gallery"),
    "dresses/4": ("query", "gallery", "query", "gallery"),
    "denim/5": ("train",),
}
TREE = from_paths("garments", [*GARMENTS])
LABELS = [garment for garment, photos in GARMENTS.items() for _ in photos]
SPLIT = np.array([status for photos in GARMENTS.values() for status in photos])
LEAVES = np.array([TREE.leaves.index(label) for label in LABELS])
FILES = [f"{number}.jpg" for number in range(len(LABELS))]
ROWS = pd.DataFrame({"image_id": FILES, "path": FILES, "label": LABELS, "group": FILES, "split": SPLIT})
TABLE = ImageTable("in_shop", ".", ROWS, "image")
SEEN = Images(np.eye(len(TREE.leaves))[LEAVES][None], LEAVES, TREE, np.array(FILES))  # features tell garments apart
PUBLISHED = Split(0, np.flatnonzero(SPLIT == "train"), np.flatnonzero(SPLIT == "query"), 0)


def measured(split: Split) -> pd.DataFrame:
    return experiment.measures(torch.tensor(SEEN.views[0], dtype=torch.float32), Sphere(), LEAVES, TREE, split)


def test_on_the_published_split_nothing_can_be_right():
    """Perfect features, and Top-1 is 0: no garment of a query was learnt from."""
    assert measured(PUBLISHED)["top1"].sum() == 0
    with pytest.raises(InputError, match=r"in_shop, fold 0: no class of the query images has a training image.*LT-14"):
        results.known(TABLE, LEAVES, [PUBLISHED])


def test_on_our_split_every_garment_of_a_query_is_known_and_hf1_is_defined():
    """Garment 5 has one photo: it is a query in one fold, and nothing learns it there."""
    folds = experiment.by_group(SEEN, n_folds=2, folds_used=2, n_seeds=2, seed=0)
    known = results.known(TABLE, LEAVES, folds)
    for split in known:
        assert set(LEAVES[split.test]) <= set(LEAVES[split.train]) and split.held_out is split.test
        assert not set(split.test) & set(split.train)
        assert (measured(split)[["top1", "hf1"]] == 1).all(axis=None)
    assert sorted(len(a.test) - len(b.test) for a, b in zip(folds, known, strict=True)) == [0, 0, 1, 1]


@pytest.mark.parametrize("table", [ImageTable("sop", ".", ROWS, "image"), TABLE], ids=["SOP", "one leaf"])
def test_another_dataset_and_a_split_that_shares_garments_keep_their_queries(table):
    leaves = LEAVES if table.name == "sop" else np.zeros_like(LEAVES)
    assert results.known(table, leaves, [PUBLISHED]) == [PUBLISHED]
