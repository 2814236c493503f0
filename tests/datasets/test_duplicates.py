"""Twins are found: the same pixels, another compression; and unrelated pictures, or blank ones, are no twins."""

import numpy as np
import pytest
from PIL import Image

from lib.datasets import duplicates, loaders, tissue
from lib.errors import BrokenImage
from tests.images import listed


def picture(seed: int, size: int = 64) -> Image.Image:
    """Blurred noise: a picture with structure, unlike any other."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8))
    return small.resize((size, size), Image.Resampling.BICUBIC)


@pytest.fixture
def table(tmp_path):
    """a = b to the pixel in two classes, c is a as JPEG, d and e are others, f and g are blank."""
    files = ["a.png", "b.png", "c.jpg", "d.png", "e.png", "f.png", "g.png"]
    blank = [Image.new("RGB", (64, 64), colour) for colour in ("white", "beige")]
    for file, image in zip(files, [*map(picture, (0, 0, 0, 1, 2)), *blank], strict=True):
        image.save(tmp_path / file)
    about = {"image_id": list("abcdefg"), "path": files, "group": list("ppqqrrs")}
    return listed("xyxxyxy", tmp_path, "folder", "patient", **about)


def test_identical_and_near_twins_are_found_and_nothing_else(table):
    found = duplicates.find(table)
    kinds = {(row.first, row.second): row.kind for row in found.itertuples()}
    assert kinds == {("a", "b"): "identical", ("a", "c"): "near", ("b", "c"): "near"}
    twins = found.set_index(["first", "second"])
    assert twins.loc[("a", "b"), ["distance", "same_class", "same_group"]].tolist() == [0, False, True]
    assert twins.loc[("a", "c"), ["same_class", "same_group"]].tolist() == [True, False]
    assert 0 <= twins.loc[("a", "c"), "distance"] <= duplicates.NEAR


def test_the_summary_counts_pairs_and_what_folds_do_with_them(table):
    """a | b c d … : the pair a, b and the pair a, c are cut by the first rule, so a, b and c have a twin elsewhere."""
    folds = {"cut": np.array([0, 1, 1, 1, 0, 0, 0]), "whole": np.zeros(7, dtype=int)}
    lines = duplicates.summary(duplicates.find(table), table, folds).set_index("kind")
    assert lines.loc["identical"].tolist() == [1, 2, 1, 0, 2, 0]
    assert lines.loc["near"].tolist() == [2, 3, 1, 2, 2, 0]


def test_without_twins_everything_is_zero(table):
    other = table.take(["d", "e"])
    found = duplicates.find(other)
    assert found.empty and list(found.columns) == duplicates.COLUMNS
    lines = duplicates.summary(found, other, {"cut": np.array([0, 1])})
    assert lines.drop(columns="kind").to_numpy().sum() == 0


def test_the_planted_tiles_are_identical_and_a_broken_image_is_named(tmp_path):
    table = loaders.load("tissue", tissue.write(tmp_path, n_tiles=16, n_patients=4, size=48, n_duplicates=3, seed=1))
    found = duplicates.find(table)
    assert (found["kind"] == "identical").sum() == 3 and not found["same_class"].any()
    table.path(3).write_bytes(b"")
    with pytest.raises(BrokenImage, match=table.path(3).name):
        duplicates.find(table)


def test_an_image_without_structure_is_no_near_twin_whichever_comes_first(table, monkeypatch):
    """Two hashes that differ in few bits, one of them just above the bound and one just below it."""
    of = {"a": np.zeros(4, np.uint64), "b": np.zeros(4, np.uint64)}
    for name, n in (("a", duplicates.STRUCTURE), ("b", duplicates.STRUCTURE - 1)):
        of[name][0] = (1 << n) - 1
    monkeypatch.setattr(duplicates, "_hashes", lambda file: (file.stem.encode(), of[file.stem]))
    assert all(duplicates.find(table.take(order)).empty for order in (["a", "b"], ["b", "a"]))
