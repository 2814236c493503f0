"""Odd pictures: each is what its name says, and depends on its seed, kind, number and image alone."""

import numpy as np
import pytest
from scipy.ndimage import laplace

from lib.datasets import odd
from lib.datasets.images import read_image
from lib.errors import InputError
from tests.images import listed, painted

IMAGE = np.random.default_rng(0).integers(90, 220, (48, 40, 3), dtype=np.uint8)


@pytest.fixture
def images(tmp_path):
    groups = [f"P{number % 2}" for number in range(5)]
    return painted(listed("aaaaa", tmp_path, kind="patient", group=groups), (32, 32))


@pytest.mark.parametrize("kind", odd.KINDS)
def test_a_picture_depends_on_seed_kind_number_and_image_only(kind):
    first = odd.draw(kind, IMAGE, seed=3, number=1)
    assert first.shape == IMAGE.shape and first.dtype == np.uint8
    np.testing.assert_array_equal(first, odd.draw(kind, IMAGE, seed=3, number=1))
    numbers = range(4, 12)  # there are but six orders of three colours
    assert any((first != odd.draw(kind, IMAGE, seed=3, number=number)).any() for number in numbers)
    assert any((first != odd.draw(kind, IMAGE, seed=number, number=1)).any() for number in numbers)
    same = (first == odd.draw(kind, 255 - IMAGE, seed=3, number=1)).all()
    assert same == (kind in odd.DRAWN)  # for which the size alone counts


def test_each_kind_is_what_its_name_says():
    pictures = {kind: odd.draw(kind, IMAGE, 0, 0).astype(float) for kind in odd.KINDS}
    blurred = pictures["out of focus"]
    assert abs(blurred.mean() - IMAGE.mean()) < 2
    assert laplace(blurred[..., 0]).std() < 0.05 * laplace(IMAGE[..., 0].astype(float)).std()
    for kind in ("radiograph", "printed page"):
        assert (pictures[kind] == pictures[kind][..., :1]).all()
    assert pictures["blank glass"].mean() > 200 and pictures["blank glass"].std() < 15
    assert 0.02 < (pictures["pen marks"] != IMAGE).any(axis=2).mean() < 0.7
    flat = np.zeros((16, 16, 3), np.uint8) + np.array([10, 100, 200], np.uint8)
    assert sorted(odd.draw("inverted", flat, 0, 0)[3, 4].tolist()) == [55, 155, 245]


@pytest.mark.parametrize(
    ("kind", "image", "message"),
    [("smoke", IMAGE, "choose one of out of focus"), ("noise", IMAGE[..., 0], "expected"), ("noise", IMAGE[:9], "16")],
)
def test_what_cannot_be_drawn_is_refused(kind, image, message):
    with pytest.raises(InputError, match=message):
        odd.draw(kind, image, 0, 0)


def test_a_table_of_odd_pictures_says_what_each_is_and_what_it_was_made_from(images, tmp_path):
    table = odd.write(tmp_path / "odd", images, n_each=4, seed=0)
    assert table.rows["label"].value_counts().to_dict() == dict.fromkeys(odd.KINDS, 4)
    group_of = images.rows.set_index("image_id")["group"]
    altered = table.rows[table.rows["made_from"] != ""]
    assert set(altered["label"]) == set(odd.ALTERED)
    assert (altered["group"] == altered["made_from"].map(group_of)).all()
    assert not altered.duplicated(["label", "made_from"]).any()
    assert read_image(table.path(0)).size == (32, 32)
    assert table.group_kind == "patient"


def test_no_image_is_altered_twice_in_a_kind_and_drawn_ones_can_be_left_out(images, tmp_path):
    table = odd.write(tmp_path / "odd", images, n_each=9, seed=0, skip=tuple(odd.DRAWN))
    assert table.rows["label"].value_counts().to_dict() == dict.fromkeys(odd.ALTERED, 5)
    again = odd.write(tmp_path / "odd", images, n_each=2, seed=0)
    assert len(again) == 2 * len(odd.KINDS) and len(list((tmp_path / "odd").rglob("*.png"))) == len(again)
