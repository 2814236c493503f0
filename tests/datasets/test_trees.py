"""The trees of the datasets hold exactly the classes that their loaders give."""

import numpy as np
import pandas as pd
import pytest

from lib import fingerprints
from lib.datasets import breakhis, cub, ham10000, odir, tissue, trees
from lib.datasets.table import ImageTable
from lib.errors import InputError

SHARED = ("breakhis", "bh40x", "bh100x", "bh200x", "bh400x")
DIAGNOSES = {"akiec", "bcc", "bkl", "df", "mel", "nv", "vasc"}


def table(name, root=".", **columns):
    n = len(columns["label"])
    ids = [str(i) for i in range(n)]
    return ImageTable(name, root, pd.DataFrame({"image_id": ids, "path": ids, "group": ids, **columns}), "image")


def test_every_file_is_the_tree_of_a_dataset():
    files = sorted(file.stem for file in trees.HERE.glob("*.yaml"))
    datasets = ("breakhis", "cub", "ham10000", "odir", "tissue")
    assert files == sorted(f"{dataset}_{which}" for dataset in datasets for which in trees.names(dataset))


@pytest.mark.parametrize("dataset", SHARED)
def test_breakhis_at_every_magnification_has_the_subtypes_of_its_loader(dataset):
    tree = trees.load(dataset, "tumour")
    assert set(tree.leaves) == set(breakhis.SUBTYPES.values()) and tree.depth == 2
    for letters, subtype in breakhis.SUBTYPES.items():
        assert tree.parents[subtype] == breakhis.TUMOURS[letters[0]]


def test_both_trees_of_ham10000_hold_its_seven_diagnoses():
    assert trees.names("ham10000") == ["malignancy", "origin"]
    for which in trees.names("ham10000"):
        assert set(trees.load("ham10000", which).leaves) == DIAGNOSES
    assert set(trees.load("ham10000", "malignancy").children("malignant")) == {"akiec", "bcc", "mel"}
    origin = trees.load("ham10000", "origin")
    assert set(origin.level(1)) >= {"melanocytic", "keratinocytic", "vascular"} and origin.parents["df"] == "fibrous"


def test_odir_has_the_eight_diagnoses_of_its_loader():
    tree = trees.load("odir", "site")
    assert set(tree.leaves) == set(odir.DIAGNOSES.values()) and not tree.is_balanced


def test_all_200_species_stand_below_their_family_and_one_order():
    tree = trees.load("cub", "taxonomy")
    assert len(tree.leaves) == 200 and tree.depth == 3 and tree.is_balanced
    assert set(tree.level(2)) == set(cub.FAMILIES)
    assert all(tree.parents[species] == cub.family(species) for species in tree.leaves)
    assert all(order.endswith("formes") for order in tree.level(1))
    assert {tree.parents[family] for family in ("Corvidae", "Parulidae", "Tyrannidae")} == {"Passeriformes"}


@pytest.mark.parametrize("dataset", ["tissue", "tissue_40x", "tissue_400x"])
def test_the_tree_of_the_tiles_is_the_one_they_are_drawn_from(dataset):
    tree = trees.load(dataset, "organ")
    drawn = {s: (o, t) for o, tissues in tissue.TREE.items() for t, subtypes in tissues.items() for s in subtypes}
    assert {leaf: tree.ancestors(leaf, root=False)[:2] for leaf in tree.leaves} == drawn


def test_a_tile_is_a_leaf_by_its_subtype():
    rows = tissue.sample(80, 4, n_duplicates=0)
    tiles = table("tissue", **{name: rows[name] for name in ("label", "organ", "tissue", "subtype")})
    tree, found = trees.of(tiles, "organ"), trees.leaves(tiles, "organ")
    assert found.tolist() == rows["subtype"].tolist() and len(set(tree.codes(found))) == 40
    ways = [tree.ancestors(leaf, root=False) for leaf in found]
    assert ways == list(rows[["organ", "tissue", "subtype"]].itertuples(index=False, name=None))


def test_the_label_is_the_leaf_where_nothing_else_is_said():
    lesions = table("ham10000", label=["nv", "mel"])
    assert trees.leaves(lesions, "origin").tolist() == ["nv", "mel"]
    assert trees.of(lesions, "origin").codes(trees.leaves(lesions, "origin")).tolist() == [5, 4]


def test_garments_and_species_stand_below_what_their_table_says():
    shop = table("in_shop", label=["id_1", "id_1", "id_2", "id_3"], category=["Denim", "Denim", "Denim", "Dresses"])
    tree = trees.of(shop, "category")
    assert tree.leaves == ("Denim/id_1", "Denim/id_2", "Dresses/id_3") and tree.depth == 2
    assert tree.codes(trees.leaves(shop, "category")).tolist() == [0, 0, 1, 2]
    ranks = {
        "kingdom": ["A", "P"],
        "phylum": ["B", "Q"],
        "class": ["C", "R"],
        "order": ["D", "S"],
        "family": ["E", "T"],
    }
    alike = table("inaturalist", label=["Oenanthe hispanica", "Oenanthe crocata"], genus=["Oenanthe"] * 2, **ranks)
    tree = trees.of(alike, "taxonomy")
    assert tree.depth == 7 and tree.lca_depth()[0, 1] == 0, "a bird and a plant share the name of their genus"


def test_own_class_folders_have_the_tree_of_their_names_or_of_their_file(tmp_path):
    labels = ["colon/tumour/solid", "colon/tumour/mucinous", "breast/stroma/loose"]
    assert trees.of(table("mine", tmp_path, label=labels), "own").depth == 3
    flat = table("mine", tmp_path, label=["a", "b", "c"])
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
        (lambda: trees.of(table("odir", label=["normal"]), "place"), "no tree 'place'; choose one of site"),
        (lambda: trees.leaves(table("in_shop", label=["id_1"]), "category"), "needs the column category"),
        (lambda: trees.leaves(table("cub", label=["Gadwall"]), "family"), "cub has no tree 'family'"),
    ],
)
def test_what_is_not_there_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_changed_tree_changes_the_fingerprint_of_what_reads_it():
    lines = fingerprints.fingerprint(["lib.datasets.trees"]).splitlines()
    assert sum(line.startswith("lib/datasets/trees/") and ".yaml " in line for line in lines) == 6


@pytest.mark.parametrize(
    ("folder", "loader", "which"),
    [
        ("ham10000", ham10000, "origin"),
        ("odir_sample", odir, "site"),
        ("cub_sample", cub, "taxonomy"),
        ("breakhis_sample/200X_224px", breakhis, "tumour"),
    ],
)
def test_every_real_image_is_a_leaf(real, folder, loader, which):
    images = loader.load(real(folder))
    tree = trees.of(images, which)
    codes = tree.codes(trees.leaves(images, which))
    assert np.array_equal(np.array(tree.leaves)[codes], images.labels)
