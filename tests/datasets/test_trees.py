"""The trees of the datasets hold exactly the classes that their loaders give."""

import numpy as np
import pytest

from lib import fingerprints
from lib.datasets import lists, loaders, named, tissue, trees
from lib.errors import InputError
from tests.datasets.conftest import columns
from tests.images import listed

DIAGNOSES = {"akiec", "bcc", "bkl", "df", "mel", "nv", "vasc"}


def test_every_file_is_the_tree_of_a_dataset_and_part_of_the_fingerprint():
    files = sorted(file.stem for file in trees.HERE.glob("*.yaml"))
    datasets = ("breakhis", "cub", "ham10000", "odir", "tissue")
    assert files == sorted(f"{dataset}_{which}" for dataset in datasets for which in trees.names(dataset))
    lines = fingerprints.fingerprint(["lib.datasets.trees"])
    assert all(f"lib/datasets/trees/{file}.yaml " in lines for file in files)


@pytest.mark.parametrize(
    ("dataset", "which", "classes"),
    [
        ("bh40x", "tumour", set(named.SUBTYPES.values())),
        ("ham10000", "malignancy", DIAGNOSES),
        ("ham10000", "origin", DIAGNOSES),
        ("odir", "site", set(lists.DIAGNOSES.values())),
    ],
)
def test_a_tree_has_the_classes_of_its_dataset(dataset, which, classes):
    tree = trees.load(dataset, which)
    assert set(tree.leaves) == classes and (len(set(tree.leaf_depths())) == 1) == (dataset != "odir")
    for letters, subtype in named.SUBTYPES.items() if dataset == "bh40x" else ():
        assert tree.parents[subtype] == {"B": "benign", "M": "malignant"}[letters[0]]
    if which == "malignancy":
        assert set(tree.children("malignant")) == {"akiec", "bcc", "mel"}
    if which == "origin":
        assert set(tree.level(1)) == {"melanocytic", "keratinocytic", "vascular", "fibrous"}


def test_all_200_species_stand_below_their_family_and_one_order():
    tree = trees.load("cub", "taxonomy")
    assert len(tree.leaves) == 200 and set(tree.leaf_depths()) == {3} and tree.depth == 3
    assert len(tree.level(2)) == 37
    assert all(order.endswith("formes") for order in tree.level(1))
    assert {tree.parents[family] for family in ("Corvidae", "Parulidae", "Tyrannidae")} == {"Passeriformes"}


@pytest.mark.parametrize("dataset", ["tissue", "tissue_40x", "tissue_400x"])
def test_the_tree_of_the_tiles_is_the_one_they_are_drawn_from(dataset):
    tree = trees.load(dataset, "organ")
    drawn = {s: (o, t) for o, tissues in tissue.TREE.items() for t, subtypes in tissues.items() for s in subtypes}
    assert {leaf: tree.ancestors(leaf, root=False)[:2] for leaf in tree.leaves} == drawn


def test_a_tile_is_a_leaf_by_its_subtype_and_others_by_their_label():
    rows = tissue.sample(80, 4, n_duplicates=0)
    tiles = listed(rows["label"], name="tissue", **{name: rows[name] for name in ("organ", "tissue", "subtype")})
    tree, found = trees.of(tiles, "organ"), trees.leaves(tiles, "organ")
    assert found.tolist() == rows["subtype"].tolist() and len(set(tree.codes(found))) == 40
    assert trees.leaves(listed(["nv", "mel"], name="ham10000"), "origin").tolist() == ["nv", "mel"]


def test_garments_and_species_stand_below_what_their_table_says():
    kinds = ["Denim", "Denim", "Denim", "Dresses"]
    shop = listed(["id_1", "id_1", "id_2", "id_3"], name="in_shop", category=kinds)
    tree = trees.of(shop, "category")
    assert tree.leaves == ("Denim/id_1", "Denim/id_2", "Dresses/id_3") and tree.depth == 2
    assert tree.codes(trees.leaves(shop, "category")).tolist() == [0, 0, 1, 2]
    ranks = columns("kingdom phylum class order family", ["ABCDE", "PQRST"])
    species = ["Oenanthe hispanica", "Oenanthe crocata"]
    alike = listed(species, name="inaturalist", genus=["Oenanthe"] * 2, **ranks)
    tree = trees.of(alike, "taxonomy")
    assert tree.depth == 7 and tree.lca_depth()[0, 1] == 0, "a bird and a plant share the name of their genus"


def test_own_class_folders_have_the_tree_of_their_names_or_of_their_file(tmp_path):
    labels = ["colon/tumour/solid", "colon/tumour/mucinous", "breast/stroma/loose"]
    assert trees.of(listed(labels, tmp_path), "own").depth == 3
    flat = listed("abc", tmp_path)
    assert trees.names("mine") == ["own"] and trees.of(flat, "own").is_flat
    (tmp_path / "taxonomy.yaml").write_text("tree: {left: [a, b], right: [c]}", encoding="utf-8")
    tree = trees.of(flat, "own")
    assert tree.level(1) == ("left", "right")
    assert tree.codes(trees.leaves(flat, "own")).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trees.load("ham10000", "malign"), "no tree 'malign'; did you mean malignancy"),
        (lambda: trees.load("kather", "tissue"), "kather has no tree 'tissue'; it has none"),
        (lambda: trees.load("in_shop", "category"), r"call of\(table, 'category'\)"),
        (lambda: trees.load("mine", "own"), "made of its images"),
        (lambda: trees.of(listed(["normal"], name="odir"), "place"), "no tree 'place'; choose one of site"),
        (lambda: trees.leaves(listed(["id_1"], name="in_shop"), "category"), "needs the column category"),
        (lambda: trees.leaves(listed(["Gadwall"], name="cub"), "family"), "cub has no tree 'family'"),
    ],
)
def test_what_is_not_there_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("folder", "dataset", "which"),
    [
        ("ham10000", "ham10000", "origin"),
        ("odir_sample", "odir", "site"),
        ("cub_sample", "cub", "taxonomy"),
        ("breakhis_sample/200X_224px", "bh200x", "tumour"),
    ],
)
def test_every_real_image_is_a_leaf(real, folder, dataset, which):
    images = loaders.load(dataset, real(folder))
    tree = trees.of(images, which)
    codes = tree.codes(trees.leaves(images, which))
    assert np.array_equal(np.array(tree.leaves)[codes], images.labels)
