"""LT-14 on In-Shop in its original layout, tiny: no HF1 on the published split, HF1 on ours."""

import numpy as np
import pytest
import torch
from PIL import Image

from lib.datasets import in_shop, trees
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.geometry import Sphere
from lib.papers.label_tree import experiment, results
from lib.papers.label_tree.experiment import Images
from lib.training.splits import Split

GARMENTS = {
    "WOMEN/Dresses/id_1": ("train", "train", "train", "train"),
    "WOMEN/Skirts/id_2": ("train", "train", "train", "train"),
    "MEN/Denim/id_3": ("query", "query", "gallery", "gallery"),
    "WOMEN/Dresses/id_4": ("query", "gallery", "query", "gallery"),
    "MEN/Denim/id_5": ("train",),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> ImageTable:
    """Eval/list_eval_partition.txt and Img/img/, as the archive unpacks."""
    root, lines = tmp_path_factory.mktemp("in_shop"), []
    for garment, statuses in GARMENTS.items():
        for number, status in enumerate(statuses):
            name = f"img/{garment}/0{number + 1}_1_front.jpg"
            (root / "Img" / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (6, 8), (30 * number, 60, 90)).save(root / "Img" / name)
            lines.append(f"{name:<70} {garment.rpartition('/')[2]} {status}")
    (root / "Eval").mkdir()
    header = f"{len(lines)}\nimage_name item_id evaluation_status\n"
    (root / "Eval/list_eval_partition.txt").write_text(header + "\n".join(lines) + "\n")
    return in_shop.load(root)


@pytest.fixture(scope="module")
def seen(table) -> Images:
    """Features that tell every garment apart: its code, one-hot."""
    names = trees.leaves(table, "category")
    tree = trees.of(table, "category").keep(names)
    leaves = tree.codes(names)
    return Images(np.eye(len(tree.leaves))[leaves][None], leaves, tree, table.groups)


def measured(seen, split):
    z = torch.tensor(seen.views[0], dtype=torch.float32)
    return experiment.measures(z, Sphere(), seen.leaves, seen.tree, split)


def published(table):
    status = table.rows["split"].to_numpy()
    return Split(0, np.flatnonzero(status == "train"), np.flatnonzero(status == "query"), 0)


def test_on_the_published_split_nothing_can_be_right(table, seen):
    """Perfect features, and Top-1 is 0: no garment that asks was learnt from."""
    assert measured(seen, published(table))["top1"].sum() == 0
    with pytest.raises(InputError, match=r"in_shop, fold 0: no class of the query images has a training image.*LT-14"):
        results.known(table, seen.leaves, [published(table)])


def test_on_our_split_every_garment_that_asks_is_known_and_hf1_is_defined(table, seen):
    folds = experiment.by_group(seen, n_folds=2, folds_used=2, n_seeds=2, seed=0)
    several = results.known(table, seen.leaves, folds)
    assert len(several) == len(folds)
    for split in several:
        assert set(seen.leaves[split.test]) <= set(seen.leaves[split.train])
        assert not set(split.test) & set(split.train)
        values = measured(seen, split)
        assert (values[["top1", "hf1"]] == 1).all(axis=None)
    asks = np.concatenate([split.test for split in several if split.repeat == 0])
    assert set(table.rows["split"].iloc[asks]) == {"train", "query", "gallery"}
    assert set(table.labels[asks]) == {"id_1", "id_2", "id_3", "id_4"}


def test_a_garment_on_one_side_only_is_left_out_and_counted(table, seen):
    """id_5 has one photo: it asks in one fold, where nothing learns it."""
    folds = experiment.by_group(seen, n_folds=2, folds_used=2, n_seeds=2, seed=0)
    several = results.known(table, seen.leaves, folds)
    assert sorted(len(a.test) - len(b.test) for a, b in zip(folds, several, strict=True)) == [0, 0, 1, 1]
    assert all(one.held_out is one.test for one in several)


def test_any_other_dataset_keeps_its_queries(table, seen):
    other = ImageTable("sop", table.root, table.rows, table.group_kind)
    (kept,) = results.known(other, seen.leaves, [published(table)])
    assert kept.test.tolist() == published(table).test.tolist()


def test_a_published_split_that_shares_a_garment_is_left_alone(table, seen):
    same = [published(table)]
    assert results.known(table, np.zeros_like(seen.leaves), same) == same
