"""Who teaches, who is set aside, who asks: patients are kept apart, and nothing learns from the class left out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.papers.acir.novelty import scene as scenes
from lib.papers.acir.novelty.scene import ASIDE, FAR, HELD_OUT, KNOWN, LEARNT, NEAR, UNUSED


def test_folds_are_parted_into_those_who_ask_teach_and_are_set_aside():
    assert scenes.asking(np.arange(6)).tolist() == [0, 0, 0, 1, 1, 2]
    assert scenes.asking(np.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="three or more"):
        scenes.asking(np.array([0, 1, 1]))


def test_patients_who_ask_have_taught_nothing(scene):
    asks, aside = (set(scene.groups[scene.rows(*parts)]) for parts in ((KNOWN, NEAR), (ASIDE,)))
    teach = set(scene.groups[scene.rows(LEARNT, HELD_OUT)])
    assert asks and aside and teach
    assert not asks & teach and not asks & aside and not teach & aside
    assert set(scene.groups[scene.rows(HELD_OUT)]) <= set(scene.groups[scene.rows(LEARNT)])


def test_the_class_left_out_is_asked_and_never_learnt(scene):
    assert scene.classes == ("a", "b", "c")
    assert set(scene.kind[scene.rows(NEAR)]) == set(scene.kind[scene.rows(UNUSED)]) == {"new"}
    assert (scene.labels[scene.rows(NEAR, FAR, UNUSED)] == -1).all()
    known = scene.rows(LEARNT, HELD_OUT, ASIDE, KNOWN)
    assert [scene.classes[c] for c in scene.labels[known]] == scene.kind[known].tolist()
    assert scene.kinds() == ["fog", "noise"]


def test_another_class_can_be_left_out_with_the_same_patients(scene):
    other = scene.without("a", seed=0)
    assert other.classes == ("b", "c", "new")
    for parts in ((KNOWN, NEAR), (ASIDE,)):
        shared = set(other.groups[other.rows(*parts)]) == set(scene.groups[scene.rows(*parts)])
        assert shared
    assert other.without("new", seed=0).part.tolist() == scene.part.tolist()


def test_a_class_whose_patients_all_ask_is_no_known_class(scene):
    own = len(scene.tables[0])
    fold = np.where(scene.kind[:own] == "c", 0, scene.fold)
    found = replace(scene, fold=fold).without("new", seed=0)
    assert found.classes == ("a", "b")
    assert (found.part[:own][scene.kind[:own] == "c"] == UNUSED).all()


def test_fingerprints_are_those_of_the_loss(scene):
    n, channels, height, width = scene.pixels.shape
    blocks = scene.pixels.reshape(n, channels, 8, height // 8, 8, width // 8).mean(axis=(3, 5)).reshape(n, -1) / 255
    np.testing.assert_allclose(scene.prints(8), blocks, atol=1e-6)
    larger = scene.pixels.repeat(2, axis=2).repeat(2, axis=3).reshape(n, -1) / 255
    np.testing.assert_allclose(scene.prints(2 * height), larger, atol=1e-6)  # of a smaller image, pixels are repeated


def test_images_become_fingerprints_in_parts(scene, monkeypatch):
    whole = scene.prints(8)
    monkeypatch.setattr(scenes, "AT_ONCE", 7)
    np.testing.assert_array_equal(scene.prints(8), whole)


def test_at_most_so_many_images_of_a_class_keep_their_folds(scene):
    table, fold = scenes.at_most(scene.tables[0], scene.fold, 5, seed=0)
    assert table.rows["label"].value_counts().tolist() == [5] * 4
    of = dict(zip(scene.tables[0].rows["image_id"], scene.fold, strict=True))
    assert [of[i] for i in table.rows["image_id"]] == fold.tolist()


def test_other_datasets_are_asked_and_what_is_not_there_is_said(monkeypatch, tmp_path):
    rows = pd.DataFrame({"image_id": list("uvwx"), "path": "x.png", "label": "eye", "group": list("1122")})
    table = ImageTable("odir", tmp_path, rows, "patient")

    def load(name, root):
        if name == "cub":
            raise scenes.MissingDataset("needs cub")
        return table

    monkeypatch.setattr(scenes.loaders, "load", load)
    found, needs = scenes.novel_tables(["odir", "cub"], 3, seed=0)
    assert needs == ["CUB-200-2011 birds: needs cub"]
    assert len(found) == 1 and len(found[0]) == 3
    assert set(found[0].labels) == {"ODIR-5K fundus photographs"}
    assert all(name.startswith("odir/") for name in [*found[0].groups, *found[0].rows["image_id"]])


def test_a_class_that_is_not_there_cannot_be_left_out(scene):
    with pytest.raises(InputError, match="no class 'mel' to leave out; there are: a, b, c, new"):
        scenes.build(scene.tables[0], scene.fold, "mel", [], "any", 3, ("demo", "own"), 0)


def test_a_class_that_nobody_asks_with_cannot_be_left_out(scene):
    own = len(scene.tables[0])
    fold = np.where(scene.kind[:own] == "c", 1, scene.fold)
    with pytest.raises(InputError, match="Leave out one of these: a, b, new"):
        scenes.build(scene.tables[0], fold, "c", [], "any", 3, ("demo", "own"), 0)
