"""Another picture under an old name is other content."""

import pytest
from PIL import Image

from lib.datasets.content import content
from lib.errors import InputError
from tests.images import listed, painted


def test_a_repainted_image_changes_the_content_and_one_that_is_gone_is_named(tmp_path):
    images = painted(listed("aabb", tmp_path), (4, 4))
    before = content(images)
    assert content(images) == before != content(images.take([f"{number}.png" for number in (3, 2, 1, 0)]))
    Image.new("RGB", (4, 4), (0, 99, 0)).save(images.path(3))
    assert content(images) != before
    images.path(3).unlink()
    with pytest.raises(InputError, match=r"3\.png: cannot be read"):
        content(images)
